"""What a host may plug in: the protocols of providers, tools, plugins and storages (semantics 4, 6.4, 7, 8, 12).

Nothing here is implemented by the core. Ready-made parts live in `youyou.adapters`, scripted ones in `youyou.testing`.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

import attrs

from ...messages.chat import ChatEvent, ChatRequest
from ...messages.events import ToolOutput
from ...messages.hook_payloads import HookEvent, HookResult
from ...messages.records import Memory, SessionEvent, SessionPage, SessionSummary

HookEventT = TypeVar("HookEventT", bound=HookEvent)
HookHandler: TypeAlias = Callable[[Any], Awaitable[HookResult]]


@attrs.frozen
class ModelCapabilities:
    """What a model can do. ``system_messages``: whether it takes them anywhere, not only at the start."""

    tool_use: bool = True
    """Whether the model can call tools; without it, requests carry none."""
    vision: bool = False
    """Whether it takes images; without it, a message with one is refused (``CONTENT_NOT_SUPPORTED``)."""
    streaming: bool = True
    """Whether the answer arrives in pieces; for front ends, the runtime treats both alike."""
    system_messages: bool = True
    """Whether it takes system messages amid the conversation; without it, notes travel as user text."""
    structured_output: bool = True
    """Whether its API holds an answer to ``ChatRequest.response_schema``; without it, the system prompt tells it."""


@attrs.frozen
class ModelInfo:
    """A model that a provider offers. ``context_window`` is in tokens."""

    id: str
    """Unique across all registered providers."""
    display_name: str
    """Name that a front end shows."""
    context_window: int
    """Tokens that request and answer may have together."""
    capabilities: ModelCapabilities = ModelCapabilities()
    """What the model can do. Default: tools and streaming, no images."""


ChatStream: TypeAlias = AsyncIterable[ChatEvent]


@runtime_checkable
class ModelProvider(Protocol):
    """Talks to one LLM API (semantics 4). How to write one: docs/parts.md.

    Synopsis::

        async def chat(self, request):
            async with aclosing(self.words(request)) as words:
                async for word in words: yield TextDelta(word)
            yield Done()

    ``chat`` returns an async context manager whose value is an async iterable of chat events, or such an iterable
    itself (an async generator function will do). Cancellation is Trio's: the runtime cancels the scope around the
    stream and closes it; there is no token to poll. May be called by several tasks at once.
    """

    @property
    def id(self) -> str:
        """Unique among the registered providers."""

    def models(self) -> Sequence[ModelInfo]:
        """The models on offer. Ids are unique across providers."""

    def chat(self, request: ChatRequest) -> AbstractAsyncContextManager[ChatStream] | ChatStream:
        """One request."""


@attrs.frozen
class ToolInput:
    """What a tool is called with. ``arguments`` is the tool's own copy."""

    call_id: str
    """The call, as in its events: a key for effects that must happen once."""
    tool_name: str
    """Name under which the tool was called."""
    arguments: dict[str, Any]
    """The arguments, checked against the schema. The tool's own copy: it may change them."""
    _report: Callable[[Any], None] = attrs.field(default=lambda _: None, repr=False, eq=False)

    def report(self, progress: object) -> None:
        """Tell the host how far the tool is. Sync, never blocks; an unread report is replaced by the next one.

        ``progress`` is JSON data. From a worker thread it may be called as it is.
        """
        self._report(progress)


@runtime_checkable
class ToolHandler(Protocol):
    """Something a model may call (semantics 8). ``tags`` and ``timeout_ms`` are read if they are there.

    Synopsis, see docs/parts.md; for a function `tool` is shorter::

        class Counter:
            name, description, parameters, mutating = "count", "Counts up.", {"type": "object"}, True
            async def execute(self, input):
                return ToolOutput(str(next(self.numbers)))
    """

    @property
    def name(self) -> str:
        """Unique among the registered tools."""

    @property
    def description(self) -> str:
        """What it is for, said to the model."""

    @property
    def parameters(self) -> Any:
        """JSON Schema of the arguments."""

    @property
    def mutating(self) -> bool:
        """Whether it has side effects: a batch with such a tool runs one call after the other."""

    async def execute(self, input: ToolInput) -> ToolOutput:
        """Execute the call. It may raise anything: the model gets an error result."""


class PluginContext(Protocol):
    """What a plugin gets in ``apply``."""

    @property
    def plugin_id(self) -> str:
        """The plugin's own id."""

    @property
    def plugin_config(self) -> Any:
        """What it was registered with."""

    def tap(
        self,
        event_class: type[HookEventT],
        handler: Callable[[HookEventT], Awaitable[HookResult]],
        *,
        stage: int = 0,
    ) -> None:
        """Have ``handler`` called at each such event: lower stages first, then in order of registration."""


@runtime_checkable
class Plugin(Protocol):
    """A listener to the life of an agent (semantics 6.4). How to write one: docs/parts.md.

    Synopsis::

        class Guard:
            id = "guard"
            def apply(self, ctx):
                ctx.tap(BeforeToolUse, self.guard)
            async def guard(self, event):
                return Abort("too dear") if event.arguments["euros"] > 100 else None

    It must have an ``id``, and of these whatever it uses; ``build()`` refuses one that does nothing or is misspelt:

    - ``display_name``: for people; by default the id.
    - ``description``: goes into the system prompt; without one, the model does not learn of the plugin.
    - ``async def initialize(self, config)``: called once, in order of registration, when the agent is entered.
    - ``def apply(self, ctx)``: taps the hooks, with a `PluginContext`. After all plugins were initialised.
    - ``async def shutdown(self)``: called once, in reverse order, when the agent is left.
    """

    @property
    def id(self) -> str:
        """Unique among the registered plugins."""


@runtime_checkable
class SessionStorage(Protocol):
    """Keeps sessions (semantics 7). Called by one task at a time. How to write one: docs/parts.md.

    Synopsis, with a dict; ``check_session_storage`` of `youyou.testing` tells whether the rest is right::

        async def save_events(self, session_id, events):
            await trio.lowlevel.checkpoint()
            log = self.kept.get(session_id, [])
            self.kept[session_id] = [*log, *new_events(session_id, log, events)]
    """

    async def save_events(self, session_id: str, events: Sequence[SessionEvent]) -> None:
        """Append one batch by comparison, all or nothing. `youyou.new_events` is the rule as a function.

        A number that is stored with the same content is a retry and ignored.

        Raises:
            SessionTaken: a number is stored with other content. Final: the runtime gives the session up.
            SessionNotFound: the numbers begin above 1, and the session is not stored (any more). Final as well.
            StorageError: the numbers leave a gap behind what is stored, or the storage failed.
        """

    async def load_session(self, session_id: str) -> Sequence[SessionEvent] | None:
        """All events in order, or None when there is no such session."""

    async def list_sessions(self, cursor: str | None = None, limit: int = 50) -> SessionPage:
        """A page of summaries, the most recently updated first."""

    async def find_session(self, query: str) -> Sequence[SessionSummary]:
        """Sessions whose id starts with ``query`` or whose title contains it."""

    async def delete_session(self, session_id: str) -> None:
        """Forget a session. Unknown ids are not an error."""


@attrs.frozen
class SessionClaim:
    """What an owner got. ``epoch`` grows with every claim of a session; ``expires_at`` is by the storage's clock."""

    epoch: int
    """A number that grows with every claim of the session."""
    expires_at: datetime
    """When the claim ends unless it is renewed, by the storage's clock; timezone-aware, UTC."""


@runtime_checkable
class SessionClaims(Protocol):
    """Says who may open a session (semantics 7, "Claims"): optional methods of a `SessionStorage`.

    Synopsis, of the one rule, with a dict; ``check_session_claims`` of `youyou.testing` tells whether the rest is
    right::

        async def claim(self, session_id, *, owner, address, ttl_ms, steal=False):
            await trio.lowlevel.checkpoint()
            held = self.claims.get(session_id)
            if held and held.owner != owner and self.alive(held) and not steal:
                raise SessionTaken.held(session_id, held.owner, held.address, held.ms_left)
            ...

    A claim decides who opens, never who writes: that is decided by ``save_events``.
    """

    async def claim(
        self, session_id: str, *, owner: str, address: str, ttl_ms: int, steal: bool = False
    ) -> SessionClaim:
        """Give the session to ``owner``, under an epoch above all earlier ones. The session need not be stored yet.

        An owner may claim again what it has. ``steal`` takes the session from an owner that lives.

        Raises:
            SessionTaken: another owner has it: retryable, with ``owner``, ``address`` and ``retry_after_ms``.
        """

    async def renew(self, owner: str, epochs: Mapping[str, int], ttl_ms: int) -> Sequence[str]:
        """Prolong the claims that ``owner`` has under these epochs. The ids of those that it no longer has."""

    async def release(self, session_id: str, *, owner: str, epoch: int | None = None) -> None:
        """End a claim, so that others may open the session at once. One that is not held is not an error.

        ``epoch`` is None where the answer to ``claim`` never came: whatever claim ``owner`` has of the session.
        """


@runtime_checkable
class MemoryStorage(Protocol):
    """Keeps memories across sessions (semantics 12), keyed by ``(namespace, id)``. How to write one: docs/parts.md.

    Synopsis, with a dict; ``check_memory_storage`` of `youyou.testing` tells whether the rest is right::

        async def search(self, namespace, query, limit):
            await trio.lowlevel.checkpoint()
            found = [m for m in self.kept.values() if m.namespace == namespace]
            return self.ranked(found, query)[:limit]
    """

    async def search(self, namespace: str, query: str, limit: int) -> Sequence[Memory]:
        """The most relevant first, at most ``limit``; an empty query gives the newest."""

    async def save(self, memory: Memory) -> None:
        """Insert or update. Same content: only ``updated_at`` changes. ``created_at`` is kept."""

    async def delete(self, namespace: str, id: str) -> None:
        """Forget a memory. Unknown ids are not an error."""

"""Takes from conversations what is worth remembering (semantics 12).

One extraction at a time, in an actor of its own: its failures and its time stay inside. A session's feed collects what
was said since the last extraction, so that compaction takes nothing away; what an extraction could not take in is kept
for the next one.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from weakref import WeakSet

import attrs
import trio
from trio.lowlevel import enable_ki_protection

from ...core.memory.extraction import decide, extraction_prompt, extraction_text, parse_answer
from ...core.ports.protocols import MemoryStorage
from ...core.randomness import new_id
from ...core.session_setup import SessionSetup, model_of
from ...messages.chat import ChatRequest, SystemPrompt
from ...messages.errors import AgentError, MemoryStorageError
from ...messages.history import Message, UserMessage
from ...messages.hook_payloads import utc_now
from ...messages.records import Memory
from ..shared.lifetime import Lifetime
from ..shared.mailbox import Reply, close_all, post
from ..shared.model_stream import Response, StreamLimits, read_response
from ..shared.user_code import UserCodeError, call_user
from .memory_search import found_memories, memory_error

logger: logging.Logger = logging.getLogger("youyou.memory")

NumberedMessages = Sequence[tuple[int, Message]]


@attrs.frozen(eq=False)
class Extracted:
    """To the session: the extractor is done with everything up to ``seq``, or it failed."""

    seq: int | None
    error: AgentError | None


@attrs.frozen(eq=False)
class Extract:
    """To the extractor: take in what was said. A sender that waits has a ``reply``;
    otherwise ``on_extracted`` gets the answer.

    ``scope``: around the work, now or later; cancelled by a session that no longer wants it.
    """

    setup: SessionSetup
    session_id: str
    messages: NumberedMessages
    on_extracted: Callable[[Extracted], object]
    reply: Reply[Extracted] | None
    scope: trio.CancelScope = attrs.Factory(trio.CancelScope)


@attrs.define(eq=False)
class MemoryFeed:
    """What one session has said and nobody has extracted. Belongs to the session; inert without a memory storage."""

    extractor: MemoryExtractor
    setup: SessionSetup
    session_id: str
    on_extracted: Callable[[Extracted], object]
    _said: list[tuple[int, Message]] = attrs.Factory(list)
    _handed_over: WeakSet[Extract] = attrs.Factory(WeakSet)

    def observe(self, seq: int, message: Message) -> None:
        """A message was stored under this number. Sync."""
        if self.setup.registry.memory_storage is not None:
            self._said.append((seq, message))

    def checkpoint(self, turn: int) -> None:
        """After every N-th turn, hand over what was said. Sync: the turn does not wait."""
        if self._said and turn % self.setup.config.memory_checkpoint_interval == 0:
            self._hand_over(None)

    async def extract_all(self) -> Extracted | None:
        """Hand over what is left and wait for its outcome, within ``memory_timeout_ms``.

        Cancellation: a checkpoint. A caller that stops waiting stops what was handed over, checkpoints before it
        included: it is retried after a resume.
        """
        if self.setup.registry.memory_storage is None:
            return None
        answering, waiting = trio.open_memory_channel[Extracted](1)
        timeout = self.setup.config.memory_timeout_ms / 1000
        try:
            with waiting, trio.move_on_after(timeout), suppress(trio.EndOfChannel):
                if self._hand_over(Reply(answering)):
                    return await waiting.receive()
            return None
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Stop what was handed over and hand over no more. Sync."""
        self._said = []
        for request in self._handed_over:
            request.scope.cancel("the session no longer waits for its memories")

    def _hand_over(self, reply: Reply[Extracted] | None) -> bool:
        """Whether the extractor is there to take it."""
        said, self._said = tuple(self._said), []
        request = Extract(self.setup, self.session_id, said, self.on_extracted, reply)
        # Weakly: what is done is forgotten without anybody taking it out.
        self._handed_over.add(request)
        return post(self.extractor.box, request)


@attrs.define(eq=False)
class MemoryExtractor:
    """The actor. ``_backlog``: what failed extractions could not take in, by session."""

    lifetime: Lifetime
    box: trio.MemorySendChannel[Extract] = attrs.field(init=False)
    _inbox: trio.MemoryReceiveChannel[Extract] = attrs.field(init=False)
    _backlog: dict[str, list[tuple[int, Message]]] = attrs.Factory(dict)

    def __attrs_post_init__(self) -> None:
        # Unbounded, because a session hands over once in N turns and once at its end.
        self.box, self._inbox = trio.open_memory_channel[Extract](math.inf)

    @enable_ki_protection
    async def run(self) -> None:
        """Run the actor until its mailbox is closed."""
        try:
            async for request in self._inbox:
                extracted = await self._take_in(request)
                if request.reply is None:
                    request.on_extracted(extracted)
                else:
                    with request.reply as reply:
                        reply.send(extracted)
        finally:
            close_all(self._inbox)

    async def _take_in(self, request: Extract) -> Extracted:
        # By number: what a resumed session read again from its log may still be here.
        said = sorted({**dict(self._backlog.pop(request.session_id, [])), **dict(request.messages)}.items())
        if not said:
            return Extracted(None, None)
        timeout = request.setup.config.memory_timeout_ms / 1000
        error: AgentError = MemoryStorageError(
            f"extracting memories took longer than {timeout:g} s; it is tried again later"
        )
        with request.scope, self.lifetime.user_code(trio.current_time() + timeout):
            try:
                await self._extract(request, [message for _, message in said])
            except AgentError as failure:
                error = failure
            else:
                return Extracted(said[-1][0], None)
        if request.scope.cancelled_caught:
            error = MemoryStorageError("the session closed before they were extracted; it is retried after a resume")
        logger.warning("memories of session %s: %s", request.session_id, error)
        # Of one session only. A backlog of every session that ever failed would grow with the agent's age.
        self._backlog = {request.session_id: said}
        return Extracted(None, error)

    async def _extract(self, request: Extract, messages: list[Message]) -> None:
        config, storage = request.setup.config, request.setup.registry.memory_storage
        assert storage is not None
        namespace = config.memory_namespace
        try:
            shown = await self._known(storage, namespace, messages, config.memory_max_items)
            answer = parse_answer(await self._ask(request, messages, shown))
            if answer.problem is not None:
                raise MemoryStorageError(f"extracting memories: {answer.problem}; it is tried again later")
            for memory in decide(answer.items, shown, namespace, new_id, utc_now(), request.session_id):
                await call_user(self.lifetime, storage.save, memory)
        except UserCodeError as error:
            raise memory_error("the memory storage failed", error) from error.cause

    async def _known(
        self, storage: MemoryStorage, namespace: str, messages: list[Message], limit: int
    ) -> tuple[Memory, ...]:
        said = [message.text for message in messages if isinstance(message, UserMessage)]
        query = " ".join(" ".join(said).split())[:1_000]
        return await found_memories(self.lifetime, storage, namespace, query, limit)

    async def _ask(self, request: Extract, messages: list[Message], shown: tuple[Memory, ...]) -> str:
        config = request.setup.config
        wanted = config.memory_model or config.compact_model or request.setup.model.id
        model, provider = model_of(request.setup.registry, wanted)
        text = extraction_text(messages, shown, int(model.context_window * config.compact_threshold))
        chat = ChatRequest(model.id, SystemPrompt(extraction_prompt()), (UserMessage(text),))
        response = Response(new_id())
        await read_response(self.lifetime, provider, chat, StreamLimits.of(config), response)
        return response.text

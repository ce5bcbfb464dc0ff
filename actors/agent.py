"""Enters and leaves an agent (semantics 2, 3, 6.2): the tree of its tasks, and what its host gets to see.

host nursery
└─ top                     the host's body runs here, never shielded
   ├─ watcher              parked outside the shield: notices that the host is cancelled
   └─ server               inside the one shield
      ├─ recorder, attachments, tools
      └─ actors: guard (with session and turn), tool pool, memory extractor
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial

import attrs
import trio
from trio.lowlevel import enable_ki_protection

from ..core.hooks import HookRegistry
from ..core.registry import Registry
from ..messages.errors import AgentClosed, AgentCrashed, AgentError, PluginInitFailed
from .attachments import Attachment, plugin_attachment, resource_attachments
from .extraction import MemoryExtractor
from .guard import Guard
from .handles import Agent
from .hook_runner import HookRunner
from .lifetime import Lifetime
from .recorder import Recorder
from .runtime import Runtime
from .serving import serving
from .tool_pool import ToolPool
from .tool_threads import ToolThreads
from .user_code import INTERRUPTS, UserCodeError, call_sync, find, only_cancelled, split_cancelled

logger: logging.Logger = logging.getLogger("youyou")


@attrs.define(eq=False)
class _Server:
    """Everything inside the shield, from the first attachment to the last."""

    registry: Registry
    lifetime: Lifetime
    runtime: Runtime
    guard: Guard
    hooks: HookRegistry
    resources: list[Attachment]
    plugins: list[Attachment]
    ready: trio.Event = attrs.Factory(trio.Event)
    served: trio.Event = attrs.Factory(trio.Event)
    watching: trio.CancelScope = attrs.Factory(trio.CancelScope)
    task: trio.lowlevel.Task | None = None
    entry_error: BaseException | None = None
    crash: BaseException | None = None
    _recorded: trio.Event = attrs.Factory(trio.Event)
    _acting: trio.CancelScope = attrs.Factory(trio.CancelScope)

    @enable_ki_protection
    async def watch(self) -> None:
        """Notice the host's cancellation."""
        with self.watching:
            try:
                await trio.sleep_forever()
            finally:
                if not self.watching.cancel_called:
                    self.lifetime.stop_hard("host_cancelled")

    @enable_ki_protection
    async def run(self) -> None:
        """Serve until the agent is left."""
        self.task = trio.lowlevel.current_task()
        try:
            with self.lifetime.shield:
                async with trio.open_nursery() as home:
                    self.runtime.pool.home = home
                    home.start_soon(self._record, name="recorder")
                    await self._serve(home)
                    self.served.set()
                    self._warn_of_stuck()
                    home.cancel_scope.cancel("the agent is left")
        finally:
            self.watching.cancel("the agent is left")
            self.ready.set()
            self.served.set()

    @enable_ki_protection
    async def _record(self) -> None:
        try:
            with serving(self.lifetime):
                await self.runtime.recorder.run()
        except Exception as exc:
            # Raised by `_serve`: the home nursery would cancel the plugins instead of leaving them.
            self.crash = exc
            self.lifetime.stop_hard("host_cancelled")
            self._acting.cancel("the recorder crashed")
        finally:
            self._recorded.set()

    async def _serve(self, home: trio.Nursery) -> None:
        entered: list[Attachment] = []
        try:
            if await self._enter(home, entered):
                await self._act()
        except BaseException as exc:
            self.crash = split_cancelled(exc)[1] or self.crash
            self.lifetime.stop_hard("host_cancelled")
            await self._close(entered)  # noqa: ASYNC102  the lifetime is the shield, with a deadline
            raise
        await self._close(entered)
        if self.crash is not None:
            raise self.crash

    async def _enter(self, home: trio.Nursery, entered: list[Attachment]) -> bool:
        """Resources, then plugins, in order of registration. False: one failed, and the entry with it."""
        for attachment in [*self.resources, *self.plugins]:
            home.start_soon(attachment.run, name=attachment.name)
            with self.lifetime.work():
                await attachment.ready.wait()
            if attachment.entered:
                entered.append(attachment)
                continue
            attachment.scope.cancel("the entry was cut")
            self.entry_error = self._why_not_entered(attachment)
            return False
        return self._apply()

    def _why_not_entered(self, attachment: Attachment) -> BaseException | None:
        if attachment.error is None:
            return AgentClosed("the agent was stopped before it was ready")
        if attachment in self.resources:
            return attachment.error.cause
        failed = PluginInitFailed(f"{attachment.name}: initialize raised {attachment.error}")
        failed.__cause__ = attachment.error.cause
        return failed

    def _apply(self) -> bool:
        for plugin, config in self.registry.plugins:
            try:
                call_sync(self.lifetime, plugin.apply, self.hooks.context(plugin.id, config))
            except UserCodeError as error:
                self.entry_error = PluginInitFailed(f"plugin {plugin.id}: apply raised {error}")
                self.entry_error.__cause__ = error.cause
                return False
        return True

    async def _act(self) -> None:
        with self._acting:
            async with trio.open_nursery() as actors:
                actors.start_soon(self.runtime.pool.run, name="tool pool")
                actors.start_soon(self.runtime.extractor.run, name="memory extractor")
                actors.start_soon(self._guard, name="guard")
                self.ready.set()

    @enable_ki_protection
    async def _guard(self) -> None:
        # Nobody has work for the others once the guard has ended.
        with self.runtime.pool.jobs, self.runtime.extractor.box:
            await self.guard.run()

    async def _close(self, entered: list[Attachment]) -> None:
        """The last flush; then plugins, recorder and resources in reverse, each within its share of the time."""
        recorder = self.runtime.recorder
        with self.lifetime.records():
            try:
                await recorder.flush_all()
            except AgentError as error:
                logger.error("the agent is left with events that were not stored: %s", error)
        left = len(entered)
        for attachment in reversed(entered):
            if attachment in self.resources and not self._recorded.is_set():
                await self._end_recorder()
            await self._leave(attachment, left)
            left -= 1
        recorder.close()

    async def _end_recorder(self) -> None:
        self.runtime.recorder.close()
        with self.lifetime.records():
            await self._recorded.wait()

    async def _leave(self, attachment: Attachment, left: int) -> None:
        if attachment.gone.is_set():
            return
        config = self.registry.config
        ours = trio.current_time() + config.plugin_timeout_ms / 1000
        waiting = trio.CancelScope()

        def tighten() -> None:
            # A stop that comes now shortens the step that is under way.
            attachment.scope.deadline = min(ours, self.lifetime.share(left))
            hard = self.lifetime.hard is not None
            waiting.deadline = attachment.scope.deadline + (0 if hard else config.tool_patience_ms / 1000)

        tighten()
        self.lifetime.on_hard.append(tighten)
        attachment.leaving.set()
        with waiting:
            await attachment.gone.wait()
        self.lifetime.on_hard.remove(tighten)
        if attachment.error is not None:
            logger.error("%s failed while it was left: %s", attachment.name, attachment.error)
        elif not attachment.gone.is_set() or attachment.scope.cancelled_caught:
            logger.error("%s did not end in time", attachment.name)

    def _warn_of_stuck(self) -> None:
        names = sorted(set(self.runtime.pool.stuck.values()))
        if names:
            text = (
                f"leaving the agent waits for tools that do not stop: {', '.join(names)}; have them honour cancellation"
            )
            logger.warning(text)
            # Where the host's filters make it an error, it is logged, and must not look like a crash.
            with suppress(RuntimeWarning):
                warnings.warn(text, RuntimeWarning, stacklevel=2)


def _server(registry: Registry) -> _Server:
    config = registry.config
    lifetime = Lifetime(config.shutdown_grace_ms / 1000, config.closing_ms / 1000)
    hooks = HookRegistry()
    runtime = Runtime(
        registry,
        lifetime,
        Recorder(lifetime, registry.session_storage, config.storage_timeout_ms / 1000),
        ToolPool(
            lifetime,
            config.max_concurrent_tools,
            config.tool_patience_ms / 1000,
            ToolThreads(lifetime, config.max_concurrent_tools),
        ),
        HookRunner(hooks, lifetime),
        MemoryExtractor(lifetime),
    )
    parts = [*registry.providers, registry.session_storage, registry.memory_storage]
    plugins = [plugin_attachment(plugin, plugin_config, lifetime) for plugin, plugin_config in registry.plugins]
    return _Server(registry, lifetime, runtime, Guard(runtime), hooks, resource_attachments(parts, lifetime), plugins)


@asynccontextmanager
@enable_ki_protection
async def open_agent(registry: Registry) -> AsyncIterator[Agent]:
    """A running agent for the length of a block.

    Cancellation: entering and leaving are checkpoints. When the surrounding scope is cancelled, `trio.Cancelled`
    propagates after at most ``shutdown_grace_ms`` + ``closing_ms`` (semantics 6.2).

    Raises:
        PluginInitFailed: a plugin's ``initialize`` or ``apply`` raised.
        AgentCrashed: a bug in the runtime; what else happened is in its cause.
    """
    await trio.lowlevel.checkpoint()
    server = _server(registry)
    lifetime = server.lifetime
    body: BaseException | None = None
    group: BaseException | None = None
    try:
        async with trio.open_nursery() as top:
            top.start_soon(server.watch, name="agent watcher")
            # Not nursery.start(): a cancelled start() would wait for this shielded task for ever.
            top.start_soon(server.run, name="agent")
            lifetime.on_hard.append(partial(_interrupt_body, lifetime, top.cancel_scope))
            try:
                await server.ready.wait()
                if server.entry_error is None and not server.served.is_set() and server.task is not None:
                    yield Agent(server.runtime, server.guard.box, server.served, server.task)
            except BaseException as exc:  # noqa: ASYNC103  what holds no cancellation is raised below
                body = exc
                if split_cancelled(exc)[0] is not None:
                    raise  # Trio has to route it
                if not isinstance(exc, Exception):
                    lifetime.stop_hard("host_cancelled")
                # An ordinary exception is kept out of the nursery, which would cancel the watcher and so turn an
                # orderly leave into a hard one.
            finally:
                lifetime.leave()
    except BaseException as exc:  # noqa: ASYNC103  raised below, outside of the handler
        group = exc
    failure = _what_the_host_sees(server, group, body)
    if failure is not None:
        # Outside `except`: no foreign context is put on the host's own exception.
        raise failure


def _interrupt_body(lifetime: Lifetime, body: trio.CancelScope) -> None:
    """Ctrl-C in code that the runtime called belongs to the host: end its body too, so that it gets there."""
    if lifetime.interrupt is not None:
        body.cancel("Ctrl-C or SystemExit came out of code that the agent called")


def _what_the_host_sees(
    server: _Server, group: BaseException | None, body: BaseException | None
) -> BaseException | None:
    """Ctrl-C first, then a crash, then the body's own exception, then cancellation (semantics 3)."""
    for place in (server.lifetime.interrupt, body, group):
        if place is not None and (interrupt := find(place, INTERRUPTS)) is not None:
            return interrupt
    if body is not None and not isinstance(body, Exception) and split_cancelled(body)[0] is None:
        return body
    if server.crash is not None:
        return _crashed(server.crash, body)
    if body is not None and not only_cancelled(body):
        return body
    if group is not None:
        return _bare(group)
    return server.entry_error


def _crashed(crash: BaseException, body: BaseException | None) -> AgentCrashed:
    crashed = AgentCrashed("an actor crashed: this is a bug in youyou, please report it with the traceback below")
    own = body is not None and not only_cancelled(body) and not isinstance(body, AgentClosed)
    crashed.__cause__ = BaseExceptionGroup("the body and an actor failed", [body, crash]) if own and body else crash
    return crashed


def _bare(group: BaseException) -> BaseException:
    """The nursery wraps what it passes on; a single cancellation is passed on as it is."""
    while isinstance(group, BaseExceptionGroup) and len(group.exceptions) == 1:
        group = group.exceptions[0]
    return group

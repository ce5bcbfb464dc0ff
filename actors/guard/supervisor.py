"""All of an agent inside its one shield: enter the attachments, run the actors, close in order (semantics 2, 6.2)."""

from __future__ import annotations

import logging
import warnings
from contextlib import suppress

import attrs
import trio
from trio.lowlevel import enable_ki_protection

from ...core.hook_registry import HookRegistry
from ...core.registry.registry import Registry
from ...messages.errors import AgentClosed, AgentError, PluginInitFailed
from ..memory.extractor import MemoryExtractor
from ..recorder.recorder import Recorder
from ..session.runtime import Runtime
from ..shared.deadlock import serving
from ..shared.hook_runner import HookRunner
from ..shared.lifetime import Lifetime
from ..shared.user_code import UserCodeError, call_sync, split_cancelled
from ..tool_pool.pool import ToolPool
from ..tool_pool.tool_threads import ToolThreads
from .guard import Guard
from .lifespans import Attachment, plugin_attachment, resource_attachments

logger: logging.Logger = logging.getLogger("youyou")


@attrs.define(eq=False)
class Server:
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


def make_server(registry: Registry) -> Server:
    """The server of an agent that has not begun."""
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
    return Server(registry, lifetime, runtime, Guard(runtime), hooks, resource_attachments(parts, lifetime), plugins)

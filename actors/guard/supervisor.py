"""All of an agent inside its one shield: enter the lifespans, run the actors, close in order (semantics 2, 6.2)."""

from __future__ import annotations

import logging
import os
import platform
import warnings
from contextlib import suppress

import attrs
import trio
from trio.lowlevel import enable_ki_protection

from ...core.hook_registry import HookRegistry
from ...core.randomness import new_id
from ...core.registry.registry import Registry
from ...messages.errors import AgentClosed, AgentError, PluginInitFailed
from ..memory.extractor import MemoryExtractor
from ..recorder.claims import Claims, claims_of
from ..recorder.recorder import Recorder
from ..session.runtime import Runtime
from ..shared.deadlock import own_task
from ..shared.hook_runner import HookRunner
from ..shared.lifetime import Lifetime
from ..shared.user_code import UserCodeError, call_sync, split_cancelled
from ..tool_pool.pool import ToolPool
from ..tool_pool.tool_threads import ToolThreads
from .guard import Guard
from .lifespans import Lifespan, plugin_lifespan, resource_lifespans

logger: logging.Logger = logging.getLogger("youyou")


@attrs.define(eq=False)
class Supervisor:
    """Everything inside the shield, from the first lifespan to the last."""

    registry: Registry
    lifetime: Lifetime
    runtime: Runtime
    guard: Guard
    hooks: HookRegistry
    resources: list[Lifespan]
    plugins: list[Lifespan]
    ready: trio.Event = attrs.Factory(trio.Event)
    closed: trio.Event = attrs.Factory(trio.Event)
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
                # Only a cancellation from outside ends the sleep without this: it must tighten the shield, since a
                # shield without a deadline would defeat Ctrl-C, too.
                if not self.watching.cancel_called:
                    self.lifetime.force_shutdown("host_cancelled")

    @enable_ki_protection
    async def run(self) -> None:
        """Serve until the agent is left."""
        self.task = trio.lowlevel.current_task()
        # Everything that calls code of the host's is started below this task.
        own_task(self.lifetime)
        try:
            # One shield for everything, with one deadline that only moves closer. Graces of nested shields would add
            # up.
            with self.lifetime.shield:
                async with trio.open_nursery() as home:
                    # Tools live in the outermost nursery: one that does not stop must not hold up plugins, storages or
                    # the answer to the turn, only the very end of leaving.
                    # An actor that would have nothing to do in all its life is not started: a third of what an idle
                    # agent holds is its tasks.
                    if self.registry.session_storage is not None:
                        home.start_soon(self._record, name="recorder")
                    else:
                        self._recorded.set()
                    await self._serve(home)
                    self.closed.set()
                    if self.runtime.pool.stuck:
                        home.start_soon(self._warn_of_stuck, name="the wait for tools that do not stop")
                    home.cancel_scope.cancel("the agent is left")
        finally:
            self.watching.cancel("the agent is left")
            self.ready.set()
            self.closed.set()

    @enable_ki_protection
    async def _record(self) -> None:
        try:
            await self.runtime.recorder.run()
        except Exception as exc:
            # Raised by `_serve`: the home nursery would cancel the plugins instead of leaving them.
            self.crash = exc
            self.lifetime.force_shutdown("host_cancelled")
            self._acting.cancel("the recorder crashed")
        finally:
            self._recorded.set()

    async def _serve(self, home: trio.Nursery) -> None:
        entered: list[Lifespan] = []
        try:
            if await self._enter(home, entered):
                await self._act(home)
        except BaseException as exc:
            self.crash = split_cancelled(exc)[1] or self.crash
            self.lifetime.force_shutdown("host_cancelled")
            await self._close(entered)  # noqa: ASYNC102  the lifetime is the shield, with a deadline
            raise
        await self._close(entered)
        if self.crash is not None:
            raise self.crash

    async def _enter(self, home: trio.Nursery, entered: list[Lifespan]) -> bool:
        """Resources, then plugins, in order of registration. False: one failed, and the entry with it."""
        # One after the other, because a plugin may use what was registered before it, and so that leaving in reverse is
        # right. Each has a task of its own: a cancel scope or nursery that it opens in `initialize` must be closed by
        # the same task in `shutdown`.
        for lifespan in [*self.resources, *self.plugins]:
            home.start_soon(lifespan.run, name=lifespan.name)
            with self.lifetime.user_code():
                await lifespan.ready.wait()
            if lifespan.entered:
                entered.append(lifespan)
                continue
            # Entered or not, its task must end: the home nursery waits for it.
            lifespan.scope.cancel("the entry was cut")
            self.entry_error = self._why_not_entered(lifespan)
            return False
        return self._apply()

    def _why_not_entered(self, lifespan: Lifespan) -> BaseException | None:
        if lifespan.error is None:
            return AgentClosed("the agent was stopped before it was ready")
        if lifespan in self.resources:
            return lifespan.error.cause
        failed = PluginInitFailed(f"{lifespan.name}: initialize raised {lifespan.error}")
        # The cause is the plugin's own exception, not our wrapper, so that a host's traceback ends in the plugin's
        # code.
        failed.__cause__ = lifespan.error.cause
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

    async def _act(self, home: trio.Nursery) -> None:
        with self._acting:
            async with trio.open_nursery() as actors:
                actors.start_soon(self.runtime.pool.run, home, name="tool pool")
                if self.registry.memory_storage is not None:
                    actors.start_soon(self.runtime.extractor.run, name="memory extractor")
                if self.runtime.claims.storage is not None:
                    actors.start_soon(self.runtime.claims.run, name="claims")
                actors.start_soon(self._guard, name="guard")
                self.ready.set()

    @enable_ki_protection
    async def _guard(self) -> None:
        # Nobody has work for the others once the guard has ended.
        # Closing their mailboxes is how the others learn that nothing will come: cancelling them would cut what still
        # runs.
        with self.runtime.extractor.box:
            try:
                await self.guard.run()
            finally:
                self.runtime.claims.close()
                self.runtime.pool.close()

    # The order of closing. First the flush, because a plugin may be the one that hangs, and events that are not stored
    # are the greater loss. Plugins before resources, since a plugin may still talk to a provider or a storage. The
    # recorder ends between the two: it writes what plugins cause until the last of them has left, and must be done
    # before the storage that it writes to is left.
    async def _close(self, entered: list[Lifespan]) -> None:
        """The last flush; then plugins, recorder and resources in reverse, each within its share of the time."""
        recorder = self.runtime.recorder
        with self.lifetime.flushing():
            try:
                await recorder.flush_all()
            except AgentError as error:
                logger.error("the agent is left with events that were not stored: %s", error)
        left = len(entered)
        for lifespan in reversed(entered):
            # Before the first resource, whichever it is: any of them may be the storage's own connection.
            if lifespan in self.resources and not self._recorded.is_set():
                await self._end_recorder()
            # An equal share of what is left: one that hangs costs the others nothing, and one that is quick leaves more
            # for them.
            await self._leave(lifespan, left)
            left -= 1
        recorder.close()

    async def _end_recorder(self) -> None:
        self.runtime.recorder.close()
        with self.lifetime.flushing():
            await self._recorded.wait()

    async def _leave(self, lifespan: Lifespan, left: int) -> None:
        # It ended by itself: its `initialize` was cut, or it raised.
        if lifespan.gone.is_set():
            return
        config = self.registry.config
        ours = trio.current_time() + config.plugin_timeout_ms / 1000
        waiting = trio.CancelScope()

        def tighten() -> None:
            # A stop that comes now shortens the step that is under way.
            lifespan.scope.deadline = min(ours, self.lifetime.share(left))
            hard = self.lifetime.forced is not None
            # The wait ends later than the scope, so that a plugin that honours its cancellation is seen to end; after a
            # forced shutdown there is no time for such manners.
            waiting.deadline = lifespan.scope.deadline + (0 if hard else config.tool_patience_ms / 1000)

        tighten()
        # While it is being left, a host's cancellation may come: the share must shrink at once, not after this step.
        self.lifetime.on_forced.append(tighten)
        lifespan.leaving.set()
        with waiting:
            await lifespan.gone.wait()
        self.lifetime.on_forced.remove(tighten)
        if lifespan.error is not None:
            logger.error("%s failed while it was left: %s", lifespan.name, lifespan.error)
        elif not lifespan.gone.is_set() or lifespan.scope.cancelled_caught:
            logger.error("%s did not end in time", lifespan.name)

    async def _warn_of_stuck(self) -> None:
        # The nursery waits for the tools in any case: this task only says whom for, once they had time to clean up.
        with trio.CancelScope(shield=True):
            names = sorted(set(await self.runtime.pool.wait_for_stuck()))
        if names:
            text = (
                f"leaving the agent waits for tools that do not stop: {', '.join(names)}; have them honour cancellation"
            )
            logger.warning(text)
            # Where the host's filters make it an error, it is logged, and must not look like a crash.
            with suppress(RuntimeWarning):
                warnings.warn(text, RuntimeWarning, stacklevel=2)


def make_supervisor(registry: Registry, *, resources_entered: bool = False) -> Supervisor:
    """The supervisor of an agent that has not begun. Resources that somebody else entered are not entered here."""
    config = registry.config
    lifetime = Lifetime(config.shutdown_grace_ms / 1000, config.closing_ms / 1000)
    hooks = HookRegistry()
    runtime = Runtime(
        registry,
        lifetime,
        Recorder(lifetime, registry.session_storage, config.storage_timeout_ms / 1000),
        Claims(
            lifetime,
            claims_of(registry.session_storage),
            owner=new_id(),
            address=config.address or f"{platform.node()}:{os.getpid()}",
            ttl=config.claim_ttl_ms / 1000,
            timeout=config.storage_timeout_ms / 1000,
        ),
        ToolPool(
            lifetime,
            config.max_concurrent_tools,
            config.tool_patience_ms / 1000,
            ToolThreads(lifetime, config.max_concurrent_tools),
        ),
        HookRunner(hooks, lifetime),
        MemoryExtractor(lifetime),
    )
    parts = [] if resources_entered else [*registry.providers, registry.session_storage, registry.memory_storage]
    plugins = [plugin_lifespan(plugin, plugin_config, lifetime) for plugin, plugin_config in registry.plugins]
    return Supervisor(registry, lifetime, runtime, Guard(runtime), hooks, resource_lifespans(parts, lifetime), plugins)

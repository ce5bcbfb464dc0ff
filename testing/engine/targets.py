"""What an injected cancel acts on: scopes and actions with a name, Ctrl-C, the function given to a sweep.

Fires, follows what was fired until it has ended, and times that. Never decides when to fire.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Awaitable, Callable

import attrs
import trio

from ..process import trio_internals
from .attempt import Run
from .control import Control

_NAME_LENGTH = 24


@attrs.frozen
class Action:
    """Something to call. ``done`` tells when what it ends has ended."""

    call: Callable[[], object]
    done: Callable[[], object] | None = None


@attrs.define(eq=False)
class Targets:
    """The targets of one run."""

    control: Control
    run: Run
    shut_down: Callable[[float], None]
    """Told how long the first target took to end."""
    failed: Callable[[str, BaseException], None]
    """Told what an action raised."""
    root: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    known: dict[str, trio.CancelScope | Action] = attrs.field(factory=dict)
    _helped: trio.Event = attrs.field(factory=trio.Event)

    def add(self, name: str, target: trio.CancelScope | Action) -> None:
        """Name a target; a name given again means the newer one from then on."""
        if not 0 < len(name) <= _NAME_LENGTH or not name.replace("_", "").replace("-", "").isalnum():
            raise ValueError(f"bad target name {name!r}; use up to {_NAME_LENGTH} letters, digits, '_' and '-'")
        if name in ("root", "ctrl-c"):
            raise ValueError(f"{name!r} is a target of its own; choose another name")
        self.known[name] = target
        self.run.targets.setdefault(name, self.control.step)

    def fire(self, name: str, number: int) -> None:
        """Do injection ``number``. A target that does not exist (any more) leaves it undone."""
        if name == "ctrl-c":
            self.control.expect(number, name)
            trio_internals.interrupt(self.control.loop)
        elif name == "root":
            self._cancel(name, self.root, number)
        elif name in self.known:
            target = self.known[name]
            if isinstance(target, Action):
                self._act(name, target, number)
            elif not trio_internals.has_exited(target):
                self._cancel(name, target, number)

    async def ended(self) -> None:
        """Wait until every async action has ended.

        Cancellation: a checkpoint only if one is still under way.
        """
        while self.control.helpers:
            self._helped = trio.Event()
            await self._helped.wait()

    def never_ended(self) -> None:
        """The run was stopped; what was cancelled and has not ended by then never does."""
        cancelled = [n for n in self.run.fired if self.run.attempt.injections[n].kind == "cancel"]
        if cancelled and self.run.shutdown is None and self.control.stopped is not None:
            self.run.shutdown = math.inf

    def time_root(self) -> None:
        """The scenario is over; so is a first target that is a scope, and that was not seen to end before."""
        if self.run.fired_at and self.control.stopped is None:
            first = self.run.attempt.injections[self.run.fired[0]]
            if first.kind == "cancel" and not isinstance(self.known.get(first.what), Action):
                self._shut(self.run.fired_at[0][1])

    def _cancel(self, name: str, scope: trio.CancelScope, number: int) -> None:
        reason = f"youyou.testing: injected cancel {number} of {name}"
        self.control.expect(number, reason, scope)
        scope.cancel(reason=reason)
        if name != "root":
            self._follow(lambda: trio_internals.has_exited(scope))

    def _act(self, name: str, action: Action, number: int) -> None:
        self.control.expect(number, None)
        try:
            result = action.call()
            if callable(result) and not inspect.isawaitable(result):
                result = result()
        except BaseException as error:  # noqa: ASYNC103  # called from the run loop, which nothing may break
            self.failed(f"{name} raised", error)
            return  # noqa: ASYNC104  # same
        if result is False:
            self.control.no_effect(number)
        elif isinstance(result, trio.CancelScope):
            scope = result
            scope.cancel(reason=f"youyou.testing: injected by {name}")
            self._follow(lambda: trio_internals.has_exited(scope))
        elif inspect.isawaitable(result):
            # Known from its birth, so that a task that waits for all actions waits for one that has not begun.
            scope = trio.CancelScope()
            task = trio_internals.spawn_outside(self.control.loop, self._help, name, result, scope, name=f"{name}()")
            self.control.helpers[task] = scope
        elif action.done is not None:
            self._follow(action.done)

    async def _help(self, name: str, made: Awaitable[object], scope: trio.CancelScope) -> None:
        """Run an async action in a task of its own, outside everything it may cancel."""
        control, started, task = self.control, self.control.now, trio.lowlevel.current_task()
        with scope:
            try:
                await made
            except trio.Cancelled:
                raise
            except BaseException as error:
                self.failed(f"{name} raised", error)
        del control.helpers[task]
        self._shut(started)
        self._helped.set()

    def _follow(self, done: Callable[[], object]) -> None:
        started = self.control.now

        def look() -> None:
            # Once the run is stopped, it is the engine that ends things.
            if self.run.shutdown is None and self.control.stopped is None and done():
                self._shut(started)

        self.control.checks.append(look)
        look()

    def _shut(self, started: float) -> None:
        if self.run.shutdown is None and self.run.fired_at and self.control.stopped is None:
            self.run.shutdown = max(0.0, self.control.now - started)
            self.shut_down(self.run.shutdown)

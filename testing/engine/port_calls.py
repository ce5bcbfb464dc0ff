"""The ports of a simulated run: broken where the attempt says, late or failing by decision, dead after a crash."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import trio

from ..process import trio_internals
from ..process.locations import Location, chain_of_caller
from .attempt import Attempt, Limits, Run
from .control import Control
from .crashes import Crashed
from .faults import Fault, FaultPlan, Mode, PortCall

LATENCIES = (0.0, 0.001, 0.1, 1.0, 30.0)
"""Seconds by which a port may be late in an exploration, beside those that the program's own deadlines suggest."""
_DEADLINES = 4
_JUST = 0.001
"""Seconds before and after a deadline."""


class SimulatedPlan(FaultPlan):
    """A `FaultPlan` that follows an attempt and tells the run's control what it did."""

    def __init__(
        self,
        attempt: Attempt,
        limits: Limits,
        control: Control,
        run: Run,
        *,
        cancel: Callable[[int], None],
        crash: Callable[[int], None],
    ) -> None:
        super().__init__()
        self._cancel, self._crash = cancel, crash
        self._crashes = {i.at: n for n, i in enumerate(attempt.injections) if i.when == "during"}
        self.dead = False
        self._attempt, self._limits, self._control, self._run = attempt, limits, control, run
        self._planned = {i.at: (n, i.what) for n, i in enumerate(attempt.injections) if i.kind == "fault"}

    async def perform(self, port: str, method: str, invoke: Callable[[], Awaitable[Any]]) -> Any:
        """Make one call, unless the process has crashed.

        Cancellation: as the call itself.
        """
        if self.dead:
            raise Crashed(f"{port}.{method} after the crash")
        return await super().perform(port, method, invoke)

    def perform_now(self, port: str, method: str) -> None:
        """Count a call that is not awaited, unless the process has crashed.

        Raises:
            Crashed: it has.
            OSError: the attempt breaks this call.
        """
        if not self.dead and (number := self._crashes.get(len(self.calls) + 1)) is not None:
            self._crash(number)
        if self.dead:
            raise Crashed(f"{port}.{method} after the crash")
        super().perform_now(port, method)

    def fault_for(self, call: PortCall) -> Fault | None:
        """What the attempt, or chance in chaos, has in store for ``call``."""
        self._run.calls.append(call)
        self._run.call_steps.append((self._control.step, self._control.now))
        if call.number in self._planned:
            number, mode = self._planned[call.number]
            if mode == "cancel_after":
                # Done when the call has had its effect.
                return Fault("cancel_after")
            self._control.note_fired(number)
            # A call of a file may come from a thread, where no task is current.
            task = trio_internals.running_task()
            chain = (task and chain_of_caller(task)) or (Location("", 0, f"port call {call}"),)
            self._control.delivered(number, task, chain)
            return self._made(Fault(mode), call)  # type: ignore[arg-type]  # checked when the attempt was made
        return self._in_chaos(call)

    async def cancel_now(self, call: PortCall) -> None:
        """Cancel everything, as the attempt wants it, and notice it here unless a shield hides it."""
        self._cancel(self._planned[call.number][0])
        await trio.lowlevel.checkpoint()

    def latency(self, call: PortCall) -> float:
        """Seconds by which ``call`` is late: of our own choice, or just before, at and just after a deadline."""
        if not self._attempt.latency:
            return 0.0
        possible = [*LATENCIES, *self._around_deadlines()]
        return possible[self._control.choices.choose(len(possible))]

    def _around_deadlines(self) -> list[float]:
        now = self._control.clock.current_time()
        left = {
            scope.deadline - now
            for task in self._control.tasks
            if task in trio_internals.alive(self._control.loop)
            for scope in trio_internals.scopes_around(task)
            if now < scope.deadline < math.inf
        }
        return [wait for d in sorted(left)[:_DEADLINES] for wait in (max(0.0, d - _JUST), d, d + _JUST)]

    def _in_chaos(self, call: PortCall) -> Fault | None:
        chaos = self._attempt.chaos
        if chaos is None or self._control.now >= chaos.heal:
            return None
        chosen = self._control.choices.choose(1 + len(chaos.modes))
        if not chosen:
            return None
        mode: Mode = chaos.modes[chosen - 1]
        # Whatever hangs in chaos comes back when the world heals.
        mode = "slow" if mode == "hang" else "slow_after" if mode == "hang_after" else mode
        return self._made(Fault(mode, seconds=chaos.heal - self._control.now), call)

    def _made(self, fault: Fault, call: PortCall) -> Fault:
        make = self._limits.error
        return (
            fault
            if make is None or fault.mode in ("dies", "dies_after")
            else attrs.evolve(fault, error=lambda: make(fault, call))
        )

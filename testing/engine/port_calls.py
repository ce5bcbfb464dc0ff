"""The ports of a simulated run: broken where the attempt says, late or failing by decision, dead after a crash."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import trio

from ..process.locations import Location, location_of_caller
from .attempt import Attempt, Limits, Run
from .control import Control
from .crashes import Crashed
from .faults import Fault, FaultPlan, Mode, PortCall

LATENCIES = (0.0, 0.001, 0.1, 1.0, 30.0)
"""Seconds by which a port may be late in an exploration."""


class SimulatedPlan(FaultPlan):
    """A `FaultPlan` that follows an attempt and tells the run's control what it did."""

    def __init__(self, attempt: Attempt, limits: Limits, control: Control, run: Run) -> None:
        super().__init__()
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

    def fault_for(self, call: PortCall) -> Fault | None:
        """What the attempt, or chance in chaos, has in store for ``call``."""
        self._run.calls.append(call)
        self._run.call_steps.append((self._control.step, self._control.now))
        if call.number in self._planned:
            number, mode = self._planned[call.number]
            self._control.note_fired(number)
            task = trio.lowlevel.current_task()
            where = location_of_caller(task) or Location("", 0, f"port call {call}")
            self._control.delivered(number, task, where)
            return self._made(Fault(mode), call)  # type: ignore[arg-type]  # checked when the attempt was made
        return self._in_chaos(call)

    def latency(self, call: PortCall) -> float:
        """Seconds by which ``call`` is late."""
        return LATENCIES[self._control.choices.choose(len(LATENCIES))] if self._attempt.latency else 0.0

    def _in_chaos(self, call: PortCall) -> Fault | None:
        chaos = self._attempt.chaos
        if chaos is None or self._control.now >= chaos.heal:
            return None
        chosen = self._control.choices.choose(1 + len(chaos.modes))
        if not chosen:
            return None
        mode: Mode = chaos.modes[chosen - 1]
        # Whatever hangs in chaos comes back when the world heals.
        mode = "slow" if mode == "hang" else mode
        return self._made(Fault(mode, seconds=chaos.heal - self._control.now), call)

    def _made(self, fault: Fault, call: PortCall) -> Fault:
        make = self._limits.error
        return fault if make is None or fault.mode == "dies" else attrs.evolve(fault, error=lambda: make(fault, call))

"""The end of ``youyou demo``: the test kit sweeps the very conversation, and finds a bug that was planted in a tool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import trio

from ...core.history.sendability import sendability_problem
from ...core.tools.declaration import Tool, tool
from ...messages.events import AgentEventPayload
from ..agent.assembly import agent_builder
from ..agent.demo_model import DemoModel
from ..agent.sample_tools import sample_tools
from .checks import Check
from .plan import IN_TURN, TURNS, LineByLine, PlannedTurn

if TYPE_CHECKING:
    from ...testing import Report, Simulation

_POINTS = 40
"""Moments of the conversation at which it is cancelled; all of them would take minutes."""
_LONGER_THAN_THE_GRACE = 2.0
_PROMISE = "the notebook counts its notes"


def kit_checks() -> list[Check]:
    """What the kit found. Blocking, a few seconds: every run has a loop of its own, in virtual time."""
    from ...testing import sweep

    swept = sweep(the_conversation, points=_POINTS)
    found = sweep(with_a_planted_bug, points=_POINTS, stop_at_first=True)
    return [
        Check(swept.ok, f"cancelled at {_POINTS} moments, every history can be sent to any model{_failure(swept)}"),
        # Found means that this promise broke; a scenario that fails in another way finds nothing.
        Check(
            _PROMISE in _failure(found), f"a bug planted in a tool (counts first, writes later): found{_failure(found)}"
        ),
    ]


def _failure(report: Report) -> str:
    if report.ok:
        return ""
    failure = report.failures[0]
    return f": {str(failure).splitlines()[0]}; replay it with {failure.token}"


async def the_conversation(sim: Simulation) -> None:
    """The demonstration's turns with its tools, the scripted model and a storage in memory."""
    await _hold(sim, TURNS, sample_tools())


async def with_a_planted_bug(sim: Simulation) -> None:
    """The same with a notebook that is wrong for a moment, and a shutdown that may come in that moment."""
    notes: list[str] = []
    count = 0

    @tool(mutating=True)
    async def add_note(text: str) -> str:
        """Keep a note for later."""
        nonlocal count
        count += 1
        await trio.sleep(_LONGER_THAN_THE_GRACE)
        notes.append(text)
        return f"kept as note {count}"

    sim.at_end(lambda: count == len(notes), _PROMISE)
    others = [each for each in sample_tools() if each.name != add_note.name]
    await _hold(sim, [IN_TURN], [add_note, *others])


async def _hold(sim: Simulation, plan: Sequence[PlannedTurn], tools: Sequence[Tool]) -> None:
    from ...testing import InMemorySessionStorage

    storage = InMemorySessionStorage()
    builder = agent_builder(LineByLine(DemoModel()), storage, tools)
    async with builder.build() as agent, await agent.new_session() as session:
        sim.at_end(lambda: sendability_problem(session.history) is None, "the history can be sent to any model")
        for planned in plan:
            turn = await session.send_message(planned.prompt)
            seen: list[AgentEventPayload] = []
            async for event in turn:
                seen.append(event.payload)
                if planned.cancel_at is not None and planned.cancel_at(seen):
                    turn.cancel()
            await turn.result()

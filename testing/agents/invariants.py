"""What a host may rely on, whatever happened to an agent: one oracle for semantics 5, 6 and 7.

    invariants = AgentInvariants(storage)
    async for event in invariants.follow(turn, session):     # reads like the turn itself
        ...
    await invariants.check()                                 # after everything: raises AssertionError

It looks only at what a host can see: events, results, history and the stored log.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any

import attrs

from ...actors.handles.running_turn import RunningTurn
from ...actors.handles.session_handle import Session
from ...core.history.repair import normalise
from ...core.history.sendability import sendability_problem
from ...messages.events import (
    AgentEvent,
    ErrorEvent,
    ToolCallEnd,
    ToolCallStart,
    TurnCancelled,
    TurnComplete,
    TurnResult,
    TurnStatus,
)
from ...messages.history import Message, ToolCall, ToolOutcome, ToolResult
from ...messages.records import Metadata, SessionEvent
from .scripted import ScriptedProvider

Stored = Callable[[str], Sequence[SessionEvent]]


@attrs.define(eq=False)
class Followed:
    """One turn and the events of it that were read. Iterate over it as over the turn."""

    turn: RunningTurn
    session: Session
    events: list[AgentEvent] = attrs.Factory(list)

    def __aiter__(self) -> AsyncIterator[AgentEvent]:
        return self

    async def __anext__(self) -> AgentEvent:
        event = await anext(self.turn)
        self.events.append(event)
        return event

    @property
    def payloads(self) -> list[object]:
        """What the events say."""
        return [event.payload for event in self.events]


@attrs.define(eq=False)
class AgentInvariants:
    """Follows turns and judges them.

    Args:
        stored: gives the stored events of a session id, for example ``InMemorySessionStorage().events``; None where
            nothing is stored, or where the store is broken on purpose.
        providers: scripted providers whose requests are judged too.
    """

    stored: Stored | None = None
    """Reads what the storage holds of a session; None: the log is not judged."""
    providers: tuple[ScriptedProvider, ...] = ()
    """Scripted providers whose requests are judged as well."""
    followed: list[Followed] = attrs.Factory(list)
    """Turns that `follow` has read, in order."""
    _sessions: dict[str, Session] = attrs.Factory(dict)

    def open(self, session: Session) -> None:
        """Have this session judged, also if no turn of it is followed. A resumed one takes its older handle's place."""
        self._sessions[session.id] = session

    def follow(self, turn: RunningTurn, session: Session) -> Followed:
        """Have this turn judged. Read its events through what comes back, or not at all."""
        self.open(session)
        followed = Followed(turn, session)
        self.followed.append(followed)
        return followed

    async def check(self) -> None:
        """Judge everything that was followed. The turns must have ended.

        Raises:
            AssertionError: a promise is broken; the text says which.
        """
        for followed in self.followed:
            async for _ in followed:
                pass
            result = await followed.turn.result()
            check_events(followed.events, result)
            told = {(event.session_id, event.turn_id) for event in followed.events}
            _equal(told, {(followed.session.id, result.turn_id)}, "every event says which session and turn it is of")
            if self.stored is not None:
                check_turn_log(self.stored(followed.session.id), result)
        for session in self._sessions.values():
            check_history(session.history)
            if turns := [followed.events for followed in self.followed if followed.session.id == session.id]:
                check_sequence(turns)
            if self.stored is not None:
                check_log(self.stored(session.id), session.history)
        for provider in self.providers:
            for number, request in enumerate(provider.requests, 1):
                problem = sendability_problem(request.messages)
                _true(problem is None, f"request {number} is sendable: {problem}")
            _equal(provider.closed, provider.opened, "every stream that was opened was closed")


def check_events(events: Sequence[AgentEvent], result: TurnResult) -> None:
    """One turn's events: in sequence, one terminal event, last; starts, ends and skips agree (semantics 6, 6.1)."""
    _true(bool(events), "a turn has at least its terminal event")
    terminal = [event for event in events if isinstance(event.payload, TurnComplete | TurnCancelled)]
    _equal(terminal, [events[-1]], "exactly one terminal event, and it is the last")
    _check_terminal(events[-1], result)
    payloads = [event.payload for event in events]
    started = [payload.call_id for payload in payloads if isinstance(payload, ToolCallStart)]
    ended = [payload.call_id for payload in payloads if isinstance(payload, ToolCallEnd)]
    _equal(sorted(started), sorted(set(started)), "each call starts once")
    _equal(sorted(ended), sorted(started), "each started call ends once")
    for call_id in started:
        start = next(i for i, p in enumerate(payloads) if isinstance(p, ToolCallStart) and p.call_id == call_id)
        end = next(i for i, p in enumerate(payloads) if isinstance(p, ToolCallEnd) and p.call_id == call_id)
        _true(start < end, f"call {call_id} starts before it ends")
    _equal(set(started) & set(result.skipped), set(), "a skipped call never starts")
    _equal(set(result.interrupted) - set(started), set(), "an interrupted call had started")
    _check_outcomes(result)
    if result.status is TurnStatus.FAILED:
        told = [payload.error for payload in payloads if isinstance(payload, ErrorEvent)]
        _true(result.error in told, "a failed turn tells its error before it ends")


def _check_outcomes(result: TurnResult) -> None:
    def ids(outcome: ToolOutcome) -> list[str]:
        return sorted(answer.call_id for answer in result.tool_results if answer.outcome is outcome)

    _equal(ids(ToolOutcome.SKIPPED), sorted(result.skipped), "skipped calls are answered as skipped, and no others")
    _equal(ids(ToolOutcome.UNKNOWN), sorted(result.interrupted), "cut calls are answered as unknown, and no others")


def check_sequence(turns: Sequence[Sequence[AgentEvent]]) -> None:
    """All events of a session: numbered +1 each, in every turn in order (semantics 6). A queued turn may end early."""
    for events in turns:
        numbers = [event.sequence for event in events]
        _equal(numbers, sorted(set(numbers)), "within a turn the sequence grows")
    numbers = sorted(event.sequence for events in turns for event in events)
    _equal(numbers, list(range(numbers[0], numbers[0] + len(numbers))), "sequence is +1 per event of a session")


def _check_terminal(event: AgentEvent, result: TurnResult) -> None:
    payload = event.payload
    assert isinstance(payload, TurnComplete | TurnCancelled)
    said = payload.status if isinstance(payload, TurnComplete) else "cancelled"
    _equal(said, result.status, "terminal event and result agree on the status")
    _equal(
        (payload.text, payload.usage), (result.text, result.usage), "terminal event and result agree on text and usage"
    )
    _equal(payload.undelivered, result.undelivered, "terminal event and result agree on what was not delivered")
    if isinstance(payload, TurnCancelled):
        _equal(
            (payload.skipped, payload.interrupted),
            (result.skipped, result.interrupted),
            "terminal event and result agree on calls",
        )


def check_history(history: Iterable[Message]) -> None:
    """A history at rest: sendable as it is, each call answered exactly once (semantics 5)."""
    messages = tuple(history)
    problem = sendability_problem(messages)
    _true(problem is None, f"history is sendable: {problem}")
    calls = [message.call_id for message in messages if isinstance(message, ToolCall)]
    results = [message.call_id for message in messages if isinstance(message, ToolResult)]
    _equal(sorted(results), sorted(calls), "each announced call has exactly one result")


def check_log(events: Sequence[SessionEvent], history: Sequence[Message]) -> None:
    """The stored log: in order, and holding what history holds, unless history was compacted (semantics 7)."""
    _equal([event.seq for event in events], list(range(1, len(events) + 1)), "stored events are numbered without gaps")
    if any(isinstance(event.payload, Metadata) and event.payload.key == "compaction" for event in events):
        return
    messages = [event.payload for event in events if not isinstance(event.payload, Metadata)]
    _equal(normalise(messages), normalise(history), "storage holds what history holds")


def check_turn_log(events: Sequence[SessionEvent], result: TurnResult) -> None:
    """One turn in the stored log: what it says of the end is what the host was told (semantics 6.1, 7)."""
    facts: list[Any] = [event.payload.value for event in events if isinstance(event.payload, Metadata)]
    of_turn = [fact for fact in facts if isinstance(fact, dict) and fact.get("turn_id") == result.turn_id]
    ends = [fact["status"] for fact in of_turn if "status" in fact]
    _true(ends in ([], [result.status]), f"the log has the end of a turn at most once, as it was told: {ends}")


def _true(holds: bool, promise: str) -> None:
    if not holds:
        raise AssertionError(f"broken: {promise}")


def _equal(actual: object, expected: object, promise: str) -> None:
    if actual != expected:
        raise AssertionError(f"broken: {promise}\n  expected {expected!r}\n  got      {actual!r}")

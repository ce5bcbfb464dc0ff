"""Each promise in `AgentInvariants` is noticed when broken: a sound turn, history or log, with one thing wrong."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import attrs
import pytest
import trio.testing
from youyou import AgentBuilder, AgentConfig, AgentEvent, Tool, ToolOutput, TurnStatus
from youyou.messages.chat import ChatRequest, TextDelta, TokenUsage
from youyou.messages.errors import ProviderError
from youyou.messages.events import ErrorEvent, ToolCallEnd, ToolCallStart, TurnCancelled, TurnComplete, TurnResult
from youyou.messages.history import AssistantMessage, ToolCall, ToolOutcome, ToolResult, UserMessage
from youyou.messages.records import Metadata, SessionEvent
from youyou.testing import AgentInvariants, InMemorySessionStorage, ScriptedProvider, calls, say
from youyou.testing.agents.invariants import check_events, check_history, check_log, check_sequence, check_turn_log

NOW = datetime(2030, 1, 1, tzinfo=UTC)
USAGE = TokenUsage(10, 5)
OTHER_USAGE = TokenUsage(1, 1)


def numbered(*payloads: Any, first: int = 1) -> list[AgentEvent]:
    """Events of one turn with these payloads."""
    return [AgentEvent("session", "turn", NOW, first + n, payload) for n, payload in enumerate(payloads)]


START, END = ToolCallStart("a", "look", {}), ToolCallEnd("a", "look", ToolOutput("seen"), 1, True)
COMPLETE = TurnComplete(TurnStatus.COMPLETED, "done", USAGE)
COMPLETED = TurnResult("turn", TurnStatus.COMPLETED, "done", USAGE)
STOPPED = TurnCancelled("cancelled", "do", USAGE, skipped=("b",), interrupted=("a",))
ANSWERS = (ToolResult("a", "?", ToolOutcome.UNKNOWN), ToolResult("b", "-", ToolOutcome.SKIPPED))
CANCELLED = TurnResult(
    "turn", TurnStatus.CANCELLED, "do", USAGE, tool_results=ANSWERS, skipped=("b",), interrupted=("a",)
)
BUSY = ProviderError("busy")
FAILURE = TurnComplete(TurnStatus.FAILED, "", USAGE, BUSY)
FAILED = TurnResult("turn", TurnStatus.FAILED, "", USAGE, BUSY)


def test_sound_turns_pass():
    """Nothing is said about a turn that completed, and about one that was cancelled with a call cut and one skipped."""
    check_events(numbered(TextDelta("done"), START, END, COMPLETE), COMPLETED)
    check_events(numbered(START, END, STOPPED), CANCELLED)
    check_events(numbered(ErrorEvent(BUSY), FAILURE), FAILED)


@pytest.mark.parametrize(
    ("payloads", "result", "promise"),
    [
        ([], COMPLETED, "at least its terminal event"),
        ([TextDelta("done")], COMPLETED, "exactly one terminal event"),
        ([COMPLETE, COMPLETE], COMPLETED, "exactly one terminal event"),
        ([STOPPED, COMPLETE], COMPLETED, "exactly one terminal event"),
        ([COMPLETE, TextDelta("more")], COMPLETED, "it is the last"),
        ([COMPLETE], attrs.evolve(COMPLETED, status=TurnStatus.FAILED), "agree on the status"),
        ([COMPLETE], attrs.evolve(COMPLETED, status=TurnStatus.CANCELLED), "agree on the status"),
        ([START, END, STOPPED], attrs.evolve(CANCELLED, status=TurnStatus.COMPLETED), "agree on the status"),
        ([COMPLETE], attrs.evolve(COMPLETED, text="other"), "agree on text and usage"),
        ([COMPLETE], attrs.evolve(COMPLETED, usage=OTHER_USAGE), "agree on text and usage"),
        ([COMPLETE], attrs.evolve(COMPLETED, undelivered=("late",)), "what was not delivered"),
        ([START, END, STOPPED], attrs.evolve(CANCELLED, skipped=()), "agree on calls"),
        ([START, END, STOPPED], attrs.evolve(CANCELLED, interrupted=()), "agree on calls"),
        ([START, COMPLETE], COMPLETED, "each started call ends once"),
        ([START, END, END, COMPLETE], COMPLETED, "each started call ends once"),
        ([END, COMPLETE], COMPLETED, "each started call ends once"),
        ([END, START, COMPLETE], COMPLETED, "call a starts before it ends"),
        (
            [START, END, attrs.evolve(STOPPED, skipped=("a",), interrupted=())],
            attrs.evolve(CANCELLED, skipped=("a",), interrupted=()),
            "a skipped call never starts",
        ),
        ([STOPPED], CANCELLED, "an interrupted call had started"),
        ([START, START, END, COMPLETE], COMPLETED, "each call starts once"),
        ([START, END, STOPPED], attrs.evolve(CANCELLED, tool_results=ANSWERS[:1]), "answered as skipped"),
        ([START, END, STOPPED], attrs.evolve(CANCELLED, tool_results=ANSWERS[1:]), "answered as unknown"),
        ([FAILURE], FAILED, "tells its error"),
        ([ErrorEvent(ProviderError("other")), FAILURE], FAILED, "tells its error"),
    ],
)
def test_a_turn_with_one_thing_wrong_is_caught(payloads, result, promise):
    """The error names the promise."""
    with pytest.raises(AssertionError, match=promise):
        check_events(numbered(*payloads), result)


def test_a_session_numbers_its_events_without_a_gap_over_all_turns():
    """Also when a queued turn ended before the one ahead of it."""
    check_sequence([numbered(COMPLETE, first=7), numbered(START, END, COMPLETE, first=8)])
    check_sequence([numbered(START, first=1) + numbered(COMPLETE, first=3), numbered(STOPPED, first=2)])


@pytest.mark.parametrize(
    ("turns", "promise"),
    [
        ([numbered(START, first=2) + numbered(COMPLETE, first=1)], "within a turn the sequence grows"),
        ([numbered(START, first=1) + numbered(COMPLETE, first=1)], "within a turn the sequence grows"),
        ([numbered(START, first=1) + numbered(COMPLETE, first=3)], r"\+1 per event"),
        ([numbered(COMPLETE, first=1), numbered(COMPLETE, first=1)], r"\+1 per event"),
        ([numbered(COMPLETE, first=1), numbered(COMPLETE, first=3)], r"\+1 per event"),
    ],
)
def test_numbers_that_jump_or_repeat_are_caught(turns, promise):
    """Within a turn and from turn to turn."""
    with pytest.raises(AssertionError, match=promise):
        check_sequence(turns)


CALL, OTHER = ToolCall("a", "look", {}, response_id="r"), ToolCall("b", "look", {}, response_id="r")
SPOKEN = AssistantMessage("Let me look.", response_id="r")
SOUND = [UserMessage("hi"), SPOKEN, CALL, OTHER, ToolResult("a", "1"), ToolResult("b", "2"), AssistantMessage("Done.")]


def without(position: int) -> list[Any]:
    """The sound history without one message."""
    return SOUND[:position] + SOUND[position + 1 :]


def test_a_sound_history_passes():
    """Calls of one response, then their results."""
    check_history(SOUND)


@pytest.mark.parametrize(
    ("history", "promise"),
    [
        (without(4), "has no result"),
        (without(2), "answers no call"),
        (SOUND[:6], None),
        (SOUND[:5], "has no result"),
        ([*SOUND[:5], ToolResult("a", "again"), *SOUND[5:]], "answers no call"),
        ([*SOUND[:4], AssistantMessage("Wait."), *SOUND[4:]], "has no result"),
        ([*SOUND[:3], CALL, *SOUND[4:]], "used twice"),
        ([*SOUND, AssistantMessage("  ")], "blank"),
        ([*SOUND, UserMessage("\ud800")], "surrogate"),
    ],
)
def test_a_history_with_one_thing_wrong_is_caught(history, promise):
    """The first problem is named; a history that ends after its last result has none."""
    if promise is None:
        check_history(history)
    else:
        with pytest.raises(AssertionError, match=f"history is sendable.*{promise}"):
            check_history(history)


def stored(*payloads: Any) -> list[SessionEvent]:
    """A stored log with these payloads."""
    return [SessionEvent(seq, NOW, payload) for seq, payload in enumerate(payloads, 1)]


def test_a_log_that_holds_what_history_holds_passes():
    """Facts about the session stand between the messages; after a compaction the two may differ."""
    check_log(stored(Metadata("title", "hi"), *SOUND), SOUND)
    check_log(stored(*SOUND, Metadata("compaction", {})), [AssistantMessage("In short: done.")])


@pytest.mark.parametrize(
    ("log", "promise"),
    [
        (stored(*SOUND)[1:], "numbered without gaps"),
        ([*stored(*SOUND)[:3], *stored(*SOUND)[4:]], "numbered without gaps"),
        (list(reversed(stored(*SOUND))), "numbered without gaps"),
        (stored(*SOUND[:-1]), "storage holds what history holds"),
        (stored(*SOUND, UserMessage("more")), "storage holds what history holds"),
        (stored(UserMessage("other"), *SOUND[1:]), "storage holds what history holds"),
        (stored(*SOUND[:-1], Metadata("compaction", {}))[1:], "numbered without gaps"),
    ],
)
def test_a_log_with_one_thing_wrong_is_caught(log, promise):
    """Missing, repeated, misplaced, or saying something else."""
    with pytest.raises(AssertionError, match=promise):
        check_log(log, SOUND)


# The oracle on a real agent.


@attrs.define(eq=False)
class Talk:
    """What one short conversation left: two turns, the first with a tool."""

    invariants: AgentInvariants
    provider: ScriptedProvider
    storage: InMemorySessionStorage


@pytest.fixture
def tell() -> Callable[..., Any]:
    """Runs the conversation; ``read`` says whether its events are read while it runs."""

    async def look(_: object) -> ToolOutput:
        return ToolOutput("seen")

    async def tell(*, read: bool = True) -> Talk:
        provider = ScriptedProvider([calls("look", text="Let me look."), say("Seen."), say("Bye.")])
        storage = InMemorySessionStorage()
        invariants = AgentInvariants(storage.events, (provider,))
        builder = AgentBuilder(AgentConfig("scripted")).register_model_provider(provider)
        builder.register_session_storage(storage).register_tool(Tool("look", "Looks.", {"type": "object"}, look))
        async with builder.build() as agent, await agent.new_session() as session:
            for text in ("look", "bye"):
                turn = await session.send_message(text)
                followed = invariants.follow(turn, session)
                if read:
                    async for _ in followed:
                        pass
                else:
                    await trio.testing.wait_all_tasks_blocked()
        return Talk(invariants, provider, storage)

    return tell


async def test_an_undisturbed_conversation_passes(tell):
    """Turns, history, storage and requests of a real agent are as promised."""
    talk = await tell()

    await talk.invariants.check()

    assert [1, 1] == [sum(isinstance(p, TurnComplete) for p in f.payloads) for f in talk.invariants.followed]


async def test_events_that_nobody_read_are_judged_too(tell):
    """`check` reads what is left of each turn."""
    talk = await tell(read=False)
    await talk.invariants.check()
    assert all(followed.events for followed in talk.invariants.followed)

    talk.invariants.followed[1].events.insert(0, talk.invariants.followed[1].events[-1])
    with pytest.raises(AssertionError, match="exactly one terminal event"):
        await talk.invariants.check()


def lose_an_event(talk: Talk) -> None:
    """A piece of text in the middle of the first turn never came."""
    events = talk.invariants.followed[0].events
    texts = [event for event in events if isinstance(event.payload, TextDelta)]
    events.remove(texts[-1])


def break_history(talk: Talk) -> None:
    """A call in history has no result."""
    session = talk.invariants.followed[-1].session
    talk.invariants.stored = None
    talk.invariants.open(SimpleNamespace(id=session.id, history=[UserMessage("hi"), CALL]))


def lose_a_record(talk: Talk) -> None:
    """The store forgot a message and numbered the rest as if it had never been."""
    read = talk.storage.events
    talk.invariants.stored = lambda session_id: stored(
        *[event.payload for event in read(session_id) if getattr(event.payload, "text", "") != "Bye."]
    )


def lose_a_number(talk: Talk) -> None:
    """The store forgot its first record."""
    read = talk.storage.events
    talk.invariants.stored = lambda session_id: read(session_id)[1:]


def send_rubbish(talk: Talk) -> None:
    """A request had a call without a result."""
    model_id = talk.provider.requests[0].model_id
    talk.provider.requests.append(ChatRequest(model_id, "", (UserMessage("hi"), CALL)))


def leave_a_stream_open(talk: Talk) -> None:
    """One stream more was opened than closed."""
    talk.provider.opened += 1


@pytest.mark.parametrize(
    ("damage", "promise"),
    [
        (lose_an_event, r"\+1 per event"),
        (break_history, "history is sendable.*no result"),
        (lose_a_record, "storage holds what history holds"),
        (lose_a_number, "numbered without gaps"),
        (send_rubbish, "request 4 is sendable.*no result"),
        (leave_a_stream_open, "every stream that was opened was closed"),
    ],
)
async def test_damage_to_a_real_conversation_is_caught(tell, damage, promise):
    """Whatever part of it was damaged."""
    talk = await tell()
    damage(talk)

    with pytest.raises(AssertionError, match=promise):
        await talk.invariants.check()


async def test_where_nothing_is_stored_nothing_is_compared(tell):
    """Without ``stored`` the log is left alone."""
    talk = await tell()
    lose_a_number(talk)
    talk.invariants.stored = None

    await talk.invariants.check()


async def test_a_session_without_turns_is_judged():
    """Its history and its log, though nothing was followed."""
    invariants = AgentInvariants(lambda session_id: stored(*SOUND[:-1]))
    invariants.open(SimpleNamespace(id="session", history=SOUND))

    with pytest.raises(AssertionError, match="storage holds what history holds"):
        await invariants.check()


@pytest.mark.parametrize("statuses", [["failed"], ["completed", "completed"]])
def test_a_log_that_tells_another_end_is_caught(statuses):
    """The stored end of a turn is the one that the host was told, and stands there at most once."""
    ends = [Metadata("turn_ended", {"turn_id": "turn", "status": status}) for status in statuses]

    with pytest.raises(AssertionError, match="the end of a turn at most once"):
        check_turn_log([SessionEvent(n, NOW, end) for n, end in enumerate(ends, 1)], COMPLETED)

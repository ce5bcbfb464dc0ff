"""The live history and what a request carries of it (semantics 5, 6, 6.1)."""

from __future__ import annotations

import tracemalloc

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from youyou.core.config import Notices
from youyou.core.history.list_view import ListView
from youyou.core.history.request_view import REFUSED_CONTENT, UNSEEN_IMAGE
from youyou.core.history.sendability import sendability_problem
from youyou.core.history.transcript import Transcript
from youyou.core.ports.protocols import ModelCapabilities
from youyou.messages.content import FileBlock, ImageBlock, TextBlock
from youyou.messages.history import (
    AssistantMessage,
    Message,
    MessageStatus,
    SystemMessage,
    ToolCall,
    ToolOutcome,
    ToolResult,
    UserMessage,
)

MODEL = ModelCapabilities(vision=True)
NOTICES = Notices()
USER, NEXT = UserMessage("go"), UserMessage("and now?")
CUT = SystemMessage(NOTICES.interrupted_message)
FAILED = SystemMessage(NOTICES.failed_message)


def interrupted(cause: str | None = "cancelled", response_id: str = "r") -> AssistantMessage:
    return AssistantMessage("half a", MessageStatus.INCOMPLETE, cause, response_id)


def call(call_id: str, response_id: str = "r") -> ToolCall:
    return ToolCall(call_id, "weather", {}, response_id=response_id)


def transcript_of(*messages: Message) -> Transcript:
    transcript = Transcript(NOTICES)
    for message in messages:
        transcript.append(message)
    return transcript


def test_a_sendable_history_is_sent_as_it_is() -> None:
    """Without interruptions a request carries the very messages of history."""
    messages = [USER, AssistantMessage("hm", response_id="r"), call("a"), ToolResult("a", "ok"), SystemMessage("note")]

    assert messages == transcript_of(*messages).requests(MODEL) == transcript_of(*messages).history


NOTES: dict[str, tuple[list[Message], list[Message]]] = {
    "at the end": ([USER, interrupted()], [USER, interrupted(), CUT]),
    "before the next input": ([interrupted(), NEXT], [interrupted(), CUT, NEXT]),
    "after the results of its calls": (
        [interrupted(), call("a"), call("b"), ToolResult("a", "1"), ToolResult("b", "2"), NEXT],
        [interrupted(), call("a"), call("b"), ToolResult("a", "1"), ToolResult("b", "2"), CUT, NEXT],
    ),
    "failed": ([interrupted("failed"), NEXT], [interrupted("failed"), FAILED, NEXT]),
    "crashed": ([interrupted("crashed")], [interrupted("crashed"), FAILED]),
    "of an old log without cause": ([interrupted(None)], [interrupted(None), CUT]),
    "two interrupted turns": (
        [USER, interrupted(), NEXT, interrupted(response_id="s")],
        [USER, interrupted(), CUT, NEXT, interrupted(response_id="s"), CUT],
    ),
    "followed by a call of another response": (
        [interrupted(), call("a", "s"), ToolResult("a", "1")],
        [interrupted(), CUT, call("a", "s"), ToolResult("a", "1")],
    ),
}


@pytest.mark.parametrize("name", NOTES)
@pytest.mark.parametrize("asking_each_time", [False, True])
def test_each_interrupted_message_is_followed_by_its_one_note(name: str, asking_each_time: bool) -> None:
    """The note of its cause stands once, after the results of its calls, however often requests are built between."""
    messages, expected = NOTES[name]
    transcript = Transcript(NOTICES)

    for message in messages:
        transcript.append(message)
        if asking_each_time:
            transcript.requests(MODEL)

    assert expected == transcript.requests(MODEL) == transcript.requests(MODEL)
    assert messages == transcript.history


def test_the_note_moves_behind_a_call_that_came_after_a_request() -> None:
    """More of an interrupted response after a request was built: its one note follows the result all the same."""
    transcript = transcript_of(interrupted())
    early = transcript.requests(MODEL)
    transcript.append(call("a"))
    transcript.append(ToolResult("a", "1"))

    assert [interrupted(), call("a"), ToolResult("a", "1"), CUT] == transcript.requests(MODEL)
    assert [interrupted(), CUT] == early


def test_models_without_system_messages_get_them_as_user_text() -> None:
    """Skill prompts, notices and derived notes become user-role text for such a model; history stays neutral."""
    transcript = transcript_of(SystemMessage("<skill>"), USER, interrupted(), NEXT)

    expected = [UserMessage("<skill>"), USER, interrupted(), UserMessage(NOTICES.interrupted_message), NEXT]
    assert expected == transcript.requests(attrs.evolve(MODEL, system_messages=False))
    assert [SystemMessage("<skill>"), USER, interrupted(), CUT, NEXT] == transcript.requests(MODEL)


def test_a_view_never_changes() -> None:
    """What a request carries stays what it was, whatever is appended, refused or replaced later."""
    picture = UserMessage([TextBlock("see"), ImageBlock("aGk=", "image/png")])
    transcript = transcript_of(picture, interrupted())
    request, history = transcript.requests(MODEL), transcript.history

    transcript.append(NEXT)
    transcript.requests(MODEL)
    transcript.refuse_content()
    transcript.requests(MODEL)
    transcript.replace([USER])

    assert [picture, interrupted(), CUT] == request
    assert [picture, interrupted()] == history


def test_refused_attachments_become_a_note() -> None:
    """Images and files that a provider refused are replaced in later requests; the text around them stays."""
    content = [TextBlock("see"), ImageBlock("aGk=", "image/png"), FileBlock("a.txt", "x")]
    transcript = transcript_of(UserMessage(content), NEXT)

    assert transcript.refuse_content()
    expected = UserMessage([TextBlock("see"), TextBlock(REFUSED_CONTENT), TextBlock(REFUSED_CONTENT)])
    assert [expected, NEXT] == transcript.requests(MODEL)
    assert [UserMessage(content), NEXT] == transcript.history


@pytest.mark.parametrize("which", [0, USER])
def test_refused_text_becomes_a_note(which: int | Message) -> None:
    """A message without attachments is replaced whole, named by index or by itself."""
    transcript = transcript_of(USER, NEXT)

    transcript.refuse_content(which)

    assert [UserMessage(REFUSED_CONTENT), NEXT] == transcript.requests(MODEL)


def test_refusing_again_changes_nothing() -> None:
    """The second refusal of the same content says that another try is useless."""
    transcript = transcript_of(UserMessage(ImageBlock("aGk=", "image/png")))

    first, second = transcript.refuse_content(), transcript.refuse_content()

    assert first and not second


def test_a_refusal_survives_compaction() -> None:
    """A refused message that compaction keeps is still replaced afterwards."""
    picture = UserMessage(ImageBlock("aGk=", "image/png"))
    transcript = transcript_of(USER, picture)
    transcript.refuse_content()

    transcript.replace([SystemMessage("summary"), picture])

    assert [SystemMessage("summary"), UserMessage(REFUSED_CONTENT)] == transcript.requests(MODEL)


def test_a_refusal_is_forgotten_with_its_message() -> None:
    """Content that compaction took away is not kept, nor taken for another that comes to lie at its address."""
    picture = UserMessage(ImageBlock("aGk=", "image/png"))
    transcript = transcript_of(USER, picture)
    transcript.refuse_content()

    transcript.replace([SystemMessage("summary")])
    transcript.append(picture)

    assert [SystemMessage("summary"), picture] == transcript.requests(MODEL)


def test_images_are_left_out_for_a_model_that_cannot_see() -> None:
    """History with an image, sent to a model without vision, carries a note in its place."""
    transcript = transcript_of(UserMessage([TextBlock("see"), ImageBlock("aGk=", "image/png")]))

    expected = UserMessage([TextBlock("see"), TextBlock(UNSEEN_IMAGE)])
    assert [expected] == transcript.requests(ModelCapabilities(vision=False))


def test_a_call_without_result_does_not_break_a_request() -> None:
    """Asked too early, a request answers the open call with "outcome unknown"; its real result takes that place."""
    transcript = transcript_of(USER, call("a"))

    early = transcript.requests(MODEL)
    transcript.append(ToolResult("a", "sunny"))

    assert [USER, call("a"), ToolResult("a", NOTICES.unknown_outcome, ToolOutcome.UNKNOWN)] == early
    assert [USER, call("a"), ToolResult("a", "sunny")] == transcript.requests(MODEL)


def test_replace_starts_again_with_the_compacted_history() -> None:
    """After compaction history and requests hold the replacement and what came later."""
    transcript = transcript_of(USER, call("a"), ToolResult("a", "1"))

    transcript.replace([SystemMessage("summary"), NEXT])
    transcript.append(call("a"))
    transcript.append(ToolResult("a", "2"))

    expected = [SystemMessage("summary"), NEXT, call("a"), ToolResult("a", "2")]
    assert expected == transcript.history == transcript.requests(MODEL)


def test_lone_surrogates_are_cleaned_when_they_come_in() -> None:
    """History never holds text that cannot be encoded; append returns what it added."""
    transcript = Transcript(NOTICES)

    assert UserMessage("\ufffd") == transcript.append(UserMessage("\ud800")) == transcript.history[0]


def test_a_request_copies_nothing_of_a_long_history() -> None:
    """In a history of twenty thousand messages one more round allocates a few hundred bytes, not a copy."""
    transcript = transcript_of(*[USER] * 20_000)
    transcript.requests(MODEL)
    peaks = []
    tracemalloc.start()
    try:
        for _ in range(5):  # a growing list moves now and then, hence the least of five
            tracemalloc.reset_peak()
            before, _peak = tracemalloc.get_traced_memory()
            transcript.append(NEXT)
            transcript.requests(MODEL)
            peaks.append(tracemalloc.get_traced_memory()[1] - before)
    finally:
        tracemalloc.stop()

    assert min(peaks) < 8_000


def test_views_are_read_only_sequences() -> None:
    """A view slices to tuples, compares with lists, counts from the end, cannot be hashed or changed."""
    items = [1, 2, 3]
    view = ListView(items)
    items.append(4)

    expected = ((1, 2), 3, 3, [1, 2, 3], (3, 2, 1))
    assert expected == (view[:2], view[-1], len(view), list(view), view[::-1])
    assert view == (1, 2, 3) and view != [1, 2, 3, 4] and view != "123"
    with pytest.raises(IndexError):
        view[3]
    with pytest.raises(TypeError):
        hash(view)


IDS, RESPONSES, TEXTS = st.sampled_from(["a", "b", ""]), st.sampled_from(["", "r", "s"]), st.sampled_from(["", "hi"])
STATUS = st.sampled_from([(MessageStatus.COMPLETE, None), (MessageStatus.INCOMPLETE, "failed")])
MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(UserMessage, TEXTS),
    st.builds(SystemMessage, TEXTS),
    st.builds(lambda text, status, r: AssistantMessage(text, *status, r), TEXTS, STATUS, RESPONSES),
    st.builds(lambda i, r: ToolCall(i, "t", {}, response_id=r), IDS, RESPONSES),
    st.builds(ToolResult, IDS, TEXTS),
)


@given(st.lists(st.tuples(MESSAGES, st.booleans()), max_size=14))
def test_requests_built_on_the_way_equal_one_built_at_the_end(steps: list[tuple[Message, bool]]) -> None:
    """Whatever is appended, every request is sendable, and asking in between changes none of the later ones."""
    asked, unasked = Transcript(NOTICES), Transcript(NOTICES)
    views = []
    for message, ask in steps:
        asked.append(message)
        unasked.append(message)
        if ask:
            view = asked.requests(MODEL)
            views.append((view, tuple(view)))

    assert unasked.requests(MODEL) == asked.requests(MODEL)
    assert sendability_problem(asked.requests(MODEL)) is None
    assert all(view == seen and sendability_problem(view) is None for view, seen in views)


LATE_CALLS = {
    "after another message": [
        AssistantMessage("hi", response_id="r"),
        UserMessage("next"),
        ToolResult("a", "stray"),
        ToolCall("b", "t", {}, response_id="r"),
        ToolResult("b", "done"),
    ],
    "after a result that was made up": [
        ToolCall("a", "t", {}, response_id="r"),
        ToolCall("b", "t", {}, response_id="r"),
        ToolResult("b", "done"),
    ],
}


@pytest.mark.parametrize("case", LATE_CALLS)
def test_a_call_that_joins_a_response_late_has_one_place(case: str) -> None:
    """Whether or not a request was built before it came."""
    asked, unasked = Transcript(NOTICES), Transcript(NOTICES)
    for message in LATE_CALLS[case]:
        asked.append(message)
        unasked.append(message)
        if not isinstance(message, ToolCall) or message.call_id == "a":
            asked.requests(MODEL)

    assert unasked.requests(MODEL) == asked.requests(MODEL)


def test_the_text_of_a_user_message_leaves_files_out():
    """What the user typed, joined."""
    message = UserMessage((TextBlock("look "), FileBlock("a.txt", "inside"), TextBlock("here")))

    assert "look here" == message.text

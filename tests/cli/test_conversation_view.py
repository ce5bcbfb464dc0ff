"""What a conversation looks like, drawn on a place that only remembers."""

from __future__ import annotations

import re

import attrs
import pytest
from youyou.cli.chat.conversation_view import ConversationView
from youyou.cli.chat.markdown import Painter
from youyou.messages.chat import TextDelta, TokenUsage
from youyou.messages.errors import StorageError
from youyou.messages.events import (
    ErrorEvent,
    ToolCallEnd,
    ToolCallStart,
    ToolOutput,
    ToolProgress,
    TurnCancelled,
    TurnComplete,
    TurnStatus,
)
from youyou.messages.history import ToolCall

_COLOURS = re.compile(r"\x1b\[[\d;]*m")


@attrs.define
class Paper:
    """A place that remembers what was printed and what is shown now, without colours."""

    width: int = 60
    height: int = 24
    printed: str = ""
    live: str = ""
    status: str = ""

    def show(self, live: str, status: str) -> None:
        self.live, self.status = _COLOURS.sub("", live), status

    def print_above(self, text: str, live: str | None = None) -> None:
        self.printed += _COLOURS.sub("", text)
        self.live = _COLOURS.sub("", live or "")

    @property
    def lines(self) -> list[str]:
        """What was printed, without trailing spaces."""
        return [line.rstrip() for line in self.printed.splitlines()]


@pytest.fixture
def paper() -> Paper:
    """Where the view draws."""
    return Paper()


@pytest.fixture
def view(paper: Paper) -> ConversationView:
    """A view of a turn that has begun."""
    made = ConversationView(paper, Painter(), "scripted", "0123456789ab", clock=lambda: 0.0)
    made.started()
    return made


def test_text_is_printed_block_by_block_and_once(view: ConversationView, paper: Paper) -> None:
    """A block that is whole is printed; the one still growing is live; at the end all of it was printed once."""
    for piece in ("# Title\n\nfirst ", "block\n\nsec", "ond"):
        view.take(TextDelta(piece))
    printed = paper.printed

    view.take(TurnComplete(TurnStatus.COMPLETED, "", TokenUsage()))
    view.ended(TokenUsage(7, 8))

    assert ("first block" in printed, "second" in printed) == (True, False)
    assert [1, 1, 1] == [paper.printed.count(each) for each in ("Title", "first block", "second")]
    assert ("", "idle · /help · 7 in, 8 out · session 01234567 · scripted") == (paper.live, paper.status)


def test_blocks_stand_one_empty_line_apart(view: ConversationView, paper: Paper) -> None:
    """Whatever comes after what, there are never two empty lines in a row."""
    view.begin("hello")
    view.take(TextDelta("a\n\n- b\n- c\n\nd"))
    view.take(ToolCallStart("1", "clock", {}))
    view.take(ToolCallEnd("1", "clock", ToolOutput("noon"), 300, True))
    view.take(TextDelta("e\n\nf"))
    view.take(TurnComplete(TurnStatus.COMPLETED, "", TokenUsage()))
    view.begin("again")

    assert "\n\n\n" not in "\n".join(paper.lines)
    assert ["  ✓ clock() → noon  0.3 s", "", "  e", "", "  f", ""] == paper.lines[-8:-2]


def test_running_tools_are_live_with_their_progress(view: ConversationView, paper: Paper) -> None:
    """A tool that runs has a line of its own until it ends."""
    view.take(ToolCallStart("1", "wait", {"seconds": 3}))
    view.take(ToolProgress("1", {"seconds_left": 2}))
    view.refresh()
    live = paper.live

    view.take(ToolCallEnd("1", "wait", ToolOutput(""), 3000, False, StorageError("gone")))
    view.refresh()

    assert "wait(seconds=3)  seconds left: 2  0.0 s" in live
    assert "wait" not in paper.live
    assert "  ✗ wait(seconds=3) → [STORAGE_ERROR] gone  3.0 s" in paper.lines


def test_what_went_wrong_is_said_once(view: ConversationView, paper: Paper) -> None:
    """A log line, an event and the end of the turn may all say the same; a person reads it once."""
    error = StorageError("the disk is full")
    view.complain(str(error))
    view.take(ErrorEvent(error))
    view.take(TurnComplete(TurnStatus.FAILED, "", TokenUsage(), error))

    assert 1 == paper.printed.count("the disk is full")
    assert "  ✗ failed" == paper.lines[-1]


def test_skipped_calls_are_named(view: ConversationView, paper: Paper) -> None:
    """A call that never started has no event; it is named from history."""
    history = [ToolCall("1", "add_note", {"text": "a"}), ToolCall("2", "add_note", {"text": "b"})]

    view.skipped(history, ["2"])
    view.take(TurnCancelled("cancelled", "", TokenUsage(), ("2",)))

    assert ['  - add_note(text="b")  skipped', "  ■ cancelled, 1 call skipped"] == paper.lines


def test_a_long_answer_keeps_room_for_the_prompt(view: ConversationView, paper: Paper) -> None:
    """What is live is never higher than the terminal, less the room for prompt and status."""
    view.take(TextDelta("```\n" + "line\n" * 100))
    view.refresh()

    assert paper.height - 4 >= len(paper.live.splitlines())

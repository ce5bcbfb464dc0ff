"""The conversation in a real pseudo-terminal, driven as a person drives it."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

CHAT = ("chat", "--model", "scripted")
IDLE = r"\n idle"
NO_SPINNER = "[^⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]"
FIRST_WORDS = "that could do"


def test_a_turn_shows_tools_and_markdown_and_quit_says_how_to_go_on(person: Any, stored: Callable[[], Any]) -> None:
    """Tool calls are shown with result and time, Markdown is rendered, tokens are counted, /quit names the session."""
    me = person(*CHAT)
    me.sees(IDLE)

    me.type("what is 12 * 7 and the time?")

    me.sees(r'✓ calculator\(expression="12 \* 7"\) → 12 \* 7 = 84  \d\.\d s')
    me.sees(r"✓ clock\(\) → .+  \d\.\d s")
    me.sees(r"• 12 \* 7 = 84")
    me.sees(r"idle · /help · \d+ in, [1-9]\d* out · session \w{8} · scripted")
    me.type("/quit")
    session = me.sees(r"session (\w{8}); to go on: youyou chat --resume")
    assert 0 == me.leaves()
    assert stored().session_id.startswith(session)


def test_ctrl_c_in_mid_stream_stops_the_answer_and_keeps_it_so_far(person: Any, stored: Callable[[], Any]) -> None:
    """One Ctrl-C stops the stream at once; the text so far is on the screen and in the database, as cancelled."""
    me = person(*CHAT)
    me.sees(IDLE)
    me.type("tell me a story")
    me.sees(FIRST_WORDS)

    me.ctrl_c()

    me.sees("■ cancelled")
    me.sees(IDLE)
    assert "closed with its last line" not in me.seen
    me.ctrl_c()
    assert 0 == me.leaves()
    assert ["UserMessage", "AssistantMessage"] == stored().kinds
    assert ["cancelled"] == [value["status"] for value in stored().noted("turn_ended")]


def test_a_second_ctrl_c_cuts_a_running_tool(person: Any, stored: Callable[[], Any]) -> None:
    """The first Ctrl-C lets a running tool go on and says so; the second cuts it, and its outcome is unknown."""
    me = person(*CHAT)
    me.sees(IDLE)
    me.type("wait 500")
    me.sees(r"wait\(seconds=500.0\)  seconds left: \d+")

    me.ctrl_c()
    me.sees("stopping .*running tools finish, Ctrl-C again cuts them")
    me.ctrl_c()

    me.sees(r"✗ wait\(seconds=500.0\)")
    me.sees("■ cancelled, 1 call cut, outcome unknown")
    me.press(b"\x04")
    assert 0 == me.leaves()
    assert ["UserMessage", "ToolCall", "ToolResult"] == stored().kinds


def test_a_new_process_resumes_where_the_old_one_was(person: Any) -> None:
    """--resume shows what was said before and goes on with it."""
    me = person(*CHAT)
    me.sees(IDLE)
    me.type("the first thing I say")
    me.sees("That was message 1 of this conversation")
    me.sees(IDLE)
    me.type("/quit")
    session = me.sees(r"--resume (\w{8})")
    assert 0 == me.leaves()

    again = person(*CHAT, "--resume", session[:5])
    again.sees("you  the first thing I say")
    again.type("the second thing")

    again.sees("That was message 2 of this conversation")
    again.ctrl_c()
    assert 0 == again.leaves()


def test_sigterm_in_a_turn_leaves_a_whole_record(person: Any, stored: Callable[[], Any]) -> None:
    """SIGTERM ends with 143 and gives the terminal back; the turn has its end, every call its result."""
    me = person(*CHAT)
    me.sees(IDLE)
    me.type("wait 500")
    me.sees("seconds left")

    me.process.send_signal(signal.SIGTERM)

    assert 143 == me.leaves()
    assert ["UserMessage", "ToolCall", "ToolResult"] == stored().kinds
    assert ["cancelled"] == [value["status"] for value in stored().noted("turn_ended")]
    assert stored().problem is None


def test_a_closed_terminal_leaves_a_whole_record(person: Any, stored: Callable[[], Any]) -> None:
    """Closing the window in mid-stream ends with 129; the turn has its end and the text so far."""
    me = person(*CHAT)
    me.sees(IDLE)
    me.type("tell me a story")
    me.sees(FIRST_WORDS)

    assert 129 == me.hang_up()

    assert ["UserMessage", "AssistantMessage"] == stored().kinds
    assert ["cancelled"] == [value["status"] for value in stored().noted("turn_ended")]


@pytest.mark.long
def test_commands_work_while_a_turn_runs(person: Any) -> None:
    """/tree shows the running tool, a typed line goes into the turn, /cancel stops it and hands the line back."""
    me = person(*CHAT)
    me.sees(IDLE)
    me.type("note: one; two; three")
    me.sees(r"✓ add_note\(text=\"one\"\)")

    me.type("/tree")
    me.sees(r"tool pool")
    me.sees(r"tool add_note")
    me.type("and hello")
    me.sees(r"\S and hello  \(goes into the running turn\)")
    me.type("/cancel")

    me.sees(r"■ cancelled, 1 call skipped|✓ add_note\(text=\"three\"\)")
    me.sees("not delivered: and hello")
    me.type("/history")
    me.sees(r"call  add_note\(text=\"three\"\)")
    me.type("/nonsense")
    me.sees("there is no /nonsense")
    me.type("/brief hello there")
    me.sees("Hello! I am a scripted model")
    me.type("/help")
    me.sees("/recap")
    me.type("/exit")
    assert 0 == me.leaves()


@pytest.mark.long
def test_typed_text_is_cleared_by_ctrl_c_completed_by_tab_and_recalled_by_up(person: Any) -> None:
    """Ctrl-C on a typed line clears it, Tab completes a command, the up key brings the line before."""
    me = person(*CHAT)
    me.sees(IDLE)
    me.press(b"not to be sent")
    me.sees(r"\S not to be sent")
    me.ctrl_c()
    me.press(b"/tr")
    me.sees(r"\S /tree")
    me.press(b"\t\r")
    me.sees("memory extractor")

    me.press(b"\x1b[A")

    me.sees(r"\S /tree")
    me.ctrl_c()
    me.ctrl_c()
    me.sees("nothing was said, nothing is kept")
    assert 0 == me.leaves()


@pytest.mark.long
def test_quit_with_a_slow_tool_does_not_wait_for_it(person: Any, stored: Callable[[], Any]) -> None:
    """/quit ends the running turn, cuts a tool that takes long, and leaves a whole record."""
    me = person(*CHAT)
    me.sees(IDLE)
    me.type("wait 500")
    me.sees("seconds left")

    me.type("/quit")

    me.sees("■ cancelled: the session was closed")
    me.sees("to go on: youyou chat --resume")
    assert 0 == me.leaves()
    assert stored().problem is None
    assert ["UserMessage", "ToolCall", "ToolResult"] == stored().kinds


@pytest.mark.long
def test_a_model_cannot_write_to_the_terminal_past_its_text(person: Any) -> None:
    """Control characters in what is said are not sent to the terminal, whoever said them."""
    me = person("chat", "--model", "scripted", "-p", "say \x1b]0;stolen title\x07 \x1b[2J this")

    me.sees(r"\[2J this")

    assert 0 == me.leaves()
    assert "stolen title" != me.screen.title


@pytest.mark.long
def test_a_database_that_fails_is_told_once_and_made_good_later(
    person: Any, home: Path, stored: Callable[[], Any]
) -> None:
    """While another program holds the file the turn fails, and the screen stays whole; afterwards all is stored."""
    me = person(*CHAT)
    me.sees(IDLE)
    me.type("the first")
    me.sees("That was message 1")
    me.sees(IDLE)
    other = apsw.Connection(str(home / "sessions.db"))
    other.execute("BEGIN EXCLUSIVE")

    me.type("the second")
    me.sees("✗ failed")
    other.close()
    me.type("the third")

    me.sees("You said: the third")
    me.sees(rf"\A{NO_SPINNER}*\n idle{NO_SPINNER}*\Z")
    assert 1 == me.seen.count("holds its lock")
    me.type("/quit")
    assert 0 == me.leaves()
    assert 3 == stored().kinds.count("UserMessage")

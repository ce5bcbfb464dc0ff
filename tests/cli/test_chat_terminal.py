"""The conversation in a real pseudo-terminal, driven as a person drives it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

pytestmark = pytest.mark.long  # a process and a pseudo-terminal for each test

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
    me.sees("Ctrl-C once more leaves")
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
    again.press(b"\x04")
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
    me.sees("tool pool")

    me.press(b"\x1b[A")

    me.sees(r"\S /tree")
    for _ in range(3):
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
    """Control characters in what is said are not sent to the terminal, no matter who wrote them."""
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
    # Not for longer: a claim that cannot be renewed for 15 seconds is lost, and the session with it (semantics 7).
    me.sees("holds its lock")
    other.close()
    me.sees("✗ failed")
    me.type("the third")

    me.sees("You said: the third")
    me.sees(rf"\A{NO_SPINNER}*\n idle{NO_SPINNER}*\Z")
    assert 1 == me.seen.count("holds its lock")
    me.type("/quit")
    assert 0 == me.leaves()
    assert 3 == stored().kinds.count("UserMessage")


def test_ctrl_c_at_an_empty_prompt_warns_first(person: Any) -> None:
    """One press too many after a turn does not end the chat, and typing a line takes the warning back."""
    me = person(*CHAT)
    me.sees(IDLE)
    me.ctrl_c()
    me.sees("Ctrl-C once more leaves")
    me.type("/histroy")
    me.sees("there is no /histroy; did you mean /history?")

    me.ctrl_c()

    me.sees("Ctrl-C once more leaves", times=2)
    me.ctrl_c()
    assert 0 == me.leaves()


def test_a_resumed_session_still_has_its_notes(person: Any) -> None:
    """The notebook of the sample tools ends with its process; a resume reads it back from the session."""
    me = person(*CHAT)
    me.sees(IDLE)
    me.type("note: buy milk; call Anna")
    me.sees("kept as note 2: call Anna")
    me.sees(IDLE)
    me.press(b"\x04")
    assert 0 == me.leaves()

    again = person(*CHAT, "--resume")
    again.sees(IDLE)
    again.type("which notes?")

    again.sees(r"1\. buy milk 2\. call Anna")
    again.press(b"\x04")
    assert 0 == again.leaves()


def test_a_tool_runs_only_after_the_user_has_said_so(person: Any, stored: Callable[[], Any]) -> None:
    """With /approve each call is asked for: one is allowed, one refused, and a turn that is stopped asks no more."""
    me = person(*CHAT)
    me.sees(IDLE)
    me.type("/approve")
    me.sees("every tool is asked for")
    me.type("note: one; two; three")
    me.sees(r'\? add_note\(text="one"\)')
    me.type("perhaps")
    me.sees("answer y, n or a")
    me.type("y")
    me.sees("kept as note 1: one")
    me.sees(r'\? add_note\(text="two"\)')
    me.type("n")
    me.sees(r"the user refused\s+it")
    me.sees(r'\? add_note\(text="three"\)')

    me.ctrl_c()

    me.sees("■ cancelled, 1 call skipped")
    me.press(b"\x04")
    assert 0 == me.leaves()
    assert ["ok", "failed", "skipped"] == [
        str(event.payload.outcome) for event in stored().events if type(event.payload).__name__ == "ToolResult"
    ]


@pytest.mark.long
def test_a_chat_in_the_background_says_so_and_ends(person: Any) -> None:
    """Its first touch of the terminal would stop it, deaf to SIGTERM; it ends with 2 and says why instead."""
    shell = person(command=["bash", "--norc", "-i"])
    shell.type(f"PS1='$ '; {sys.executable} -m youyou chat --model scripted &")

    shell.sees("was started in the background; leave the '&' away")

    shell.type("wait %1; echo code $?")
    shell.sees(r"\ncode 2")
    shell.type("exit")
    shell.leaves()


@pytest.mark.long
def test_ctrl_z_suspends_and_fg_goes_on(person: Any) -> None:
    """The shell has its terminal back; after fg the conversation is where it was."""
    shell = person(command=["bash", "--norc", "-i"])
    shell.type(f"PS1='$ '; {sys.executable} -m youyou chat --model scripted")
    shell.sees(IDLE)

    shell.press(b"\x1a")

    shell.sees("Stopped")
    # The answer to the last question for the cursor arrives at the shell now: clear that line.
    shell.press(b"\x15")
    shell.type("echo back in the shell | tr a-z A-Z")
    shell.sees("BACK IN THE SHELL")
    shell.type("fg")
    shell.sees(IDLE)
    shell.type("good morning")
    shell.sees("You said: good morning")
    shell.press(b"\x04")
    shell.sees("to go on: youyou chat")
    shell.type("exit")
    shell.leaves()


def test_a_dumb_terminal_gets_text_alone(person: Any, stored: Callable[[], Any]) -> None:
    """TERM=dumb: lines in, answers out, no control sequence; questions, Ctrl-C and Ctrl-D do what they do elsewhere."""
    me = person(*CHAT, TERM="dumb")
    me.sees("\n> ?")
    me.type("what is 6 * 7?")
    me.sees(r"- 6 \* 7 = 42")
    me.type("/approve")
    me.sees("every tool is asked for")
    me.type("note: one")
    me.sees(r'\? add_note\(text="one"\)')
    me.type("n")
    me.sees(r"the user refused\s+it")
    me.sees("Here is what came back:", times=2)
    me.sees("\n> ?\n*$")
    me.ctrl_c()
    me.sees("Ctrl-C once more leaves")

    me.press(b"\x04")

    me.sees("to go on: youyou chat --resume")
    assert 0 == me.leaves()
    assert "\x1b" not in me.raw
    assert 2 == stored().kinds.count("UserMessage")

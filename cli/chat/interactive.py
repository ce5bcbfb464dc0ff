"""``youyou chat``: lines in, turns out, in a terminal. The look is in `conversation_view` and `terminal`.

While a turn runs the prompt stays: a line goes into the running turn, ``/cancel`` and Ctrl-C stop it.
"""

from __future__ import annotations

import io
import os
import shlex
import signal
import sys
from collections import deque
from contextlib import redirect_stderr, suppress

import attrs
import trio

from ...actors.handles.agent_handle import Agent
from ...actors.handles.running_turn import RunningTurn
from ...actors.handles.session_handle import Session
from ...messages.content import ContentBlock, TextBlock
from ...messages.errors import AgentError, SessionTaken
from ...messages.events import TurnCancelled, TurnStatus
from ..agent.approval import CHOICES, Approval
from ..agent.assembly import SKILLS
from ..agent.opened_session import IfTaken, Options, conversation
from ..base import paths, wording
from ..base.exits import OK, UsageError, require
from ..base.output import put
from ..base.signals import Stops
from ..base.suggestions import did_you_mean
from .conversation_view import ConversationView
from .markdown import Painter
from .plain import plain_chat
from .terminal import Terminal

_FRAME = 0.08
_QUIT_GRACE = 2.0

HELP = """\
  /cancel   stop the running turn, as Ctrl-C does; a second Ctrl-C cuts running tools
  /tree     what runs inside, and where each task waits
  /history  what was said so far
  /approve  ask before each tool runs, or ask no more
  /quit     leave, as Ctrl-D on an empty line does, or Ctrl-C twice
  A line typed while a turn runs goes into that turn. Alt-Enter begins a new line, Tab takes what is suggested,
  Ctrl-Z suspends.
"""

_COMMANDS = ("cancel", "tree", "history", "approve", "quit", "help")


async def chat(options: Options, stops: Stops) -> int:
    """Hold a conversation until the user leaves; the command's exit code."""
    can_move_the_cursor = os.environ.get("TERM", "dumb") not in ("dumb", "unknown", "")
    if can_move_the_cursor:
        require("prompt_toolkit", "cli")
        require("rich", "cli")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError('stdin or stdout is not a terminal; for one turn without one: youyou chat -p "..."')
    if _in_background():
        raise UsageError("a chat needs the terminal, and this one was started in the background; leave the '&' away")
    approval = Approval(asking=options.approve)
    if not can_move_the_cursor:
        async with conversation(options, approval, _ask_if_taken) as (_, session):
            await plain_chat(options, session, approval, stops)
    else:
        put(f"youyou · {options.talks_to} · /help says what you can do\n")
        async with conversation(options, approval, _ask_if_taken) as (agent, session):
            await _Chat.of(options, agent, session, approval, stops).run()
    put(_farewell(options, session) + "\n")
    return OK


def _in_background() -> bool:
    """Whether this process would be stopped by its first touch of the terminal, and then hear no signal."""
    try:
        return os.tcgetpgrp(0) != os.getpgrp()
    except (OSError, AttributeError):  # AttributeError: Windows has no such thing
        return False


async def _ask_if_taken(error: SessionTaken) -> IfTaken:
    """Have the person decide, before the chat has begun. Cancellation: a checkpoint."""
    put(
        f"this session is open elsewhere ({error.address or error.owner})\n"
        "  t  take it over; it ends there\n"
        "  w  wait until it is closed there\n"
        "  n  begin a new one\n"
        "any other answer leaves: "
    )
    typed = await trio.to_thread.run_sync(os.read, 0, 1_024, abandon_on_cancel=True)
    answers = {"t": IfTaken.STEAL, "w": IfTaken.WAIT, "n": IfTaken.NEW}
    answer = answers.get(typed.decode("utf-8", "replace").strip().lower(), IfTaken.LEAVE)
    if answer is IfTaken.WAIT:
        put("waiting; Ctrl-C leaves\n")
    return answer


def _farewell(options: Options, session: Session) -> str:
    if not session.history:
        return "nothing was said, nothing is kept"
    return f"session {session.id[:8]}; to go on: {_command_to_go_on(options, session.id[:8])}"


def _command_to_go_on(options: Options, session_id: str) -> str:
    """What to type for the same conversation, wherever it is typed."""
    words = ["youyou", "chat", *filter(None, [options.builder]), "--resume", session_id]
    for name, value in (("--model", options.model), ("--base-url", options.base_url)):
        words += [] if value is None else [name, value]
    if options.db is not None:
        words += ["--db", paths.database(options.db)]
    if options.approve:
        words.append("--approve")
    return shlex.join(words)


class _Complaints(io.TextIOBase):
    """Stderr while the terminal has a screen: log lines and warnings become lines above it."""

    def __init__(self, view: ConversationView) -> None:
        self._view = view
        self._token = trio.lowlevel.current_trio_token()
        self._begun = ""

    def write(self, text: str) -> int:
        *lines, self._begun = (self._begun + text).split("\n")
        for line in filter(str.strip, lines):
            # Log lines may come from any thread.
            with suppress(trio.RunFinishedError):
                self._token.run_sync_soon(self._view.complain, line.strip())
        return len(text)


@attrs.define(eq=False)
class _Question:
    """A call that waits for the user's word."""

    call: str
    answered: trio.Event = attrs.Factory(trio.Event)
    allowed: bool = False

    def answer(self, allowed: bool) -> None:
        """Let it run, or not."""
        self.allowed = allowed
        self.answered.set()


@attrs.define(eq=False)
class _Chat:
    """One conversation in a terminal."""

    agent: Agent
    session: Session
    stops: Stops
    terminal: Terminal
    view: ConversationView
    _lines: trio.MemoryReceiveChannel[str]
    _leave: trio.Event
    approval: Approval
    attachments: tuple[ContentBlock, ...]
    _questions: deque[_Question] = attrs.Factory(deque)
    _warned: bool = False
    _turns: list[RunningTurn] = attrs.Factory(list)
    _pressed: int = 0
    _failure: AgentError | None = None

    @classmethod
    def of(cls, options: Options, agent: Agent, session: Session, approval: Approval, stops: Stops) -> _Chat:
        """The chat of this session."""
        put, take = trio.open_memory_channel[str](1_000)
        leave = trio.Event()
        made: list[_Chat] = []
        names = (*_COMMANDS, *(skill.name for skill in SKILLS))
        terminal = Terminal(put.send_nowait, lambda: made[0].ctrl_c(), leave.set, names, paths.input_history())
        view = ConversationView(terminal, Painter(), options.talks_to, session.id, session.usage, hint="/help")
        made.append(cls(agent, session, stops, terminal, view, take, leave, approval, options.attachments))
        approval.ask = made[0].ask
        return made[0]

    async def run(self) -> None:
        """Serve until the user leaves."""
        with self.stops.ctrl_c(self.ctrl_c), redirect_stderr(_Complaints(self.view)):
            async with trio.open_nursery() as screen:
                screen.start_soon(self.terminal.run)
                try:
                    screen.start_soon(self._draw)
                    await self._converse()
                finally:
                    self.terminal.close()
                screen.cancel_scope.cancel(reason="the user leaves")
        if self._failure is not None:
            raise self._failure

    async def _converse(self) -> None:
        """Until the user leaves; a turn that runs then is shown to its end."""
        async with trio.open_nursery() as turns:
            serving = trio.CancelScope()
            turns.start_soon(self._serve, turns, serving)
            await self._leave.wait()
            serving.cancel(reason="the user leaves")
            self._refuse_questions()
            self.view.state, self.view.hint = "leaving", "Ctrl-C: at once"
            try:
                await self.session.close(grace=_QUIT_GRACE)
            except AgentError as error:
                # Kept out of the nurseries, which would wrap it in a group.
                self._failure = error

    def ctrl_c(self) -> None:
        """Once stops the running turn, twice cuts its tools; without a turn it leaves. Sync."""
        turn = self._turns[-1] if self._turns else None
        if turn is None or self._leave.is_set():
            self._interrupt_nothing()
            return
        self._pressed += 1
        self._refuse_questions()
        turn.cancel(grace=None if self._pressed == 1 else 0)
        self._say_that_it_stops()

    def _interrupt_nothing(self) -> None:
        """Ctrl-C without a turn: the first one warns, the second one leaves, a third one does not wait."""
        if self._leave.is_set():
            self.stops.stop(signal.SIGINT)
        elif self._warned:
            self._leave.set()
        else:
            self._warned = True
            self.view.line("  Ctrl-C once more leaves", "yellow")

    async def ask(self, call: str) -> bool:
        """Have the user decide on a call: the next line that is typed answers. Cancellation: a checkpoint."""
        question = _Question(call)
        self._questions.append(question)
        if len(self._questions) == 1:
            self._show_question()
        try:
            await question.answered.wait()
        finally:
            self._questions.remove(question)
            self._show_question()
        return question.allowed

    def _show_question(self) -> None:
        if self._questions:
            self.view.line(f"  ? {self._questions[0].call}  {CHOICES}", "bold yellow")

    def _answer(self, line: str) -> None:
        match line.lower():
            case "y" | "yes" | "n" | "no":
                self._questions[0].answer(line.lower() in ("y", "yes"))
            case "a" | "all":
                self.approval.asking = False
                for question in self._questions:
                    question.answer(True)
            case _:
                self.view.line("  answer y, n or a", "yellow")

    def _refuse_questions(self) -> None:
        # A hook that still waits would hold up the cancelled turn for as long as a hook may.
        for question in self._questions:
            question.answer(False)

    def _say_that_it_stops(self) -> None:
        if self._turns and self._turns[-1].status is TurnStatus.CANCELLING:
            self.view.state = "stopping"
            self.view.hint = "running tools finish, Ctrl-C again cuts them" if self._pressed < 2 else "cutting tools"

    async def _draw(self) -> None:
        while True:
            self.view.refresh()
            await trio.sleep(_FRAME)

    async def _serve(self, turns: trio.Nursery, serving: trio.CancelScope) -> None:
        with serving:
            await self.terminal.ready.wait()
            if self.session.history:
                self._show_history(last=6)
            async for line in self._lines:
                try:
                    await self._take(line.strip(), turns)
                except AgentError as error:
                    self.view.line(f"  ✗ {error}", "red")

    async def _take(self, line: str, turns: trio.Nursery) -> None:
        self._warned = False
        match line:
            case "/quit" | "/exit":
                self._leave.set()
            case "/cancel":
                self._cancel()
            case "/tree":
                self.view.line(str(self.agent.tree()))
            case "/history":
                self._show_history()
            case "/approve":
                self.view.line(f"  {self.approval.toggle()}", "yellow")
            case "/help":
                skills = "".join(f"  /{skill.name:<9}{skill.description}\n" for skill in SKILLS)
                self.view.line(HELP.replace("  A line", f"{skills}  A line"))
            case _ if self._is_no_command(line):
                meant = did_you_mean(line[1:], self._names())
                self.view.line(f"  there is no {line}{meant}; /help says what there is", "yellow")
            case _ if self._questions and not line.startswith("/"):
                self._answer(line)
            case _:
                await self._say(line, turns)

    def _is_no_command(self, line: str) -> bool:
        name = line.removeprefix("/")
        return line.startswith("/") and name.isalnum() and name not in self._names()

    def _names(self) -> list[str]:
        return [*_COMMANDS, "exit", *(skill.name for skill in SKILLS)]

    def _cancel(self) -> None:
        if not self._turns:
            self.view.line("  no turn is running", "yellow")
            return
        self._refuse_questions()
        self._turns[-1].cancel()
        self._pressed = max(1, self._pressed)
        self._say_that_it_stops()

    async def _say(self, text: str, turns: trio.Nursery) -> None:
        if self._turns and self._turns[-1].steer(text):
            self.view.line(f"{wording.PROMPT}{text}  (goes into the running turn)", "cyan")
            return
        content, self.attachments = [TextBlock(text), *self.attachments], ()
        turn = await self.session.send_message(content, queue=True)
        self._turns.append(turn)
        self.view.begin(text)
        turns.start_soon(self._watch, turn)

    async def _watch(self, turn: RunningTurn) -> None:
        self._pressed = 0
        self.view.started()
        async for event in turn:
            if isinstance(event.payload, TurnCancelled):
                self.view.skipped(self.session.history, event.payload.skipped)
            self.view.take(event.payload)
        await turn.result()
        self._turns.remove(turn)
        self.view.ended(self.session.usage)

    def _show_history(self, last: int = 1_000) -> None:
        messages = self.session.history
        if len(messages) > last:
            self.view.line(f"  ... {len(messages) - last} earlier messages; /history shows all", "dim")
        for message in messages[-last:]:
            who, what = wording.message_text(message)
            self.view.line(f"  {who:>14}  {wording.shorten(what, max(20, self.terminal.width - 20))}", "dim")

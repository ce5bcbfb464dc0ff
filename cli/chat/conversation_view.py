"""What a conversation looks like: events in, printed text and a changing rest out. Holds no turn and no terminal loop.

view = ConversationView(terminal, painter, "scripted", session_id)
view.take(event.payload)        # prints what is final
view.refresh()                  # draws the rest: a few times a second
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import attrs
import trio

from ...messages.chat import ReasoningDelta, TextDelta, TokenUsage
from ...messages.content import text_of
from ...messages.events import (
    AgentEventPayload,
    ErrorEvent,
    ToolCallEnd,
    ToolCallStart,
    ToolProgress,
    TurnCancelled,
    TurnComplete,
    TurnStatus,
)
from ...messages.history import Message, ToolCall
from ..base import wording
from .markdown import Painter, finished

_SPIN = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_SPINS_PER_SECOND = 10
_ROOM = 7
"""Lines for what is not live: prompt, status, empty lines, a little of what was printed."""


class Place(Protocol):
    """Where a view draws; `Terminal` is one."""

    @property
    def width(self) -> int:
        """Columns."""

    @property
    def height(self) -> int:
        """Lines."""

    def show(self, live: str, status: str) -> None:
        """Replace what still changes and the status line."""

    def print_above(self, text: str, live: str | None = None) -> None:
        """Print for good."""


@attrs.define
class _Running:
    """A call that runs."""

    text: str
    since: float
    progress: str = ""


@attrs.define(eq=False)
class ConversationView:
    """The look of one conversation."""

    place: Place
    painter: Painter
    model: str
    session_id: str
    usage: TokenUsage = attrs.field(factory=TokenUsage)
    state: str = "idle"
    hint: str = ""
    clock: Callable[[], float] = trio.current_time
    _text: str = ""
    _thought: str = ""
    _since: float | None = None
    _apart: bool = False
    _calls: dict[str, _Running] = attrs.Factory(dict)
    _complaints: set[str] = attrs.Factory(set)

    def line(self, text: str, style: str = "") -> None:
        """Print a line."""
        self._print(self.painter.text(text, self.place.width, style))

    def complain(self, text: str) -> None:
        """Say what went wrong, once in a turn: a log line and an event may say the same."""
        if text not in self._complaints:
            self._complaints.add(text)
            self._print_text()
            self.line(f"  {text}", "yellow")

    def begin(self, said: str) -> None:
        """The user said this."""
        self._print_apart(self.painter.text(f"{wording.PROMPT}{said}", self.place.width, "bold cyan"))
        self._print_apart("")

    def started(self) -> None:
        """A turn begins."""
        self._since = self.clock()
        self._complaints.clear()
        self.state, self.hint = "running", "Ctrl-C stops"

    def ended(self, usage: TokenUsage) -> None:
        """No turn runs."""
        self._since, self.usage = None, usage
        self.state, self.hint = "idle", "/help"
        self.refresh()

    def take(self, payload: AgentEventPayload) -> None:
        """The next event."""
        match payload:
            case TextDelta(text=text):
                self._text, self._thought = self._text + text, ""
                self._print_finished()
            case ReasoningDelta(text=text):
                self._thought += text
            case ToolCallStart():
                self._print_text()
                text = wording.call_text(payload.tool_name, payload.arguments)
                self._calls[payload.call_id] = _Running(text, self.clock())
            case ToolProgress() if payload.call_id in self._calls:
                self._calls[payload.call_id].progress = wording.progress_text(payload.progress)
            case ToolCallEnd():
                self._print_call(payload)
            case ErrorEvent(error=error):
                self.complain(str(error))
            case TurnComplete() | TurnCancelled():
                self._print_ending(payload)
            case _ if (line := wording.event_line(payload)) is not None:
                self._print_text()
                self.line(f"  {line}", "yellow")

    def skipped(self, history: Sequence[Message], call_ids: Sequence[str]) -> None:
        """Name the calls that were skipped, before the turn's end is shown: they have no event of their own."""
        self._print_text()
        for message in history:
            if isinstance(message, ToolCall) and message.call_id in call_ids:
                self.line(f"  - {wording.call_text(message.tool_name, message.arguments)}  skipped", "dim")

    def refresh(self) -> None:
        """Draw what still changes."""
        self.place.show(self._live(), self._status())

    def _live(self) -> str:
        width = self.place.width
        text = self.painter.markdown(self._text, width) if self._text.strip() else ""
        if self._thought.strip():
            text += self.painter.text(f"  {wording.shorten(self._thought[-400:], width - 8)}", width, "dim italic")
        text += "".join(self._running_line(call, width) for call in self._calls.values())
        if not text and self._since is not None:
            text = self.painter.text(f"  {self._spinner()}", width, "cyan")
        lines = text.splitlines(keepends=True)[-max(3, self.place.height - _ROOM) :]
        # An empty line above it, unless it goes on with what was printed, and one below.
        above = [] if self._apart or self._calls else ["\n"]
        return "".join([*above, *lines, "\n"] if lines else above)

    def _running_line(self, call: _Running, width: int) -> str:
        spent = wording.seconds((self.clock() - call.since) * 1000)
        more = f"  {call.progress}" if call.progress else ""
        return self.painter.text(f"  {self._spinner()} {call.text}{more}  {spent}", width, "cyan")

    def _spinner(self) -> str:
        return _SPIN[int(self.clock() * _SPINS_PER_SECOND) % len(_SPIN)]

    def _status(self) -> str:
        since = self._since
        spent = f" {wording.seconds((self.clock() - since) * 1000)}" if since is not None else ""
        session = f"session {self.session_id[:8]}"
        parts = [self.state + spent, self.hint, wording.tokens(self.usage), session, self.model]
        return " · ".join(filter(None, parts))

    def _print(self, text: str, apart: bool = False) -> None:
        self._apart = apart
        self.place.print_above(text, self._live())

    def _print_apart(self, text: str) -> None:
        """Print with an empty line before it, unless there is one. No text: just that line."""
        self._print(text if self._apart else f"\n{text}", apart=not text)

    def _print_finished(self) -> None:
        if done := finished(self._text):
            whole, self._text = self._text[:done], self._text[done:]
            self._print_markdown(whole)

    def _print_text(self) -> None:
        text, self._text, self._thought = self._text, "", ""
        self._print_markdown(text)

    def _print_markdown(self, text: str) -> None:
        if text.strip():
            self._print_apart(self.painter.markdown(text, self.place.width))
            self._print_apart("")

    def _print_call(self, end: ToolCallEnd) -> None:
        known = self._calls.pop(end.call_id, None)
        what = known.text if known is not None else end.tool_name
        mark, style = ("✓", "green") if end.success else ("✗", "red")
        spent = wording.seconds(end.duration_ms)
        self._print_text()
        self.line(f"  {mark} {what} → {wording.outcome(end)}  {spent}", style)

    def _print_ending(self, payload: TurnComplete | TurnCancelled) -> None:
        self._print_text()
        self._calls.clear()
        match payload:
            case TurnCancelled():
                self.line(f"  ■ {wording.ending(payload)}", "yellow")
            case TurnComplete(status=TurnStatus.FAILED):
                said = str(payload.error) in self._complaints
                self.line(f"  ✗ {payload.status if said else wording.ending(payload)}", "red")
        for lost in payload.undelivered:
            self.line(f"  not delivered: {wording.shorten(text_of(lost.content))}", "yellow")

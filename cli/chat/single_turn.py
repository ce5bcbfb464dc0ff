"""``youyou chat -p``: one turn without a terminal. Text goes to stdout, everything else to stderr.

With ``--json`` every event goes to stdout as one line of JSON, the terminal event last, and nothing else does.
"""

from __future__ import annotations

import os
import signal

import attrs
import trio

from ...actors.handles.running_turn import RunningTurn
from ...messages.chat import TextDelta
from ...messages.codec import to_json
from ...messages.content import TextBlock
from ...messages.events import AgentEvent, ToolCallEnd, TurnCancelled, TurnComplete, TurnStatus
from ..agent.opened_session import Options, conversation
from ..base import wording
from ..base.exits import ERROR, INTERRUPTED, OK
from ..base.output import Output
from ..base.signals import Stops

_CHUNK = 65_536


@attrs.define(eq=False)
class CtrlC:
    """What Ctrl-C does to a turn: once stops it softly, twice cuts running tools, a third time ends the command."""

    turn: RunningTurn
    stops: Stops
    pressed: int = 0

    def __call__(self) -> None:
        self.pressed += 1
        if self.pressed == 1:
            self.turn.cancel()
        elif self.pressed == 2:
            self.turn.cancel(grace=0)
        else:
            self.stops.stop(signal.SIGINT)


async def one_turn(options: Options, prompt: str, as_json: bool, stops: Stops) -> int:
    """Hold one turn; the command's exit code."""
    out = Output(stops)
    text = prompt if prompt != "-" else await _read_stdin()
    async with conversation(options) as (_, session):
        turn = await session.send_message([TextBlock(text), *options.attachments])
        show = JsonLines(out) if as_json else PlainText(out)
        with stops.ctrl_c(CtrlC(turn, stops)):
            async for event in turn:
                await show(event)
        result = await turn.result()
    match result.status:
        case TurnStatus.COMPLETED:
            return OK
        case TurnStatus.CANCELLED:
            return INTERRUPTED
    return ERROR


async def _read_stdin() -> str:
    """All of stdin. Cancellation: a checkpoint; a thread that still waits is abandoned."""
    pieces = []
    while piece := await trio.to_thread.run_sync(os.read, 0, _CHUNK, abandon_on_cancel=True):
        pieces.append(piece)
    return b"".join(pieces).decode("utf-8", "replace")


@attrs.define
class JsonLines:
    """Every event on a line of stdout."""

    out: Output

    async def __call__(self, event: AgentEvent) -> None:
        await self.out.write(to_json(event) + "\n")


@attrs.define
class PlainText:
    """Text on stdout, what the tools did and how the turn ended on stderr."""

    out: Output
    _in_line: bool = False

    async def __call__(self, event: AgentEvent) -> None:
        match event.payload:
            case TextDelta(text=text):
                self._in_line = not text.endswith("\n")
                await self.out.write(text)
            case ToolCallEnd() as end:
                await self._tell(f"{end.tool_name}: {wording.outcome(end)}  ({wording.seconds(end.duration_ms)})")
            case TurnComplete(error=None):
                await self._end_line()
            case TurnComplete() | TurnCancelled() as over:
                await self._tell(wording.ending(over))

    async def _tell(self, line: str) -> None:
        await self._end_line()
        await self.out.tell(f"youyou: {line}\n")

    async def _end_line(self) -> None:
        if self._in_line:
            self._in_line = False
            await self.out.write("\n")

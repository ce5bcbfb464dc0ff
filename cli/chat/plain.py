"""``youyou chat`` in a terminal that can only print (``TERM=dumb``): a line in, an answer out, no screen.

Such terminals are inside editors and serial lines; what moves the cursor would be litter there.
"""

from __future__ import annotations

import os

import attrs
import trio

from ...actors.handles.running_turn import RunningTurn
from ...actors.handles.session_handle import Session
from ...messages.content import ContentBlock, TextBlock
from ...messages.errors import AgentError
from ..agent.approval import CHOICES, Approval
from ..agent.opened_session import Options
from ..base.output import Output
from ..base.signals import Stops
from .single_turn import CtrlC, PlainText

_HELP = "  /approve asks before each tool, or no more; /quit leaves, as Ctrl-D does; Ctrl-C stops the running turn\n"


async def plain_chat(options: Options, session: Session, approval: Approval, stops: Stops) -> None:
    """Read lines and answer each until the user leaves.

    Cancellation: a checkpoint; a thread that waits for a line is abandoned.
    """
    put, take = trio.open_memory_channel[str](100)
    chat = _PlainChat(session, approval, stops, Output(stops), take, options.attachments)
    approval.ask = chat.ask
    await chat.out.write(f"youyou - {options.talks_to} - /help says what you can do\n")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_read_lines, put)
        await chat.converse()
        nursery.cancel_scope.cancel(reason="the user leaves")


async def _read_lines(put: trio.MemorySendChannel[str]) -> None:
    """Every line that is typed. One reader for all: of two threads that wait, either might get the next line."""
    async with put:
        while data := await trio.to_thread.run_sync(os.read, 0, 65_536, abandon_on_cancel=True):
            for line in data.decode("utf-8", "replace").splitlines():
                await put.send(line)


@attrs.define(eq=False)
class _PlainChat:
    session: Session
    approval: Approval
    stops: Stops
    out: Output
    _lines: trio.MemoryReceiveChannel[str]
    _attachments: tuple[ContentBlock, ...]
    _turn: RunningTurn | None = None
    # Calls that run at once may ask at once; one question stands on the terminal at a time.
    _asking: trio.Lock = attrs.Factory(trio.Lock)

    async def converse(self) -> None:
        """Until the user leaves: ``/quit``, Ctrl-D, or Ctrl-C twice."""
        warned = False
        while True:
            line = await self._line("> ")
            if line is None and warned:
                return
            warned = line is None
            match (line or "").strip():
                case "" if warned:
                    await self.out.write("\n  Ctrl-C once more leaves\n")
                case "":
                    continue
                case "/quit" | "/exit":
                    return
                case "/help":
                    await self.out.write(_HELP)
                case "/approve":
                    await self.out.write(f"  {self.approval.toggle()}\n")
                case text:
                    await self._hold_turn(text)

    async def _line(self, prompt: str) -> str | None:
        """The next line; None at Ctrl-C, ``/quit`` at the end of the input."""
        await self.out.write(prompt)
        with trio.CancelScope() as waiting, self.stops.ctrl_c(waiting.cancel):
            try:
                return await self._lines.receive()
            except trio.EndOfChannel:
                return "/quit"
        return None

    async def _hold_turn(self, text: str) -> None:
        """One turn, shown as it comes; Ctrl-C stops it."""
        content, self._attachments = [TextBlock(text), *self._attachments], ()
        show = PlainText(self.out)
        try:
            turn = self._turn = await self.session.send_message(content)
        except AgentError as error:
            await self.out.tell(f"youyou: {error}\n")
            return
        with self.stops.ctrl_c(CtrlC(turn, self.stops)):
            async for event in turn:
                await show(event)
        await turn.result()

    async def ask(self, call: str) -> bool:
        """Have the user decide on a call; Ctrl-C refuses it and stops the turn. Cancellation: a checkpoint."""
        async with self._asking:
            if not self.approval.asking:
                return True
            answer = await self._line(f"  ? {call}  {CHOICES}: ")
            if answer is None and self._turn is not None:
                self._turn.cancel()
            word = (answer or "n").strip().lower()
            self.approval.asking = word not in ("a", "all")
            return word in ("y", "yes", "a", "all")

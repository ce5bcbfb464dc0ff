"""The bottom of the terminal: what still changes, a status line, and the line that is being typed. Extra ``cli``.

Everything that does not change any more is printed above and belongs to the terminal's scrollback. Prompt Toolkit runs
on an event loop of its own in a thread; lines, Ctrl-C and Ctrl-D come out as calls in the Trio run.

    terminal = Terminal(on_line, on_ctrl_c, on_leave, suggest)
    nursery.start_soon(terminal.run)
    terminal.show("⠋ working", "running · 1.2 s")
    terminal.print_above("hello\\n")
    terminal.close()
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import trio

from ..base.exits import require
from ..base.wording import PROMPT

if TYPE_CHECKING:
    from prompt_toolkit import Application
    from prompt_toolkit.auto_suggest import AutoSuggest
    from prompt_toolkit.buffer import Buffer
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyBindings

logger: logging.Logger = logging.getLogger("youyou.cli")


class Terminal:
    """The one screen of a conversation. Made and used in a Trio run; `run` serves it from a thread.

    Args:
        on_line: called with each line that was entered.
        on_ctrl_c: called when Ctrl-C is pressed and the line is empty; otherwise the line is cleared.
        on_leave: called at Ctrl-D on an empty line, and when the terminal is gone.
        names: what may be suggested after a slash.
        history: the file in which entered lines are kept.
    """

    def __init__(
        self,
        on_line: Callable[[str], object],
        on_ctrl_c: Callable[[], object],
        on_leave: Callable[[], object],
        names: Sequence[str],
        history: str,
    ) -> None:
        require("prompt_toolkit", "cli")
        require("rich", "cli")
        self._on_line = on_line
        self._on_ctrl_c = on_ctrl_c
        self._on_leave = on_leave
        self._names = names
        self._history = history
        self._token = trio.lowlevel.current_trio_token()
        self._live = ""
        self._status = ""
        self._closing = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._context: contextvars.Context | None = None
        self._app: Application[None] | None = None
        self._waiting: list[str] = []
        self.ready: trio.Event = trio.Event()
        """Set once what is printed is seen."""

    @property
    def width(self) -> int:
        """Columns."""
        return shutil.get_terminal_size().columns

    @property
    def height(self) -> int:
        """Lines."""
        return shutil.get_terminal_size().lines

    async def run(self) -> None:
        """Serve the terminal until `close` is called or it is gone.

        Cancellation: not felt; call `close`.
        """
        await trio.to_thread.run_sync(self._serve)

    def show(self, live: str, status: str) -> None:
        """Replace what still changes and the status line. Sync, never blocks."""
        self._live, self._status = live, status
        if self._app is not None:
            self._app.invalidate()

    def print_above(self, text: str, live: str | None = None) -> None:
        """Print for good; ``live`` replaces what still changes in the same moment. Sync, never blocks, keeps order."""
        self._soon(lambda: self._print(text, live))

    def close(self) -> None:
        """Let go of the terminal. Sync, idempotent; `run` returns soon."""
        self._closing = True
        self._soon(self._exit)

    def _soon(self, work: Callable[[], object]) -> None:
        if self._loop is not None and self._context is not None:
            try:
                self._loop.call_soon_threadsafe(work, context=self._context)
            except RuntimeError:
                # The loop is closed: the terminal is gone, and nobody looks.
                return

    # Below: in the thread.

    def _serve(self) -> None:
        try:
            app = self._application()
            app.run(pre_run=lambda: self._started(app), handle_sigint=False)
        except (EOFError, OSError):
            # The terminal was closed.
            self._call(self._on_leave)

    def _started(self, app: Application[None]) -> None:
        self._context = contextvars.copy_context()
        self._app = app
        self._loop = asyncio.get_running_loop()
        if self._closing:
            self._loop.call_soon(self._exit)
        self._call(self.ready.set)

    def _exit(self) -> None:
        if self._app is not None and self._app.is_running and not self._app.is_done:
            self._app.exit()

    def _print(self, text: str, live: str | None) -> None:
        from prompt_toolkit.application import run_in_terminal

        app = self._app
        if app is None or not app.is_running:
            return
        # What is put together here is printed in one go: each go takes the bottom of the screen away and back.
        self._waiting.append(text)
        if live is not None:
            self._live = live
        if len(self._waiting) == 1:
            run_in_terminal(self._print_waiting)

    def _print_waiting(self) -> None:
        text, self._waiting = "".join(self._waiting), []
        if self._app is not None:
            self._app.output.write_raw(text.replace("\n", "\r\n"))
            self._app.output.flush()

    def _call(self, action: Callable[..., object], *args: Any) -> None:
        try:
            self._token.run_sync_soon(lambda: action(*args))
        except trio.RunFinishedError:
            return

    def _suspend(self) -> None:
        """Stop this process and its group until the shell lets them go on. The screen is taken away around it."""
        went_on = threading.Event()

        def stop() -> None:
            os.kill(0, signal.SIGTSTP)
            went_on.set()

        # By the main thread, since the kernel hands the signal to that one. A thread that sends it from elsewhere runs
        # on until the stop has reached it, long enough to draw the screen again before the shell has the terminal;
        # nothing draws it after fg then. (Prompt Toolkit's own suspend_to_background does that.)
        try:
            self._token.run_sync_soon(stop)
        except trio.RunFinishedError:
            return
        # Bounded for a run that ends in this very moment. However long the stop lasts, both threads go on together.
        went_on.wait(5)

    def _application(self) -> Application[None]:
        from prompt_toolkit import Application
        from prompt_toolkit.buffer import Buffer
        from prompt_toolkit.styles import Style

        typed = Buffer(
            history=_history(self._history),
            auto_suggest=_suggestions(self._names),
            accept_handler=self._accept,
            multiline=False,
        )
        style = Style.from_dict({"status": "reverse", "prompt": "bold ansicyan"})
        return Application(
            layout=_layout(typed, lambda: self._live, lambda: self._status),
            key_bindings=self._keys(typed),
            style=style,
            erase_when_done=True,
        )

    def _accept(self, typed: Buffer) -> bool:
        if typed.text.strip():
            self._call(self._on_line, typed.text)
        return False

    def _keys(self, typed: Buffer) -> KeyBindings:
        from prompt_toolkit.filters import Condition
        from prompt_toolkit.key_binding import KeyBindings

        keys = KeyBindings()
        empty = Condition(lambda: not typed.text)

        @keys.add("c-c")
        def _(_: object) -> None:
            if typed.text:
                typed.reset()
            else:
                self._call(self._on_ctrl_c)

        @keys.add("c-d", filter=empty)
        def _(_: object) -> None:
            self._call(self._on_leave)

        @keys.add("c-z")
        def _(_: object) -> None:
            from prompt_toolkit.application import run_in_terminal

            run_in_terminal(self._suspend)

        @keys.add("escape", "enter")
        def _(_: object) -> None:
            typed.insert_text("\n")

        @keys.add("tab")
        def _(_: object) -> None:
            if typed.suggestion is not None:
                typed.insert_text(typed.suggestion.text)

        return keys


def _history(path: str) -> History:
    """The lines typed before. Where the file cannot be used they are kept for this conversation only."""
    from prompt_toolkit.history import FileHistory

    class KeptIfPossible(FileHistory):
        told = False

        def load_history_strings(self) -> Iterable[str]:
            try:
                return list(super().load_history_strings())
            except OSError as error:
                self._tell(error)
                return []

        def store_string(self, string: str) -> None:
            try:
                super().store_string(string)
            except OSError as error:
                self._tell(error)

        def _tell(self, error: OSError) -> None:
            if not self.told:
                self.told = True
                # A log record: it becomes a line above the screen, whichever thread it comes from.
                logger.warning("typed lines are not kept: %s: %s", path, error.strerror)

    return KeptIfPossible(path)


def _layout(typed: Buffer, live: Callable[[], str], status: Callable[[], str]) -> Any:
    from prompt_toolkit.filters import Condition
    from prompt_toolkit.formatted_text import ANSI
    from prompt_toolkit.layout import BufferControl, ConditionalContainer, FormattedTextControl, HSplit, Layout, Window
    from prompt_toolkit.layout.processors import AppendAutoSuggestion, BeforeInput

    entry = BufferControl(typed, input_processors=[BeforeInput(PROMPT, "class:prompt"), AppendAutoSuggestion()])
    moving = Window(FormattedTextControl(lambda: ANSI(live().removesuffix("\n"))), dont_extend_height=True)
    rows = [
        ConditionalContainer(moving, Condition(lambda: bool(live()))),
        Window(entry, dont_extend_height=True, wrap_lines=True),
        Window(FormattedTextControl(lambda: f" {status()} "), height=1, style="class:status"),
    ]
    return Layout(HSplit(rows), focused_element=entry)


def _suggestions(names: Sequence[str]) -> AutoSuggest:
    """After a slash: the rest of a command's or skill's name; otherwise what was typed before."""
    from prompt_toolkit.auto_suggest import AutoSuggest, AutoSuggestFromHistory, Suggestion
    from prompt_toolkit.document import Document

    class Suggest(AutoSuggest):
        def get_suggestion(self, buffer: Buffer, document: Document) -> Suggestion | None:
            text = document.text
            if text.startswith("/"):
                fits = (name for name in names if name.startswith(text[1:]) and name != text[1:])
                return next((Suggestion(name[len(text) - 1 :]) for name in fits), None)
            return AutoSuggestFromHistory().get_suggestion(buffer, document)

    return Suggest()

"""Make ``docs/images/chat.svg``: a real conversation in a real pseudo-terminal, as it stood on the screen.

    python scripts/terminal_picture.py docs/images/chat.svg

Needs the packages of the tests; the person who types is the one of ``tests/cli``.
"""

from __future__ import annotations

import importlib.util
import io
import re
import sys
import tempfile
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.console import Console
from rich.style import Style
from rich.text import Text

_PEOPLE = Path(__file__).parents[1] / "tests" / "cli" / "conftest.py"
_TITLE = "youyou chat"


def main(target: str) -> None:
    """Hold the conversation and draw its end."""
    with tempfile.TemporaryDirectory() as home:
        person = _people()._sit_down([sys.executable, "-m", "youyou", "chat", "--model", "scripted"], Path(home))
        try:
            _converse(person)
            drawn = [_line(row, person.screen.columns) for row in _rows(person.screen)]
        finally:
            person.process.kill()
            person.process.wait()
    console = Console(record=True, width=person.screen.columns, file=io.StringIO())
    while drawn and not drawn[-1].plain.strip():
        drawn.pop()
    for line in [Text("$ youyou chat --model scripted"), *drawn]:
        console.print(line, no_wrap=True, crop=False)
    # Rich names a font on the network; a picture in a page may not load it.
    picture = re.sub(r"@font-face \{.*?\}\s*", "", console.export_svg(title=_TITLE, unique_id="chat"), flags=re.DOTALL)
    Path(target).write_text(picture, encoding="utf-8")


def _people() -> ModuleType:
    spec = importlib.util.spec_from_file_location("people", _PEOPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["people"] = module
    spec.loader.exec_module(module)
    return module


def _converse(person: Any) -> None:
    """Tools concurrently; notes one after the other, stopped on the way; an answer that is still growing."""
    idle = r"\n idle"
    person.sees(idle)
    person.type("what is 12 * 7, 3 ** 5 and the time?")
    person.sees("came back")
    person.sees(idle)
    person.type("note: buy milk; call Anna; water the plants")
    person.sees("✓ add_note")
    person.ctrl_c()
    person.sees("skipped")
    person.sees(idle)
    person.type("tell me a story")
    person.sees("the bell hung in the air")


def _rows(screen: Any) -> list[Any]:
    return [*screen.history.top, *(screen.buffer[y] for y in range(screen.lines))]


def _line(row: Any, columns: int) -> Text:
    line = Text()
    for style, cells in groupby((row[x] for x in range(columns)), _style):
        line.append("".join(cell.data for cell in cells), style)
    return line


def _style(cell: Any) -> Style:
    return Style(color=_colour(cell.fg), bold=cell.bold, italic=cell.italics, reverse=cell.reverse)


def _colour(name: str) -> str | None:
    if name == "default":
        return None
    hexadecimal = len(name) == 6 and all(digit in "0123456789abcdef" for digit in name)
    return f"#{name}" if hexadecimal else {"brown": "yellow"}.get(name, name)


if __name__ == "__main__":
    main(sys.argv[1])

"""Rich values as text with colour codes, and where streamed Markdown may be cut. Knows no terminal and no events.

painter = Painter()
painter.markdown("**bold**", width=80)          # what to print
done = finished("first block\\n\\nsecond bl")     # 13: so much will not change any more
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

from ..base.output import printable

if TYPE_CHECKING:
    from rich.console import RenderableType

# Lines at the edges that show nothing, whatever their colours.
_BLANK_EDGES = re.compile(r"\A(?:(?:\x1b\[[\d;]*m|[ \t])*\n)+|(?:(?<=\n)(?:\x1b\[[\d;]*m|[ \t])*\n)+\Z")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


def finished(text: str) -> int:
    """How many characters of ``text`` are whole Markdown blocks that no further text can change.

    A block ends at an empty line outside of code, once the next line is known to begin at the margin.
    """
    done = position = 0
    fence, after_blank = "", False
    for line in text.splitlines(keepends=True):
        if not fence and after_blank and line[:1] not in (" ", "\t", "\n", ""):
            done = position
        if match := _FENCE.match(line):
            fence = match[1] if not fence else "" if line.strip().startswith(fence) else fence
        after_blank = not line.strip()
        position += len(line)
    return done


class Painter:
    """Turns Rich values into text with the colours that the terminal has."""

    def __init__(self) -> None:
        from rich.console import Console

        self._colours = Console().color_system

    def paint(self, value: RenderableType, width: int) -> str:
        """The value as it is to be printed, ending in a line break."""
        from rich.console import Console

        sheet = io.StringIO()
        console = Console(
            file=sheet,
            width=max(20, width),
            force_terminal=True,
            color_system=self._colours,  # type: ignore[arg-type]  # Rich says str here and a Literal there
            legacy_windows=False,
            highlight=False,
        )
        console.print(value, soft_wrap=False)
        return sheet.getvalue()

    def markdown(self, text: str, width: int) -> str:
        """Markdown, a little inset."""
        from rich.markdown import Markdown
        from rich.padding import Padding

        painted = self.paint(Padding(Markdown(printable(text), hyperlinks=False), (0, 2)), min(width, 100))
        return _BLANK_EDGES.sub("", painted)

    def text(self, text: str, width: int, style: str = "") -> str:
        """Plain text in one style, wrapped."""
        from rich.text import Text

        return self.paint(Text(printable(text), style=style), width)

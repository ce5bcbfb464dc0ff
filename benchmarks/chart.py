"""Charts of a run as SVG, which a page shows as it is: bars for speed, a field of counts for stopping."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from html import escape

from .results import Results
from .stopping.judge import COUNTS, FAULTS
from .tables import NAMES, by_way

WIDTH, LEFT, ROW = 760, 250, 22
OURS, THEIRS, FLOOR = "#2f6fb0", "#b08a2f", "#9a9a9a"
FLOORS = ("limit", "bare 0", "bare 64", "generator")


def text(x: float, y: float, said: str, anchor: str = "start", more: str = "") -> str:
    """A line of text in a colour that can be read on light and on dark ground."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="#808080" {more}>{escape(said)}</text>'


def page(height: float, parts: Sequence[str]) -> str:
    """The picture."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" font-family="sans-serif"'
    return "\n".join([f'{head} font-size="13">', *parts, "</svg>", ""])


def speed(results: Results) -> str:
    """W1 and W2: milliseconds a turn, median and range, the shortest first."""
    parts: list[str] = []
    y = 0.0
    for workload, title in (
        ("W1", "W1: a turn of 200 deltas, ms (shorter is better)"),
        ("W2", "W2: a turn with 8 tool calls and 20 deltas, ms (shorter is better)"),
    ):
        measured = {one: cell["ms"] for one, cell in results.speed.get(workload, {}).items()}
        most = max((max(values) for values in measured.values()), default=1.0)
        y += ROW * 1.5
        parts.append(text(0, y, title, more='font-weight="bold"'))
        for program in sorted(measured, key=lambda one: statistics.median(measured[one])):
            y += ROW
            parts += bar(y, program, measured[program], (WIDTH - LEFT - 70) / most)
    return page(y + ROW, parts)


def bar(y: float, program: str, values: Sequence[float], scale: float) -> list[str]:
    """A name, a bar, a line for the range, and the median."""
    median = statistics.median(values)
    colour = OURS if program.startswith("youyou") else FLOOR if program in FLOORS else THEIRS
    middle = y - 4
    return [
        text(LEFT - 8, y, NAMES.get(program, program).strip("*"), "end"),
        f'<rect x="{LEFT}" y="{y - 12:.1f}" width="{max(1.0, median * scale):.1f}" height="15" fill="{colour}"/>',
        f'<line x1="{LEFT + min(values) * scale:.1f}" x2="{LEFT + max(values) * scale:.1f}" '
        f'y1="{middle:.1f}" y2="{middle:.1f}" stroke="#808080" stroke-width="2"/>',
        text(LEFT + max(values) * scale + 6, y, f"{median:.2f}"),
    ]


def stopping(results: Results) -> str:
    """A row a runtime and way, a column a fault."""
    rows = [
        (
            f"{NAMES.get(runtime, runtime).strip('*')} {way}",
            [sum(one["counts"][name] for one in some) for name in FAULTS],
        )
        for (runtime, way), some in by_way(results).items()
    ]
    heads = [COUNTS[name] for name in FAULTS]
    return field(rows, heads, "Stops, of all tried at every step, after which ... (empty is none)")


def field(rows: Sequence[tuple[str, Sequence[int]]], heads: Sequence[str], title: str) -> str:
    """A row a name, a column a count: zero is empty, anything else is filled, the darker the more."""
    left = LEFT + 80
    wide = (WIDTH - left - 80) / max(1, len(heads))
    most = max((count for _, counts in rows for count in counts), default=1) or 1
    y = ROW * 7.0
    parts = [text(0, ROW, title, more='font-weight="bold"')]
    for number, head in enumerate(heads):
        x = left + wide * (number + 0.5)
        parts.append(text(x, y - 6, head, more=f'font-size="11" transform="rotate(-38 {x:.1f} {y - 6:.1f})"'))
    for name, counts in rows:
        parts.append(text(left - 8, y + 15, name, "end"))
        for number, count in enumerate(counts):
            x = left + wide * number
            shade = 0.0 if not count else 0.25 + 0.75 * (count / most) ** 0.5
            parts.append(
                f'<rect x="{x + 1:.1f}" y="{y:.1f}" width="{wide - 2:.1f}" height="{ROW - 2}" fill="#c0392b" '
                f'fill-opacity="{shade:.2f}" stroke="#808080" stroke-opacity="0.4"/>'
            )
            if count:
                colour = 'fill="#ffffff"' if shade > 0.5 else 'fill="#808080"'
                middle = f'x="{x + wide / 2:.1f}" y="{y + 15:.1f}" text-anchor="middle"'
                parts.append(f"<text {middle} {colour}>{count}</text>")
        y += ROW
    return page(y + ROW / 2, parts)

"""How many orders each strategy tries until it finds a bug of order, over several seeds; and the page that lists it.

python tests/corpus/strategies_table.py       # writes docs/testing/strategies.md; half a minute
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import corpus_table
import trio
from planted import CORPUS, Scenario
from youyou.testing import Simulation, explore

PAGE = corpus_table.PAGE.parent / "strategies.md"
STRATEGIES = ("systematic", "walk", "pos", "pct2", "pct3", "guided", "mix")
SEEDS = 5
MOST = 200
_HEAD = """# Strategies, measured

How many orders `explore` tries until it finds a planted bug of order: the median over {seeds} seeds, at most
{most} orders each. A figure with a plus sign: so many seeds found nothing. `mix` is the default, which takes the
others in turn and searches a program completely when {most} orders suffice. Uniform choice (`walk`) is what one
would do without a strategy. `python tests/corpus/strategies_table.py` makes this page.

| bug | {names} |
| --- | {lines} |
"""
_TAIL = """
What follows from it:

- A bug that needs one or two deviations from the plain order is found within a handful of orders by every
  strategy. Only `systematic` then proves that there is no other with so few (`bound=`).
- A bug that needs a decision in each of many rounds is found by chance as long as its odds are good, and by going
  through all orders. Priorities (`pct`, `pos`) miss it where the first task must change from round to round.
- `guided` goes on from what led somewhere new: it is the fastest where that is the way, and stays away where it
  is not.
- A bug that needs one task to stay behind for long cannot happen under Trio's scheduler. With `fairness="none"`,
  of six seeds with 300 orders each, `pct2` found such a one after 1 to 3 orders, `pos` after 3 to 12, and `walk`
  after 44 to 278 or, twice, not at all.
"""


def inversions(depth: int) -> Scenario:
    """In each of so many rounds, the second of two tasks must come first."""

    async def scenario(sim: Simulation) -> None:
        hits = []
        for _ in range(depth):
            order: list[int] = []

            async def say(number: int, order: list[int] = order) -> None:
                order.append(number)

            async with trio.open_nursery() as nursery:
                nursery.start_soon(say, 0)
                nursery.start_soon(say, 1)
            hits.append(order == [1, 0])
        assert not all(hits)

    return scenario


def alternating(depth: int) -> Scenario:
    """Two tasks that live through all rounds must take turns in being first."""

    async def scenario(sim: Simulation) -> None:
        log: list[tuple[int, int]] = []

        async def work(number: int) -> None:
            for turn in range(depth):
                await trio.lowlevel.checkpoint()
                log.append((turn, number))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(work, 0)
            nursery.start_soon(work, 1)
        first = [next(number for turn, number in log if turn == wanted) for wanted in range(depth)]
        assert first != [(turn + 1) % 2 for turn in range(depth)]

    return scenario


def programs() -> dict[str, Scenario]:
    """The corpus's bugs of order, and programs of a known depth."""
    corpus_table.chapters()
    plain = [e for e in CORPUS.values() if e.look.engine is explore and set(e.look.options) == {"schedules"}]
    found: dict[str, Scenario] = {entry.name: entry.bug for entry in plain}
    for name, make in (("inversions", inversions), ("alternating", alternating)):
        maker: Callable[[int], Scenario] = make
        found |= {f"{name}, depth {depth}": maker(depth) for depth in (1, 2, 4, 6)}
    return found


def orders_until_found(scenario: Scenario, strategy: str) -> str:
    """The cell of one program and one strategy."""
    found = []
    for seed in range(SEEDS):
        options = {} if strategy == "mix" else {"strategy": strategy}
        note = explore(scenario, seed=seed, schedules=MOST, **options).note
        found.append(int(note.split()[3].rstrip(",")) if note.startswith("found in schedule") else None)
    known = [number for number in found if number is not None]
    missed = f"+{found.count(None)}" if None in found else ""
    return f"{statistics.median(known):g}{missed}" if known else "-"


def page() -> str:
    """The page, as measured."""
    head = _HEAD.format(
        seeds=SEEDS, most=MOST, names=" | ".join(STRATEGIES), lines=" | ".join("---:" for _ in STRATEGIES)
    )
    rows = [
        f"| {name} | {' | '.join(orders_until_found(scenario, strategy) for strategy in STRATEGIES)} |"
        for name, scenario in programs().items()
    ]
    return head + "\n".join(rows) + "\n" + _TAIL


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

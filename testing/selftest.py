"""Does this version of Trio still do what the simulation relies on? Asked once per process, before the first run.

A small program with a known course is run; any other course means that Trio's internals have moved, and no result of
any sweep could be trusted.
"""

from __future__ import annotations

from functools import cache
from typing import NoReturn

import trio

from .attempt import Attempt, Injection, Limits, Order, Run
from .hooks import TrioMoved, check_trio
from .leaks import LeakWatch
from .running import run_attempt
from .simulation import Simulation


@cache
def self_test() -> None:
    """Run the known program; once is enough.

    Raises:
        TrioMoved: what Trio no longer does.
    """
    check_trio()
    with LeakWatch() as watch:
        limits = Limits(max_steps=200)
        plain = run_attempt(_program, Attempt(), limits, watch)
        other = run_attempt(_program, Attempt(order=Order(deviations=((0, 1),))), limits, watch)
        cut = run_attempt(_program, Attempt((Injection("cancel", 3),)), limits, watch)
        stuck = run_attempt(_stuck, Attempt(), limits, watch)
    _expect([0, 1, 2, 1, 2], plain, "tasks run in the order of their birth")
    _expect([0, 2, 1, 1, 2], other, "the order of runnable tasks can be chosen")
    if plain.seconds != 5 or plain.violations:
        _moved("virtual time passes only when every task sleeps")
    if [d.task for d in cut.deliveries] != ["first", "second"] or cut.unresolved:
        _moved("an injected cancel can be seen to arrive")
    if [v.kind for v in stuck.violations] != ["deadlock"]:
        _moved("a deadlock can be seen")


async def _program(sim: Simulation) -> None:
    async def first() -> None:
        await trio.sleep(5)

    async def second() -> None:
        await trio.sleep(5)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(first)
        nursery.start_soon(second)


async def _stuck(sim: Simulation) -> None:
    await trio.Event().wait()


def _expect(order: list[int], run: Run, what: str) -> None:
    if [step.task for step in run.steps] != order:
        _moved(what)


def _moved(what: str) -> NoReturn:
    raise TrioMoved(
        f"with trio {trio.__version__} it no longer holds that {what}; use another version of Trio or of youyou"
    )

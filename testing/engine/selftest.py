"""Does this version of Trio still do what the simulation relies on? Asked once per process, before the first run.

A small program with a known course is run; any other course means that Trio's internals have moved, and no result of
any sweep could be trusted.
"""

from __future__ import annotations

from functools import cache
from typing import NoReturn

import trio

from ..process.leaks import LeakWatch
from ..process.trio_internals import TrioMoved, check_trio
from .attempt import Attempt, Injection, Limits, Order
from .running import run_attempt
from .simulation import Simulation

_LIMITS = Limits(max_steps=200)


@cache
def self_test() -> None:
    """Run the known program; once is enough.

    Raises:
        TrioMoved: what Trio no longer does.
    """
    check_trio()
    with LeakWatch() as watch:
        _orders(watch)
        _cancels(watch)


def _orders(watch: LeakWatch) -> None:
    plain = run_attempt(_program, Attempt(), _LIMITS, watch)
    other = run_attempt(_program, Attempt(order=Order(deviations=((0, 1),))), _LIMITS, watch)
    if [step.task for step in plain.steps] != [0, 1, 2, 1, 2]:
        _moved("tasks run in the order of their birth")
    if [step.task for step in other.steps] != [0, 2, 1, 1, 2]:
        _moved("the order of runnable tasks can be chosen")
    if plain.seconds != 5 or plain.violations:
        _moved("virtual time passes only when every task sleeps")


def _cancels(watch: LeakWatch) -> None:
    cut = run_attempt(_program, Attempt((Injection("cancel", 3),)), _LIMITS, watch)
    if [d.task for d in cut.deliveries] != ["first", "second"] or cut.unresolved:
        _moved("an injected cancel can be seen to arrive")
    # Last, because a deadlock that cannot be seen goes on forever.
    stuck = run_attempt(_stuck, Attempt(), _LIMITS, watch)
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


def _moved(what: str) -> NoReturn:
    raise TrioMoved(
        f"with trio {trio.__version__} it no longer holds that {what}; use another version of Trio or of youyou"
    )

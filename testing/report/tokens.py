"""An attempt as one short line, to be replayed anywhere: `yy1-a17.turn-b23-f3.hang-d4.1,9.2`.

Readable on purpose: ``a17`` cancels after step 17, ``b23`` before step 23 (a name follows unless it is the root),
``f3.hang`` breaks the third port call, ``x12`` crashes, ``d`` lists the decisions that were not 0, ``s`` is a strategy
with its seed, ``r`` the seed of `Simulation.random`, ``u`` unfair schedules, ``l`` latency, ``c`` chaos. Always under
100 characters.
"""

from __future__ import annotations

import re
from typing import cast

import attrs

from ..engine.attempt import Attempt, Chaos, Injection, Order, Strategy
from ..engine.faults import MODES, Mode

LONGEST = 99
_STRATEGIES: dict[str, Strategy] = {"w": "walk", "p": "pct2", "q": "pct3"}
_PART = re.compile(r"([abfxdsrulc])([^.]*)(?:\.(.*))?$")


class BadToken(ValueError):
    """A line that names no attempt."""


def encode(attempt: Attempt) -> str:
    """The shortest line for ``attempt``; seeds take the place of decisions if those would be too many."""
    order = attempt.order
    parts = [_injection(i) for i in attempt.injections]
    if order.deviations:
        parts.append("d" + ",".join(f"{n}.{v}" for n, v in order.deviations))
    elif order.strategy != "plain":
        letter = next(k for k, v in _STRATEGIES.items() if v == order.strategy)
        limit = "" if order.limit is None else f",{order.limit}"
        parts.append(f"s{letter}{order.seed}.{order.length}{limit}")
    parts += [f"r{attempt.seed}"] if attempt.seed else []
    parts += ["u"] if attempt.fairness == "none" else []
    parts += ["l"] if attempt.latency else []
    if attempt.chaos is not None:
        modes = "".join(str(MODES.index(mode)) for mode in attempt.chaos.modes)
        parts.append(f"c{modes}.{attempt.chaos.heal:g},{attempt.chaos.finish:g}".replace("+", ""))
    return "-".join(["yy1", *parts])


def fits(attempt: Attempt) -> bool:
    """Whether the token of ``attempt`` is short enough to be shown."""
    return len(encode(attempt)) <= LONGEST


def _injection(injection: Injection) -> str:
    if injection.kind == "cancel":
        name = "" if injection.what == "root" else f".{injection.what.replace('-', '~')}"
        return f"{injection.when[0]}{injection.at}{name}"
    if injection.kind == "fault":
        return f"f{injection.at}.{injection.what}"
    return f"x{injection.at}" + (f".{injection.what}" if injection.what != "0" else "")


def decode(token: str) -> Attempt:
    """The attempt that ``token`` stands for.

    Raises:
        BadToken: it is not one of ours, or cut short.
    """
    head, *parts = token.strip().split("-")
    if head != "yy1":
        raise BadToken(f"{token!r} is not a replay token; tokens begin with 'yy1'")
    attempt = Attempt()
    try:
        for part in parts:
            attempt = _apply(attempt, part)
    except (ValueError, IndexError, KeyError, AttributeError):
        raise BadToken(f"{token!r} cannot be read; copy the whole line of the report") from None
    return attempt


def _apply(attempt: Attempt, part: str) -> Attempt:
    if part.startswith("d"):
        pairs = tuple((int(n), int(v)) for n, _, v in (p.partition(".") for p in part[1:].split(",")))
        return attrs.evolve(attempt, order=attrs.evolve(attempt.order, deviations=pairs))
    letter, value, rest = cast("re.Match[str]", _PART.match(part)).groups()
    match letter:
        case "a" | "b":
            name = (rest or "root").replace("~", "-")
            made = Injection("cancel", int(value), name, "after" if letter == "a" else "before")
        case "f":
            made = Injection("fault", int(value), MODES[MODES.index(rest)])
        case "x":
            made = Injection("crash", int(value), rest or "0")
        case "s":
            length, _, limit = rest.partition(",")
            kind = _STRATEGIES[value[0]]
            order = Order(kind, int(value[1:]), int(limit) if limit else None, int(length))
            return attrs.evolve(attempt, order=order)
        case "r":
            return attrs.evolve(attempt, seed=int(value))
        case "u":
            return attrs.evolve(attempt, fairness="none")
        case "l":
            return attrs.evolve(attempt, latency=True)
        case _:
            return attrs.evolve(attempt, chaos=_chaos(value, rest))
    return attrs.evolve(attempt, injections=(*attempt.injections, made))


def _chaos(modes: str, rest: str) -> Chaos:
    heal, _, finish = rest.rpartition(",")
    chosen: tuple[Mode, ...] = tuple(MODES[int(m)] for m in modes)
    return Chaos(float(heal), chosen, float(finish))

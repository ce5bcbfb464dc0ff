"""An attempt as one short line, to be replayed anywhere: `yy2-a17.turn-b23-f3.hang-d4.1,9.2-hx3k9a`.

Readable on purpose: ``a17`` cancels after step 17, ``b23`` before step 23 (a name follows unless it is the root),
``f3.hang`` breaks the third port call, ``x12`` crashes after a step and ``k5`` in a file call, ``d`` lists the
decisions that were not 0, ``s`` is a strategy with its seed, ``r`` the seed of `Simulation.random`, ``u`` unfair
schedules, ``l`` latency, ``c`` chaos. ``h`` is a fingerprint of the course that the program took up to what is
injected: on another course a replay says so. Tokens of the first format (``yy1``) have none. Always under 100
characters.
"""

from __future__ import annotations

import base64
import hashlib
import linecache
import re
from functools import cache
from typing import cast

import attrs

from ..engine.attempt import Attempt, Chaos, Injection, Order, Run
from ..engine.faults import MODES, Mode
from ..process.locations import Location

LONGEST = 99
_MARK = 5
"""Characters of a fingerprint."""
_STRATEGIES = {"w": "walk", "p": "pct2", "q": "pct3", "o": "pos"}
_PART = re.compile(r"([abfxkdsrulc])([^.]*)(?:\.(.*))?$")
_DEF = re.compile(r"\s*(async\s+)?def\s+(\w+)")


class BadToken(ValueError):
    """A line that names no attempt."""


def token_of(run: Run) -> str:
    """The line for the attempt of ``run``, with the fingerprint of its course."""
    return encode(run.attempt, fingerprint(run))


def encode(attempt: Attempt, mark: str = "") -> str:
    """The shortest line for ``attempt``; seeds take the place of decisions if those would be too many."""
    order = attempt.order
    parts = [_injection(i) for i in attempt.injections]
    if order.deviations:
        parts.append("d" + ",".join(f"{n}.{v}" for n, v in order.deviations))
    if order.strategy != "plain":
        letter = next((k for k, v in _STRATEGIES.items() if v == order.strategy), f"n{order.strategy[3:]}")
        limit = "" if order.limit is None else f",{order.limit}"
        parts.append(f"s{letter}{order.seed}.{order.length}{limit}")
    parts += [f"r{attempt.seed}"] if attempt.seed else []
    parts += ["u"] if attempt.fairness == "none" else []
    parts += ["l"] if attempt.latency else []
    if attempt.chaos is not None:
        modes = "".join(str(MODES.index(mode)) for mode in attempt.chaos.modes)
        parts.append(f"c{modes}.{attempt.chaos.heal:g},{attempt.chaos.finish:g}".replace("+", ""))
    return "-".join(["yy2", *parts, *([f"h{mark}"] if mark else [])])


def fits(attempt: Attempt) -> bool:
    """Whether the token of ``attempt`` is short enough to be shown."""
    return len(encode(attempt, "h" * _MARK)) <= LONGEST


def fingerprint(run: Run) -> str:
    """A few characters over the course of ``run`` up to the last thing that its token says; none if it says nothing.

    A course is made of tasks, functions and the text of the lines at which they wait, not of line numbers: an edit
    elsewhere in the file changes nothing. Of a decision it also holds between how many it was made, and the plain
    arguments of the task that was chosen: without them another order of a set would look the same.
    """
    first, order = run.crashed or run, run.attempt.order
    if not run.attempt.injections and not order.deviations and order.strategy == "plain":
        return ""
    if order.strategy != "plain" or first.not_reached or len(first.decided) < len(order.deviations):
        last = len(first.steps)
    else:
        moments = [moment for moment, _ in first.decided.values()]
        for number, (moment, _, _) in zip(first.fired, first.fired_at, strict=True):
            injection = first.attempt.injections[number]
            after = injection.kind != "fault" and injection.when == "after"
            moments.append(moment if after else moment - 1)
        last = max(moments, default=0)
    digest = hashlib.blake2b(digest_size=4)
    for step in first.steps[:last]:
        digest.update(f"{first.label(step.task)} {step.location.function} {text_of(step.location)}\n".encode())
    for number, injection in enumerate(first.attempt.injections):
        called = str(first.calls[injection.at - 1]) if injection.kind == "fault" and number in first.fired else ""
        digest.update(f"{injection.kind} {called} {number in first.fired}\n".encode())
    for number, (_, words) in first.decided.items():
        digest.update(f"{number} {words}\n".encode())
    return base64.b32encode(digest.digest()).decode().lower()[:_MARK]


@cache
def text_of(location: Location) -> str:
    """The source of ``location``, and which of the equal lines of its function it is."""
    lines = linecache.getlines(location.file) if location.file else []
    if not 0 < location.line <= len(lines):
        return ""
    text, same = lines[location.line - 1].strip(), 0
    name = location.function.rpartition(".")[2]
    for line in reversed(lines[: location.line - 1]):
        found = _DEF.match(line)
        if found is not None and found.group(2) == name:
            break
        same += line.strip() == text
    return f"{text} #{same}"


def _injection(injection: Injection) -> str:
    if injection.kind == "cancel":
        name = "" if injection.what == "root" else f".{injection.what.replace('-', '~')}"
        return f"{injection.when[0]}{injection.at}{name}"
    if injection.kind == "fault":
        return f"f{injection.at}.{injection.what}"
    letter = "k" if injection.when == "during" else "x"
    return f"{letter}{injection.at}" + (f".{injection.what}" if injection.what != "0" else "")


def decode(token: str) -> Attempt:
    """The attempt that ``token`` stands for.

    Raises:
        BadToken: it is not one of ours, or cut short.
    """
    __tracebackhide__ = True
    head, *parts = token.strip().split("-")
    if head not in ("yy1", "yy2"):
        raise BadToken(f"{token!r} is not a replay token; tokens begin with 'yy2' (older ones with 'yy1')")
    attempt = Attempt()
    try:
        for part in parts:
            if not part.startswith("h"):
                attempt = _apply(attempt, part)
    except (ValueError, IndexError, KeyError, AttributeError):
        raise BadToken(f"{token!r} cannot be read; copy the whole line of the report") from None
    says_something = attempt.injections or attempt.order != Order()
    if head == "yy2" and says_something and len(mark_of(token) or "") != _MARK:
        raise BadToken(f"{token!r} is cut short: its fingerprint is missing; copy the whole line of the report")
    return attempt


def bare(token: str) -> str:
    """``token`` without its fingerprint, which changes with the text of the program."""
    return token.rpartition("-h")[0] or token


def mark_of(token: str) -> str | None:
    """The fingerprint that ``token`` carries; None in the first format, which had none."""
    head, *parts = token.strip().split("-")
    if head == "yy1":
        return None
    return parts[-1][1:] if parts and parts[-1].startswith("h") else ""


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
        case "x" | "k":
            made = Injection("crash", int(value), rest or "0", "after" if letter == "x" else "during")
        case "s":
            length, _, limit = rest.partition(",")
            kind, seed = (f"pct{value[1]}", value[2:]) if value[0] == "n" else (_STRATEGIES[value[0]], value[1:])
            end = int(limit) if limit else None
            order = attrs.evolve(attempt.order, strategy=kind, seed=int(seed), limit=end, length=int(length))
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

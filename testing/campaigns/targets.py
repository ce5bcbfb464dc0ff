"""What a campaign is pointed at: a scenario that can be run, and the moments at which something can be done to it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, Literal

from ..engine.attempt import Run

When = Literal["after", "before"]
Point = tuple[int, When]


def check_scenario(scenario: Any) -> None:
    """Raise `TypeError`, in words, unless ``scenario`` is an async function whose one parameter is the simulation."""
    name = getattr(scenario, "__name__", repr(scenario))
    if isinstance(scenario, type) or not callable(scenario):
        raise TypeError(f"a scenario is 'async def name(sim)'; {name} is {_kind(scenario)}")
    if inspect.isgeneratorfunction(scenario) or inspect.isasyncgenfunction(scenario):
        raise TypeError(f"a scenario is 'async def name(sim)'; {name} is a generator")
    plain = inspect.isfunction(scenario) or inspect.ismethod(scenario)
    if plain and not inspect.iscoroutinefunction(scenario) and not _returns_awaitable(scenario):
        raise TypeError(f"a scenario is 'async def name(sim)'; {name} is a plain function")
    wanted = [
        p.name
        for p in inspect.signature(scenario).parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    ]
    if len(wanted) > 1 or (wanted and not _takes_one(scenario)):
        raise TypeError(
            f"a scenario is 'async def name(sim)'; {name} takes {' and '.join(map(repr, wanted))}: "
            "bind the others, with functools.partial for example"
        )


def _takes_one(scenario: Any) -> bool:
    return any(
        p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)
        for p in inspect.signature(scenario).parameters.values()
    )


def _kind(found: object) -> str:
    return "a class" if isinstance(found, type) else f"a {type(found).__name__}"


def _returns_awaitable(scenario: Any) -> bool:
    """A lambda or a plain function may pass on a coroutine; only one without annotation can be believed."""
    return inspect.isfunction(scenario) and (
        scenario.__name__ == "<lambda>" or scenario.__annotations__.get("return", "") not in ("", None, "None")
    )


def every_point(plain: Run) -> Iterator[Point]:
    """Moments between two steps: after each, and before one if something else happened in between."""
    between = set(plain.boundaries)
    for step in range(1, len(plain.steps) + 1):
        if step in between:
            yield step, "before"
        yield step, "after"

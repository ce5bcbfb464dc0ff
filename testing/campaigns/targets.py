"""What a campaign is pointed at: a scenario that can be run, and the moments at which something can be done to it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, Literal

from ..engine.attempt import Run
from ..engine.simulation import Scenario, Simulation
from ..workers.references import module_of

When = Literal["after", "before"]
Point = tuple[int, When]


SWEPT = "__swept__"
"""Attribute of a decorated test: the async function behind it."""


def as_scenario(found: Any) -> Scenario:
    """``found`` as an async function of the simulation.

    A text names one (`load_scenario`), so that it can be sent to another process. The test behind ``@swept`` is taken
    out of it, and a function without a parameter is called without one: its asserts are all that it promises.

    Raises:
        TypeError: it is something else, in words.
    """
    if isinstance(found, str):
        return load_scenario(found)
    scenario = getattr(found, SWEPT, found)
    name = getattr(scenario, "__name__", repr(scenario))
    if isinstance(scenario, type) or not callable(scenario):
        raise TypeError(f"a scenario is 'async def name(sim)'; {name} is {_kind(scenario)}")
    if inspect.isgeneratorfunction(scenario) or inspect.isasyncgenfunction(scenario):
        raise TypeError(f"a scenario is 'async def name(sim)'; {name} is a generator")
    plain = inspect.isroutine(scenario)
    if plain and not inspect.iscoroutinefunction(scenario) and not _returns_awaitable(scenario):
        raise TypeError(f"a scenario is 'async def name(sim)'; {name} is a plain function")
    parameters = inspect.signature(scenario).parameters.values()
    wanted = [p.name for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if len(wanted) > 1 or (wanted and not _takes_one(scenario)):
        raise TypeError(
            f"a scenario is 'async def name(sim)'; {name} takes {' and '.join(map(repr, wanted))}: "
            "bind the others, with functools.partial for example"
        )
    return scenario if _takes_one(scenario) else _without_parameter(scenario)


def _without_parameter(scenario: Any) -> Scenario:
    async def call(_: Simulation) -> None:
        await scenario()

    call.__name__, call.__qualname__ = scenario.__name__, getattr(scenario, "__qualname__", scenario.__name__)
    return call


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


def load_scenario(name: str) -> Scenario:
    """The scenario that ``module:function``, ``path/to/file.py:function`` or ``...:Class.method`` names.

    Raises:
        ValueError: there is no such module or function, in words for the person who typed it.
    """
    module, _, function = name.partition(":")
    if not module or not function:
        raise ValueError(f"{name!r} is not 'module:function', for example 'shop.scenarios:checkout'")
    try:
        found: Any = module_of(module)
        for part in function.split("."):
            # A method of a test class wants an instance, which pytest would make without arguments as well.
            found = getattr(found() if isinstance(found, type) else found, part)
    except (ImportError, AttributeError, TypeError) as error:
        raise ValueError(f"cannot find {name!r}: {error}") from error
    try:
        scenario = as_scenario(found)
    except TypeError as error:
        raise ValueError(f"{name!r}: {error}") from error
    _check_parameter(name, getattr(found, SWEPT, found))
    return scenario


def _check_parameter(name: str, found: Any) -> None:
    """A test's only parameter may be a fixture, which nobody fills here."""
    for parameter in list(inspect.signature(found).parameters.values())[:1]:
        annotated = "Simulation" in str(parameter.annotation)
        if parameter.name not in _SIMULATION and not annotated:
            raise ValueError(
                f"{name!r}: a scenario is 'async def name(sim)'; this takes {parameter.name!r}, and no fixtures are "
                "made here: write a scenario that makes what it needs"
            )


_SIMULATION = ("sim", "simulation", "s", "_")

"""Turn ``async def test_x(sim, fixtures...)`` into an ordinary pytest test that sweeps or explores.

    @swept(cancel="turn", points="every-location")
    async def test_a_cancelled_turn_leaves_a_sendable_history(sim, tmp_path): ...

    YOUYOU_REPLAY=test_a_cancelled_turn...:yy2-a17.turn-hx3k9a pytest test_x.py      # one run, with its trace

Needs no plugin: the test is a plain function, so pytest-trio and others leave it alone, and fixtures are given as
usual. They are made once; what they hold is shared by all runs, so a fixture that changes belongs into the body.
"""

from __future__ import annotations

import inspect
import os
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, overload

import attrs

from ..engine.simulation import Simulation
from ..report.findings import trace_lines
from ..report.report import Report
from ..workers.references import CannotTravel, reference_to
from .exploration import explore
from .replays import replay
from .sweeps import sweep
from .targets import SWEPT

ENVIRONMENT = "YOUYOU_REPLAY"
"""Name of the environment variable with a token to replay, behind the name of its test and a colon."""
AsyncTest = Callable[..., Any]


@attrs.define
class Defaults:
    """What the pytest plugin was told for all tests."""

    workers: Executor | None = None
    """Does the runs of tests without fixtures; those of others stay in this process."""


defaults: Defaults = Defaults()
_REPLAYED = ("cancel", "error", "crash", "allow", "allow_leaks", "swallowed", "max_steps", "max_seconds")


@overload
def swept(test: AsyncTest, /) -> Callable[..., None]: ...
@overload
def swept(**options: Any) -> Callable[[AsyncTest], Callable[..., None]]: ...
def swept(test: AsyncTest | None = None, /, **options: Any) -> Any:
    """Cancel the test at every step, or whatever else the options of `sweep` say; one failure, with the smallest case.

    With ``schedules=`` and ``cancel=None`` alone it is `sweep` still; use ``explored`` for orders.
    """
    return _decorate(sweep, test, options)


@overload
def explored(test: AsyncTest, /) -> Callable[..., None]: ...
@overload
def explored(**options: Any) -> Callable[[AsyncTest], Callable[..., None]]: ...
def explored(test: AsyncTest | None = None, /, **options: Any) -> Any:
    """Run the test under many orders of its tasks; takes the options of `explore`."""
    return _decorate(explore, test, options)


def _decorate(engine: Callable[..., Report], test: AsyncTest | None, options: dict[str, Any]) -> Any:
    inspect.signature(engine).bind(None, **options)
    if test is not None:
        return _ordinary(engine, test, options)
    return lambda function: _ordinary(engine, function, options)


def _ordinary(engine: Callable[..., Report], test: AsyncTest, options: dict[str, Any]) -> Callable[..., None]:
    if not inspect.iscoroutinefunction(test):
        raise TypeError(f"{test.__name__} must be an 'async def' whose first parameter is the simulation")
    whole = inspect.signature(test)
    parameters = list(whole.parameters.values())
    method = bool(parameters) and parameters[0].name == "self"
    given = parameters[:1] + parameters[2:] if method else parameters[1:]
    signature = inspect.Signature(given)
    simulation = parameters[1 if method else 0].name if len(parameters) > method else None

    def run(*args: Any, **fixtures: Any) -> None:
        __tracebackhide__ = True
        # By name or by position, as the caller likes it: pytest, Hypothesis, a person.
        others = signature.bind(*args, **fixtures).arguments

        async def scenario(sim: Simulation) -> None:
            bound = inspect.BoundArguments(whole, OrderedDict())
            for name in whole.parameters:
                if name == simulation:
                    bound.arguments[name] = sim
                elif name in others:
                    bound.arguments[name] = others[name]
            await test(*bound.args, **bound.kwargs)

        scenario.__qualname__ = test.__qualname__
        if defaults.workers is not None and not given and "workers" not in options and _travels(run):
            _judge(engine, run, {**options, "workers": defaults.workers})
        else:
            _judge(engine, scenario, options)

    run.__signature__ = signature  # type: ignore[attr-defined]  # pytest reads it to find the fixtures
    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(run, name, getattr(test, name))
    run.__dict__.update(test.__dict__)
    setattr(run, SWEPT, test)
    return run


def _travels(test: Any) -> bool:
    """Whether other processes can find it."""
    try:
        reference_to(test)
    except CannotTravel:
        return False
    return True


def _judge(engine: Callable[..., Report], scenario: Any, options: dict[str, Any]) -> None:
    __tracebackhide__ = True
    name = scenario.__qualname__.rpartition(".")[2]
    token = _token_for(name)
    if token:
        report = replay(scenario, token, **{k: v for k, v in options.items() if k in _REPLAYED})
        print("\n".join(trace_lines(report.baseline)))
    else:
        report = engine(scenario, **options)
    if not report.ok:
        # The line to copy names the test: other tests of the same pytest run as usual.
        raise AssertionError(str(report).replace(f"{ENVIRONMENT}=yy", f"{ENVIRONMENT}={name}:yy"))


def _token_for(name: str) -> str | None:
    """The token to replay in the test ``name``: one without a name is forevery test."""
    wanted, colon, token = os.environ.get(ENVIRONMENT, "").rpartition(":")
    return token if token and (not colon or wanted == name) else None

"""``pytest --youyou-sweep``: after an async test has passed, run it again with a cancellation after every step.

The test's own assertions are the oracle, together with what the kit finds by itself: other exceptions than the
cancellation, deadlocks, endless loops, leaks. A test that cannot be swept is counted with its reason and passes.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from ..campaigns.profiles import profile
from ..campaigns.replays import replay
from ..campaigns.sweeps import sweep
from ..engine.simulation import Simulation
from ..report.report import Report
from ..report.tokens import BadToken
from .fresh_fixtures import NotSwept, coroutine_function_of, fresh_fixtures, refuse_unsuitable
from .seen_failures import SeenFailures

_FIGURES = "youyou sweep"
TARGET = "test"
"""Name of the scope around the test."""


class SweepFailed(Exception):
    """What the sweep of a test found; its text is the report."""


class SweepsOfTests:
    """The plugin, while ``--youyou-sweep`` is given."""

    def __init__(self, config: pytest.Config) -> None:
        given = config.getoption("youyou_budget")
        settings = profile(config.getoption("youyou_profile") or "ci")
        self._budget: float = settings.test_budget if given is None else given
        folder = config.getoption("youyou_html")
        self._pages = Path(folder) if folder else None
        self._seen = SeenFailures(config.rootpath / ".youyou")
        self._simulation: Simulation | None = None
        self._swept = self._runs = self._failed = 0
        self._left_out: Counter[str] = Counter()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Put the scope that is cancelled around the test itself, inside of what pytest-trio puts around it.

        A cancellation of all that pytest-trio runs would strike its fixtures' tasks as well: to it that is a fault.
        """
        if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj):
            item.obj = self._scoped(item.obj)
        return (yield)

    def _scoped(self, test: Any) -> Any:
        @functools.wraps(test)
        async def scoped(*args: Any, **kwargs: Any) -> None:
            if self._simulation is None:
                await test(*args, **kwargs)
            else:
                with self._simulation.scope(TARGET):
                    await test(*args, **kwargs)

        return scoped

    @pytest.hookimpl(wrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
        """Call the test as usual; then, if it has passed, sweep it."""
        function = coroutine_function_of(pyfuncitem)
        result = yield
        if function is not None:
            self._sweep(pyfuncitem, function)
        return result

    def _sweep(self, item: pytest.Function, function: Any) -> None:
        try:
            refuse_unsuitable(item)
            report = self._report(item, function)
        except NotSwept as reason:
            self._left_out[str(reason)] += 1
            return
        self._swept += 1
        self._runs += report.runs
        self._seen.keep(item.nodeid, [failure.token for failure in report.failures])
        if not report.ok:
            self._failed += 1
            self._write_page(item, report)
            raise SweepFailed(str(report))

    def _report(self, item: pytest.Function, function: Any) -> Report:
        async def scenario(sim: Simulation) -> None:
            self._simulation = sim
            try:
                with fresh_fixtures(item) as arguments:
                    await function(**arguments)
            finally:
                self._simulation = None

        scenario.__qualname__ = item.name
        for token in self._seen.tokens(item.nodeid):
            try:
                again = replay(scenario, token)
            except (BadToken, ValueError):
                continue  # of an older test or an older kit: the sweep decides
            # A token whose program has changed shows nothing; the sweep decides then.
            if again.failures:
                return again
        report = sweep(scenario, cancel=TARGET, budget=self._budget)
        if report.baseline.failures:
            first = report.baseline.failures[0]
            raise NotSwept(f"its undisturbed run in the simulation fails ({first.kind}: {first.message[:80]})")
        if not report.ok and not report.failures:
            raise NotSwept("it waits for nothing that a cancellation would stop")
        return report

    def _write_page(self, item: pytest.Function, report: Report) -> None:
        if self._pages is not None:
            self._pages.mkdir(parents=True, exist_ok=True)
            name = re.sub(r"[^\w.-]+", "-", item.nodeid).strip("-")[-120:]
            (self._pages / f"{name}.html").write_text(report.to_html(), "utf-8")

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """In a process of pytest-xdist: hand the figures to the one that prints them."""
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[_FIGURES] = [self._swept, self._runs, self._failed, dict(self._left_out)]

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A process of pytest-xdist has ended."""
        swept, runs, failed, left_out = getattr(node, "workeroutput", {}).get(_FIGURES, (0, 0, 0, {}))
        self._swept, self._runs, self._failed = self._swept + swept, self._runs + runs, self._failed + failed
        self._left_out.update(left_out)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say what was swept, and what was not and why."""
        left_out = sum(self._left_out.values())
        terminalreporter.write_sep("-", "youyou sweep")
        terminalreporter.write_line(
            f"tests swept: {self._swept} (runs: {self._runs}), failed: {self._failed}, not swept: {left_out}"
        )
        for reason, count in self._left_out.most_common(10):
            terminalreporter.write_line(f"  not swept: {count}, because {reason}")

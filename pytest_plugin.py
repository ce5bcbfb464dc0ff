"""The pytest plugin: ``pytest --youyou-sweep`` cancels existing async tests at every step (semantics 15).

    pytest --youyou-sweep                       # every async test that passes is then swept
    pytest --youyou-sweep --youyou-budget 2     # at most two seconds for each
    pytest --youyou-sweep --youyou-html out     # a page for each test that failed
    pytest --youyou-workers 8                   # @swept and @explored tests use eight processes

Pytest loads this module in every run, so it imports nothing of the kit until one of its options is given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("youyou", "sweeps of async tests")
    group.addoption(
        "--youyou-sweep",
        action="store_true",
        help="after an async test has passed, run it again with a cancellation after every step",
    )
    group.addoption(
        "--youyou-budget",
        type=float,
        metavar="SECONDS",
        help="real seconds for the sweep of one test (default: 5)",
    )
    group.addoption(
        "--youyou-profile",
        choices=["quick", "ci", "nightly"],
        help="how long a test is swept, where --youyou-budget does not say it: 1, 5 or 60 seconds",
    )
    group.addoption(
        "--youyou-workers",
        type=int,
        metavar="N",
        help="processes that do the runs of @swept and @explored tests without fixtures",
    )
    group.addoption("--youyou-html", metavar="DIR", help="write a page into DIR for each test whose sweep failed")


def pytest_configure(config: pytest.Config) -> None:
    """Load the sweeps and the workers where they were asked for."""
    if config.getoption("youyou_sweep"):
        from .testing.suite.sweeps_of_tests import SweepsOfTests

        config.pluginmanager.register(SweepsOfTests(config), "youyou-sweep")
    if config.getoption("youyou_workers"):
        from .testing.suite.workers_of_tests import WorkersOfTests

        config.pluginmanager.register(WorkersOfTests(config.getoption("youyou_workers")), "youyou-workers")

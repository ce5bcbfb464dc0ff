"""An async test as a scenario that can be run many times, its function-scoped fixtures made anew for each run.

    function = coroutine_function_of(item)          # None: not an async test
    with fresh_fixtures(item) as arguments:         # once for each run
        await function(**arguments)

Fixtures of a wider scope (class, module, session) are made once and shared by all runs, as they are by tests.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any
from zlib import crc32

import pytest
import trio
import trio.testing


class NotSwept(Exception):
    """The test cannot be swept; the text says why."""


def refuse_unsuitable(item: pytest.Function) -> None:
    """Raise `NotSwept` with the reason why ``item`` cannot be swept, if there is one.

    Raises:
        NotSwept: the test drives its loop in a way that the simulation would replace.
    """
    if hasattr(item.obj, "hypothesis"):
        raise NotSwept("Hypothesis runs it; put @given over @swept instead")
    if item.get_closest_marker("anyio") is not None and item.get_closest_marker("trio") is None:
        _refuse_of_anyio(item)
    for name, value in item.funcargs.items():
        if isinstance(value, trio.testing.MockClock) and value.autojump_threshold != 0:
            raise NotSwept(f"fixture {name} drives the clock by hand")
        if isinstance(value, trio.abc.Instrument):
            raise NotSwept(f"fixture {name} is a Trio instrument")


def _refuse_of_anyio(item: pytest.Function) -> None:
    """A test that anyio's own plugin runs is an async function as any other, if Trio is the backend."""
    backend = item.funcargs.get("anyio_backend")
    name = backend[0] if isinstance(backend, tuple) else backend
    if name != "trio":
        raise NotSwept("its backend is asyncio")
    for definition in item._request._fixture_defs.values():
        if inspect.iscoroutinefunction(definition.func) or inspect.isasyncgenfunction(definition.func):
            # They live in a loop of anyio's that outlives the test.
            raise NotSwept("anyio runs its async fixtures")


def coroutine_function_of(item: pytest.Function) -> Callable[..., Awaitable[object]] | None:
    """The async function behind ``item``: of pytest-trio, with its async fixtures, or the bare test."""
    function = item.obj
    if getattr(function, "_trio_test_runner_wrapped", False):
        # pytest-trio wraps the test for the call: inside the wrapper, one that opens a loop, is the async function
        # that makes async fixtures and then calls the test.
        return function.__wrapped__  # type: ignore[no-any-return]
    return function if inspect.iscoroutinefunction(function) else None


@contextmanager
def fresh_fixtures(item: pytest.Function) -> Iterator[dict[str, Any]]:
    """The arguments of ``item``, function-scoped fixtures made anew; torn down at the end. Sync."""
    finish_fixtures(item)
    item._initrequest()
    item._request._fillfixtures()
    try:
        arguments = {name: item.funcargs[name] for name in item._fixtureinfo.argnames}
        with _one_order(arguments):
            yield arguments
    finally:
        finish_fixtures(item)


class _InsertionOrdered(dict[object, None]):
    """A set for pytest-trio that is walked in the order in which it was filled."""

    def add(self, value: object) -> None:
        self[value] = None


@contextmanager
def _one_order(arguments: dict[str, Any]) -> Iterator[None]:
    """Let pytest-trio start and await its fixtures in one order.

    It keeps them, and their events, in sets that are ordered by memory address: no two runs would be the same.
    """
    fixtures = list(_async_fixtures(arguments))
    if not fixtures:
        yield
        return
    kind: Any = type(fixtures[0])
    for fixture in fixtures:
        fixture.user_done_events = _InsertionOrdered()
    before = kind.__hash__
    kind.__hash__ = _hash_of_name
    try:
        yield
    finally:
        kind.__hash__ = before


def _hash_of_name(fixture: Any) -> int:
    return crc32(fixture.name.encode())


def _async_fixtures(arguments: dict[str, Any]) -> Iterator[Any]:
    for value in arguments.values():
        if hasattr(value, "register_and_collect_dependencies"):
            yield value
            yield from _async_fixtures(value._pytest_kwargs)


def finish_fixtures(item: pytest.Function) -> None:
    """Tear the function-scoped fixtures of ``item`` down, the newest first."""
    # Fixtures of pytest's own (tmp_path) drop what pytest left for them on the item, and find it missing the next time.
    left = dict(item.stash._storage)
    for definition in reversed(list(item._request._fixture_defs.values())):
        if definition.scope == "function":
            definition.finish(item._request)
    item.stash._storage.update(left)

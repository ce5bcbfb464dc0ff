"""One PostgreSQL server for all tests of this folder, and a schema of its own for each storage."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from .server import Server, binary, running_server

_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """The server."""
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'youyou[postgres]'")
    if binary("postgres") is None or binary("initdb") is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    with running_server() as server:
        yield server


@pytest.fixture
def new_schema() -> Callable[[], str]:
    """Names of schemas that nobody has used."""
    return lambda: f"t{next(_numbers)}"

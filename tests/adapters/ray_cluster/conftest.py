"""One Ray for all tests of this folder, started by the adapter itself, on this machine."""

from __future__ import annotations

import os
import signal

import pytest
import trio


@pytest.fixture(scope="session")
def ray():
    """The engine."""
    package = pytest.importorskip("ray", reason="Ray is not installed: pip install 'youyou[ray]'")
    from youyou.adapters.ray.engine import start, stop

    from . import app

    # The hosts cannot import modules of the tests by name.
    package.cloudpickle.register_pickle_by_value(app)
    started = trio.run(start, "local")
    assert started
    yield package
    trio.run(stop)


@pytest.fixture
def storage(tmp_path):
    """Sessions in a file that all hosts open."""
    from youyou.adapters.sqlite import SQLiteSessionStorage

    return SQLiteSessionStorage(tmp_path / "sessions.db")


@pytest.fixture
def strike():
    """Send a signal to the process of a host; one that was stopped goes on in the end, so that it can be ended."""
    stopped = []

    async def send(session, number):
        from youyou.adapters.ray.engine import result_of

        pid = await result_of(session._host.actor.pid.remote())
        os.kill(pid, number)
        if number == signal.SIGSTOP:
            stopped.append(pid)
        return pid

    yield send
    for pid in stopped:
        try:
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            continue

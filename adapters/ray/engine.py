"""Ray itself: started for a cluster, and waited for from Trio.

started = await start("local")              # or joins the cluster at an address
value = await result_of(actor.method.remote())
await stop()
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import Any

import trio

from ...messages.errors import InvalidConfig
from ..extras import import_extra

# A raylet that is not up in 30 seconds kills itself, with words that speak of a bug in Ray: a busy machine is slower.
_PATIENCE = {"RAY_raylet_start_wait_time_s": "120", "RAY_agent_register_timeout_ms": "120000"}
NAMESPACE = "youyou"
"""Ray's namespace in which hosts have their names."""


def require_ray() -> Any:
    """The package.

    Raises:
        InvalidConfig: it is not installed.
    """
    for name, value in {**_PATIENCE, "RAY_USAGE_STATS_ENABLED": "0"}.items():
        # Before the import, which reads them; what is set already was meant.
        os.environ.setdefault(name, value)
    return import_extra("ray")


class _Engine:
    """Ray, started from a thread that lives as long as Ray does.

    Not from one of Trio's: Ray's servers ask the kernel to be killed when their parent ends, which for Linux is the
    *thread* that began them (PR_SET_PDEATHSIG), and Trio ends a thread that had nothing to do for ten seconds. Not in
    the main thread: starting takes seconds, and there Ray would take over SIGTERM.
    """

    def __init__(self, options: dict[str, object]) -> None:
        self._options = options
        self._begun, self._leave = threading.Event(), threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="ray", daemon=True)

    def _run(self) -> None:
        ray = require_ray()
        try:
            ray.init(**self._options)
        except Exception as error:
            self._failure = error
            return
        finally:
            self._begun.set()
        self._leave.wait()
        ray.shutdown()

    def start(self) -> None:
        """Blocks until Ray is there.

        Raises:
            Exception: what Ray raised.
        """
        self._thread.start()
        self._begun.wait()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Blocks until Ray has ended."""
        self._leave.set()
        self._thread.join()


_engine: _Engine | None = None


async def start(address: str) -> bool:
    """Start Ray here (``"local"``), or join a cluster, unless this process is part of one already.

    Cancellation: a checkpoint; Ray's own start cannot be cut, and is waited for.

    Returns:
        Whether it was started, and so must be stopped.

    Raises:
        InvalidConfig: there is no cluster at that address, or Ray did not start.
    """
    global _engine
    ray = require_ray()
    if ray.is_initialized():
        await trio.lowlevel.checkpoint()
        return False
    options: dict[str, object] = {"address": address, "log_to_driver": False, "logging_level": "error"}
    if address == "local":
        # Said in so many words: a bare init() joins whatever cluster it finds on the machine.
        options["include_dashboard"] = False
    engine = _Engine(options)
    try:
        await trio.to_thread.run_sync(engine.start)
    except Exception as error:
        said = " ".join(str(error).split())[:500]
        raise InvalidConfig(
            f"Ray could not be started or joined at {address!r}: {said}; pass address='local' to start one here, or "
            "the host:port of a head that runs"
        ) from error
    _engine = engine
    return True


async def stop() -> None:
    """Leave the cluster, and end it if it was started here. Never ``ray stop``, which ends all of the machine."""
    global _engine
    engine, _engine = _engine, None
    if engine is None:
        await trio.lowlevel.checkpoint()
    else:
        await trio.to_thread.run_sync(engine.stop)


async def result_of(ref: Any) -> Any:
    """Wait for a reference of Ray.

    Cancellation: a checkpoint. If it raises `trio.Cancelled`, Ray was asked to cancel the call.

    Raises:
        Exception: what the call raised, or Ray.
    """
    token = trio.lowlevel.current_trio_token()
    done = trio.Event()

    def wake(_: object) -> None:
        # From a thread of Ray's, maybe after the run has ended.
        with suppress(trio.RunFinishedError):
            token.run_sync_soon(done.set)

    future = ref.future()
    future.add_done_callback(wake)
    try:
        await done.wait()
    except trio.Cancelled:
        require_ray().cancel(ref)
        raise
    return future.result()

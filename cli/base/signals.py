"""Ctrl-C, SIGTERM and a closed terminal, as one thing that a command can ask: is it to stop?

The library installs no signal handlers; this is how a host does it (semantics 6.2). SIGTERM and SIGHUP cancel the
command's scope: the agent ends its turn, writes the record and is gone within its grace. Ctrl-C does what the
command says it does at the moment, and the same as SIGTERM where it says nothing.

    def main(stops):  ...
    code = run(main)                        # 128 + signal if one ended it
    with stops.ctrl_c(lambda: turn.cancel()): ...
"""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager

import attrs
import trio

SIGPIPE = 13
_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


@attrs.define(eq=False)
class Stops:
    """The signals that asked the command to stop. Every method is sync and idempotent."""

    scope: trio.CancelScope = attrs.Factory(trio.CancelScope)
    signal: int | None = None
    _on_ctrl_c: list[Callable[[], object]] = attrs.Factory(list)

    def stop(self, signum: int) -> None:
        """End the command as this signal does. The first one names the exit code."""
        if self.signal is None:
            self.signal = signum
        self.scope.cancel(reason=f"signal {signum}")

    def interrupt(self) -> None:
        """Ctrl-C was pressed."""
        if self._on_ctrl_c:
            self._on_ctrl_c[-1]()
        else:
            self.stop(signal.SIGINT)

    @contextmanager
    def ctrl_c(self, action: Callable[[], object]) -> Iterator[None]:
        """Within the block Ctrl-C does this instead."""
        self._on_ctrl_c.append(action)
        try:
            yield
        finally:
            self._on_ctrl_c.remove(action)


def run(main: Callable[[Stops], Awaitable[int]]) -> int:
    """Run ``main`` under Trio with signals received; its exit code, or 128 + the signal that ended it."""
    return trio.run(_supervised, main)


async def _supervised(main: Callable[[Stops], Awaitable[int]]) -> int:
    stops = Stops()
    error: Exception | None = None
    code = 0
    with trio.open_signal_receiver(*_SIGNALS) as received, stops.scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_listen, received, stops)
            try:
                code = await main(stops)
            except Exception as exc:
                # Kept out of the nursery, which would wrap it in a group.
                error = exc
            nursery.cancel_scope.cancel(reason="the command is over")
    if error is not None:
        raise error
    return code if stops.signal is None else 128 + stops.signal


async def _listen(received: AsyncIterator[int], stops: Stops) -> None:
    async for signum in received:
        if signum == signal.SIGINT:
            stops.interrupt()
        else:
            stops.stop(signum)

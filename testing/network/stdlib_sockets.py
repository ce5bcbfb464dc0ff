"""Servers that make their listening sockets with the standard library and hand them to Trio, as hypercorn does.

In a simulated run with a network, `socket.socket.bind`, ``listen`` and ``getsockname`` only note what was asked for,
and `trio.socket.from_stdlib_socket` gives the simulated socket that it stands for. Every other thread, and a run
without a network, gets the real ones.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import trio

from .network import Network
from .sockets import SimulatedSocket


class _Current(threading.local):
    network: Network | None = None


_current = _Current()
_standing_in: WeakKeyDictionary[socket.socket, SimulatedSocket] = WeakKeyDictionary()
_installing = threading.Lock()
_installed = False


def use(network: Network | None) -> None:
    """Let the sockets that this thread makes belong to ``network``; None: to the real one again. Sync."""
    _current.network = network
    if network is not None:
        _install()


def _install() -> None:
    global _installed
    with _installing:
        if not _installed:
            _installed = True
            for name in ("bind", "listen", "getsockname"):
                setattr(socket.socket, name, _dispatching(name, getattr(socket.socket, name)))
            trio_socket: Any = trio.socket
            trio_socket.from_stdlib_socket = _from_stdlib(trio_socket.from_stdlib_socket)


def _dispatching(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: socket.socket, *args: Any) -> Any:
        if _current.network is None or self.type != socket.SOCK_STREAM or self.family not in _INTERNET:
            return real(self, *args)
        return getattr(_stand_in(_current.network, self), "bind_now" if name == "bind" else name)(*args)

    method.__name__ = name
    return method


_INTERNET = (socket.AF_INET, socket.AF_INET6)


def _stand_in(network: Network, real: socket.socket) -> SimulatedSocket:
    if real not in _standing_in:
        _standing_in[real] = SimulatedSocket(network, real.family)
    return _standing_in[real]


def _from_stdlib(original: Callable[[socket.socket], Any]) -> Callable[[socket.socket], Any]:
    def from_stdlib_socket(sock: socket.socket) -> Any:
        """As Trio's own; in a simulated network, the simulated socket that ``sock`` stands for."""
        if _current.network is None or sock not in _standing_in:
            return original(sock)
        sock.close()
        return _standing_in[sock]

    return from_stdlib_socket

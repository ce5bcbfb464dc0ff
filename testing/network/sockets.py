"""TCP sockets of Trio's own type that live in a `Network`, and the names of its hosts.

They behave as Linux sockets under Trio do, as far as a program can tell: half-close, reset, refusal, a backlog, and
`trio.ClosedResourceError` for a task that waits on a socket that is closed meanwhile.
"""

from __future__ import annotations

import errno
import os
import socket
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import trio

from .network import Address, Endpoint, Network
from .pipe import Pipe

CONNECT_TIMEOUT = 127.0
"""Seconds after which Linux gives up to connect to a host that does not answer."""


class SimulatedSocket(trio.socket.SocketType):
    """A TCP socket in memory."""

    def __init__(self, network: Network, family: int, proto: int = 0) -> None:
        super().__init__()
        self._network, self._family, self._proto = network, socket.AddressFamily(family), proto
        self.host: str = network.here
        self.peer_host: str | None = None
        self._local: Address | None = None
        self._remote: Address | None = None
        self._incoming: Pipe | None = None
        self._outgoing: Pipe | None = None
        self._backlog: deque[SimulatedSocket] | None = None
        self._backlog_size = 0
        self._options: dict[tuple[int, int], Any] = {}
        self._closed = False
        self._waiting = trio.lowlevel.ParkingLot()
        self._scopes: dict[trio.CancelScope, None] = {}
        network.sockets.append(self)

    # What every socket has.

    @property
    def family(self) -> socket.AddressFamily:
        return self._family

    @property
    def type(self) -> socket.SocketKind:
        return socket.SOCK_STREAM

    @property
    def proto(self) -> int:
        return self._proto

    @property
    def did_shutdown_SHUT_WR(self) -> bool:
        return self._outgoing is not None and self._outgoing.finished

    def fileno(self) -> int:
        return -1 if self._closed else 1_000_000 + id(self) % 1_000_000

    def getsockname(self) -> Address:
        self._check_open()
        return self._local or ("0.0.0.0", 0)

    def getpeername(self) -> Address:
        self._check_open()
        if self._remote is None:
            raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))
        return self._remote

    def getsockopt(self, level: int, optname: int, buflen: int | None = None) -> Any:
        self._check_open()
        if (level, optname) == (socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            return int(self._backlog is not None)
        return self._options.get((level, optname), 0 if buflen is None else b"")

    def setsockopt(self, level: int, optname: int, value: Any, optlen: int | None = None) -> None:
        self._check_open()
        self._options[level, optname] = value

    def get_inheritable(self) -> bool:
        return False

    def set_inheritable(self, inheritable: bool) -> None:
        self._check_open()

    def setblocking(self, flag: bool) -> None:
        """Accepted and ignored: what is Trio's is never blocking."""

    def detach(self) -> int:
        raise OSError(errno.EOPNOTSUPP, "a socket of a simulated network has no file descriptor to hand over")

    def __enter__(self) -> SimulatedSocket:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._closed else "listening" if self._backlog is not None else "open"
        return f"<simulated socket {state} on {self.host}, {self._local} -> {self._remote}>"

    # Its life.

    async def bind(self, address: Any) -> None:
        await trio.lowlevel.checkpoint()
        self.bind_now(address)

    def bind_now(self, address: Any) -> None:
        """The same at once. Sync."""
        self._check_open()
        name, port = address[:2]
        if port and self._network.listener(self.host, self._family, port) is not None:
            raise OSError(errno.EADDRINUSE, f"port {port} of host {self.host} is in use already")
        self._local = (self._network.address_of(name or "0.0.0.0"), port or self._network.free_port())

    def listen(self, backlog: int = 128) -> None:
        self._check_open()
        if self._local is None:
            self._local = ("0.0.0.0", self._network.free_port())
        if self._backlog is None:
            self._backlog = deque()
            self._network.listen(self, self._family, self._local[1])
        self._backlog_size = max(1, backlog)

    def shutdown(self, flag: int) -> None:
        self._check_open()
        if self._outgoing is None:
            raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))
        if flag in (socket.SHUT_WR, socket.SHUT_RDWR):
            self._outgoing.finish()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._outgoing is not None:
            self._outgoing.finish()
        if self._incoming is not None:
            # Unread bytes at a close are answered with a reset, as Linux does.
            if self._incoming.unread and self._outgoing is not None:
                self._outgoing.tear_down()
            self._incoming.abandoned = True
            self._incoming.wake()
        for waiting in self._backlog or ():
            waiting.tear_down()
        self._network.forget(self)
        for scope in self._scopes:
            scope.cancel(reason="the socket was closed")

    def tear_down(self) -> None:
        """Reset the connection, at both ends. Sync."""
        for pipe in (self._incoming, self._outgoing):
            if pipe is not None:
                pipe.tear_down()

    def wake(self) -> None:
        """Let waiting tasks look again."""
        self._waiting.unpark_all()
        for pipe in (self._incoming, self._outgoing):
            if pipe is not None:
                pipe.wake()

    # What takes time.

    async def connect(self, address: Any) -> None:
        name, port = address[:2]

        async def invoke() -> None:
            await self._connect(name, port)

        try:
            await self._call("connect", invoke)
        except BaseException:
            # Trio closes a socket whose connect was given up: its state is unknown.
            self.close()
            raise

    async def _connect(self, name: str, port: int) -> None:
        network = self._network
        address = network.address_of(name)
        host = network.host_at(address)
        with trio.move_on_after(CONNECT_TIMEOUT):
            if host is None:
                await trio.sleep_forever()
            there, back = network.path(self.host, host), network.path(host, self.host)
            await trio.sleep(there.latency + back.latency)
            while not (there.up and back.up) or _is_full(network.listener(host, self._family, port)):
                await network.wait_changed()
            listener = network.listener(host, self._family, port)
            if listener is None:
                raise ConnectionRefusedError(errno.ECONNREFUSED, f"nobody listens on port {port} of host {host}")
            self._meet(listener, host, (address, port))
            return
        raise TimeoutError(errno.ETIMEDOUT, f"host {name!r} does not answer")

    def _meet(self, listener: Endpoint, host: str, remote: Address) -> None:
        network = self._network
        self._local = self._local or (network.host(self.host), network.free_port())
        self._remote, self.peer_host = remote, host
        peer = SimulatedSocket(network, self._family)
        peer.host, peer.peer_host = host, self.host
        peer._local, peer._remote = remote, self._local
        self._outgoing = peer._incoming = Pipe(network.path(self.host, host))
        self._incoming = peer._outgoing = Pipe(network.path(host, self.host))
        listener.admit(peer)

    @property
    def full(self) -> bool:
        """Whether the backlog has no room for another connection."""
        return self._backlog is not None and len(self._backlog) >= self._backlog_size

    def admit(self, peer: SimulatedSocket) -> None:
        """Put the other end of a new connection into the backlog. Sync."""
        assert self._backlog is not None
        self._backlog.append(peer)
        self.wake()

    async def accept(self) -> tuple[trio.socket.SocketType, Any]:
        made: trio.socket.SocketType = await self._call("accept", self._accept)
        return made, made.getpeername()

    async def _accept(self) -> trio.socket.SocketType:
        if self._backlog is None:
            raise OSError(errno.EINVAL, "accept() on a socket that does not listen")
        while not self._backlog:
            await self._waiting.park()
        made = self._backlog.popleft()
        self._network.wake()
        return made

    async def recv(self, buflen: int, flags: int = 0, /) -> bytes:
        async def invoke() -> bytes:
            pipe = self._connected(self._incoming)
            await pipe.wait_readable()
            return self._piece(pipe, buflen)

        data: bytes = await self._call("receive", invoke)
        return data

    def _piece(self, pipe: Pipe, limit: int) -> bytes:
        """What one read returns: all that is there, or, if an exploration wants it, one byte or half of it."""
        ready = min(limit, pipe.unread)
        sizes = (limit, 1, max(1, ready // 2)) if ready > 1 else (limit,)
        return pipe.read(sizes[self._network.choose(len(sizes))])

    async def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        view = memoryview(buffer).cast("B")
        data = await self.recv(nbytes or len(view))
        view[: len(data)] = data
        return len(data)

    async def send(self, data: Any, flags: int = 0, /) -> int:
        async def invoke() -> int:
            pipe = self._connected(self._outgoing)
            if pipe.finished:
                raise BrokenPipeError(errno.EPIPE, "this side was shut down for sending")
            await pipe.wait_writable()
            return pipe.write(bytes(data))

        sent: int = await self._call("send", invoke)
        return sent

    async def wait_writable(self) -> None:
        await trio.lowlevel.checkpoint()
        await self._while_open(self._connected(self._outgoing).wait_writable)

    def is_readable(self) -> bool:
        return self._incoming is not None and self._incoming.readable

    # How calls are made.

    def _check_open(self) -> None:
        if self._closed:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    def _connected(self, pipe: Pipe | None) -> Pipe:
        if pipe is None:
            raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))
        return pipe

    async def _call(self, method: str, invoke: Callable[[], Awaitable[Any]]) -> Any:
        """One call of the port. A fault that is injected into it resets the connection, as a real one would."""
        self._check_open()
        await trio.lowlevel.checkpoint_if_cancelled()
        try:
            result = await self._while_open(lambda: self._network.perform(method, invoke))
        except self._network.broken as fault:
            self.tear_down()
            raise ConnectionResetError(errno.ECONNRESET, str(fault)) from fault
        # As Trio does: what has happened is not undone by a cancellation, and others get a turn.
        await trio.lowlevel.cancel_shielded_checkpoint()
        return result

    async def _while_open(self, call: Callable[[], Awaitable[Any]]) -> Any:
        with trio.CancelScope() as scope:
            self._scopes[scope] = None
            try:
                return await call()
            finally:
                del self._scopes[scope]
        raise trio.ClosedResourceError("another task closed this socket")


def _is_full(listener: Endpoint | None) -> bool:
    return listener is not None and listener.full


class SimulatedSockets(trio.abc.SocketFactory):
    """Makes the sockets of a `Network`."""

    def __init__(self, network: Network) -> None:
        self._network = network

    def socket(self, family: Any = None, type: Any = None, proto: Any = None) -> SimulatedSocket:
        """A TCP socket on the host of the current task.

        Raises:
            OSError: another kind of socket was asked for.
        """
        family = socket.AF_INET if family is None else family
        if family not in (socket.AF_INET, socket.AF_INET6) or type not in (None, -1, socket.SOCK_STREAM):
            raise OSError(
                errno.EPROTONOSUPPORT, "the simulated network has TCP only; for UDP see trio.testing's FakeNet"
            )
        return SimulatedSocket(self._network, family, 0 if proto in (None, -1) else proto)


class SimulatedNames(trio.abc.HostnameResolver):
    """Knows the hosts of a `Network` by name."""

    def __init__(self, network: Network) -> None:
        self._network = network

    async def getaddrinfo(
        self, host: Any, port: Any, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0
    ) -> list[tuple[Any, Any, int, str, Any]]:
        """The one address of a host. A call of the port ``network``."""

        async def invoke() -> str:
            await trio.lowlevel.checkpoint()
            name = host.decode("ascii") if isinstance(host, bytes) else host
            if name is None:
                return "0.0.0.0" if flags & socket.AI_PASSIVE else "127.0.0.1"
            return self._network.address_of(name)

        address = await self._network.perform("getaddrinfo", invoke)
        number = int(port) if str(port or 0).isdigit() else {"http": 80, "https": 443}.get(_text(port))
        if number is None:
            raise socket.gaierror(socket.EAI_SERVICE, f"unknown service {port!r}; pass the number of a port")
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, number))]

    async def getnameinfo(self, sockaddr: Any, flags: int) -> tuple[str, str]:
        """The name of the host at an address."""
        await trio.lowlevel.checkpoint()
        address, port = sockaddr[:2]
        return self._network.host_at(address) or address, str(port)


def _text(value: Any) -> str:
    return value.decode("ascii", "replace") if isinstance(value, bytes) else str(value)


def install(network: Network) -> None:
    """Give the current Trio run the sockets and names of ``network``. Ends with the run."""
    trio.socket.set_custom_socket_factory(SimulatedSockets(network))
    trio.socket.set_custom_hostname_resolver(SimulatedNames(network))

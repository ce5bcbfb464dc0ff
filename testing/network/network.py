"""The network of a simulated program: hosts by name, links between them, and what may go wrong on the way.

    async def scenario(sim):
        net = sim.network()
        with net.on("db"):                                  # tasks that are started in here live on this host
            nursery.start_soon(serve_tcp, handler, 5432)
        stream = await trio.open_tcp_stream("db", 5432)     # from the host that the scenario lives on
        net.partition("app", "db")                          # nothing gets through ...
        net.heal()                                          # ... until now; nothing was lost on an open connection

Sockets, listeners and names are Trio's own, in memory. Every connect, accept, send and receive is a call of the port
``network``, which sweeps and explorations can break.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

import attrs
import trio

HOME = "app"
"""The host that a scenario lives on unless it says otherwise."""
Address = tuple[str, int]
_here: ContextVar[str] = ContextVar("youyou_host", default=HOME)


class Endpoint(Protocol):
    """What the network knows of a socket."""

    host: str
    peer_host: str | None

    def wake(self) -> None:
        """Look again: something has changed."""

    def tear_down(self) -> None:
        """Reset the connection."""

    @property
    def full(self) -> bool:
        """Whether its backlog has no room for another connection."""

    def admit(self, peer: Any) -> None:
        """Put the other end of a new connection into the backlog."""


@attrs.define(eq=False)
class Path:
    """One direction between two hosts."""

    latency: float = 0.0
    """Virtual seconds that each segment takes."""
    bytes_per_second: float = float("inf")
    """How fast bytes leave; those behind wait for those before them."""
    up: bool = True
    """Whether anything gets through."""
    _free_at: float = 0.0

    def arrival(self, size: int) -> float:
        """When ``size`` bytes that are sent now arrive."""
        self._free_at = max(self._free_at, trio.current_time()) + size / self.bytes_per_second
        return self._free_at + self.latency


@attrs.define(eq=False)
class Network:
    """Hosts, links and open sockets of one simulated run. Made by `Simulation.network`."""

    _perform: Callable[[str, str, Callable[[], Awaitable[Any]]], Awaitable[Any]]
    _choose: Callable[[int], int]
    broken: type[Exception]
    """What a call raises that an injection broke."""
    sockets: list[Endpoint] = attrs.field(factory=list)
    """Every socket that is open, in the order in which they were made."""
    _addresses: dict[str, str] = attrs.field(factory=dict)
    _listeners: dict[tuple[str, int, int], Endpoint] = attrs.field(factory=dict)
    _paths: dict[tuple[str, str], Path] = attrs.field(factory=dict)
    _black_holes: set[str] = attrs.field(factory=set)
    _next_port: int = 49_152
    _changed: trio.lowlevel.ParkingLot = attrs.field(factory=trio.lowlevel.ParkingLot)

    # What a scenario arranges.

    def host(self, name: str) -> str:
        """The address of host ``name``, made known by the first call. Sync."""
        if name not in self._addresses:
            self._addresses[name] = f"10.0.0.{len(self._addresses) + 1}"
        return self._addresses[name]

    @contextmanager
    def on(self, name: str) -> Iterator[None]:
        """What runs in here, and every task started in here, lives on host ``name``."""
        self.host(name)
        token = _here.set(name)
        try:
            yield
        finally:
            _here.reset(token)

    def link(self, one: str, other: str, *, latency: float = 0.0, bytes_per_second: float = float("inf")) -> None:
        """Make the link between two hosts slow, in both directions, for what is sent from now on. Sync.

        Args:
            latency: virtual seconds that each segment takes.
            bytes_per_second: how fast bytes leave a host.
        """
        if latency < 0 or bytes_per_second <= 0:
            raise ValueError("latency must be at least 0 and bytes_per_second more than 0")
        for path in (self.path(one, other), self.path(other, one)):
            path.latency, path.bytes_per_second = latency, bytes_per_second

    def partition(self, one: str, other: str) -> None:
        """Let nothing through between two hosts, until `heal`. Sync. Open connections wait; new ones time out."""
        self.path(one, other).up = self.path(other, one).up = False

    def black_hole(self, name: str) -> None:
        """Let host ``name`` answer nothing and nobody, until `heal`. Sync."""
        self.host(name)
        self._black_holes.add(name)
        for (sender, receiver), path in self._paths.items():
            if name in (sender, receiver):
                path.up = False

    def heal(self) -> None:
        """End every partition and black hole; what was sent meanwhile on open connections arrives now. Sync."""
        self._black_holes.clear()
        for path in self._paths.values():
            path.up = True
        self.wake()

    def reset(self, name: str) -> None:
        """Reset every connection of host ``name``, as a crash of its machine does. Sync. Its listeners stay."""
        for made in tuple(self.sockets):
            if name in (made.host, made.peer_host):
                made.tear_down()

    # What sockets ask.

    @property
    def here(self) -> str:
        """The host that the current task lives on."""
        return _here.get()

    def path(self, sender: str, receiver: str) -> Path:
        """The direction from one host to another."""
        self.host(sender)
        self.host(receiver)
        if (sender, receiver) not in self._paths:
            up = sender not in self._black_holes and receiver not in self._black_holes
            self._paths[sender, receiver] = Path(up=up or sender == receiver)
        return self._paths[sender, receiver]

    def address_of(self, name: str) -> str:
        """The address that ``name`` stands for, seen from the current host.

        Raises:
            socket.gaierror: no host has this name.
        """
        if name in ("localhost", ""):
            return "127.0.0.1"
        try:
            return str(ipaddress.ip_address(name))
        except ValueError:
            pass
        if name not in self._addresses:
            known = ", ".join(sorted(self._addresses)) or "none"
            raise socket.gaierror(
                socket.EAI_NONAME, f"the simulated network has no host {name!r}; it knows: {known} (see Network.host)"
            )
        return self._addresses[name]

    def host_at(self, address: str) -> str | None:
        """The host that answers at ``address``, seen from the current host."""
        if address.startswith("127.") or address in ("0.0.0.0", "::", "::1", self.host(self.here)):
            return self.here
        return next((name for name, known in self._addresses.items() if known == address), None)

    def free_port(self) -> int:
        """A port that nobody has used yet."""
        self._next_port += 1
        return self._next_port

    def listener(self, host: str, family: int, port: int) -> Endpoint | None:
        """The socket of this family that listens on this port of this host."""
        return self._listeners.get((host, family, port))

    def listen(self, made: Endpoint, family: int, port: int) -> None:
        """``made`` listens from now on."""
        self._listeners[made.host, family, port] = made
        self.wake()

    def forget(self, made: Endpoint) -> None:
        """``made`` is closed."""
        if made in self.sockets:
            self.sockets.remove(made)
        for key in [key for key, listener in self._listeners.items() if listener is made]:
            del self._listeners[key]

    def choose(self, options: int) -> int:
        """A decision that an exploration varies; 0 in a sweep."""
        return self._choose(options)

    async def perform(self, method: str, invoke: Callable[[], Awaitable[Any]]) -> Any:
        """Make one call of the port ``network``."""
        return await self._perform("network", method, invoke)

    async def wait_changed(self) -> None:
        """Wait until a link came up or somebody listens. A checkpoint."""
        await self._changed.park()

    def wake(self) -> None:
        """Let tasks that wait for a link or a listener look again."""
        self._changed.unpark_all()
        for made in self.sockets:
            made.wake()

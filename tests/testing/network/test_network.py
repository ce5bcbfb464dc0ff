"""The in-memory network, as a program that uses Trio's sockets sees it."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable

import pytest
import trio
from youyou.testing import Simulation, explore, sweep


def run(scenario: Callable[[Simulation], object]) -> None:
    """One undisturbed run; what it asserts must hold."""
    sweep(scenario, cancel=None).assert_ok()


async def echo(stream: trio.SocketStream) -> None:
    """Send back what comes, until the end."""
    async with stream:
        async for data in stream:
            await stream.send_all(data)


def test_a_server_is_found_by_the_name_of_its_host():
    """`trio.serve_tcp` on one host, `trio.open_tcp_stream` from another; both see each other's address."""

    async def scenario(sim: Simulation) -> None:
        net = sim.network()
        async with trio.open_nursery() as nursery:
            with net.on("db"):
                await nursery.start(trio.serve_tcp, echo, 5432)
            stream = await trio.open_tcp_stream("db", 5432)
            async with stream:
                assert (net.host("db"), 5432) == stream.socket.getpeername()
                await stream.send_all(b"hello")
                assert b"hello" == await stream.receive_some()
            nursery.cancel_scope.cancel()
        assert [] == net.sockets

    run(scenario)


def test_a_half_close_is_an_end_and_the_other_half_still_works():
    """`send_eof` ends one direction only."""

    async def answer_at_the_end(stream: trio.SocketStream) -> None:
        parts = [part async for part in stream]
        await stream.send_all(b"".join(parts).upper())
        await stream.aclose()

    async def scenario(sim: Simulation) -> None:
        sim.network()
        async with trio.open_nursery() as nursery:
            await nursery.start(trio.serve_tcp, answer_at_the_end, 80)
            async with await trio.open_tcp_stream("localhost", 80) as stream:
                await stream.send_all(b"a")
                await stream.send_all(b"b")
                await stream.send_eof()
                assert [b"AB"] == [part async for part in stream]
            nursery.cancel_scope.cancel()

    run(scenario)


def test_nobody_listens():
    """A connect to a closed port is refused at once, and one to an unknown name tells which names there are."""

    async def scenario(sim: Simulation) -> None:
        sim.network().host("db")
        with pytest.raises(OSError, match="all attempts to connect to db:1 failed") as refused:
            await trio.open_tcp_stream("db", 1)
        assert "nobody listens on port 1 of host db" in repr(refused.value.__cause__)
        with pytest.raises(socket.gaierror, match="no host 'bd'; it knows: app, db"):
            await trio.open_tcp_stream("bd", 1)

    run(scenario)


def test_a_partition_holds_bytes_back_until_it_heals():
    """An open connection loses nothing; a new one times out as Linux would."""

    async def scenario(sim: Simulation) -> None:
        net = sim.network()
        async with trio.open_nursery() as nursery:
            with net.on("db"):
                await nursery.start(trio.serve_tcp, echo, 5432)
            async with await trio.open_tcp_stream("db", 5432) as stream:
                net.partition("app", "db")
                await stream.send_all(b"held")
                with trio.move_on_after(3600) as waiting:
                    await stream.receive_some()
                assert waiting.cancelled_caught
                with pytest.raises(OSError, match="all attempts"):
                    await trio.open_tcp_stream("db", 5432)
                net.heal()
                assert b"held" == await stream.receive_some()
            nursery.cancel_scope.cancel()

    run(scenario)


def test_a_reset_is_an_error_at_both_ends():
    """What waits and what comes later both fail with Trio's own exception."""

    async def scenario(sim: Simulation) -> None:
        net = sim.network()
        ends: list[str] = []

        async def reader(stream: trio.SocketStream) -> None:
            try:
                await stream.receive_some()
            except trio.BrokenResourceError:
                ends.append("server")

        async with trio.open_nursery() as nursery:
            with net.on("db"):
                await nursery.start(trio.serve_tcp, reader, 5432)
            stream = await trio.open_tcp_stream("db", 5432)
            await trio.sleep(1)
            net.reset("db")
            with pytest.raises(trio.BrokenResourceError):
                await stream.send_all(b"x")
            await trio.sleep(1)
            assert ["server"] == ends
            await stream.aclose()
            nursery.cancel_scope.cancel()

    run(scenario)


def test_a_slow_link_takes_its_time():
    """A round trip of two latencies to connect, and one more with the bytes."""

    async def scenario(sim: Simulation) -> None:
        net = sim.network()
        net.link("app", "db", latency=0.5, bytes_per_second=1000)
        async with trio.open_nursery() as nursery:
            with net.on("db"):
                await nursery.start(trio.serve_tcp, echo, 5432)
            stream = await trio.open_tcp_stream("db", 5432)
            connected = sim.now
            await stream.send_all(bytes(1000))
            await stream.receive_some(1000)
            assert (1.0, 4.0) == (connected, sim.now)
            await stream.aclose()
            nursery.cancel_scope.cancel()

    run(scenario)


def test_a_sender_waits_for_a_slow_reader():
    """The window is bounded: what does not fit waits in the sender."""

    async def scenario(sim: Simulation) -> None:
        sim.network()
        sent = trio.Event()

        async def late(stream: trio.SocketStream) -> None:
            await trio.sleep(100)
            assert not sent.is_set()
            assert 200_000 == sum([len(part) async for part in stream])

        async with trio.open_nursery() as nursery:
            await nursery.start(trio.serve_tcp, late, 80)
            async with await trio.open_tcp_stream("localhost", 80) as stream:
                await stream.send_all(bytes(200_000))
                sent.set()
            await trio.sleep(1)
            nursery.cancel_scope.cancel()

    run(scenario)


def test_closing_a_socket_wakes_whoever_waits_on_it():
    """With `trio.ClosedResourceError`, as Trio does."""

    async def scenario(sim: Simulation) -> None:
        sim.network()
        async with trio.open_nursery() as nursery:
            await nursery.start(trio.serve_tcp, echo, 80)
            stream = await trio.open_tcp_stream("localhost", 80)

            async def reader() -> None:
                with pytest.raises(trio.ClosedResourceError):
                    await stream.receive_some()

            nursery.start_soon(reader)
            await trio.sleep(1)
            await stream.aclose()
            with pytest.raises(trio.ClosedResourceError):
                await stream.send_all(b"x")
            await trio.sleep(1)
            nursery.cancel_scope.cancel()

    run(scenario)


def test_a_full_backlog_makes_connections_wait():
    """One that waits is accepted when there is room."""

    async def scenario(sim: Simulation) -> None:
        sim.network()
        listener = trio.socket.socket()
        await listener.bind(("0.0.0.0", 80))
        listener.listen(1)
        times: list[float] = []

        async def client() -> None:
            made = trio.socket.socket()
            with made:
                await made.connect(("127.0.0.1", 80))
                times.append(sim.now)
                await trio.sleep(100)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(client)
            nursery.start_soon(client)
            await trio.sleep(10)
            first, _ = await listener.accept()
            await trio.sleep(10)
            second, _ = await listener.accept()
            first.close()
            second.close()
        listener.close()
        assert [0, 10] == times

    run(scenario)


def test_a_port_is_taken_once():
    """A second bind is refused, and works once the first socket is closed."""

    async def scenario(sim: Simulation) -> None:
        sim.network()
        [one] = await trio.open_tcp_listeners(80, host="127.0.0.1")
        with pytest.raises(OSError) as taken:
            await trio.open_tcp_listeners(80, host="127.0.0.1")
        assert errno.EADDRINUSE == taken.value.errno
        await one.aclose()
        [two] = await trio.open_tcp_listeners(80, host="127.0.0.1")
        await two.aclose()

    run(scenario)


async def exchange(sim: Simulation) -> None:
    """A request and an answer that a client reads in whatever pieces come."""
    net = sim.network()
    async with trio.open_nursery() as nursery:
        with net.on("db"):
            await nursery.start(trio.serve_tcp, echo, 5432)
        with sim.scope("client"):
            async with await trio.open_tcp_stream("db", 5432) as stream:
                await stream.send_all(b"abcdef")
                data = b""
                while len(data) < 6:
                    part = await stream.receive_some()
                    if not part:
                        break
                    data += part
                sim.note(f"read {data!r}")
        nursery.cancel_scope.cancel()
    assert [] == net.sockets, "a socket was left open"


def test_a_cancel_anywhere_leaves_no_socket():
    """Trio's own client and server, cancelled after every step."""
    report = sweep(exchange, cancel="client")
    report.assert_ok()
    assert report.delivered > 10


def test_each_call_of_the_network_can_be_broken():
    """As a reset connection, an error that programs know; nothing stays open."""

    async def tolerant(sim: Simulation) -> None:
        with trio.move_on_after(1000):
            try:
                await exchange(sim)
            except* (OSError, trio.BrokenResourceError):
                pass

    report = sweep(tolerant, cancel=None, faults=("raise_before", "raise_after", "hang", "slow"), ports=("network",))
    report.assert_ok()
    methods = {call.method for call in report.baseline.calls}
    assert {"getaddrinfo", "connect", "accept", "send", "receive"} == methods


def test_an_exploration_splits_what_is_read():
    """A program that takes one read for one message is found out."""

    async def careless(sim: Simulation) -> None:
        sim.network()
        async with trio.open_nursery() as nursery:
            await nursery.start(trio.serve_tcp, echo, 80)
            async with await trio.open_tcp_stream("localhost", 80) as stream:
                await stream.send_all(b"abcdef")
                assert b"abcdef" == await stream.receive_some()
            nursery.cancel_scope.cancel()

    assert not explore(careless, schedules=50).ok
    explore(exchange, schedules=50).assert_ok()

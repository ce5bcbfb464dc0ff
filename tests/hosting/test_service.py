"""Two web processes behind a balancer, over one database (semantics 16; the recipe of docs/scaling.md)."""

from __future__ import annotations

import http.client
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from pathlib import Path

import attrs
import pytest
import trio

pytestmark = pytest.mark.long
SECONDS = 60.0


def free_port():
    """One that nobody listens on now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextmanager
def process(database):
    """A process of the service that answers, and its port."""
    port = free_port()
    with subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("service.py")), str(database), str(port)]
    ) as it:
        try:
            end = time.monotonic() + SECONDS
            while True:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                assert it.poll() is None
                assert time.monotonic() < end
                time.sleep(0.05)
            yield it, port
        finally:
            it.kill()


@pytest.fixture
def service(tmp_path):
    """Two processes."""
    with process(tmp_path / "sessions.db") as one, process(tmp_path / "sessions.db") as two:
        yield one, two


class Balancer:
    """Sends each connection to the next process that takes it."""

    def __init__(self, ports):
        self.ports = list(ports)

    async def handle(self, client):
        """One connection."""
        self.ports.append(self.ports.pop(0))
        for port in self.ports:
            try:
                server = await trio.open_tcp_stream("127.0.0.1", port)
            except OSError:
                continue
            async with client, server, trio.open_nursery() as nursery:
                nursery.start_soon(self.copy, client, server)
                await self.copy(server, client)
                nursery.cancel_scope.cancel()
            return

    async def copy(self, source, target):
        """Until one of them is closed."""
        try:
            async for data in source:
                await target.send_all(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return

    async def run(self, task_status):
        """Listen."""
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        task_status.started(listeners[0].socket.getsockname()[1])
        await trio.serve_listeners(self.handle, listeners)


@attrs.frozen
class Answer:
    """What came back."""

    port: int
    session: str
    lines: list[str]


def _post(port, path, body, on_line):
    """Ask in a thread; follows redirects, as browsers do."""
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
        with closing(connection):
            connection.request("POST", path, body)
            response = connection.getresponse()
            if response.status == 307:
                port = int(response.headers["location"].split("/")[2].split(":")[1])
                continue
            lines = []
            for line in response:
                lines.append(line.decode())
                on_line()
            assert response.status == 200, (response.status, response.headers.items())
            return Answer(port, response.headers["session"], lines)


async def post(port, path, body="hi", on_line=lambda: None):
    """Ask, with a bound."""
    with trio.fail_after(SECONDS):
        return await trio.to_thread.run_sync(_post, port, path, body, on_line)


async def test_a_session_is_found_from_whichever_process_a_request_reaches(service, nursery):
    """Six requests reach either process in turn; the one that has the session answers all of them."""
    front = await nursery.start(Balancer([port for _, port in service]).run)
    first = await post(front, "/new")
    answers = [await post(front, f"/{first.session}") for _ in range(6)]
    assert [f"message {n}\n" for n in range(1, 8)] == [*first.lines, *(line for a in answers for line in a.lines)]
    assert 2 == len({answer.port for answer in answers})


async def test_a_process_that_is_told_to_end_cuts_its_turn_and_hands_its_sessions_on(service, nursery):
    """The reader has the end of its stream, the process ends well, and the other one goes on."""
    (one, port), (_, other) = service
    begun = trio.Event()
    token = trio.lowlevel.current_trio_token()
    answers = []

    async def read():
        answers.append(await post(port, "/new", "slow 1000", lambda: token.run_sync_soon(begun.set)))

    async with trio.open_nursery() as reading:
        reading.start_soon(read)
        await begun.wait()
        one.send_signal(signal.SIGTERM)
    status = await trio.to_thread.run_sync(one.wait, SECONDS)
    after = await post(other, f"/{answers[0].session}")
    assert (0, ["message 2\n"], "0\n") == (status, after.lines, answers[0].lines[0])
    assert 1000 > len(answers[0].lines)


async def test_a_process_that_is_killed_leaves_its_sessions_to_the_other(service, nursery):
    """Nothing that was acknowledged is lost."""
    (one, port), others = service
    front = await nursery.start(Balancer([port, others[1]]).run)
    first = await post(port, "/new")
    one.kill()
    await trio.to_thread.run_sync(one.wait, SECONDS)
    after = await post(front, f"/{first.session}")
    assert (["message 1\n"], ["message 2\n"]) == (first.lines, after.lines)

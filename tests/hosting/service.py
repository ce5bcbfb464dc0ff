"""A web service of one process, as docs/scaling.md has it: Hypercorn, a session host, and SIGTERM that drains.

    python service.py DATABASE PORT

``POST /SESSION`` (``new`` for a new one) has a turn with the body and answers with lines of text as they are said; the
header ``session`` names the session. A session that another process has is answered with 307 to that process.
"""

from __future__ import annotations

import signal
import sys
from functools import partial

import trio
import youyou
from hypercorn.config import Config
from hypercorn.trio import serve
from youyou.adapters.sqlite import SQLiteSessionStorage
from youyou.hosting import SessionHost


class Counting:
    """Counts the user's messages; "slow N" is N lines of 50 ms each."""

    id = "counting"

    def models(self):
        """One."""
        return [youyou.ModelInfo("counting", "Counting", 1_000_000)]

    async def chat(self, request):
        """Lines."""
        words = youyou.messages.content.text_of(request.messages[-1].content).split()
        for number in range(int(words[1]) if words[0] == "slow" else 0):
            await trio.sleep(0.05)
            yield youyou.TextDelta(f"{number}\n")
        yield youyou.TextDelta(f"message {sum(isinstance(m, youyou.UserMessage) for m in request.messages)}\n")
        yield youyou.Done()


async def application(host, scope, receive, send):
    """The ASGI application."""
    if scope["type"] == "lifespan":
        for _ in range(2):
            await send({"type": f"{(await receive())['type']}.complete"})
        return
    name = scope["path"].strip("/")
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message["body"], message["more_body"]
    begun = False
    try:
        async with (
            host.open(None if name == "new" else name) as session,
            await session.send_message(body.decode()) as turn,
        ):
            headers = [(b"session", session.id.encode())]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            begun = True
            async for event in turn:
                if isinstance(event.payload, youyou.TextDelta):
                    said = event.payload.text.encode()
                    await send({"type": "http.response.body", "body": said, "more_body": True})
    except youyou.SessionTaken as taken:
        status, headers = 307, [(b"location", f"http://{taken.address}{scope['path']}".encode())]
    except youyou.AgentError as error:
        status, headers = 503, [(b"retry-after", b"1"), (b"code", error.code.encode())]
    if not begun:
        await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


async def main(database, port):
    """Until SIGTERM."""
    storage = SQLiteSessionStorage(database)
    settings = youyou.AgentConfig("counting", notices=youyou.Notices.english(), address=f"127.0.0.1:{port}")

    def make_builder():
        builder = youyou.AgentBuilder(settings).register_model_provider(Counting())
        return builder.register_session_storage(storage)

    config = Config()
    config.bind = [f"127.0.0.1:{port}"]
    config.graceful_timeout = 5
    with trio.open_signal_receiver(signal.SIGTERM) as signals:
        async with SessionHost(make_builder) as host:

            async def terminated():
                async for _ in signals:
                    await host.drain(grace=1)
                    return

            await serve(partial(application, host), config, shutdown_trigger=terminated)


if __name__ == "__main__":
    trio.run(main, sys.argv[1], int(sys.argv[2]))

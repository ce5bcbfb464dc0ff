"""Real SDKs against a server in a simulated network whose answer is cut at a byte, or whose calls are broken."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import attrs
import pytest
import trio
import youyou
from youyou.adapters.anthropic import AnthropicProvider
from youyou.adapters.openai import OpenAIProvider
from youyou.testing import Simulation, sweep

ARGUMENTS = '{"n": 12, "text": "twelve"}'
FINISHED = youyou.TurnStatus.COMPLETED, youyou.TurnStatus.FAILED


def named(kind: str, **fields: Any) -> bytes:
    """An event of an API whose events have names."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    """A piece of a chat completion."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    whole = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return f"data: {json.dumps(whole)}\n\n".encode()


def chat_call() -> bytes:
    """Text, then one call in two pieces."""
    begin = {"index": 0, "id": "c1", "type": "function", "function": {"name": "write", "arguments": ARGUMENTS[:9]}}
    rest = {"index": 0, "function": {"arguments": ARGUMENTS[9:]}}
    pieces = [chunk({"content": "Hm"}), chunk({"tool_calls": [begin]}), chunk({"tool_calls": [rest]})]
    return b"".join([*pieces, chunk({}, "tool_calls"), b"data: [DONE]\n\n"])


def chat_text() -> bytes:
    """A final answer."""
    return chunk({"content": "done"}) + chunk({}, "stop") + b"data: [DONE]\n\n"


def responses_call() -> bytes:
    """The same of the Responses API."""
    item = {"type": "function_call", "id": "f1", "call_id": "c1", "name": "write"}
    return b"".join(
        [
            named("response.created", response={"id": "r1", "status": "in_progress", "error": None}),
            named("response.output_text.delta", delta="Hm", item_id="m1", output_index=0, content_index=0),
            named("response.output_item.added", output_index=1, item={**item, "arguments": ""}),
            named("response.function_call_arguments.delta", output_index=1, item_id="f1", delta=ARGUMENTS[:9]),
            named("response.function_call_arguments.delta", output_index=1, item_id="f1", delta=ARGUMENTS[9:]),
            named("response.output_item.done", output_index=1, item={**item, "arguments": ARGUMENTS}),
            named("response.completed", response={"id": "r1", "status": "completed", "error": None}),
        ]
    )


def responses_text() -> bytes:
    """A final answer."""
    text = named("response.output_text.delta", delta="done", item_id="m1", output_index=0, content_index=0)
    return text + named("response.completed", response={"id": "r2", "status": "completed", "error": None})


def messages_call() -> bytes:
    """The same of the Messages API."""
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": USAGE}
    use = {"type": "tool_use", "id": "c1", "name": "write", "input": {}}
    return b"".join(
        [
            named("message_start", message=message),
            named("content_block_start", index=0, content_block={"type": "text", "text": ""}),
            named("content_block_delta", index=0, delta={"type": "text_delta", "text": "Hm"}),
            named("content_block_stop", index=0),
            named("content_block_start", index=1, content_block=use),
            named("content_block_delta", index=1, delta={"type": "input_json_delta", "partial_json": ARGUMENTS[:9]}),
            named("content_block_delta", index=1, delta={"type": "input_json_delta", "partial_json": ARGUMENTS[9:]}),
            named("content_block_stop", index=1),
            named("message_delta", delta={"stop_reason": "tool_use"}, usage=USAGE),
            named("message_stop"),
        ]
    )


USAGE = {"input_tokens": 1, "output_tokens": 1}


def messages_text() -> bytes:
    """A final answer."""
    message = {"id": "n", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": USAGE}
    return b"".join(
        [
            named("message_start", message=message),
            named("content_block_start", index=0, content_block={"type": "text", "text": ""}),
            named("content_block_delta", index=0, delta={"type": "text_delta", "text": "done"}),
            named("content_block_stop", index=0),
            named("message_delta", delta={"stop_reason": "end_turn"}, usage=USAGE),
            named("message_stop"),
        ]
    )


@attrs.frozen
class Api:
    """One API: how its provider is made, and what its server says."""

    provider: Callable[[], youyou.ModelProvider]
    call: Callable[[], bytes]
    text: Callable[[], bytes]


APIS = {
    "chat": Api(lambda: OpenAIProvider(["m"], base_url="http://model/v1", api_key="k"), chat_call, chat_text),
    "responses": Api(
        lambda: OpenAIProvider(["m"], base_url="http://model/v1", api_key="k", api="responses"),
        responses_call,
        responses_text,
    ),
    "messages": Api(
        lambda: AnthropicProvider(["m"], base_url="http://model", api_key="k"), messages_call, messages_text
    ),
}


@attrs.define(eq=False)
class Server:
    """Answers the first request with a call, every other with text; ``cut``: how many bytes of the first get out."""

    api: Api
    cut: int | None = None
    requests: int = 0

    async def __call__(self, stream: trio.SocketStream) -> None:
        """One connection."""
        try:
            async with stream:
                while await self._request(stream):
                    self.requests += 1
                    whole = answer_of(self.api.call() if self.requests == 1 else self.api.text())
                    if self.requests == 1 and self.cut is not None:
                        await stream.send_all(whole[: self.cut])
                        return
                    await stream.send_all(whole)
        except trio.BrokenResourceError:
            pass  # the client went away

    async def _request(self, stream: trio.SocketStream) -> bool:
        data = b""
        while b"\r\n\r\n" not in data:
            part = await stream.receive_some()
            if not part:
                return False
            data += part
        head, _, body = data.partition(b"\r\n\r\n")
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        while len(body) < int(fields[b"content-length"]):
            part = await stream.receive_some()
            if not part:
                return False
            body += part
        return True


def builder_of(api: Api, ran: list[tuple[int, str]]) -> Any:
    """An agent with the real SDK and one tool, which notes what it was asked for."""

    @youyou.tool
    async def write(n: int, text: str) -> str:
        """Write it down."""
        ran.append((n, text))
        return "written"

    # A second attempt would wait, and hide that the first one failed.
    config = youyou.AgentConfig("m", notices=youyou.Notices.english(), retry=youyou.RetryPolicy(attempts=1))
    return youyou.AgentBuilder(config).register_model_provider(api.provider()).register_tool(write)


def answer_of(body: bytes) -> bytes:
    """A whole answer of HTTP."""
    head = f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


def conversation(api: Api, cut: int | None = None, *, broken: bool = False) -> Callable[[Simulation], Any]:
    """Two turns over the network; the first asks for a tool."""

    async def scenario(sim: Simulation) -> None:
        net = sim.network()
        ran: list[tuple[int, str]] = []

        builder = builder_of(api, ran)
        async with trio.open_nursery() as nursery:
            with net.on("model"):
                await nursery.start(trio.serve_tcp, Server(api, cut), 80)
            with sim.scope("agent"):
                async with builder.build() as agent, await agent.new_session() as session:
                    first = await (await session.send_message("go")).result()
                    assert first.status in FINISHED
                    second = await (await session.send_message("and now?")).result()
                    assert second.status is youyou.TurnStatus.COMPLETED or broken, second
            nursery.cancel_scope.cancel()
        assert set(ran) <= {(12, "twelve")}, f"a tool ran with arguments that the model did not finish: {ran}"
        # Where the server's accept was broken, the server never got the socket that it should close.
        left = [socket for socket in net.sockets if not broken or socket.host == "app"]
        assert [] == left, "a socket was left open"

    return scenario


@pytest.mark.parametrize("name", APIS)
def test_a_whole_answer_runs_its_call(name):
    """Undisturbed, through the real SDK."""
    sweep(conversation(APIS[name]), cancel=None).assert_ok()


@pytest.mark.long
@pytest.mark.parametrize("name", APIS)
def test_an_answer_may_be_cut_at_any_byte(name):
    """Never half a call, never a crash; the next turn works. A sample of the bytes of head and body."""
    # Every byte of the body is cut over real sockets, which is faster: tests/adapters/test_cut_answers.py.
    for cut in range(3, len(answer_of(APIS[name].call())), 29):
        report = sweep(conversation(APIS[name], cut), cancel=None)
        assert report.ok, f"cut after {cut} bytes: {report}"


@pytest.mark.long
@pytest.mark.parametrize("mode", ["raise_before", "raise_after", "hang", "slow"])
@pytest.mark.parametrize("name", APIS)
def test_every_call_of_the_network_may_be_broken(name, mode):
    """Names, connects, accepts, sends and receives, each in turn: the turns end, and no socket is left."""
    report = sweep(conversation(APIS[name], broken=True), cancel=None, faults=(mode,), ports=("network",))
    report.assert_ok()
    assert report.delivered > 10


@pytest.mark.long
@pytest.mark.parametrize("name", APIS)
def test_the_agent_may_be_cancelled_at_every_step(name):
    """Its connections are closed, whatever the SDK was doing."""
    report = sweep(conversation(APIS[name], broken=True), cancel="agent", points="every-step")
    report.assert_ok()
    assert report.delivered > 10

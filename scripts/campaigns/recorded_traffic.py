"""Recorded answers of real model servers through the three adapters: told right, and handed back right.

    python scripts/campaigns/recorded_traffic.py FOLDER                     # a folder of recordings
    python scripts/campaigns/recorded_traffic.py FOLDER --pieces 7 --list   # in pieces of 7 bytes; says what failed

Each recording answers the first request of a real agent, through the real SDK, over HTTP on the loopback; every later
request gets a short answer. What the agent told of it, and what its next request handed back, is compared with a second
reading of the same bytes (`recorded_meaning.py`). Prints a table by vendor, as docs/recorded-traffic.md has it,
and the kinds of what failed; exits with 1 where fewer than ``--least`` per cent hold.

A folder holds files ``*.jsonl``, a recording a line: project, path, vendor, api (chat, responses, messages), kind
(stream, whole, error), status, headers, and the body in base64. Recordings belong to those who made them: keep them out
of this repository.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anthropic
import attrs
import h11
import openai
import trio
import youyou
from youyou.adapters.anthropic import AnthropicProvider
from youyou.adapters.openai import OpenAIProvider
from youyou.messages.jsonvalue import thaw

sys.path.insert(0, str(Path(__file__).parent))
from recorded_meaning import (  # type: ignore[import-not-found]  # beside this file
    Meaning,
    Recording,
    arguments_of,
    meaning_of,
    merged,
    recordings,
    tokens_of,
)

LONGEST = 60.0
FINAL = "That is all."
GOOD = ("stop", "end_turn", "stop_sequence", "completed", "tool_calls", "tool_use", "function_call")
ENDS = {
    **dict.fromkeys(("length", "max_tokens", "max_output_tokens", "model_context_window_exceeded"), "length"),
    **dict.fromkeys(("content_filter",), "content_filter"),
    **dict.fromkeys(("refusal",), "refusal"),
    **dict.fromkeys(("pause_turn",), "pause"),
}
TOO_LONG = re.compile(
    r"maximum context|context (length|window|size)|prompt(?: is)? too long|length of all messages is too long", re.I
)


# The server


@attrs.define(eq=False)
class Server:
    """Answers the first request below ``/<number>`` with that recording and the later ones briefly."""

    pieces: int
    recording: Recording | None = None
    requests: list[dict[str, Any]] = attrs.field(factory=list)

    async def serve(self, stream: trio.SocketStream) -> None:
        """One connection."""
        connection = h11.Connection(h11.SERVER)
        async with stream:
            try:
                while await self._exchange(connection, stream):
                    connection.start_next_cycle()
            except (trio.BrokenResourceError, h11.RemoteProtocolError):
                return

    async def _exchange(self, connection: h11.Connection, stream: trio.SocketStream) -> bool:
        body = b""
        while not isinstance(event := connection.next_event(), h11.EndOfMessage):
            if event is h11.NEED_DATA:
                connection.receive_data(await stream.receive_some())
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.ConnectionClosed):
                return False
        self.requests.append(json.loads(body))
        recording = self.recording
        assert recording is not None
        if len(self.requests) == 1:
            status, headers, answer = recording.status, dict(recording.headers), recording.body
            headers.setdefault(
                "content-type", "text/event-stream" if recording.kind == "stream" else "application/json"
            )
        else:
            status, headers, answer = 200, {"content-type": "text/event-stream"}, brief(recording.api)
        head = h11.Response(status_code=status, headers=[(name, text.strip()) for name, text in headers.items()])
        await stream.send_all(connection.send(head))
        size = self.pieces or len(answer)
        cut = [connection.send(h11.Data(data=answer[at : at + size])) for at in range(0, len(answer), size)]
        # One write for many pieces: each is a chunk of its own all the same, and the client sees them so.
        for at in range(0, len(cut), 64):
            await stream.send_all(b"".join(cut[at : at + 64]))
        await stream.send_all(connection.send(h11.EndOfMessage()))
        return connection.our_state is h11.DONE


def brief(api: str) -> bytes:
    """A short right answer."""
    match api:
        case "chat":
            told: list[Any] = [{"choices": [{"index": 0, "delta": {"content": FINAL}, "finish_reason": "stop"}]}]
        case "responses":
            item = {"type": "message", "id": "m", "content": [{"type": "output_text", "text": FINAL}]}
            told = [{"type": "response.completed", "response": {"status": "completed", "output": [item]}}]
        case _:
            told = [
                {"type": "message_start", "message": {}},
                {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": FINAL}},
                {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
                {"type": "message_stop"},
            ]
    return b"".join(f"data: {json.dumps(event)}\n\n".encode() for event in told)


# The agent


@attrs.define(eq=False)
class Tap:
    """A provider that hands everything through and notes what the first response told."""

    inner: Any
    told: list[Any] = attrs.field(factory=list)
    requests: int = 0

    @property
    def id(self) -> str:
        """That of the provider behind it."""
        return str(self.inner.id)

    def models(self) -> Any:
        """Those of the provider behind it."""
        return self.inner.models()

    @asynccontextmanager
    async def chat(self, request: Any) -> AsyncIterator[Any]:
        """The events of the provider behind it, noted."""
        self.requests += 1
        async with self.inner.chat(request) as stream:
            yield self._noted(stream) if self.requests == 1 else stream

    async def _noted(self, stream: Any) -> AsyncIterator[Any]:
        async for event in stream:
            self.told.append(event)
            yield event


@attrs.frozen
class Heard:
    """What came of a recording."""

    result: youyou.TurnResult
    told: list[Any]
    requests: list[dict[str, Any]]
    requests_of_first_turn: int
    next_turn: youyou.TurnResult | None


async def hear(recording: Recording, meaning: Meaning, server: Server, url: str, clients: Any) -> Heard:
    """Two turns of an agent whose first request is answered by the recording."""
    server.recording, server.requests = recording, []
    base = f"{url}/{recording.number}"
    # What was recorded whole was asked for whole.
    capabilities = youyou.ModelCapabilities(streaming=recording.kind != "whole")
    model = youyou.ModelInfo("m", "M", 10_000_000, capabilities)
    inner: Any
    if recording.api == "messages":
        inner = AnthropicProvider([model], client=clients[1].with_options(base_url=base))
    else:
        inner = OpenAIProvider([model], client=clients[0].with_options(base_url=f"{base}/v1"), api=recording.api)
    tap = Tap(inner)
    config = youyou.AgentConfig("m", retry=youyou.RetryPolicy(attempts=1), max_tool_calls_per_turn=500)
    builder = youyou.AgentBuilder(config).register_model_provider(tap)
    for name in dict.fromkeys(name for _, name, _ in meaning.calls if name):
        builder.register_tool(youyou.Tool(name, "Recorded.", {"type": "object"}, answer))
    async with builder.build() as agent, await agent.new_session() as session:
        result = await (await session.send_message("Question?")).result()
        requests = tap.requests
        after = None
        if result.status is youyou.TurnStatus.COMPLETED:
            after = await (await session.send_message("Go on.")).result()
    return Heard(result, tap.told, server.requests, requests, after)


async def answer(given: youyou.ToolInput) -> youyou.ToolOutput:
    """Every tool of every recording."""
    return youyou.ToolOutput("done")


# The judge


def wrong(recording: Recording, meaning: Meaning, heard: Heard) -> list[tuple[str, str]]:
    """What was not told right: kind and details."""
    error = heard.result.error
    if meaning.error is not None:
        if error is None:
            return [("error taken for an answer", meaning.error[:100])]
        found = [] if meaning.error.strip()[:80] in error.message else [("words of an error", f"{error.message[:150]}")]
        return found + (list(wrong_error(recording, meaning, heard)) if recording.kind == "error" else [])
    if not meaning.ended:
        if error is None or error.code != "STREAM_INTERRUPTED":
            return [("cut answer taken for a whole one", f"{heard.result.status} {error}")]
        return []
    return list(wrong_answer(recording, meaning, heard))


def wrong_error(recording: Recording, meaning: Meaning, heard: Heard) -> Any:
    """What is wrong about an error beside its words."""
    error, status, text = heard.result.error, recording.status, recording.body.decode(errors="replace")
    assert error is not None
    too_long = status == 400 and TOO_LONG.search(text) is not None
    if (error.code == "CONTEXT_LENGTH_EXCEEDED") is not too_long:
        yield "code of an error", f"{error.code}: {error.message[:150]}"
    retryable = (status in (408, 409, 425, 429) or status >= 500) and "insufficient_quota" not in text
    if not too_long and error.retryable is not retryable:
        yield "whether to retry an error", f"{status}: {error.retryable}"
    if "retry-after" in recording.headers and error.retryable and not error.retry_after_ms:
        yield "when to retry", str(dict(recording.headers))


def wrong_answer(recording: Recording, meaning: Meaning, heard: Heard) -> Any:
    """What is wrong about an answer."""
    result, told = heard.result, heard.told
    empty = not meaning.text.strip() and not meaning.calls
    if result.error is not None and not (empty and result.error.code == "EMPTY_RESPONSE"):
        yield "failed", str(result.error)
        return
    text = "".join(event.text for event in told if isinstance(event, youyou.TextDelta))
    if text != meaning.text:
        yield "text", difference(text, meaning.text)
    reasoning = "".join(event.text for event in told if isinstance(event, youyou.ReasoningDelta))
    if reasoning != meaning.reasoning:
        yield "reasoning", difference(reasoning, meaning.reasoning)
    calls = [event for event in told if isinstance(event, youyou.ToolCall)]
    got = [(call.call_id, call.tool_name, written(call)) for call in calls]
    # An id that the server does not give is made by the adapter.
    want = [(call_id or given[0], name, args) for (call_id, name, args), given in zip(meaning.calls, got, strict=False)]
    if got != want or len(got) != len(meaning.calls):
        yield "calls", f"{got} in place of {meaning.calls}"[:300]
    done = [event for event in told if isinstance(event, youyou.Done)]
    if not done:
        yield "no end", ""
        return
    tokens = tokens_of(recording.api, meaning.usage)
    usage = None if done[0].usage is None else attrs.astuple(done[0].usage)
    if usage != tokens and any(tokens or (1,)) | (usage is not None):
        yield "usage", f"{usage} in place of {tokens}"
    reason = meaning.reason or "stop"
    good = "tool_use" if meaning.calls else "end_turn"
    if str(done[0].stop_reason) != (expected := good if reason in GOOD else ENDS.get(reason, "other")):
        yield "stop reason", f"{done[0].stop_reason} for {reason!r}, which is {expected}"


def written(call: youyou.ToolCall) -> Any:
    """The arguments as the model wrote them."""
    return thaw(call.arguments) if call.raw_arguments is None else arguments_of(call.raw_arguments)


def lost(recording: Recording, meaning: Meaning, heard: Heard) -> list[tuple[str, str]]:
    """What of an answer is missing in the next request."""
    if heard.next_turn is None:
        return []
    if heard.next_turn.status is not youyou.TurnStatus.COMPLETED:
        return [("the next turn", str(heard.next_turn.error))]
    empty = not meaning.text.strip() and not meaning.calls
    if empty and heard.requests_of_first_turn > 1:
        return []  # an empty answer was asked for again: it is not in the conversation
    body = heard.requests[1]
    found = []
    raw = json.dumps(body, ensure_ascii=False) + json.dumps(thinking_of(body), ensure_ascii=False)
    together: dict[str, str] = defaultdict(str)
    for name, text in meaning.wanted_back:
        if name in ("reasoning_details", "extra_content"):
            if json.dumps(text, ensure_ascii=False)[1:-1] not in raw:
                found.append((f"lost: {name}", text[:60]))
        else:
            together[name] += text
    for name, text in together.items():
        if json.dumps(text, ensure_ascii=False)[1:-1] not in raw:
            found.append((f"lost: {name}", text[:60]))
    want, got = merged(meaning.blocks), merged(_SENT[recording.api](body))
    if plain(want) != plain(got):
        found.append(("handed back otherwise", f"{difference_of_blocks(plain(got), plain(want))}"[:400]))
    return found


def thinking_of(body: dict[str, Any]) -> str:
    """What stands in parts of type "thinking", whose text comes and goes in many pieces (Mistral)."""
    contents = [message.get("content") for message in body.get("messages", ()) if message["role"] == "assistant"]
    parts = [part for content in contents if isinstance(content, list) for part in content]
    inner = [piece for part in parts if isinstance(part.get("thinking"), list) for piece in part["thinking"]]
    return "".join(piece.get("text") or "" for piece in inner)


def sent_chat(body: dict[str, Any]) -> list[tuple[Any, ...]]:
    """The blocks of the first assistant message."""
    message = next((message for message in body["messages"] if message["role"] == "assistant"), {})
    content = message.get("content") or ""
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    texts = [("text", part["text"]) for part in parts if part["type"] == "text" and part["text"]]
    calls = message.get("tool_calls") or ()
    named = [(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in calls]
    return texts + [("call", call_id, name, arguments_of(text)) for call_id, name, text in named]


def sent_messages(body: dict[str, Any]) -> list[tuple[Any, ...]]:
    """The blocks of the first assistant message."""
    message = next((message for message in body["messages"] if message["role"] == "assistant"), {"content": ()})
    blocks: list[tuple[Any, ...]] = []
    for block in message["content"]:
        match block["type"]:
            case "text":
                blocks.append(("text", block["text"]))
            case "thinking":
                blocks.append(("thinking", block["thinking"], block.get("signature") or ""))
            case "redacted_thinking":
                blocks.append(("redacted_thinking", block["data"]))
            case "tool_use":
                blocks.append(("call", block["id"], block["name"], block["input"]))
    return blocks


def sent_responses(body: dict[str, Any]) -> list[tuple[Any, ...]]:
    """The items up to the next message of the user."""
    blocks: list[tuple[Any, ...]] = []
    for item in body["input"][1:]:
        if item.get("role") == "user":
            break
        match item.get("type"):
            case "message":
                content = item["content"]
                blocks.append(("text", content if isinstance(content, str) else "".join(p["text"] for p in content)))
            case "reasoning":
                texts = [part["text"] for name in ("summary", "content") for part in item.get(name) or ()]
                blocks.append(("reasoning", item.get("encrypted_content") or "".join(texts)))
            case "function_call":
                blocks.append(("call", item["call_id"], item["name"], arguments_of(item["arguments"])))
    while blocks and blocks[-1] == ("text", FINAL):
        blocks.pop()  # our own answer to the results of the calls
    return blocks


_SENT = {"chat": sent_chat, "messages": sent_messages, "responses": sent_responses}


def plain(blocks: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Blocks without what may differ: ids in another alphabet, arguments that no API takes back as they came."""
    out: list[tuple[Any, ...]] = []
    for block in blocks:
        match block:
            case ("call", _, name, arguments):
                name = re.sub(r"[^\w-]", "_", name) or "_"
                out.append(("call", name, {"invalid_json": arguments} if isinstance(arguments, str) else arguments))
            case _:
                out.append(block)
    return out


def difference(got: str, want: str) -> str:
    """Where two texts part."""
    at = next((n for n, (one, two) in enumerate(zip(got, want, strict=False)) if one != two), min(len(got), len(want)))
    return f"at {at} of {len(want)}: {got[at : at + 60]!r} in place of {want[at : at + 60]!r}"


def difference_of_blocks(got: list[tuple[Any, ...]], want: list[tuple[Any, ...]]) -> str:
    """Where two contents part."""
    kinds = f"{[block[0] for block in got]} in place of {[block[0] for block in want]}"
    for one, two in zip(got, want, strict=False):
        if one != two:
            return f"{kinds}: {one} / {two}"
    return kinds


# The run


@attrs.define
class Count:
    """Figures of one vendor."""

    all: int = 0
    right: int = 0
    back: int = 0
    kinds: Counter[str] = attrs.field(factory=Counter)


async def run(given: argparse.Namespace) -> tuple[dict[str, Count], list[str]]:
    """All recordings of a folder."""
    counts: dict[str, Count] = defaultdict(Count)
    failures: list[str] = []
    server = Server(given.pieces)
    clients = (
        openai.AsyncOpenAI(api_key="k", base_url="http://127.0.0.1:1", max_retries=0),
        anthropic.AsyncAnthropic(api_key="k", base_url="http://127.0.0.1:1", max_retries=0),
    )
    async with trio.open_nursery() as nursery:
        [listener] = await nursery.start(partial(trio.serve_tcp, server.serve, 0, host="127.0.0.1"))
        url = f"http://127.0.0.1:{listener.socket.getsockname()[1]}"
        for recording in recordings(Path(given.folder)):
            if given.only and recording.number not in given.only:
                continue
            count = counts[recording.vendor]
            count.all += 1
            told, back = await judge(recording, server, url, clients)
            count.right += not told
            count.back += not told and not back
            count.kinds.update({kind for kind, _ in [*told, *back]})
            for kind, details in [*told, *back]:
                failures.append(f"{recording.number} {recording.vendor} {recording.api} {kind}: {details}")
        nursery.cancel_scope.cancel()
    return counts, failures


async def judge(
    recording: Recording, server: Server, url: str, clients: Any
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """What is wrong, and what is lost."""
    meaning = meaning_of(recording)
    if meaning.not_ours is not None:
        return [(f"an answer that nobody asks for: {meaning.not_ours}", "")], []
    with trio.move_on_after(LONGEST) as scope:
        heard = await hear(recording, meaning, server, url, clients)
    if scope.cancelled_caught:
        return [("hang", f"{LONGEST} s")], []
    return wrong(recording, meaning, heard), lost(recording, meaning, heard)


def table(counts: dict[str, Count]) -> list[str]:
    """By vendor, the largest first."""
    rows = ["| vendor | recordings | told right | and handed back | what is missing |", "|---|---:|---:|---:|---|"]
    for vendor, count in sorted(counts.items(), key=lambda pair: -pair[1].all):
        kinds = ", ".join(f"{kind} ({number})" for kind, number in count.kinds.most_common())
        rows.append(f"| {vendor} | {count.all} | {count.right} | {count.back} | {kinds} |")
    return rows


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--pieces", type=int, default=0, help="bytes of a piece of a body; 0: whole")
    parser.add_argument("--only", type=int, action="append", help="the recording with this number; may be repeated")
    parser.add_argument("--list", action="store_true", help="every failure, not only their kinds")
    parser.add_argument("--least", type=float, default=98.0, help="per cent")
    given = parser.parse_args()
    start = time.monotonic()
    counts, failures = trio.run(run, given)
    total = sum(count.all for count in counts.values())
    back = sum(count.back for count in counts.values())
    print(*table(counts), sep="\n")
    if given.list:
        print(*failures, sep="\n")
    share = 100 * back / max(1, total)
    print(f"{back} of {total} ({share:.2f} %) told right and handed back, in {time.monotonic() - start:.0f} s")
    return 0 if total and share >= given.least else 1


if __name__ == "__main__":
    sys.exit(main())

"""Mutated streams of model servers against the three adapters: nothing crashes, hangs, or runs what was not said.

    python scripts/campaigns/model_streams.py --api chat --count 20000 --seed 7
    python scripts/campaigns/model_streams.py --count 200               # all three, a seed of its own; what CI runs

Each stream is a right one in which events were dropped, doubled, swapped or cut off, in which fields hold values of
other types, and between which there is noise. It answers one message of a real agent, through the real SDK, in pieces
of random length. After each of them:

- the agent lives, the turn has ended, and the next message is answered;
- no tool ran with arguments that lack their last piece, and none after a stream that was cut off or ended badly;
- an error speaks of the server, not of an exception in the adapter.

Prints one line for each API, and for a failure the seed and the stream that show it; then the exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from copy import deepcopy
from typing import Any

import anthropic
import attrs
import httpx2
import openai
import trio
import trio.testing
import youyou
from youyou.adapters.anthropic import AnthropicProvider
from youyou.adapters.openai import OpenAIProvider

ODD: tuple[Any, ...] = (
    *(None, 0, -1, 1.5, True, "", "x", "\ud83d", 10**30, [], {}, [None], {"a": 1}, "0", [[{}]], float("inf")),
    *({"type": "text", "text": 5}, [{"type": "thinking", "thinking": [{"text": None}]}], "[DONE]", "tool_calls"),
)
NOISE = (b": ping\n\n", b"data:\n\n", b"data\n\n", b"event: ping\ndata:\n\n", b"data: null\n\n", b"data: 5\n\n")
NOISE += (b"data: []\n\n", b"\r\n", b"id: 1\n\n", b"retry: 5\n\n", b"event: x\ndata: {}\n\n")
ENDS_BADLY = ("content_filter", "error", "abort", "MAX_TOKENS", "eos", "insufficient_system_resource", "refusal", 7)
ADAPTERS_OWN = re.compile(r"\b(Key|Type|Attribute|Index|Value|Assertion|Recursion)Error\b|yield Done|Traceback")
ARGUMENTS = ('{"text": "', "one ", "two", '", "en', 'd": true}')
PER_SESSION = 25
LONGEST = 20.0


def chat() -> tuple[list[Any], Callable[[Any, Any], None]]:
    """A stream of the chat completions API, and how to give it another end."""

    def chunk(delta: Any, finish: Any = None) -> Any:
        return {"id": "x", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    def piece(index: int, text: str, **more: Any) -> Any:
        function = {"arguments": text, **({"name": more.pop("name")} if "name" in more else {})}
        return chunk({"tool_calls": [{"index": index, "function": function, **more}]})

    details = [{"type": "reasoning.text", "text": "hm", "index": 0, "signature": "s"}]
    calls = [
        item for n in (0, 1) for item in (piece(n, "", id=f"c{n}", name="act"), *(piece(n, text) for text in ARGUMENTS))
    ]
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "completion_tokens_details": {"reasoning_tokens": 1}}
    events = [
        chunk({"role": "assistant", "content": ""}),
        chunk({"reasoning_content": "I must ", "reasoning_details": details}),
        chunk({"content": "Let me "}),
        chunk({"content": "see."}),
        *calls,
        chunk({}, "tool_calls"),
        {"id": "x", "choices": [], "usage": usage},
        "[DONE]",
    ]

    def end(stream: Any, reason: Any) -> None:
        for event in stream:
            if isinstance(event, dict) and event["choices"] and event["choices"][0]["finish_reason"]:
                event["choices"][0]["finish_reason"] = reason

    return events, end


def responses() -> tuple[list[Any], Callable[[Any, Any], None]]:
    """The same of the responses API."""
    call = {"type": "function_call", "name": "act", "status": "completed"}
    text = {"type": "message", "id": "m", "content": [{"type": "output_text", "text": "Let me see."}]}
    thought = {"type": "reasoning", "id": "r", "summary": [{"text": "hm"}], "encrypted_content": "e"}
    calls = [call | {"id": f"f{n}", "call_id": f"c{n}", "arguments": "".join(ARGUMENTS)} for n in (2, 3)]
    usage = {"input_tokens": 3, "output_tokens": 4, "output_tokens_details": {"reasoning_tokens": 1}}
    last = {"status": "completed", "output": [thought, text, *calls], "usage": usage, "error": None}

    def pieces(item: Any) -> list[Any]:
        at = {"output_index": int(item["id"][1]), "item_id": item["id"]}
        deltas = [{"type": "response.function_call_arguments.delta", "delta": text, **at} for text in ARGUMENTS]
        added = {"type": "response.output_item.added", "item": item | {"arguments": ""}, **at}
        return [added, *deltas, {"type": "response.output_item.done", "item": item, **at}]

    events = [
        {"type": "response.created", "response": {"status": "in_progress", "error": None}},
        {"type": "response.reasoning_summary_text.delta", "delta": "hm", "item_id": "r"},
        {"type": "response.output_item.done", "item": thought, "output_index": 0},
        {"type": "response.output_text.delta", "delta": "Let me ", "item_id": "m"},
        {"type": "response.output_text.delta", "delta": "see.", "item_id": "m"},
        {"type": "response.output_item.done", "item": text, "output_index": 1},
        *(event for item in calls for event in pieces(item)),
        {"type": "response.completed", "response": last},
    ]

    def end(stream: Any, reason: Any) -> None:
        stream[-1]["response"] |= {"status": "incomplete", "incomplete_details": {"reason": reason}}

    return events, end


def messages() -> tuple[list[Any], Callable[[Any, Any], None]]:
    """The same of Anthropic's messages API."""

    def block(index: int, start: Any, *deltas: Any) -> list[Any]:
        return [
            {"type": "content_block_start", "index": index, "content_block": start},
            *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
            {"type": "content_block_stop", "index": index},
        ]

    signed = ({"type": "thinking_delta", "thinking": "hm"}, {"type": "signature_delta", "signature": "s"})
    said = ({"type": "text_delta", "text": "Let me "}, {"type": "text_delta", "text": "see."})
    written = [{"type": "input_json_delta", "partial_json": text} for text in ARGUMENTS]
    uses = [{"type": "tool_use", "id": f"t{n}", "name": "act", "input": {}} for n in (2, 3)]
    events = [
        {"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 3, "output_tokens": 1}}},
        *block(0, {"type": "thinking", "thinking": "", "signature": ""}, *signed),
        *block(1, {"type": "text", "text": ""}, *said),
        *block(2, uses[0], *written),
        *block(3, uses[1], *written),
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 4}},
        {"type": "message_stop"},
    ]

    def end(stream: Any, reason: Any) -> None:
        stream[-2]["delta"]["stop_reason"] = reason

    return events, end


STREAMS = {"chat": chat, "responses": responses, "messages": messages}


@attrs.frozen
class Mutated:
    """A body. ``may_run`` is False where no tool may run whatever else holds."""

    body: bytes
    may_run: bool


def mutated(api: str, rng: random.Random) -> Mutated:
    """A stream with one to three things wrong in it."""
    events, end = STREAMS[api]()
    stream, may_run = deepcopy(events), True
    if rng.random() < 0.15:
        end(stream, rng.choice(ENDS_BADLY))
        may_run = False
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(stream)) if stream else 0
        match rng.choice(("drop", "double", "swap", "odd", "odd", "odd", "delete")):
            case "drop" if stream and may_run:
                del stream[at]
            case "double" if stream:
                stream.insert(at, deepcopy(stream[at]))
            case "swap" if len(stream) > 1 and may_run:
                other = rng.randrange(len(stream))
                stream[at], stream[other] = stream[other], stream[at]
            case "odd" | "delete" as kind if stream and may_run:
                change(stream[at], rng, delete=kind == "delete")
    parts = [f"data: {event if event == '[DONE]' else json.dumps(event)}\n\n".encode() for event in stream]
    for _ in range(rng.choice((0, 0, 1, 3))):
        parts.insert(rng.randint(0, len(parts)), rng.choice(NOISE))
    body = b"".join(parts)
    if rng.random() < 0.2:
        # Before the first mark of the end: what follows it may be lost without harm.
        marks = [body.find(mark) for mark in (b'"finish_reason": "', b'"stop_reason"', b"message_stop", b"[DONE]")]
        marks += [body.find(mark) for mark in (b"response.completed", b'"finish_reason": 7')]
        limit = min((mark for mark in marks if mark >= 0), default=len(body))
        body, may_run = body[: rng.randrange(max(1, limit))], False
    return Mutated(body, may_run)


def change(value: Any, rng: random.Random, *, delete: bool) -> None:
    """Put an odd value somewhere into ``value``, or take something out."""
    while isinstance(value, dict | list) and value:
        key = rng.choice(list(value) if isinstance(value, dict) else range(len(value)))
        inner = value[key]
        if not isinstance(inner, dict | list) or not inner or rng.random() < 0.3:
            if delete:
                del value[key]
            else:
                # A copy: a later change may reach into it, and the streams after it would depend on those before.
                value[key] = deepcopy(rng.choice(ODD))
            return
        value = inner


def whole(api: str) -> bytes:
    """A right stream of a few words."""
    match api:
        case "chat":
            events: list[Any] = [{"choices": [{"index": 0, "delta": {"content": "ok"}, "finish_reason": "stop"}]}]
        case "responses":
            item = {"type": "message", "id": "m", "content": [{"type": "output_text", "text": "ok"}]}
            events = [{"type": "response.completed", "response": {"status": "completed", "output": [item]}}]
        case _:
            events = [
                {"type": "message_start", "message": {}},
                {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "ok"}},
                {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
                {"type": "message_stop"},
            ]
    return b"".join(f"data: {json.dumps(event)}\n\n".encode() for event in events)


@attrs.define(eq=False)
class Wire(httpx2.AsyncBaseTransport):
    """In place of a network: answers with ``next``, then with a right stream."""

    otherwise: bytes
    rng: random.Random
    next: bytes | None = None
    requests: int = 0

    async def handle_async_request(self, request: Any) -> Any:
        """One exchange."""
        await trio.lowlevel.checkpoint()
        self.requests += 1
        body, self.next = (self.otherwise if self.next is None else self.next), None
        size = self.rng.choice((1 << 20, 1 << 20, 4096, 4096, 397, 61))
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=Pieces(body, size))


@attrs.define(eq=False)
class Pieces(httpx2.AsyncByteStream):
    """A body in pieces of ``size`` bytes."""

    body: bytes
    size: int

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for at in range(0, len(self.body), self.size):
            yield self.body[at : at + self.size]


def provider_of(api: str, wire: Wire) -> Any:
    """The real provider on the real SDK."""
    client = httpx2.AsyncClient(transport=wire)
    if api == "messages":
        return AnthropicProvider(
            ["m"], client=anthropic.AsyncAnthropic(api_key="k", base_url="http://127.0.0.1:1", http_client=client)
        )
    made = openai.AsyncOpenAI(api_key="k", base_url="http://127.0.0.1:1/v1", http_client=client)
    return OpenAIProvider(["m"], client=made, api="responses" if api == "responses" else "chat")


@attrs.define(eq=False)
class Campaign:
    """The streams of one API."""

    api: str
    seed: int
    count: int
    ran: list[Any] = attrs.Factory(list)
    outcomes: Counter[str] = attrs.Factory(Counter)
    failures: list[str] = attrs.Factory(list)
    done: int = 0
    wire: Wire = attrs.field(init=False)

    async def run(self, until: float) -> None:
        """All of them, or as many as there is time for; a fresh agent every ``PER_SESSION``."""
        self.wire = Wire(whole(self.api), random.Random(self.seed))
        provider = provider_of(self.api, self.wire)
        while self.done < self.count and len(self.failures) < 5 and time.monotonic() < until:
            first = self.done
            try:
                await self._session(provider, first, min(first + PER_SESSION, self.count))
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                self.failures.append(f"stream {self.done}: the agent fell: {error!r}")
                self.done += 1

    async def _session(self, provider: Any, first: int, stop: int) -> None:
        @youyou.tool(mutating=True)
        async def act(text: str = "nothing", end: bool = False) -> str:
            """Act."""
            self.ran.append((text, end))
            return "done"

        config = youyou.AgentConfig(
            "m", retry=youyou.RetryPolicy(attempts=1), max_tool_calls_per_turn=20, stream_idle_timeout_ms=5_000
        )
        builder = youyou.AgentBuilder(config).register_model_provider(provider).register_tool(act)
        async with builder.build() as agent, await agent.new_session() as session:
            for number in range(first, stop):
                stream = mutated(self.api, random.Random(f"{self.seed} {self.api} {number}"))
                await self._one(session, stream, number)
                self.done = number + 1

    async def _one(self, session: youyou.Session, stream: Mutated, number: int) -> None:
        self.ran.clear()
        self.wire.next = stream.body
        with trio.move_on_after(LONGEST) as scope:
            result = await (await session.send_message("go")).result()
            after = await (await session.send_message("and?")).result()
        problems = []
        if scope.cancelled_caught:
            raise RuntimeError(f"hung on {stream.body!r}")
        self.outcomes[f"{result.status} {result.error.code if result.error else result.stop_reason}"] += 1
        if result.error is not None and ADAPTERS_OWN.search(result.error.message):
            problems.append(f"an error of the adapter's own: {result.error}")
        if self.ran and not stream.may_run:
            problems.append(f"a tool ran after a response that did not end well: {self.ran}")
        if not all(end for _, end in self.ran):
            problems.append(f"a tool ran without its last piece: {self.ran}")
        if after.status is not youyou.TurnStatus.COMPLETED or after.text != "ok":
            problems.append(f"the next turn: {after.status} {after.text!r} {after.error}")
        for problem in problems:
            self.failures.append(f"stream {number}: {problem}\n    {stream.body!r}")


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--api", choices=sorted(STREAMS), action="append", help="by default all three")
    parser.add_argument("--count", type=int, default=20_000, help="streams for each API")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--minutes", type=float, default=600, help="stop each API after this time")
    given = parser.parse_args()
    seed = random.SystemRandom().randrange(10**9) if given.seed is None else given.seed
    failed = False
    for api in given.api or sorted(STREAMS):
        campaign, start = Campaign(api, seed, given.count), time.monotonic()
        # The SDKs are loaded here, and look at the platform in a thread, for which a clock that jumps does not wait.
        trio.run(Campaign(api, seed, 1).run, math.inf)
        # It jumps when nothing is left to do: a limit that runs out is then a fault, never the machine's load, and a
        # hang shows at once.
        trio.run(campaign.run, start + 60 * given.minutes, clock=trio.testing.MockClock(autojump_threshold=0.01))
        took = time.monotonic() - start
        print(f"{api}: seed {seed}, {campaign.done} streams in {took:.0f} s, {len(campaign.failures)} failures")
        print("   ", ", ".join(f"{name}: {number}" for name, number in campaign.outcomes.most_common()), flush=True)
        for failure in campaign.failures:
            print(f"    {failure}"[:4_000])
        failed = failed or bool(campaign.failures)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

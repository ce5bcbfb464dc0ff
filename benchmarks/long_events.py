"""What a byte of a long event costs, in pieces of 4 KiB: as much in 8 MiB as in 1 MiB, or the decoder is not linear.

python benchmarks/long_events.py         # exits with 1 if a byte of 8 MiB costs more than twice one of 1 MiB

CPU time of this process alone: bytes to events to chat events, without a network.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

from youyou.adapters.anthropic.events import MessageTranslator
from youyou.adapters.openai.chat_events import ChatTranslator
from youyou.adapters.openai.responses_events import ResponsesTranslator
from youyou.adapters.wire.body import Body, Item

MIB = 2**20
PIECE = 4096
ROUNDS = 5
ALLOWED = 2.0


def chat(size: int) -> dict[str, Any]:
    """Arguments of a call in one chunk."""
    function = {"name": "write", "arguments": json.dumps({"text": "x" * size})}
    return {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "c", "function": function}]}}]}


def responses(size: int) -> dict[str, Any]:
    """A call that is told when it is done."""
    item = {"type": "function_call", "call_id": "c", "name": "write", "arguments": json.dumps({"text": "x" * size})}
    return {"type": "response.output_item.done", "item": item}


def messages(size: int) -> dict[str, Any]:
    """A piece of a block of text."""
    return {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x" * size}}


APIS: dict[str, tuple[Callable[[], Any], Callable[[int], dict[str, Any]]]] = {
    "chat": (ChatTranslator, chat),
    "responses": (ResponsesTranslator, responses),
    "messages": (MessageTranslator, messages),
}


def seconds(make: Callable[[], Any], body: bytes) -> float:
    """CPU time for one event, the fastest of some rounds."""
    times = []
    for _ in range(ROUNDS):
        decoder, translator = Body("text/event-stream"), make()
        begin = time.process_time()
        for at in range(0, len(body), PIECE):
            for item in decoder.feed(body[at : at + PIECE]):
                if isinstance(item, Item):
                    list(translator.feed(item))
        list(translator.finish(marked=True))
        times.append(time.process_time() - begin)
    return min(times)


def rows() -> Iterable[tuple[str, float, float]]:
    """API, nanoseconds for each byte of 1 MiB and of 8 MiB."""
    for name, (make, event) in APIS.items():
        bodies = [f"data: {json.dumps(event(mib * MIB))}\n\n".encode() for mib in (1, 8)]
        short, long = (seconds(make, body) / len(body) * 1e9 for body in bodies)
        yield name, short, long


def main() -> int:
    """Print the table; 1 if one of the rows is not linear."""
    worst = 0.0
    print("API        1 MiB     8 MiB     ratio")
    for name, short, long in rows():
        worst = max(worst, long / short)
        print(f"{name:10} {short:4.1f} ns/B {long:4.1f} ns/B {long / short:5.2f}")
    return int(worst > ALLOWED)


if __name__ == "__main__":
    sys.exit(main())

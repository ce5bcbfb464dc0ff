"""Counts the files that a reader would have to open to follow what happens: the short ways and the long ones.

    python scripts/walks.py                     # a table in Markdown
    python scripts/walks.py --files cancel      # and the files of the walks whose name holds "cancel", in order

A walk is what runs between two moments, such as `send_message` and the provider's `chat`. Counted are calls of
functions of the runtime (a coroutine that goes on counts as called again), the files that they are in, the moves from
one file to another, and those moves that lead back to a file that was entered before.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import attrs
import trio
import youyou
from youyou.testing import InMemorySessionStorage, ScriptedProvider, calls, say

PACKAGE = Path(youyou.__file__).resolve().parent
RUNTIME = tuple(f"{PACKAGE / folder}/" for folder in ("messages", "core", "actors"))


@attrs.define
class Walk:
    """What ran between two moments."""

    name: str
    calls: int = 0
    files: list[str] = attrs.Factory(list)
    """Each file as often as it was entered from another one."""
    begun: bool = False
    ended: bool = False

    def begin(self) -> None:
        """From here on, once."""
        self.begun = True

    def end(self) -> None:
        """Up to here, if it has begun."""
        self.ended = self.begun

    def enter(self, file: str) -> None:
        """A function of this file was called."""
        if self.begun and not self.ended:
            self.calls += 1
            if not self.files or self.files[-1] != file:
                self.files.append(file)

    @property
    def row(self) -> tuple[int, int, int, int]:
        """Calls, files, moves between files, returns to a file left before."""
        distinct, moves = len(set(self.files)), max(0, len(self.files) - 1)
        return self.calls, distinct, moves, len(self.files) - distinct


class Provider(ScriptedProvider):
    """Tells when it is asked, and what it hands out."""

    def __init__(self, rounds: Any, told: Callable[[str], None]) -> None:
        super().__init__(rounds)
        self._told = told

    async def chat(self, request: Any) -> Any:
        """A stream whose items are told as they are handed out."""
        async with super().chat(request) as stream:
            try:
                async for item in stream:
                    self._told(type(item).__name__)
                    yield item
            except youyou.AgentError:
                self._told("raises")
                raise


class Storage(InMemorySessionStorage):
    """Tells when it writes."""

    told: Callable[[str], None] = lambda _: None

    async def save_events(self, session_id: str, events: Any) -> None:
        """Write, and tell."""
        type(self).told("save_events")
        await super().save_events(session_id, events)


async def scene(rounds: Any, tell: Callable[[str], None], *, cancel_at: str | None = None) -> None:
    """One turn that is read to its end; ``tell`` learns of each moment."""

    async def look(given: Any) -> Any:
        told("tool body")
        if cancel_at == "tool":
            await trio.sleep(0.05)
        told("tool returns")
        return youyou.ToolOutput("seen")

    def told(moment: str) -> None:
        tell(moment)
        if moment == {"stream": "TextDelta", "tool": "tool body"}.get(cancel_at or ""):
            # Not here: the turn must have begun to wait, for the gap behind the delta or for its tool.
            trio.lowlevel.current_trio_token().run_sync_soon(stop)

    def stop() -> None:
        told("cancel")
        turns[0].cancel()

    turns: list[Any] = []
    Storage.told = staticmethod(told)  # type: ignore[assignment]
    provider = Provider(rounds, told)
    chat = provider.chat

    def asked(request: Any) -> Any:
        told("chat")
        return chat(request)

    provider.chat = asked  # type: ignore[method-assign]
    config = youyou.AgentConfig("scripted", retry=youyou.RetryPolicy(attempts=1))
    builder = youyou.AgentBuilder(config).register_model_provider(provider).register_session_storage(Storage())
    builder.register_tool(youyou.Tool("look", "Looks.", {"type": "object"}, look))
    async with builder.build() as agent, await agent.new_session() as session:
        told("send_message")
        turns.append(await session.send_message("hello"))
        async for event in turns[0]:
            told(f"host: {type(event.payload).__name__}")


ERROR = youyou.ProviderError("broken", retryable=False)
ANSWER, CALL = [say("one")], [calls("look"), say("done")]
IN_PIECES = [[*say("one")[:1], 0.05, *say("two")]]
WALKS = [
    # name, script, what begins it, what ends it, where a cancel comes
    ("`send_message` -> `provider.chat`", ANSWER, "send_message", "chat", None),
    ("text delta, provider -> host", IN_PIECES, "TextDelta", "host: TextDelta", None),
    ("`ToolCall` -> tool body", CALL, "ToolCall", "tool body", None),
    ("tool's return -> `ToolCallEnd` at the host", CALL, "tool returns", "host: ToolCallEnd", None),
    ("last answer -> `save_events`", ANSWER, "Done", "save_events", None),
    ("provider raises -> terminal event", [[ERROR]], "raises", "host: TurnComplete", None),
    ("`turn.cancel()` in a stream -> terminal event", IN_PIECES, "cancel", "host: TurnCancelled", "stream"),
    ("`turn.cancel()` while a tool runs -> terminal event", CALL, "cancel", "host: TurnCancelled", "tool"),
]


def measure(name: str, rounds: Any, first: str, last: str, cancel_at: str | None) -> Walk:
    """One walk, in a run of its own."""
    walk = Walk(name)

    def told(moment: str) -> None:
        if moment == first:
            walk.begin()
        elif moment == last:
            walk.end()

    def profile(frame: FrameType, event: str, arg: object) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(RUNTIME):
            walk.enter(file[len(str(PACKAGE)) + 1 :])

    sys.setprofile(profile)
    try:
        trio.run(lambda: scene(rounds, told, cancel_at=cancel_at))
    finally:
        sys.setprofile(None)
    assert walk.ended, f"{name}: {first!r} and {last!r} did not follow each other"
    return walk


def main() -> None:
    """Measure each walk twice, for what is made once and kept, and print the second."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", metavar="PART", help="list the files of walks whose name holds this")
    given = parser.parse_args()
    print("| path | calls | files entered | moves between files | returns to a file left before |")
    print("|---|---|---|---|---|")
    walks = [measure(*each) and measure(*each) for each in WALKS]
    for walk in walks:
        print(f"| {walk.name} | {' | '.join(map(str, walk.row))} |")
    for walk in walks:
        if given.files and given.files in walk.name:
            print(f"\n{walk.name}\n  " + "\n  ".join(dict.fromkeys(walk.files)))


if __name__ == "__main__":
    main()

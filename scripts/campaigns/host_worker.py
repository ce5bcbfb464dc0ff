"""One process of a service: a session host over PostgreSQL that takes any of the sessions it is told, again and again.

    python scripts/campaigns/host_worker.py DSN FOLDER NAME SEED SESSIONS

Each turn calls one tool that must never run twice. What was acknowledged is noted in FOLDER/acknowledged, each start of
the tool in FOLDER/starts: lines, appended at once. SIGTERM drains. Used by kill_hosts.py.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from pathlib import Path
from typing import Any

import trio
import youyou
from youyou.adapters.postgres import PostgresSessionStorage
from youyou.hosting import SessionHost
from youyou.messages.content import text_of

TTL_MS = 1_000


def note(path: Path, *words: str) -> None:
    """One line, whole or not at all, no matter who else writes."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, (" ".join(words) + "\n").encode())
    finally:
        os.close(file)


class Model:
    """Talks, calls the tool once a turn, and talks again; the call's id is the message."""

    id = "model"

    def models(self) -> list[youyou.ModelInfo]:
        """One."""
        return [youyou.ModelInfo("m", "M", 1_000_000, youyou.ModelCapabilities())]

    async def chat(self, request: youyou.ChatRequest) -> Any:
        """A stream with pauses, so that a kill may hit any part of it."""
        last = request.messages[-1]
        for word in ("one ", "two ", "three "):
            await trio.sleep(0.002)
            yield youyou.TextDelta(word)
        if isinstance(last, youyou.UserMessage):
            yield youyou.ToolCall(f"call-{text_of(last.content)}", "count", {})
            yield youyou.Done(None, youyou.StopReason.TOOL_USE)
        else:
            yield youyou.Done()


async def main(dsn: str, folder: Path, name: str, seed: str, sessions: list[str]) -> None:
    """Work until SIGTERM."""
    rng = random.Random(seed)

    async def count(given: youyou.ToolInput) -> youyou.ToolOutput:
        note(folder / "starts", given.call_id)
        await trio.sleep(0.005)
        return youyou.ToolOutput("counted")

    def make_builder() -> youyou.AgentBuilder[youyou.HasProvider]:
        config = youyou.AgentConfig("m", claim_ttl_ms=TTL_MS, address=name, notices=youyou.Notices.english())
        tool = youyou.Tool("count", "Counts.", {"type": "object"}, count, mutating=True)
        return (
            youyou.AgentBuilder(config)
            .register_model_provider(Model())
            .register_tool(tool)
            .register_session_storage(storage)
        )

    async def visit(host: SessionHost, number: int) -> None:
        turns = 0
        while True:
            session_id = rng.choice(sessions)
            try:
                async with host.open(session_id) as session:
                    turns += 1
                    text = f"{name}-{number}-{turns}"
                    result = await (await session.send_message(text, queue=True)).result()
                    if result.status is youyou.TurnStatus.COMPLETED:
                        note(folder / "acknowledged", session_id, text, result.turn_id)
            except youyou.SessionTaken:
                await trio.sleep(rng.random() / 20)
            except youyou.AgentClosed:
                return
            except youyou.AgentError as error:
                note(folder / "errors", name, str(error).replace("\n", " "))
                await trio.sleep(0.05)

    storage = PostgresSessionStorage(dsn)
    with trio.open_signal_receiver(signal.SIGTERM) as signals:
        async with SessionHost(make_builder, max_open=4, idle_ms=200) as host, trio.open_nursery() as visitors:
            note(folder / "ready", name)
            for number in range(4):
                visitors.start_soon(visit, host, number)
            async for _ in signals:
                break
            await host.drain(grace=2)
    note(folder / "drained", name)


if __name__ == "__main__":
    trio.run(main, sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4], sys.argv[5].split(","))

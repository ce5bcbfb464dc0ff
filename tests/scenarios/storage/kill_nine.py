"""A process to be killed: an agent that runs turns with tools on a real SQLite file, and says what it was promised.

    python kill_nine.py

Reads orders from its standard input, one a line: ``FIFO DATABASE MARKS SLOW [SESSION]``. Each makes it fork a process
that opens or resumes a session and runs turns until it is killed; its id is printed, and "gone" when it is. It writes
to FIFO one JSON line for each event that the storage has acknowledged, and for each terminal event it was told; its
mutating tool appends a line to MARKS each time it runs. SLOW is how many seconds the slow tool takes.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Sequence
from itertools import count
from typing import Any

import trio
from youyou import (
    Agent,
    AgentBuilder,
    AgentConfig,
    ChatRequest,
    ModelInfo,
    Notices,
    SessionEvent,
    Tool,
    ToolInput,
    ToolOutput,
    TurnCancelled,
    TurnComplete,
    UserMessage,
)
from youyou.adapters.sqlite import SQLiteSessionStorage
from youyou.core.compaction.compaction_texts import SUMMARY_PROMPT
from youyou.messages.content import text_of
from youyou.testing import ScriptedProvider
from youyou.testing.agents.scripted import call, calls, say

LONG = "and so on and on " * 25
numbers = count(1)
dice = random.SystemRandom()  # no two forks alike


class Model(ScriptedProvider):
    """Asks for two tools at once, then for a mutating one twice, then talks; its window is small."""

    def __init__(self) -> None:
        super().__init__([], models=[ModelInfo("scripted", "Scripted", 3_000)])

    def chat(self, request: ChatRequest) -> Any:
        newest = request.messages[-1]
        text = text_of(newest.content) if isinstance(newest, UserMessage) else ""
        if text.startswith(SUMMARY_PROMPT[:30]):
            self._rounds.append(say("Something was said."))
        elif text.startswith("look"):
            self._rounds.append([*calls("fast", "slow", text=LONG)[:1], 0.002, *calls("fast", "slow")])
        elif text.startswith("pay"):
            keys = [f"{os.getpid()}-{next(numbers)}" for _ in range(2)]
            self._rounds.append(calls(*[call("charge", {"key": key}, id=key) for key in keys]))
        else:
            self._rounds.append([*say(LONG)[:1], 0.001, *say("done")])
        return super().chat(request)


class Telling(SQLiteSessionStorage):
    """Tells of each event once it is stored."""

    def __init__(self, path: str, told: int) -> None:
        super().__init__(path)
        self._told = told

    async def save_events(self, session_id: str, events: Sequence[SessionEvent]) -> None:
        await trio.sleep(dice.uniform(0, 0.008))  # a busy disk: what does not wait for it runs ahead
        await super().save_events(session_id, events)
        for event in events:
            tell(self._told, event=event.seq, session=session_id, kind=type(event.payload).__name__)


def tell(told: int, **what: Any) -> None:
    """One line, whole or not at all."""
    os.write(told, (json.dumps(what) + "\n").encode())


def tools(marks: int, slow: float) -> list[Tool]:
    """A fast and a slow one that look, and one that leaves a mark outside."""

    async def look_fast(_: ToolInput) -> ToolOutput:
        await trio.sleep(0.001)
        return ToolOutput("seen fast")

    async def look_slow(_: ToolInput) -> ToolOutput:
        await trio.sleep(slow)
        return ToolOutput("seen slowly")

    async def charge(given: ToolInput) -> ToolOutput:
        os.write(marks, f"{given.arguments['key']}\n".encode())
        await trio.sleep(0.004)
        return ToolOutput("charged")

    schema = {"type": "object"}
    return [
        Tool("fast", "Looks.", schema, look_fast),
        Tool("slow", "Looks long.", schema, look_slow),
        Tool("charge", "Charges.", schema, charge, mutating=True),
    ]


async def live(fifo: str, database: str, marks: str, slow: str, session_id: str | None = None) -> None:
    """Run turns until the end comes."""
    told = os.open(fifo, os.O_WRONLY)
    appended = os.open(marks, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    builder = AgentBuilder(AgentConfig("scripted", notices=Notices.english())).register_model_provider(Model())
    for tool in tools(appended, float(slow)):
        builder.register_tool(tool)
    async with builder.register_session_storage(Telling(database, told)).build() as agent:
        await talk(agent, told, session_id)


async def talk(agent: Agent, told: int, session_id: str | None) -> None:
    """Turn after turn, telling of the end of each."""
    session = await (agent.resume_session(session_id) if session_id else agent.new_session())
    async with session:
        for number in count():
            turn = await session.send_message(f"{('look', 'pay')[number % 2]} {number}")
            async for event in turn:
                if isinstance(event.payload, TurnComplete | TurnCancelled):
                    tell(told, turn=event.turn_id, session=session.id)


def main() -> None:
    """Fork one process for each order, so that none pays for the imports."""
    for order in sys.stdin:
        if (pid := os.fork()) == 0:
            try:
                trio.run(live, *order.split())
            finally:
                os._exit(1)
        print(pid, flush=True)
        os.waitpid(pid, 0)
        print("gone", flush=True)


if __name__ == "__main__":
    main()

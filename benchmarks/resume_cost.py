"""How long it takes to resume 100 000 events that were compacted, and what the compaction saves (semantics 7).

python benchmarks/resume_cost.py
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import trio

from youyou import AgentBuilder, AgentConfig, Message, Metadata, ModelInfo, Session, SystemMessage, UserMessage
from youyou.adapters.sqlite import SQLiteSessionStorage
from youyou.core.compaction.decisions import CompactionRecord
from youyou.messages.history import AssistantMessage, ToolCall, ToolResult
from youyou.messages.hook_payloads import utc_now
from youyou.messages.records import SessionEvent
from youyou.testing import ScriptedProvider

EVENTS = 100_000
AFTER = 200
"""Events that came after the compaction."""
REPEATS = 3
BATCH = 5_000


def log(compacted: bool) -> list[SessionEvent]:
    """Turns of five events; in a compacted log a record stands for all but the last of them."""
    payloads: list[Message | Metadata] = []
    for turn in range(EVENTS // 5):
        payloads += [
            UserMessage(f"question {turn}, in a sentence of some length"),
            AssistantMessage("Let me look.", response_id=f"r{turn}"),
            ToolCall(f"c{turn}", "look", {"about": f"thing {turn}"}, response_id=f"r{turn}"),
            ToolResult(f"c{turn}", "a result of a line or so, as tools give it"),
            AssistantMessage(f"The answer to question {turn}."),
        ]
    if compacted:
        through = EVENTS - AFTER
        record = CompactionRecord("summary", 100_000, 1_000, through, (SystemMessage("A summary."),))
        payloads.insert(through, Metadata("compaction", record.to_value()))
    return [SessionEvent(seq, utc_now(), payload) for seq, payload in enumerate(payloads, 1)]


async def measure(path: Path, session_id: str, events: Sequence[SessionEvent]) -> tuple[float, float, int]:
    """Seconds of loading, seconds of resuming, messages of the resumed session."""
    async with SQLiteSessionStorage(path) as storage:
        for start in range(0, len(events), BATCH):
            await storage.save_events(session_id, events[start : start + BATCH])
        loading = float("inf")
        for _ in range(REPEATS):
            started = time.perf_counter()
            await storage.load_session(session_id)
            loading = min(loading, time.perf_counter() - started)
    model = ScriptedProvider([], models=[ModelInfo("scripted", "Scripted", 1_000_000_000)])
    builder = AgentBuilder(AgentConfig("scripted")).register_model_provider(model)
    async with builder.register_session_storage(SQLiteSessionStorage(path)).build() as agent:
        best, held = float("inf"), 0
        for _ in range(REPEATS):
            started = time.perf_counter()
            session: Session = await agent.resume_session(session_id)
            best = min(best, time.perf_counter() - started)
            held = len(session.history)
            await session.close()
    return loading, best, held


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        rows = {
            name: trio.run(measure, Path(folder) / f"{name}.db", name, log(name == "compacted"))
            for name in ("compacted", "whole")
        }
    for name, (loading, resuming, held) in rows.items():
        own = max(resuming - loading, 0.0)
        print(
            f"{name}: {EVENTS} events resumed in {resuming:.2f} s ({loading:.2f} s of it reading the file, "
            f"{own:.2f} s the runtime's own), {held} messages in history"
        )
    compacted, whole = rows["compacted"], rows["whole"]
    print(f"ratio of resuming, whole to compacted: {whole[1] / compacted[1]:.2f}")
    print(f"ratio of history, whole to compacted: {whole[2] / compacted[2]:.0f}")


if __name__ == "__main__":
    main()

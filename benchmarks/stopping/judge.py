"""What a strict provider refuses, and what a stop lost, by what happened and what the third request held."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from .world import Item, World

# What a result may say of a call that did not run, and of one whose outcome is not known. Ours are Chinese by default.
NOT_RUN = re.compile(r"cancel|skip|not (been )?(run|executed|started)|never|未执行", re.IGNORECASE)
UNSURE = re.compile(r"unknown|interrupt|may have|incomplete|partial|timed? ?out|结果未知", re.IGNORECASE)

COUNTS = {
    "invalid": "next request invalid",
    "refused": "next message refused",
    "two_users": "two user messages in a row",
    "text_lost": "visible text lost",
    "question_lost": "question lost",
    "result_lost": "finished result lost",
    "denied": "ran, history says not",
    "again": "ran again",
    "late": "over its bound",
    "slow": "over 3 s",
    "left": "tasks left",
    "late_effect": "effect afterwards",
}
"""What is counted, by its name in the tables."""
FAULTS = tuple(name for name in COUNTS if name not in ("two_users", "slow"))
"""Those that are faults. Some providers refuse two user messages in a row, others do not; a wait may be wanted."""


def strict(items: Sequence[Item]) -> set[str]:
    """What is wrong with a request, in the words of a strict provider."""
    wrong: set[str] = set()
    open_: list[str] = []
    made: set[str] = set()
    answered: set[str] = set()
    last = None
    for item in items:
        if item[0] == "result":
            if item[1] in answered:
                wrong.add("a result twice")
            elif item[1] not in open_:
                wrong.add("a result without a call")
            else:
                open_.remove(item[1])
            answered.add(item[1])
        else:
            if open_:
                wrong.add("a call without a result")
                open_ = []
            if item[0] == "assistant":
                if not item[1].strip() and not item[2]:
                    wrong.add("an empty assistant message")
                if set(item[2]) & made or len(set(item[2])) < len(item[2]):
                    wrong.add("a call twice")
                made |= set(item[2])
                open_ = list(item[2])
            elif last == "user":
                wrong.add("two users")
        last = item[0]
    if open_:
        wrong.add("a call without a result")
    return wrong


def lost_text(kept: str, seen: str) -> str:
    """What was seen and is not kept; white space does not count."""
    kept, seen = "".join(kept.split()), "".join(seen.split())
    if seen in kept:
        return ""
    common = 0
    while common < min(len(seen), len(kept)) and seen[common] == kept[common]:
        common += 1
    return seen[common:]


def judge(world: World, out: dict[str, Any]) -> dict[str, Any]:
    """One run: each count as true or false, and the details. ``out`` has what the driver saw."""
    row: dict[str, Any] = dict.fromkeys(COUNTS, False) | out
    if row["late"]:
        return row  # it was cut by force: what is left then is not the runtime's own doing
    # What came after the stop had returned cannot be in history: a thread's end, say. An effect then is counted apart.
    then = out.get("ran_then", len(world.ran))
    done = {what: [x for a, x in world.ran[:then] if a == what] for what in ("effect", "end")}
    starts, effects = ([x for a, x in world.ran if a == what] for what in ("start", "effect"))
    row["again"] = len(starts) > len(set(starts)) or len(effects) > len(set(effects))
    row["late_effect"] = len(effects) > len(done["effect"])
    if not world.requests["third"]:
        row["refused"] = True
        row["wrong"] = out.get("next") or "the model was not asked"
        return row
    items = world.requests["third"][0]
    wrong = strict(items)
    row["two_users"] = "two users" in wrong
    row["wrong"] = ", ".join(sorted(wrong - {"two users"}))
    row["invalid"] = bool(row["wrong"])
    asked = [n for n, item in enumerate(items) if item[0] == "user" and "second" in item[1]]
    row["question_lost"] = not asked and bool(world.seen or world.ran)
    earlier = ("assistant", "answer to first", [])
    after = items[asked[0] :] if asked else [item for item in items if item[:2] != earlier[:2]]
    lost = lost_text("".join(item[1] for item in after if item[0] == "assistant"), world.seen)
    row["text_lost"], row["lost"] = bool(lost), lost
    results = {item[1]: item[2] for item in items if item[0] == "result"}
    calls = {call for item in items if item[0] == "assistant" for call in item[2]}
    row["result_lost"] = any("done" not in results.get(f"call_{x}", "") for x in set(done["end"]))
    row["denied"] = any(denies(results.get(f"call_{x}"), f"call_{x}" in calls) for x in set(done["effect"]))
    said = {re.sub(r"call_\d", "call_N", text)[:160] for text in results.values() if "done" not in text}
    row["said"] = sorted(said)
    return row


def denies(result: str | None, called: bool) -> bool:
    """Whether history says of a call that had its effect that it did not run, or does not know of it."""
    if not called:
        return True
    return result is not None and "done" not in result and bool(NOT_RUN.search(result)) and not UNSURE.search(result)


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """All stops of one scenario and way: how many had what, and the first stop that had it."""
    found: dict[str, Any] = {"points": len(rows)}
    found["counts"] = {name: sum(bool(row[name]) for row in rows) for name in COUNTS}
    found["first"] = {name: next(row["at"] for row in rows if row[name]) for name in COUNTS if found["counts"][name]}
    for name in ("ms", "cpu_ms"):
        taken = sorted(row[name] for row in rows if name in row and not row.get("natural"))
        if taken:
            found[name] = [taken[len(taken) // 2], taken[min(len(taken) - 1, int(0.99 * len(taken)))]]
    found["ends"] = dict(Counter(str(row.get("end")) for row in rows if not row.get("natural")).most_common(6))
    found["wrong"] = dict(Counter(row["wrong"][:160] for row in rows if row.get("wrong")).most_common(4))
    found["said"] = sorted({text for row in rows for text in row.get("said", ())})[:6]
    return found

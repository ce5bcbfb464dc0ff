"""The tables of a run, in Markdown, and the pages of the documentation that hold them.

A page has `<!-- table: NAME -->` before a table and `<!-- end -->` after it; what stands between them is replaced.
"""

from __future__ import annotations

import re
import shlex
import statistics
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from .results import Results, spread
from .stopping.judge import COUNTS

NAMES = {
    "youyou": "**youyou**",
    "youyou new session": "youyou, a session for each turn",
    "limit": "LIMIT",
    "bare 0": "bare Trio, a hop for each delta",
    "bare 64": "bare Trio",
    "bare apsw": "bare apsw",
    "generator": "bare generator, no second task",
    "strands": "strands-agents",
    "autogen": "autogen-agentchat",
    "pydantic_ai": "pydantic-ai",
    "openai_agents": "openai-agents",
    "google_adk": "google-adk",
}
OTHERS = ("strands", "autogen", "pydantic_ai", "openai_agents", "langgraph")


def name_of(program: str) -> str:
    """As readers know it."""
    return NAMES.get(program, program)


def table(head: list[str], rows: Iterable[list[str]]) -> str:
    """In Markdown; empty without rows."""
    body = list(rows)
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) if body else ""


def fastest(results: Results, workload: str, figure: str) -> str:
    """The other runtime with the smallest median."""
    measured = {one: results.values(workload, one, figure) for one in OTHERS}
    medians = {one: statistics.median(values) for one, values in measured.items() if values}
    return min(medians, key=medians.__getitem__, default="")


def throughput(results: Results, workload: str) -> str:
    """W1 and W2: each program's time for a turn, and youyou's against it."""
    rows = []
    for program in results.speed.get(workload, {}):
        time = spread(results.values(workload, program, "ms"))
        against = [results.ratio(workload, "ms", *pair) for pair in ((program, "youyou"), ("youyou", program))]
        rows.append([name_of(program), time, *against])
    rows += missing(results, workload, 4)
    return table([f"{workload}, ms a turn", "median (range)", "its time / youyou's", "youyou's time / its"], rows)


def missing(results: Results, workload: str, columns: int) -> list[list[str]]:
    """A row for each program without figures, with the reason."""
    failed = results.failed.get(workload, {})
    rows = [[name_of(program), why, *["-"] * (columns - 2)] for program, why in failed.items()]
    for program, count in results.dropped.get(workload, {}).items():
        if program not in results.speed.get(workload, {}):
            rows.append([name_of(program), f"{count} rounds dropped: foreign load", *["-"] * (columns - 2)])
    return rows


def columns(results: Results, workload: str, figures: dict[str, tuple[str, int]]) -> str:
    """One row a program, one column a figure: its head, and how many digits it has."""
    rows = [
        [name_of(program), *(spread(results.values(workload, program, name), figures[name][1]) for name in figures)]
        for program in results.speed.get(workload, {})
    ]
    rows += missing(results, workload, len(figures) + 1)
    return table([workload.partition(":")[0], *(head for head, _ in figures.values())], rows)


def sizes(results: Results, name: str, head: str, figures: dict[str, tuple[str, int]], program: str = "youyou") -> str:
    """One row a size of a workload."""
    rows = []
    for workload in results.speed:
        kind, _, size = workload.partition(":")
        if kind == name and program in results.speed[workload]:
            cells = [spread(results.values(workload, program, one), digits) for one, (_, digits) in figures.items()]
            rows.append([size.replace(":", ", "), *cells])
    return table([head, *(one for one, _ in figures.values())], rows)


def agents(results: Results) -> str:
    """W4: many agents, of every program that ran it, and what grows."""
    rows = []
    for workload in (one for one in results.speed if one.startswith("W4:")):
        size = workload.partition(":")[2]
        for program in results.speed[workload]:
            cells = [results.values(workload, program, one) for one in ("s", "cpu_ms_an_agent", "peak_mib")]
            rows.append([size, name_of(program), spread(cells[0]), spread(cells[1]), spread(cells[2], 0)])
    head = ["agents at once", "runtime", "s, all of them", "CPU ms an agent", "MiB more at the peak"]
    return table(head, rows)


def storage(results: Results) -> str:
    """W7: youyou's events a second under load, and those of bare rows in transactions."""
    rows = []
    for workload in results.speed:
        kind, _, size = workload.partition(":")
        way, _, count = size.partition(":")
        if kind == "W7 load":
            many = f"youyou, {count} agents on one file"
            rows.append([way, many, spread(results.values(workload, "youyou", "events_a_second"), 0)])
        elif kind == "W7 rows":
            many = f"bare apsw, {count} rows a transaction"
            rows.append([way, many, spread(results.values(workload, "bare apsw", "events_a_second"), 0)])
    return table(
        ["synchronous", "who", "events a second"], sorted(rows, key=lambda row: (row[0] == "FULL", "bare" in row[1]))
    )


def added(results: Results) -> str:
    """W7: W2 with a file beside W2 without."""
    rows = []
    plain = results.values("W2", "youyou", "ms")
    for way in ("NORMAL", "FULL"):
        stored = results.values(f"W7:{way}", "youyou", "ms")
        if plain and stored:
            more = statistics.median(stored) / statistics.median(plain) - 1
            rows.append([way, spread(plain), spread(stored), f"{more:.0%} of W2"])
    return table(["synchronous", "W2, ms a turn", "W2 with SQLite", "added"], rows)


def installed(results: Results) -> str:
    """W5: the first turn of a process, and what has to be installed for it."""
    found = results.about.get("environments", {})
    rows = []
    for program in results.speed.get("W5", {}):
        cells = [results.values("W5", program, one) for one in ("whole_s", "rss_mib", "modules")]
        size = found.get(program, {})
        packages = f"{size['packages']} / {size['mib']:.0f}" if size else "-"
        shown = [spread(cells[0]), spread(cells[1], 0), spread(cells[2], 0)]
        rows.append([name_of(program), *shown, packages])
    head = ["runtime", "s, process start to the end of a turn", "RSS MiB", "modules", "packages / MiB installed"]
    return table(head, rows)


def goals(results: Results) -> str:
    """youyou beside the fastest other and beside the floors, in one table."""
    rows = []

    def row(name: str, value: str) -> None:
        if value != "-":
            rows.append([name, value])

    for workload, figure in (("W1", "ms"), ("W2", "ms"), ("W4:200", "s"), ("W5", "whole_s")):
        other = fastest(results, workload, figure)
        speed = results.ratio(workload, figure, other, "youyou")
        row(f"{workload}: as fast as the fastest other ({name_of(other)})", speed)
    for workload in ("W1", "W2"):
        row(f"{workload}: time against LIMIT", results.ratio(workload, "ms", "youyou", "limit"))
    for workload in ("W3:300", "W3:3000"):
        growth = results.values(workload, "youyou", "growth")
        row(f"{workload}: CPU of the last 50 turns against the first 50", spread(growth))
    few, many = (results.values(f"W4:{size}", "youyou", "cpu_ms_an_agent") for size in (200, 5000))
    if few and many:
        row("W4: CPU an agent, 5 000 against 200", f"{statistics.median(many) / statistics.median(few):.2f}x")
    row("W4: KiB for an idle agent with a session", spread(results.values("W4 idle:1000", "youyou", "kib"), 0))
    row("W5: import against the import of the dependencies", spread(results.values("W5 import", "youyou", "ratio")))
    row("W6: p99 of a stream's cancel, ms", spread(results.values("W6:100", "youyou", "ended_p99_ms")))
    passes = results.values("W6 passes:30", "youyou", "passes")
    row("W6: passes from the last tool's end to the reader's terminal event", spread(passes, 0))
    one, load = (results.values(f"W7 load:FULL:{size}", "youyou", "events_a_second") for size in (1, 64))
    if one and load:
        row(
            "W7: events a second under FULL, 64 agents against one",
            f"{statistics.median(load) / statistics.median(one):.1f}x",
        )
    for name, pair, figure in (
        ("100 000 characters of Chinese in one delta against ASCII", ("text:100000:中", "text:100000:a"), "ms"),
        ("opening a session with 1 000 registered tools against 10", ("tools:1000", "tools:10"), "open_ms"),
    ):
        above, below = (results.values(workload, "youyou", figure) for workload in pair)
        if above and below:
            row(name, f"{statistics.median(above) / statistics.median(below):.2f}x")
    step = results.values("compaction:8000", "youyou", "longest_step_ms")
    row("compaction of 8 000 messages: longest single step of the loop, ms", spread(step, 1))
    return table(["what", "median (range)"], rows)


def middle(results: Results, workload: str, program: str = "youyou", figure: str = "ms") -> float | None:
    """The median of a figure, in microseconds where it is a time."""
    values = results.values(workload, program, figure)
    return statistics.median(values) * 1e3 if values else None


def slopes(results: Results) -> str:
    """What a turn is charged for, from differences between workloads."""
    fixed, chat, tools = (middle(results, one) for one in ("text:1:a", "W1", "W2"))
    few, many = (middle(results, f"calls:{count}") for count in (2, 64))
    none, plugins = (middle(results, f"plugins:{count}") for count in (0, 16))
    opened = middle(results, "tools:10", figure="open_ms")
    found: list[tuple[str, float | None]] = [
        ("a turn of one delta", fixed),
        ("each delta more", (chat - fixed) / 199 if chat and fixed else None),
        ("each call more in a batch", (many - few) / 62 if many and few else None),
        ("each plugin that taps all hooks, in a turn of 8 calls", (plugins - none) / 16 if plugins and none else None),
        ("a session, opened and closed", opened),
    ]
    for way in ("NORMAL", "FULL"):
        stored = middle(results, f"W7:{way}")
        found.append((f"SQLite, {way}, in a turn of 8 calls", stored - tools if stored and tools else None))
    return table(["what", "us"], [[name, f"{value:,.1f}"] for name, value in found if value is not None])


def guarantees(results: Results) -> str:
    """What a delta costs, from the bare loop to youyou."""
    generator, hop, limit, ours = (middle(results, "W1", one) for one in ("generator", "bare 0", "limit", "youyou"))
    if not (generator and hop and limit and ours):
        return ""
    rows = [
        ["the stream itself, read by an async for", generator],
        [
            "a number, a time stamp, an envelope, a bounded queue, text kept in the step in which it is said",
            limit - generator,
        ],
        [
            "what LIMIT leaves out: checks of what a provider sends, silence watched, hooks, sizes, a stop at any step",
            ours - limit,
        ],
        ["all of it", ours],
        ["for comparison, what a task switch for each delta would add to the stream", hop - generator],
    ]
    return table(["for each delta", "us"], [[str(name), f"{float(value) / 200:.2f}"] for name, value in rows])


PIECES = {
    "generator_item": "an item of an async generator",
    "delta": "a frozen `TextDelta`",
    "time_stamp": "a time stamp",
    "checkpoint": "a checkpoint with nothing else to run",
    "cancel_scope": "a cancel scope",
    "task": "a task that does nothing",
    "hop": "an item through a channel without a buffer",
    "thread": "a call in a thread",
}


def pieces(results: Results) -> str:
    """What a turn is made of."""
    rows = [[name, spread(results.values("pieces", "youyou", one))] for one, name in PIECES.items()]
    return table(["piece", "us"], rows) if results.speed.get("pieces") else ""


def pythons(results: Results) -> str:
    """W1 and W2 on each version of Python."""
    rows = []
    for version, speed in {results.python: results.speed, **results.pythons}.items():
        here = Results(speed=speed)
        for workload in ("W1", "W2"):
            other = fastest(here, workload, "ms")
            if values := here.values(workload, "youyou", "ms"):
                against = here.ratio(workload, "ms", "youyou", "limit"), here.ratio(workload, "ms", other, "youyou")
                rows.append([version, workload, spread(values), *against, name_of(other)])
    head = ["Python", "workload", "ms a turn", "its time / LIMIT's", "the fastest other's time / its", "which"]
    return table(head, rows) if results.pythons else ""


def machine(results: Results) -> str:
    """Where a run was made, in a sentence."""
    about = results.about
    versions = ", ".join(f"{name} {version}" for name, version in about.get("versions", {}).items())
    if not about:
        return ""
    few = about.get("rest", about["rounds"])
    rest = "" if few == about["rounds"] else f" of W1 and W2 and {few} of the rest"
    return (
        f"{about['date']}, commit {about['commit']}, Python {about['python']}, {about['system']}, {about['processor']} "
        f"with {about['cores']} cores, pinned to core {about['core']}, {about['rounds']} rounds{rest}; measurements "
        f"with more than {about['foreign load']:.0%} foreign load were dropped. {versions}."
    )


def stopping(results: Results) -> str:
    """One row a runtime and way to stop, all scenarios together."""
    rows = []
    for (runtime, way), some in by_way(results).items():
        counts = [sum(one["counts"][name] for one in some) for name in COUNTS]
        longest = max((one["ms"][1] for one in some if "ms" in one), default=0.0)
        shown = [str(count) if count else "" for count in counts]
        rows.append(
            [name_of(runtime), f"`{way}`", str(sum(one["points"] for one in some)), *shown, f"{longest / 1e3:.1f}"]
        )
    head = ["runtime", "way to stop", "stops", *COUNTS.values(), "longest p99, s"]
    return table(head, rows)


def by_way(results: Results) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Runtime and way: its scenarios."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for one in results.stopping:
        if "counts" in one:
            found.setdefault((one["runtime"], one["way"]), []).append(one)
    return found


def stopping_smallest(results: Results) -> str:
    """For each runtime and count that is not zero: the stop that shows it, the simplest scenario first."""
    rows, had = [], set()
    for one in results.stopping:
        for name, at in one.get("first", {}).items():
            if (one["runtime"], name) not in had:
                had.add((one["runtime"], name))
                command = f"`{one['runtime']} --one {one['scenario']} {shlex.quote(one['way'])} {at}`"
                rows.append([name_of(one["runtime"]), COUNTS[name], command])
    return table(["runtime", "what", "arguments of `python -m benchmarks.stopping.worker`"], rows)


def stopping_without(results: Results) -> str:
    """Scenarios that a runtime does not have."""
    rows = [[name_of(one["runtime"]), one["scenario"], one["without"]] for one in results.stopping if "without" in one]
    return table(["runtime", "scenario", "left out because"], rows)


def stopping_said(results: Results) -> str:
    """What the history says of calls that did not end."""
    rows = []
    for runtime in dict.fromkeys(one["runtime"] for one in results.stopping):
        said = {text for one in results.stopping if one["runtime"] == runtime for text in one.get("said", ())}
        rows += [[name_of(runtime), text.replace("|", "/").replace("\n", " ")] for text in sorted(said)[:4]]
    return table(["runtime", "what a result says of a call that did not end"], rows)


TABLES: dict[str, Callable[[Results], str]] = {
    "machine": machine,
    "goals": goals,
    "W1": lambda results: throughput(results, "W1"),
    "W2": lambda results: throughput(results, "W2"),
    "W3": lambda results: columns(
        results,
        "W3:300",
        {"ms_first": ("ms a turn, 1-50", 2), "ms_last": ("ms a turn, 251-300", 2), "growth": ("growth", 2)},
    ),
    "W3 long": lambda results: columns(
        results,
        "W3:3000",
        {"ms_first": ("ms a turn, 1-50", 2), "ms_last": ("ms a turn, 2951-3000", 2), "growth": ("growth", 2)},
    ),
    "W4": agents,
    "W4 idle": lambda results: columns(results, "W4 idle:1000", {"kib": ("KiB an idle agent with a session", 0)}),
    "W5": installed,
    "W6": lambda results: columns(
        results,
        "W6:100",
        {
            "ended_p50_ms": ("ms to the end of the reading loop, p50", 2),
            "ended_p99_ms": ("p99", 2),
            "closed_p50_ms": ("to the provider's stream closed, p50", 2),
            "closed_p99_ms": ("p99", 2),
        },
    ),
    "W7": added,
    "W7 load": storage,
    "calls": lambda results: sizes(results, "calls", "calls in a batch", {"ms": ("ms a turn", 2)}),
    "plugins": lambda results: sizes(results, "plugins", "plugins that tap all hooks", {"ms": ("W2, ms a turn", 2)}),
    "tools": lambda results: sizes(
        results,
        "tools",
        "registered tools",
        {"open_ms": ("ms to open and close a session", 2), "turn_ms": ("ms a turn", 2)},
    ),
    "text": lambda results: sizes(results, "text", "characters in one delta", {"ms": ("ms a turn", 2)}),
    "compaction": lambda results: sizes(
        results,
        "compaction",
        "messages",
        {"ms": ("ms of the turn", 1), "longest_step_ms": ("ms of the longest step", 1)},
    ),
    "resume": lambda results: sizes(
        results, "resume", "events in the file", {"s": ("s to resume", 2), "load_s": ("of which reading the file", 2)}
    ),
    "pythons": pythons,
    "pieces": pieces,
    "slopes": slopes,
    "guarantees": guarantees,
    "stopping": stopping,
    "smallest": stopping_smallest,
    "without": stopping_without,
    "said": stopping_said,
}
"""Name of a table: what makes it; empty where there are no figures."""


def all_tables(results: Results) -> dict[str, str]:
    """Those for which there are figures."""
    made = {name: make(results) for name, make in TABLES.items()}
    return {name: text for name, text in made.items() if text}


def put_into(page: Path, tables: dict[str, str]) -> int:
    """Replace the tables of a page for which there are new ones. How many were replaced."""

    def new(match: re.Match[str]) -> str:
        text = tables.get(match["name"])
        return f"{match['begin']}\n{text}\n\n<!-- end -->" if text else match[0]

    pattern = r"(?P<begin><!-- table: (?P<name>[^>]+?) -->\n).*?<!-- end -->"
    before = page.read_text()
    after, count = re.subn(pattern, new, before, flags=re.DOTALL)
    if after != before:
        page.write_text(after)
    return count

"""The tables of a run, in Markdown."""

from __future__ import annotations

from .results import Results, spread

NAMES = {
    "youyou": "**youyou**",
    "youyou new session": "youyou, a session for each turn",
    "limit": "LIMIT",
    "bare 0": "bare Trio, a hop for each delta",
    "bare 64": "bare Trio, a channel of 64",
    "generator": "bare generator, no second task",
    "pydantic_ai": "pydantic-ai",
    "openai_agents": "openai-agents",
}


def name_of(program: str) -> str:
    """As readers know it."""
    return NAMES.get(program, program)


def table(head: list[str], rows: list[list[str]]) -> str:
    """In Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


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


def all_tables(results: Results) -> dict[str, str]:
    """Name of a table: the table. Those for which there are figures."""
    return {workload: throughput(results, workload) for workload in ("W1", "W2") if workload in results.speed}

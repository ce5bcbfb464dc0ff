"""What a run has measured: kept as JSON, from which tables and charts are made, at once or later.

Each figure is a list, one value a round, so that medians, spread and ratios within a round can be taken from the file.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

Cell = dict[str, list[float]]
"""Figure: its value in each round that counted; `round` has the numbers of those."""


@dataclass
class Results:
    """A run."""

    about: dict[str, Any] = field(default_factory=dict)
    """Machine, Python, versions, settings."""
    speed: dict[str, dict[str, Cell]] = field(default_factory=dict)
    """Workload: program: figures."""
    dropped: dict[str, dict[str, int]] = field(default_factory=dict)
    """Workload: program: rounds that were dropped because others took too much of the core."""
    failed: dict[str, dict[str, str]] = field(default_factory=dict)
    """Workload: program: why it has no figures."""
    stopping: list[dict[str, Any]] = field(default_factory=list)
    """One row for each runtime, scenario and way to stop."""
    pythons: dict[str, dict[str, dict[str, Cell]]] = field(default_factory=dict)
    """Version: what runs on other versions of Python have measured, as ``speed``."""

    @property
    def python(self) -> str:
        """The version on which it was measured, without the last number."""
        return ".".join(str(self.about.get("python", "")).split(".")[:2])

    def add(self, workload: str, program: str, figures: dict[str, float]) -> None:
        """One round more; ``figures`` have its number as `round`."""
        cell = self.speed.setdefault(workload, {}).setdefault(program, {})
        for name, value in figures.items():
            cell.setdefault(name, []).append(value)

    def values(self, workload: str, program: str, figure: str) -> list[float]:
        """All rounds; none: it was not measured."""
        return self.speed.get(workload, {}).get(program, {}).get(figure, [])

    def ratio(self, workload: str, figure: str, program: str, to: str) -> str:
        """The ratio of the medians, and the range of the ratios within each round."""
        values, others = self.values(workload, program, figure), self.values(workload, to, figure)
        if not values or not others:
            return "-"
        median = f"{statistics.median(values) / statistics.median(others):.2f}x"
        by_round = dict(zip(self.values(workload, to, "round"), others, strict=True))
        rounds = zip(self.values(workload, program, "round"), values, strict=True)
        each = [value / by_round[number] for number, value in rounds if number in by_round]
        return median if len(each) < 2 else f"{median} ({min(each):.2f}-{max(each):.2f})"

    def save(self, path: Path) -> None:
        """As JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(rounded(asdict(self)), indent=1) + "\n")

    @classmethod
    def merged(cls, runs: Sequence[Results]) -> Results:
        """One run of several: what each has measured, the last that measured a workload; about the first.

        Runs on another version of Python than the first stand beside it.
        """
        whole = cls(runs[0].about)
        for one in runs:
            if one.python != whole.python:
                whole.pythons[one.python] = one.speed
                continue
            whole.speed |= one.speed
            whole.dropped |= one.dropped
            whole.failed |= one.failed
            whole.stopping = one.stopping or whole.stopping
        return whole

    @classmethod
    def load(cls, path: Path) -> Results:
        """What `save` wrote."""
        return cls(**json.loads(path.read_text()))


def rounded(value: Any) -> Any:
    """Five significant digits: more is noise."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, list) else value


def spread(values: Sequence[float], digits: int = 2) -> str:
    """The median, and the range."""
    if not values:
        return "-"
    median = f"{statistics.median(values):,.{digits}f}"
    return median if len(values) == 1 else f"{median} ({min(values):,.{digits}f}-{max(values):,.{digits}f})"

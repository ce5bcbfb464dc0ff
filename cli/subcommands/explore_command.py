"""``youyou explore``: cancel, break and reorder a scenario from the command line. The engine is `youyou.testing`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs
import msgspec

from ..base.exits import ERROR, OK, CommandError, UsageError
from ..base.output import put

if TYPE_CHECKING:
    from ...testing import Report


def explore(
    scenario: str,
    *,
    schedules: int | None,
    seed: int,
    cancel: str | None,
    token: str | None,
    html: str | None,
    as_json: bool,
    budget: str | None = None,
    workers: int | None = None,
    until_quiet: bool = False,
    profile: str | None = None,
) -> int:
    """Try everything on the scenario and print what was found; the command's exit code."""
    from ...testing import Interrupted, examine, load_scenario
    from ...testing.campaigns.campaign import Elsewhere
    from ...testing.campaigns.profiles import PROFILES, seconds_of
    from ...testing.workers.crew import WorkersLost

    settings = None if profile is None else PROFILES[profile]
    if settings is not None:
        schedules = settings.schedules if schedules is None else schedules
        workers = settings.workers if workers is None else workers
        until_quiet = until_quiet or schedules is None
    progress = _Progress(sys.stderr.isatty())
    try:
        limit = seconds_of(budget) if budget is not None else None if settings is None else settings.budget
        load_scenario(scenario)
        reports = examine(
            scenario,
            schedules=schedules,
            seed=seed,
            cancel=cancel,
            token=token,
            budget=limit,
            until_quiet=until_quiet,
            workers=workers,
            progress=progress,
        )
    except Interrupted as interrupted:
        progress.clear()
        put(f"{interrupted.report}\n")
        raise
    except ValueError as error:
        # What was typed: the scenario's own errors are in its report.
        raise UsageError(str(error)) from error
    except (Elsewhere, WorkersLost) as error:
        raise CommandError(str(error)) from error
    finally:
        progress.clear()
    if html is not None:
        _write_html(reports, html)
    put((_json(reports) if as_json else _text(reports, token is not None)) + "\n")
    return OK if all(report.ok for report in reports) else ERROR


@attrs.frozen
class _Progress:
    """A line on stderr that counts, on a terminal only."""

    shown: bool

    def __call__(self, done: int, planned: int, failures: int) -> None:
        wrong = f", {failures} failed" if failures else ""
        self._write(f"{done:,} of {max(done, planned):,} runs{wrong}")

    def clear(self) -> None:
        """Take the line away."""
        self._write("")

    def _write(self, text: str) -> None:
        if self.shown:
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()


def _json(reports: Sequence[Report]) -> str:
    whole = {"ok": all(report.ok for report in reports), "reports": [report.to_json() for report in reports]}
    return msgspec.json.encode(whole).decode()


def _text(reports: Sequence[Report], with_trace: bool) -> str:
    parts = []
    for report in reports:
        parts += [report.trace, str(report)] if with_trace else [str(report)]
    return "\n".join(parts)


def _write_html(reports: Sequence[Report], path: str) -> None:
    """The page of the first report that failed, or else of the first."""
    report = next((each for each in reports if not each.ok), reports[0])
    try:
        with open(path, "w", encoding="utf-8") as page:
            page.write(report.to_html())
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror}") from error

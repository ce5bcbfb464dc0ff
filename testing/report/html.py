"""A report as one page that stands alone: no network, no file beside it, opens in any browser.

    write_html(sweep(scenario), "report.html")

Puts into words what can be said in words; the drawing is made in the reader's browser by the scripts in ``page/`` from
the data that `drawing` prepares. Whatever a program under test says is text here, never markup. Never runs anything.
"""

from __future__ import annotations

import html
import json
import math
import os
from collections.abc import Iterable
from importlib.resources import files
from string import Template

from ..process.locations import Location, Wait
from .drawing import MOST_VIEWS, Places, hits, snippet, views
from .findings import Coverage, Failure, Findings, seconds_in_words

_SCRIPTS = ("model.js", "scales.js", "details.js", "lanes.js", "trace.js", "page.js")
_LONGEST_TITLE = 160
_MEANING = {
    "error": "An exception came out that was neither injected nor allowed.",
    "deadlock": "No task can run, no deadline is set, nothing is left to wait for.",
    "always": "A promise that must hold after every step was broken.",
    "at_end": "A promise about the end was broken.",
    "eventually": "Something that had to happen never did, or not in time.",
    "shutdown": "What was cancelled took longer to end than the scenario allows.",
    "leak": "Something was left behind: a coroutine, a generator or a task.",
    "steps": "The run did not end within the steps it was given.",
    "time": "The run did not end within the virtual time it was given.",
    "swallowed": "A cancel was delivered, its scope did not catch it, and the task went on.",
    "stuck": "The program does not end when it is cancelled.",
    "nondeterminism": "Two runs of the same attempt differ, so nothing else can be shown.",
    "engine": "The testing engine itself failed.",
}


def write_html(report: Findings, path: str | os.PathLike[str]) -> None:
    """Write ``report`` as a page to ``path`` (semantics 15)."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(page(report))


def page(report: Findings) -> str:
    """``report`` as a page."""
    places = Places()
    data = {"views": views(report, places), "places": places.found}
    return Template(_asset("page.html")).substitute(
        scenario=_text(report.scenario),
        mode=_text(report.mode),
        verdict=_verdict(report),
        verdict_class="good" if report.ok else "bad",
        note="".join(_tag("p", said, "note") for said in _remarks(report) if said),
        figures="".join(f"<div>{_tag('dd', value)}{_tag('dt', name)}</div>" for name, value in _figures(report)),
        tabs=_tabs(report),
        cases="".join(_case(failure, number) for number, failure in enumerate(report.failures[:MOST_VIEWS])),
        coverage=_coverage(report.coverage) + _unresolved(report),
        style=_asset("page.css"),
        data=_safe_json(data),
        script="\n".join(map(_asset, _SCRIPTS)),
    )


def _remarks(report: Findings) -> Iterable[str]:
    """What has to be said about all runs."""
    notes = (f"note: {found.message}" for found in report.notes)
    return report.note, report.partial, *report.missed, *notes


def _asset(name: str) -> str:
    return (files(__package__) / "page" / name).read_text(encoding="utf-8")


def _safe_json(data: object) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _text(value: object) -> str:
    return html.escape(str(value))


def _tag(name: str, text: object, style: str = "") -> str:
    return f'<{name} class="{style}">{_text(text)}</{name}>' if style else f"<{name}>{_text(text)}</{name}>"


def _verdict(report: Findings) -> str:
    return "nothing went wrong" if report.verdict == "ok" else report.verdict


def _figures(report: Findings) -> Iterable[tuple[str, str]]:
    """The numbers at the top: name and value."""
    yield "runs", f"{report.runs:,}"
    if report.failing_runs:
        yield "failing runs", f"{report.failing_runs:,}"
    yield "steps undisturbed", f"{len(report.baseline.steps):,}"
    yield "tasks", f"{len(report.baseline.tasks):,}"
    if report.planned:
        yield "injections delivered", f"{report.delivered:,} of {report.planned:,}"
        yield "injections not reached", f"{report.not_reached:,}"
        yield "injections without effect", f"{report.without_effect:,}"
    if report.mode == "exploration":
        yield "distinct orders", f"{report.distinct:,}" + (" (none left)" if report.exhausted else "")
    if report.coverage.seen:
        seen = len(report.coverage.seen)
        yield "await locations cancelled", f"{seen - len(report.coverage.never)} of {seen}"
    if report.worst_shutdown is not None:
        yield f"slowest shutdown ({report.worst_shutdown_token})", seconds_in_words(report.worst_shutdown)
    yield "took", f"{report.seconds:.2f} s"


def _tabs(report: Findings) -> str:
    names = [(failure.kind, failure.message) for failure in report.failures[:MOST_VIEWS]]
    names.append(("undisturbed run", "") if report.mode != "replay" else ("replayed run", ""))
    return "".join(
        f'<button role="tab" data-view="{number}" title="{_text(message)}">{_text(kind)}'
        f"{_tag('small', message[:60]) if message else ''}</button>"
        for number, (kind, message) in enumerate(names)
    )


# One failure.


def _case(failure: Failure, number: int) -> str:
    """Everything about a failure that can be said in words."""
    parts = [
        _tag("h2", f"{failure.kind}: {_first_line(failure.message)}"),
        _tag("p", _MEANING.get(failure.kind, ""), "meaning"),
        f'<ol class="story">{"".join(f"<li>{part}</li>" for part in _story(failure))}</ol>',
        _code_around(failure),
        _waits(failure.waits),
        _replay(failure),
        f"<details><summary>Exception</summary>{_tag('pre', failure.traceback)}</details>" if failure.traceback else "",
    ]
    return f'<section class="case" data-view="{number}">{"".join(parts)}</section>'


def _story(failure: Failure) -> Iterable[str]:
    """What happened, in order."""
    order = failure.attempt.order
    if order.deviations:
        yield f"The tasks ran in another order: {_count(len(order.deviations), 'decision')} off the plain order."
    elif order.strategy != "plain":
        yield f"The tasks ran in the order of strategy {_text(order.strategy)}, seed {order.seed}."
    if failure.attempt.latency or failure.attempt.chaos is not None:
        yield "Ports answered late or failed, as the seed decided."
    run = failure.run.crashed or failure.run
    for words, (step, time, task) in zip(failure.injected, run.fired_at, strict=False):
        yield f"<b>{_text(words)}</b>, in step {step} at {time:g} s, while {_tag('code', task)} was current."
    for delivery in hits(run):
        yield f"It hit {_tag('code', delivery.task)} in step {delivery.step}, at {_place(delivery.location)}."
    if failure.run.crashed is not None:
        yield "The program was started again on what the crash had left."
    if failure.run.shutdown is not None:
        ended = math.isfinite(failure.run.shutdown)
        later = f"had ended {failure.run.shutdown:g} virtual seconds later" if ended else "never ended"
        yield f"What was cancelled {later}."
    if failure.run.violations:
        violation = next((v for v in failure.run.violations if v.kind == failure.kind), failure.run.violations[0])
        late = violation.step > len(failure.run.steps)
        when = "At the end" if late else f"After step {violation.step}"
        yield f"{_tag('b', when)}: {_tag('span', violation.message, 'said')}"


def _first_line(message: str) -> str:
    line, _, rest = message.partition("\n")
    return line if len(line) <= _LONGEST_TITLE and not rest else line[:_LONGEST_TITLE] + " …"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _place(location: Location) -> str:
    return f'<code title="{_text(location.file)}">{_text(location)}</code>'


def _code_around(failure: Failure) -> str:
    """The lines around the await that was hit."""
    lines = snippet(failure.location)
    shown = [
        f'<span class="{"hit" if number == failure.location.line else ""}"><i>{number}</i> {_text(text)}</span>'
        for number, text in lines
    ]
    if not shown:
        return ""
    code = "\n".join(shown)
    return f'<figure><figcaption>{_place(failure.location)}</figcaption><pre class="code">{code}</pre></figure>'


def _waits(waits: Iterable[Wait]) -> str:
    """Which task waits where, and for which other."""
    rows = [
        f"<tr>{_tag('th', wait.task)}<td>{_place(wait.location)}</td>{_tag('td', _source(wait.location), 'source')}"
        f"<td>{_text(wait.call)}"
        f"{f' ({_text(wait.detail)})' if wait.detail else ''}</td>"
        f"<td>{_text(' and '.join(wait.holders)) or '&mdash;'}</td></tr>"
        for wait in waits
    ]
    head = "<tr><th>task</th><th>waits at</th><th></th><th>in</th><th>until this one acts</th></tr>"
    return f'<table class="waits"><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table>' if rows else ""


def _replay(failure: Failure) -> str:
    command = f"YOUYOU_REPLAY={failure.token} pytest …"
    cases = "1 run" if failure.cases == 1 else f"{failure.cases} runs"
    return (
        f'<p class="replay"><span>replay</span> {_tag("code", command)} or '
        f'<code>replay(scenario, "<b class="token">{_text(failure.token)}</b>")</code> '
        f'<button class="copy" data-copy="{_text(failure.token)}">copy token</button> '
        f"<small>{cases} went wrong this way; this is the smallest</small></p>"
    )


# What the sweep did not reach.


def _coverage(coverage: Coverage) -> str:
    if not coverage.seen:
        return ""
    never = coverage.never
    intro = f"{len(coverage.seen) - len(never)} of {len(coverage.seen)} await locations were cancelled."
    table = _locations(never, "never cancelled") + _locations(coverage.cancelled, "cancelled")
    return f'<section class="coverage"><h2>Coverage</h2><p>{intro}</p>{table}</section>'


def _locations(pairs: tuple[tuple[str, Location], ...], title: str) -> str:
    if not pairs:
        return ""
    rows = "".join(
        f"<tr>{_tag('th', task)}<td>{_place(location)}</td>{_tag('td', _source(location), 'source')}</tr>"
        for task, location in pairs
    )
    shown = " open" if title.startswith("never") else ""
    return f"<details{shown}><summary>{len(pairs)} {title}</summary><table>{rows}</table></details>"


def _source(location: Location) -> str:
    return next((text.strip() for number, text in snippet(location) if number == location.line), "")


def _unresolved(report: Findings) -> str:
    tokens = report.unresolved
    if not tokens:
        return ""
    listed = " ".join(_tag("code", token) for token in tokens[:200])
    return (
        f"<section><h2>Unresolved</h2><details><summary>{_count(len(tokens), 'injection')} without effect: "
        f'these runs show nothing, good or bad</summary><p class="tokens">{listed}</p></details></section>'
    )

"""The runs of a campaign, one unit after another in this process, or spread over others: with one verdict.

A unit is what is done to a scenario at one point, or one order of its tasks. What a unit shows depends on nothing but
its description, and results are entered in the order of the units: how many processes there are, who did what, and who
died on the way cannot be told from the report.
"""

from __future__ import annotations

import functools
import math
import pickle
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar

import attrs

from ..engine.attempt import Attempt, Limits, Run
from ..engine.running import prepared
from ..engine.simulation import Scenario
from ..report.seen import Known, Seen, seen_of, trace_of
from ..workers.crew import Crew
from ..workers.references import CannotTravel, reference_to, resolve
from ..workers.results_file import ResultsFile
from .campaign import ELSEWHERE, Campaign, Elsewhere, name_of
from .targets import SWEPT, as_scenario

Workers = int | Executor | None
U = TypeVar("U")
_LARGEST_CHUNK = 64
_CHUNKS_EACH = 4


@attrs.frozen
class Part(Generic[U]):
    """How one kind of campaign does a unit; the module that has it says so with a name that travels."""

    do: Callable[[Campaign, Any, U], None]
    """Takes the campaign, the plan and the unit; every run that it makes is entered."""
    name: str
    """``module:function`` of `do`."""


@attrs.frozen
class Job:
    """All that another process needs to do units of a campaign."""

    part: str
    scenario: str
    recover: str | None
    limits: Limits
    allow: tuple[str, ...]
    target: str | None
    error: str | None
    plan: Any
    base: Attempt
    mode: str


@attrs.frozen
class Outcome:
    """What came of some units."""

    trace: bytes = b""
    """Of the undisturbed run, in the process that did them."""
    seen: tuple[tuple[Seen, ...], ...] = ()
    """For each unit its runs."""
    refused: str = ""
    """Why nothing was done, in words."""


class Team(Generic[U]):
    """Does the units of one campaign. A context: it ends the processes that it started."""

    def __init__(
        self,
        campaign: Campaign,
        plan: Any,
        part: Part[U],
        workers: Workers,
        chunk: int | None,
        save: ResultsFile | None,
    ) -> None:
        self._campaign, self._plan, self._part, self._chunk, self._save = campaign, plan, part, chunk, save
        self.by_rounds: bool = workers is not None
        """Whether what to try next is decided for many at once, and not after each."""
        self._crew = None if workers is None or workers == 0 else Crew(workers)
        self._job: Job | None = None
        self._checked = save is None

    def __enter__(self) -> Team[U]:
        return self

    def __exit__(self, *_: object) -> None:
        if self._crew is not None:
            self._crew.__exit__()

    def do(self, units: Sequence[U]) -> Iterator[tuple[U, tuple[Seen, ...]]]:
        """Do ``units`` and give each back with its runs when these are in the books.

        Raises:
            OutOfTime: the budget is used up.
            ValueError: the scenario cannot be run in another process.
        """
        kept = list(self._kept(units))
        # A unit may be undone: the campaign was stopped in the middle of it. Its runs were not kept.
        for unit, seen in kept:
            for each in seen:
                self._campaign.enter(each)
            yield unit, seen
        left = units[len(kept) :]
        for unit, seen in self._here(left) if self._crew is None else self._elsewhere(self._crew, left):
            if self._save is not None:
                self._save.add(seen)
            yield unit, seen

    def _kept(self, units: Sequence[U]) -> Iterator[tuple[U, tuple[Seen, ...]]]:
        if not self._checked:
            self._check_kept()
        for unit in units:
            seen = None if self._save is None else self._save.next()
            if seen is None:
                return
            yield unit, seen

    def _check_kept(self) -> None:
        """The first record is the course of the undisturbed run: of another program, the others say nothing."""
        assert self._save is not None
        assert self._campaign.base is not None
        self._checked, course = True, trace_of(self._campaign.base)
        first = self._save.next()
        if first is None:
            self._save.add((Seen(trace=course),))
        elif first[0].trace != course:
            raise ValueError("the program takes another course than when these results were kept; use another file")

    def _here(self, units: Sequence[U]) -> Iterator[tuple[U, tuple[Seen, ...]]]:
        for unit in units:
            seen: list[Seen] = []
            self._campaign.check_budget()
            self._campaign.listener, self._campaign.told = seen.append, self._campaign.runs
            try:
                self._part.do(self._campaign, self._plan, unit)
            finally:
                self._campaign.listener = None
            yield unit, tuple(seen)

    def _elsewhere(self, crew: Crew, units: Sequence[U]) -> Iterator[tuple[U, tuple[Seen, ...]]]:
        if self._job is None:
            self._job = job_of(self._campaign, self._plan, self._part)
        assert self._campaign.base is not None
        expected = trace_of(self._campaign.base)
        size = self._chunk or max(1, min(_LARGEST_CHUNK, math.ceil(len(units) / (crew.size * _CHUNKS_EACH))))
        chunks = [units[i : i + size] for i in range(0, len(units), size)]
        results = crew.results(functools.partial(perform, self._job), chunks)
        try:
            for chunk, outcome in zip(chunks, results, strict=True):
                if outcome.refused:
                    raise ValueError(f"no other process can run {self._job.scenario}: {outcome.refused}")
                if outcome.trace != expected:
                    raise Elsewhere(f"the undisturbed run takes another course in a worker: {ELSEWHERE}")
                for unit, seen in zip(chunk, outcome.seen, strict=True):
                    self._campaign.check_budget()
                    for each in seen:
                        self._campaign.enter(each)
                    yield unit, seen
        finally:
            results.close()  # type: ignore[attr-defined]  # a generator


def check_workers(workers: Workers, chunk: int | None) -> None:
    """Raise `ValueError` for what cannot work."""
    if isinstance(workers, ThreadPoolExecutor):
        raise ValueError(
            "threads share one interpreter, and a simulation needs it for itself: give processes to workers="
        )
    if workers is not None and not isinstance(workers, Executor):
        Crew(workers)
    if chunk is not None and chunk < 1:
        raise ValueError(f"chunk={chunk}; write how many runs a worker is handed at once, at least 1")


@contextmanager
def results_file(
    path: str | Path | None, campaign: Campaign, plan: Any, **more: object
) -> Iterator[ResultsFile | None]:
    """The file of a campaign, if there is to be one."""
    if path is None:
        yield None
        return
    limits = attrs.asdict(campaign.limits, filter=lambda field, _: field.name not in ("durables", "target", "error"))
    title = f"{campaign.mode} of {name_of(campaign.scenario)}; {plan}; {limits}; {more}"
    with ResultsFile(path, title, tuple[Seen, ...]) as kept:
        yield kept


def job_of(campaign: Campaign, plan: Any, part: Part[Any]) -> Job:
    """What another process needs for this campaign.

    Raises:
        CannotTravel: the scenario, or a function given with it, is made inside another function.
    """
    limits, base = campaign.limits, campaign.base
    assert base is not None
    return Job(
        part.name,
        _name_of(campaign.given),
        None if campaign.recover_given is None else _name_of(campaign.recover_given),
        attrs.evolve(limits, allow=(), target=None, error=None),
        tuple(reference_to(kind) for kind in limits.allow),
        None if limits.target is None else reference_to(limits.target),
        None if limits.error is None else reference_to(limits.error),
        plan,
        base.attempt,
        campaign.mode,
    )


def _name_of(given: Any) -> str:
    if not isinstance(given, str):
        return reference_to(given)
    module, _, function = given.rpartition(":")
    return f"{Path(module).resolve()}:{function}" if module.endswith(".py") else given


@attrs.frozen(eq=False)
class Place:
    """A job, unpacked in a worker."""

    key: bytes
    scenario: Scenario
    recover: Scenario | None
    limits: Limits
    do: Callable[[Campaign, Any, Any], None]
    base: Run


_place: list[Place] = []
"""Of the job that this process did last: its next units are of the same one, nearly always."""


def perform(job: Job, units: Sequence[Any]) -> Outcome:
    """Do some units, in a worker. Never raises: what comes out of a worker otherwise is its end."""
    try:
        place = _placed(job)
    except (CannotTravel, ImportError, AttributeError, TypeError, ValueError) as error:
        return Outcome(refused=f"{type(error).__name__}: {error}")
    except Exception as error:
        return Outcome(refused=f"it cannot be loaded, {type(error).__name__}: {error}")
    results: list[tuple[Seen, ...]] = []
    with prepared() as watch:
        campaign = Campaign(place.scenario, place.limits, watch, job.mode, recover=place.recover, base=place.base)
        # As it is in the driver's books: what the undisturbed run has shown is not told again.
        campaign.known.add(seen_of(place.base, Known(), search=("places",)))
        for unit in units:
            seen: list[Seen] = []
            campaign.listener, campaign.told = seen.append, campaign.runs
            place.do(campaign, job.plan, unit)
            results.append(tuple(seen))
    return Outcome(trace_of(place.base), tuple(results))


def _placed(job: Job) -> Place:
    key = pickle.dumps(job)
    if not _place or _place[0].key != key:
        allow = tuple(resolve(name) for name in job.allow)
        target = None if job.target is None else resolve(job.target)
        error = None if job.error is None else resolve(job.error)
        limits = attrs.evolve(job.limits, allow=allow, target=target, error=error)
        scenario = loaded(job.scenario)
        recover = None if job.recover is None else loaded(job.recover)
        with prepared() as watch:
            base = Campaign(scenario, limits, watch, job.mode, recover=recover).baseline(job.base)
        _place[:] = [Place(key, scenario, recover, limits, resolve(job.part), base)]
    return _place[0]


def loaded(reference: str) -> Scenario:
    """The scenario behind a reference; a method gets an instance, as on the command line."""
    module, _, name = reference.rpartition(":")
    owner, _, method = name.rpartition(".")
    if owner:
        found = resolve(f"{module}:{owner}")
        return as_scenario(getattr(found() if isinstance(found, type) else found, method))
    found = resolve(reference)
    return as_scenario(getattr(found, SWEPT, found))

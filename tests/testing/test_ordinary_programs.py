"""Programs use dice, clocks, ids and signals of their own; all of it repeats, and none of it gets out."""

from __future__ import annotations

import copy
import datetime
import functools
import os
import pickle
import random
import secrets
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from time import monotonic
from typing import Any

import attrs
import cattrs.preconf.json
import msgspec
import pytest
import trio
from youyou.testing import Simulation, explore, sweep


async def jitter(sim: Simulation) -> None:
    """Waits for a while that chance decides."""
    for _ in range(3):
        await trio.sleep(random.uniform(1, 2))


async def own_clock(sim: Simulation) -> None:
    """Polls until a time."""
    end = time.monotonic() + 0.05
    while time.monotonic() < end:  # noqa: ASYNC110  # what is tested
        await trio.sleep(0.01)


@pytest.mark.parametrize("scenario", [jitter, own_clock])
@pytest.mark.parametrize("engine", [sweep, explore])
def test_a_program_with_ordinary_dice_and_clocks_is_tried(engine, scenario):
    """The undisturbed run repeats itself, so that something can be done to it."""
    report = engine(scenario)

    assert report.ok, str(report)
    assert 2 < report.runs or report.exhausted


SOURCES: dict[str, Callable[[], Any]] = {
    "random": random.random,
    "choice": lambda: random.choice(range(10**9)),
    "urandom": lambda: os.urandom(8),
    "secrets": lambda: secrets.token_hex(8),
    "SystemRandom": lambda: random.SystemRandom().random(),
    "uuid1": lambda: uuid.uuid1().time,
    "uuid4": uuid.uuid4,
    "time": time.time,
    "time_ns": time.time_ns,
    "monotonic": time.monotonic,
    "monotonic_ns": time.monotonic_ns,
    "perf_counter": time.perf_counter,
    "perf_counter_ns": time.perf_counter_ns,
    "process_time": time.process_time,
    "localtime": time.localtime,
    "gmtime": time.gmtime,
    "ctime": time.ctime,
    "asctime": time.asctime,
    "strftime": lambda: time.strftime("%c"),
    "by name": lambda: monotonic(),
    "datetime.now": lambda: datetime.datetime.now(),
    "datetime.now in UTC": lambda: datetime.datetime.now(datetime.UTC),
    "datetime.today": lambda: datetime.datetime.today(),
    "date.today": lambda: datetime.date.today(),
}
"""Everything in the standard library that differs from run to run."""


@pytest.mark.parametrize("name", SOURCES)
def test_each_source_says_the_same_in_every_run(name):
    """Asked by its name in its module at the time, as programs do."""
    module, _, function = getattr(SOURCES[name], "__module__", ""), "", getattr(SOURCES[name], "__name__", "")
    seen: list[list[Any]] = []

    def ask() -> Any:
        source = SOURCES[name] if function == "<lambda>" else getattr(sys.modules[module or "random"], function)
        return source()

    async def scenario(sim: Simulation) -> None:
        values = [ask()]
        seen.append(values)
        await trio.sleep(86_400)
        values.append(ask())

    before = ask()
    report = sweep(scenario, cancel=None)
    after = ask()

    assert report.ok, str(report)
    first, *others = seen
    assert all(first == other for other in others)
    assert first[0] != first[1]
    assert type(before) is type(after)


def test_virtual_time_passes_on_every_clock():
    """As much as Trio's."""
    passed: dict[str, float] = {}

    async def scenario(sim: Simulation) -> None:
        began = time.time(), time.monotonic(), datetime.datetime.now()
        await trio.sleep(3600)
        passed["time"], passed["monotonic"] = time.time() - began[0], time.monotonic() - began[1]
        passed["now"] = (datetime.datetime.now() - began[2]).total_seconds()

    real = time.monotonic()
    sweep(scenario, cancel=None).assert_ok()

    assert {"time": 3600, "monotonic": 3600, "now": 3600} == {name: round(value) for name, value in passed.items()}
    assert time.monotonic() - real < 600


def test_a_blocking_sleep_takes_virtual_time():
    """It holds up every task, and no one who tests it."""
    took: list[float] = []

    async def scenario(sim: Simulation) -> None:
        began = sim.now
        time.sleep(1000)  # noqa: ASYNC251  # what is tested
        took.append(sim.now - began)
        await trio.sleep(1)

    sweep(scenario, cancel=None).assert_ok()

    assert 1000 == took[0]


def test_everything_is_put_back():
    """Functions, classes, and the state of the global generator."""
    names = [(time, "time"), (time, "sleep"), (datetime, "datetime"), (datetime, "date"), (os, "urandom")]
    methods = [datetime.datetime.__dict__[name] for name in ("now", "utcnow")] + [datetime.date.__dict__["today"]]
    before = [getattr(module, name) for module, name in names]
    random.seed(5)
    expected = [random.random() for _ in range(2)]

    random.seed(5)
    drawn = [random.random()]
    sweep(jitter)
    drawn.append(random.random())

    assert expected == drawn
    assert before == [getattr(module, name) for module, name in names]
    assert methods == [datetime.datetime.__dict__[n] for n in ("now", "utcnow")] + [datetime.date.__dict__["today"]]
    assert monotonic is time.monotonic


def test_a_datetime_stays_one():
    """Made before, inside or after: the class is the interpreter's own all the time."""
    made: list[Any] = [datetime.datetime(2020, 1, 1), datetime.date(2020, 1, 1)]
    classes = {datetime.datetime, datetime.date}

    async def scenario(sim: Simulation) -> None:
        made.extend([datetime.datetime.now(), datetime.datetime(2020, 1, 1), datetime.date.today()])
        assert classes == {datetime.datetime, datetime.date}
        assert not isinstance(made[1], datetime.datetime)
        assert made[3] - made[0] == datetime.timedelta(0)
        await trio.sleep(1)

    sweep(scenario, cancel=None).assert_ok()

    assert classes == {type(value) for value in made}


class Appointment(datetime.datetime):
    """A program's own."""


class Birthday(datetime.date):
    """Of a program, too."""


def test_a_subclass_of_datetime_lives_in_virtual_time():
    """And keeps its type."""
    seen: list[Any] = []

    async def scenario(sim: Simulation) -> None:
        seen[:] = [Appointment.now(), Appointment.now(datetime.UTC), Appointment.today(), Birthday.today()]

    sweep(scenario, cancel=None).assert_ok()

    assert [Appointment] * 3 + [Birthday] == [type(value) for value in seen]
    assert {2020} == {value.year for value in seen}
    assert Appointment.now().year > 2020


def _pydantic() -> Any:
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("Order", at=(datetime.datetime, ...), day=(datetime.date | None, None))
    return model.model_validate_json('{"at": "2020-01-02T03:04:05", "day": "2020-01-02"}').at


def _msgspec() -> Any:
    struct = msgspec.defstruct("Order", [("at", datetime.datetime), ("day", datetime.date | None, None)])
    return msgspec.json.decode(b'{"at": "2020-01-02T03:04:05"}', type=struct).at


def _cattrs() -> Any:
    order = attrs.make_class("Order", {"at": attrs.field(type=datetime.datetime)})
    converter = cattrs.preconf.json.make_converter()
    return converter.loads(converter.dumps(order(MOMENT)), order).at


def _validator() -> Any:
    field = attrs.field(validator=attrs.validators.instance_of(datetime.datetime))
    return attrs.make_class("Order", {"at": field})(MOMENT).at


def _dispatch() -> Any:
    @functools.singledispatch
    def same(value: object) -> object:
        raise TypeError(type(value))

    same.register(datetime.datetime, lambda value: value)
    return same(MOMENT)


MOMENT = datetime.datetime(2020, 1, 2, 3, 4, 5)
DISPATCHING: dict[str, Callable[[], Any]] = {
    "pydantic": _pydantic,
    "msgspec": _msgspec,
    "cattrs": _cattrs,
    "a validator of attrs": _validator,
    "singledispatch": _dispatch,
    "pickle": lambda: pickle.loads(pickle.dumps(MOMENT)),
    "copy": lambda: copy.deepcopy(MOMENT),
    "a table of types": lambda: {datetime.datetime: MOMENT}[type(datetime.datetime.now())],
}
"""Everything that asks for this very class, and is first built inside a run."""


@pytest.mark.parametrize("name", DISPATCHING)
def test_what_dispatches_on_the_class_datetime_can_be_built_inside_a_run(name):
    """As it can outside, with libraries that were imported before."""
    seen: list[Any] = [DISPATCHING[name]()]

    async def scenario(sim: Simulation) -> None:
        seen.append(DISPATCHING[name]())

    sweep(scenario, cancel=None).assert_ok()

    assert [MOMENT] * len(seen) == seen
    assert len(seen) > 1
    assert {datetime.datetime} == {type(value) for value in seen}


def test_numpys_generators_say_the_same_in_every_run():
    """The old global one, and new ones that seed themselves; put back after."""
    numpy = pytest.importorskip("numpy")
    numpy.random.seed(7)
    expected = numpy.random.random(2).tolist()
    seen: list[Any] = []

    async def scenario(sim: Simulation) -> None:
        seen.append([*numpy.random.random(3), *numpy.random.default_rng().random(3)])
        await trio.sleep(1)

    numpy.random.seed(7)
    drawn = [numpy.random.random()]
    sweep(scenario).assert_ok()
    drawn.append(numpy.random.random())

    assert expected == drawn
    assert len(seen) > 2
    assert all(seen[0] == other for other in seen)


# What would get out.


def outward() -> dict[str, Callable[[], Any]]:
    """Ways to reach the outside world that a sweep would take once for each run."""
    return {
        "runs a real command": lambda: os.system("true"),
        "opens a real socket": lambda: socket.socket(),
        "opens a real socket ": lambda: trio.socket.socketpair(),
        "starts a real process": lambda: subprocess.run(["true"]),
        "forks the process": lambda: os.spawnv(os.P_WAIT, "/bin/true", ["true"]),
        "turns the process into another": lambda: os.execv("/bin/true", ["true"]),
        "looks up a real host name": lambda: socket.gethostbyname("example.invalid"),
        "sends a real signal": lambda: os.kill(os.getppid(), 0),
    }


@pytest.mark.parametrize("what", outward())
def test_what_reaches_the_outside_is_refused(what):
    """With a word on what to do instead."""

    async def scenario(sim: Simulation) -> None:
        outward()[what]()
        await trio.sleep(1)

    failure = sweep(scenario).failures[0]

    assert f"RealIORefused: a simulated program {what.strip()}; put the real thing behind sim.port" in failure.message


# Signals.

RECEIVER = """
import os, signal, trio
from youyou.testing import sweep
async def scenario(sim):
    with trio.open_signal_receiver(signal.{name}) as signals:
        os.kill(os.getpid(), signal.{name})
        await trio.sleep(1)
        async for _ in signals: break
report = sweep(scenario)
print([(f.kind, f.message) for f in report.failures])
assert signal.getsignal(signal.{name}) is signal.SIG_DFL
"""


@pytest.mark.parametrize("name", ["SIGUSR1", "SIGTERM"])
def test_a_signal_that_nobody_receives_is_a_failure_and_kills_nobody(name):
    """The cancel falls between the signal and its receiver; by itself the process would end."""
    command = [sys.executable, "-c", RECEIVER.format(name=name)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)

    assert 0 == done.returncode, done.stderr
    says = f"{name} came when nobody received it: its default action ends the process"
    assert f"[('error', '{says}')]\n" == done.stdout


OUTSIDE = """
import signal, subprocess, os, trio
from youyou.testing import sweep
async def scenario(sim):
    await trio.sleep(1)
def progress(*_):
    os.kill(os.getpid(), signal.SIGTERM)
sweep(scenario, progress=progress)
"""


def test_a_signal_from_outside_still_ends_the_process():
    """Anyone who runs the tests can stop them."""
    done = subprocess.run([sys.executable, "-c", OUTSIDE], capture_output=True, text=True, timeout=120)

    assert -signal.SIGTERM == done.returncode, done.stderr


class Framework:
    """An object without a name that tasks run, as frameworks have them."""

    async def __call__(self) -> None:
        await trio.sleep(1)


def test_a_task_that_is_named_by_an_address_is_the_same_in_every_run():
    """Its object is another one each time."""

    async def scenario(sim: Simulation) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(Framework())
            nursery.start_soon(Framework(), name=repr(object()))

    sweep(scenario).assert_ok()

"""Every way in which a port can break, by plan in any program and by sweep in a simulation."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest
import trio
from youyou.testing import FaultPlan, InjectedDeath, InjectedFault, Simulation, explore, replay, sweep
from youyou.testing.campaigns.exploration import Chaos
from youyou.testing.report.tokens import bare


class Shop:
    """A port with one of everything."""

    name = "shop"

    def __init__(self) -> None:
        self.sold: list[str] = []

    async def sell(self, what: str) -> int:
        await trio.lowlevel.checkpoint()
        self.sold.append(what)
        return len(self.sold)

    async def list(self) -> AsyncIterator[str]:
        for what in ("ink", "nib", "pad"):
            await trio.lowlevel.checkpoint()
            yield what

    @asynccontextmanager
    async def order(self):
        await trio.lowlevel.checkpoint()
        yield self


def broken(mode, **options):
    """A shop whose second sale breaks."""
    plan, shop = FaultPlan().at("shop", "sell", call=2, mode=mode, **options), Shop()
    return plan, shop, plan.wrap("shop", shop)


async def test_a_port_without_faults_behaves_like_the_real_one():
    """Calls, streams, contexts, attributes and the type are those of the real object; calls are logged."""
    plan = FaultPlan()
    shop = plan.wrap("shop", Shop())

    async with shop.order() as same, aclosing(shop.list()) as stream:
        listed = [what async for what in stream]
        sold = await same.sell("ink")

    assert (["ink", "nib", "pad"], 1, "shop") == (listed, sold, shop.name)
    assert isinstance(shop, Shop)
    assert ["shop.order.__aenter__#1"] + [f"shop.list.__anext__#{n}" for n in (1, 2, 3, 4)] == [
        str(call) for call in plan.calls[:-1]
    ]
    assert "shop.order.sell#1" == str(plan.calls[-1])


@pytest.mark.parametrize(("mode", "effects"), [("raise_before", ["a"]), ("raise_after", ["a", "b"])])
async def test_a_call_fails_before_or_after_its_effect(mode, effects):
    """`raise_before`: nothing happened; `raise_after`: it happened, and the answer is lost. Later calls work."""
    _, shop, port = broken(mode)
    await port.sell("a")

    with pytest.raises(InjectedFault, match=r"shop\.sell#2"):
        await port.sell("b")
    assert effects == shop.sold
    await port.sell("c")


async def test_a_call_hangs(autojump_clock):
    """`hang` never answers; a cancel ends it."""
    _, shop, port = broken("hang")
    await port.sell("a")

    with trio.move_on_after(1000) as patience:
        await port.sell("b")

    assert (True, ["a"]) == (patience.cancelled_caught, shop.sold)


async def test_a_call_is_slow(autojump_clock):
    """`slow` answers, late."""
    _, _, port = broken("slow", seconds=50)
    await port.sell("a")
    started = trio.current_time()

    assert 2 == await port.sell("b")
    assert 50 == trio.current_time() - started


async def test_a_call_dies_with_something_no_except_exception_sees():
    """`dies` raises a BaseException."""
    _, _, port = broken("dies")
    await port.sell("a")

    with pytest.raises(InjectedDeath):
        try:
            await port.sell("b")
        except Exception:
            pytest.fail("seen by 'except Exception'")


@pytest.mark.parametrize(("mode", "raised"), [("cut", False), ("raise_before", True)])
async def test_a_stream_ends_early(mode, raised):
    """`cut` ends a stream in silence after two items, `raise_before` with an error."""
    port = FaultPlan().at("*", "__anext__", call=3, mode=mode).wrap("shop", Shop())
    seen, error = [], False

    try:
        async with aclosing(port.list()) as stream:
            async for what in stream:
                seen += [what]
    except InjectedFault:
        error = True

    assert (["ink", "nib"], raised) == (seen, error)


async def test_a_fault_raises_the_error_it_was_given():
    """The program sees the exception that the real port would raise."""
    _, _, port = broken("raise_before", error=lambda: ConnectionResetError("peer"))
    await port.sell("a")

    with pytest.raises(ConnectionResetError, match="peer"):
        await port.sell("b")


def test_an_unknown_mode_is_refused():
    """With the modes there are."""
    with pytest.raises(ValueError, match="raise_after"):
        FaultPlan().at("shop", "sell", mode="explode")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="raise_after"):
        sweep(retrying(key=True), faults=("explode",))  # type: ignore[arg-type]


def retrying(*, key: bool):
    """Sells once, and tries again if no answer comes; with ``key`` the shop knows a sale it has made."""

    async def scenario(sim: Simulation) -> None:
        real = Shop()
        shop = sim.port("shop", real)
        sim.at_end(lambda: len(real.sold) <= 1, "sold once")
        for _ in range(3):
            try:
                if not (key and real.sold):
                    await shop.sell("ink")
                return
            except InjectedFault:
                await trio.sleep(1)

    return scenario


def test_a_lost_answer_finds_the_double_effect():
    """Only `raise_after` finds that a retry sells twice; with a key it does not."""
    failing = sweep(retrying(key=False), cancel=None, faults=("raise_before", "raise_after"))

    assert ["yy2-f1.raise_after"] == [bare(f.token) for f in failing.failures]
    assert "raise_after at shop.sell#1" in str(failing)
    sweep(retrying(key=True), cancel=None, faults=("raise_before", "raise_after", "slow", "dies")).assert_ok()


def test_a_hanging_port_without_a_timeout_is_a_deadlock_that_names_the_call():
    """`hang` asks every port call for its timeout."""
    report = sweep(retrying(key=True), cancel=None, faults=("hang",))

    assert "deadlock" == report.failures[0].kind
    assert "port call shop.sell#1" == report.failures[0].waits[0].call


def test_a_fault_is_located_at_the_await_that_meets_it():
    """Not where the task waited last: it may have come a long way since, or not have waited at all."""

    async def scenario(sim: Simulation) -> None:
        shop = sim.port("shop", Shop())
        await shop.sell("ink")
        await trio.sleep(1)
        async with aclosing(shop.list()) as listed:
            async for _ in listed:
                await trio.sleep(1)

    failures = [replay(scenario, f"yy1-f{call}.hang").failures[0] for call in (1, 3)]

    source = Path(__file__).read_text(encoding="utf-8").splitlines()
    assert ["main", "main"] == [failure.task for failure in failures]
    assert ['await shop.sell("ink")', "async for _ in listed:"] == [
        source[failure.location.line - 1].strip() for failure in failures
    ]


def test_a_port_call_that_is_a_task_is_called_by_its_name():
    """A method of a port can be spawned as it is: the task has its name, and the fault happens in that very call."""

    async def scenario(sim: Simulation) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(sim.port("shop", Shop()).sell, "ink")

    failure = sweep(scenario, cancel=None, faults=["hang"]).failures[0]

    assert ("sell", "port call shop.sell#1") == (failure.task, str(failure.location))


def test_an_injected_error_may_come_out_and_others_may_not():
    """Also as the cause of the program's own error."""

    async def passing(sim: Simulation) -> None:
        try:
            await sim.port("shop", Shop()).sell("ink")
        except InjectedFault as error:
            raise RuntimeError("no sale") from error

    async def hiding(sim: Simulation) -> None:
        try:
            await sim.port("shop", Shop()).sell("ink")
        except InjectedFault:
            raise RuntimeError("no sale") from None

    assert sweep(passing, cancel=None, faults=("raise_before",)).ok
    assert not sweep(hiding, cancel=None, faults=("raise_before",)).ok


def test_only_the_named_ports_are_broken():
    """``ports`` chooses."""

    async def scenario(sim: Simulation) -> None:
        await sim.port("left", Shop()).sell("ink")
        async with aclosing(sim.port("right", Shop()).list()) as stream:
            async for _ in stream:
                pass

    report = sweep(scenario, cancel=None, faults=("raise_before", "cut"), ports=("right",))

    assert (8, 8) == (report.planned, report.delivered)


@pytest.mark.parametrize(("gives_up", "ok"), [(False, True), (True, False)])
def test_after_chaos_all_must_finish(gives_up, ok):
    """A client that stops trying while the world is broken never finishes once it has healed: a livelock."""

    async def scenario(sim: Simulation) -> None:
        shop, done = sim.port("shop", Shop()), []
        sim.eventually(lambda: done, "sold")
        for attempt in range(10_000):
            try:
                if attempt < 3 or not gives_up:
                    await shop.sell("ink")
                    done.append(1)
                    return
            except InjectedFault:
                pass
            await trio.sleep(5)

    report = explore(scenario, schedules=80, chaos=Chaos(heal=60, modes=("raise_before",), finish=100))

    assert ok == report.ok
    if not ok:
        assert 3 == len(report.failures[0].attempt.order.deviations)

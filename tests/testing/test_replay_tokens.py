"""A failure fits into one short line, and the line brings it back."""

from __future__ import annotations

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from youyou.testing import Attempt, BadToken, Chaos, Simulation, replay, sweep
from youyou.testing.engine.attempt import Injection, Order
from youyou.testing.engine.faults import MODES
from youyou.testing.report.tokens import decode, encode

names = st.from_regex(r"[a-z][a-z_-]{0,12}", fullmatch=True)
injections = st.one_of(
    st.builds(Injection, st.just("cancel"), st.integers(1, 9999), names, st.sampled_from(["after", "before"])),
    st.builds(Injection, st.just("fault"), st.integers(1, 9999), st.sampled_from(MODES)),
)
orders = st.one_of(
    st.builds(
        Order,
        st.sampled_from(["walk", "pos", "pct2", "pct3", "pct7"]),
        st.integers(1, 10**7),
        st.none() | st.integers(0, 999),
    ),
    st.dictionaries(st.integers(0, 999), st.integers(1, 9), max_size=4).map(
        lambda d: Order(deviations=tuple(sorted(d.items())))
    ),
)
chaoses = st.builds(
    Chaos, st.sampled_from([0.5, 60.0, 1e6]), st.lists(st.sampled_from(MODES), min_size=1).map(tuple), st.just(600.0)
)
attempts = st.builds(
    Attempt,
    st.lists(injections, max_size=2).map(tuple),
    orders,
    st.integers(0, 999),
    st.sampled_from(["trio", "none"]),
    st.booleans(),
    st.none() | chaoses,
)


@given(attempts)
def test_a_token_names_its_attempt_and_no_other(attempt):
    """Decoding gives back what was encoded."""
    assert attempt == decode(encode(attempt, "abcde"))


DAMAGED = [
    "",
    "yy3-a1",
    "yy2-a1",
    "yy2-a1-habc",
    "yy1-a",
    "yy1-f3",
    "yy1-f3.explode",
    "yy1-zz",
    "yy1-d3",
    "yy1-sx1.3",
    "a17",
]


@pytest.mark.parametrize("token", DAMAGED)
def test_a_damaged_token_is_refused_in_words(token):
    """Never a run of something else."""
    with pytest.raises(BadToken, match=r"replay token|cannot be read|cut short"):
        decode(token)


async def leaky(sim: Simulation) -> None:
    """Loses its slot if cancelled while it works."""
    slots = [1]
    sim.at_end(lambda: slots == [1], "the slot is back")
    await trio.sleep(1)
    slots.clear()
    sim.note("working")
    await trio.sleep(1)
    slots.append(1)


def test_a_token_from_a_report_fails_in_the_same_way():
    """Same kind, same message, same step, and a trace of every step with what was injected and noted."""
    found = sweep(leaky).failures[0]

    report = replay(leaky, found.token)

    again = report.failures[0]
    assert (found.kind, found.message, found.step) == (again.kind, again.message, again.step)
    assert ">>> cancel of root after step 2" in report.trace
    assert "--- working" in report.trace
    assert len(found.token) < 100


def test_a_token_that_does_not_fail_passes():
    """A fixed program replays without a failure."""
    replay(leaky, "yy1").assert_ok()


def test_a_function_that_was_cancelled_must_be_given_again():
    """Functions do not fit into tokens."""
    scopes = []

    async def scenario(sim: Simulation) -> None:
        slots = [1]
        sim.at_end(lambda: slots == [1], "the slot is back")
        with trio.CancelScope() as scope:
            scopes.append(scope)
            slots.clear()
            await trio.sleep(1)
            slots.append(1)

    found = sweep(scenario, cancel=lambda sim: scopes[-1]).failures[0]

    assert not replay(scenario, found.token, cancel=lambda sim: scopes[-1]).ok
    with pytest.raises(ValueError, match="cancel="):
        replay(scenario, found.token)

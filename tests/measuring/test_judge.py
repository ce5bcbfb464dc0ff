"""What the comparison of stops counts: each count has a run that shows it, and a clean run shows none."""

from __future__ import annotations

import pytest

from benchmarks.stopping.judge import COUNTS, judge, strict, summary
from benchmarks.stopping.world import World

ASKED = ("user", "second")
FIRST = [("user", "first"), ("assistant", "answer to first", [])]
CALLED = ("assistant", "let me look", ["call_0"])
DONE = ("result", "call_0", "write 0 done")
NEXT = ("user", "third")


def judged(after, *, seen="", ran=(), **out):
    """The row of a run whose third request held ``after`` behind the first message and its answer."""
    world = World("writes", None, None)
    world.seen, world.ran = seen, list(ran)
    world.requests["third"] = [[*FIRST, *after, NEXT]]
    return judge(world, {"at": 1, **out})


def counted(row):
    """The counts that are not zero."""
    return {name for name in COUNTS if row[name]}


@pytest.mark.parametrize(
    ("items", "wrong"),
    [
        ([*FIRST, NEXT], set()),
        ([ASKED, CALLED, DONE, NEXT], set()),
        ([ASKED, CALLED, NEXT], {"a call without a result"}),
        ([ASKED, CALLED], {"a call without a result"}),
        ([ASKED, DONE, NEXT], {"a result without a call"}),
        ([ASKED, CALLED, DONE, DONE, NEXT], {"a result twice"}),
        ([ASKED, CALLED, DONE, ("assistant", "", ["call_0"]), NEXT], {"a call twice", "a call without a result"}),
        ([ASKED, ("assistant", " ", []), NEXT], {"an empty assistant message"}),
        ([ASKED, NEXT], {"two users"}),
    ],
)
def test_what_a_strict_provider_refuses(items, wrong):
    """Each rule of a strict provider, and what keeps them all."""
    assert wrong == strict(items)


def test_a_clean_stop_counts_nothing():
    """The text, the call and its result are where they belong."""
    ran = [("start", 0), ("effect", 0), ("end", 0)]
    row = judged([ASKED, CALLED, DONE, ("assistant", "w0", [])], seen="let me look w0 ", ran=ran)

    assert set() == counted(row)


@pytest.mark.parametrize(
    ("after", "seen", "ran", "count"),
    [
        ([ASKED, ("assistant", "w0", [])], "w0 w1", [], {"text_lost"}),
        ([ASKED], "w0", [], {"text_lost", "two_users"}),
        ([], "w0", [], {"text_lost", "question_lost"}),
        ([ASKED, CALLED, ("result", "call_0", "outcome unknown")], "", [("start", 0), ("effect", 0)], set()),
        ([ASKED, CALLED, ("result", "call_0", "cancelled")], "", [("start", 0), ("effect", 0)], {"denied"}),
        ([ASKED, ("assistant", "w", [])], "", [("start", 0), ("effect", 0)], {"denied"}),
        ([ASKED, CALLED, ("result", "call_0", "unknown")], "", [("start", 0), ("end", 0)], {"result_lost"}),
        ([ASKED, CALLED, DONE], "", [("start", 0), ("start", 0)], {"again"}),
    ],
)
def test_what_a_stop_loses(after, seen, ran, count):
    """Text, a question, a result, the knowledge of an effect; and a tool that runs twice."""
    assert count == counted(judged(after, seen=seen, ran=ran))


def test_what_comes_after_the_stop_returned_is_a_late_effect_alone():
    """A result that came later cannot be in history, and is not called lost."""
    ran = [("start", 0), ("effect", 0), ("end", 0)]
    row = judged([ASKED, CALLED, ("result", "call_0", "cancelled")], ran=ran, ran_then=1)

    assert {"late_effect"} == counted(row)


def test_a_stop_that_was_ended_by_force_counts_as_late_alone():
    """What is left then is not the runtime's own doing."""
    assert {"late"} == counted(judged([], seen="w0", late=True))


def test_a_next_message_that_never_reached_the_model_is_refused():
    """With what was raised."""
    row = judge(World("text", None, None), {"at": 1, "next": "Busy: wait"})

    assert {"refused"} == counted(row)
    assert "Busy: wait" == row["wrong"]


def test_a_summary_names_the_first_stop_that_had_it():
    """So that one command repeats it."""
    clean, lost = judged([ASKED, ("assistant", "w0", [])]), judged([ASKED, ("assistant", "x", [])], seen="w0")
    found = summary([clean | {"at": 1}, lost | {"at": 2}, lost | {"at": 3}])

    assert 2 == found["counts"]["text_lost"]
    assert {"text_lost": 2} == found["first"]


@pytest.mark.parametrize(("at", "again", "stops"), [(0, 0, []), (3, 0, [3]), (3, 5, [3, 5]), (-2, 0, [4]), (9, 0, [])])
def test_the_world_stops_where_it_is_told(at, again, stops):
    """After a step, after a second one, or, below zero, after an event of the reader."""
    world, seen = World("text", None, lambda: 0.0), []
    world.at, world.again_at, world.counting = at, again, True

    def stop():
        seen.append(world.steps)
        return True

    world.stop = stop
    for step in range(1, 7):
        world.step()
        if step in (2, 4):
            world.saw("w")

    assert stops == seen

"""What keeps failing is paused and tried again: no loop, no latch (semantics 9)."""

from __future__ import annotations

from youyou.core.compaction.circuit_breaker import CircuitBreaker


def tried(breaker: CircuitBreaker, occasions: int, works: bool) -> str:
    """What happened on each occasion: "x" tried, "." skipped."""
    log = ""
    for _ in range(occasions):
        if allowed := breaker.allows():
            (breaker.succeeded if works else breaker.failed)()
        log += "x" if allowed else "."
    return log


def test_what_always_fails_is_tried_ever_more_rarely() -> None:
    """Three failures, then pauses of 2, 4, 8, 8, ... occasions with one try between."""
    expected = "xxx..x....x........x........x"
    assert expected == tried(CircuitBreaker(limit=3, pause=2, longest_pause=8), len(expected), works=False)


def test_it_never_stays_shut() -> None:
    """However long it has failed, within the longest pause it is tried again."""
    breaker = CircuitBreaker()
    tried(breaker, 10_000, works=False)

    assert "x" in tried(breaker, breaker.longest_pause + 1, works=False)


def test_a_success_forgets_all_failures() -> None:
    """After one success it takes the full number of failures to pause again."""
    breaker = CircuitBreaker(limit=3, pause=2)
    tried(breaker, 5, works=False)

    expected = ("x", "xxx..")
    assert expected == (tried(breaker, 1, works=True), tried(breaker, 5, works=False))


def test_single_failures_between_successes_never_pause() -> None:
    """Only failures in a row count."""
    breaker = CircuitBreaker(limit=2)
    log = "".join(tried(breaker, 1, works=number % 2 == 0) for number in range(20))

    expected = "x" * 20
    assert expected == log

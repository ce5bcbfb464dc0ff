"""Which exception a host sees when several things went wrong at once, as a table (semantics 3)."""

from __future__ import annotations

import pytest
from youyou.core.host_exceptions import find_exception, host_exception, split_exception
from youyou.messages.errors import AgentClosed, AgentCrashed, PluginInitFailed


class Cancellation(BaseException):
    """Stands for `trio.Cancelled`."""


CTRL_C, EXIT = KeyboardInterrupt(), SystemExit(3)
MINE, BUG, CUT, ODD = ValueError("mine"), RuntimeError("bug"), Cancellation(), GeneratorExit()
ENTRY = PluginInitFailed("entry")
MIXED = BaseExceptionGroup("", [CUT, MINE])


def grouped(*errors):
    return BaseExceptionGroup("", errors)


def seen(**what):
    names = ("interrupt", "crash", "body", "group", "entry_error")
    return host_exception(**{name: what.get(name) for name in names}, cancellation=Cancellation)


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ({}, None),
        ({"entry_error": ENTRY}, ENTRY),
        ({"body": MINE}, MINE),
        ({"body": MINE, "group": CUT}, MINE),
        ({"body": CUT, "group": grouped(grouped(CUT))}, CUT),
        ({"body": MIXED, "group": grouped(CUT)}, MIXED),
        ({"body": ODD, "crash": BUG}, ODD),
        ({"interrupt": CTRL_C, "body": MINE, "crash": BUG}, CTRL_C),
        ({"interrupt": grouped(MINE, CTRL_C), "body": CUT}, CTRL_C),
        ({"body": EXIT, "crash": BUG}, EXIT),
        ({"body": grouped(MINE, EXIT)}, EXIT),
        ({"body": CUT, "group": grouped(CUT, CTRL_C), "crash": BUG}, CTRL_C),
        ({"body": CUT, "group": CUT, "entry_error": ENTRY}, CUT),
    ],
)
def test_what_the_host_sees(what, expected):
    """Ctrl-C and SystemExit, a crash, the body's own exception, the cancellation: in this order."""
    assert expected is seen(**what)


@pytest.mark.parametrize(
    ("body", "with_body"),
    [(None, False), (CUT, False), (AgentClosed("closed"), False), (MINE, True), (MIXED, True)],
)
def test_a_crash_outranks_the_body_and_holds_its_error(body, with_body):
    """AGENT_CRASHED from the bug, or from both. A cancellation or AGENT_CLOSED in the body came of the crash."""
    crashed = seen(crash=BUG, body=body, group=CUT)
    assert isinstance(crashed, AgentCrashed)
    cause = crashed.__cause__
    assert ([body, BUG] if with_body else [BUG]) == (
        list(cause.exceptions) if isinstance(cause, BaseExceptionGroup) else [cause]
    )


def test_an_exception_is_found_however_deep_it_lies():
    """Groups nested deeper than Python's stack."""
    deep: BaseException = CTRL_C
    for _ in range(10_000):
        deep = BaseExceptionGroup("", [deep])
    assert CTRL_C is find_exception(deep, KeyboardInterrupt)
    while isinstance(deep, BaseExceptionGroup):  # taken apart from outside: freeing it at once needs the stack, too
        deep = deep.exceptions[0]


def test_the_first_of_several_is_found():
    """In the order of the group."""
    assert EXIT is find_exception(grouped(MINE, grouped(EXIT), CTRL_C), (KeyboardInterrupt, SystemExit))


@pytest.mark.parametrize(("exc", "parts"), [(CUT, (CUT, None)), (MINE, (None, MINE))])
def test_one_exception_is_split_into_all_and_nothing(exc, parts):
    """As a group would be."""
    assert parts == split_exception(exc, Cancellation)

"""The test kit offers by name what its page promises (semantics 15)."""

import youyou.testing
from youyou import ToolCall
from youyou.testing import normalise
from youyou.testing.agents.scripted import sendability_problem


def test_every_name_is_there():
    """``__all__`` is sorted and each of its names exists."""
    assert sorted(youyou.testing.__all__) == list(youyou.testing.__all__)
    assert [name for name in youyou.testing.__all__ if not hasattr(youyou.testing, name)] == []


def test_a_host_can_make_a_log_sendable():
    """`normalise` is public: it answers a call that nobody answered, and a second time changes nothing."""
    repaired = normalise([ToolCall("a", "weather", {})])

    assert sendability_problem(repaired) is None
    assert normalise(repaired) == repaired

"""What follows from the reason for which a model stopped: the table of semantics 4, cell by cell."""

from __future__ import annotations

import pytest
from youyou.core.ports.stop_rules import completes, emptiness, failure, refusal_of_calls
from youyou.messages.errors import EmptyResponse, ProviderError
from youyou.messages.history import StopReason

# reason: do calls run, does a text complete the turn, is an empty answer asked again, does the response fail
TABLE = {
    StopReason.END_TURN: (True, True, True, False),
    StopReason.TOOL_USE: (True, True, True, False),
    StopReason.LENGTH: (False, True, False, False),
    StopReason.CONTENT_FILTER: (False, True, False, False),
    StopReason.REFUSAL: (False, True, False, False),
    StopReason.PAUSE: (False, False, True, False),
    StopReason.ERROR: (False, False, True, True),
    StopReason.OTHER: (False, True, True, False),
}


def test_the_table_is_whole():
    """Each reason has its row."""
    assert set(TABLE) == set(StopReason)


@pytest.mark.parametrize("reason", StopReason)
def test_what_follows(reason):
    """Calls run after a good end alone, and only an end whose meaning is known decides about an empty answer."""
    calls = refusal_of_calls(reason) is None
    again = emptiness(reason, 1) is None
    assert TABLE[reason] == (calls, completes(reason), again, failure(reason) is not None)


@pytest.mark.parametrize("reason", StopReason)
def test_a_second_empty_answer_is_an_error(reason):
    """Whatever the reason, the model is not asked a third time."""
    assert isinstance(emptiness(reason, 2), EmptyResponse)


@pytest.mark.parametrize(
    ("reason", "advice"),
    [(StopReason.LENGTH, "raise max_tokens"), (StopReason.CONTENT_FILTER, "filter"), (StopReason.REFUSAL, "refused")],
)
def test_an_empty_answer_with_a_known_reason_says_what_to_change(reason, advice):
    """The words name the reason, and what would help."""
    assert advice in str(emptiness(reason, 1))


def test_a_failed_response_may_be_asked_again():
    """The provider gave up; the same request may succeed later."""
    assert failure(StopReason.ERROR) == ProviderError(
        "the provider ended the response with an error; try again", retryable=True
    )

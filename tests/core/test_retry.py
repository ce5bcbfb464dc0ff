"""Whether a request is tried again, and after how long (semantics 4, "Retry")."""

from __future__ import annotations

import pytest
from youyou.core.config import RetryPolicy
from youyou.core.retry import AfterFailure, after_failure, retry_delay_ms
from youyou.messages.errors import AgentError, ErrorCode

BUSY = AgentError.of(ErrorCode.PROVIDER_ERROR, "busy", retryable=True)
WRONG = AgentError.of(ErrorCode.PROVIDER_ERROR, "wrong", retryable=False)
LONG = AgentError.of(ErrorCode.CONTEXT_LENGTH_EXCEEDED, "too long", retryable=False)


@pytest.mark.parametrize(
    ("error", "attempt", "visible", "compacted", "then"),
    [
        (BUSY, 1, False, False, AfterFailure.RETRY),
        (BUSY, 2, False, False, AfterFailure.RETRY),
        (BUSY, 3, False, False, AfterFailure.GIVE_UP),  # three attempts in total
        (BUSY, 1, True, False, AfterFailure.GIVE_UP),  # the host has seen some of the answer
        (BUSY, 1, False, True, AfterFailure.RETRY),
        (WRONG, 1, False, False, AfterFailure.GIVE_UP),
        (LONG, 1, False, False, AfterFailure.COMPACT),
        (LONG, 3, False, False, AfterFailure.COMPACT),  # no try: the request itself was wrong
        (LONG, 1, False, True, AfterFailure.GIVE_UP),  # once for a request
        (LONG, 1, True, False, AfterFailure.GIVE_UP),
    ],
)
def test_what_to_do_after_a_failure(error, attempt, visible, compacted, then):
    """Only what is retryable is tried again, only unseen, only so often; what is too long is made smaller once."""
    policy = RetryPolicy(attempts=3)
    assert then is after_failure(error, policy, attempt=attempt, visible=visible, compacted=compacted)


@pytest.mark.parametrize(
    ("attempt", "asked", "chance", "delay"),
    [
        (1, None, 0.5, 500),
        (2, None, 0.5, 1_000),
        (3, None, 0.5, 2_000),
        (4, None, 0.5, 2_500),  # the maximum
        (9, None, 0.5, 2_500),
        (1, None, 0.0, 400),  # jitter shortens ...
        (1, None, 1.0, 600),  # ... and lengthens
        (9, None, 1.0, 2_500),  # but never beyond the maximum
        (9, None, 0.0, 2_000),
        (1, 7_000, 0.0, 7_000),  # what the server asks for wins, and is not spread
        (1, 0, 0.5, 0),
        (1, -5, 0.5, 0),
    ],
)
def test_how_long_to_wait(attempt, asked, chance, delay):
    """Doubled from the base to the maximum, spread by the jitter on both sides."""
    policy = RetryPolicy(attempts=9, base_ms=500, max_ms=2_500, jitter=0.2)
    assert delay == retry_delay_ms(policy, attempt, asked, chance)


@pytest.mark.parametrize(("asked", "then"), [(60_000, AfterFailure.RETRY), (60_001, AfterFailure.GIVE_UP)])
def test_a_wait_that_a_server_asks_for_has_a_limit(asked, then):
    """Longer than ``longest_wait_ms`` is not waited for."""
    policy = RetryPolicy(longest_wait_ms=60_000)
    error = AgentError.of(ErrorCode.PROVIDER_ERROR, "busy", retryable=True, retry_after_ms=asked)
    assert then is after_failure(error, policy, attempt=1, visible=False, compacted=False)

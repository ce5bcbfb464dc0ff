"""What the errors of many servers mean."""

from __future__ import annotations

import time
from email.utils import formatdate

import pytest
from youyou.adapters.wire.errors import Failure, judge, retry_after_ms, stream_failure
from youyou.messages.errors import ContextLengthExceeded, ProviderError

TOO_LONG = [
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "The decoder prompt (length 9000) is longer than the maximum model length of 8192.",
    "the request exceeds the available context size, try increasing it",
    "request (700 tokens) exceeds the available context size (512 tokens)",
    "prompt is too long: 208310 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 199211 + 20000 > 200000",
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
    "Please reduce the length of the messages or completion.",
    "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens",
    "This endpoint's maximum context length is 16384 tokens.",
    "prompt too long; exceeded max context length by 12 tokens",
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "Input is too long for requested model.",
    "Range of input length should be [1, 30720]",
    "Invalid request: Your request exceeded model token limit: 8192",
    "context window exceeds limit (2013)",
    "prompt token count of 90000 exceeds the limit of 64000",
    "The number of tokens to keep from the initial prompt is greater than the context length",
]
SOMETHING_ELSE = [
    "max_tokens is too large: 100000. This model supports at most 16384 completion tokens.",
    "Invalid type for 'messages[0].content': expected a string.",
    "The image is too large: at most 20 MB.",
    "tool name is too long",
]


@pytest.mark.parametrize("message", TOO_LONG)
def test_wordings_of_too_long(message: str) -> None:
    """A server that has no code for it is understood by its wording."""
    assert judge(Failure(message, 400)) == ContextLengthExceeded(f"HTTP 400: {message}")


@pytest.mark.parametrize("message", SOMETHING_ELSE)
def test_wordings_of_something_else(message: str) -> None:
    """Other complaints about size are not mistaken for it: compaction would not help."""
    assert judge(Failure(message, 400)) == ProviderError(f"HTTP 400: {message}", retryable=False)


@pytest.mark.parametrize("status", [401, 403, 404, 429])
def test_a_limit_on_the_rate_is_no_limit_on_the_length(status: int) -> None:
    """A status that says something else wins over a wording."""
    assert isinstance(judge(Failure("Input is too long, slow down", status)), ProviderError)


@pytest.mark.parametrize(("told", "retryable"), [("true", True), ("false", False)])
def test_a_server_that_knows_better(told: str, retryable: bool) -> None:
    """What the server says about trying again wins over its status."""
    assert judge(Failure("no", 400 if retryable else 500, headers={"x-should-retry": told})).retryable == retryable


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3_000),
        ({"retry-after": "0.25"}, 250),
        ({"retry-after-ms": "120", "retry-after": "9"}, 120),
        ({"retry-after": "soon"}, None),
        ({"retry-after-ms": "inf"}, None),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, None),
        ({"retry-after-ms": "0", "retry-after": "1"}, 1_000),
    ],
)
def test_retry_after(headers: dict[str, str], expected: int | None) -> None:
    """Seconds, milliseconds and dates are understood; nonsense and nothing are not wait."""
    assert retry_after_ms(headers) == expected


def test_retry_after_a_date() -> None:
    """A date in the future is a wait until then."""
    wait = retry_after_ms({"retry-after": formatdate(time.time() + 60, usegmt=True)})

    assert wait is not None
    assert 50_000 < wait <= 60_000


@pytest.mark.parametrize("item", [{}, {"error": None}, {"choices": [], "error": {}}])
def test_no_error_in_the_stream(item: dict[str, object]) -> None:
    """An empty error field is not an error."""
    assert stream_failure(item) is None


def test_an_error_in_the_stream_that_is_only_a_text() -> None:
    """A server may say no more than a sentence."""
    assert stream_failure({"error": "engine fell over"}) == ProviderError("engine fell over", retryable=True)

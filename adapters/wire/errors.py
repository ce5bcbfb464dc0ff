"""What an error of a chat API means: too long, come back later, or hopeless (semantics 3, 4, 14).

The one place where status codes, error codes and the wordings of many servers are judged. `sdk_error` is the boundary:
no exception of an SDK leaves an adapter. Never retries, never waits: the runtime's policy rules.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from types import ModuleType
from typing import Any

import attrs

from ...messages.errors import AgentError, ContextLengthExceeded, ProviderError, ProviderTimeout, StreamInterrupted

_TOO_LONG_NAMES = {
    "context_length_exceeded",
    "exceed_context_size_error",
    "model_context_window_exceeded",
    "string_above_max_length",
    "request_too_large",
}

# Wordings of servers that give no code of their own: one line each, so that the next one is easily added.
_TOO_LONG = re.compile(
    r"maximum (context|prompt|model) length"
    r"|exceed(s|ed)? (the )?(available |maximum )?(context|model token limit|number of tokens)"
    r"|token count .*exceeds the (limit|maximum)"
    r"|context (length|window) exceeds"
    r"|exceeded max context"
    r"|(prompt|input) (is )?too long"
    r"|too large for model with \d+ maximum context"
    r"|reduce the length of the (messages|prompt|input)"
    r"|`inputs` tokens \+ `max_new_tokens` must be"
    r"|range of input length should be"
    r"|greater than the context length",
    re.IGNORECASE,
)

_HOPELESS_NAMES = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "billing_error"}
_FINAL_KINDS = re.compile(r"invalid|authentication|permission|not_found|policy|unsupported|billing|too_large")
_TEMPORARY = {408, 409, 425, 429}


@attrs.frozen
class Failure:
    """What a server said about a request it did not serve. ``status`` is None for an error inside a stream."""

    message: str
    status: int | None = None
    names: frozenset[str] = frozenset()
    headers: Mapping[str, str] = attrs.field(factory=dict)


def judge(failure: Failure) -> AgentError:
    """The error that the runtime acts on."""
    message = failure.message if failure.status is None else f"HTTP {failure.status}: {failure.message}"
    if _is_too_long(failure):
        return ContextLengthExceeded(message)
    wait = retry_after_ms(failure.headers)
    return ProviderError(message, retryable=_is_temporary(failure), retry_after_ms=wait)


def _is_too_long(failure: Failure) -> bool:
    if failure.status in (401, 403, 404, 429):
        return False
    if failure.names & _TOO_LONG_NAMES or failure.status == 413:
        return True
    return _TOO_LONG.search(failure.message) is not None


def _is_temporary(failure: Failure) -> bool:
    if failure.names & _HOPELESS_NAMES:
        return False
    told = failure.headers.get("x-should-retry")
    if told in ("true", "false"):
        return told == "true"
    if failure.status is None:
        return not any(map(_FINAL_KINDS.search, failure.names))
    return failure.status in _TEMPORARY or (failure.status >= 500 and failure.status != 501)


def retry_after_ms(headers: Mapping[str, str]) -> int | None:
    """How long the server asks to wait, in ms, from ``retry-after-ms`` or ``retry-after`` (seconds or a date)."""
    try:
        if (exact := headers.get("retry-after-ms")) is not None:
            return max(0, int(float(exact)))
        if (text := headers.get("retry-after")) is None:
            return None
        seconds = float(text) if _is_number(text) else parsedate_to_datetime(text).timestamp() - time.time()
        return max(0, int(seconds * 1000))
    except (ValueError, OverflowError):
        return None


def _is_number(text: str) -> bool:
    return text.strip().replace(".", "", 1).isdigit()


def sdk_error(sdk: ModuleType, error: Exception, *, streaming: bool) -> AgentError:
    """An exception that came out of an SDK, as an error of youyou.

    Args:
        sdk: the module ``openai`` or ``anthropic``; their error classes have the same names.
        error: what was raised.
        streaming: whether the response had begun, so that a lost connection means a broken stream.
    """
    import httpx2

    if isinstance(error, AgentError):
        return error
    if isinstance(error, sdk.APITimeoutError | httpx2.TimeoutException):
        return ProviderTimeout(f"the server did not answer in time ({_text(error)}); try again")
    if isinstance(error, sdk.APIConnectionError | httpx2.TransportError):
        return _lost(error, streaming)
    if isinstance(error, sdk.APIError):
        return judge(failure_of(error))
    if streaming:
        return StreamInterrupted(f"the server's stream cannot be read: {_text(error)}")
    return ProviderError(f"the request could not be sent: {_text(error)}", retryable=False)


def _lost(error: Exception, streaming: bool) -> AgentError:
    cause = error.__cause__ or error
    if streaming:
        return StreamInterrupted(f"the connection broke in mid-stream: {_text(cause)}")
    return ProviderError(f"no connection to the server: {_text(cause)}", retryable=True)


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:500]


def failure_of(error: Any) -> Failure:
    """What an ``APIError`` of an SDK holds."""
    details = _details(error.body)
    response = getattr(error, "response", None)
    return Failure(
        message=str(details.get("message") or error.body or error)[:1000],
        status=getattr(error, "status_code", None),
        names=_names(details),
        headers={} if response is None else response.headers,
    )


def stream_failure(item: Mapping[str, Any]) -> AgentError | None:
    """The error that a server reports in place of the next piece of its stream, if ``item`` is one."""
    if not item.get("error"):
        return None
    details = _details(item)
    names = _names(details)
    message = str(details.get("message") or item["error"])[:1000]
    return judge(Failure(message, _status_in(names), names))


def _details(body: object) -> Mapping[str, Any]:
    """The error object, which stands alone or under ``error``."""
    details = body if isinstance(body, dict) else {}
    return details["error"] if isinstance(details.get("error"), dict) else details


def _names(details: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(str(details[key]) for key in ("code", "type") if details.get(key) is not None)


def _status_in(names: frozenset[str]) -> int | None:
    """Some gateways put the status of the server behind them into the code of an error in mid-stream."""
    numbers = [int(name) for name in names if name.isdigit() and 400 <= int(name) < 600]
    return numbers[0] if numbers else None

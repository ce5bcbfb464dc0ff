"""What an error of a chat API means: too long, come back later, or hopeless (semantics 3, 4, 14).

The one place where status codes, error codes and the wordings of many servers are judged. `sdk_error` is the boundary:
no exception of an SDK leaves an adapter. Never retries, never waits: the runtime's policy rules.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from types import ModuleType
from typing import Any

import attrs

from ...messages.errors import AgentError, ContextLengthExceeded, ProviderError, ProviderTimeout, StreamInterrupted
from .body import UnreadableBody
from .sse import EventTooLong

_TOO_LONG_NAMES = {
    "context_length_exceeded",
    "exceed_context_size_error",
    "model_context_window_exceeded",
    "request_too_large",
}

# Wordings of servers that give no code of their own: one line each, so that the next one is easily added.
_TOO_LONG = re.compile(
    r"maximum (context|prompt|model) length"
    r"|exceed(s|ed)? (the )?(available |maximum )?(context|model token limit|number of tokens)"
    r"|token count .*exceeds the (limit|maximum)"
    r"|context (length|window) exceeds"
    r"|context_?window_?exceeded"
    r"|exceeded max context"
    r"|increase the context size"
    r"|(prompt|input) (is )?too long"
    r"|total length of all messages is too long"
    r"|too large for model with \d+ maximum context"
    r"|reduce the length of the (messages|prompt|input)"
    r"|`inputs` tokens \+ `max_new_tokens` must be"
    r"|range of input length should be"
    r"|greater than the context length",
    re.IGNORECASE,
)
# "string too long" is an overflow only of what compaction makes shorter: an id or a name stays as long as it is.
_LONG_STRING = "string_above_max_length"
_SHRINKS = re.compile(r"content|input\b|instructions|text\b|prompt", re.IGNORECASE)

_HOPELESS_NAMES = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "billing_error"}
_FINAL_KINDS = re.compile(
    r"invalid|authentication|permission|not_found|policy|unsupported|billing|too_large|content_filter|quota|credit",
    re.IGNORECASE,
)
_TEMPORARY = {408, 409, 425, 429}
_WORDS = ("message", "detail", "error_message", "msg", "status_msg", "reason")
_MOST = 1000


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
    if _LONG_STRING in failure.names:
        return _SHRINKS.search(failure.message) is not None
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
    """How long the server asks to wait, in ms, from ``retry-after-ms`` or ``retry-after`` (seconds or a date).

    A wait of nothing is not a wait asked for: some gateways send a 0 beside the real figure.
    """
    waits = [_milliseconds(headers.get("retry-after-ms"), 1), _milliseconds(headers.get("retry-after"), 1000)]
    return next((wait for wait in waits if wait), None)


def _milliseconds(text: str | None, unit: int) -> int | None:
    try:
        if text is None:
            return None
        amount = float(text) if _is_number(text) else parsedate_to_datetime(text).timestamp() - time.time()
        return max(0, int(amount * (unit if _is_number(text) else 1000)))
    except (ValueError, OverflowError):
        return None


def _is_number(text: str) -> bool:
    return text.strip().replace(".", "", 1).isdigit()


def sdk_error(sdk: ModuleType, error: Exception, *, streaming: bool, through: str | None = None) -> AgentError:
    """An exception that came out of an SDK, as an error of youyou.

    Args:
        sdk: the module ``openai`` or ``anthropic``; their error classes have the same names.
        error: what was raised.
        streaming: whether the response had begun, so that a lost connection means a broken stream.
        through: the proxy that the request took, if there was one.
    """
    import httpx2

    way = f"; the way went through the proxy {through}, which the environment names" if through else ""
    if isinstance(error, AgentError):
        return error
    if isinstance(error, UnreadableBody):
        return StreamInterrupted(f"{error}{way}")
    if isinstance(error, EventTooLong):
        return ProviderError(str(error), retryable=False)
    if isinstance(error, sdk.APITimeoutError | httpx2.TimeoutException):
        return ProviderTimeout(f"the server did not answer in time ({_text(error)}); try again{way}")
    if isinstance(error, sdk.APIConnectionError | httpx2.TransportError):
        return _lost(error, streaming, way)
    if isinstance(error, sdk.APIError):
        return judge(failure_of(error))
    if streaming:
        return StreamInterrupted(f"the server's stream cannot be read: {_text(error)}")
    return ProviderError(f"the request could not be sent: {_text(error)}", retryable=False)


def _lost(error: Exception, streaming: bool, way: str) -> AgentError:
    cause = error.__cause__ or error
    if streaming:
        return StreamInterrupted(f"the connection broke in mid-stream: {_text(cause)}{way}")
    return ProviderError(f"no connection to the server: {_text(cause)}{way}", retryable=True)


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:500]


def failure_of(error: Any) -> Failure:
    """What an ``APIError`` of an SDK holds."""
    response = getattr(error, "response", None)
    details = details_of(error.body)
    return Failure(
        message=(words_of(details) or str(error.body or error))[:_MOST],
        status=getattr(error, "status_code", None),
        names=_names(details),
        headers={} if response is None else response.headers,
    )


def stream_failure(item: Mapping[str, Any], name: str = "") -> AgentError | None:
    """The error that a server reports in place of the next piece of its stream, if ``item`` is one.

    Args:
        name: of the event that held it. One that is called "error" is an error whatever it holds.
    """
    if not _tells_an_error(item, name):
        return None
    details = details_of(item)
    names = _names(details)
    message = words_of(details) or words_of(item) or json.dumps(item, default=str)
    return judge(Failure(message[:_MOST], _status_in(details), names))


def _tells_an_error(item: Mapping[str, Any], name: str) -> bool:
    if item.get("error") or item.get("errors"):
        return True
    if "choices" in item or item.get("type") == "message":
        return False
    if name == "error" or item.get("object") == "error" or item.get("type") == "error":
        return True
    # A bare error: a code beside words, and nothing that belongs to an answer.
    bare = item.get("type") is None and "output" not in item and "usage" not in item
    return bare and any(isinstance(item.get(key), str) for key in _WORDS) and _status_in(item) is not None


def details_of(body: object) -> Mapping[str, Any]:
    """The error object, which stands alone, in a list, or under ``error`` or ``errors``, once or twice."""
    details: object = body
    for _ in range(4):
        if isinstance(details, list):
            details = next((item for item in details if isinstance(item, dict)), {})
        inner = (details.get("error") or details.get("errors")) if isinstance(details, dict) else None
        if not isinstance(inner, dict | list):
            break
        details = inner
    return details if isinstance(details, dict) else {}


def words_of(details: object) -> str:
    """The server's own words: the real ones, where a gateway wraps those of another server into its own."""
    if isinstance(details, str):
        return details
    if not isinstance(details, dict):
        return next((text for text in _texts(details) if len(text) > _SHORT), "")
    said = details.get("error")
    outer = said if isinstance(said, str) else ""
    for key in _WORDS:
        if found := details.get(key):
            outer = found if isinstance(found, str) else "; ".join(_places(found)) or words_of(found)
            break
    metadata = details.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    inner = _inner(raw) if isinstance(raw, str) else ""
    return f"{outer}: {inner}" if inner and inner not in outer and outer else outer or inner


_SHORT = 12


def _places(found: object) -> Iterator[str]:
    """The refusals of a validating server, each with the place that it is about."""
    listed = found.get("detail") if isinstance(found, dict) else found
    for item in listed if isinstance(listed, list) else ():
        if isinstance(item, dict) and isinstance(item.get("msg"), str):
            place = item.get("loc")
            yield f"{'.'.join(map(str, place))}: {item['msg']}" if isinstance(place, list) else item["msg"]


def _inner(raw: str) -> str:
    try:
        return words_of(details_of(json.loads(raw))) or raw
    except (ValueError, RecursionError):
        return raw


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item)


def _names(details: Mapping[str, Any]) -> frozenset[str]:
    given = (details.get(key) for key in ("code", "type", "status"))
    return frozenset(str(name) for name in given if isinstance(name, str | int) and not isinstance(name, bool))


def _status_in(details: Mapping[str, Any]) -> int | None:
    """Some gateways put the status of the server behind them into the code of an error in mid-stream."""
    given = [details.get(key) for key in ("code", "status", "status_code")]
    numbers = [int(name) for name in given if isinstance(name, int | str) and str(name).isdecimal()]
    return next((number for number in numbers if 400 <= number < 600), None)

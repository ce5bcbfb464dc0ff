"""The ranges of an agent's and a session's configuration (semantics 2). Each problem says what to write instead."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from ...messages.codec import from_json, to_json
from ...messages.errors import AgentError, InvalidConfig
from ...messages.text import clean_value
from ..config import AgentConfig, EnvironmentContext, Notices, RetryPolicy, SessionConfig

_POSITIVE = (
    "tool_timeout_ms",
    "max_tool_calls_per_turn",
    "memory_checkpoint_interval",
    "memory_max_items",
    "memory_timeout_ms",
    "stream_idle_timeout_ms",
    "event_buffer",
    "max_concurrent_tools",
    "closing_ms",
    "hook_timeout_ms",
    "storage_timeout_ms",
    "plugin_timeout_ms",
    "claim_ttl_ms",
    "max_calls_per_response",
    "max_response_chars",
)
_NOT_NEGATIVE = ("shutdown_grace_ms", "tool_patience_ms", "max_output_repairs")
_TEXT = ("default_model", "memory_namespace")
_OPTIONAL_SESSION_TEXT = ("model_id", "system_prompt_override", "domain", "skill", "reasoning_effort")
_OPTIONAL_TEXT = ("personality", "compact_model", "compact_prompt", "memory_model", "reasoning_effort")

# What the runtime fills into a notice.
_FILLED_IN = {"aborted_tool": "reason", "timed_out_tool": "ms", "tool_limit": "limit", "misfit_output": "problems"}


def config_problems(config: Any) -> Iterator[AgentError]:
    """Every value that is out of range or of the wrong type, in the order of the fields' groups."""
    if not isinstance(config, AgentConfig):
        yield InvalidConfig(f"the configuration is a {type(config).__name__}; pass AgentConfig(default_model=...)")
        return
    yield from _text_problems(config)
    yield from _limit_problems(config)
    grace = config.cancel_grace_ms
    if grace is not None and (not _is_int(grace) or grace < 0):
        yield _problem("cancel_grace_ms", grace, "0 or a positive integer, or None")
    if not _is_number(config.compact_threshold) or not 0 < config.compact_threshold <= 1:
        yield _problem("compact_threshold", config.compact_threshold, "a number above 0, at most 1")
    yield from _sampling_problems(config)
    if config.token_counter is not None and not callable(config.token_counter):
        yield _problem("token_counter", config.token_counter, "a function from text to a number of tokens, or None")
    if not isinstance(config.environment, EnvironmentContext | None):
        yield _problem("environment", config.environment, "EnvironmentContext(...) or None")
    yield from _retry_problems(config.retry)
    yield from _notice_problems(config.notices)


def checked_session(config: object) -> SessionConfig:
    """``config`` as it can be stored, without lone surrogates.

    Raises:
        InvalidConfig: something in it is out of range, of the wrong type, or no JSON.
    """
    if not isinstance(config, SessionConfig):
        raise InvalidConfig(f"the session's configuration is a {type(config).__name__}; pass SessionConfig(...)")
    for problem in _session_problems(config):
        raise problem
    config = clean_value(config)
    try:
        # By a round trip, not by looking at types: what comes back unequal would make a resumed session differ from a
        # live one.
        same = from_json(SessionConfig, to_json(config)) == config
    except Exception:
        same = False
    if not same:
        raise InvalidConfig("a SessionConfig is stored as JSON; pass only what JSON has in metadata, extra and schema")
    return config


def _session_problems(config: SessionConfig) -> Iterator[AgentError]:
    for name in _OPTIONAL_SESSION_TEXT:
        if not isinstance(value := getattr(config, name), str | None):
            yield _problem(name, value, "a string or None", of="SessionConfig")
    yield from _sampling_problems(config)
    if not isinstance(config.environment, EnvironmentContext | None):
        yield _problem("environment", config.environment, "EnvironmentContext(...) or None", of="SessionConfig")


def _text_problems(config: AgentConfig) -> Iterator[AgentError]:
    for name in _TEXT:
        if not isinstance(value := getattr(config, name), str) or not value.strip():
            yield _problem(name, value, "a string that is not blank")
    for name in _OPTIONAL_TEXT:
        if not isinstance(value := getattr(config, name), str | None):
            yield _problem(name, value, "a string or None")
    if not all(isinstance(text, str) for text in config.system_instructions):
        yield _problem("system_instructions", config.system_instructions, "strings")


def _limit_problems(config: AgentConfig) -> Iterator[AgentError]:
    for name in _POSITIVE:
        if not _is_int(value := getattr(config, name)) or value < 1:
            yield _problem(name, value, _unit(name, value, "a positive integer"))
    for name in _NOT_NEGATIVE:
        if not _is_int(value := getattr(config, name)) or value < 0:
            yield _problem(name, value, _unit(name, value, "0 or a positive integer"))


def _unit(name: str, value: object, expected: str) -> str:
    # A fraction is nearly always a number of seconds.
    if isinstance(value, float) and name.endswith("_ms") and 0 < value < 1e9:
        return f"{expected} of milliseconds: {round(value * 1000)} for {value:g} s"
    return expected


def _sampling_problems(config: AgentConfig | SessionConfig) -> Iterator[AgentError]:
    temperature, max_tokens, of = config.temperature, config.max_tokens, type(config).__name__
    if temperature is not None and (not _is_number(temperature) or not temperature >= 0):
        yield _problem("temperature", temperature, "0 or more, or None", of)
    if max_tokens is not None and (not _is_int(max_tokens) or max_tokens < 1):
        yield _problem("max_tokens", max_tokens, "a positive integer or None", of)


def _retry_problems(retry: Any) -> Iterator[AgentError]:
    if not isinstance(retry, RetryPolicy):
        yield _problem("retry", retry, "RetryPolicy(...)")
        return
    if not _is_int(retry.attempts) or retry.attempts < 1:
        yield _problem("retry.attempts", retry.attempts, "a positive integer; 1 means no retry")
    for name in ("base_ms", "max_ms", "longest_wait_ms"):
        if not _is_int(value := getattr(retry, name)) or value < 0:
            yield _problem(f"retry.{name}", value, "0 or a positive integer")
    if not _is_number(retry.jitter) or not 0 <= retry.jitter <= 1:
        yield _problem("retry.jitter", retry.jitter, "a number from 0 to 1")


def _notice_problems(notices: Any) -> Iterator[AgentError]:
    if not isinstance(notices, Notices):
        yield _problem("notices", notices, "Notices.english(), Notices.chinese() or Notices(...)")
        return
    for name, text in attrs.asdict(notices).items():
        if not isinstance(text, str):
            yield _problem(f"notices.{name}", text, "a string")
        elif name in _FILLED_IN and not _can_be_filled(text, _FILLED_IN[name]):
            yield _problem(f"notices.{name}", text, f"a text whose only placeholder is {{{_FILLED_IN[name]}}}")


def _can_be_filled(text: str, placeholder: str) -> bool:
    try:
        # Tried now: a notice with a wrong placeholder would fail in the `finally` that gives a call its result.
        text.format(**{placeholder: 0})
    except (LookupError, ValueError, AttributeError, TypeError):
        return False
    return True


def _is_int(value: object) -> bool:
    # True would pass for 1, and ``attempts=True`` is a mistake.
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return _is_int(value) or isinstance(value, float)


def _problem(name: str, value: object, expected: str, of: str = "AgentConfig") -> InvalidConfig:
    return InvalidConfig(f"{of}.{name} is {value!r}; pass {expected}")

"""How an agent and a session are set up (semantics 2). Durations are milliseconds.

AgentConfig(default_model="gpt-5-mini", system_instructions=("Be brief.",), tool_timeout_ms=30_000)
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from ..messages.content import texts
from ..messages.jsonvalue import JsonObject, json_object


@attrs.frozen
class RetryPolicy:
    """How often and how patiently a request is tried. ``attempts`` in total; waits double from ``base_ms``."""

    attempts: int = 3
    base_ms: int = 500
    max_ms: int = 30_000
    jitter: float = 0.1


@attrs.frozen
class Notices:
    """Texts that the runtime puts into history for the model to read: Chinese, or `english`. Braces are filled in."""

    interrupted_message: str = "[此消息因用户取消而中断]"
    failed_message: str = "[此消息因错误而中断]"
    skipped_tool: str = "[已取消：该工具未执行]"
    unknown_outcome: str = "[结果未知：该工具在完成前被中断，可能已产生副作用]"
    aborted_tool: str = "Tool aborted by hook: {reason}"
    timed_out_tool: str = "Tool timed out after {ms}ms"
    tool_limit: str = "[已达到单轮工具调用上限（{limit}），本轮结束]"
    truncated: str = "\n\n[output truncated at 1MB]"

    @classmethod
    def english(cls) -> Notices:
        """The same in English."""
        return cls(
            interrupted_message="[This message was interrupted: the user cancelled]",
            failed_message="[This message was interrupted by an error]",
            skipped_tool="[Cancelled: this tool was not run]",
            unknown_outcome="[Outcome unknown: this tool was cut before it finished and may have had effects]",
            tool_limit="[The limit of {limit} tool calls per turn is reached; this turn ends]",
        )


@attrs.frozen
class EnvironmentContext:
    """Where the conversation takes place; goes into the dynamic part of the system prompt."""

    os: str | None = None
    working_directory: str | None = None
    time: str | None = None
    extra: JsonObject = attrs.field(factory=JsonObject, converter=json_object)


@attrs.frozen
class AgentConfig:
    """Everything an agent is told at build time. Ranges are checked by ``build()`` (semantics 2)."""

    default_model: str
    system_instructions: tuple[str, ...] = attrs.field(default=(), converter=texts)
    personality: str | None = None
    environment: EnvironmentContext | None = None
    tool_timeout_ms: int = 120_000
    compact_threshold: float = 0.8
    compact_model: str | None = None
    compact_prompt: str | None = None
    max_tool_calls_per_turn: int = 50
    memory_model: str | None = None
    memory_checkpoint_interval: int = 10
    memory_max_items: int = 20
    memory_namespace: str = "default"
    memory_timeout_ms: int = 30_000
    retry: RetryPolicy = RetryPolicy()
    notices: Notices = Notices()
    stream_idle_timeout_ms: int = 120_000
    event_buffer: int = 64
    max_concurrent_tools: int = 8
    shutdown_grace_ms: int = 5_000
    closing_ms: int = 2_000
    tool_patience_ms: int = 500
    hook_timeout_ms: int = 30_000
    storage_timeout_ms: int = 30_000
    plugin_timeout_ms: int = 5_000
    claim_ttl_ms: int = 15_000
    """How long a claim on a session lasts unless it is renewed, in milliseconds; it is renewed at a third of that.

    After a freeze or a lost connection, others wait this long before they may open the session (semantics 7)."""
    address: str = ""
    """Where this agent can be reached, for others that find its session taken; empty: host name and process id."""
    token_counter: Callable[[str], int] | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    reasoning_effort: str | None = None


@attrs.frozen
class SessionConfig:
    """What one session does differently. Stored with it and used again at resume (semantics 7)."""

    model_id: str | None = None
    system_prompt_override: str | None = None
    environment: EnvironmentContext | None = None
    domain: str | None = None
    skill: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    reasoning_effort: str | None = None
    response_schema: JsonObject | None = attrs.field(default=None, converter=attrs.converters.optional(json_object))
    metadata: JsonObject = attrs.field(factory=JsonObject, converter=json_object)

"""How an agent and a session are set up (semantics 2). Durations are milliseconds.

AgentConfig(default_model="gpt-5-mini", system_instructions=("Be brief.",), tool_timeout_ms=30_000)
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from ..messages.content import texts
from ..messages.jsonvalue import JsonObject, json_object
from ..messages.misuse import known_fields


@known_fields
@attrs.frozen
class RetryPolicy:
    """How often and how patiently a request is tried. ``attempts`` in total; waits double from ``base_ms``."""

    attempts: int = 3
    """Attempts for one request in total, at least 1. 1 means no retry."""
    base_ms: int = 500
    """Delay after the first failed attempt, in milliseconds; it doubles with each further one."""
    max_ms: int = 30_000
    """Upper bound of the delay, in milliseconds."""
    jitter: float = 0.1
    """Share of the delay, from 0 to 1, by which it is spread at random to both sides."""
    longest_wait_ms: int = 3_600_000
    """The longest wait that a server may ask for (``retry_after_ms``), in milliseconds. A longer one fails the turn."""


@known_fields
@attrs.frozen
class Notices:
    """Texts that the runtime puts into history for the model to read. Braces are filled in.

    The defaults are those of the original requirements, Chinese and English mixed; `english` and `chinese` are in one
    language. Choose one in so many words: it is part of what the model reads.
    """

    interrupted_message: str = "[此消息因用户取消而中断]"
    """Follows an assistant message that a cancel left incomplete."""
    failed_message: str = "[此消息因错误而中断]"
    """Follows an assistant message that an error left incomplete."""
    skipped_tool: str = "[已取消：该工具未执行]"
    """The result of a call that never started."""
    unknown_outcome: str = "[结果未知：该工具在完成前被中断，可能已产生副作用]"
    """The result of a call that was cut while it ran, or whose end was not stored before a crash."""
    aborted_tool: str = "Tool aborted by hook: {reason}"
    """The result of a call that a hook refused. ``{reason}``: what the hook answered."""
    timed_out_tool: str = "Tool timed out after {ms}ms"
    """The result of a call that ran too long. ``{ms}``: its time-out in milliseconds."""
    tool_limit: str = "[已达到单轮工具调用上限（{limit}），本轮结束]"
    """Enters history when a turn asks for more calls than it may. ``{limit}``: ``max_tool_calls_per_turn``, or the
    budget's.
    """
    misfit_output: str = "[回答不符合要求的 JSON Schema，请只输出修正后的 JSON]\n{problems}"
    """Follows an answer that does not fit the schema that was asked for. ``{problems}``: what the validator says."""
    truncated: str = "\n\n[output truncated at 1MB]"
    """Appended to tool output that was cut."""

    @classmethod
    def english(cls) -> Notices:
        """The same in English."""
        return cls(
            interrupted_message="[This message was interrupted: the user cancelled]",
            failed_message="[This message was interrupted by an error]",
            skipped_tool="[Cancelled: this tool was not run]",
            unknown_outcome="[Outcome unknown: this tool was cut before it finished and may have had effects]",
            misfit_output="[This answer does not fit the JSON Schema. Answer again, with the corrected JSON alone]\n"
            "{problems}",
            tool_limit="[The limit of {limit} tool calls per turn is reached; this turn ends]",
        )

    @classmethod
    def chinese(cls) -> Notices:
        """The same in Chinese."""
        return cls(
            aborted_tool="[工具被钩子拒绝：{reason}]",
            timed_out_tool="[工具超时：{ms} 毫秒内未完成]",
            truncated="\n\n[输出已在 1MB 处截断]",
        )


@known_fields
@attrs.frozen
class EnvironmentContext:
    """Where the conversation takes place; goes into the dynamic part of the system prompt."""

    os: str | None = None
    """The operating system, in words. None: left out of the prompt."""
    working_directory: str | None = None
    """The directory that the work is about. None: left out of the prompt."""
    time: str | None = None
    """The time in the host's own words; the runtime never asks a clock for it. None: left out of the prompt."""
    extra: JsonObject = attrs.field(factory=JsonObject, converter=json_object)
    """Further facts, as a JSON object; each becomes a line of the prompt."""


@known_fields
@attrs.frozen
class AgentConfig:
    """Everything an agent is told at build time. Ranges are checked by ``build()`` (semantics 2)."""

    default_model: str
    """Id of the model of sessions that name none. It must be registered."""
    system_instructions: tuple[str, ...] = attrs.field(default=(), converter=texts)
    """Texts at the beginning of every system prompt, in order. Default: none."""
    personality: str | None = None
    """How the agent should sound; a section of its own in the system prompt. None: no such section."""
    environment: EnvironmentContext | None = None
    """Where the conversation takes place, for sessions that set none. None: no such section."""
    tool_timeout_ms: int = 120_000
    """Milliseconds that a tool may run unless it declares its own ``timeout_ms``; counted from its start."""
    compact_threshold: float = 0.8
    """Share of the model's window, above 0 and at most 1, over which old history is compacted."""
    compact_model: str | None = None
    """Id of the model that writes summaries. None: the session's model."""
    compact_prompt: str | None = None
    """Instruction for the model that writes summaries. None: the built-in one."""
    max_tool_calls_per_turn: int = 50
    """Calls that may run in one turn. Further ones are refused, and the turn fails."""
    memory_model: str | None = None
    """Id of the model that extracts memories. None: ``compact_model``, else the session's model."""
    memory_checkpoint_interval: int = 10
    """Turns between two extractions of memories; the last one is at the session's close."""
    memory_max_items: int = 20
    """Memories that a search returns at most, for the prompt and for an extraction."""
    memory_namespace: str = "default"
    """Namespace that memories are searched and stored in."""
    memory_timeout_ms: int = 30_000
    """Milliseconds for a search, and for an extraction with its model request."""
    retry: RetryPolicy = RetryPolicy()
    """How often and after which delays a failed model request is sent again."""
    notices: Notices = Notices()
    """Texts that the runtime writes for the model. The default is that of the original requirements, Chinese and
    English mixed: choose ``Notices.english()`` or ``Notices.chinese()``.
    """
    stream_idle_timeout_ms: int = 120_000
    """Milliseconds without an item of the stream after which a request fails. Time in which a slow reader holds it up
    does not count.
    """
    event_buffer: int = 64
    """Events of a turn that wait for the reader before the turn waits for room."""
    max_concurrent_tools: int = 8
    """Tools of this agent that run at once, at most."""
    shutdown_grace_ms: int = 5_000
    """Milliseconds that tools, hooks and streams still have after the host is cancelled."""
    cancel_grace_ms: int | None = None
    """Milliseconds that running tools and hooks still have after a ``cancel()``, ``close()`` or ``shutdown()`` without
    a grace of its own. None: they finish within their own time-outs.
    """
    closing_ms: int = 2_000
    """Milliseconds after the grace to close history, flush it and shut plugins down."""
    tool_patience_ms: int = 500
    """Milliseconds that a tool has to clean up after it was cut, before it counts as stuck."""
    hook_timeout_ms: int = 30_000
    """Milliseconds that a hook may run once a stop is asked for; nothing bounds it before."""
    storage_timeout_ms: int = 30_000
    """Milliseconds for one call of the session storage, after which it has failed."""
    plugin_timeout_ms: int = 5_000
    """Milliseconds for the shutdown of one plugin, provider or storage."""
    max_calls_per_response: int = 256
    """Tool calls that one response may hold; with more, its stream is closed and the turn fails (semantics 4)."""
    max_response_chars: int = 4_000_000
    """Characters of text, reasoning and arguments that one response may hold; with more, as above."""
    claim_ttl_ms: int = 15_000
    """How long a claim on a session lasts unless it is renewed, in milliseconds; it is renewed at a third of that.

    After a freeze or a lost connection, others wait this long before they may open the session (semantics 7)."""
    max_output_repairs: int = 2
    """Times that a turn asks the model again when its answer does not fit ``output`` or ``response_schema``; 0: never.
    """
    address: str = ""
    """Where this agent can be reached, for others that find its session taken; empty: host name and process id."""
    token_counter: Callable[[str], int] | None = None
    """Counts the tokens of a text; called often, and must be fast. None: an estimate by script."""
    temperature: float | None = None
    """Sampling temperature, 0 or more, for sessions that set none. None: the provider's default."""
    max_tokens: int | None = None
    """Limit of output tokens per request, for sessions that set none. None: the provider's default."""
    reasoning_effort: str | None = None
    """The provider's own word, for sessions that set none. None: the provider's default."""


@known_fields
@attrs.frozen
class SessionConfig:
    """What one session does differently. Stored with it and used again at resume (semantics 7)."""

    model_id: str | None = None
    """Id of a registered model. None: the profile's model, else the agent's ``default_model``."""
    system_prompt_override: str | None = None
    """Text that follows the agent's instructions in the system prompt. None: nothing."""
    environment: EnvironmentContext | None = None
    """Replaces the agent's ``environment`` as a whole. None: the agent's."""
    domain: str | None = None
    """Id of a profile of kind ``DOMAIN``. None: no such layer."""
    skill: str | None = None
    """Id of a profile of kind ``SKILL``. None: no such layer."""
    temperature: float | None = None
    """Sampling temperature, 0 or more. None: the agent's."""
    max_tokens: int | None = None
    """Limit of output tokens per request. None: the agent's."""
    reasoning_effort: str | None = None
    """The provider's own word. None: the agent's."""
    response_schema: JsonObject | None = attrs.field(default=None, converter=attrs.converters.optional(json_object))
    """JSON Schema that the answer of each turn must fit (semantics 13). None: free text. ``output`` of
    `Agent.new_session` fills it in.
    """
    metadata: JsonObject = attrs.field(factory=JsonObject, converter=json_object)
    """A JSON object of the host's own, stored with the session and passed on in each ``ChatRequest``."""

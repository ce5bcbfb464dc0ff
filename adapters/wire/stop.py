"""Why a model stopped, from the words of many servers (semantics 4). Pure.

    stop_reason("MAX_TOKENS", called=True)      # StopReason.LENGTH
    stop_reason("eos", called=True)             # StopReason.OTHER: what is not known to be good is not taken for good

Only an end that is known to be good runs calls, so the table lists what servers were seen to say and guesses nothing.
"""

from __future__ import annotations

from ...messages.chat import StopReason

_WORDS = {
    StopReason.END_TURN: ("stop", "end_turn", "stop_sequence", "completed", "complete"),
    StopReason.TOOL_USE: ("tool_calls", "tool_call", "tool_use", "function_call", "function_calls"),
    StopReason.LENGTH: (
        "length",
        "max_tokens",
        "max_output_tokens",
        "max_length",
        "model_length",
        "token_limit",
        "model_context_window_exceeded",
    ),
    StopReason.CONTENT_FILTER: (
        "content_filter",
        "content_filtered",
        "guardrail_intervened",
        "sensitive",
        "safety",
        "recitation",
        "blocklist",
        "prohibited_content",
        "spii",
        "image_safety",
    ),
    StopReason.REFUSAL: ("refusal",),
    StopReason.PAUSE: ("pause_turn",),
    StopReason.ERROR: (
        "error",
        "abort",
        "aborted",
        "cancelled",
        "canceled",
        "failed",
        "network_error",
        "insufficient_system_resource",
        "malformed_function_call",
    ),
}
_REASONS = {word: reason for reason, words in _WORDS.items() for word in words}


def stop_reason(word: object, *, called: bool) -> StopReason:
    """What ``word`` means, in any case and spelling.

    Args:
        called: whether the response holds calls: many servers say "stop" after those too.
    """
    if not isinstance(word, str):
        return StopReason.OTHER
    spelled = "_".join(word.strip().casefold().replace("-", " ").replace("_", " ").split())
    reason = _REASONS.get(spelled, StopReason.OTHER)
    return good_end(called=called) if reason in (StopReason.END_TURN, StopReason.TOOL_USE) else reason


def good_end(*, called: bool) -> StopReason:
    """The reason of a response that ended well, whatever the server called it."""
    return StopReason.TOOL_USE if called else StopReason.END_TURN

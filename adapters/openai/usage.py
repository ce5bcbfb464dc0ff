"""Token counts of the two OpenAI APIs, in the shapes in which compatible servers report them (semantics 4). Pure."""

from __future__ import annotations

from ...messages.chat import TokenUsage
from ..wire.usage import first_count


def usage_of(report: object) -> TokenUsage | None:
    """The counts in ``report``; what a server does not say, or says in a shape of its own, is 0. None for no report."""
    if not isinstance(report, dict) or not report:
        return None
    sent = first_count(report, ("prompt_tokens", "input_tokens"))
    made = first_count(report, ("completion_tokens", "output_tokens"))
    total = first_count(report, ("total_tokens",))
    reasoning = first_count(
        report,
        ("completion_tokens_details.reasoning_tokens", "output_tokens_details.reasoning_tokens", "reasoning_tokens"),
    )
    # xAI and Gemini count reasoning beside the output; a TokenUsage counts it as a part.
    if total > sent + made and reasoning > 0:
        made = total - sent
    return TokenUsage(
        input_tokens=sent,
        output_tokens=made,
        cache_read_tokens=first_count(
            report,
            ("prompt_tokens_details.cached_tokens", "input_tokens_details.cached_tokens", "prompt_cache_hit_tokens"),
        ),
        cache_write_tokens=first_count(
            report, ("prompt_tokens_details.cache_write_tokens", "input_tokens_details.cache_write_tokens")
        ),
        reasoning_tokens=reasoning,
    )

"""What follows from the reason for which a model stopped (semantics 4). Pure; the table is the test.

| reason | calls | with text | with neither |
|---|---|---|---|
| end of turn, tool use | run | completes | is asked once more |
| length, content filter, refusal | refused, the model learns why | completes, and says how it ended | fails |
| pause | refused | goes on | goes on, if there is something to hand back |
| error | skipped | fails | fails |
| other | refused | completes, and says how it ended | is asked once more |

Only an end that is known to be good runs calls: arguments of any other may be half of what the model meant.
"""

from __future__ import annotations

from ...messages.errors import AgentError, EmptyResponse, ProviderError
from ...messages.history import StopReason

_GOOD = (StopReason.END_TURN, StopReason.TOOL_USE)
_WHY = {
    StopReason.LENGTH: "the response was cut at its length limit",
    StopReason.CONTENT_FILTER: "the response was cut by the provider's content filter",
    StopReason.REFUSAL: "the model refused to go on",
    StopReason.PAUSE: "the model paused in the middle of its response",
    StopReason.ERROR: "the provider ended the response with an error",
    StopReason.OTHER: "the response ended for a reason that is not known to be a good one",
}
_ADVICE = {
    StopReason.LENGTH: "reasoning used up the length limit before a word was said; raise max_tokens, or lower "
    "reasoning_effort",
    StopReason.CONTENT_FILTER: "the provider's content filter let nothing through; say it differently, or use another "
    "model",
    StopReason.REFUSAL: "the model refused to answer and gave no reason; say it differently, or use another model",
}

_CUT = {
    StopReason.LENGTH: "raise max_tokens",
    StopReason.CONTENT_FILTER: "say it differently, or use another model",
    StopReason.REFUSAL: "say it differently, or use another model",
}


def refusal_of_calls(reason: StopReason) -> str | None:
    """Why calls of a response that ended like this do not run; None if they do. For the model to read."""
    if reason in _GOOD:
        return None
    return f"not run: {_WHY[reason]}, so its arguments may be incomplete; call again"


def completes(reason: StopReason) -> bool:
    """Whether a text that ended like this, without calls, is the answer."""
    return reason not in (StopReason.PAUSE, StopReason.ERROR)


def failure(reason: StopReason) -> AgentError | None:
    """The error of a response that failed by its own word, whatever it said before."""
    if reason is not StopReason.ERROR:
        return None
    return ProviderError(f"{_WHY[reason]}; try again", retryable=True)


def emptiness(reason: StopReason, times: int) -> AgentError | None:
    """The error of an answer with neither text nor calls; None if the model is to be asked once more.

    Args:
        times: how many such answers there were in a row, this one included.
    """
    if reason in _ADVICE:
        return EmptyResponse(f"the model answered with neither text nor calls: {_ADVICE[reason]}")
    if times > 1:
        return EmptyResponse("the model answered with neither text nor calls, twice; ask differently")
    return None


def beyond_repair(reason: StopReason) -> str | None:
    """Why a model that ended like this is not asked to correct what it said; None if it is.

    The same request would end in the same way.
    """
    return f"{_WHY[reason]}; {_CUT[reason]}" if reason in _CUT else None

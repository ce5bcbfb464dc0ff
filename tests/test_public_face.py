"""What ``import youyou`` offers: the names of semantics 1, and little else."""

from __future__ import annotations

import subprocess
import sys

import pytest
import youyou
from youyou.messages.errors import AgentError

NAMES = {
    "build": "AgentBuilder AgentConfig EnvironmentContext RetryPolicy Notices",
    "run": "Agent Session SessionOpening RunningTurn SessionConfig UserInput TurnResult TurnStatus",
    "content": "TextBlock ImageBlock FileBlock ReasoningBlock AsyncPath",
    "history": "UserMessage AssistantMessage ToolCall ToolResult SystemMessage MessageStatus",
    "stream": "ChatRequest ToolSpec TextDelta ReasoningDelta ToolCallDelta Progress ToolCall Done ChatError TokenUsage"
    " Usage StopReason",
    "events": "AgentEvent TextDelta ReasoningDelta ToolCallDelta ToolCallStart ToolProgress ToolCallEnd"
    " ContextCompacted RetryScheduled OutputRejected StepStart StepEnd TurnComplete TurnCancelled ErrorEvent",
    "hooks": "SessionStart SessionEnd TurnStart TurnEnd BeforeToolUse AfterToolUse BeforeCompact"
    " Continue ContinueWith Abort",
    "ports": "ModelProvider ModelInfo ModelCapabilities ToolHandler ToolInput ToolOutput Plugin PluginContext"
    " SessionStorage SessionEvent Metadata SessionSummary SessionPage MemoryStorage Memory"
    " SessionClaim SessionClaims new_events",
    "extension": "Tool tool SkillDefinition AgentProfile ProfileKind RuntimeMode ReAct Pipeline SingleShot"
    " Step Budget QuickAction",
    "unions": "Message ContentBlock ChatEvent AgentEventPayload SessionEventPayload HookEvent HookResult"
    " NoProvider HasProvider",
    "errors": "AgentError ErrorCode ErrorSource",
    "observing": "AgentStatistics MailboxStatistics TaskNode",
    "discovery": "ProfileInfo ProfileOrigins ResolvedProfile ToolInfo",
    "one answer": "ask ask_sync",
    "as JSON": "converter from_json to_json",
}
BESIDE = {"SystemPrompt", "ThreadFunction", "ToolOutcome"}
"""Types of fields of the names above, so that a host can write them down."""


def test_the_names_are_those_of_the_contract():
    """``__all__`` holds the pinned names and one class per error code, and of others only the types of their fields."""
    pinned = {name for names in NAMES.values() for name in names.split()}
    errors = {cls.__name__ for cls in AgentError.by_code.values()}
    assert set(youyou.__all__) == pinned | errors | BESIDE
    assert sorted(youyou.__all__) == list(youyou.__all__)


@pytest.mark.parametrize("name", youyou.__all__)
def test_each_name_is_there_and_explained(name):
    """Every public class and function has a docstring of its own."""
    value = getattr(youyou, name)
    if isinstance(value, type) or callable(value):
        assert (value.__doc__ or "").strip()


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import youyou", ("openai", "anthropic", "apsw", "rich", "prompt_toolkit", "youyou.testing", "pytest")),
        ("import youyou.testing", ("openai", "anthropic", "apsw", "rich", "prompt_toolkit")),
    ],
)
def test_importing_brings_in_no_extra(statement, absent):
    """The core imports no SDK, no database and no test kit; the kit imports no SDK either."""
    code = f"{statement}\nimport sys\nprint([name for name in {absent!r} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"

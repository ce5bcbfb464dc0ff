"""The size of a request is estimated, and corrected by what the provider reports (semantics 9)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from youyou.core.history.tokens import (
    IMAGE_TOKENS,
    MESSAGE_TOKENS,
    TokenMeter,
    estimate_text,
    fixed_tokens,
    message_tokens,
)
from youyou.messages.chat import SystemPrompt, TokenUsage, ToolSpec
from youyou.messages.content import FileBlock, ImageBlock, ReasoningBlock
from youyou.messages.history import AssistantMessage, Message, SystemMessage, ToolCall, ToolResult, UserMessage

NO_PROMPT = SystemPrompt()
CHINESE = "今天奥斯陆的天气很好我们去森林里散步吧。"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 1),
        ("a" * 4000, 1000),
        ("中" * 1000, 1000),
        ("한" * 10 + "か" * 10, 20),
        ("я" * 1000, 500),
        ("😀" * 10, 20),
        ("abcd中я\U0001f600", 5),
        ("\ud800" * 10, 10),
    ],
)
def test_text_is_estimated_by_script(text: str, expected: int) -> None:
    """ASCII counts four characters a token, CJK one, two-byte scripts two, emoji half a one."""
    assert expected == estimate_text(text)


@given(st.text(), st.text())
def test_the_estimate_of_two_texts_is_the_sum_of_theirs(left: str, right: str) -> None:
    """Cutting a text in two changes its estimate by rounding only."""
    assert abs(estimate_text(left + right) - estimate_text(left) - estimate_text(right)) <= 1


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (UserMessage("a" * 40), 10),
        (SystemMessage("a" * 40), 10),
        (ToolResult("a", "a" * 40), 10),
        (AssistantMessage([ReasoningBlock("a" * 40)]), 10),
        (UserMessage([FileBlock("name", "a" * 40)]), 11),
        (UserMessage([ImageBlock("A" * 4_000_000, "image/png")] * 5), 5 * IMAGE_TOKENS),
        (ToolCall("a", "tool", {"text": "a" * 40}), 1 + 13),
        (ToolCall("a", "tool", {}, raw_arguments="a" * 40), 11),
        (ToolCall("a", "tool", {"x": "\ud800"}), 1 + 4),
    ],
)
def test_each_kind_of_message_is_measured_by_its_text(message: Message, expected: int) -> None:
    """Texts, files, reasoning and arguments count; an image has a fixed cost and its base64 is never text."""
    assert expected + MESSAGE_TOKENS == message_tokens(message)


def test_prompt_and_tools_are_counted() -> None:
    """A request without history costs its system prompt and its tool definitions."""
    tools = (ToolSpec("tool", "a" * 40, {"type": "object"}),)
    system = SystemPrompt("a" * 40, "b" * 38)
    meter = TokenMeter()

    expected = 20 + (1 + 10 + 5 + MESSAGE_TOKENS)
    assert expected == fixed_tokens(system, tools) == meter.fixed(system, tools) == meter.estimate(system, tools)


def test_without_usage_the_estimate_is_the_sum_of_all() -> None:
    """Messages add up, and a replaced history counts anew."""
    meter = TokenMeter()
    meter.add(UserMessage("a" * 40))
    meter.add(ToolResult("a", "a" * 40))
    before = meter.estimate(SystemPrompt("a" * 40), ())
    meter.reset([UserMessage("a" * 40)])

    expected = (38, 24)
    assert expected == (before, meter.estimate(SystemPrompt("a" * 40), ()))


def test_reported_usage_replaces_the_estimate_of_what_was_sent() -> None:
    """After a report only what came later is estimated: messages, and what the prompt grew by."""
    meter = TokenMeter()
    meter.add(UserMessage("a" * 400))
    meter.sent(SystemPrompt("a" * 40), ())
    meter.reported(TokenUsage(input_tokens=100))
    meter.add(AssistantMessage("a" * 40))

    expected = 100 + 14 + 10
    assert expected == meter.estimate(SystemPrompt("a" * 80), ())


@pytest.mark.parametrize("usage", [None, TokenUsage()])
def test_a_provider_that_reports_nothing_leaves_the_estimate(usage: TokenUsage | None) -> None:
    """No usage, or one of zero tokens, corrects nothing."""
    meter = TokenMeter()
    meter.add(UserMessage("a" * 40))
    meter.sent(NO_PROMPT, ())
    meter.reported(usage)

    expected = 14
    assert expected == meter.estimate(NO_PROMPT, ())


def test_usage_without_a_request_is_ignored() -> None:
    """A report counts once, for the request that was sent last."""
    meter = TokenMeter()
    meter.sent(NO_PROMPT, ())
    meter.reported(TokenUsage(input_tokens=50))
    meter.reported(TokenUsage(input_tokens=5_000))

    expected = 50
    assert expected == meter.estimate(NO_PROMPT, ())


def test_cached_tokens_that_the_provider_counts_apart_are_added() -> None:
    """More cached than put in: then the cached ones are not a part of the input, and both fill the window."""
    meter = TokenMeter()
    meter.sent(NO_PROMPT, ())
    meter.reported(TokenUsage(input_tokens=10, cache_read_tokens=900, cache_write_tokens=90))

    expected = 1_000
    assert expected == meter.estimate(NO_PROMPT, ())


def test_what_was_learnt_about_the_tokenizer_survives_compaction() -> None:
    """Where the provider counted twice the estimate, the replaced history and single messages count double too."""
    meter = TokenMeter()
    meter.add(UserMessage("a" * 384))
    meter.sent(NO_PROMPT, ())
    meter.reported(TokenUsage(input_tokens=200))
    meter.reset([UserMessage("a" * 184)])

    expected = (100, 100, 20)
    assert expected == (
        meter.estimate(NO_PROMPT, ()),
        meter.size(UserMessage("a" * 184)),
        meter.text_size("a" * 40),
    )


def test_a_replaced_history_is_not_measured_by_the_old_report() -> None:
    """After compaction the size is that of the new history alone, not the old report less what went."""
    meter = TokenMeter()
    meter.add(UserMessage("a" * 3_984))
    meter.sent(NO_PROMPT, ())
    meter.reported(TokenUsage(input_tokens=600))
    meter.reset([UserMessage("a" * 1_984)])

    expected = 300
    assert expected == meter.estimate(NO_PROMPT, ())


@pytest.mark.parametrize(("tokens", "expected"), [(1, 50), (1_000_000, 400)])
def test_an_absurd_report_moves_the_ratio_only_so_far(tokens: int, expected: int) -> None:
    """The ratio stays between one half and four, whatever a provider reports."""
    meter = TokenMeter()
    meter.add(UserMessage("a" * 3_984))
    meter.sent(NO_PROMPT, ())
    meter.reported(TokenUsage(input_tokens=tokens))

    assert expected == meter.size(UserMessage("a" * 384))


def test_a_first_report_of_a_tiny_request_does_not_halve_the_estimate() -> None:
    """It counts by its size; one above the estimate counts in full."""
    learnt = []
    for length, tokens in ((24, 5), (384, 50), (3_984, 500), (24, 20)):
        meter = TokenMeter()
        meter.add(UserMessage("a" * length))
        meter.sent(NO_PROMPT, ())
        meter.reported(TokenUsage(input_tokens=tokens))
        learnt.append(meter.learnt()["ratio"])

    assert [0.995, 0.95, 0.5, 2.0] == learnt


def test_a_low_ratio_does_not_make_new_text_cheap() -> None:
    """Learnt from English, a ratio below one is not applied to what comes after: it may be Chinese."""
    meter = TokenMeter()
    meter.add(UserMessage("a" * 384))
    meter.sent(NO_PROMPT, ())
    meter.reported(TokenUsage(input_tokens=60))
    meter.add(UserMessage("中" * 96))

    expected = 60 + 100
    assert expected == meter.estimate(NO_PROMPT, ())


@pytest.mark.parametrize("tokens_per_character", [0.6, 0.8, 1.0, 1.2, 1.5, 2.0])
def test_chinese_history_triggers_before_the_provider_overflows(tokens_per_character: float) -> None:
    """By any plausible tokenizer a Chinese-only session passes 0.8 of the window before it overflows.

    Every round is reported by the provider, so what is estimated is at most the newest round.
    """
    window, threshold, real = 8_000, 0.8, 0.0
    meter = TokenMeter()
    while meter.estimate(NO_PROMPT, ()) <= threshold * window:
        assert real <= window
        meter.sent(NO_PROMPT, ())
        meter.reported(TokenUsage(input_tokens=round(real)))
        for message in (UserMessage(CHINESE * 10), AssistantMessage(CHINESE * 10)):
            meter.add(message)
            real += len(CHINESE) * 10 * tokens_per_character

    assert real <= window


def test_a_counter_of_the_host_is_asked() -> None:
    """A given token counter replaces the estimate by script, and images keep their fixed cost."""
    meter = TokenMeter(counter=len)
    meter.add(UserMessage("a" * 40))
    meter.add(UserMessage(ImageBlock("AAAA", "image/png")))

    expected = 40 + IMAGE_TOKENS + 2 * MESSAGE_TOKENS
    assert expected == meter.estimate(NO_PROMPT, ())


@pytest.mark.parametrize("counter", [lambda text: 1 // 0, lambda text: "many"])
def test_a_counter_that_fails_is_replaced_by_the_estimate(counter: Callable[[str], int]) -> None:
    """The host's counter may raise or answer nonsense: the estimate takes over and the error is kept."""
    meter = TokenMeter(counter=counter)
    meter.add(UserMessage("a" * 40))

    expected = 14
    assert expected == meter.estimate(NO_PROMPT, ())
    assert isinstance(meter.counter_error, ZeroDivisionError | ValueError)


@pytest.mark.parametrize(("extra", "expected"), [(0, 900), (1, MESSAGE_TOKENS + 1)])
def test_what_was_learnt_of_a_longer_history_is_not_taken_over(extra: int, expected: int) -> None:
    """A size that was reported for more than there is now, as after a cut log, says nothing about what is left."""
    meter = TokenMeter()
    meter.add(UserMessage("a"))

    meter.relearn({"ratio": 1.0, "tokens": 900, "history": MESSAGE_TOKENS + 1 + extra, "fixed": 0})

    assert expected == meter.estimate(NO_PROMPT, ())

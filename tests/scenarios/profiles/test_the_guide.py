"""The guide to profiles: its code runs as it stands there, and its links lead somewhere."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import youyou
from youyou import AgentBuilder, AgentConfig
from youyou.cli import main
from youyou.testing import StrictProvider, calls, say

DOCS = Path(__file__).parents[3] / "docs"
GUIDE = (DOCS / "profiles.md").read_text()


async def test_the_code_of_the_guide_runs(autojump_clock: Any) -> None:
    """All blocks together are one program: its profiles build, its pipeline goes on after a failure, it is told."""
    told: dict[str, Any] = {}
    exec("\n".join(re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)), told)
    broken_off = [youyou.TextDelta("ti"), youyou.StreamInterrupted("gone", retryable=True)]
    rounds = [say("moon and sun"), broken_off, say("tides"), calls(
        youyou.ToolCall("1", "concept_cards", {"concepts": ["tide"]})), say("made")]  # fmt: skip
    provider = StrictProvider(rounds)
    builder = AgentBuilder(AgentConfig("scripted")).register_model_provider(provider)
    for tool in (told["outline"], told["concept_cards"]):
        builder.register_tool(tool)
    for profile in (told["study"], told["exam"], told["cards"]):
        builder.register_profile(profile)
    async with builder.build() as agent:
        result = await told["make_cards"](agent)
        shown = json.loads(told["told"](agent))

    assert ("made", "1 cards") == (result.text, result.tool_results[0].content)
    assert ["Outline the chapter on tides.", "Name the concepts of: moon and sun", "Make cards of: tides"] == list(
        dict.fromkeys(request.messages[-1].content[0].text for request in provider.requests[:4])
    )
    assert ["study", "exam", "cards"] == [profile["id"] for profile in shown]
    assert ["outline", "concept_cards"] == [tool["name"] for tool in shown[1]["tools"]]


@pytest.mark.parametrize(("retryable", "requests"), [(False, 1), (True, 4)])
async def test_the_loop_of_the_guide_ends_when_the_failure_does_not(
    retryable: bool, requests: int, autojump_clock: Any
) -> None:
    """A key that was revoked, a server that stays away."""
    told: dict[str, Any] = {}
    exec("\n".join(re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)), told)
    gone = youyou.ProviderError("gone", retryable=retryable)
    provider = StrictProvider([[gone]] * 10)
    builder = AgentBuilder(AgentConfig("scripted", retry=youyou.RetryPolicy(attempts=1)))
    builder.register_model_provider(provider).register_tool(told["outline"]).register_tool(told["concept_cards"])
    for profile in (told["study"], told["exam"], told["cards"]):
        builder.register_profile(profile)
    async with builder.build() as agent:
        result = await told["make_cards"](agent)

    assert ("failed", requests) == (result.status, len(provider.requests))


@pytest.mark.parametrize("name", ["profiles.md"])
def test_links_and_test_files_exist(name: str) -> None:
    """Every relative link and every named test file is there."""
    text = (DOCS / name).read_text()
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    files = re.findall(r"`((?:tests/[\w/]+/)?test_\w+\.py)`", text)

    assert len(links) > 3 and len(files) > 8
    assert [] == [link for link in links if not (DOCS / link).exists()]
    assert [] == [
        file
        for file in files
        if not (DOCS.parent / ("" if "/" in file else "tests/scenarios/profiles") / file).exists()
    ]


def test_the_command_line_tells_the_profiles_of_the_example(
    desk: Any, monkeypatch: Any, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """``youyou profiles`` prints what the page gets, with origins if asked for."""
    assert 0 == main(["profiles", "writing_desk.agent:stand_in_agent", "--resolved"])
    told = json.loads(capfdbinary.readouterr().out)

    assert [profile.id for profile in desk.profiles.PROFILES] == [each["id"] for each in told]
    assert "exam-notes" == told[2]["resolved"]["origins"]["budget"]

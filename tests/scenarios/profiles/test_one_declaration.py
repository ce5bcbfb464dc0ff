"""One declaration is enough: a new tool with a tag, a new profile, and nothing else changes (semantics 13)."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import youyou
from youyou import AgentProfile, ProfileKind, SessionConfig, Step
from youyou.messages.codec import to_json
from youyou.testing import StrictProvider, calls, say


@pytest.fixture
def with_new_tool(desk: Any) -> Any:
    """The example with one more tool: this declaration is all there is of it."""

    @desk.tools.declare(tags=("notes",), icon="share-2", label="Mind map")
    async def mind_map(chapter: str) -> str:
        """The concepts of a chapter as a tree.

        Args:
            chapter: Name of the chapter.
        """
        return f"tree of {chapter}"

    return desk


async def test_a_new_tool_reaches_everything(with_new_tool: Any, autojump_clock: Any) -> None:
    """The profiles that subscribe to its tag offer it, the model is told of it and may call it, discovery shows it."""
    provider = StrictProvider([calls(youyou.ToolCall("1", "mind_map", {"chapter": "tides"})), say("done")])
    async with with_new_tool.agent.desk_agent(provider).build() as agent:
        told = json.loads(to_json(agent.profiles(resolved=True)))
        async with await agent.new_session(SessionConfig(domain="study-notes")) as session:
            result = await (await session.send_message("a mind map of tides")).result()

    offering = [each["id"] for each in told if "mind_map" in each["resolved"]["tools"]]
    # The last three name no tools at all, so they have every tool there is.
    assert ["study-notes", "exam-notes", "split-chapter", "concept-cards", "review-questions"] == offering
    shown = next(each for each in told if each["id"] == "exam-notes")["tools"][-1]
    assert ("mind_map", "Mind map", "share-2") == (shown["name"], shown["label"], shown["icon"])
    spec = provider.requests[0].tools[-1]
    assert ("mind_map", "The concepts of a chapter as a tree.") == (spec.name, spec.description)
    assert "Name of the chapter." == spec.parameters["properties"]["chapter"]["description"]
    assert ["tree of tides"] == [each.content for each in result.tool_results]


async def test_a_new_profile_reaches_everything(desk: Any, autojump_clock: Any, monkeypatch: Any) -> None:
    """A profile that is registered can be chosen and is told to front ends."""
    essay = AgentProfile("essay", ProfileKind.DOMAIN, "Essay", "Arguments.", instructions="Argue.", extends="novel")
    monkeypatch.setattr(desk.agent, "PROFILES", (*desk.profiles.PROFILES, essay))
    provider = StrictProvider([say("done")])
    async with desk.agent.desk_agent(provider).build() as agent:
        told = {each.id: each for each in agent.profiles()}
        async with await agent.new_session(SessionConfig(domain="essay")) as session:
            await (await session.send_message("go")).result()

    assert ("Essay", "feather", ("outline", "split_chapter")) == (
        told["essay"].display_name, told["essay"].icon, tuple(tool.name for tool in told["essay"].tools)
    )  # fmt: skip
    assert "Argue." in provider.requests[0].system.stable


def test_the_page_names_no_tool_and_no_profile(desk: Any) -> None:
    """Whatever is declared, no line of the page says so: ids, labels, icons and steps all come by discovery."""
    page = "".join((desk.web.HERE / name).read_text() for name, _ in desk.web.FILES.values())
    page = page.replace("find(", "")
    names = [tool.name for tool in desk.tools.TOOLS] + [tool.label for tool in desk.tools.TOOLS]
    names += [each for profile in desk.profiles.PROFILES for each in (profile.id, profile.display_name, profile.icon)]
    names += [step.name for each in desk.profiles.PROFILES for step in steps_of(each)]

    assert [] == [name for name in names if name and re.search(rf"[\"'`>]{re.escape(name)}[\"'`<]", page)]


def steps_of(profile: AgentProfile) -> tuple[Step, ...]:
    """The steps of a pipeline."""
    return profile.mode.steps if isinstance(profile.mode, youyou.Pipeline) else ()

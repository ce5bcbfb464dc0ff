"""What a session does is what its profiles say, domain below and skill above (semantics 13, L1)."""

from __future__ import annotations

from typing import Any

import pytest
import youyou
from youyou import Budget, ProfileKind, ReAct, SingleShot
from youyou.core.profiles.profile import resolve_profile
from youyou.testing import calls, say

DOMAIN = ProfileKind.DOMAIN
LARGE = youyou.ModelInfo("large", "Large", 200_000)


@pytest.fixture
def layered(stage: Any) -> Any:
    """Four tools, two domains of which one extends the other, three skills of which one extends another."""
    stage.provider._models = (*stage.provider._models, LARGE)
    stage.tool("read", "chapter")
    stage.tool("cut", "chapter", "write", mutating=True)
    stage.tool("save", "write", mutating=True)
    stage.tool("search")
    stage.profile("text", DOMAIN, instructions="You read.", require_tags=("chapter",), model_id="large")
    stage.profile("novel", DOMAIN, instructions="It is a novel.", extends="text", budget=Budget(3, 7))
    stage.profile("keep", instructions="Keep it.", tools=("save",), exclude_tools=("cut",))
    stage.profile("look", instructions="Look it up.", tools=("search",), extends="keep", model_id="scripted")
    stage.profile("answer", mode=SingleShot())
    return stage


@pytest.mark.parametrize(
    ("domain", "skill", "model", "tools", "said"),
    [
        (None, None, "scripted", ("read", "cut", "save", "search"), []),
        ("text", None, "large", ("read", "cut"), ["You read."]),
        ("novel", None, "large", ("read", "cut"), ["You read.", "It is a novel."]),
        (None, "keep", "scripted", ("save",), ["Keep it."]),
        (None, "look", "scripted", ("save", "search"), ["Keep it.", "Look it up."]),
        ("text", "keep", "large", ("read", "save"), ["You read.", "Keep it."]),
        ("novel", "look", "scripted", ("read", "save", "search"),
         ["You read.", "It is a novel.", "Keep it.", "Look it up."]),
        ("novel", "answer", "large", (), ["You read.", "It is a novel."]),
    ],
)  # fmt: skip
async def test_a_request_is_what_the_layers_come_to(
    layered: Any, autojump_clock: Any, domain: str, skill: str, model: str, tools: tuple[str, ...], said: list[str]
) -> None:
    """Model, tools and instructions of the request are those of the layers, from the lowest up."""
    layered.says(say("hello"))

    async with layered.session(domain=domain, skill=skill) as session:
        await layered.turn(session)

    (request,) = layered.requests
    assert model == request.model_id
    assert [tools] == layered.offered()
    inside = request.system.stable.partition("<profile_instructions>")[2].partition("</profile_instructions>")[0]
    assert "\n\n".join(said) == inside.strip()


@pytest.mark.parametrize("skill", [None, "keep", "look", "answer"])
@pytest.mark.parametrize("domain", [None, "text", "novel"])
async def test_every_effective_value_has_a_true_origin(
    layered: Any, autojump_clock: Any, domain: str | None, skill: str | None
) -> None:
    """The profile that is named as a value's origin declares that value; without an origin it is the agent's."""
    profiles = {each.id: each for each in layered.profiles}
    whole = resolve_profile(layered.config, layered.tools, profiles, domain, skill)

    for field in ("mode", "budget", "model_id"):
        origin = getattr(whole.origins, field)
        declared = None if origin is None else getattr(profiles[origin], field)
        assert _filled(layered, field, declared) == getattr(whole, field)
    for tool, origin in zip(whole.tools, whole.origins.tools, strict=True):
        if origin is not None:
            brought = profiles[origin]
            assert tool in (brought.tools or ()) or set(brought.require_tags) <= set(layered.tools[tool].tags)


def _filled(layered: Any, field: str, declared: Any) -> Any:
    """What a declared value comes to: unset ones are the agent's."""
    match field:
        case "mode":
            return declared or ReAct()
        case "model_id":
            return declared or layered.config.default_model
        case _:
            budget = declared or Budget()
            limit = budget.max_tool_calls or layered.config.max_tool_calls_per_turn
            return Budget(budget.max_rounds, limit)


async def test_what_discovery_resolves_is_what_a_session_uses(layered: Any, autojump_clock: Any) -> None:
    """Tools, model and instructions in a profile's ``resolved`` are those of its session's request."""
    for profile in layered.profiles:
        layered.says(say("hello"))
        layered.requests.clear()
        async with layered.agent() as agent:
            infos = {info.id: info.resolved for info in agent.profiles(resolved=True)}
            chosen = {"domain" if profile.kind is DOMAIN else "skill": profile.id}
            async with await agent.new_session(youyou.SessionConfig(**chosen)) as session:
                await layered.turn(session)

        resolved = infos[profile.id]
        (request,) = layered.requests
        assert tuple(spec.name for spec in request.tools) == resolved.tools
        assert request.model_id == resolved.model_id
        assert (resolved.instructions or "") in request.system.stable


async def test_a_sessions_own_model_beats_the_profiles(layered: Any, autojump_clock: Any) -> None:
    """``SessionConfig.model_id`` is nearer than any profile."""
    layered.says(say("hello"))

    async with layered.session(domain="text", model_id="scripted") as session:
        await layered.turn(session)

    assert "scripted" == layered.requests[0].model_id


async def test_a_tool_outside_the_profile_is_unknown_to_its_session(layered: Any, autojump_clock: Any) -> None:
    """A model that calls what its profile does not offer gets an error, and the tool does not run."""
    layered.says(calls("search"), say("well"))

    async with layered.session(skill="keep") as session:
        result = await layered.turn(session)

    assert 0 == layered.runs["search"]
    assert "unknown tool 'search'; the available tools are: save" in result.tool_results[0].content


async def test_a_budget_of_rounds_is_kept(layered: Any, autojump_clock: Any) -> None:
    """In the last round of the budget no tool runs any more, and the turn fails saying so."""
    layered.profile("short", mode=ReAct(Budget(max_rounds=2)))
    layered.says(calls("read"), calls("search"))

    async with layered.session(skill="short") as session:
        result = await layered.turn(session)

    assert youyou.ErrorCode.MAX_TOOL_CALLS_EXCEEDED == result.error.code
    assert "2 rounds" in result.error.message
    assert {"read": 1} == layered.runs


async def test_a_budget_of_calls_is_kept(layered: Any, autojump_clock: Any) -> None:
    """Calls beyond the profile's budget do not run, whatever the agent would allow."""
    layered.profile("short", budget=Budget(max_tool_calls=1))
    layered.says(calls("read", "search"))

    async with layered.session(skill="short") as session:
        result = await layered.turn(session)

    assert youyou.ErrorCode.MAX_TOOL_CALLS_EXCEEDED == result.error.code
    assert {"read": 1} == layered.runs


@pytest.mark.parametrize("config", [{"domain": "keep"}, {"skill": "text"}, {"skill": "nobody"}])
async def test_a_session_of_an_unknown_profile_is_refused(
    layered: Any, autojump_clock: Any, config: dict[str, str]
) -> None:
    """An id that is not registered, or is of the other kind, opens nothing, and the next session opens."""
    layered.says(say("hello"))
    async with layered.agent() as agent:
        with pytest.raises(youyou.ProfileNotFound, match="registered: "):
            await agent.new_session(youyou.SessionConfig(**config))
        async with await agent.new_session() as session:
            result = await layered.turn(session)
    assert youyou.TurnStatus.COMPLETED == result.status


async def test_a_resumed_session_keeps_its_profiles(layered: Any, autojump_clock: Any) -> None:
    """Domain and skill are stored with the session."""
    layered.says(say("one"), say("two"))

    async with layered.session(domain="novel", skill="keep") as session:
        await layered.turn(session)
    async with layered.resumed(session.id) as session:
        await layered.turn(session)

    first, second = layered.requests
    assert first.tools == second.tools
    assert first.system.stable == second.system.stable
    assert first.model_id == second.model_id

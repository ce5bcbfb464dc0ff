"""What a request carries beside the stage: prompt, skills, notes, tools, settings (semantics 4, 5, 10, 11)."""

from __future__ import annotations

import attrs
import pytest
import trio
from youyou import (
    AgentProfile,
    Budget,
    ContinueWith,
    EnvironmentContext,
    Memory,
    ProfileKind,
    SessionConfig,
    SkillDefinition,
    SkillNotFound,
    SystemMessage,
    TextDelta,
    ToolSpec,
    TurnStart,
    UserInput,
    UserMessage,
)
from youyou.messages.content import text_of
from youyou.testing.agents.scripted import SCRIPTED_MODEL, StrictProvider, calls, say
from youyou.testing.agents.stores import InMemoryMemoryStorage

COMMIT = SkillDefinition("commit", "Commit", "Writes a commit message.", "Write a commit message.")
REVIEW = SkillDefinition("review", "Review", "Reviews.", "Review it.", allow_implicit_invocation=True)


def unseeing(**capabilities):
    return attrs.evolve(SCRIPTED_MODEL, capabilities=attrs.evolve(SCRIPTED_MODEL.capabilities, **capabilities))


def positions(text, *parts):
    return [text.index(part) for part in parts]


async def test_the_prompt_reaches_the_model_in_its_order(stage, autojump_clock):
    """Instructions, override, personality, profile, skills, plugins; then memories, environment, sections."""

    async def adds(event):
        return ContinueWith(attrs.evolve(event, dynamic_sections=("SECTION",)))

    stage.memories = InMemoryMemoryStorage()
    await stage.memories.save(Memory("m1", "default", "the user likes MEMORY tea"))
    stage.configure(
        system_instructions=("INSTRUCTIONS",),
        personality="PERSONALITY",
        environment=EnvironmentContext(os="ENVIRONMENT"),
    )
    stage.on(TurnStart, adds)
    stage.plugins[-1].description = "PLUGIN"
    stage.says(say("done"))
    profile = AgentProfile("helper", ProfileKind.DOMAIN, "Helper", "Helps.", instructions="PROFILE", budget=Budget(5))
    builder = stage.builder().register_profile(profile).register_skill(REVIEW).register_skill(COMMIT)
    config = SessionConfig(system_prompt_override="OVERRIDE", domain="helper")
    async with builder.build() as agent, await agent.new_session(config) as session:
        await (await session.send_message("tea?")).result()
        stage.says(say("[]"))  # the memories of the session's end

    system = stage.provider.requests[0].system
    stable = positions(system.stable, "INSTRUCTIONS", "OVERRIDE", "PERSONALITY", "PROFILE", "/review", "PLUGIN")
    dynamic = positions(system.dynamic, "MEMORY", "ENVIRONMENT", "SECTION")
    assert stable == sorted(stable)
    assert dynamic == sorted(dynamic)
    assert "/commit" not in system.stable


async def test_the_stable_part_is_the_same_for_all_requests_of_a_session(stage, autojump_clock):
    """Round after round and turn after turn, also after resume: a provider can cache it."""
    stage.tool("write")
    stage.configure(system_instructions=("Be brief.",))
    stage.says(calls("write"), say("one"), say("two"), say("three"))
    async with stage.agent() as agent:
        async with await agent.new_session() as session:
            for text in ("first", "second"):
                await (await session.send_message(text)).result()
        async with await agent.resume_session(session.id) as session:
            await (await session.send_message("third")).result()

    assert len({request.system.stable for request in stage.provider.requests}) == 1
    assert len(stage.provider.requests) == 4


async def test_the_dynamic_part_is_built_once_for_each_turn(stage, autojump_clock):
    """It is one text for all rounds of a turn, and memories saved meanwhile are in the next turn's."""
    stage.tool("write", takes=1.0)
    stage.memories = InMemoryMemoryStorage()
    stage.says(calls("write"), say("one"), say("two"), say("[]"))
    async with stage.session() as session:
        turn = await session.send_message("tea")
        await trio.sleep(0.5)
        await stage.memories.save(Memory("m1", "default", "green tea"))
        await turn.result()
        await (await session.send_message("tea")).result()

    first, second, third, _ = (request.system.dynamic for request in stage.provider.requests)
    assert (first, second) == ("", "")
    assert "green tea" in third


async def test_the_environment_of_a_session_takes_the_place_of_the_agents(stage, autojump_clock):
    """`SessionConfig.environment` wins; it comes back at resume."""
    stage.configure(environment=EnvironmentContext(os="plan9"))
    stage.says(say("one"), say("two"), say("three"))
    own = EnvironmentContext(os="linux", working_directory="/srv", time="noon", extra={"shift": "late"})
    async with stage.agent() as agent:
        async with await agent.new_session() as session:
            await (await session.send_message("go")).result()
        async with await agent.new_session(SessionConfig(environment=own)) as session:
            await (await session.send_message("go")).result()
        async with await agent.resume_session(session.id) as session:
            await (await session.send_message("go")).result()

    agents, sessions, resumed = (request.system.dynamic for request in stage.provider.requests)
    assert "os: plan9" in agents
    lines = ["os: linux", "working directory: /srv", "time: noon", "shift: late"]
    assert [line for line in sessions.splitlines() if line in lines] == lines
    assert resumed == sessions


async def test_settings_of_a_session_win_over_the_agents(stage, autojump_clock):
    """Temperature, tokens, effort, schema and metadata reach the request; what is not set is the agent's."""
    stage.configure(temperature=0.5, max_tokens=100, reasoning_effort="low")
    stage.says(say("one"), say("{}"))
    own = SessionConfig(temperature=0.0, max_tokens=7, response_schema={"type": "object"}, metadata={"user": "u1"})
    async with stage.agent() as agent:
        for config in (None, own):
            async with await agent.new_session(config) as session:
                await (await session.send_message("go")).result()

    agents, sessions = stage.provider.requests
    assert (agents.temperature, agents.max_tokens, agents.reasoning_effort) == (0.5, 100, "low")
    assert (sessions.temperature, sessions.max_tokens, sessions.reasoning_effort) == (0.0, 7, "low")
    assert (sessions.response_schema, sessions.metadata) == ({"type": "object"}, {"user": "u1"})
    assert (agents.response_schema, agents.metadata) == (None, {})


async def test_a_session_may_use_another_model(stage, autojump_clock):
    """`SessionConfig.model_id` chooses the model, whichever provider has it."""
    other = StrictProvider([say("other")], models=[attrs.evolve(SCRIPTED_MODEL, id="other")], id="second")
    builder = stage.builder().register_model_provider(other)
    async with builder.build() as agent, await agent.new_session(SessionConfig(model_id="other")) as session:
        assert (await (await session.send_message("go")).result()).text == "other"

    assert [request.model_id for request in other.requests] == ["other"]
    assert stage.provider.requests == []


async def test_tools_travel_with_the_request(stage, autojump_clock):
    """Names, descriptions and schemas of all tools, in order of registration; the prompt does not repeat them."""
    stage.tool("read")
    stage.tool("write", parameters={"type": "object", "properties": {"x": {"type": "integer"}}})
    stage.says(say("done"))
    async with stage.session() as session:
        await (await session.send_message("go")).result()

    (request,) = stage.provider.requests
    read, write = request.tools
    assert read == ToolSpec("read", "Keeps a log.", {"type": "object", "properties": {}})
    assert write.name == "write"
    assert write.parameters["properties"] == {"x": {"type": "integer"}}
    assert "write" not in request.system.text


async def test_a_model_without_tool_use_gets_none(stage, autojump_clock):
    """The tools of the agent are not offered to a model that cannot call them."""
    stage.provider = StrictProvider([say("done")], models=[unseeing(tool_use=False)])
    stage.tool("write")
    async with stage.session() as session:
        await (await session.send_message("go")).result()

    assert stage.provider.requests[0].tools == ()


# skills


async def test_a_skill_is_injected_before_the_message_once_a_turn(stage, autojump_clock):
    """Named twice in one input: one stored system message right before the user's, in each turn that names it."""
    stage.says(say("one"), say("two"), say("three"))
    builder = stage.builder().register_skill(COMMIT)
    async with builder.build() as agent, await agent.new_session() as session:
        for text in ("/commit and /commit", "no skill", "please /commit"):
            await (await session.send_message(text)).result()
        history = stage.lines(session.history)

    note = "note: <skill>\n<name>commit</name>\nWrite a commit message.\n</skill>"
    assert history[:2] == [note, "user: /commit and /commit"]
    assert history.count(note) == 2
    assert history[-3:-1] == [note, "user: please /commit"]
    assert stage.stored() == history


async def test_skills_named_by_the_host_come_first(stage, autojump_clock):
    """`UserInput.skills` names skills explicitly; those of the text follow, each once."""
    stage.says(say("done"))
    builder = stage.builder().register_skill(COMMIT).register_skill(REVIEW)
    async with builder.build() as agent, await agent.new_session() as session:
        await (await session.send_message(UserInput("/commit now", skills=["review", "commit"]))).result()
        kinds = [type(message) for message in session.history[:3]]
        names = [message.content.splitlines()[1] for message in session.history[:2]]

    assert kinds == [SystemMessage, SystemMessage, UserMessage]
    assert names == ["<name>review</name>", "<name>commit</name>"]


async def test_an_unknown_skill_of_the_host_is_refused_before_anything_is_stored(stage, autojump_clock):
    """SKILL_NOT_FOUND names what there is; an unknown name in text is text."""
    stage.says(say("done"))
    builder = stage.builder().register_skill(COMMIT)
    async with builder.build() as agent, await agent.new_session() as session:
        with pytest.raises(SkillNotFound, match="registered: commit"):
            await session.send_message(UserInput("go", skills=["comit"]))
        await (await session.send_message("/comit it")).result()

    assert stage.stored() == ["user: /comit it", "assistant: done"]


@pytest.mark.parametrize("text", ["/commit", "/usr/bin/commit", "https://x/commit", "`/commit`"])
async def test_the_model_triggers_no_skill(text, stage, autojump_clock):
    """What looks like a trigger in an answer, or is a path, an address or code in an input, injects nothing."""
    stage.says(say(text), say("two"))
    builder = stage.builder().register_skill(COMMIT)
    async with builder.build() as agent, await agent.new_session() as session:
        await (await session.send_message("go")).result()
        await (await session.send_message("again" if text == "/commit" else text)).result()

    assert not any(isinstance(message, SystemMessage) for message in session.history)


# notes


async def test_notes_are_user_text_for_models_that_take_no_system_messages(stage, autojump_clock):
    """Without `system_messages` the request carries skill prompts and notes as user text; stored history is neutral."""
    stage.provider = StrictProvider([], models=[unseeing(system_messages=False)])
    stage.says([TextDelta("half"), 9.0], say("next"))
    builder = stage.builder().register_skill(COMMIT)
    async with builder.build() as agent, await agent.new_session() as session:
        turn = await session.send_message("/commit")
        await trio.sleep(1)
        turn.cancel()
        await turn.result()
        await (await session.send_message("again")).result()
        history = tuple(session.history)

    sent = stage.provider.requests[1].messages
    assert not any(isinstance(message, SystemMessage) for message in sent)
    texts = [text_of(message.content) for message in sent if isinstance(message, UserMessage)]
    assert texts[0].startswith("<skill>")
    assert texts[1:] == ["/commit", "[This message was interrupted: the user cancelled]", "again"]
    assert isinstance(history[0], SystemMessage)
    assert sum(isinstance(message, SystemMessage) for message in history) == 1


async def test_the_messages_of_a_request_are_a_view_that_never_changes(stage, autojump_clock):
    """What a provider was handed is read-only, and what comes later does not show in it."""
    handed = []

    class Keeping(StrictProvider):
        def chat(self, request):
            handed.append(request.messages)
            return super().chat(request)

    stage.provider = Keeping([calls("write"), say("done")])
    stage.tool("write")
    async with stage.session() as session:
        await (await session.send_message("go")).result()

    assert [len(messages) for messages in handed] == [1, 3]
    assert not hasattr(handed[0], "append")
    with pytest.raises(TypeError):
        handed[0][0] = None

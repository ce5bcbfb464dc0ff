"""Every row of the error list: how it comes about, what it says, and that the agent works afterwards (semantics 3).

A case brings a running agent into the error and hands back the errors that the host saw. Cases of building have no
agent yet: there the builder that is put right builds one.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import pytest
import trio
from youyou import (
    Abort,
    Agent,
    AgentBuilder,
    AgentConfig,
    AgentError,
    BeforeToolUse,
    Done,
    ErrorCode,
    ErrorEvent,
    ErrorSource,
    ImageBlock,
    Memory,
    ProviderError,
    RetryPolicy,
    Session,
    SessionConfig,
    SessionStart,
    SkillDefinition,
    ToolCallEnd,
    TurnComplete,
    UserInput,
)
from youyou.messages.codec import from_json, to_json
from youyou.messages.errors import TABLE
from youyou.testing.agents.scripted import SCRIPTED_MODEL, StrictProvider, call, calls, say
from youyou.testing.agents.stores import InMemoryMemoryStorage, InMemorySessionStorage


def without_addresses(value: object) -> str:
    """An id that is the same in every process."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


# What to do, or, where others failed, who and how: in the message of each.
ADVICE = {
    ErrorCode.NO_MODEL_PROVIDER: "register_model_provider",
    ErrorCode.NAME_CONFLICT: "rename one",
    ErrorCode.SKILL_DEPENDENCY_NOT_MET: "register",
    ErrorCode.PLUGIN_INIT_FAILED: "plugin audit: initialize raised ValueError: no disk",
    ErrorCode.STORAGE_DUPLICATE: "one",
    ErrorCode.INVALID_DEFAULT_MODEL: "scripted",
    ErrorCode.INVALID_CONFIG: "pass ",
    ErrorCode.PROFILE_NOT_FOUND: "profile",
    ErrorCode.SESSION_BUSY: "close it (await session.close())",
    ErrorCode.TURN_BUSY: "wait for turn.result(), cancel it, or send with queue=True",
    ErrorCode.SESSION_NOT_FOUND: "the session storage has none",
    ErrorCode.SESSION_TAKEN: "resume the session to go on with what is stored",
    ErrorCode.SESSION_CLOSED: "open a new one with agent.new_session()",
    ErrorCode.AGENT_CLOSED: "build and enter a new one",
    ErrorCode.AGENT_CRASHED: "please report it",
    ErrorCode.INVALID_INPUT: "",
    ErrorCode.CONTENT_NOT_SUPPORTED: "use a model with vision",
    ErrorCode.SKILL_NOT_FOUND: "registered: none",
    ErrorCode.MODEL_NOT_SUPPORTED: "the models are: scripted",
    ErrorCode.HOOK_ABORTED: "refused in a test",
    ErrorCode.PLUGIN_ERROR: "raised ValueError: broken",
    ErrorCode.WOULD_DEADLOCK: "wait in a task of the host",
    ErrorCode.WRONG_TRIO_RUN: "trio.from_thread.run(...)",
    ErrorCode.REQUEST_CANCELLED: "send the message again",
    ErrorCode.PROVIDER_ERROR: "provider 'scripted' raised ConnectionResetError: gone",
    ErrorCode.PROVIDER_TIMEOUT: "try again or raise the limit",
    ErrorCode.STREAM_INTERRUPTED: "yield Done at the end",
    ErrorCode.CONTEXT_LENGTH_EXCEEDED: "make it shorter",
    ErrorCode.EMPTY_RESPONSE: "ask differently",
    ErrorCode.INVALID_OUTPUT: "ask for less, or raise max_output_repairs",
    ErrorCode.COMPACT_ERROR: "short",
    ErrorCode.TOOL_EXECUTION_ERROR: "tool 'write' raised ValueError: broken",
    ErrorCode.TOOL_TIMEOUT: "raise its timeout_ms",
    ErrorCode.TOOL_NOT_FOUND: "the available tools are: none",
    ErrorCode.INVALID_TOOL_ARGUMENTS: "x",
    ErrorCode.MAX_TOOL_CALLS_EXCEEDED: "tool calls",
    ErrorCode.STORAGE_ERROR: "see what the storage says",
    ErrorCode.MEMORY_ERROR: "the turn goes on without",
}


# building


@attrs.frozen
class Building:
    """What is registered beside the first provider, in order."""

    parts: tuple[tuple[str, Any], ...] = ()
    config: AgentConfig = attrs.Factory(lambda: AgentConfig("scripted"))
    provider: bool = True

    def builder(self, stage) -> Any:
        builder: Any = AgentBuilder(self.config)
        if self.provider:
            builder.register_model_provider(stage.provider)
        for kind, part in self.parts:
            getattr(builder, f"register_{kind}")(part)
        return builder


@attrs.define
class Handler:
    name: str = "write"
    description: str = "Writes."
    parameters: Any = attrs.Factory(lambda: {"type": "object"})
    mutating: bool = False

    async def execute(self, input):
        raise AssertionError("never called")


@attrs.define
class Plugin:
    id: str = "audit"
    display_name: str = "Audit"
    description: str = "Audits."
    breaks: bool = False

    async def initialize(self, config):
        if self.breaks:
            raise ValueError("no disk")

    def apply(self, ctx): ...

    async def shutdown(self): ...


COMMIT = SkillDefinition("commit", "Commit", "Commits.", "Commit.", required_tools=("git",))
BUILDING = {
    ErrorCode.NO_MODEL_PROVIDER: Building(provider=False),
    ErrorCode.NAME_CONFLICT: Building((("tool", Handler()), ("tool", Handler()))),
    ErrorCode.SKILL_DEPENDENCY_NOT_MET: Building((("skill", COMMIT),)),
    ErrorCode.PLUGIN_INIT_FAILED: Building((("plugin", Plugin(breaks=True)),)),
    ErrorCode.STORAGE_DUPLICATE: Building(
        (("session_storage", InMemorySessionStorage()), ("session_storage", InMemorySessionStorage()))
    ),
    ErrorCode.INVALID_DEFAULT_MODEL: Building(config=AgentConfig("gpt-99")),
    ErrorCode.INVALID_CONFIG: Building(config=AgentConfig("scripted", compact_threshold=2.0)),
}


@pytest.mark.parametrize("code", BUILDING, ids=str)
async def test_building_says_what_is_wrong(code, stage, autojump_clock):
    """The error is raised by ``build()`` or by entering, and a builder put right builds a working agent."""
    with pytest.raises(AgentError) as caught:
        async with BUILDING[code].builder(stage).build():
            pass

    check(caught.value, code)
    stage.says(say("works"))
    async with Building().builder(stage).build() as agent:
        await works(agent)


# using


Case = Callable[[Any, Agent, Session], Awaitable[list[AgentError]]]
CASES: dict[ErrorCode, tuple[Case, Callable[[Any], object]]] = {}


def case(code: ErrorCode, prepare: Callable[[Any], object] = lambda stage: None) -> Callable[[Case], Case]:
    """This is how the error of ``code`` comes about; ``prepare`` comes before the agent is built."""

    def register(does: Case) -> Case:
        CASES[code] = (does, prepare)
        return does

    return register


async def raised_by(call: Callable[[], Awaitable[object]]) -> list[AgentError]:
    with pytest.raises(AgentError) as caught:
        await call()
    return [caught.value]


async def of_turn(session: Session, text: Any = "go", **options: Any) -> list[AgentError]:
    """All errors that a turn's events and result tell of."""
    turn = await session.send_message(text, **options)
    payloads = [event.payload async for event in turn]
    events = [p.error for p in payloads if isinstance(p, ErrorEvent | ToolCallEnd | TurnComplete) and p.error]
    result = await turn.result()
    return [*events, *([result.error] if result.error else [])]


async def works(agent: Agent, session: Session | None = None) -> None:
    """The last of the model's words still reach the user."""
    if session is None:
        async with await agent.new_session() as fresh:
            await works(agent, fresh)
        return
    result = await (await session.send_message("are you there?")).result()
    assert (result.text, result.error) == ("works", None)


def check(error: AgentError, code: ErrorCode) -> None:
    """It has its class, source and retryability, says something to do, and survives JSON."""
    source, retryable = TABLE.get(code, (ErrorSource.AGENT, False))
    assert error.code is code
    assert type(error) is AgentError.by_code[code]
    assert (error.source, error.retryable) == (source, retryable)
    assert str(error) == f"[{code}] {error.message}"
    assert ADVICE[code] in error.message
    assert from_json(AgentError, to_json(error)) == error


@case(ErrorCode.SESSION_BUSY)
async def session_busy(stage, agent, session):
    return await raised_by(agent.new_session)


@case(ErrorCode.TURN_BUSY, lambda c: c.says([1.0, *say("slow")]))
async def turn_busy(stage, agent, session):
    turn = await session.send_message("go")
    errors = await raised_by(lambda: session.send_message("me too"))
    await turn.result()
    return errors


@case(ErrorCode.SESSION_NOT_FOUND)
async def session_not_found(stage, agent, session):
    await session.close()
    return await raised_by(lambda: agent.resume_session("nobody"))


@case(ErrorCode.SESSION_CLOSED)
async def session_closed(stage, agent, session):
    await session.close()
    errors = []
    for use in (lambda: session.send_message("go"), lambda: session.set_title("t"), session.continue_pipeline):
        errors += await raised_by(use)
    return errors


@case(ErrorCode.INVALID_INPUT)
async def invalid_input(stage, agent, session):
    turn_less = [lambda: session.send_message(""), lambda: session.send_message(5), session.continue_pipeline]
    graces = [lambda: session.close(grace="soon"), lambda: agent.shutdown(grace=float("nan"))]
    errors = []
    for use in (*turn_less, *graces, lambda: session.set_title(" ")):
        errors += await raised_by(use)
    return errors


@case(ErrorCode.CONTENT_NOT_SUPPORTED, lambda c: blind(c))
async def content_not_supported(stage, agent, session):
    return await raised_by(lambda: session.send_message([ImageBlock("iVBORw0KGgoAAAAA", "image/png")]))


def blind(stage):
    capabilities = attrs.evolve(SCRIPTED_MODEL.capabilities, vision=False)
    stage.provider = StrictProvider([], models=[attrs.evolve(SCRIPTED_MODEL, capabilities=capabilities)])


@case(ErrorCode.SKILL_NOT_FOUND)
async def skill_not_found(stage, agent, session):
    return await raised_by(lambda: session.send_message(UserInput("go", skills=("comit",))))


@case(ErrorCode.MODEL_NOT_SUPPORTED)
async def model_not_supported(stage, agent, session):
    await session.close()
    return await raised_by(lambda: agent.new_session(SessionConfig(model_id="gpt-99")))


@case(ErrorCode.PROFILE_NOT_FOUND)
async def profile_not_found(stage, agent, session):
    await session.close()
    errors = []
    for config in (SessionConfig(skill="writer"), SessionConfig(domain="writer")):
        errors += await raised_by(lambda config=config: agent.new_session(config))
    return errors


@case(ErrorCode.HOOK_ABORTED, lambda c: c.on(BeforeToolUse, refuse) or c.tool("write"))
async def hook_aborted(stage, agent, session):
    stage.says(calls("write"), say("done"))
    return await of_turn(session)


async def refuse(_):
    return Abort("refused in a test")


@case(ErrorCode.PLUGIN_ERROR, lambda c: c.on(SessionStart, Breaking(2)))
async def plugin_error(stage, agent, session):
    await session.close()
    return await raised_by(agent.new_session)


@attrs.define
class Breaking:
    """A hook that raises at its n-th call."""

    at: int
    calls: int = 0

    async def __call__(self, _):
        self.calls += 1
        if self.calls == self.at:
            raise ValueError("broken")


@case(ErrorCode.WOULD_DEADLOCK, lambda c: c.tool("write"))
async def would_deadlock(stage, agent, session):
    refused = []

    async def waits_for_itself(_):
        for wait in (session.close, agent.shutdown, turn.result):
            refused.extend(await raised_by(wait))

    stage.tools["write"].does = waits_for_itself
    stage.says(calls("write"), say("done"))
    turn = await session.send_message("go")
    await turn.result()
    return refused


@case(ErrorCode.WRONG_TRIO_RUN)
async def wrong_trio_run(stage, agent, session):
    errors = []

    def in_a_thread():
        for use in (agent.statistics, agent.tree):
            with pytest.raises(AgentError) as caught:
                use()
            errors.append(caught.value)

    thread = threading.Thread(target=in_a_thread)
    thread.start()
    thread.join()
    return errors


@case(ErrorCode.REQUEST_CANCELLED, lambda c: c.says([5.0, *say("late")]))
async def request_cancelled(stage, agent, session):
    turn = await session.send_message("go")
    await trio.sleep(1)
    turn.cancel()
    return [(await turn.result()).error]


@case(ErrorCode.PROVIDER_ERROR, lambda c: c.says([ConnectionResetError("gone")]))
async def provider_error(stage, agent, session):
    return await of_turn(session)


@case(ErrorCode.PROVIDER_TIMEOUT, lambda c: c.says([10_000.0]))
async def provider_timeout(stage, agent, session):
    return await of_turn(session)


@case(ErrorCode.STREAM_INTERRUPTED, lambda c: c.says([]))
async def stream_interrupted(stage, agent, session):
    return await of_turn(session)


@case(ErrorCode.EMPTY_RESPONSE, lambda c: c.says([Done()], [Done()]))
async def empty_response(stage, agent, session):
    return await of_turn(session)


@case(ErrorCode.INVALID_OUTPUT, lambda c: c.says(*[say("hello")] * 3))
async def invalid_output(stage, agent, session):
    return await of_turn(session, output={"type": "object"})


@case(ErrorCode.CONTEXT_LENGTH_EXCEEDED, lambda c: c.says(*[[too_long()]] * 9))
async def context_length_exceeded(stage, agent, session):
    errors = await of_turn(session)
    stage.provider._rounds.clear()
    return errors


def too_long():
    return AgentError.of(ErrorCode.CONTEXT_LENGTH_EXCEEDED, "the request has 9000 tokens, make it shorter")


@case(ErrorCode.COMPACT_ERROR, lambda c: crowded(c))
async def compact_error(stage, agent, session):
    await session.close()
    async with await agent.new_session(SessionConfig(system_prompt_override="word " * 400)) as crowded_session:
        return await of_turn(crowded_session)


def crowded(stage):
    stage.provider = StrictProvider([], models=[attrs.evolve(SCRIPTED_MODEL, context_window=300)])


@case(ErrorCode.TOOL_EXECUTION_ERROR, lambda c: c.tool("write", does=Breaking(1)))
async def tool_execution_error(stage, agent, session):
    stage.says(calls("write"), say("done"))
    return await of_turn(session)


@case(ErrorCode.TOOL_TIMEOUT, lambda c: c.tool("write", takes=9.0, timeout_ms=1_000))
async def tool_timeout(stage, agent, session):
    stage.says(calls("write"), say("done"))
    return await of_turn(session)


@case(ErrorCode.TOOL_NOT_FOUND)
async def tool_not_found(stage, agent, session):
    stage.says(calls("unknown"), say("done"))
    return await of_turn(session)


@case(ErrorCode.INVALID_TOOL_ARGUMENTS, lambda c: c.tool("write", parameters={"type": "object", "required": ["x"]}))
async def invalid_tool_arguments(stage, agent, session):
    stage.says(calls(call("write", {"y": 1})), say("done"))
    return await of_turn(session)


@case(ErrorCode.MAX_TOOL_CALLS_EXCEEDED, lambda c: c.configure(max_tool_calls_per_turn=1) or c.tool("write"))
async def max_tool_calls_exceeded(stage, agent, session):
    stage.says(calls(call("write", id="a"), call("write", id="b")))
    return await of_turn(session)


class Failing(InMemorySessionStorage):
    """Fails while it is told to."""

    broken = False

    async def save_events(self, session_id, events):
        if self.broken:
            raise OSError("disk full")
        await super().save_events(session_id, events)


@case(ErrorCode.STORAGE_ERROR, lambda c: setattr(c, "store", Failing()))
async def storage_error(stage, agent, session):
    stage.says(say("unheard"))
    stage.store.broken = True
    errors = await of_turn(session)
    stage.store.broken = False
    stage.provider._rounds.clear()
    return errors


class Forgetful(InMemoryMemoryStorage):
    """Fails at its first search."""

    searches = 0

    async def search(self, namespace, query, limit):
        self.searches += 1
        if self.searches == 1:
            raise OSError("index damaged")
        return [Memory("m1", namespace, "tea")][:limit]


@case(ErrorCode.MEMORY_ERROR, lambda c: setattr(c, "memories", Forgetful()))
async def memory_error(stage, agent, session):
    stage.says(say("fine"))
    return await of_turn(session)


@pytest.mark.parametrize("code", CASES, ids=str)
async def test_each_error_comes_about_and_the_agent_works_afterwards(code, stage, autojump_clock):
    """The host sees exactly this code, with a message that says what to do; the next message is answered."""
    does, prepare = CASES[code]
    stage.configure(retry=RetryPolicy(attempts=1))
    prepare(stage)
    async with stage.agent() as agent:
        session = await agent.new_session()
        errors = await does(stage, agent, session)
        assert {error.code for error in errors} == {code}
        for error in errors:
            check(error, code)
        stage.says(say("works"), say("[]"))
        if session._closed:
            await works(agent)
        else:
            await works(agent, session)
            await session.close()


async def test_a_closed_agent_says_so(stage, autojump_clock):
    """AGENT_CLOSED: every use of what belonged to it, from then on; another agent of the same builder works."""
    stage.says(say("works"))
    builder = stage.builder()
    async with builder.build() as agent:
        session = await agent.new_session()
        turn_of = session.send_message
        await agent.shutdown()
        errors = []
        for use in (agent.new_session, lambda: agent.resume_session(session.id), lambda: turn_of("go")):
            errors += await raised_by(use)
        await agent.shutdown()
        await session.close()

    for error in errors:
        check(error, ErrorCode.AGENT_CLOSED)
    async with builder.build() as another:
        await works(another)


async def test_a_crash_says_so(stage, autojump_clock, monkeypatch):
    """AGENT_CRASHED: a bug of the runtime ends the agent with the bug as its cause; another agent works."""
    from youyou.actors.turn.agent_loop import AgentLoop

    def bug(self, *_):
        raise ZeroDivisionError("a bug")

    builder = stage.builder()
    stage.loses_log = True
    with monkeypatch.context() as patch:
        patch.setattr(AgentLoop, "_deliver_steering", bug)
        with pytest.raises(AgentError) as caught:
            async with builder.build() as agent:
                session = await agent.new_session()
                await (await session.send_message("go")).result()
                await trio.sleep(1)

    check(caught.value, ErrorCode.AGENT_CRASHED)
    stage.says(say("works"))
    async with builder.build() as another:
        await works(another)


def test_every_code_has_its_row():
    """No code of the list is left out of this page."""
    # What ends the session, the agent or its process has tests of its own.
    elsewhere = {ErrorCode.AGENT_CLOSED, ErrorCode.AGENT_CRASHED, ErrorCode.SESSION_TAKEN, ErrorCode.HOST_LOST}
    assert {*BUILDING, *CASES, *elsewhere} == set(ErrorCode)


async def test_retryable_is_a_matter_of_the_single_provider_error(stage, autojump_clock):
    """PROVIDER_ERROR carries what its provider said of it."""
    stage.configure(retry=RetryPolicy(attempts=1))
    stage.says([ProviderError("bad key", retryable=False)], [ProviderError("busy", retryable=True)])
    async with stage.session() as session:
        errors = [(await of_turn(session))[-1] for _ in range(2)]

    assert [error.retryable for error in errors] == [False, True]


@pytest.mark.parametrize(
    "config",
    [
        "gpt-5",
        SessionConfig(model_id=5),
        SessionConfig(temperature="hot"),
        SessionConfig(max_tokens=0),
        SessionConfig(environment={"os": "linux"}),
        SessionConfig(metadata={"when": object()}),
        SessionConfig(metadata={"number": float("nan")}),
        SessionConfig(response_schema={1: {2, 3}}),
    ],
    ids=without_addresses,
)
async def test_a_wrong_session_configuration_is_refused(config, stage, autojump_clock):
    """INVALID_CONFIG at `new_session`, before anything is stored or any hook has run; the agent works afterwards."""
    stage.on(SessionStart)
    stage.says(say("works"))
    async with stage.agent() as agent:
        (error,) = await raised_by(lambda: agent.new_session(config))
        check(error, ErrorCode.INVALID_CONFIG)
        assert stage.log == []
        await works(agent)

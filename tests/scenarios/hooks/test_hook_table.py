"""The hook table: seven hooks by six ways to answer, each cell a test (semantics 6.4). Its page is docs/hooks.md.

One conversation in which all seven hooks fire is told again and again; one handler answers in the way of its column,
and a second handler of the same hook comes after it. A cell says in what the story differs from the ordinary one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import youyou
from youyou import (
    Abort,
    AfterToolUse,
    Agent,
    AgentError,
    BeforeCompact,
    BeforeToolUse,
    ContextCompacted,
    Continue,
    ContinueWith,
    ErrorCode,
    ErrorEvent,
    RunningTurn,
    Session,
    SessionEnd,
    SessionStart,
    ToolResult,
    TurnEnd,
    TurnStart,
    TurnStatus,
)
from youyou.messages.content import text_of
from youyou.testing.agents.scripted import SCRIPTED_MODEL, StrictProvider, call, calls, say

HOOKS = (SessionStart, TurnStart, BeforeToolUse, BeforeCompact, AfterToolUse, TurnEnd, SessionEnd)
SKIPPED = "skipped: [Cancelled: this tool was not run]"
Answer = Callable[[Any], Awaitable[Any]]


@attrs.frozen
class Story:
    """What a host sees of a stage. The defaults are the ordinary one."""

    opening: str = "opened"
    """Or how `new_session` failed."""
    status: TurnStatus | None = TurnStatus.COMPLETED
    error: ErrorCode | None = None
    """Of the turn's result."""
    reported: tuple[ErrorCode, ...] = ()
    """What stood in the turn's error events."""
    input_stored: bool = True
    sections: tuple[str, ...] = ()
    """Dynamic sections that reached the model."""
    compacted: bool = True
    runs: tuple[dict[str, int], ...] = ({"x": 1},)
    """The arguments with which the tool ran."""
    result: str = "ok: write done"
    """What the model was told of its call."""
    later: int = 1
    """How often the handler that comes after was called."""
    seconds: float = 0.0
    """From the stop to the end of what was stopped."""


ORDINARY = Story()
NOT_OPENED = Story("", None, input_stored=False, compacted=False, runs=(), result="", later=0)
NO_ROUND = attrs.evolve(ORDINARY, compacted=False, runs=(), result="", later=0)
CANCELLED = attrs.evolve(ORDINARY, status=TurnStatus.CANCELLED, error=ErrorCode.REQUEST_CANCELLED)


class Obliging(StrictProvider):
    """A model whose first answer is long, so that the second turn compacts; there it calls the tool once."""

    def chat(self, request: Any) -> Any:
        self._rounds.append(self._answer(request))
        return super().chat(request)

    def _answer(self, request: Any) -> Any:
        last = request.messages[-1]
        if not request.tools:
            return say("a summary")
        if isinstance(last, ToolResult):
            return say("done")
        return say("x" * 900) if text_of(last.content) == "first" else calls(call("write", {"x": 1}))


@attrs.define(eq=False)
class Teller:
    """Tells the story once, with ``answer`` in the place of the handler of ``hook``."""

    stage: Any
    hook: type[Any]
    answer: Answer
    armed: bool = False
    later: int = 0
    begun: trio.Event = attrs.Factory(trio.Event)

    async def first(self, event: Any) -> Any:
        if not self.armed:
            return None
        self.begun.set()
        return await self.answer(event)

    async def second(self, _: Any) -> None:
        self.later += self.armed

    def resolve_setup(self) -> None:
        window = attrs.evolve(SCRIPTED_MODEL, context_window=300)
        self.stage.provider = Obliging([], models=[window])
        self.stage.configure(hook_timeout_ms=7_000)
        self.stage.tool("write")
        self.stage.on(self.hook, self.first)
        self.stage.on(self.hook, self.second)

    async def tell(self, stop: Callable[[Agent, Session | None, RunningTurn | None], Any] | None = None) -> Story:
        """The story; ``stop`` is called one second after the handler began."""
        self.resolve_setup()
        async with self.stage.agent() as agent:
            if self.hook is SessionStart:
                return await self._open(agent, stop)
            session = await agent.new_session()
            await (await session.send_message("first")).result()
            self.armed = True
            return await self._second_turn(agent, session, stop)

    async def _open(self, agent: Agent, stop: Any) -> Story:
        self.armed = True
        opening, started = "cancelled", trio.current_time()
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                if stop is not None:
                    nursery.start_soon(self._stop_opening, agent, stop, scope)
                    started += 1
                opening, session = await self._try_to_open(agent)
        seconds = trio.current_time() - started
        if opening != "opened":
            return attrs.evolve(NOT_OPENED, opening=opening, later=self.later, seconds=seconds)
        await (await session.send_message("first")).result()
        return await self._second_turn(agent, session, None)

    async def _stop_opening(self, agent: Agent, stop: Any, scope: trio.CancelScope) -> None:
        await trio.sleep(1)
        await stop(agent, scope)

    async def _try_to_open(self, agent: Agent) -> tuple[str, Any]:
        try:
            return "opened", await agent.new_session()
        except AgentError as error:
            return error.code, None

    async def _second_turn(self, agent: Agent, session: Session, stop: Any) -> Story:
        turn = await session.send_message("second")
        stopped = trio.current_time()
        if stop is not None and self.hook is not SessionEnd:
            await self.begun.wait()
            await trio.sleep(1)
            stopped = trio.current_time()
            await stop(agent, turn)
        events = await self.stage.events(turn)
        seconds = trio.current_time() - stopped
        if self.hook is SessionEnd:
            seconds = await self._close(session)
        else:
            await session.close()
        return await self._story(session, turn, events, seconds)

    async def _close(self, session: Session) -> float:
        closed = trio.current_time()
        await session.close()
        return trio.current_time() - closed

    async def _story(self, session: Session, turn: RunningTurn, events: list[Any], seconds: float) -> Story:
        result = await turn.result()
        (answer,) = [m for m in session.history if isinstance(m, ToolResult)] or [None]
        sections = self.stage.provider.requests[-1].system.dynamic
        return Story(
            "opened",
            result.status,
            result.error.code if result.error else None,
            tuple(event.error.code for event in events if isinstance(event, ErrorEvent)),
            "user: second" in self.stage.stored(),
            tuple(line for line in sections.splitlines() if line.startswith("be ")),
            any(isinstance(event, ContextCompacted) for event in events),
            tuple(self.stage.tools["write"].runs),
            f"{answer.outcome}: {answer.content}" if answer else "",
            self.later,
            seconds,
        )


def by_hook(**cells: Story) -> Any:
    """A test for each hook, named by it."""
    assert set(cells) == {hook.__name__ for hook in HOOKS}
    return pytest.mark.parametrize(
        ("hook", "expected"), [pytest.param(getattr(youyou, name), story, id=name) for name, story in cells.items()]
    )


every_hook = pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook.__name__)


@pytest.mark.parametrize("answer", [None, Continue()], ids=["None", "Continue"])
@every_hook
async def test_continue(hook, answer, stage, autojump_clock):
    """Continue, or None: all goes on as if nobody had listened."""

    async def goes_on(_):
        return answer

    assert await Teller(stage, hook, goes_on).tell() == ORDINARY


@by_hook(
    SessionStart=ORDINARY,
    TurnStart=attrs.evolve(ORDINARY, sections=("be kind",)),
    BeforeToolUse=attrs.evolve(ORDINARY, runs=({"x": 2},)),
    BeforeCompact=ORDINARY,
    AfterToolUse=ORDINARY,
    TurnEnd=ORDINARY,
    SessionEnd=ORDINARY,
)
async def test_continue_with(hook, expected, stage, autojump_clock):
    """ContinueWith changes the one field that may change, where there is one."""
    changes = {TurnStart: {"dynamic_sections": ("be kind",)}, BeforeToolUse: {"arguments": {"x": 2}}}

    async def changes_what_it_may(event):
        return ContinueWith(attrs.evolve(event, **changes.get(hook, {})))

    assert await Teller(stage, hook, changes_what_it_may).tell() == expected


@by_hook(
    SessionStart=attrs.evolve(NOT_OPENED, opening=ErrorCode.HOOK_ABORTED),
    TurnStart=attrs.evolve(
        NO_ROUND,
        status=TurnStatus.FAILED,
        error=ErrorCode.HOOK_ABORTED,
        reported=(ErrorCode.HOOK_ABORTED,),
        input_stored=False,
    ),
    BeforeToolUse=attrs.evolve(ORDINARY, runs=(), result="failed: Tool aborted by hook: no", later=0),
    BeforeCompact=attrs.evolve(ORDINARY, compacted=False, later=0),
    AfterToolUse=attrs.evolve(ORDINARY, later=0),
    TurnEnd=attrs.evolve(ORDINARY, later=0),
    SessionEnd=attrs.evolve(ORDINARY, later=0),
)
async def test_abort(hook, expected, stage, autojump_clock):
    """Abort keeps what comes next from happening; of an after-hook, only the later handlers."""

    async def refuses(_):
        return Abort("no")

    assert await Teller(stage, hook, refuses).tell() == expected


RAISED = {
    "SessionStart": attrs.evolve(NOT_OPENED, opening=ErrorCode.PLUGIN_ERROR),
    "TurnStart": attrs.evolve(
        NO_ROUND,
        status=TurnStatus.FAILED,
        error=ErrorCode.HOOK_ABORTED,
        reported=(ErrorCode.PLUGIN_ERROR, ErrorCode.HOOK_ABORTED),
        input_stored=False,
    ),
    "BeforeToolUse": attrs.evolve(ORDINARY, runs=(), result="failed: Tool aborted by hook: ", later=0),
    # Asked before each of the two requests, because history stays too long.
    "BeforeCompact": attrs.evolve(ORDINARY, compacted=False, reported=(ErrorCode.PLUGIN_ERROR,) * 2, later=0),
    "AfterToolUse": attrs.evolve(ORDINARY, reported=(ErrorCode.PLUGIN_ERROR,)),
    "TurnEnd": attrs.evolve(ORDINARY, reported=(ErrorCode.PLUGIN_ERROR,)),
    "SessionEnd": ORDINARY,
}


def without_reason(story: Story) -> Story:
    """``story`` without what the plugin said."""
    head, _, _ = story.result.partition("plugin 'hook0' in ")
    return attrs.evolve(story, result=head)


@by_hook(**RAISED)
async def test_raises(hook, expected, stage, autojump_clock, caplog):
    """A before-hook that raises fails closed; an after-hook is isolated: logged, reported, and the later ones run."""

    async def breaks(_):
        raise ValueError("broken plugin")

    assert without_reason(await Teller(stage, hook, breaks).tell()) == expected
    assert f"plugin 'hook0' in {hook.__name__}: raised ValueError: broken plugin" in caplog.text


@by_hook(**RAISED)
async def test_changing_what_may_not_change_counts_as_raising(hook, expected, stage, autojump_clock):
    """ContinueWith that changes any other field is PLUGIN_ERROR, with the outcome of a handler that raises."""

    async def meddles(event):
        return ContinueWith(attrs.evolve(event, session_id="another"))

    assert without_reason(await Teller(stage, hook, meddles).tell()) == expected


@by_hook(**RAISED)
async def test_any_other_answer_counts_as_raising(hook, expected, stage, autojump_clock):
    """An answer that is not a hook result is PLUGIN_ERROR, with the outcome of a handler that raises."""

    async def mumbles(_):
        return "no"

    assert without_reason(await Teller(stage, hook, mumbles).tell()) == expected


@by_hook(
    SessionStart=attrs.evolve(NOT_OPENED, opening=ErrorCode.PLUGIN_ERROR, seconds=7.0),
    TurnStart=attrs.evolve(CANCELLED, compacted=False, runs=(), result="", later=0, seconds=7.0),
    BeforeToolUse=attrs.evolve(CANCELLED, runs=(), result=SKIPPED, later=0, seconds=7.0),
    BeforeCompact=attrs.evolve(
        CANCELLED, compacted=False, reported=(ErrorCode.PLUGIN_ERROR,), runs=(), result="", later=0, seconds=7.0
    ),
    AfterToolUse=attrs.evolve(CANCELLED, reported=(ErrorCode.PLUGIN_ERROR,), seconds=7.0),
    TurnEnd=attrs.evolve(ORDINARY, reported=(ErrorCode.PLUGIN_ERROR,), seconds=7.0),
    SessionEnd=attrs.evolve(ORDINARY, seconds=7.0),
)
async def test_hangs_until_a_stop(hook, expected, stage, autojump_clock):
    """A handler that never ends is cut ``hook_timeout_ms`` after the stop: a before-hook counts as Abort."""

    async def hangs(_):
        await trio.sleep_forever()

    async def stop(agent, turn):
        if hook is SessionStart:
            await agent.shutdown()
        else:
            turn.cancel()

    assert await Teller(stage, hook, hangs).tell(stop) == expected


@by_hook(
    SessionStart=attrs.evolve(NOT_OPENED, opening="cancelled"),
    TurnStart=attrs.evolve(CANCELLED, compacted=False, runs=(), result="", later=0, seconds=1.0),
    BeforeToolUse=attrs.evolve(CANCELLED, runs=(), result=SKIPPED, later=0, seconds=1.0),
    BeforeCompact=attrs.evolve(CANCELLED, compacted=False, runs=(), result="", later=0, seconds=1.0),
    AfterToolUse=attrs.evolve(CANCELLED, seconds=1.0),
    TurnEnd=attrs.evolve(ORDINARY, seconds=1.0),
    SessionEnd=attrs.evolve(ORDINARY, seconds=2.0),
)
async def test_turn_cancelled(hook, expected, stage, autojump_clock):
    """Cancelled while a handler runs: it finishes. (A cancelled `new_session` cuts its hook and leaves nothing.)"""

    async def takes_2(_):
        await trio.sleep(2)

    async def stop(_, what):
        what.cancel()

    assert await Teller(stage, hook, takes_2).tell(stop) == expected


async def test_a_cancelled_turn_is_over_before_the_session_end_hook(stage, autojump_clock):
    """Closed during a turn: the turn is cancelled and its tool finishes, then SessionEnd hooks run to their end."""
    stage.tool("write", takes=2.0)
    stage.says(calls("write"))

    async def takes_2(_):
        stage.log.append(turn.status)
        await trio.sleep(2)

    stage.on(SessionEnd, takes_2)
    async with stage.agent() as agent:
        session = await agent.new_session()
        turn = await session.send_message("go")
        await trio.sleep(1)
        with stage.takes(3):
            await session.close()

    assert stage.log == ["SessionEnd begins", TurnStatus.CANCELLED, "SessionEnd ended"]
    assert (await turn.result()).skipped == ()


def test_the_page_names_the_test_of_each_cell():
    """docs/hooks.md has a row for each hook and names the test of each of its cells."""
    page = (Path(__file__).parents[3] / "docs" / "hooks.md").read_text()
    columns = ["continue", "continue_with", "abort", "raises", "hangs_until_a_stop", "turn_cancelled"]
    cells = [f"test_{column}[{hook.__name__}" for column in columns for hook in HOOKS]
    assert [cell for cell in cells if f"`{cell}]`" not in page and f"`{cell}-None]`" not in page] == []

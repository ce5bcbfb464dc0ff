"""``youyou demo``: the main job, held by itself. What it says and when it cancels is in ``demo_plan``.

Prints every event as it comes, opens the session a second time with a new agent, and in the end checks what a reader
of the README is promised. Exit code 1 if one of the checks fails.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path

import attrs
import trio

from ...actors.handles.agent_handle import Agent
from ...actors.handles.running_turn import RunningTurn
from ...actors.handles.session_handle import Session
from ...adapters.extras import import_extra
from ...core.history.sendability import sendability_problem
from ...core.tools.declaration import Tool
from ...messages.chat import TextDelta
from ...messages.errors import InvalidConfig, ProviderError
from ...messages.events import AgentEvent, AgentEventPayload, TurnResult
from ...messages.history import Message
from ..agent.assembly import agent_builder
from ..agent.model_choice import provider_for
from ..agent.sample_tools import sample_tools
from ..agent.stored_sessions import open_storage
from ..base import wording
from ..base.exits import ERROR, OK, require
from ..base.output import Output
from ..base.signals import Stops
from .checks import Check, Seen, checks
from .kit import kit_checks
from .plan import AFTER_RESUME, TURNS, LineByLine, PlannedTurn


async def demo(model: str, db: str | None, stops: Stops) -> int:
    """Hold the conversation; the command's exit code."""
    out = Output(stops)
    started = trio.current_time()
    require("apsw", "demo")
    model = await _model_that_runs(model, out)
    with tempfile.TemporaryDirectory(prefix="youyou-demo-", ignore_cleanup_errors=True) as folder:
        path = db if db is not None else str(Path(folder) / "sessions.db")
        found = await _Demo(out, model, path, sample_tools()).hold()
    ok = all(check.ok for check in found)
    await out.write("\nchecked\n" + "".join(f"  {check}\n" for check in found))
    await out.write("\nand at any other moment? the test kit holds it again and again, in virtual time\n")
    for check in kit_checks():
        ok = ok and check.ok
        await out.write(f"  {check}\n")
    spent = wording.seconds((trio.current_time() - started) * 1000)
    await out.write(f"\n{'all of it held' if ok else 'something did not hold'}, in {spent}\n")
    return OK if ok else ERROR


async def _model_that_runs(model: str, out: Output) -> str:
    """``model``, with its weights fetched; "scripted" where the small model cannot run, with the reason in one line."""
    if model != "local":
        return model
    try:
        import_extra("xllamacpp", "demo")
        await _have_weights(out)
    except (InvalidConfig, ProviderError) as error:
        await out.write(f"the small model cannot run here, a scripted one takes its place: {error.message}\n")
        return "scripted"
    return model


async def _have_weights(out: Output) -> None:
    from ...adapters.local.weights import fetch_weights, find_weights

    try:
        await trio.to_thread.run_sync(find_weights, abandon_on_cancel=True)
    except InvalidConfig:
        await out.write("the weights of the local model are not here yet; fetching them now (about 93 MB, once) ...\n")
        where = await trio.to_thread.run_sync(fetch_weights, abandon_on_cancel=True)
        await out.write(f"they are in {where}\n")


@attrs.define(eq=False)
class _Demo:
    """One run of the plan. What is checked in the end is collected in ``seen``."""

    out: Output
    model: str
    db: str
    tools: list[Tool]
    seen: Seen = attrs.Factory(Seen)
    _in_text: bool = False

    async def hold(self) -> list[Check]:
        """The whole of it."""
        kept = "" if self.db.startswith(tempfile.gettempdir()) else f" in {self.db}"
        await self.out.write(f"model {self.model}, sessions in SQLite{kept}\n")
        if self.model == "local":
            await self.out.write(
                "it has 135 million parameters: it chats and chooses tools; results are read out as they came\n"
            )
        async with self._agent() as agent, await agent.new_session() as session:
            await self._turns(agent, session, TURNS)
            before = tuple(session.history)
        await self.out.write("\nthe agent is closed; a new one resumes the session from the database\n")
        async with self._agent() as agent, await agent.resume_session(session.id) as session:
            resumed = tuple(session.history)
            await self._turns(agent, session, AFTER_RESUME)
            problem = sendability_problem(session.history)
            await self._tell_what_was_done(session.history)
        return checks(self.seen, before, resumed, problem)

    @asynccontextmanager
    async def _agent(self) -> AsyncIterator[Agent]:
        async with AsyncExitStack() as stack:
            inner = provider_for(self.model)
            if isinstance(inner, AbstractAsyncContextManager):
                await stack.enter_async_context(inner)
            builder = agent_builder(LineByLine(inner), open_storage(self.db), self.tools)
            yield await stack.enter_async_context(builder.build())

    async def _turns(self, agent: Agent, session: Session, plan: Sequence[PlannedTurn]) -> None:
        for planned in plan:
            await self.out.write(f"\n{planned.title}\n  what usually goes wrong: {planned.risk}\n")
            for line in planned.prompt.splitlines():
                await self.out.write(f"  you    {line}\n")
            turn = await session.send_message(planned.prompt)
            result = await self._watch(turn, planned)
            self.seen.results.append((planned, result))
            self.seen.peak_tools = max(self.seen.peak_tools, agent.statistics().peak_tools)

    async def _watch(self, turn: RunningTurn, planned: PlannedTurn) -> TurnResult:
        cancelled_at: float | None = None
        seen: list[AgentEventPayload] = []
        async for event in turn:
            await self._show(event)
            self.seen.take(planned, event, trio.current_time())
            seen.append(event.payload)
            if cancelled_at is None and planned.cancel_at is not None and planned.cancel_at(seen):
                cancelled_at = trio.current_time()
                turn.cancel()
                await self._line("cancel")
        result = await turn.result()
        if cancelled_at is not None:
            self.seen.cancels.append((planned, trio.current_time() - cancelled_at))
        return result

    async def _show(self, event: AgentEvent) -> None:
        if isinstance(event.payload, TextDelta):
            text = event.payload.text if self._in_text else f"  model  {event.payload.text.lstrip()}"
            self._in_text = True
            await self.out.write(text.replace("\n", "\n         "))
        elif (line := wording.event_line(event.payload)) is not None:
            await self._line(line)

    async def _line(self, line: str) -> None:
        end = "\n" if self._in_text else ""
        self._in_text = False
        await self.out.write(f"{end}  {line}\n")

    async def _tell_what_was_done(self, history: Sequence[Message]) -> None:
        await self.out.write("\nthe history, as any model would get it now\n")
        for message in history:
            who, what = wording.message_text(message)
            await self.out.write(f"  {who:>14}  {wording.shorten(what, 88)}\n")

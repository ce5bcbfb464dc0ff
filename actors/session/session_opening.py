"""Opens a session, new or stored (semantics 6.3, 7). Runs in the session's own task, before the session does."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from functools import partial

import attrs
import trio

from ...core.config import SessionConfig
from ...core.history.tokens import TokenMeter
from ...core.history.transcript import Transcript
from ...core.profiles.modes import Pipeline
from ...core.randomness import new_id
from ...core.resume import Resumed, resume
from ...core.session_setup import SessionSetup, resolve_setup
from ...core.structured_output import OutputFormat
from ...messages.codec import converter
from ...messages.errors import HookAborted, SessionNotFound, SessionTaken, StorageError
from ...messages.history import ToolCall
from ...messages.hook_payloads import SessionStart
from ...messages.records import Metadata, SessionEvent
from ..memory.extractor import MemoryFeed
from ..recorder.journal import Journal
from ..shared.mailbox import post
from ..shared.outcome import StopClock
from ..turn.pipeline import unfinished_of
from ..turn.session_state import SessionState
from .requests import OpenSession, SessionCommand
from .runtime import Runtime
from .session_actor import SessionActor

logger: logging.Logger = logging.getLogger("youyou.storage")

PROBLEMS = 10
"""How many of what cannot be read is told; a damaged log may hold any number."""
TAKEOVERS = 8
"""How often a claimed session is read again because its former owner, still alive, wrote once more."""


async def open_session(runtime: Runtime, question: OpenSession, clock: StopClock) -> SessionActor:
    """The actor of the session that was asked for, not yet running.

    Cancellation: a checkpoint; nothing remains but, for a new session, its stored configuration, for a stored
    one a ``session_opened`` record, and a claim, which the caller releases.

    Raises:
        AgentError: it cannot be opened.
    """
    if question.session_id is not None:
        return await _resume(runtime, question.session_id, question, clock)
    return await _begin(runtime, question.config, question.output, clock)


async def _begin(
    runtime: Runtime, config: SessionConfig, output: OutputFormat | None, clock: StopClock
) -> SessionActor:
    setup = resolve_setup(runtime.registry, config, output)
    session_id = new_id()
    outcome = await runtime.hooks.before(SessionStart(session_id=session_id), clock)
    if outcome.error is not None:
        raise outcome.error
    if outcome.abort is not None:
        raise HookAborted(f"a SessionStart hook refused the session: {outcome.abort}")
    await runtime.claims.claim(session_id, steal=False)
    actor = _actor(runtime, setup, session_id, clock)
    runtime.claims.watch(session_id, actor.state.journal.lose)
    # With the model that was resolved: a resumed session goes on with it, whatever the agent's default is then.
    stored = attrs.evolve(config, model_id=setup.model.id)
    actor.state.journal.append_metadata("session_config", converter.unstructure(stored))
    return actor


async def _resume(runtime: Runtime, session_id: str, question: OpenSession, clock: StopClock) -> SessionActor:
    """Claim, read, and write that it is opened, before anybody is answered: from then on the log is ours."""
    epoch = await runtime.claims.claim(session_id, steal=question.steal)
    for tries in reversed(range(TAKEOVERS if epoch else 1)):
        actor, resumed = await _read(runtime, session_id, question, clock)
        try:
            await _take(runtime, actor, resumed, epoch)
        except SessionTaken as error:
            # A former owner that lives has written once more since the log was read. Only with a claim is it worth
            # another try: without one, somebody else is opening the session just as rightfully.
            if not tries:
                raise SessionTaken(
                    f"session {session_id!r} is being opened or written elsewhere; resume it again", retryable=True
                ) from error
        else:
            return actor
    raise AssertionError("unreachable")


async def _take(runtime: Runtime, actor: SessionActor, resumed: Resumed, epoch: int) -> None:
    journal, before = actor.state.journal, actor.state.journal.posted
    value = {"owner": runtime.claims.owner, "epoch": max(epoch, resumed.epoch + 1)}
    journal.append_metadata("session_opened", value)
    mark = journal.append_log_only(*resumed.synthetic)
    try:
        await journal.flush(mark)
    except BaseException:
        # Written later, it would take the session from an agent that has opened it since.
        journal.retract(before)
        raise
    runtime.claims.watch(journal.session_id, journal.lose)


async def _read(
    runtime: Runtime, session_id: str, question: OpenSession, clock: StopClock
) -> tuple[SessionActor, Resumed]:
    events = await runtime.recorder.load(session_id)
    if events is None:
        where = (
            "the session storage has none" if runtime.registry.session_storage else "no session storage is registered"
        )
        raise SessionNotFound(f"there is no session {session_id!r}: {where}")
    resumed = resume(events, runtime.registry.config.notices)
    config = resumed.config or SessionConfig()
    if question.model_id is not None:
        config = attrs.evolve(config, model_id=question.model_id)
    setup = resolve_setup(runtime.registry, config, question.output)
    actor = _actor(runtime, setup, session_id, clock)
    _restore(actor, resumed, events)
    return actor, resumed


def _restore(actor: SessionActor, resumed: Resumed, events: Sequence[SessionEvent]) -> None:
    state = actor.state
    state.journal.next_seq = resumed.next_seq
    state.journal.transcript.replace(resumed.history)
    state.journal.transcript.meter.relearn(resumed.meter)
    for problem in resumed.problems[:PROBLEMS]:
        logger.warning("session %s: what is stored cannot be read: %s", state.session_id, problem)
    if resumed.problems:
        more = len(resumed.problems) - PROBLEMS
        words = "; ".join(resumed.problems[:PROBLEMS]) + (f"; and {more} more" if more > 0 else "")
        state.unreadable = StorageError(f"what is stored of this session cannot all be read: {words}")
    for refusal in resumed.refusals:
        if (refusal.provider, refusal.model) == (str(state.setup.provider.id), state.setup.model.id):
            for message in refusal.messages:
                state.journal.transcript.refuse_content(message)
    for left, cause in resumed.unanswered:
        state.journal.transcript.note_unanswered(left, cause)
    state.numbering.last = resumed.next_sequence - 1
    state.turns = resumed.turns
    state.usage = resumed.usage
    state.title = resumed.title or ""
    state.call_ids.update(resumed.started)
    # Of the whole log, because compaction takes calls out of history, and of history, where repair gave new ids.
    messages = (*resumed.history, *(event.payload for event in events))
    state.call_ids.update(message.call_id for message in messages if isinstance(message, ToolCall))
    if resumed.last_turn is not None and isinstance(state.setup.mode, Pipeline):
        state.unfinished = unfinished_of(resumed.last_turn, state.setup.mode)
    for event in events:
        if event.seq > resumed.memory_mark and not isinstance(event.payload, Metadata):
            actor.feed.observe(event.seq, event.payload)


def _actor(runtime: Runtime, setup: SessionSetup, session_id: str, clock: StopClock) -> SessionActor:
    transcript = Transcript(setup.config.notices, TokenMeter(setup.config.token_counter))
    # Unbounded, because each message has a sender that waits for its answer, or is the end of a turn.
    box, inbox = trio.open_memory_channel[SessionCommand](math.inf)
    feed = MemoryFeed(runtime.extractor, setup, session_id, partial(post, box))
    journal = Journal(session_id, transcript, runtime.recorder, feed.observe)
    return SessionActor(runtime, SessionState(setup, journal), feed, clock, box, inbox)

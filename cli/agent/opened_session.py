"""One agent with one session, as the options of ``youyou chat`` ask for it.

async with conversation(options) as (agent, session):
    turn = await session.send_message("hello")
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from enum import Enum
from importlib.util import find_spec
from typing import TYPE_CHECKING

import attrs
import trio

from ...actors.handles.agent_handle import Agent
from ...actors.handles.session_handle import Session
from ...builder import AgentBuilder, HasProvider
from ...core.config import SessionConfig
from ...core.ports.protocols import SessionStorage
from ...core.registry.registration import Part
from ...messages.content import ContentBlock
from ...messages.errors import ModelNotSupported, SessionTaken
from ..base.exits import CommandError, UsageError
from .approval import Approval
from .assembly import agent_builder
from .builder_loading import load_builder
from .model_choice import DEFAULT, provider_for
from .sample_tools import notes_in, sample_tools
from .stored_sessions import find_session, open_storage

if TYPE_CHECKING:
    from ...adapters.sqlite import SQLiteSessionStorage


_LOOK_AGAIN_S = 1.0


class IfTaken(Enum):
    """What to do about a session that is open elsewhere."""

    STEAL = "steal"
    WAIT = "wait"
    NEW = "new"
    LEAVE = "leave"


AskIfTaken = Callable[[SessionTaken], Awaitable[IfTaken]]
"""Asks the person."""


@attrs.frozen(kw_only=True)
class Options:
    """What the options of ``youyou chat`` say."""

    builder: str | None = None
    """``module:name`` of the user's own builder, in place of the command line's agent."""
    model: str | None = None
    base_url: str | None = None
    db: str | None = None
    resume: str | None = None
    """The beginning of a session's id, or `NEWEST`."""
    steal: bool = False
    """Take the resumed session over from the one that has it open."""
    domain: str | None = None
    skill: str | None = None
    system: str | None = None
    """Instructions besides the agent's own."""
    attachments: tuple[ContentBlock, ...] = ()
    """What goes with the first message."""
    approve: bool = False
    """Ask before each tool."""

    @property
    def talks_to(self) -> str:
        """What to call the other side."""
        return self.builder or self.model or DEFAULT


@asynccontextmanager
async def conversation(
    options: Options, approval: Approval | None = None, ask: AskIfTaken | None = None
) -> AsyncIterator[tuple[Agent, Session]]:
    """A new session, or a stored one, of a new agent. ``ask`` decides about one that is open elsewhere.

    Cancellation: entering and leaving are checkpoints, as for the agent's own block.

    Raises:
        AgentError, CommandError, UsageError: the options ask for what is not there.
    """
    notes: list[str] = []
    builder, storage, own = _builder(options, notes)
    if approval is not None:
        builder.register_plugin(approval)
    async with builder.build() as agent, await _session(agent, storage, options, ask) as session:
        if options.resume is not None and storage is not None:
            notes.extend(notes_in(await storage.load_session(session.id) or ()))
        yield agent, session
    if own is not None and options.resume is None and not session.history:
        # Nothing was said: it would only be in the way in the list.
        await own.delete_session(session.id)
        await own.aclose()


def _builder(
    options: Options, notes: list[str]
) -> tuple[AgentBuilder[HasProvider], SessionStorage | None, SQLiteSessionStorage | None]:
    """The builder, the storage of its sessions, and the same once more if it is the command line's own."""
    if options.builder is None:
        own = session_storage(options)
        provider = provider_for(options.model or DEFAULT, options.base_url)
        return agent_builder(provider, own, sample_tools(notes)), own, own
    if options.model is not None or options.base_url is not None:
        raise UsageError(f"{options.builder} has a model of its own; leave --model and --base-url away")
    builder = load_builder(options.builder)
    registered = [entry.value for entry in builder._registrations.entries if entry.part is Part.SESSION_STORAGE]
    if registered:
        if options.db is not None:
            raise UsageError(f"{options.builder} has a storage of its own; leave --db away")
        return builder, registered[0], None
    own = session_storage(options)
    return (builder if own is None else builder.register_session_storage(own)), own, own


def session_storage(options: Options) -> SQLiteSessionStorage | None:
    """Where sessions are kept. None: nobody asked for a file and SQLite support is not installed."""
    wanted = options.db is not None or options.resume is not None
    if not wanted and find_spec("apsw") is None:
        return None
    return open_storage(options.db)


async def _session(agent: Agent, storage: SessionStorage | None, options: Options, ask: AskIfTaken | None) -> Session:
    if options.resume is None or storage is None:
        config = SessionConfig(domain=options.domain, skill=options.skill, system_prompt_override=options.system)
        return await agent.new_session(config)
    session_id = (await find_session(storage, options.resume)).session_id
    answer = IfTaken.STEAL if options.steal else None
    while True:
        try:
            return await _resumed(agent, session_id, options, steal=answer is IfTaken.STEAL)
        except SessionTaken as error:
            taken = error
        if answer is not IfTaken.WAIT:
            answer = IfTaken.LEAVE if ask is None else await ask(taken)
        match answer:
            case IfTaken.WAIT:
                await trio.sleep(min(_LOOK_AGAIN_S, (taken.retry_after_ms or 0) / 1000))
            case IfTaken.NEW:
                return await agent.new_session()
            case IfTaken.LEAVE:
                raise CommandError(
                    f"session {session_id[:8]} is open elsewhere ({taken.address or taken.owner}); close it there, "
                    "or take it over: the same command with --steal"
                ) from taken


async def _resumed(agent: Agent, session_id: str, options: Options, *, steal: bool) -> Session:
    try:
        return await agent.resume_session(session_id, steal=steal)
    except ModelNotSupported as error:
        if options.model is None:
            raise CommandError(
                f"{error.message}; say with --model who is to go on with session {session_id[:8]}"
            ) from error
    # The person has named another model than that of the session: from now on it is that one's.
    model_id = provider_for(options.model, options.base_url).models()[0].id
    return await agent.resume_session(session_id, steal=steal, model_id=model_id)

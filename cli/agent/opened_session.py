"""One agent with one session, as the options of ``youyou chat`` ask for it.

async with conversation(options) as (agent, session):
    turn = await session.send_message("hello")
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

import attrs

from ...actors.handles.agent_handle import Agent
from ...actors.handles.session_handle import Session
from ...core.config import SessionConfig
from .assembly import agent_builder
from .model_choice import provider_for
from .stored_sessions import find_session, open_storage

if TYPE_CHECKING:
    from ...adapters.sqlite import SQLiteSessionStorage


@attrs.frozen
class Options:
    """What the options of ``youyou chat`` say. ``resume``: the beginning of a session's id, or `NEWEST`."""

    model: str
    base_url: str | None = None
    db: str | None = None
    resume: str | None = None
    domain: str | None = None
    skill: str | None = None


@asynccontextmanager
async def conversation(options: Options) -> AsyncIterator[tuple[Agent, Session]]:
    """A new session, or a stored one, of a new agent.

    Cancellation: entering and leaving are checkpoints, as for the agent's own block.

    Raises:
        AgentError, CommandError: the options ask for what is not there.
    """
    storage = session_storage(options)
    provider = provider_for(options.model, options.base_url)
    async with (
        agent_builder(provider, storage).build() as agent,
        await _session(agent, storage, options) as session,
    ):
        yield agent, session
    if storage is not None and options.resume is None and not session.history:
        # Nothing was said: it would only be in the way in the list.
        await storage.delete_session(session.id)
        await storage.aclose()


def session_storage(options: Options) -> SQLiteSessionStorage | None:
    """Where sessions are kept. None: nobody asked for a file and SQLite support is not installed."""
    wanted = options.db is not None or options.resume is not None
    if not wanted and find_spec("apsw") is None:
        return None
    return open_storage(options.db)


async def _session(agent: Agent, storage: SQLiteSessionStorage | None, options: Options) -> Session:
    if options.resume is None or storage is None:
        return await agent.new_session(SessionConfig(domain=options.domain, skill=options.skill))
    found = await find_session(storage, options.resume)
    return await agent.resume_session(found.session_id)

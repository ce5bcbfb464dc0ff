"""One agent with one session, as the command line's options ask for it.

async with conversation(options) as (agent, session):
    turn = await session.send_message("hello")
"""

from __future__ import annotations

import platform
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from ..actors.agent_handle import Agent
from ..actors.session_handle import Session
from ..builder import AgentBuilder, HasProvider
from ..core.config import AgentConfig, EnvironmentContext, Notices, SessionConfig
from ..core.modes import Pipeline, SingleShot, Step
from ..core.ports import ModelProvider, SessionStorage
from ..core.profiles import AgentProfile, ProfileKind, QuickAction
from ..core.skills import SkillDefinition
from ..core.tools import Tool
from ..messages.records import SessionSummary
from . import places
from .demo_tools import demo_tools
from .exits import CommandError
from .models import provider_for

if TYPE_CHECKING:
    from ..adapters.sqlite import SQLiteSessionStorage

NEWEST = ""
"""``--resume`` without an id."""

_INSTRUCTIONS = "You are a helpful assistant in a terminal. Answer briefly, in Markdown where it helps."


@attrs.frozen
class Options:
    """What the options of ``youyou chat`` say. ``resume``: the beginning of a session's id, or `NEWEST`."""

    model: str
    base_url: str | None = None
    db: str | None = None
    resume: str | None = None
    domain: str | None = None
    skill: str | None = None


SKILLS = (
    SkillDefinition("brief", "Brief", "Answer in one sentence.", "Answer the user's message in exactly one sentence."),
    SkillDefinition(
        "recap", "Recap", "Sum up the conversation.", "Sum up the conversation so far in at most five short points."
    ),
)

PROFILES = (
    AgentProfile(
        "facts",
        ProfileKind.DOMAIN,
        "Facts",
        "Answers with the clock and the calculator.",
        icon="lightbulb",
        instructions="Use a tool for every number and every time that you state.",
        require_tags=("facts",),
        quick_actions=(QuickAction("What time is it?", "What time is it?", "clock"),),
    ),
    AgentProfile(
        "notebook",
        ProfileKind.DOMAIN,
        "Notebook",
        "Keeps notes and reads them back.",
        icon="notebook",
        require_tags=("notes",),
        quick_actions=(QuickAction("Show my notes", "Which notes do I have?", "list"),),
    ),
    AgentProfile(
        "think-twice",
        ProfileKind.SKILL,
        "Think twice",
        "Drafts an answer, then improves it.",
        icon="repeat",
        mode=Pipeline(
            (
                Step("draft", "{input}", mode=SingleShot()),
                Step("improve", "Improve this answer. Question: {input}\n\nAnswer: {steps.draft}", mode=SingleShot()),
            )
        ),
    ),
)


def agent_builder(
    provider: ModelProvider, storage: SessionStorage | None = None, tools: Sequence[Tool] | None = None
) -> AgentBuilder[HasProvider]:
    """The command line's own agent: demonstration tools, two skills, three profiles."""
    config = AgentConfig(
        default_model=provider.models()[0].id,
        system_instructions=(_INSTRUCTIONS,),
        environment=EnvironmentContext(os=platform.system()),
        notices=Notices.english(),
        # SIGTERM and a closed terminal end the process soon.
        shutdown_grace_ms=1_000,
    )
    builder = AgentBuilder(config).register_model_provider(provider)
    for tool in demo_tools() if tools is None else tools:
        builder.register_tool(tool)
    for skill in SKILLS:
        builder.register_skill(skill)
    for profile in PROFILES:
        builder.register_profile(profile)
    return builder if storage is None else builder.register_session_storage(storage)


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


def open_storage(db: str | None) -> SQLiteSessionStorage:
    """The session storage in the file ``db``, or in the usual one.

    Raises:
        ModuleNotFoundError: apsw is not installed.
    """
    from ..adapters.sqlite import SQLiteSessionStorage

    return SQLiteSessionStorage(places.database(db))


async def _session(agent: Agent, storage: SQLiteSessionStorage | None, options: Options) -> Session:
    if options.resume is None or storage is None:
        return await agent.new_session(SessionConfig(domain=options.domain, skill=options.skill))
    found = await find_session(storage, options.resume)
    return await agent.resume_session(found.session_id)


async def find_session(storage: SQLiteSessionStorage, query: str) -> SessionSummary:
    """The one session that ``query`` names: the beginning of its id, or a part of its title; the newest for `NEWEST`.

    Raises:
        CommandError: there is none, or more than one.
    """
    found = await (storage.find_session(query) if query != NEWEST else _newest(storage))
    by_id = [each for each in found if each.session_id.startswith(query)]
    match by_id or list(found):
        case []:
            raise CommandError("there is no such session; 'youyou sessions list' shows those that there are")
        case [one]:
            return one
        case several:
            lines = "\n".join(f"  {summary_line(each)}" for each in several[:8])
            raise CommandError(f"{len(several)} sessions fit {query!r}; give more of the id:\n{lines}")


async def _newest(storage: SQLiteSessionStorage) -> Sequence[SessionSummary]:
    page = await storage.list_sessions(limit=20)
    return [each for each in page.sessions if each.message_count > 0][:1]


def summary_line(summary: SessionSummary) -> str:
    """A session on one line."""
    when = f"{summary.updated_at.astimezone():%Y-%m-%d %H:%M}"
    title = " ".join(summary.title.split())
    return f"{summary.session_id[:12]}  {when}  {summary.message_count:4} messages  {title}"


def database_missing(db: str | None) -> bool:
    """Whether nothing was ever stored there; reading would make an empty file."""
    return not Path(places.database(db)).exists()

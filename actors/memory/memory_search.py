"""Looks up what is remembered, at the start of a turn (semantics 12)."""

from __future__ import annotations

import logging

import trio

from ...core.config import AgentConfig
from ...core.memory.extraction import query_text
from ...core.ports.answer_checks import memories_of
from ...core.ports.protocols import MemoryStorage
from ...messages.content import UserInput
from ...messages.errors import AgentError, ErrorSource, MemoryStorageError
from ...messages.records import Memory
from ...messages.text import clean_text
from ..shared.lifetime import Lifetime
from ..shared.user_code import UserCodeError, call_sync, call_user

logger: logging.Logger = logging.getLogger("youyou.memory")


async def search_memories(
    lifetime: Lifetime, config: AgentConfig, storage: MemoryStorage, user_input: UserInput
) -> tuple[Memory, ...]:
    """Memories that fit the user's text, at most ``memory_max_items``.

    Cancellation: a checkpoint where a memory storage is registered; nothing happened if `trio.Cancelled` comes out.

    Raises:
        AgentError: the storage failed or took longer than ``memory_timeout_ms``.
    """
    query = clean_text(query_text(user_input))
    with trio.move_on_after(config.memory_timeout_ms / 1000):
        try:
            return await found_memories(lifetime, storage, config.memory_namespace, query, config.memory_max_items)
        except UserCodeError as error:
            raise memory_error("the turn goes on without memories: searching failed", error) from error.cause
    raise MemoryStorageError(
        f"searching memories took longer than {config.memory_timeout_ms} ms; the turn goes on without"
    )


async def found_memories(
    lifetime: Lifetime, storage: MemoryStorage, namespace: str, query: str, limit: int
) -> tuple[Memory, ...]:
    """What the storage finds in this namespace, at most ``limit``. What is not sound, or another's, is left out.

    Cancellation: as much a checkpoint as the storage's ``search`` is.

    Raises:
        UserCodeError: the storage raised, or answered something that is not a collection.
    """
    found = await call_user(lifetime, storage.search, namespace, query, limit)
    memories, problems = call_sync(lifetime, memories_of, found, namespace)
    for problem in problems[:10]:
        logger.warning("a memory was left out: the storage answered %s", problem)
    return memories[:limit]


def memory_error(what: str, error: UserCodeError) -> AgentError:
    """The error that the host sees of a failure around memories."""
    if isinstance(error.cause, AgentError):
        return error.cause.reported_by(ErrorSource.STORAGE)
    return MemoryStorageError(f"{what}: {error}")

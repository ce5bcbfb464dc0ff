"""Carries out what is asked of a hosted session, here or by way of the storage (semantics 16)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

import trio

from ..core.ports.commands import CancelTurn, CloseHosted, HostCommand, SessionCommands, SteerTurn
from ..messages.errors import AgentError
from .hosted_session import HostedSession

logger: logging.Logger = logging.getLogger("youyou.hosting")

_PAUSE = 1.0
"""Seconds before the storage is asked again after it failed."""


def commands_of(storage: object) -> SessionCommands | None:
    """The storage as one that carries commands, if it is one."""
    return storage if isinstance(storage, SessionCommands) else None


def carry_out(hosted: HostedSession, command: HostCommand) -> bool:
    """Do it. Sync. False: there was nothing to do it to.

    Raises:
        AgentError: the message to steer in cannot be sent.
    """
    if hosted.session is None:
        return False
    turn = hosted.session._opened.running()
    match command:
        case CancelTurn(grace, after_batch):
            return turn is not None and turn.cancel("cancelled", grace, after_batch=after_batch)
        case SteerTurn(user_input):
            return turn is not None and turn.steer(user_input)
        case CloseHosted(grace):
            if turn is not None:
                turn.cancel("session_closed", grace)
            hosted.leave()
            return True


async def obey(storage: SessionCommands, hosted: Callable[[], Mapping[str, HostedSession]]) -> None:
    """Carry out what others ask of the sessions that are open here, until cancelled."""
    while True:
        try:
            await storage.wait_for_commands()
            here = hosted()
            for session_id, command in await storage.take_commands(here) if here else ():
                try:
                    carry_out(here[session_id], command)
                except AgentError as error:
                    logger.warning("a command for session %s was refused: %s", session_id, error)
        except AgentError as error:
            logger.warning("commands could not be read: %s", error)
            await trio.sleep(_PAUSE)

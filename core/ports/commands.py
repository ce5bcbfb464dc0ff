"""What can be asked of a session that lives in another process (semantics 16), and the port that carries it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

import attrs

from ...messages.content import UserInput


@attrs.frozen
class CancelTurn:
    """Cancel the running turn, as ``turn.cancel(grace=...)`` does."""

    grace: float | None = None
    """Seconds until running tools and hooks are cut. None: ``cancel_grace_ms``, else never."""
    after_batch: bool = False
    """Let all calls of the running batch come to their end, those in line too."""


@attrs.frozen
class SteerTurn:
    """Put a message into the running turn, as ``turn.steer(input)`` does."""

    input: UserInput
    """The message."""


@attrs.frozen
class CloseHosted:
    """Close the session where it is open, so that it can be opened here."""

    grace: float | None = None
    """Seconds for a turn that runs; None: it is cancelled, and its tools finish within their own time-outs."""


HostCommand: TypeAlias = CancelTurn | SteerTurn | CloseHosted


@runtime_checkable
class SessionCommands(Protocol):
    """Carries commands to the process that has a session open: optional methods of a `SessionStorage`.

    A command is delivered at most once, to the agent that takes the commands of that session first.
    """

    async def send_command(self, session_id: str, command: HostCommand) -> None:
        """Leave a command for the session's owner, and wake it."""

    async def take_commands(self, session_ids: Collection[str]) -> Sequence[tuple[str, HostCommand]]:
        """The commands for these sessions, oldest first; nobody gets them again."""

    async def wait_for_commands(self) -> None:
        """Return when there may be new ones. Returns too often rather than too seldom."""

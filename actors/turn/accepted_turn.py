"""What the holder of a turn gets of it: its events, its end, and what may be asked of it in one sync step.

    turn = await ask(session, StartTurn(...))       # an AcceptedTurn, or the error
    turn.cancel("cancelled", grace=2.5)

The turn's own context stays with the turn's tasks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import attrs
import trio

from ...core.inputs import check_input
from ...core.session_setup import SessionSetup
from ...messages.content import Content, UserInput
from ...messages.events import TurnResult
from ..shared.event_stream import EventStream
from ..shared.lifetime import Lifetime
from ..shared.outcome import TurnControl


class Cancel(Protocol):
    """Stop the turn. Whether its outcome is cancelled."""

    def __call__(self, reason: str, grace: float | None = None, *, after_batch: bool = False) -> bool: ...


@attrs.frozen(eq=False)
class AcceptedTurn:
    """A turn, for its holder. ``result`` gives None until ``ended`` is set."""

    turn_id: str
    setup: SessionSetup
    lifetime: Lifetime
    events: EventStream
    control: TurnControl
    ended: trio.Event
    cancel: Cancel
    result: Callable[[], TurnResult[Any] | None]

    def steer(self, message: UserInput | Content) -> bool:
        """Put a message into the running turn. Sync. False: the outcome is decided, and nothing was taken.

        Raises:
            InvalidInput, ContentNotSupported: it cannot be sent.
        """
        return self.control.steer(check_input(message, self.setup.model, self.setup.registry.skills))

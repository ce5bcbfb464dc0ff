"""What a session is besides its tasks: handed to each of its turns in turn, one at a time."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from ...core.compaction.decisions import CircuitBreaker
from ...core.prompts.system_prompt import stable_prompt
from ...core.session_setup import SessionSetup
from ...messages.chat import Usage
from ...messages.content import UserInput, text_of
from ...messages.errors import AgentError
from ..recorder.journal import Journal
from ..shared.event_stream import Numbering

TITLE_LENGTH = 60


@attrs.frozen(eq=False)
class Unfinished:
    """A pipeline that was stopped, and how far it came: the input it began with, and the outputs by key."""

    turn_id: str
    user_input: UserInput
    outputs: Mapping[str, str]


@attrs.define(eq=False)
class SessionState:
    """The session's setup and journal, its counters and caches."""

    setup: SessionSetup
    journal: Journal
    numbering: Numbering = attrs.Factory(Numbering)
    turns: int = 0
    usage: Usage = attrs.Factory(Usage)
    title: str = ""
    call_ids: set[str] = attrs.Factory(set)
    breaker: CircuitBreaker = attrs.Factory(CircuitBreaker)
    unfinished: Unfinished | None = None
    unreadable: AgentError | None = None
    """What could not be read of the stored session, until a turn has told it."""
    _stable: str | None = None

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self.journal.session_id

    def stable(self) -> str:
        """The stable part of the system prompt, built once and again after ``rebuild`` (semantics 10)."""
        if self._stable is None:
            self._stable = stable_prompt(self.setup)
        return self._stable

    def rebuild(self) -> None:
        """Forget the stable prompt: history was compacted."""
        self._stable = None

    def set_title(self, title: str) -> int:
        """Name the session, in the log too. Sync. The mark to flush."""
        self.title = title
        return self.journal.append_metadata("title", title)

    def title_from(self, user_input: UserInput) -> None:
        """The first user text, shortened, is the title of a session that has none."""
        if self.title:
            return
        words = " ".join(text_of(user_input.content).split())
        if words:
            self.set_title(words if len(words) <= TITLE_LENGTH else words[: TITLE_LENGTH - 1].rstrip() + "…")

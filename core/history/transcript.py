"""The live history of a session, and what a request carries of it (semantics 5, 6.1).

Stored history stays neutral. The note after an interrupted message, system messages for models that take none, and the
replacement of refused content are derived when a request is built, once per message: a request costs O(1), whatever the
length of history, and a view handed out never changes. Never stores, never compacts.

    transcript = Transcript(notices)
    transcript.append(UserMessage("hello"))
    request = ChatRequest(model_id, system, transcript.requests(model.capabilities))
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from ...messages.history import Message, SystemMessage, UserMessage
from ...messages.text import clean_value
from ..config import Notices
from ..ports.protocols import ModelCapabilities
from .list_view import ListView
from .repair import normalise
from .request_view import Derivation, holds_attachment
from .sendability import SendabilityCheck
from .tokens import TokenMeter


@attrs.define(eq=False)
class Transcript:
    """What was said in a session so far (semantics 5)."""

    notices: Notices = attrs.field(factory=Notices)
    meter: TokenMeter = attrs.field(factory=TokenMeter)
    _log: list[Message] = attrs.field(factory=list, init=False)
    _sendable: list[Message] = attrs.field(factory=list, init=False)  # the log, repaired where need was
    _check: SendabilityCheck = attrs.field(factory=SendabilityCheck, init=False)
    _broken: bool = attrs.field(default=False, init=False)
    _refused: dict[int, Message] = attrs.field(factory=dict, init=False)  # by identity
    # By identity, with the message, which keeps the id from coming again.
    _unanswered: dict[int, tuple[Message, str]] = attrs.field(factory=dict, init=False)
    _derivations: dict[tuple[bool, bool], Derivation] = attrs.field(factory=dict, init=False)

    def append(self, message: Message) -> Message:
        """Add a message at the end, cleaned of lone surrogates, and return it as it was added."""
        message = clean_value(message)
        self._log.append(message)
        self.meter.add(message)
        # Once something cannot be sent as it is, the sendable form is derived anew when it is next asked for.
        if not self._broken:
            self._sendable.append(message)
            self._broken = self._check.see(message) is not None or self._check.moved
        return message

    @property
    def history(self) -> Sequence[Message]:
        """What was appended, neutral. A view: later appends do not show in it."""
        return ListView(self._log)

    @property
    def newest(self) -> Message | None:
        """The message that was appended last."""
        return self._log[-1] if self._log else None

    def requests(self, capabilities: ModelCapabilities) -> Sequence[Message]:
        """What a request to a model of these capabilities carries now. Read-only, always sendable (semantics 5)."""
        if self._broken or self._check.unanswered:
            self._repair()
        key = (capabilities.system_messages, capabilities.vision)
        if key not in self._derivations:
            self._derivations[key] = Derivation(self.notices, capabilities, self._refused, self._unanswered)
        return self._derivations[key].view(self._sendable)

    def refuse_content(self, which: int | Message | None = None) -> tuple[Message, ...]:
        """From now on requests carry a note in place of content that a provider refused (semantics 6).

        Args:
            which: a message of history or its index; by default every message with an image or a file.

        Returns:
            What is refused now that was not before: if there is any, the request is worth another try.
        """
        refused = [self._log[which]] if isinstance(which, int) else self._refusable() if which is None else [which]
        new = [message for message in refused if id(message) not in self._refused]
        self._refused.update((id(message), message) for message in new)
        if new:
            self._derivations.clear()
        return tuple(new)

    def allow_content(self, messages: Iterable[Message]) -> None:
        """Take back that the content of these was refused: it was not to blame."""
        for message in messages:
            self._refused.pop(id(message), None)
        self._derivations.clear()

    def leave_unanswered(self, cause: str) -> None:
        """A turn ended. If nothing was said or called in it, requests answer it with the note of its cause."""
        for message in reversed(self._log):
            if isinstance(message, UserMessage):
                self.note_unanswered(self._log[-1], cause)
            if not isinstance(message, SystemMessage):
                return

    def note_unanswered(self, message: Message, cause: str) -> None:
        """From now on requests put the note of ``cause`` behind this message of history, if a new turn follows it."""
        self._unanswered[id(message)] = (message, cause)

    @property
    def unanswered(self) -> tuple[tuple[int, str], ...]:
        """The messages that a turn left without an answer, by their index in history, and why."""
        found = ((index, self._unanswered.get(id(message))) for index, message in enumerate(self._log))
        return tuple((index, entry[1]) for index, entry in found if entry is not None)

    def replace(self, messages: Iterable[Message]) -> None:
        """History was compacted: these messages stand for all of it. Views handed out before keep what they show."""
        self._log = []
        self._sendable = []
        self._check = SendabilityCheck()
        self._broken = False
        self._derivations.clear()
        # Before appending: each append measures its own message.
        self.meter.reset(())
        # By identity, which is safe only while the dict holds the messages: ids of freed objects come again.
        kept = {id(self.append(message)) for message in messages}
        self._refused = {key: message for key, message in self._refused.items() if key in kept}
        self._unanswered = {key: entry for key, entry in self._unanswered.items() if key in kept}

    def _refusable(self) -> list[Message]:
        return [message for message in self._log if holds_attachment(message)]

    def _repair(self) -> None:
        # From the log, not from what was repaired before: a result that comes late after all takes its place.
        self._sendable = list(normalise(self._log, self.notices))
        self._check = SendabilityCheck()
        for message in self._sendable:
            self._check.see(message)
        self._broken = False
        self._derivations.clear()

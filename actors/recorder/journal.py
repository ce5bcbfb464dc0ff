"""What a session keeps: history in memory, and the same on its way to storage (semantics 5, 7).

One place gives each stored event its number, so that log and history cannot drift apart. Results are stored the moment
they are there and enter history in the model's order.

    journal.append(UserMessage("hello"))                      # history and log, one batch
    await journal.flush()                                   # acknowledged
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import attrs

from ...core.history.transcript import Transcript
from ...messages.errors import AgentError, StorageError
from ...messages.history import Message
from ...messages.hook_payloads import utc_now
from ...messages.records import Metadata, SessionEvent, SessionEventPayload
from ...messages.text import clean_json
from ..shared.outcome import StopClock
from .recorder import Recorder
from .session_log import SessionLog


@attrs.define(eq=False)
class Journal:
    """The log of one session. ``on_message`` sees each stored message with its number."""

    session_id: str
    transcript: Transcript
    recorder: Recorder
    on_message: Callable[[int, Message], None]
    next_seq: int = 1
    _log: SessionLog = attrs.field(init=False)
    _seen_failures: int = attrs.field(init=False)
    _told: AgentError | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self._log = self.recorder.log_of(self.session_id)
        self._seen_failures = self._log.failures

    @property
    def lost(self) -> AgentError | None:
        """Why nothing will be stored any more, if so (semantics 7, "One writer")."""
        return self._log.lost

    def on_lost(self, tell: Callable[[AgentError], None]) -> None:
        """Whom to tell, once, when the log is lost. Sync."""
        self._log.on_lost = tell

    def lose(self, error: AgentError) -> None:
        """The session has another owner. Sync, idempotent."""
        self.recorder.lose(self._log, error)

    def retract(self, mark: int) -> None:
        """Take back what was posted after ``mark``: the session is not opened after all. Sync."""
        self.recorder.retract(self._log, mark)

    @property
    def posted(self) -> int:
        """The mark of all that was posted."""
        return self._log.posted

    def append(self, *messages: Message) -> int:
        """Into history and log, as one batch. Sync. The mark to flush."""
        return self.append_log_only(*[self.transcript.append(message) for message in messages])

    def append_metadata(self, key: str, value: object) -> int:
        """A fact that is not a message. Sync. The mark to flush."""
        if self.recorder.storage is None:
            return self._log.posted
        return self.append_log_only(Metadata(key, clean_json(value)))

    def append_log_only(self, *payloads: SessionEventPayload) -> int:
        """Into the log alone. Sync. The mark to flush."""
        # One place numbers, in the step in which history changes: two places would drift apart after the first failed
        # write.
        first, self.next_seq = self.next_seq, self.next_seq + len(payloads)
        for seq, payload in enumerate(payloads, first):
            if not isinstance(payload, Metadata):
                self.on_message(seq, payload)
        if self.recorder.storage is None:
            return self._log.posted
        events = [SessionEvent(seq, utc_now(), payload) for seq, payload in enumerate(payloads, first)]
        return self.recorder.post(self._log, events)

    @property
    def all_stored(self) -> bool:
        """Whether nothing waits to be stored, and the log can go on."""
        return not self._log.unsaved and self._log.lost is None

    async def flush(self, mark: int | None = None) -> None:
        """Wait until all that was posted, or all up to ``mark``, is stored. A checkpoint.

        Raises:
            AgentError: the storage failed; nothing is lost, and it is tried again with the next write.
        """
        try:
            await self.recorder.flush(self._log, mark)
        except AgentError as error:
            self._seen_failures, self._told = self._log.failures, error
            raise
        self._told = None

    async def flush_within(self, clock: StopClock, closing: float, mark: int | None = None) -> None:
        """The same, waiting no longer than ``closing`` seconds after a stop's grace is over.

        Not a checkpoint where all is stored: then there is nothing to wait for, and nobody is woken.

        Raises:
            AgentError: as `flush`; or it was not waited for any longer, and is tried again with the next write.
        """
        if self.all_stored:
            self._told = None
            return
        with clock.flush(closing):
            await self.flush(mark)
            return
        raise StorageError(
            f"not stored yet: the storage did not answer within {closing:g} s after the grace of the stop; it is tried "
            "again with the next write"
        )

    async def attempt(self, mark: int) -> None:
        """Wait until all up to ``mark`` is stored, or could not be: then the next turn, or close(), tells of it."""
        with suppress(AgentError):
            await self.recorder.flush(self._log, mark)

    def unseen_failure(self) -> AgentError | None:
        """A failed write that was not reported yet. Sync; reported once."""
        if self._seen_failures == self._log.failures:
            return None
        self._seen_failures = self._log.failures
        self._told = self._log.failure
        return self._log.failure

    def skip_told_failure(self) -> None:
        """A failure that repeats the one told last is not news: what the last turn left has failed once more. Sync."""
        if self._told is not None and self._told == self._log.failure:
            self._seen_failures = self._log.failures

"""Batches of many sessions, saved at once, share a transaction: the disk is waited for once for all of them.

A transaction belongs to the file, not to a session. The first caller writes; those that come meanwhile wait, and one of
them then writes for all that wait. Each is told what became of its own batch, and only after the commit.

    saves = GroupCommit(file)
    await saves.save("s1", events)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import attrs
import trio

from ...messages.records import SessionEvent
from . import sessions
from .connection import DatabaseFile
from .errors import errors_of


@attrs.define(eq=False)
class _Waiting:
    """A caller in the queue. ``leads``: it is to write for all who wait. Otherwise its batch was dealt with."""

    batch: sessions.Batch
    news: trio.Event = attrs.Factory(trio.Event)
    leads: bool = False
    problem: Exception | None = None


@attrs.define(eq=False)
class GroupCommit:
    """The saves of one file."""

    file: DatabaseFile
    _writing: bool = False
    _queue: list[_Waiting] = attrs.Factory(list)

    async def save(  # noqa: ASYNC910  waiting or writing is one
        self, session_id: str, events: Sequence[SessionEvent]
    ) -> None:
        """Append one batch of a session, as `sessions.save` does.

        Cancellation: a checkpoint. All of the batch is in the file or nothing; what others save is not touched.
        """
        own = _Waiting(sessions.Batch(session_id, events))
        if self._writing:
            await self._wait(own)
        else:
            self._writing = own.leads = True
        if own.leads:
            await self._write(own)
        if own.problem is not None:
            with errors_of(self.file.error, self.file.path):
                raise own.problem

    async def _wait(self, own: _Waiting) -> None:
        self._queue.append(own)
        try:
            await own.news.wait()
        except trio.Cancelled:
            if own in self._queue:
                self._queue.remove(own)
            if own.leads:
                self._hand_on()
            raise

    async def _write(self, own: _Waiting) -> None:
        group, self._queue = [own, *self._queue], []
        try:
            problems = await self.file.run(partial(sessions.save_all, batches=[each.batch for each in group]))
        except BaseException:
            # The file could not be used, or this caller was cancelled: the others have that still to find out. Where
            # theirs is stored after all, saving the same event under its number again changes nothing.
            self._queue = [*group[1:], *self._queue]
            raise
        else:
            for each, problem in zip(group, problems, strict=True):
                each.problem = problem
                each.news.set()
        finally:
            self._hand_on()

    def _hand_on(self) -> None:
        self._writing = bool(self._queue)
        if self._queue:
            leader = self._queue.pop(0)
            leader.leads = True
            leader.news.set()

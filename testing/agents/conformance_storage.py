"""Conformance of session storages: everything that semantics 7 promises, as one coroutine to call from a test.

    async def test_my_storage(tmp_path):
        numbers = itertools.count()
        await check_session_storage(lambda: MyStorage(tmp_path / str(next(numbers))))

Uses nothing but the port. Each check gets a storage of its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias

import trio

from ...core.ports.protocols import SessionStorage
from ...messages.content import ImageBlock, ReasoningBlock, TextBlock
from ...messages.errors import AgentError, ErrorCode
from ...messages.history import AssistantMessage, MessageStatus, SystemMessage, ToolCall, ToolOutcome, ToolResult
from ...messages.history import UserMessage as User
from ...messages.records import Metadata, SessionEvent, SessionEventPayload, SessionSummary
from .conformance_support import CUTS, cut, expect, fresh, moment

SessionStorageFactory: TypeAlias = Callable[[], SessionStorage | AbstractAsyncContextManager[SessionStorage]]
_Check: TypeAlias = Callable[[SessionStorage], Awaitable[None]]


async def check_session_storage(factory: SessionStorageFactory) -> None:
    """Check that a session storage keeps the contract.

    Args:
        factory: gives a new, empty storage at each call, or an async context manager of one.

    Raises:
        AssertionError: one sentence on the first promise that is not kept.
    """
    await trio.lowlevel.checkpoint()
    for check in _CHECKS:
        async with fresh(factory) as storage:
            await check(storage)


def _event(seq: int, payload: SessionEventPayload | str, second: int | None = None) -> SessionEvent:
    return SessionEvent(
        seq, moment(seq if second is None else second), User(payload) if isinstance(payload, str) else payload
    )


async def _loaded(storage: SessionStorage, session_id: str) -> tuple[SessionEvent, ...] | None:
    events = await storage.load_session(session_id)
    return None if events is None else tuple(events)


async def _unknown_sessions(storage: SessionStorage) -> None:
    expect(None, await storage.load_session("nobody"), "An unknown session loads as None")
    expect((), tuple((await storage.list_sessions()).sessions), "An empty storage lists no sessions")
    expect((), tuple(await storage.find_session("nobody")), "An empty storage finds no sessions")
    await storage.delete_session("nobody")
    await storage.save_events("s", [_event(1, "hi")])
    expect(None, await storage.load_session("S"), "Ids that differ in case are different sessions")


async def _order(storage: SessionStorage) -> None:
    events = [_event(seq, f"message {seq}", 100 - seq) for seq in range(1, 12)]
    await storage.save_events("s", events[:1])
    await storage.save_events("other", [_event(1, "else")])
    await storage.save_events("s", events[1:8])
    await storage.save_events("s", events[8:])
    expect(tuple(events), await _loaded(storage, "s"), "Events come back in order of seq, batch after batch")
    expect((_event(1, "else"),), await _loaded(storage, "other"), "Sessions do not mix")


async def _retries(storage: SessionStorage) -> None:
    first = (_event(1, "one"), _event(2, "two"))
    await storage.save_events("s", first)
    await storage.save_events("s", first)
    await storage.save_events("s", [_event(2, "two"), _event(3, "three")])
    expect(
        (*first, _event(3, "three")),
        await _loaded(storage, "s"),
        "An event that is stored is ignored when it comes again, and the rest of its batch is stored",
    )
    counts = [summary.message_count for summary in (await storage.list_sessions()).sessions]
    expect([3], counts, "An ignored event is not counted")


async def _refused(storage: SessionStorage, *events: SessionEvent, session_id: str = "s") -> ErrorCode | None:
    try:
        await storage.save_events(session_id, events)
    except AgentError as error:
        return error.code
    return None


async def _other_writers(storage: SessionStorage) -> None:
    stored = (_event(1, "one"), _event(2, "two"))
    await storage.save_events("s", stored)
    for batch in (
        (_event(2, "another two"),),
        (_event(2, "another two"), _event(3, "three")),
        (_event(1, "one"), _event(2, "another two"), _event(3, "three")),
        (_event(1, "one", 50), _event(2, "two")),
        (_event(2, Metadata("two", "two")),),
    ):
        rule = "A number that is stored with other content is refused with SESSION_TAKEN"
        expect(ErrorCode.SESSION_TAKEN, await _refused(storage, *batch), rule)
        expect(stored, await _loaded(storage, "s"), "A refused batch is refused whole")
    counts = [summary.message_count for summary in (await storage.list_sessions()).sessions]
    expect([2], counts, "A refused batch is not counted")
    await storage.save_events("s", [_event(3, "three")])
    expect(3, len(await _loaded(storage, "s") or ()), "A log goes on after a batch was refused")


async def _gaps(storage: SessionStorage) -> None:
    rule = "A log that does not begin with its first event is refused with SESSION_NOT_FOUND"
    expect(ErrorCode.SESSION_NOT_FOUND, await _refused(storage, _event(2, "two")), rule)
    expect(None, await _loaded(storage, "s"), "A refused beginning leaves no session behind")
    await storage.save_events("s", [_event(1, "one")])
    rule = "A gap behind what is stored is refused with STORAGE_ERROR"
    expect(ErrorCode.STORAGE_ERROR, await _refused(storage, _event(3, "three")), rule)
    expect(ErrorCode.STORAGE_ERROR, await _refused(storage, _event(2, "two"), _event(4, "four")), rule)
    expect((_event(1, "one"),), await _loaded(storage, "s"), "A batch with a gap is refused whole")
    await storage.delete_session("s")
    rule = "A session that was deleted is not begun again in its middle"
    expect(ErrorCode.SESSION_NOT_FOUND, await _refused(storage, _event(2, "two")), rule)
    expect(None, await _loaded(storage, "s"), rule)


async def _races(storage: SessionStorage) -> None:
    await storage.save_events("s", [_event(1, "one")])
    answers: list[ErrorCode | None] = []

    async def write(number: int) -> None:
        answers.append(await _refused(storage, _event(2, f"of writer {number}")))

    async with trio.open_nursery() as nursery:
        for number in range(8):
            nursery.start_soon(write, number)
    expect(1, answers.count(None), "Of several that write one number at once exactly one is told that it did")
    expect(7, answers.count(ErrorCode.SESSION_TAKEN), "The others are told that the session is taken")
    expect(2, len(await _loaded(storage, "s") or ()), "Of several that write one number at once one is stored")


async def _sessions_fail_alone(storage: SessionStorage) -> None:
    await storage.save_events("a", [_event(1, "one")])
    answers: dict[str, ErrorCode | None] = {}

    async def write(session_id: str, event: SessionEvent) -> None:
        answers[session_id] = await _refused(storage, event, session_id=session_id)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(write, "a", _event(1, "another"))
        for number in range(4):
            nursery.start_soon(write, f"b{number}", _event(1, "hi"))
    expect(ErrorCode.SESSION_TAKEN, answers.pop("a"), "A refused session is refused also beside others")
    expect({None}, set(answers.values()), "A refused session fails alone: what others write at that time is stored")


def _every_payload() -> list[SessionEventPayload]:
    unusual = "\U0001f34e e\u0301 \u202eabc\u0000 \ufeff \\ \" ' -- ; % _ \r\n\t 中文 日本語 한국어"
    return [
        User([TextBlock(unusual), ImageBlock("aGk=", "image/png")]),
        AssistantMessage(
            [ReasoningBlock("why", {"signature": unusual}), TextBlock("x")], provider_data={"a": [1, None]}
        ),
        AssistantMessage("half", MessageStatus.INCOMPLETE, "cancelled", "r1"),
        ToolCall(
            "c1", "write", {"path": unusual, "n": 2**53, "f": 0.1, "deep": [[{"a": True}]]}, None, "r1", {"id": 1}
        ),
        ToolCall("c2", "write", {}, "{broken"),
        ToolResult("c1", unusual, ToolOutcome.UNKNOWN),
        SystemMessage("note"),
        Metadata("title", unusual),
        Metadata(unusual, {"nested": [1, 2.5, None, unusual]}),
    ]


async def _round_trip(storage: SessionStorage) -> None:
    events = [_event(seq, payload) for seq, payload in enumerate(_every_payload(), 1)]
    await storage.save_events("会话 '1\"; --", events)
    expect(tuple(events), await _loaded(storage, "会话 '1\"; --"), "Every kind of event comes back as it was")


async def _large_values(storage: SessionStorage) -> None:
    events = [_event(1, "x" * 2**20), _event(2, ToolResult("c", "\U0001f34e" * 2**18)), _event(3, "中" * 2**20)]
    await storage.save_events("s", events)
    expect(tuple(events), await _loaded(storage, "s"), "Values of a mebibyte and more come back whole")


async def _summaries(storage: SessionStorage) -> None:
    await storage.save_events("s", [_event(1, Metadata("session_config", {})), _event(2, Metadata("title", "First"))])
    await storage.save_events("s", [_event(3, "hi"), _event(4, AssistantMessage("hello"))])
    await storage.save_events("s", [_event(5, Metadata("title", "Second")), _event(6, ToolResult("c", "r"))])
    expected = SessionSummary("s", "Second", moment(1), moment(6), 3)
    rule = (
        "A summary tells the newest title, the first and the last moment, and the number of messages without metadata"
    )
    expect([expected], list((await storage.list_sessions()).sessions), rule)
    await storage.save_events("bare", [_event(1, "hi")])
    expect([""], [s.title for s in await storage.find_session("bare")], "A session without a title has an empty one")


async def _walk(
    storage: SessionStorage, limit: int, between: Callable[[], Awaitable[object]] | None = None
) -> list[str]:
    seen: list[str] = []
    cursor = None
    while True:
        page = await storage.list_sessions(cursor, limit)
        if len(page.sessions) > limit:
            raise AssertionError(
                f"A page holds at most as many sessions as asked for - {len(page.sessions)} of {limit}"
            )
        seen += [summary.session_id for summary in page.sessions]
        if page.next_cursor is None:
            return seen
        if len(seen) > 1000:
            raise AssertionError("Following next_cursor ends - it gave more than a thousand sessions of thirty")
        cursor = page.next_cursor
        if between is not None:
            await between()


async def _fill(storage: SessionStorage, count: int) -> list[str]:
    # Two by two at the same moment: a cursor that is only a moment loses or repeats one.
    await trio.lowlevel.checkpoint()
    for number in range(count):
        await storage.save_events(f"s{number:02}", [_event(1, "hi", number // 2)])
    return [f"s{number:02}" for number in reversed(range(count))]


async def _paging(storage: SessionStorage) -> None:
    ids = await _fill(storage, 11)
    for limit in (1, 2, 3, 10, 11, 12):
        seen = await _walk(storage, limit)
        expect(sorted(ids), sorted(seen), f"Pages of {limit} hold each session exactly once")
        moments = [int(session_id[1:]) // 2 for session_id in seen]
        expect(sorted(moments, reverse=True), moments, "Pages go from the most recently updated to the oldest")
    page = await storage.list_sessions(None, 11)
    expect(None, page.next_cursor, "The last page has no next_cursor, also when it is exactly full")


async def _paging_under_change(storage: SessionStorage) -> None:
    ids = await _fill(storage, 30)
    touched: list[str] = []

    async def change() -> None:
        number = len(touched)
        touched.append(ids[5 * number])
        await storage.save_events(touched[-1], [_event(2, "again", 1000 + number)])
        await storage.save_events(f"new{number}", [_event(1, "hi", 2000 + number)])
        if number == 2:
            await storage.delete_session(ids[8])

    seen = await _walk(storage, 5, change)
    alone = [session_id for session_id in ids if session_id not in (*touched, ids[8])]
    kept = [session_id for session_id in seen if session_id in alone]
    expect(
        alone, kept, "Sessions that nobody touches are listed exactly once while others are added, updated and deleted"
    )
    expect(len(set(seen)), len(seen), "No session is listed twice while others are added, updated and deleted")


async def _find(storage: SessionStorage) -> None:
    titles = {"abc1": "Trip to Oslo", "abd2": "100% _wild_ 'quote' \"x\"", "xabc": "明天去奥斯陆旅行"}
    for second, (session_id, title) in enumerate(titles.items()):
        await storage.save_events(session_id, [_event(1, Metadata("title", title), second), _event(2, "hi", second)])

    async def found(query: str) -> list[str]:
        return [summary.session_id for summary in await storage.find_session(query)]

    expect(["abc1"], await found("abc"), "An id is found by its beginning and by no other part")
    expect(["abd2", "abc1"], await found("ab"), "The most recently updated comes first among those found")
    expect(["abc1"], await found("to Oslo"), "A title is found by any part of it")
    expect(["xabc"], await found("奥斯陆"), "A Chinese title is found by any part of it")
    for query in ("100%", "_wild_", "'quote'", '"x"'):
        expect(["abd2"], await found(query), f"Signs of a query language mean themselves, as in {query}")
    for query in ("%", "_", "' OR 1=1 --", "*", "zzz", "(", '"', "\\", "a%"):
        wanted = [session_id for session_id in reversed(titles) if query in titles[session_id]]
        expect(wanted, await found(query), f"Signs of a query language mean themselves, as in {query}")


async def _delete(storage: SessionStorage) -> None:
    for session_id in ("a", "b"):
        await storage.save_events(session_id, [_event(1, "old"), _event(2, Metadata("title", "T"))])
    await storage.delete_session("a")
    expect(None, await storage.load_session("a"), "A deleted session loads as None")
    expect(["b"], [s.session_id for s in (await storage.list_sessions()).sessions], "A deleted session is not listed")
    expect(["b"], [s.session_id for s in await storage.find_session("T")], "A deleted session is not found")
    await storage.save_events("a", [_event(1, "new")])
    expect((_event(1, "new"),), await _loaded(storage, "a"), "An id can be used again after its session was deleted")
    expect(2, len(await _loaded(storage, "b") or ()), "Deleting one session leaves the others alone")


async def _cut_saves(storage: SessionStorage) -> None:
    stored: tuple[SessionEvent, ...] = ()
    for checkpoints in CUTS:
        batch = tuple(_event(len(stored) + n, f"event {n} of a batch") for n in range(1, 61))
        finished = await cut(lambda batch=batch: storage.save_events("s", batch), checkpoints)  # type: ignore[misc]  # mypy cannot type the default
        found = await _loaded(storage, "s") or ()
        if found not in ((stored + batch,) if finished else (stored, stored + batch)):
            rule = f"A save that is cancelled after {checkpoints} checkpoints leaves all of its batch or nothing"
            raise AssertionError(f"{rule} - {len(found) - len(stored)} of {len(batch)} events are there")
        await storage.save_events("s", batch)
        stored += batch
        expect(stored, await _loaded(storage, "s"), "A batch that was cut and saved again is there exactly once")
    summary = (await storage.list_sessions()).sessions[0]
    expect(len(stored), summary.message_count, "The count of messages agrees with the events after cancelled saves")


async def _cut_others(storage: SessionStorage) -> None:
    events = tuple(_event(n, f"event {n}") for n in range(1, 61))
    await storage.save_events("s", events)
    for checkpoints in CUTS:
        await storage.save_events("s", events)
        await cut(lambda: storage.load_session("s"), checkpoints)
        await cut(lambda: storage.list_sessions(), checkpoints)
        expect(events, await _loaded(storage, "s"), "A cancelled reading changes nothing")
        await cut(lambda: storage.delete_session("s"), checkpoints)
        found = await _loaded(storage, "s")
        if found not in (None, events):
            raise AssertionError(
                f"A cancelled delete removes all of a session or nothing - {len(found or ())} are left"
            )


async def _immutable_input(storage: SessionStorage) -> None:
    batch = [_event(1, "one")]
    await storage.save_events("s", batch)
    batch.append(_event(2, "two"))
    expect((_event(1, "one"),), await _loaded(storage, "s"), "A storage keeps what it was given, not the caller's list")


_CHECKS: Sequence[_Check] = (
    _unknown_sessions,
    _order,
    _retries,
    _other_writers,
    _gaps,
    _races,
    _sessions_fail_alone,
    _round_trip,
    _large_values,
    _summaries,
    _paging,
    _paging_under_change,
    _find,
    _delete,
    _cut_saves,
    _cut_others,
    _immutable_input,
)

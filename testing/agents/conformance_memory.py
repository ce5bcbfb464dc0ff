"""Conformance of memory storages: everything that semantics 12 promises of them, as one coroutine to call from a test.

    async def test_my_memories(tmp_path):
        numbers = itertools.count()
        await check_memory_storage(lambda: MyMemories(tmp_path / str(next(numbers))))

Uses nothing but the port. Each check gets a storage of its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias

import trio

from ...core.ports.protocols import MemoryStorage
from ...messages.records import Memory
from .conformance_support import CUTS, cut, expect, fresh, moment

MemoryStorageFactory: TypeAlias = Callable[[], MemoryStorage | AbstractAsyncContextManager[MemoryStorage]]
_Check: TypeAlias = Callable[[MemoryStorage], Awaitable[None]]


async def check_memory_storage(factory: MemoryStorageFactory) -> None:
    """Check that a memory storage keeps the contract.

    Args:
        factory: gives a new, empty storage at each call, or an async context manager of one.

    Raises:
        AssertionError: one sentence on the first promise that is not kept.
    """
    await trio.lowlevel.checkpoint()
    for check in _CHECKS:
        async with fresh(factory) as storage:
            await check(storage)


def _memory(id: str, content: str, second: int = 0, namespace: str = "n", **more: object) -> Memory:
    fields = {"source": "s1", "tags": ("fact",), "created_at": moment(second), "updated_at": moment(second), **more}
    return Memory(id, namespace, content, **fields)  # type: ignore[arg-type]  # the fields' types are those of Memory


async def _ids(storage: MemoryStorage, query: str, limit: int = 50, namespace: str = "n") -> list[str]:
    return [memory.id for memory in await storage.search(namespace, query, limit)]


async def _empty(storage: MemoryStorage) -> None:
    expect([], await _ids(storage, ""), "An empty storage has nothing for an empty query")
    expect([], await _ids(storage, "apple"), "An empty storage has nothing for any query")
    await storage.delete("n", "nobody")


async def _round_trip(storage: MemoryStorage) -> None:
    content = "\U0001f34e e\u0301 \u202eabc \\ \" ' -- ; % _ \r\n\t 中文 日本語 한국어"
    kept = _memory(
        "id '1\"; --", content, 3, "名字", source="'; --", tags=("b", "a", "'x' \"y\""), updated_at=moment(9)
    )
    await storage.save(kept)
    expect([kept], list(await storage.search("名字", "", 5)), "A memory comes back as it was")
    large = _memory("large", "apple " * 200_000, 20, "名字")
    await storage.save(large)
    expect([large], list(await storage.search("名字", "apple", 5)), "A memory of a mebibyte comes back whole")


async def _newest_first(storage: MemoryStorage) -> None:
    for second in (3, 1, 4, 0, 2):
        await storage.save(_memory(f"m{second}", f"fact number {second}", second))
    newest = ["m4", "m3", "m2", "m1", "m0"]
    expect(newest, await _ids(storage, ""), "An empty query gives the newest first")
    expect(newest[:2], await _ids(storage, "", 2), "An empty query gives at most the limit")
    expect(newest, await _ids(storage, "  \n "), "A query of white space counts as empty")
    expect(2, len(await _ids(storage, "fact", 2)), "A search gives at most the limit")
    expect([], await _ids(storage, "fact", 0), "A limit of zero gives nothing")


async def _relevance(storage: MemoryStorage) -> None:
    await storage.save(_memory("one", "The user owns a bicycle", 2))
    await storage.save(_memory("both", "The user rides a bicycle to the office", 1))
    await storage.save(_memory("none", "Likes tea", 3))
    found = await _ids(storage, "bicycle office")
    expect(["both", "one"], found, "What shares more words with the query comes first, what shares none is left out")
    found = await _ids(storage, "how far is it by bicycle?")
    expect(["both", "one"], sorted(found), "One shared word is enough: the query is what a user wrote")


async def _dense_scripts(storage: MemoryStorage) -> None:
    await storage.save(_memory("zh", "用户喜欢吃苹果和香蕉", 1))
    await storage.save(_memory("ja", "ユーザーは猫を飼っている。東京に住む", 2))
    await storage.save(_memory("ko", "사용자는 서울에서 일한다", 3))
    for id, queries in {
        "zh": ("苹果", "你还记得我喜欢什么水果吗 苹果", "蕉"),
        "ja": ("猫", "東京", "東京の天気は"),
        "ko": ("서울", "서울 날씨"),
    }.items():
        for query in queries:
            expect([id], (await _ids(storage, query))[:1], f"Text without spaces is found by its parts, as by {query}")
    expect([], await _ids(storage, "橘子"), "Chinese that a memory does not hold does not find it")


async def _signs(storage: MemoryStorage) -> None:
    await storage.save(_memory("a", "apple pie", 1))
    await storage.save(_memory("b", "100% of C++ \"x\" - 'quote' (NOR)", 2))
    harmless = ('"', "'", "*", "(", ")", "%", "_", "\\", "-", ":", "^", "+", "NEAR(", "AND", "OR NOT", "content:", "\0")
    for query in (*harmless, "'; DROP TABLE memories; --", '" OR ""="', "apple*) OR (x", "{a b}: c", "a" * 10_000):
        found = await _ids(storage, query)
        if not set(found) <= {"a", "b"}:
            raise AssertionError(f"Signs of a query language are harmless - {query[:40]!r} found {found}")
    expect(["a"], await _ids(storage, 'apple" AND ('), "Signs of a query language do not keep words from being found")
    expect(2, len(await _ids(storage, "")), "No query changes what is stored")
    book = " ".join(f"word{number}" for number in range(3_000))
    expect([], await _ids(storage, book), "A query of thousands of words is not an error")


async def _namespaces(storage: MemoryStorage) -> None:
    mine, yours = _memory("m", "apple one", 1, "mine"), _memory("m", "apple two", 2, "yours")
    await storage.save(mine)
    await storage.save(yours)
    for query in ("", "apple", "two"):
        wanted = [] if query == "two" else [mine]
        expect(wanted, list(await storage.search("mine", query, 5)), "A search sees its own namespace alone")
    expect([], await _ids(storage, "apple", namespace="Mine"), "Namespaces that differ in case are different")
    await storage.delete("mine", "m")
    expect([], await _ids(storage, "", namespace="mine"), "A deleted memory is gone")
    expect(
        [yours], list(await storage.search("yours", "apple", 5)), "The same id in another namespace is another memory"
    )


async def _upsert(storage: MemoryStorage) -> None:
    first = _memory("m", "likes apples", 1)
    await storage.save(first)
    await storage.save(_memory("m", "likes apples", 5, source="s2", tags=("other",)))
    same = _memory("m", "likes apples", 1, updated_at=moment(5))
    expect(
        [same], list(await storage.search("n", "", 5)), "The same content again changes the time of update and no more"
    )
    await storage.save(_memory("m", "likes pears", 9, source="s3", tags=("new",)))
    changed = _memory("m", "likes pears", 1, source="s3", tags=("new",), updated_at=moment(9))
    expect(
        [changed],
        list(await storage.search("n", "", 5)),
        "Other content replaces the memory but not when it was created",
    )
    expect([], await _ids(storage, "apples"), "Replaced content is not found any more")
    expect(["m"], await _ids(storage, "pears"), "New content is found")


async def _delete(storage: MemoryStorage) -> None:
    await storage.save(_memory("m", "likes apples", 1))
    await storage.save(_memory("k", "grows apples", 2))
    await storage.delete("n", "m")
    expect(["k"], await _ids(storage, "apples"), "A deleted memory is not found")
    await storage.save(_memory("m", "likes plums", 7))
    found = list(await storage.search("n", "plums", 5))
    expect([_memory("m", "likes plums", 7)], found, "A memory saved after its deletion is a new one")


async def _cut_saves(storage: MemoryStorage) -> None:
    old = _memory("m", "old apples", 1)
    await storage.save(old)
    for checkpoints in CUTS:
        await storage.save(old)
        new = _memory("m", f"new pears {checkpoints}", 1, updated_at=moment(2 + checkpoints))
        finished = await cut(lambda new=new: storage.save(new), checkpoints)  # type: ignore[misc]  # mypy cannot type the default
        found = list(await storage.search("n", "", 5))
        if found not in (([new],) if finished else ([old], [new])):
            raise AssertionError(f"A cancelled save leaves the old memory or the new one - got {found}")
        word = "apples" if found == [old] else "pears"
        expect(["m"], await _ids(storage, word), "After a cancelled save a memory is found by what it holds")
        await storage.delete("n", "m")


_CHECKS: Sequence[_Check] = (
    _empty,
    _round_trip,
    _newest_first,
    _relevance,
    _dense_scripts,
    _signs,
    _namespaces,
    _upsert,
    _delete,
    _cut_saves,
)

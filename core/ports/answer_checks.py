"""What a port answered, validated at the boundary (semantics 7, 12).

    events_of(stored)               # a tuple of events, every field of its own type; or TypeError
    memories_of(found, "user")      # those that are sound and of this namespace, and what is wrong with the others

Pure. What an actor trusts later must be what the port promises.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...messages.plain import NotPlain, plain_record
from ...messages.records import Memory, SessionEvent


def _items(answer: object, kind: type[object]) -> tuple[object, ...]:
    if not isinstance(answer, Iterable):
        raise TypeError(f"the storage answered a {type(answer).__name__}; return a sequence of {kind.__name__}")
    return tuple(answer)


def events_of(answer: object) -> tuple[SessionEvent, ...]:
    """``answer`` as the events that it must hold.

    Raises:
        TypeError: it is not a collection, or one of its items, or a field of one, is of another type.
    """
    try:
        return tuple(plain_record(item, SessionEvent) for item in _items(answer, SessionEvent))
    except NotPlain as problem:
        raise TypeError(f"the storage answered an event that {problem}; return a sequence of SessionEvent") from None


def memories_of(answer: object, namespace: str) -> tuple[tuple[Memory, ...], tuple[str, ...]]:
    """The memories of ``answer`` that are sound and of this namespace, and what is wrong with the others.

    Raises:
        TypeError: it is not a collection, or holds something else.
    """
    sound: list[Memory] = []
    problems: list[str] = []
    for item in _items(answer, Memory):
        if not isinstance(item, Memory):
            raise TypeError(f"the storage answered with a {type(item).__name__} in it; return a sequence of Memory")
        try:
            memory = plain_record(item, Memory)
        except NotPlain as problem:
            problems.append(f"a memory that {problem}")
            continue
        if memory.namespace == namespace:
            sound.append(memory)
        else:
            problems.append(f"memory {memory.id!r} of namespace {memory.namespace!r}, asked for those of {namespace!r}")
    return tuple(sound), tuple(dict.fromkeys(problems))

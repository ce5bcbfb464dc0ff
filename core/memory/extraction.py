"""What is remembered across sessions: the question to the model, its answer, what is saved (semantics 12). Pure.

    text = extraction_text(messages, shown, budget)             # asks the model
    answer = parse_answer(reply)                                # tolerant: prose, fences, broken items
    for memory in decide(answer.items, shown, namespace, new_id, now):
        await storage.save(memory)

A model can only change a memory that it was shown in this namespace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

import attrs

from ...messages.content import FileBlock, TextBlock, UserInput
from ...messages.history import Message
from ...messages.records import Memory
from ..compaction.clipping import shrink_items
from ..compaction.compaction_texts import CONVERSATION_TAG
from ..compaction.summaries import render_within
from ..history.rendering import render
from ..history.tokens import TextCounter, estimate_text, message_tokens
from ..prompts.prompt_texts import DEFAULT_TEXTS, PromptTexts
from ..prompts.tags import enclose
from .extraction_answer import MAX_ITEMS
from .extraction_answer import Extraction as Extraction
from .extraction_answer import MemoryItem as MemoryItem
from .extraction_answer import parse_answer as parse_answer

_QUERY_CHARACTERS = 1_000
_KNOWN_TAG = "known_notes"


def query_text(user_input: UserInput) -> str:
    """What to search memories by: the user's words and the names of files, at most a thousand characters."""
    parts = (_searchable(block) for block in user_input.content)
    return " ".join(" ".join(parts).split())[:_QUERY_CHARACTERS]


def _searchable(block: object) -> str:
    match block:
        case TextBlock(text=text) | FileBlock(name=text):
            return text
        case _:
            return ""


def extraction_prompt(texts: PromptTexts = DEFAULT_TEXTS) -> str:
    """The system prompt of an extraction."""
    return f"{texts.extraction}\n\n{texts.consolidation}"


def extraction_text(
    messages: Sequence[Message],
    shown: Sequence[Memory],
    budget: int,
    count: TextCounter = estimate_text,
    texts: PromptTexts = DEFAULT_TEXTS,
) -> str:
    """The message of an extraction: the known memories with their ids, and the conversation, in ``budget`` tokens.

    Long tool results are clipped before anything that was said is left out.
    """
    known = enclose(_KNOWN_TAG, "\n".join(map(_known, shown))) if shown else texts.no_known_memories
    frame = texts.extraction_input.format(limit=MAX_ITEMS, known=known, conversation=enclose(CONVERSATION_TAG, ""))
    conversation = enclose(CONVERSATION_TAG, _conversation(messages, max(1, budget - count(frame)), count))
    return texts.extraction_input.format(limit=MAX_ITEMS, known=known, conversation=conversation)


def _known(memory: Memory) -> str:
    return enclose("memory", memory.content, id=memory.id, tags=", ".join(memory.tags))


def _conversation(messages: Sequence[Message], room: int, count: TextCounter) -> str:
    # The usual case, and rendering twice would cost more than looking.
    if count(whole := render(messages)) <= room:
        return whole
    return render_within(shrink_items(messages, room, lambda message: message_tokens(message, count)), room, count)


def decide(
    items: Iterable[MemoryItem],
    shown: Iterable[Memory],
    namespace: str,
    new_id: Callable[[], str],
    now: datetime,
    source: str = "",
) -> list[Memory]:
    """What to save of ``items``, each memory once (semantics 12).

    An item with the id of a memory shown in this namespace replaces its content, and ``created_at`` is kept. Any other
    id is ignored and the memory is new. Content that is known already only gets a new time stamp.
    """
    # Only what was shown: an id that a conversation talks the model into naming must not overwrite another memory.
    known = {memory.id: memory for memory in shown if memory.namespace == namespace}
    saved: dict[str, Memory] = {}
    for item in items:
        memory = _decide_one(item, {**known, **saved}, lambda: Memory(new_id(), namespace, "", created_at=now))
        # Equal content only gets a new time: a model that repeats a note must not change whose and whence it is.
        if memory.content != item.content:
            memory = attrs.evolve(memory, content=item.content, source=source, tags=item.tags)
        saved[memory.id] = attrs.evolve(memory, updated_at=now)
    return list(saved.values())


def _decide_one(item: MemoryItem, known: dict[str, Memory], new: Callable[[], Memory]) -> Memory:
    same = next((memory for memory in known.values() if memory.content == item.content), None)
    return same or known.get(item.id or "") or new()

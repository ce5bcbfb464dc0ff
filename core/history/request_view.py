"""What one kind of model is sent of a history: notes, user-role notes, replaced content (semantics 5, 6, 6.1).

Derived message by message from a sendable history that only grows, and never stored: live and after resume the same
history gives the same request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeGuard

import attrs

from ...messages.content import ContentBlock, FileBlock, ImageBlock, TextBlock
from ...messages.history import (
    AssistantMessage,
    Message,
    MessageStatus,
    SystemMessage,
    ToolCall,
    ToolResult,
    UserMessage,
)
from ..config import Notices
from ..ports.protocols import ModelCapabilities
from .list_view import ListView

REFUSED_CONTENT = "[Content removed: the model's provider refused it]"
UNSEEN_IMAGE = "[Image left out: this model takes no images]"


@attrs.define(eq=False)
class Derivation:
    """The messages of requests to models of these capabilities.

    ``refused`` messages are known by identity, and so are the last ones of turns that said nothing (``unanswered``).
    """

    _notices: Notices
    _capabilities: ModelCapabilities
    _refused: Mapping[int, Message]
    _unanswered: Mapping[int, tuple[Message, str]]
    _items: list[Message] = attrs.field(factory=list, init=False)
    _taken: int = attrs.field(default=0, init=False)
    _interrupted: AssistantMessage | None = attrs.field(default=None, init=False)  # its note is still due
    _noted_last: AssistantMessage | None = attrs.field(default=None, init=False)  # its note is the last item

    def view(self, source: list[Message]) -> Sequence[Message]:
        """What ``source`` makes of a request now. O(1) for each message that is new in it."""
        if self._taken < len(source):
            # From the beginning, which is O(history), but only when a result comes after a note was derived: once per
            # stop.
            if self._noted_last is not None and _belongs(source[self._taken], self._noted_last):
                self._begin_anew()  # more of an interrupted response came after all: its note moves behind it
            for index in range(self._taken, len(source)):
                self._answer(source[index - 1] if index else None, source[index])
                self._take(source[index])
            self._taken = len(source)
            self._noted_last = self._interrupted
            self._note()
        # A view, so that what a provider keeps of an earlier request never changes under it.
        return ListView(self._items)

    def _begin_anew(self) -> None:
        self._items, self._taken, self._interrupted = [], 0, None

    def _answer(self, before: Message | None, message: Message) -> None:
        """The note of a turn that said nothing, once the next turn has begun: no user message follows another."""
        if id(before) in self._unanswered and isinstance(message, UserMessage | SystemMessage):
            _, cause = self._unanswered[id(before)]
            self._items.append(AssistantMessage((TextBlock(_note_of(cause, self._notices)),)))

    def _take(self, message: Message) -> None:
        if self._interrupted is not None and not _belongs(message, self._interrupted):
            self._note()
        self._items.append(self._derived(message))
        if isinstance(message, AssistantMessage) and message.status is MessageStatus.INCOMPLETE:
            self._interrupted = message

    def _note(self) -> None:
        message, self._interrupted = self._interrupted, None
        if message is not None:
            self._items.append(self._derived(SystemMessage(note_of(message, self._notices))))

    def _derived(self, message: Message) -> Message:
        match message:
            # As the user's words: those models refuse system messages, and leaving a note out would hide what happened.
            case SystemMessage() if not self._capabilities.system_messages:
                return UserMessage(message.content)
            case UserMessage() if id(message) in self._refused:
                return attrs.evolve(message, content=_without_refused(message.content))
            case UserMessage() if not self._capabilities.vision and any(map(_is_image, message.content)):
                return attrs.evolve(message, content=_replaced(message.content, _is_image, UNSEEN_IMAGE))
            case _:
                return message


def note_of(message: AssistantMessage, notices: Notices) -> str:
    """The note that follows an incomplete message. One without a cause is a cancelled one of an older log."""
    return _note_of(message.cause, notices)


def _note_of(cause: str | None, notices: Notices) -> str:
    return notices.failed_message if cause in ("failed", "crashed") else notices.interrupted_message


def holds_attachment(message: Message) -> TypeGuard[UserMessage]:
    """Whether the user's message holds an image or a file."""
    return isinstance(message, UserMessage) and any(map(is_attachment, message.content))


def is_attachment(block: ContentBlock) -> bool:
    """Whether a provider may refuse this block: it is not plain text of the user's."""
    return isinstance(block, ImageBlock | FileBlock)


def _is_image(block: ContentBlock) -> bool:
    return isinstance(block, ImageBlock)


def _belongs(message: Message, assistant: AssistantMessage) -> bool:
    """Whether ``message``, coming after ``assistant`` and its calls, is a part of the same response."""
    if isinstance(message, ToolCall):
        return message.response_id == assistant.response_id
    return isinstance(message, ToolResult)


def _without_refused(content: tuple[ContentBlock, ...]) -> tuple[ContentBlock, ...]:
    if any(map(is_attachment, content)):
        return _replaced(content, is_attachment, REFUSED_CONTENT)
    return (TextBlock(REFUSED_CONTENT),)


def _replaced(
    content: tuple[ContentBlock, ...], unwanted: Callable[[ContentBlock], bool], note: str
) -> tuple[ContentBlock, ...]:
    return tuple(TextBlock(note) if unwanted(block) else block for block in content)

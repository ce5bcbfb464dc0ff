"""What a message is made of: text, images, files read by the host, reasoning (semantics 1, 6).

UserInput("What is on this picture?")
UserInput([TextBlock("And this?"), ImageBlock(data=base64_text, media_type="image/png")], skills=["describe"])
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import attrs

from .jsonvalue import freeze


@attrs.frozen
class TextBlock:
    """Plain text."""

    text: str
    """The text, of any length. A lone surrogate is replaced by U+FFFD when it enters the runtime."""


@attrs.frozen
class ImageBlock:
    """An image as base64 text (no data URI). PNG, JPEG, GIF or WebP, at most 20 MiB decoded."""

    data: str = attrs.field(repr=lambda data: f"<{len(data)} base64 characters>")
    """Base64 of the file's bytes, without a ``data:`` prefix; at most 20 MiB decoded. ``repr`` shows its length."""
    media_type: str
    """``image/png``, ``image/jpeg``, ``image/gif`` or ``image/webp``. It must agree with the bytes
    (``INVALID_INPUT``).
    """


@attrs.frozen
class FileBlock:
    """The text of a file that the host has read. The runtime never opens files."""

    name: str
    """The name that the model sees, for example ``notes.md``. The runtime opens no path of this name."""
    text: str
    """The content, already decoded by the host."""
    media_type: str = "text/plain"
    """MIME type of ``text``, told to providers that have a place for it."""


@attrs.frozen
class ReasoningBlock:
    """Reasoning text that a model showed; ``provider_data`` is the provider's own and handed back unread."""

    text: str
    """The reasoning that the model showed; empty where a provider hands out only an encrypted form."""
    provider_data: Any = attrs.field(default=None, converter=freeze)
    """JSON data that the provider needs back (a signature, an item id), never read by the runtime. None: nothing."""


ContentBlock: TypeAlias = TextBlock | ImageBlock | FileBlock | ReasoningBlock
Content: TypeAlias = str | ContentBlock | Iterable[ContentBlock]


# Not plain tuple: mypy cannot see through a generic converter, and a string is not a collection of letters.
def texts(values: str | Iterable[str]) -> tuple[str, ...]:
    """Several texts as a tuple; a single string is one text."""
    return (values,) if isinstance(values, str) else tuple(values)


def blocks(content: Content) -> tuple[ContentBlock, ...]:
    """Any accepted form of content as a tuple of blocks. A plain string is one text block, the empty one none."""
    # Before anything else: a string is also an iterable, of its characters.
    if isinstance(content, str):
        return (TextBlock(content),) if content else ()
    if isinstance(content, ContentBlock):
        return (content,)
    return tuple(content)


def text_of(content: Iterable[ContentBlock]) -> str:
    """The plain text among blocks, joined. Reasoning, files and images are left out."""
    # Joined without a separator: providers stream text in blocks that break anywhere, also within a word.
    return "".join(block.text for block in content if isinstance(block, TextBlock))


@attrs.frozen
class UserInput:
    """One message of the user: content and the skills named explicitly (semantics 11)."""

    content: tuple[ContentBlock, ...] = attrs.field(converter=blocks)
    """Blocks in the order of the message. A plain string becomes one `TextBlock`; empty content is refused
    (``INVALID_INPUT``).
    """
    skills: tuple[str, ...] = attrs.field(default=(), converter=texts)
    """Names of skills to apply once, in this turn, besides those that the text triggers by ``/name`` (semantics 11)."""

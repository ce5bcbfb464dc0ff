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


@attrs.frozen
class ImageBlock:
    """An image as base64 text (no data URI). PNG, JPEG, GIF or WebP, at most 20 MiB decoded."""

    data: str = attrs.field(repr=lambda data: f"<{len(data)} base64 characters>")
    media_type: str


@attrs.frozen
class FileBlock:
    """The text of a file that the host has read. The runtime never opens files."""

    name: str
    text: str
    media_type: str = "text/plain"


@attrs.frozen
class ReasoningBlock:
    """Reasoning text that a model showed; ``provider_data`` is the provider's own and handed back unread."""

    text: str
    provider_data: Any = attrs.field(default=None, converter=freeze)


ContentBlock: TypeAlias = TextBlock | ImageBlock | FileBlock | ReasoningBlock
Content: TypeAlias = str | ContentBlock | Iterable[ContentBlock]


# Not plain tuple: mypy cannot see through a generic converter, and a string is no collection of letters.
def texts(values: str | Iterable[str]) -> tuple[str, ...]:
    """Several texts as a tuple; a single string is one text."""
    return (values,) if isinstance(values, str) else tuple(values)


def blocks(content: Content) -> tuple[ContentBlock, ...]:
    """Any accepted form of content as a tuple of blocks. A plain string is one text block, the empty one none."""
    if isinstance(content, str):
        return (TextBlock(content),) if content else ()
    if isinstance(content, ContentBlock):
        return (content,)
    return tuple(content)


def text_of(content: Iterable[ContentBlock]) -> str:
    """The plain text among blocks, joined. Reasoning, files and images are left out."""
    return "".join(block.text for block in content if isinstance(block, TextBlock))


@attrs.frozen
class UserInput:
    """One message of the user: content and the skills named explicitly (semantics 11)."""

    content: tuple[ContentBlock, ...] = attrs.field(converter=blocks)
    skills: tuple[str, ...] = attrs.field(default=(), converter=texts)

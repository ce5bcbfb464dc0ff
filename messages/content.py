"""What a message is made of: text, images, files read by the host, reasoning (semantics 1, 6).

UserInput("What is on this picture?")
UserInput([TextBlock("And this?"), ImageBlock(data=base64_text, media_type="image/png")], skills=["describe"])
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Iterable
from inspect import iscoroutinefunction
from typing import Any, Protocol, TypeAlias

import attrs

from .errors import InvalidInput
from .jsonvalue import freeze

MAX_IMAGE_BYTES = 20 * 1_048_576
IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
IMAGE_HEAD = 18
"""Bytes that `image_type` has to see."""


@attrs.frozen
class TextBlock:
    """Plain text."""

    text: str
    """The text, of any length. A lone surrogate is replaced by U+FFFD when it enters the runtime."""


def image_type(head: bytes) -> str | None:
    """The media type that the first bytes of a file tell, or None."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return None


def check_image_size(size: int) -> None:
    """Refuse an image of more bytes than may be sent.

    Raises:
        InvalidInput: it is larger than 20 MiB.
    """
    if size > MAX_IMAGE_BYTES:
        raise InvalidInput(f"an image has {size} bytes and may have {MAX_IMAGE_BYTES} (20 MiB); make it smaller")


class AsyncPath(Protocol):
    """What `ImageBlock.from_path` reads: a `trio.Path` is one."""

    async def stat(self) -> os.stat_result:
        """Size and more."""
        raise NotImplementedError

    async def read_bytes(self) -> bytes:
        """The whole content."""
        raise NotImplementedError


@attrs.frozen
class ImageBlock:
    """An image as base64 text (no data URI). PNG, JPEG, GIF or WebP, at most 20 MiB decoded."""

    data: str = attrs.field(repr=lambda data: f"<{len(data)} base64 characters>")
    """Base64 of the file's bytes, without a ``data:`` prefix; at most 20 MiB decoded. ``repr`` shows its length."""
    media_type: str
    """``image/png``, ``image/jpeg``, ``image/gif`` or ``image/webp``. It must agree with the bytes
    (``INVALID_INPUT``).
    """

    @classmethod
    def from_bytes(cls, data: bytes, media_type: str | None = None) -> ImageBlock:
        """The image of these bytes, the content of a file. Sync, no I/O.

        Args:
            media_type: None: it is told by the first bytes.

        Raises:
            InvalidInput: it is not bytes, is larger than 20 MiB, or is in none of the four formats.
        """
        if not isinstance(data, bytes | bytearray | memoryview):
            raise InvalidInput(f"an image of a {type(data).__name__}; pass the bytes of a PNG, JPEG, GIF or WebP file")
        size = memoryview(data).nbytes
        check_image_size(size)
        found = image_type(bytes(data[:IMAGE_HEAD]))
        if found is None:
            raise InvalidInput("the bytes are of no known format; pass those of a PNG, JPEG, GIF or WebP file")
        if media_type not in (None, found):
            raise InvalidInput(f"the bytes are {found} and media_type says {media_type!r}; leave it out")
        return cls(b64encode(data).decode("ascii"), found)

    @classmethod
    async def from_path(cls, path: AsyncPath) -> ImageBlock:
        """The image in a file, read by the path itself: a `trio.Path`, or another whose methods are async.

        Synopsis::

            picture = await ImageBlock.from_path(trio.Path("cat.png"))
            turn = await session.send_message([TextBlock("What is this?"), picture])

        Cancellation: as of the path. Nothing is read of a file that is too large.

        Raises:
            InvalidInput: the path is not async, or the file is not one of the four formats or larger than 20 MiB.
            OSError: what the path raises.
        """
        if not iscoroutinefunction(getattr(path, "read_bytes", None)):
            raise InvalidInput(f"from_path got a {type(path).__name__}; pass trio.Path(...), which blocks nobody")
        check_image_size((await path.stat()).st_size)
        return cls.from_bytes(await path.read_bytes())


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

"""Files that go with a message: ``youyou chat -a picture.png``."""

from __future__ import annotations

import base64
import mimetypes
from collections.abc import Sequence
from pathlib import Path

from ...messages.content import ContentBlock, FileBlock, ImageBlock, image_type
from ..base.exits import UsageError


def attached(paths: Sequence[str]) -> list[ContentBlock]:
    """The files as blocks of a message. Blocking; done once, before anything runs.

    Raises:
        UsageError: one cannot be read, or is neither an image that models take nor text.
    """
    return [_block(Path(path)) for path in paths]


def _block(path: Path) -> ContentBlock:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot attach {path}: {error.strerror}") from error
    # By content: a name may say anything, and a provider refuses an image whose type is another.
    if image := image_type(data):
        return ImageBlock(base64.b64encode(data).decode(), image)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError(
            f"cannot attach {path}: it is neither text in UTF-8 nor an image (PNG, JPEG, GIF or WebP)"
        ) from None
    return FileBlock(path.name, text, mimetypes.guess_type(path.name)[0] or "text/plain")

"""Images made of bytes and of files."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
import trio
from youyou import ImageBlock, InvalidInput
from youyou.messages.content import MAX_IMAGE_BYTES

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


@pytest.mark.parametrize(
    ("data", "media_type"),
    [
        (PNG, "image/png"),
        (bytearray(PNG), "image/png"),
        (memoryview(PNG), "image/png"),
        (b"\xff\xd8\xff\xe0" + bytes(20), "image/jpeg"),
        (b"GIF87a" + bytes(20), "image/gif"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
    ],
)
def test_the_media_type_is_told_by_the_bytes(data, media_type):
    """And the data are the base64 of all of them."""
    image = ImageBlock.from_bytes(data)

    assert (media_type, bytes(data)) == (image.media_type, base64.b64decode(image.data))


@pytest.mark.parametrize(
    ("data", "media_type", "words"),
    [
        ("iVBORw0KGgo=", None, "an image of a str; pass the bytes"),
        (Path("cat.png"), None, "pass the bytes"),
        (b"", None, "no known format"),
        (b"<svg/>", None, "no known format"),
        (PNG, "image/jpeg", "the bytes are image/png"),
        (PNG.ljust(MAX_IMAGE_BYTES + 1), None, "20 MiB"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_is_not_an_image_is_refused_in_words(data, media_type, words):
    """Before it is sent."""
    with pytest.raises(InvalidInput, match=words):
        ImageBlock.from_bytes(data, media_type)


async def test_an_image_is_read_by_an_async_path(tmp_path):
    """The runtime does no I/O: the path does."""
    (tmp_path / "cat.png").write_bytes(PNG)

    assert ImageBlock.from_bytes(PNG) == await ImageBlock.from_path(trio.Path(tmp_path / "cat.png"))


async def test_a_file_that_is_too_large_is_not_read(tmp_path):
    """Its size is asked for first."""
    with (tmp_path / "cat.png").open("wb") as file:
        file.truncate(MAX_IMAGE_BYTES + 1)

    class Unread:
        """A path that must not be read."""

        def __init__(self, path):
            self.stat = trio.Path(path).stat

        async def read_bytes(self):
            raise AssertionError("it was read")

    with pytest.raises(InvalidInput, match="20 MiB"):
        await ImageBlock.from_path(Unread(tmp_path / "cat.png"))


@pytest.mark.parametrize("path", ["cat.png", Path("cat.png"), None])
async def test_a_path_that_blocks_is_refused(path):
    """The answer says what to write."""
    with pytest.raises(InvalidInput, match=r"pass trio\.Path\(\.\.\.\)"):
        await ImageBlock.from_path(path)


async def test_a_missing_file_is_the_paths_own_error(tmp_path):
    """With the name in it."""
    with pytest.raises(FileNotFoundError, match=r"cat\.png"):
        await ImageBlock.from_path(trio.Path(tmp_path / "cat.png"))

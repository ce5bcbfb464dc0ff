"""Images and other content are judged before anything is stored; what is refused leaves no trace (semantics 6)."""

from __future__ import annotations

import base64
import itertools

import attrs
import pytest
from youyou import (
    AgentError,
    ContentNotSupported,
    FileBlock,
    ImageBlock,
    InvalidInput,
    ReasoningBlock,
    TextBlock,
    TurnStatus,
    UserInput,
)
from youyou.testing.agents.scripted import SCRIPTED_MODEL, StrictProvider, say

MEBIBYTES_20 = 20 * 1_048_576
FORMATS = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff\xe0",
    "image/gif": b"GIF89a",
    "image/webp": b"RIFF\x00\x00\x00\x00WEBP",
}


def image(data, media_type="image/png"):
    return ImageBlock(base64.b64encode(data).decode(), media_type)


def of_size(size):
    head = FORMATS["image/png"]
    return image(head + bytes(size - len(head)))


async def refused(stage, content, error):
    """The input is refused; nothing of it is in history, store or events; the session takes the next message."""
    stage.says(say("next"))
    async with stage.session() as session:
        with pytest.raises(error) as caught:
            await session.send_message(content)
        assert list(session.history) == []
        result = await (await session.send_message("again")).result()
        assert (result.status, result.text) == (TurnStatus.COMPLETED, "next")
    assert stage.stored() == ["user: again", "assistant: next"]
    assert len(stage.facts("turn_started")) == 1
    return caught.value


@pytest.mark.parametrize("media_type", FORMATS)
async def test_the_four_formats_reach_the_model(media_type, stage, autojump_clock):
    """PNG, JPEG, GIF and WebP are stored and sent as they are."""
    picture = image(FORMATS[media_type] + b"...", media_type)
    stage.says(say("nice"))
    async with stage.session() as session:
        await (await session.send_message([TextBlock("see"), picture])).result()

    assert stage.provider.requests[0].messages[0].content == (TextBlock("see"), picture)


@pytest.mark.parametrize(("says", "holds"), list(itertools.permutations(FORMATS, 2)))
async def test_a_declared_type_must_fit_the_data(says, holds, stage, autojump_clock):
    """Each format declared over the bytes of each other one is refused, and the message names both."""
    error = await refused(stage, [image(FORMATS[holds] + b"...", says)], InvalidInput)

    assert says in error.message
    assert holds in error.message


@pytest.mark.parametrize(
    ("block", "advice"),
    [
        (ImageBlock("iVBORw0KGgo*", "image/png"), "base64.b64encode"),
        (ImageBlock("iVBORw0KGg", "image/png"), "base64.b64encode"),
        (ImageBlock("data:image/png;base64,iVBORw0KGgoAAAAA", "image/png"), "without the data URI"),
        (ImageBlock("", "image/png"), "correct one of them"),
        (ImageBlock("iVBORw0KGgoAAAAA", "image/bmp"), "must be one of"),
        (ImageBlock("iVBORw0KGgoAAAAA", "image/PNG"), "must be one of"),
        (ImageBlock("iVBO\nRw0KGgoAAAA", "image/png"), "line breaks"),
        (ImageBlock(b"iVBORw0KGgoAAAAA", "image/png"), "base64 text"),
    ],
    ids=["alphabet", "padding", "data-uri", "empty", "type", "case", "line-break", "bytes"],
)
async def test_data_that_are_no_image_are_refused(block, advice, stage, autojump_clock):
    """The refusal says what to pass instead."""
    error = await refused(stage, [TextBlock("see"), block], InvalidInput)

    assert advice in error.message


async def test_one_byte_over_twenty_mebibytes_is_refused(stage, autojump_clock):
    """20 MiB decoded are taken, one byte more is refused."""
    error = await refused(stage, of_size(MEBIBYTES_20 + 1), InvalidInput)
    assert "20 MiB" in error.message


async def test_twenty_mebibytes_are_sent_and_cost_what_any_image_costs(stage, autojump_clock):
    """The largest image goes through without a compaction: base64 is not counted as text."""
    stage.says(say("nice"))
    async with stage.session() as session:
        result = await (await session.send_message(of_size(MEBIBYTES_20))).result()

    assert result.status is TurnStatus.COMPLETED
    assert len(stage.provider.requests) == 1


async def test_an_image_needs_a_model_that_sees(stage, autojump_clock):
    """CONTENT_NOT_SUPPORTED for a model without vision."""
    blind = attrs.evolve(SCRIPTED_MODEL, capabilities=attrs.evolve(SCRIPTED_MODEL.capabilities, vision=False))
    stage.provider = StrictProvider([], models=[blind])
    error = await refused(stage, [image(FORMATS["image/png"])], ContentNotSupported)

    assert "vision" in error.message


@pytest.mark.parametrize(
    "content",
    ["", " \n", [], [TextBlock("")], None, 5, b"hi", {"text": "hi"}, ["hi"], [None], [ReasoningBlock("hm")]],
    ids=repr,
)
async def test_what_says_nothing_is_refused(content, stage, autojump_clock):
    """Empty and wrong content is INVALID_INPUT, and the message says what to pass."""
    error = await refused(stage, content, InvalidInput)

    assert any(advice in error.message for advice in ("pass", "write"))


async def test_an_iterator_of_blocks_that_raises_is_the_hosts(stage, autojump_clock):
    """What the host's own iterator raises comes out of `send_message` as it is."""

    def blocks():
        yield TextBlock("a")
        raise KeyError("mine")

    await refused(stage, blocks(), KeyError)


async def test_a_file_carries_its_text(stage, autojump_clock):
    """A FileBlock reaches the model with its name and text; the runtime opens nothing."""
    stage.says(say("read"))
    block = FileBlock("/etc/nothing", "its text")
    async with stage.session() as session:
        await (await session.send_message(UserInput([block]))).result()

    assert stage.provider.requests[0].messages[0].content == (block,)


@pytest.mark.parametrize("content", ["", [ImageBlock("x", "image/png")]], ids=["empty", "no-image"])
async def test_steering_is_checked_too(content, stage, autojump_clock):
    """`turn.steer` refuses what `send_message` refuses, and the turn goes on."""
    stage.says([0.5, *say("done")])
    async with stage.session() as session:
        turn = await session.send_message("go")
        with pytest.raises(AgentError):
            turn.steer(content)
        assert (await turn.result()).undelivered == ()

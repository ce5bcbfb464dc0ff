"""What a user may send: checked before anything is stored (semantics 6 "Input", 11).

    check_input("Hello", model, skills)                                 # a UserInput, cleaned
    check_input([TextBlock("See"), ImageBlock(data, "image/png")], model, skills)

Refuses with InvalidInput, ContentNotSupported or SkillNotFound; each message says what to pass instead. Images are
checked by their size, their alphabet and their first bytes: none is decoded as a whole.
"""

from __future__ import annotations

import base64
import math
import string
from collections.abc import Iterable, Mapping
from typing import Any

from ..messages.content import (
    IMAGE_HEAD,
    IMAGE_TYPES,
    ContentBlock,
    FileBlock,
    ImageBlock,
    ReasoningBlock,
    TextBlock,
    UserInput,
    check_image_size,
    image_type,
)
from ..messages.errors import ContentNotSupported, InvalidInput, SkillNotFound
from ..messages.plain import plain_text
from ..messages.text import safe_repr
from .history.tokens import LOWEST_RATIO, estimate_text
from .ports.protocols import ModelInfo
from .prompts.skills import SkillDefinition, skills_in

_ALPHABET = (string.ascii_letters + string.digits + "+/").encode()
_PASS = "pass a string, a UserInput, or TextBlock, ImageBlock and FileBlock objects"
_MAGIC_CHARACTERS = IMAGE_HEAD // 3 * 4  # of base64


def check_input(value: object, model: ModelInfo, skills: Mapping[str, SkillDefinition]) -> UserInput:
    """``value`` as an input that ``model`` takes, without blank text blocks and lone surrogates.

    Raises:
        InvalidInput: it is empty, of a wrong type, or holds an image that is not one.
        ContentNotSupported: it holds an image, and the model has no vision.
        SkillNotFound: it names a skill that is not registered.
    """
    user_input = _as_input(value)
    for name in ("content", "skills"):
        # Past its constructor it may hold anything.
        if not isinstance(field := getattr(user_input, name), tuple):
            raise InvalidInput(f"UserInput.{name} is a {type(field).__name__}; {_PASS}")
    checked = [_check_block(block, model) for block in user_input.content]
    # Providers refuse a message with a blank text block, even next to an image.
    content = [block for block in checked if not (isinstance(block, TextBlock) and not block.text.strip())]
    if not content:
        raise InvalidInput("the input is empty; write some text, or add an image or a file")
    _check_skills(user_input.skills, skills)
    checked_input = UserInput(content, tuple(map(plain_text, user_input.skills)))
    _check_size(checked_input, model, skills)
    return checked_input


def _check_size(user_input: UserInput, model: ModelInfo, skills: Mapping[str, SkillDefinition]) -> None:
    # A lower bound: an estimate that is too high must not refuse what would fit. Images count as nothing.
    texts = [block.text for block in user_input.content if isinstance(block, TextBlock | FileBlock)]
    texts += [skills[name].prompt for name in skills_in(user_input, skills)]
    least = int(sum(map(estimate_text, texts)) * LOWEST_RATIO)
    if least > model.context_window:
        raise InvalidInput(
            f"the input has at least {least} tokens, and model {model.id!r} takes {model.context_window} in all; "
            "make it shorter, or send it in parts"
        )


def check_grace(grace: object) -> float | None:
    """``grace`` as a number of seconds, or None. Checked before an actor gets it.

    Raises:
        InvalidInput: it is neither.
    """
    if grace is None:
        return None
    # True is an int, and NaN compares false with everything: a deadline of NaN would never come.
    if isinstance(grace, bool) or not isinstance(grace, int | float) or math.isnan(grace):
        raise InvalidInput(f"grace={safe_repr(grace)}; pass seconds as a number (0 cuts at once), or None for no cut")
    return float(grace)


def _as_input(value: Any) -> UserInput:
    if isinstance(value, UserInput):
        return value
    if isinstance(value, str | ContentBlock):
        return UserInput(value)
    if isinstance(value, Iterable) and not isinstance(value, Mapping | bytes | bytearray | memoryview):
        items: Iterable[Any] = value
        return UserInput(items)
    raise InvalidInput(f"the input is a {type(value).__name__}; {_PASS}")


def _check_block(block: Any, model: ModelInfo) -> ContentBlock:
    match block:
        case TextBlock():
            return TextBlock(_text(block, "text"))
        case FileBlock():
            return FileBlock(_text(block, "name"), _text(block, "text"), _text(block, "media_type"))
        case ImageBlock():
            return _check_image(block, model)
        case ReasoningBlock():
            raise InvalidInput("a ReasoningBlock is what a model says; pass the user's words as a TextBlock")
        case str():
            raise InvalidInput("the input holds a string among its blocks; write TextBlock(text)")
        case _:
            raise InvalidInput(f"the input holds a {type(block).__name__}; {_PASS}")


def _text(block: ContentBlock, field: str) -> str:
    value = getattr(block, field)
    if not isinstance(value, str):
        kind = type(block).__name__
        raise InvalidInput(f"{kind}.{field} is a {type(value).__name__}; pass a string")
    return plain_text(value)


def _check_image(image: ImageBlock, model: ModelInfo) -> ImageBlock:
    if not isinstance(image.media_type, str) or image.media_type not in IMAGE_TYPES:
        shown = safe_repr(image.media_type)
        raise InvalidInput(f"an image is {shown}; its media_type must be one of {', '.join(IMAGE_TYPES)}")
    if not isinstance(image.data, str):
        raise InvalidInput(f"ImageBlock.data is a {type(image.data).__name__}; pass base64 text")
    _check_base64(image.data)
    # Only the head is decoded: 20 MiB would block the loop for tens of milliseconds.
    found = image_type(base64.b64decode(image.data[:_MAGIC_CHARACTERS])) or "of no known format"
    if found != image.media_type:
        raise InvalidInput(f"an image says {image.media_type} and its data are {found}; correct one of them")
    if not model.capabilities.vision:
        raise ContentNotSupported(f"model {model.id!r} takes no images; leave them out or use a model with vision")
    # A new object: content that is refused later is known by identity, and one image may be sent twice.
    return ImageBlock(plain_text(image.data), plain_text(image.media_type))


def _check_base64(data: str) -> None:
    # The most frequent mistake gets a message of its own.
    if data[:5].lower() == "data:":
        raise InvalidInput("image data begin with 'data:'; pass the part after the comma, without the data URI")
    check_image_size(len(data) // 4 * 3 - data.count("=", -2))
    body = data[:-2] + data[-2:].rstrip("=")
    if len(data) % 4 or not data.isascii() or body.encode().translate(None, _ALPHABET):
        raise InvalidInput("image data are not base64; pass base64.b64encode(data).decode(), without line breaks")


def _check_skills(names: Iterable[object], skills: Mapping[str, SkillDefinition]) -> None:
    for name in names:
        if not isinstance(name, str) or name not in skills:
            known = ", ".join(skills) or "none"
            raise SkillNotFound(f"no skill {safe_repr(name)}; registered: {known}.")

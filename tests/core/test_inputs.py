"""What a user may send (semantics 6 "Input", 11)."""

from __future__ import annotations

import base64
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from youyou.core.inputs import check_grace, check_input
from youyou.core.ports.protocols import ModelCapabilities, ModelInfo
from youyou.core.prompts.skills import SkillDefinition
from youyou.messages.content import MAX_IMAGE_BYTES, FileBlock, ImageBlock, ReasoningBlock, TextBlock, UserInput
from youyou.messages.errors import AgentError, ContentNotSupported, InvalidInput, SkillNotFound

SEEING = ModelInfo("seeing", "Seeing", 1_000, ModelCapabilities(vision=True))
BLIND = ModelInfo("blind", "Blind", 1_000)
SKILLS = {"commit": SkillDefinition("commit", "Commit", "Commits.", "Commit it.")}

PNG = b"\x89PNG\r\n\x1a\n"
HEADS = {
    "image/png": [PNG],
    "image/jpeg": [b"\xff\xd8\xff\xe0"],
    "image/gif": [b"GIF87a", b"GIF89a"],
    "image/webp": [b"RIFF\x01\x02\x03\x04WEBPVP8 "],
}
EXAMPLES = [(kind, head) for kind, heads in HEADS.items() for head in heads]


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def image(data: bytes = PNG, media_type: str = "image/png") -> ImageBlock:
    return ImageBlock(encoded(data), media_type)


def check(value: object, model: ModelInfo = SEEING) -> UserInput:
    return check_input(value, model, SKILLS)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("hello", UserInput("hello")),
        (" a ", UserInput(" a ")),
        (TextBlock("a"), UserInput([TextBlock("a")])),
        (FileBlock("a.txt", ""), UserInput([FileBlock("a.txt", "")])),
        ([TextBlock("a"), image()], UserInput([TextBlock("a"), image()])),
        (iter([TextBlock("a")]), UserInput("a")),
        (UserInput("a", skills=["commit"]), UserInput("a", skills=("commit",))),
        ([TextBlock(" "), image(), TextBlock("")], UserInput([image()])),
        ("\ud83d\ude00\ud83d", UserInput("😀\ufffd")),
        (FileBlock("\ud800", "\ud800", "\ud800"), UserInput([FileBlock("\ufffd", "\ufffd", "\ufffd")])),
    ],
)
def test_every_accepted_form_becomes_one_clean_input(value, expected):
    """Strings, blocks and inputs are accepted; surrogates are replaced and blank text beside content is dropped."""
    assert expected == check(value)


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        ("", "write some text"),
        (" \n\t\u3000", "write some text"),
        ([], "write some text"),
        (UserInput("", skills=["commit"]), "write some text"),
        ([TextBlock(""), TextBlock(" ")], "write some text"),
        (None, "pass a string"),
        (3, "pass a string"),
        (b"bytes", "pass a string"),
        ({"text": "a"}, "pass a string"),
        ([TextBlock("a"), None], "pass a string"),
        ([{"text": "a"}], "pass a string"),
        (["a"], "TextBlock(text)"),
        (TextBlock(None), "TextBlock.text is a NoneType; pass a string"),
        (TextBlock(b"a"), "TextBlock.text is a bytes; pass a string"),
        (FileBlock("a", b"data"), "FileBlock.text is a bytes"),
        (FileBlock(None, "data"), "FileBlock.name is a NoneType"),
        (FileBlock("a", "data", None), "FileBlock.media_type is a NoneType"),
        ([TextBlock("a"), ReasoningBlock("b")], "as a TextBlock"),
        (ImageBlock(encoded(PNG), "image/jpg"), "image/jpeg"),
        (ImageBlock(encoded(b"BM"), "image/bmp"), "media_type must be one of"),
        (ImageBlock(encoded(PNG), None), "media_type must be one of"),
        (ImageBlock(PNG, "image/png"), "pass base64 text"),
        (ImageBlock("", "image/png"), "of no known format"),
        (image(b"<svg></svg>"), "of no known format"),
        (image(PNG[:-1]), "of no known format"),
        (image(PNG, "image/gif"), "image/png; correct one of them"),
        (image(b"RIFF\x01\x02\x03\x04WAVE", "image/webp"), "of no known format"),
        (ImageBlock("data:image/png;base64," + encoded(PNG), "image/png"), "after the comma"),
        (ImageBlock("DATA:image/png;base64," + encoded(PNG), "image/png"), "after the comma"),
        (ImageBlock(encoded(PNG)[:-1], "image/png"), "not base64"),
        (ImageBlock(encoded(PNG + b"1") + "====", "image/png"), "not base64"),
        (ImageBlock(encoded(PNG) + "ab=c", "image/png"), "not base64"),
        (ImageBlock("=" + encoded(PNG)[1:], "image/png"), "not base64"),
        (ImageBlock(encoded(PNG) + "\nab\n", "image/png"), "without line breaks"),
        (ImageBlock(encoded(PNG) + "ab-_", "image/png"), "not base64"),
        (ImageBlock(encoded(PNG) + "éééé", "image/png"), "not base64"),
        (ImageBlock(encoded(PNG) + "\ud800" * 4, "image/png"), "not base64"),
    ],
)
def test_what_cannot_be_sent_is_refused_with_advice(value, advice):
    """Nothing empty, of a wrong type or unreadable gets as far as a store or a provider."""
    with pytest.raises(InvalidInput) as caught:
        check(value)

    assert advice in caught.value.message


@pytest.mark.parametrize(("media_type", "head"), EXAMPLES)
@pytest.mark.parametrize("tail", [b"", b"1", b"12", b"x" * 100])
def test_the_four_formats_are_known_by_their_first_bytes(media_type, head, tail):
    """An image passes with its own media type, whatever its padding, and with no other."""
    expected = image(head + tail, media_type)

    assert (expected,) == check(expected).content
    for other in HEADS.keys() - {media_type}:
        with pytest.raises(InvalidInput, match=media_type):
            check(image(head + tail, other))


def test_an_image_needs_a_model_with_vision():
    """Without vision an image is refused, and text is not."""
    with pytest.raises(ContentNotSupported, match="model 'blind' takes no images"):
        check([TextBlock("a"), image()], BLIND)

    assert check("a", BLIND) == UserInput("a")


def test_an_image_may_have_twenty_mebibytes():
    """Exactly 20 MiB pass, one byte more does not, and neither takes long."""
    largest = PNG + bytes(MAX_IMAGE_BYTES - len(PNG))
    begun = time.perf_counter()

    assert len(check(image(largest)).content) == 1
    with pytest.raises(InvalidInput, match="may have 20971520"):
        check(image(largest + b"1"))
    assert time.perf_counter() - begun < 5


def test_an_oversized_image_is_not_read():
    """The size alone decides: what is far too large is refused before its alphabet is looked at."""
    with pytest.raises(InvalidInput, match="20 MiB"):
        check(ImageBlock("!" * (MAX_IMAGE_BYTES * 2), "image/png"))


@pytest.mark.parametrize("skills", [["nope"], ["commit", "nope"], "nope", ["/commit"], [None], [["commit"]]])
def test_an_unknown_explicit_skill_is_refused(skills):
    """A skill named explicitly must be registered; the error tells the names there are."""
    with pytest.raises(SkillNotFound, match="registered: commit"):
        check(UserInput("a", skills=skills))


def test_an_unknown_skill_in_text_is_text():
    """Only explicit names can be wrong."""
    assert check("/nope") == UserInput("/nope")


@given(st.binary(min_size=1), st.integers(0, 3))
def test_base64_is_accepted_exactly_when_it_is_base64(data, cut):
    """What the standard library encodes passes, and the same text cut inside a group does not."""
    text = encoded(PNG + data)
    whole = ImageBlock(text[: len(text) - cut], "image/png")

    if cut == 0:
        assert check(whole).content == (whole,)
    else:
        with pytest.raises(InvalidInput, match="not base64"):
            check(whole)


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.binary() | st.builds(TextBlock, st.none() | st.text()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(json_like)
def test_any_value_is_either_an_input_or_an_error_of_ours(value):
    """Whatever a host passes, it gets an input or an AgentError, never anything else."""
    try:
        assert check(value).content
    except AgentError as error:
        assert error.message


class Hostile:
    """Cannot be shown or compared."""

    def __repr__(self) -> str:
        raise RuntimeError("no text")

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no comparison")


@pytest.mark.parametrize("odd", [None, 7, Hostile(), 10**5000, "x", [[0]] * 3], ids=lambda odd: type(odd).__name__)
@pytest.mark.parametrize("field", ["content", "skills"])
def test_an_input_with_an_odd_field_is_refused_in_words(odd: object, field: str) -> None:
    """Also one that was changed past its constructor, whatever it holds and however that behaves."""
    user_input = UserInput("x")
    object.__setattr__(user_input, field, odd)

    with pytest.raises(InvalidInput, match=f"UserInput.{field} is a "):
        check_input(user_input, ModelInfo("m", "M", 1_000), {})


@pytest.mark.parametrize("odd", [Hostile(), 10**5000, Hostile], ids=["hostile", "huge", "class"])
def test_what_cannot_be_shown_is_named_by_its_class(odd: object) -> None:
    """In a message about it nothing of it is run."""
    image = ImageBlock("aGk=", "image/png")
    object.__setattr__(image, "media_type", odd)

    with pytest.raises(InvalidInput, match=r"an image is .*; its media_type must be one of"):
        check_input(image, ModelInfo("m", "M", 1_000), {})
    with pytest.raises(InvalidInput):
        check_grace(odd if isinstance(odd, Hostile) else Hostile())

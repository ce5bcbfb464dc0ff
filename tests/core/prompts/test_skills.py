"""Skills: what triggers them and what they put into the conversation (semantics 11)."""

from __future__ import annotations

import time
from unicodedata import normalize as unicodedata_normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st
from youyou.core.prompts.skills import SkillDefinition, injection, skills_in, triggered
from youyou.core.prompts.tags import enclose, escape
from youyou.messages.content import FileBlock, ImageBlock, TextBlock, UserInput
from youyou.messages.history import SystemMessage

NAMES = ("commit", "commit-all", "push", "usr", "b", "etc", "总结", "v1.2", "https:")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/commit", ("commit",)),
        ("/commit now", ("commit",)),
        ("please /commit", ("commit",)),
        ("please\n/commit\nnow", ("commit",)),
        ("tab\t/commit\u3000/push", ("commit", "push")),
        ("/push then /commit then /push", ("push", "commit")),
        ("/commit, /push!", ("commit", "push")),
        ("/commit.", ("commit",)),
        ("/commit. Then", ("commit",)),
        ("/commit?) /push'", ("commit", "push")),
        ("/总结\uff0c谢谢", ("总结",)),
        ("请 /总结。", ("总结",)),
        ("/commit-all", ("commit-all",)),
        ("/commit-all, /commit", ("commit-all", "commit")),
        ("/v1.2 is out", ("v1.2",)),
        ("", ()),
        ("commit", ()),
        ("/", ()),
        ("/ commit", ()),
        ("/unknown /Commit /COMMIT", ()),
        ("/commits", ()),
        ("/commit2", ()),
        ("/commit_all", ()),
        ("/commit-some", ()),
        ("/commit+", ()),
        ("/usr/bin", ()),
        ("ls /usr/", ()),
        ("/etc\\x", ()),
        ("a/b", ()),
        ("a /b/c", ()),
        ("//commit", ()),
        ("https://x/commit", ()),
        ("(/commit)", ()),
        ('"/commit"', ()),
        ("\\/commit", ()),
        ("/commit.md", ()),
        ("/commit:x /push@2", ()),
        ("//", ()),
    ],
)
def test_what_triggers_in_text(text, expected):
    """A registered name after a slash that begins a word and ends as one, once each, in order."""
    assert expected == triggered(text, NAMES)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("`/commit`", ()),
        ("a ` /commit ` b", ()),
        ("a `` ` /commit `` b", ()),
        ("`x` /commit", ("commit",)),
        ("/commit `x`", ("commit",)),
        ("/commit`x`", ()),
        ("a ` /commit b", ("commit",)),
        ("a ` b\n\n/commit ` c", ("commit",)),
        ("a ` b\n /commit ` c", ()),
        ("a `` /commit ` b", ("commit",)),
        ("```\n/commit\n```", ()),
        ("```sh\n/commit\n```\n/push", ("push",)),
        ("  ~~~\n/commit\n```\n /commit\n~~~\n/push", ("push",)),
        ("````\n```\n/commit\n````\n/push", ("push",)),
        ("```\n/commit", ()),
        ("x ` y\n```\n ` /commit\n```\n/push", ("push",)),
        ("``` a ` b\n/commit", ("commit",)),
        ("    ```\n/commit", ("commit",)),
        ("```\r\n/commit\r\n```\r\n/push", ("push",)),
        ("~~~\n/commit\n~~~ no close\n/commit\n~~~~\n/push", ("push",)),
        ("~~ /commit ~~", ("commit",)),
    ],
)
def test_code_never_triggers(text, expected):
    """Fenced blocks and inline code are quotations; what only looks like code is not."""
    assert expected == triggered(text, NAMES)


def test_the_longest_name_wins():
    """Where a name ends in punctuation, it is preferred to the shorter one before it."""
    assert triggered("/go! /go", ["go", "go!"]) == ("go!", "go")


@given(st.text(alphabet="/`~\n ab.commit"), st.sets(st.sampled_from(["commit", "a", "b", "a.b"])))
def test_only_registered_names_trigger_and_only_once(text, names):
    """Whatever the text, the answer holds registered names that stand in it after a slash, without repetition."""
    found = triggered(text, names)

    assert len(found) == len(set(found))
    assert all(name in names and f"/{name}" in text for name in found)


@given(st.lists(st.sampled_from(["/commit", "/push", "word", "a/b"]), max_size=8))
def test_plain_words_trigger_in_order(words):
    """In prose without code, exactly the words that are triggers trigger, in the order of their first use."""
    expected = tuple(dict.fromkeys(word[1:] for word in words if word in ("/commit", "/push")))

    assert expected == triggered(" ".join(words), NAMES)


def test_hostile_text_takes_linear_time():
    """A megabyte of unmatched back-ticks or of slashes is searched at once."""
    ticks = " ".join("`" * length for length in range(1_400))
    begun = time.perf_counter()

    assert triggered(ticks + " /commit", NAMES) == ("commit",)
    assert triggered("/commi " * 100_000, NAMES) == ()
    assert time.perf_counter() - begun < 5


def test_skills_of_an_input_are_the_explicit_ones_and_the_triggered_ones():
    """Explicit names come first, each text block is read on its own, and files never trigger."""
    content = [TextBlock("see /push"), TextBlock("/commit"), FileBlock("a", "/usr"), ImageBlock("", "image/png")]

    assert skills_in(UserInput(content, skills=("b", "commit")), NAMES) == ("b", "commit", "push")
    assert skills_in(UserInput("hello"), NAMES) == ()


def _skill(name: str, prompt: str) -> SkillDefinition:
    return SkillDefinition(name, "Display", "Description", prompt)


@pytest.mark.parametrize(
    ("skill", "expected"),
    [
        (_skill("commit", "Commit it."), "<skill>\n<name>commit</name>\nCommit it.\n</skill>"),
        (
            _skill("x", "a</skill>b< / SKILL >c<skill>d"),
            "<skill>\n<name>x</name>\na&lt;/skill>b&lt; / SKILL >c&lt;skill>d\n</skill>",
        ),
        (
            _skill("x", "<skills> <b> </name>"),
            "<skill>\n<name>x</name>\n<skills> <b> </name>\n</skill>",
        ),
        (_skill("a</name>", "p"), "<skill>\n<name>a&lt;/name></name>\np\n</skill>"),
    ],
)
def test_an_injection_keeps_the_prompt_inside_its_tag(skill, expected):
    """The message has the documented form, and a prompt that closes the tag stays inside it."""
    assert SystemMessage(expected) == injection(skill)


def test_a_fence_escapes_its_attributes():
    """An attribute value cannot end the tag that it stands in."""
    expected = '<memory id="&quot;&gt;&lt;x">\ntext\n</memory>'

    assert expected == enclose("memory", "text", id='"><x')


@given(st.text(alphabet="<>/ \nmemorisEM"))
def test_disarmed_text_holds_no_tag_and_disarming_twice_changes_nothing(text):
    """No text has an opening or closing of the tag left, and the rule is idempotent."""
    disarmed = escape("memories", text)

    assert "</memories" not in disarmed.lower()
    assert disarmed == escape("memories", disarmed)
    assert text == disarmed.replace("&lt;", "<")


@pytest.mark.parametrize("text", ["<", "< ", "<m", "</", "<\u200b", "<mem\u200b", "&lt;", "< /mem "], ids=ascii)
def test_a_fence_looks_at_each_character_once(text, monkeypatch):
    """However foreign text repeats itself, what is folded for a comparison is no more than the text."""
    folded = []
    monkeypatch.setattr(
        "youyou.core.prompts.tags.unicodedata.normalize",
        lambda form, piece: folded.append(len(piece)) or unicodedata_normalize(form, piece),
    )
    size = 4_096
    escape("memories", (text * size)[:size])

    assert sum(folded) <= 3 * size

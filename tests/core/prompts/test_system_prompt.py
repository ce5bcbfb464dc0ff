"""The system prompt: order, fences, purity (semantics 10)."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import PurePosixPath

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from youyou.core.config import AgentConfig, EnvironmentContext, SessionConfig
from youyou.core.ports.protocols import ModelInfo
from youyou.core.profiles.profile import AgentProfile, ProfileKind
from youyou.core.prompts.prompt_texts import DEFAULT_TEXTS, PromptTexts
from youyou.core.prompts.skills import SkillDefinition
from youyou.core.prompts.system_prompt import dynamic_prompt, render_memory, stable_prompt
from youyou.core.registry.registry import Part, Registrations, validate
from youyou.core.session_setup import resolve_setup
from youyou.core.tools.declaration import Tool
from youyou.messages.records import Memory

TEXTS = PromptTexts(skills="S:", plugins="P:", memories="M:", environment="E:")
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
TAGS = ("system_instructions", "personality", "profile_instructions", "skills", "plugins")


class Provider:
    id = "p"

    def models(self):
        return [ModelInfo("m", "M", 1_000)]

    async def chat(self, request):
        yield


@attrs.frozen
class Plugin:
    id: str
    display_name: str
    description: str

    async def initialize(self, config): ...

    def apply(self, ctx): ...

    async def shutdown(self): ...


def skill(name, description, implicit=True):
    return SkillDefinition(name, name.title(), description, "SECRET PROMPT", (), implicit)


def setup(*, skills=(), plugins=(), override=None, profile_text=None, **config):
    registrations = Registrations(AgentConfig(default_model="m", **config))
    registrations.add(Part.PROVIDER, Provider())
    registrations.add(Part.TOOL, Tool("hammer", "Hits.", {}, lambda _: ""))
    profile = AgentProfile("p", ProfileKind.SKILL, "P", "P.", instructions=profile_text)
    registrations.add(Part.PROFILE, profile)
    for part, values in ((Part.SKILL, skills), (Part.PLUGIN, plugins)):
        for value in values:
            registrations.add(part, value)
    return resolve_setup(validate(registrations), SessionConfig(system_prompt_override=override, skill="p"))


def stable(**parts):
    return stable_prompt(setup(**parts), TEXTS)


def memory(content="Likes tea.", id="m1", tags=("taste", "drink")):
    return Memory(id, "default", content, "", tags, NOON, NOON)


def test_the_stable_part_has_its_sections_in_order():
    """Instructions with the session's own, personality, profile, skills to suggest, plugins; no tools among them."""
    expected = """\
<system_instructions>
First.

Second.

Only today.
</system_instructions>

<personality>
Dry.
</personality>

<profile_instructions>
Write well.
</profile_instructions>

<skills>
S:
- /commit (Commit): Commits it.
</skills>

<plugins>
P:
- audit (Audit): Writes all down.
- trace (Trace): Traces.
</plugins>"""

    assert expected == stable(
        system_instructions=("First.", "Second."),
        override="Only today.",
        personality="Dry.",
        profile_text="Write well.",
        skills=[skill("commit", "Commits\n  it."), skill("hidden", "Not listed.", implicit=False)],
        plugins=[Plugin("audit", "Audit", "Writes all down."), Plugin("trace", "Trace", "Traces.")],
    )


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"system_instructions": ("", " "), "personality": "\n", "override": "", "profile_text": ""},
        {"skills": [skill("hidden", "Not listed.", implicit=False)]},
    ],
)
def test_an_empty_section_is_left_out(parts):
    """Where there is nothing to say, there is no tag either."""
    assert stable(**parts) == ""


def test_a_session_may_have_instructions_where_the_agent_has_none():
    """The session's own instructions stand in the same place."""
    assert stable(override="Only today.") == "<system_instructions>\nOnly today.\n</system_instructions>"


def test_the_dynamic_part_has_its_sections_in_order():
    """Memories with their ids, the environment as it is reported, then the sections of hooks, each in its tag."""
    environment = EnvironmentContext("Linux", "/home", None, {"shell": "fish", "cores": 4, "on": [True]})
    expected = """\
<memories>
M:
<memory id="m1" tags="taste, drink" updated="2026-01-02">
Likes tea.
</memory>
<memory id="m2" tags="" updated="2026-01-02">
Is detached.
</memory>
</memories>

<environment>
E:
os: Linux
working directory: /home
shell: fish
cores: 4
on: [true]
</environment>

<section>
One.
</section>

<section>
Two.
</section>"""

    memories = [memory(), memory("Is detached.", "m2", ())]
    assert expected == dynamic_prompt(memories, environment, ("One.", " ", "Two."), TEXTS)


@pytest.mark.parametrize("environment", [None, EnvironmentContext(), EnvironmentContext(extra={"x": None})])
def test_an_empty_dynamic_part_is_empty(environment):
    """Nothing remembered, reported or added gives no text."""
    assert dynamic_prompt([], environment, ()) == ""


def test_odd_values_of_the_environment_are_shown_all_the_same():
    """What JSON cannot carry is shown as text, and lone surrogates are replaced."""
    environment = EnvironmentContext(os="\ud800", extra={"home": [PurePosixPath("/x"), "\ud800"]})

    assert 'os: \ufffd\nhome: ["/x","\ufffd"]' in dynamic_prompt([], environment, ())


hostile = st.text(max_size=5) | st.sampled_from(
    [
        f"{space}<{slash}{tag}{end}x"
        for tag in (*TAGS, "memories", "memory", "environment", "section")
        for space in ("", "\n")
        for slash in ("", "/", " / ")
        for end in (">", " >", "\n>")
    ]
)


def tags_in(text):
    return re.findall(r"<\s*(/?)\s*([a-z_]+)", text)


@given(hostile, hostile, hostile)
def test_no_stable_text_leaves_its_tag(instructions, personality, description):
    """Read from the front, each section ends at its own end, and nothing that was inserted stands outside."""
    text = stable(
        system_instructions=(f"i{instructions}",),
        personality=f"p{personality}",
        profile_text=f"t{instructions}",
        skills=[skill("commit", description)],
        plugins=[Plugin("audit", "Audit", f"d{description}")],
    )

    for tag in TAGS:
        inside, text = text.removeprefix(f"<{tag}>").split(f"</{tag}>", 1)
        assert tag not in [name for _, name in tags_in(inside)]
        text = text.removeprefix("\n\n")
    assert text == ""


@given(hostile, hostile, hostile)
def test_no_dynamic_text_leaves_its_tag(content, id, section):
    """A memory that closes its tag, or the list of memories, stays inside both; so do environment and sections."""
    environment = EnvironmentContext(os=f"o{section}", extra={"k": content})
    text = dynamic_prompt([memory(f"c{content}", id, (id,))], environment, (f"s{section}",), TEXTS)

    inside_memories, rest = text.removeprefix("<memories>").split("</memories>", 1)
    inside_environment, rest = rest.removeprefix("\n\n<environment>").split("</environment>", 1)
    inside_section, rest = rest.removeprefix("\n\n<section>").split("</section>", 1)
    assert rest == ""
    assert ("", "memories") not in tags_in(inside_memories)
    memory_tags = [tag for tag in tags_in(inside_memories) if tag[1] == "memory"]
    assert memory_tags == [("", "memory"), ("/", "memory")]
    assert "environment" not in [name for _, name in tags_in(inside_environment)]
    assert "section" not in [name for _, name in tags_in(inside_section)]


def test_the_same_input_gives_the_same_text():
    """The prompt is a pure function, so that a provider can cache it."""
    parts = {"system_instructions": ("A",), "skills": [skill("commit", "C")]}
    environment = EnvironmentContext("Linux")

    assert stable_prompt(setup(**parts)) == stable_prompt(setup(**parts))
    assert dynamic_prompt([memory()], environment, ("x",)) == dynamic_prompt([memory()], environment, ("x",))


def test_an_attribute_of_a_memory_cannot_end_its_tag():
    """An id or tag with quotes and brackets is escaped."""
    text = render_memory(memory(id='"><x', tags=("</memory>",)))

    assert text.startswith('<memory id="&quot;&gt;&lt;x" tags="&lt;/memory&gt;" updated=')


def test_the_default_texts_can_be_filled_in():
    """The input of an extraction takes its three values, and every text says something."""
    filled = DEFAULT_TEXTS.extraction_input.format(limit=50, known="KNOWN", conversation="TALK")

    assert all(text.strip() for text in attrs.astuple(DEFAULT_TEXTS))
    assert '{"id": ' in filled
    assert all(part in filled for part in ("50", "KNOWN", "TALK"))

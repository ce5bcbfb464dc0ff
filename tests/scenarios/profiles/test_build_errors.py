"""Whatever is wrong with a profile is said by ``build()``, with the profile and with what to write instead."""

from __future__ import annotations

from typing import Any

import pytest
from youyou import (
    AgentError,
    Budget,
    ErrorCode,
    Pipeline,
    ProfileKind,
    ReAct,
    Step,
)

FLOW = Pipeline((Step("a", "{input}"),))


def steps(*several: Any) -> dict[str, Any]:
    """A profile with this pipeline."""
    return {"mode": Pipeline(several)}


CASES: list[tuple[str, dict[str, Any], ErrorCode, str]] = [
    ("an unknown parent", {"extends": "nobody"}, ErrorCode.PROFILE_NOT_FOUND, "registered: base, child"),
    ("a second level", {"extends": "child"}, ErrorCode.INVALID_CONFIG, "extend a profile that extends none"),
    ("itself as its parent", {"extends": "bad"}, ErrorCode.INVALID_CONFIG, "only one level"),
    ("an unknown tool", {"tools": ("sav",)}, ErrorCode.INVALID_CONFIG, "registered: save"),
    ("an unknown tool left out", {"exclude_tools": ("sav",)}, ErrorCode.INVALID_CONFIG, "registered: save"),
    ("tags that match nothing", {"require_tags": ("chapters",)}, ErrorCode.INVALID_CONFIG, "tags in use: chapter"),
    ("an unknown model", {"model_id": "m9"}, ErrorCode.INVALID_CONFIG, "registered: scripted"),
    ("a budget of nothing", {"budget": Budget(0)}, ErrorCode.INVALID_CONFIG, "pass a positive integer"),
    ("a mode's budget of nothing", {"mode": ReAct(Budget(0))}, ErrorCode.INVALID_CONFIG, "pass a positive integer"),
    ("a mode by name", {"mode": "react"}, ErrorCode.INVALID_CONFIG, "write ReAct(), SingleShot() or Pipeline(steps)"),
    ("an empty pipeline", steps(), ErrorCode.INVALID_CONFIG, "write Pipeline((Step(name, prompt), ...))"),
    ("a pipeline inside", steps(Step("a", "x", mode=FLOW)), ErrorCode.INVALID_CONFIG,
     "put its steps into the outer one"),
    ("an unknown tool of a step", steps(Step("a", "x", tools=("sav",))), ErrorCode.INVALID_CONFIG, "registered: save"),
    ("a step that comes later", steps(Step("a", "{steps.b}"), Step("b", "x")), ErrorCode.INVALID_CONFIG,
     "the steps before it are: none"),
    ("a step under its other name", steps(Step("a", "x", output="o"), Step("b", "{steps.a}")),
     ErrorCode.INVALID_CONFIG, "the steps before it are: o"),
    ("two steps of one name", steps(Step("a", "x"), Step("a", "y")), ErrorCode.INVALID_CONFIG,
     "give it another output"),
    ("a step without a prompt", steps(Step("a", " ")), ErrorCode.INVALID_CONFIG, "write Step("),
    ("fewer retries than none", steps(Step("a", "x", retries=-1)), ErrorCode.INVALID_CONFIG, "pass 0 or a positive"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "fields", "code", "advice"), CASES, ids=[case[0] for case in CASES])
def test_a_wrong_profile_is_refused_by_name(
    stage: Any, what: str, fields: dict[str, Any], code: ErrorCode, advice: str
) -> None:
    """The error has the code, names the profile and says what to write instead."""
    stage.tool("save", "chapter")
    stage.profile("base")
    stage.profile("child", extends="base")
    stage.profile("bad", **fields)

    with pytest.raises(AgentError) as refused:
        stage.builder().build()

    assert code == refused.value.code
    assert "profile 'bad'" in refused.value.message
    assert advice in refused.value.message


def test_an_id_is_taken_once_whatever_the_kind(stage: Any) -> None:
    """A domain and a skill of one id are a conflict."""
    stage.profile("novel", ProfileKind.DOMAIN)
    stage.profile("novel", ProfileKind.SKILL)

    with pytest.raises(AgentError, match="profile 'novel' is registered twice; give one of them another id") as refused:
        stage.builder().build()

    assert ErrorCode.NAME_CONFLICT == refused.value.code


def test_all_wrong_profiles_are_told_at_once(stage: Any) -> None:
    """The first by registration is raised, the others are in its notes."""
    stage.profile("one", extends="nobody")
    stage.profile("two", tools=("nothing",))
    stage.profile("three", mode=Pipeline(()))

    with pytest.raises(AgentError, match="profile 'one'") as refused:
        stage.builder().build()

    assert ["'two'", "'three'"] == [
        note.split("profile ")[1].split()[0].strip(":,") for note in refused.value.__notes__
    ]


def test_nothing_of_a_right_profile_is_refused(stage: Any) -> None:
    """What the rules allow builds: a parent that comes later, braces that mean nothing, a pipeline over tools."""
    stage.tool("save", "chapter")
    stage.profile("child", extends="base")
    stage.profile("base", require_tags=("chapter",))
    stage.pipeline(
        Step("a", 'As {"json": {input}}', output="o"), Step("b", "{steps.o} {steps.o} {other}", tools=("save",))
    )

    stage.builder().build()

"""Configurations and profiles go through the one converter and come back equal (semantics 1, 13)."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from youyou import (
    AgentProfile,
    Budget,
    EnvironmentContext,
    Pipeline,
    ProfileKind,
    QuickAction,
    ReAct,
    RetryPolicy,
    SessionConfig,
    SingleShot,
    SkillDefinition,
    Step,
)
from youyou.messages.codec import converter, from_json, to_json

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
maybe = st.none() | texts
names = st.lists(texts, max_size=2).map(tuple)
budgets = st.none() | st.builds(Budget, st.none() | st.integers(1, 9), st.none() | st.integers(1, 9))
retries = st.none() | st.builds(RetryPolicy, st.integers(1, 5), st.integers(0, 99), st.integers(0, 99), st.floats(0, 1))
simple = st.builds(ReAct, budgets) | st.builds(SingleShot, retries)
steps = st.builds(Step, texts, texts, st.none() | names, simple, budgets, st.integers(0, 3), maybe)
modes = simple | st.builds(Pipeline, st.lists(steps, max_size=3).map(tuple))
actions = st.lists(st.builds(QuickAction, texts, texts, maybe), max_size=2).map(tuple)
profiles = st.builds(
    AgentProfile, texts, st.sampled_from(ProfileKind), texts, texts, maybe, maybe, st.none() | names, names, names,
    st.none() | modes, budgets, maybe, actions, maybe,
)  # fmt: skip
values = st.recursive(st.none() | st.booleans() | st.integers(-9, 9) | texts, lambda inner: st.lists(inner, max_size=2))
objects = st.dictionaries(texts, values, max_size=2)
environments = st.none() | st.builds(EnvironmentContext, maybe, maybe, maybe, objects)
configs = st.builds(
    SessionConfig, maybe, maybe, environments, maybe, maybe, st.none() | st.floats(0, 2), st.none() | st.integers(1, 9),
    maybe, st.none() | objects, objects,
)  # fmt: skip


@given(profiles)
def test_any_profile_survives(profile: AgentProfile) -> None:
    """Every field, every mode, every step."""
    assert profile == from_json(AgentProfile, to_json(profile))


@given(configs)
def test_any_session_config_survives(config: SessionConfig) -> None:
    """Every field, with its environment, schema and metadata."""
    assert config == from_json(SessionConfig, to_json(config))


@pytest.mark.parametrize(
    "value",
    [
        SessionConfig(domain="novel"),
        AgentProfile("a", ProfileKind.SKILL, "A", "About a.", mode=Pipeline((Step("s", "p"),))),
        SkillDefinition("a", "A", "About a.", "Do a."),
    ],
)
def test_what_a_newer_version_adds_is_ignored(value: Any) -> None:
    """Unknown fields are ignored at every level, and missing ones have their defaults."""
    data = json.loads(to_json(value))
    grown = json.loads(json.dumps(data).replace('{"type"', '{"newer": {"deep": [1]}, "type"'))
    optional = {field.name for field in attrs.fields(type(value)) if field.default is not attrs.NOTHING}
    shrunk = {name: part for name, part in data.items() if name not in optional or part}

    assert [value, value] == [converter.structure(each, type(value)) for each in (grown, shrunk)]


def test_modes_are_told_apart_by_their_names() -> None:
    """The class stands under ``type``, so that a front end can match on it."""
    profile = AgentProfile("a", ProfileKind.SKILL, "A", "", mode=Pipeline((Step("s", "p", mode=SingleShot()),)))
    data = json.loads(to_json(profile))

    assert ("AgentProfile", "skill", "Pipeline") == (data["type"], data["kind"], data["mode"]["type"])
    assert ("Step", "SingleShot") == (data["mode"]["steps"][0]["type"], data["mode"]["steps"][0]["mode"]["type"])

"""The JSON Schema of discovery: true of what is told, refusing what is not, and the same that the docs ship."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from youyou import Budget, Pipeline, ProfileKind, QuickAction, ReAct, RetryPolicy, SingleShot, Step
from youyou.core.profiles.discovery_schema import discovery_schema
from youyou.messages.codec import to_json

SHIPPED = Path(__file__).parents[3] / "docs" / "profiles.schema.json"


@pytest.fixture
def told(stage: Any) -> Any:
    """What an agent with every kind of profile tells, as JSON data."""
    stage.tool("save", "write", mutating=True)
    stage.tool("look")
    stage.profile(
        "base", ProfileKind.DOMAIN, icon="book", budget=Budget(3), quick_actions=(QuickAction("a", "b", "c"),)
    )
    stage.profile("child", ProfileKind.DOMAIN, extends="base", instructions="Be kind.", require_tags=("write",))
    stage.profile("free", mode=ReAct(Budget(1, 2)))
    stage.profile("once", mode=SingleShot(RetryPolicy(2)))
    stage.profile(
        "flow", mode=Pipeline((Step("a", "x", tools=("save",), output="o"), Step("b", "{steps.o}", mode=SingleShot())))
    )

    async def ask(resolved: bool) -> Any:
        async with stage.agent() as agent:
            return json.loads(to_json(agent.profiles(resolved)))

    return ask


@pytest.fixture
def valid() -> Any:
    """Judges by the schema."""
    return jsonschema_rs.validator_for(discovery_schema()).is_valid


@pytest.mark.parametrize("resolved", [False, True])
async def test_what_is_told_fits_the_schema(told: Any, valid: Any, resolved: bool) -> None:
    """Every kind of profile, with and without its resolved values."""
    profiles = await told(resolved)

    assert 5 == len(profiles)
    assert valid(profiles)


async def test_what_lacks_a_field_or_has_a_wrong_one_does_not_fit(told: Any, valid: Any) -> None:
    """Every field of every object is required and typed; fields of a newer version are let through."""
    for change in (
        lambda each: each.pop("tools"),
        lambda each: each.update(kind="plugin"),
        lambda each: each.update(display_name=None),
        lambda each: each["mode"].update(type="Dance"),
        lambda each: each["tools"][0].update(tags=[1]),
        lambda each: each.update(type="Profile"),
    ):
        profiles = await told(True)
        change(profiles[1])
        assert not valid(profiles)

    profiles = await told(True)
    profiles[0]["newer"] = profiles[0]["tools"][0]["newer"] = 1
    assert valid(profiles)


def test_the_schema_in_the_docs_is_current() -> None:
    """``docs/profiles.schema.json`` is what the function makes, word for word."""
    expected = json.dumps(discovery_schema(), indent=2) + "\n"
    assert expected == SHIPPED.read_text()

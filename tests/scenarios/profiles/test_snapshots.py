"""Every profile of the example as it comes out of its layers: prompt, tools, mode, budget, model, origins.

A snapshot guards against changing a profile by accident. After a change on purpose::

    YOUYOU_SNAPSHOTS=write pytest tests/extension/test_snapshots.py

and look at what the diff says.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import youyou
from youyou.core.profiles.profile import resolve_profile
from youyou.core.prompts.system_prompt import stable_prompt
from youyou.core.registry.registry import validate
from youyou.core.session_setup import resolve_setup
from youyou.messages.codec import converter
from youyou.testing import StrictProvider

SNAPSHOTS = Path(__file__).parent / "snapshots"
DOMAINS = (None, "novel", "study-notes", "exam-notes")
SKILLS = (None, "outline", "split-chapter", "concept-cards", "review-questions", "blurb")


def snapshot(desk: Any, domain: str | None, skill: str | None) -> Any:
    """What a session of these two works with, as JSON data."""
    registry = validate(desk.agent.desk_agent(StrictProvider([]))._registrations)
    setup = resolve_setup(registry, youyou.SessionConfig(domain=domain, skill=skill))
    resolved = resolve_profile(registry.config, registry.tools, registry.profiles, domain, skill)
    told = {"prompt": stable_prompt(setup).splitlines(), **converter.unstructure(resolved)}
    return json.loads(json.dumps(told))


@pytest.mark.parametrize("skill", SKILLS)
@pytest.mark.parametrize("domain", DOMAINS)
def test_a_resolved_profile_is_as_it_was(desk: Any, domain: str | None, skill: str | None) -> None:
    """Prompt, tools, mode, budget, model and origins are those of the snapshot."""
    path = SNAPSHOTS / f"{domain or 'any'}.{skill or 'any'}.json"
    told = snapshot(desk, domain, skill)
    if os.environ.get("YOUYOU_SNAPSHOTS") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(told, indent=2) + "\n")
        pytest.fail(f"{path.name} was written: look at its diff, then run again without YOUYOU_SNAPSHOTS")

    assert json.loads(path.read_text()) == told


def test_there_is_a_snapshot_of_each_profile(desk: Any) -> None:
    """Anyone who adds a profile to the example adds it here, and no snapshot is left over."""
    declared = {profile.id for profile in desk.profiles.PROFILES}
    assert declared == {id for id in (*DOMAINS, *SKILLS) if id is not None}
    expected = {f"{domain or 'any'}.{skill or 'any'}.json" for domain in DOMAINS for skill in SKILLS}
    assert expected == {path.name for path in SNAPSHOTS.iterdir()}

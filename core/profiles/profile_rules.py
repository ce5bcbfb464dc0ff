"""What profiles and their pipelines must keep to, seen when the agent is built (semantics 13, L1 and L2).

    for error in profile_problems(profile, profiles, tools, models): ...

Each problem is an error that says what to write instead. Duplicate ids are the registry's business.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from ...messages.errors import AgentError, InvalidConfig, ProfileNotFound
from ..ports.protocols import ToolHandler
from ..tools.declaration import tags_of
from .modes import Budget, Pipeline, ReAct, SingleShot, Step
from .profile import AgentProfile, ProfileKind, QuickAction, has_tags

_REFERENCE = re.compile(r"\{steps\.([^{}]*)\}")


def profile_problems(
    profile: AgentProfile,
    profiles: Mapping[str, AgentProfile],
    tools: Mapping[str, ToolHandler],
    models: Collection[str] | None,
) -> Iterator[AgentError]:
    """Every problem of one profile. ``profiles``: all of them; ``models``: None leaves its model unchecked."""
    place = f"profile {profile.id!r}"
    if profile.kind not in set(ProfileKind):
        yield InvalidConfig(f"{place} is of kind {profile.kind!r}; write ProfileKind.SKILL or ProfileKind.DOMAIN")
    yield from _parent_problems(place, profile, profiles)
    yield from _unknown_tools(place, [*(profile.tools or ()), *profile.exclude_tools], tools)
    if profile.require_tags and not any(has_tags(handler, profile.require_tags) for handler in tools.values()):
        used = ", ".join(dict.fromkeys(tag for handler in tools.values() for tag in tags_of(handler))) or "none"
        yield InvalidConfig(f"{place}: no tool carries all of require_tags {profile.require_tags}; tags in use: {used}")
    if models is not None and profile.model_id is not None and profile.model_id not in models:
        yield InvalidConfig(f"{place} uses model {profile.model_id!r}; registered: {', '.join(models) or 'none'}")
    if not all(isinstance(action, QuickAction) for action in profile.quick_actions):
        yield InvalidConfig(f"{place}: quick_actions are QuickAction(label, prompt) objects")
    yield from _budget_problems(place, profile.budget)
    yield from _mode_problems(place, profile.mode, tools)


def _parent_problems(place: str, profile: AgentProfile, profiles: Mapping[str, AgentProfile]) -> Iterator[AgentError]:
    if profile.extends is None:
        return
    parent = profiles.get(profile.extends)
    if parent is None:
        known = ", ".join(each for each in profiles if each != profile.id) or "none"
        yield ProfileNotFound(f"{place} extends {profile.extends!r}, which is not registered; registered: {known}")
    elif parent.extends is not None:
        yield InvalidConfig(
            f"{place} extends {parent.id!r}, which extends {parent.extends!r}; only one level is allowed: "
            "extend a profile that extends none"
        )


def _unknown_tools(place: str, names: Iterable[str], tools: Mapping[str, ToolHandler]) -> Iterator[AgentError]:
    for name in dict.fromkeys(names):
        if name not in tools:
            known = ", ".join(tools) or "none"
            yield InvalidConfig(f"{place} names tool {name!r}; registered: {known}.")


def _budget_problems(place: str, budget: Any) -> Iterator[AgentError]:
    if budget is None:
        return
    if not isinstance(budget, Budget):
        yield InvalidConfig(f"{place}: budget is a {type(budget).__name__}; write Budget(max_rounds=..., ...)")
        return
    for name, limit in (("max_rounds", budget.max_rounds), ("max_tool_calls", budget.max_tool_calls)):
        if limit is not None and not (isinstance(limit, int) and limit > 0):
            yield InvalidConfig(f"{place}: {name} is {limit!r}; pass a positive integer, or None for no own limit")


def _mode_problems(place: str, mode: Any, tools: Mapping[str, ToolHandler]) -> Iterator[AgentError]:
    match mode:
        case None | SingleShot():
            return
        case ReAct(budget=budget):
            yield from _budget_problems(place, budget)
        case Pipeline(steps=()):
            yield InvalidConfig(f"{place}: its pipeline has no steps; write Pipeline((Step(name, prompt), ...))")
        case Pipeline(steps=steps):
            yield from _pipeline_problems(place, steps, tools)
        case _:
            yield InvalidConfig(f"{place}: mode is {mode!r}; write ReAct(), SingleShot() or Pipeline(steps)")


def _pipeline_problems(place: str, steps: Iterable[Any], tools: Mapping[str, ToolHandler]) -> Iterator[AgentError]:
    names: set[str] = set()
    for step in steps:
        if not isinstance(step, Step):
            yield InvalidConfig(f"{place}: a step is a {type(step).__name__}; write Step(name, prompt)")
            continue
        where = f"{place}, step {step.name!r}"
        yield from _step_problems(where, step, tools)
        for name in _REFERENCE.findall(step.prompt):
            if name not in names:
                earlier = ", ".join(sorted(names)) or "none"
                yield InvalidConfig(f"{where} refers to {{steps.{name}}}; the steps before it are: {earlier}")
        if step.key in names:
            yield InvalidConfig(f"{where}: an earlier step has the name {step.key!r} too; give it another output")
        names.add(step.key)


def _step_problems(where: str, step: Step, tools: Mapping[str, ToolHandler]) -> Iterator[AgentError]:
    if not step.name or not step.prompt.strip():
        yield InvalidConfig(f"{where}: a step needs a name and a prompt; write Step('outline', 'Outline: {{input}}')")
    if isinstance(step.mode, Pipeline):
        yield InvalidConfig(f"{where}: no pipeline inside a pipeline; put its steps into the outer one")
    else:
        yield from _mode_problems(where, step.mode, tools)
    yield from _unknown_tools(where, step.tools or (), tools)
    yield from _budget_problems(where, step.budget)
    if not isinstance(step.retries, int) or step.retries < 0:
        yield InvalidConfig(f"{where}: retries is {step.retries!r}; pass 0 or a positive integer")

"""Profiles laid over each other, their rules, and what a front end sees of them (semantics 13)."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from youyou.core.config import AgentConfig, RetryPolicy
from youyou.core.profiles.discovery import ProfileInfo, ToolInfo, discovery
from youyou.core.profiles.modes import Budget, Pipeline, ReAct, SingleShot, Step
from youyou.core.profiles.profile import AgentProfile, ProfileKind, ProfileOrigins, QuickAction, resolve_profile
from youyou.core.profiles.profile_rules import profile_problems
from youyou.core.tools.declaration import Tool
from youyou.messages.codec import from_json, to_json
from youyou.messages.errors import InvalidConfig, ProfileNotFound

CONFIG = AgentConfig(default_model="m1")
TAGS = {"outline": ("chapter", "read"), "save": ("write",), "search": ("read",), "cards": ("chapter", "write")}
TOOLS = {
    name: Tool(name, name.title(), {}, lambda _: "", mutating="write" in tags, tags=tags, icon=f"{name}-icon")
    for name, tags in TAGS.items()
}


def domain(id="d", **fields):
    return AgentProfile(id, ProfileKind.DOMAIN, id.upper(), f"About {id}.", **fields)


def skill(id="s", **fields):
    return AgentProfile(id, ProfileKind.SKILL, id.upper(), f"About {id}.", **fields)


def resolve(*profiles, domain=None, skill=None):
    return resolve_profile(CONFIG, TOOLS, {each.id: each for each in profiles}, domain, skill)


def test_without_a_profile_the_agent_decides():
    """All tools, the default model, free rounds and the agent's limit of calls; every origin is the agent."""
    resolved = resolve()

    assert resolved.instructions is None
    assert resolved.tools == tuple(TOOLS)
    assert resolved.mode == ReAct()
    assert resolved.budget == Budget(max_tool_calls=50)
    assert resolved.model_id == "m1"
    assert resolved.origins == ProfileOrigins(tools=(None,) * 4)


def test_instructions_are_joined_from_the_lowest_layer_up():
    """Parent, child, domain below skill; blank ones are left out, and each part's origin is known."""
    resolved = resolve(
        domain("dp", instructions="1"),
        domain("d", instructions="2", extends="dp"),
        skill("sp", instructions=" "),
        skill("s", instructions="4", extends="sp"),
        domain="d",
        skill="s",
    )

    assert resolved.instructions == "1\n\n2\n\n4"
    assert resolved.origins.instructions == ("dp", "d", "s")


@pytest.mark.parametrize(
    ("lower", "upper", "expected", "origins"),
    [
        ({}, {}, ("outline", "save", "search", "cards"), (None, None, None, None)),
        ({"tools": ("search",)}, {}, ("search",), ("d",)),
        ({"tools": ("search",)}, {"tools": ("save", "search")}, ("save", "search"), ("s", "d")),
        ({"tools": ()}, {}, (), ()),
        ({"tools": ()}, {"tools": ("save",)}, ("save",), ("s",)),
        ({"require_tags": ("read",)}, {}, ("outline", "search"), ("d", "d")),
        ({"require_tags": ("chapter", "write")}, {}, ("cards",), ("d",)),
        ({"require_tags": ("read",)}, {"tools": ("save",)}, ("outline", "save", "search"), ("d", "s", "d")),
        ({"exclude_tools": ("save",)}, {}, ("outline", "search", "cards"), (None, None, None)),
        ({"exclude_tools": ("save",)}, {"tools": ("save", "search")}, ("search",), ("s",)),
        ({"tools": ("save",)}, {"exclude_tools": ("save",)}, (), ()),
    ],
)
def test_tools_are_united_and_then_excluded(lower, upper, expected, origins):
    """Names and tags of all layers add up, exclusions of any layer win, and nothing named means all tools."""
    resolved = resolve(domain(**lower), skill(**upper), domain="d", skill="s")

    assert expected == resolved.tools
    assert origins == resolved.origins.tools


@pytest.mark.parametrize(
    ("layers", "expected", "origin"),
    [
        ([{}, {}, {}, {}], "m1", None),
        ([{"model_id": "a"}, {}, {}, {}], "a", "dp"),
        ([{"model_id": "a"}, {"model_id": "b"}, {}, {}], "b", "d"),
        ([{"model_id": "a"}, {"model_id": "b"}, {"model_id": "c"}, {}], "c", "sp"),
        ([{"model_id": "a"}, {}, {"model_id": "c"}, {"model_id": "e"}], "e", "s"),
    ],
)
def test_the_nearest_model_counts(layers, expected, origin):
    """The skill comes before its parent, the parent before the domain, the domain before its parent."""
    resolved = resolve(
        domain("dp", **layers[0]),
        domain("d", extends="dp", **layers[1]),
        skill("sp", **layers[2]),
        skill("s", extends="sp", **layers[3]),
        domain="d",
        skill="s",
    )

    assert expected == resolved.model_id
    assert origin == resolved.origins.model_id


@pytest.mark.parametrize(
    ("lower", "upper", "mode", "mode_origin", "budget", "budget_origin"),
    [
        ({"mode": SingleShot()}, {}, SingleShot(), "d", Budget(None, 50), None),
        ({"mode": SingleShot()}, {"mode": ReAct()}, ReAct(), "s", Budget(None, 50), None),
        ({"budget": Budget(3, 4)}, {}, ReAct(), None, Budget(3, 4), "d"),
        ({"budget": Budget(3)}, {"budget": Budget(None, 9)}, ReAct(), None, Budget(None, 9), "s"),
        ({"mode": ReAct(Budget(3))}, {}, ReAct(Budget(3)), "d", Budget(3, 50), "d"),
        ({"mode": ReAct(Budget(3))}, {"mode": ReAct()}, ReAct(), "s", Budget(None, 50), None),
        ({"mode": ReAct(Budget(3))}, {"budget": Budget(5)}, ReAct(Budget(3)), "d", Budget(5, 50), "s"),
        ({"budget": Budget(5)}, {"mode": ReAct(Budget(3))}, ReAct(Budget(3)), "s", Budget(3, 50), "s"),
    ],
)
def test_the_nearest_mode_and_budget_count(lower, upper, mode, mode_origin, budget, budget_origin):
    """A budget inside a mode counts as its layer's; a limit that is not set is the agent's."""
    resolved = resolve(domain(**lower), skill(**upper), domain="d", skill="s")

    assert (mode, budget) == (resolved.mode, resolved.budget)
    assert (mode_origin, budget_origin) == (resolved.origins.mode, resolved.origins.budget)


def test_a_single_shot_has_no_tools():
    """What a mode cannot use is not among the effective tools."""
    assert resolve(skill(mode=SingleShot(), tools=("save",)), skill="s").tools == ()


@pytest.mark.parametrize(
    ("asked", "kind"), [({"domain": "s"}, "domain"), ({"skill": "d"}, "skill"), ({"skill": "x"}, "skill")]
)
def test_an_unknown_profile_or_one_of_the_other_kind_is_not_found(asked, kind):
    """A session picks at most one profile of each kind, by its id."""
    with pytest.raises(ProfileNotFound, match=f"no {kind} profile"):
        resolve(domain(), skill(), **asked)


fields = st.fixed_dictionaries(
    {},
    optional={
        "tools": st.lists(st.sampled_from(list(TOOLS)), unique=True),
        "require_tags": st.sampled_from([("read",), ("write",), ("chapter",)]),
        "exclude_tools": st.lists(st.sampled_from(list(TOOLS)), unique=True),
        "mode": st.sampled_from([ReAct(), ReAct(Budget(2)), Pipeline((Step("a", "b"),))]),
        "budget": st.sampled_from([Budget(1), Budget(None, 2)]),
        "instructions": st.sampled_from(["x", "y"]),
    },
)


@given(fields, fields)
def test_every_effective_value_has_an_origin_that_says_so(lower, upper):
    """Origins and values agree: what comes from a layer is named there, what comes from none is the agent's."""
    layers = {"d": lower, "s": upper}
    resolved = resolve(domain(**lower), skill(**upper), domain="d", skill="s")

    assert list(resolved.tools) == [name for name in TOOLS if name in resolved.tools]
    assert not set(resolved.tools) & {*lower.get("exclude_tools", ()), *upper.get("exclude_tools", ())}
    for name, origin in zip(resolved.tools, resolved.origins.tools, strict=True):
        layer = layers.get(origin, {})
        required = layer.get("require_tags")
        assert origin is None or name in layer.get("tools", ()) or set(required) <= set(TAGS[name])
    assert resolved.mode == layers.get(resolved.origins.mode, {}).get("mode", ReAct())


def step(name="a", prompt="{input}", **fields):
    return Step(name, prompt, **fields)


@pytest.mark.parametrize(
    ("profile", "advice"),
    [
        (domain(extends="nope"), "extends 'nope', which is not registered; registered: base, child"),
        (domain(extends="child"), "only one level is allowed"),
        (domain(extends="d"), "only one level is allowed"),
        (domain(tools=("sav",)), "names tool 'sav'; registered: outline"),
        (domain(exclude_tools=("sav",)), "names tool 'sav'"),
        (domain(require_tags=("read", "write")), "tags in use: chapter, read, write"),
        (domain(require_tags=("chapters",)), "no tool carries"),
        (domain(model_id="m9"), "uses model 'm9'; registered: m1"),
        (domain(mode=Pipeline(())), "its pipeline has no steps"),
        (domain(mode="react"), "write ReAct(), SingleShot() or Pipeline(steps)"),
        (domain(mode=ReAct), "write ReAct()"),
        (domain(mode=ReAct(Budget(0))), "max_rounds is 0"),
        (domain(budget=Budget(max_tool_calls=-1)), "max_tool_calls is -1"),
        (domain(budget=3), "write Budget("),
        (domain(quick_actions=("Go",)), "QuickAction(label, prompt)"),
        (attrs.evolve(domain(), kind="area"), "ProfileKind.SKILL or ProfileKind.DOMAIN"),
        (domain(mode=Pipeline((step(), "b"))), "write Step(name, prompt)"),
        (domain(mode=Pipeline((step(prompt=" "),))), "needs a name and a prompt"),
        (domain(mode=Pipeline((step(""),))), "needs a name and a prompt"),
        (domain(mode=Pipeline((step(), step()))), "the name 'a' too"),
        (domain(mode=Pipeline((step("a", output="x"), step("b", output="x")))), "the name 'x' too"),
        (domain(mode=Pipeline((step(mode=Pipeline((step(),))),))), "no pipeline inside a pipeline"),
        (domain(mode=Pipeline((step(mode="free"),))), "step 'a': mode is 'free'"),
        (domain(mode=Pipeline((step(tools=("sav",)),))), "step 'a' names tool 'sav'"),
        (domain(mode=Pipeline((step(budget=Budget(0)),))), "step 'a': max_rounds is 0"),
        (domain(mode=Pipeline((step(retries=-1),))), "retries is -1"),
        (domain(mode=Pipeline((step(prompt="{steps.b}"), step("b")))), "refers to {steps.b}"),
        (domain(mode=Pipeline((step(prompt="{steps.a}"),))), "the steps before it are: none"),
        (domain(mode=Pipeline((step("a", output="x"), step("b", "{steps.a}")))), "the steps before it are: x"),
    ],
)
def test_each_rule_for_profiles_has_its_advice(profile, advice):
    """Parents, tools, tags, models, budgets and pipelines are checked when the agent is built."""
    others = {each.id: each for each in (domain("base"), domain("child", extends="base"))}

    problems = list(profile_problems(profile, {**others, "d": profile}, TOOLS, ["m1"]))

    assert problems
    assert all(advice in problem.message for problem in problems)
    assert isinstance(problems[0], InvalidConfig | ProfileNotFound)


GOOD = domain(
    icon="pen",
    tools=("save",),
    mode=Pipeline(
        (
            step(
                "outline", "Outline {input} as {json}", output="o", tools=("outline",), mode=SingleShot(RetryPolicy())
            ),
            step("cards", "{steps.o} {input}", mode=ReAct(Budget(2, 3)), budget=Budget(1), retries=2),
        )
    ),
    extends="base",
    quick_actions=(QuickAction("Go", "Go on"),),
)
BASE = domain(
    "base", icon="book", quick_actions=(QuickAction("Help", "Help me", "life-ring"),), instructions="Be kind."
)


@pytest.mark.parametrize("profile", [GOOD, attrs.evolve(skill(), kind="skill"), skill(extends="base", model_id="m1")])
def test_what_keeps_to_the_rules_is_accepted(profile):
    """A pipeline over earlier steps, a parent that stands alone and known names are all right."""
    assert list(profile_problems(profile, {"base": BASE, profile.id: profile}, TOOLS, ["m1"])) == []


def test_an_unknown_set_of_models_is_no_reason_to_complain():
    """While a provider is broken, no profile is blamed for its model."""
    assert list(profile_problems(skill(model_id="m9"), {}, TOOLS, None)) == []


def test_a_front_end_sees_everything_it_needs():
    """Names, icons, quick actions, mode and tools, inherited ones included, in order of registration."""
    base, good = discovery(CONFIG, TOOLS, {"base": BASE, "d": GOOD})

    expected = ProfileInfo(
        id="d",
        kind=ProfileKind.DOMAIN,
        display_name="D",
        description="About d.",
        icon="pen",
        mode=GOOD.mode,
        budget=Budget(None, 50),
        model_id="m1",
        tools=(
            ToolInfo("outline", "outline", "Outline", "outline-icon", False, ("chapter", "read")),
            ToolInfo("save", "save", "Save", "save-icon", True, ("write",)),
        ),
        quick_actions=(QuickAction("Help", "Help me", "life-ring"), QuickAction("Go", "Go on")),
        extends="base",
        resolved=None,
    )
    assert expected == good
    assert base.icon == "book"
    assert len(base.tools) == len(TOOLS)


def test_an_icon_is_inherited():
    """A profile without an icon shows its parent's."""
    (_, child) = discovery(CONFIG, TOOLS, {"base": BASE, "child": domain("child", extends="base")})

    assert child.icon == "book"


def test_resolved_profiles_tell_where_values_come_from():
    """Asked for, each profile carries its effective values, the same that a session would use."""
    profiles = {"base": BASE, "d": GOOD, "s": skill(model_id="m1")}
    infos = discovery(CONFIG, TOOLS, profiles, resolved=True)

    assert [each.resolved for each in infos] == [
        resolve(*profiles.values(), domain="base"),
        resolve(*profiles.values(), domain="d"),
        resolve(*profiles.values(), skill="s"),
    ]
    assert infos[1].resolved.origins.instructions == ("base",)


@pytest.mark.parametrize("resolved", [False, True])
def test_profiles_travel_as_json(resolved):
    """What a front end gets goes through the one converter and comes back equal."""
    infos = discovery(CONFIG, TOOLS, {"base": BASE, "d": GOOD, "s": skill(mode=SingleShot())}, resolved=resolved)

    assert infos == from_json(tuple[ProfileInfo, ...], to_json(infos))

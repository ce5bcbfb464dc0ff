"""Everything that is registered, judged together (semantics 2)."""

from __future__ import annotations

from types import SimpleNamespace

import attrs
import pytest
from youyou.core.config import AgentConfig, EnvironmentContext, Notices, RetryPolicy
from youyou.core.ports.protocols import ModelInfo
from youyou.core.ports.whole_plugin import WholePlugin
from youyou.core.profiles.profile import AgentProfile, ProfileKind
from youyou.core.prompts.skills import SkillDefinition
from youyou.core.registry.registry import Part, Registrations, Registry, validate
from youyou.core.tools.declaration import Tool
from youyou.messages.errors import (
    AgentError,
    InvalidConfig,
    InvalidDefaultModel,
    NameConflict,
    NoModelProvider,
    ProfileNotFound,
    SkillDependencyNotMet,
    StorageDuplicate,
)

CONFIG = AgentConfig(default_model="m1")


class Provider:
    def __init__(self, id="p1", models=("m1",)):
        self.id = id
        self._models = [ModelInfo(m, m.upper(), 1_000) if isinstance(m, str) else m for m in models]

    def models(self):
        return self._models

    async def chat(self, request):
        yield


class AsyncModels(Provider):
    async def models(self):
        return []


class AsyncChat(Provider):
    async def chat(self, request):
        return None


class RaisingModels(Provider):
    def models(self):
        raise ValueError("no network")


class RaisingId(Provider):
    @property
    def id(self):
        raise RuntimeError("no id")

    @id.setter
    def id(self, _): ...


class Plugin:
    display_name = "Audit"
    description = "Audits."

    def __init__(self, id="audit"):
        self.id = id

    async def initialize(self, config): ...

    def apply(self, ctx): ...

    async def shutdown(self): ...


class Misspelt:
    id = "audit"
    description = "Audits."

    def aply(self, ctx): ...


class AsyncApply(Plugin):
    async def apply(self, ctx): ...


class Sessions:
    async def save_events(self, session_id, events): ...

    async def load_session(self, session_id): ...

    async def list_sessions(self, cursor=None, limit=50): ...

    async def find_session(self, query): ...

    async def delete_session(self, session_id): ...


class Memories:
    async def search(self, namespace, query, limit): ...

    async def save(self, memory): ...

    async def delete(self, namespace, id): ...


class Lacking:
    """Has a name and nothing else."""

    id = name = "x"
    display_name = description = "X"


def plain(input):
    return ""


def a_tool(name="read", parameters=None, **fields):
    return Tool(name, "Reads.", parameters or {}, plain, **fields)


def a_skill(name="commit", tools=()):
    return SkillDefinition(name, "Commit", "Commits.", "Commit it.", tools)


def a_profile(id="writing", **fields):
    return AgentProfile(id, ProfileKind.DOMAIN, "Writing", "Writes.", **fields)


def registered(*parts, config=CONFIG):
    registrations = Registrations(config)
    for part, value, *rest in parts:
        registrations.add(part, value, *rest)
    return registrations


PROVIDER = (Part.PROVIDER, Provider())


def test_a_registry_holds_everything_in_order_and_read_only():
    """What was registered is found by name, in order of registration, and cannot be changed."""
    p1, p2 = Provider(), Provider("p2", ("m2", "m3"))
    read, write, skill, profile = a_tool(), a_tool("write"), a_skill(tools=("read",)), a_profile(tools=("read",))
    audit, trace, sessions, memories = Plugin(), Plugin("trace"), Sessions(), Memories()

    registry = validate(
        registered(
            (Part.PROFILE, profile),
            (Part.SKILL, skill),
            (Part.PLUGIN, audit, {"level": 1}),
            (Part.TOOL, write),
            (Part.TOOL, read),
            (Part.PROVIDER, p1),
            (Part.PLUGIN, trace),
            (Part.SESSION_STORAGE, sessions),
            (Part.PROVIDER, p2),
            (Part.MEMORY_STORAGE, memories),
        )
    )

    expected = Registry(
        config=CONFIG,
        providers=(p1, p2),
        models={"m1": (p1.models()[0], p1), "m2": (p2.models()[0], p2), "m3": (p2.models()[1], p2)},
        tools={"write": write, "read": read},
        checkers=registry.checkers,
        skills={"commit": skill},
        plugins=((WholePlugin(audit), {"level": 1}), (WholePlugin(trace), None)),
        session_storage=sessions,
        memory_storage=memories,
        profiles={"writing": profile},
    )
    assert attrs.asdict(expected, recurse=False) == attrs.asdict(registry, recurse=False)
    assert list(registry.tools) == ["write", "read"]
    assert list(registry.checkers) == ["write", "read"]
    assert registry.checkers["read"].check({}) is None
    with pytest.raises(TypeError):
        registry.tools["other"] = read


def test_the_least_agent_is_a_provider():
    """All but a provider with the default model is optional."""
    registry = validate(registered(PROVIDER))

    assert not any([registry.tools, registry.skills, registry.profiles, registry.plugins])
    assert registry.session_storage is None
    assert registry.memory_storage is None


@pytest.mark.parametrize(
    ("parts", "error", "advice"),
    [
        ([], NoModelProvider, "register_model_provider"),
        (
            [PROVIDER, (Part.PROVIDER, Provider(models=("m2",)))],
            NameConflict,
            "model provider 'p1' is registered twice",
        ),
        ([PROVIDER, (Part.PROVIDER, Provider("p2"))], NameConflict, "offered by 'p1' and 'p2'"),
        ([(Part.PROVIDER, Provider(models=("m1", "m1")))], NameConflict, "model 'm1'"),
        ([(Part.PROVIDER, Provider(models=("m2",)))], InvalidDefaultModel, "the models are: m2"),
        ([(Part.PROVIDER, Provider(models=()))], InvalidDefaultModel, "the models are: none"),
        ([PROVIDER, (Part.TOOL, a_tool()), (Part.TOOL, a_tool())], NameConflict, "rename one, or pass Tool(name=...)"),
        ([PROVIDER, (Part.SKILL, a_skill()), (Part.SKILL, a_skill())], NameConflict, "skill 'commit'"),
        ([PROVIDER, (Part.PLUGIN, Plugin()), (Part.PLUGIN, Plugin())], NameConflict, "plugin 'audit'"),
        ([PROVIDER, (Part.PROFILE, a_profile()), (Part.PROFILE, a_profile())], NameConflict, "profile 'writing'"),
        ([PROVIDER, (Part.SKILL, a_skill(tools=("read",)))], SkillDependencyNotMet, "requires tool 'read'"),
        ([PROVIDER, *[(Part.SESSION_STORAGE, Sessions())] * 2], StorageDuplicate, "second session storage"),
        ([PROVIDER, *[(Part.MEMORY_STORAGE, Memories())] * 2], StorageDuplicate, "second memory storage"),
        ([PROVIDER, (Part.PROFILE, a_profile(extends="base"))], ProfileNotFound, "extends 'base'"),
        ([PROVIDER, (Part.PROFILE, a_profile(model_id="m9"))], InvalidConfig, "registered: m1"),
    ],
)
def test_each_rule_of_building_has_its_error(parts, error, advice):
    """Names, models, dependencies and storages are checked at the call of build, each with the documented code."""
    with pytest.raises(error) as caught:
        validate(registered(*parts))

    assert advice in caught.value.message
    assert not hasattr(caught.value, "__notes__")


@pytest.mark.parametrize(
    ("part", "value", "advice"),
    [
        *[(part, Lacking(), "lacks") for part in Part if part not in (Part.SKILL, Part.PROFILE, Part.PLUGIN)],
        (Part.PLUGIN, SimpleNamespace(id="audit", display_name="Audit"), "does nothing: write def apply(self, ctx)"),
        (Part.PLUGIN, SimpleNamespace(id="audit", apply=3), "apply is 3; write a method"),
        (Part.PLUGIN, Misspelt(), "has aply(), which nobody calls; did you mean apply()?"),
        (Part.PLUGIN, SimpleNamespace(id="audit", description=None), "description is None"),
        (Part.PLUGIN, SimpleNamespace(description="Audits."), "lacks id"),
        *[(part, None, "NoneType") for part in Part],
        (Part.PROVIDER, Provider, "register an object: Provider(...)"),
        (Part.PLUGIN, Plugin, "register an object: Plugin(...)"),
        (Part.TOOL, plain, "put @youyou.tool above it"),
        (Part.SKILL, Lacking(), "write SkillDefinition(...)"),
        (Part.PROFILE, {"id": "x"}, "write AgentProfile(...)"),
        (Part.PROVIDER, AsyncModels(), "write def models(self)"),
        (Part.PROVIDER, AsyncChat(), "async generator"),
        (Part.PROVIDER, RaisingModels(), "raised ValueError: no network"),
        (Part.PROVIDER, RaisingId(), "lacks id"),
        (Part.PROVIDER, Provider(id=3), "id is 3; it must be a string"),
        (Part.PROVIDER, Provider(id=" "), "blank id"),
        (Part.PROVIDER, Provider(models=[{"id": "m"}]), "give ModelInfo objects"),
        (Part.PROVIDER, Provider(models=[ModelInfo(None, "M", 1)]), "id None"),
        (Part.PROVIDER, Provider(models=[ModelInfo("m", "M", 0)]), "positive number of tokens"),
        (Part.PROVIDER, Provider(models=[ModelInfo("m", "M", 1, None)]), "give ModelCapabilities"),
        (Part.PLUGIN, AsyncApply(), "write def apply(self, ctx)"),
        (Part.PLUGIN, Plugin(id=None), "id is None"),
        (Part.TOOL, a_tool("weather today"), "1 to 64"),
        (Part.TOOL, a_tool("天气"), "1 to 64"),
        (Part.TOOL, a_tool("x" * 65), "1 to 64"),
        (Part.TOOL, a_tool("read\n"), "1 to 64"),
        (Part.TOOL, a_tool(""), "blank name"),
        (Part.TOOL, a_tool(parameters={"type": "string"}), '"type": "object"'),
        (Part.TOOL, a_tool(parameters={"properties": 3}), "not a valid JSON Schema"),
        (Part.TOOL, a_tool(timeout_ms=0), "positive integer or None"),
        (Part.TOOL, a_tool(timeout_ms=1.5), "positive integer or None"),
        (Part.TOOL, a_tool(mutating="no"), "say True or False"),
        (Part.TOOL, a_tool(tags=(1,)), "give strings"),
        (Part.TOOL, attrs.evolve(a_tool(), description=None), "description is None"),
        (Part.SKILL, a_skill("com mit"), "no space and no slash"),
        (Part.SKILL, a_skill("a/b"), "no space and no slash"),
        (Part.SKILL, a_skill(""), "blank name"),
    ],
)
def test_what_is_not_what_it_is_registered_as_is_refused(part, value, advice):
    """Objects without their protocol's members, and names that no API takes, are found before anything runs."""
    provider = [] if part is Part.PROVIDER else [PROVIDER]

    with pytest.raises(InvalidConfig) as caught:
        validate(registered(*provider, (part, value)))

    assert advice in caught.value.message


@pytest.mark.parametrize("name", ["read", "A-b_9", "x" * 64])
def test_names_that_apis_take_are_taken(name):
    """The whole range of names that APIs take is allowed."""
    assert list(validate(registered(PROVIDER, (Part.TOOL, a_tool(name)))).tools) == [name]


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"compact_threshold": 0}, "compact_threshold"),
        ({"compact_threshold": 1.01}, "compact_threshold"),
        ({"compact_threshold": float("nan")}, "compact_threshold"),
        ({"compact_threshold": "0.8"}, "compact_threshold"),
        ({"compact_threshold": True}, "compact_threshold"),
        *[
            ({name: value}, name)
            for name in attrs.fields_dict(AgentConfig)
            if isinstance(attrs.fields_dict(AgentConfig)[name].default, int)
            for value in (-1, 1.5, None, True, "1")
        ],
        *[
            ({field.name: 0}, field.name)
            for field in attrs.fields(AgentConfig)
            if isinstance(field.default, int)
            if field.name not in ("shutdown_grace_ms", "tool_patience_ms", "max_output_repairs")
        ],
        ({"default_model": ""}, "default_model"),
        ({"default_model": None}, "default_model"),
        ({"default_model": ["m1"]}, "default_model"),
        ({"memory_namespace": None}, "memory_namespace"),
        ({"personality": 3}, "personality"),
        ({"system_instructions": (1,)}, "system_instructions"),
        ({"temperature": -0.1}, "temperature"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"token_counter": 4}, "token_counter"),
        ({"environment": "linux"}, "environment"),
        ({"retry": 3}, "retry"),
        ({"retry": RetryPolicy(attempts=0)}, "retry.attempts"),
        ({"retry": RetryPolicy(base_ms=-1)}, "retry.base_ms"),
        ({"retry": RetryPolicy(jitter=2)}, "retry.jitter"),
        ({"notices": "english"}, "notices"),
        ({"notices": Notices(skipped_tool=None)}, "notices.skipped_tool"),
        ({"notices": Notices(timed_out_tool="after {seconds}")}, "notices.timed_out_tool"),
        ({"notices": Notices(aborted_tool="{")}, "notices.aborted_tool"),
        ({"notices": Notices(tool_limit="{limit.x}")}, "notices.tool_limit"),
    ],
)
def test_a_value_out_of_range_is_named(change, name):
    """Thresholds, limits, texts and their placeholders are checked; the error names the field."""
    with pytest.raises(InvalidConfig) as caught:
        validate(registered(PROVIDER, config=attrs.evolve(CONFIG, **change)))

    assert caught.value.message.startswith(f"AgentConfig.{name} is ")


@pytest.mark.parametrize(
    "change",
    [
        {"compact_threshold": 1},
        {"compact_threshold": 0.01},
        {"shutdown_grace_ms": 0, "tool_patience_ms": 0, "max_output_repairs": 0},
        {"temperature": 0},
        {"retry": RetryPolicy(1, 0, 0, 0)},
        {"notices": Notices.english()},
        {"notices": Notices(skipped_tool="{braces} are text here", timed_out_tool="too slow")},
        {"token_counter": len, "environment": EnvironmentContext()},
        {"compact_model": "m1", "memory_model": "m1"},
    ],
)
def test_the_ends_of_the_ranges_are_allowed(change):
    """What lies just inside is taken."""
    assert validate(registered(PROVIDER, config=attrs.evolve(CONFIG, **change))).models


@pytest.mark.parametrize("name", ["compact_model", "memory_model"])
def test_other_models_of_the_configuration_must_exist(name):
    """An unknown model for summaries or memories is a mistake of the configuration."""
    with pytest.raises(InvalidConfig, match=f"{name} 'm9' is not registered; the models are: m1"):
        validate(registered(PROVIDER, config=attrs.evolve(CONFIG, **{name: "m9"})))


def test_a_configuration_of_another_type_is_refused():
    """The builder's argument is checked, too."""
    for parts in ([], [PROVIDER]):
        with pytest.raises(InvalidConfig, match="pass AgentConfig"):
            validate(registered(*parts, config={"default_model": "m1"}))


def test_the_first_problem_is_raised_and_the_others_are_in_its_notes():
    """The order is that of registration, the configuration first, whatever the kind of part."""
    registrations = registered(
        (Part.TOOL, a_tool("bad name")),
        (Part.PROFILE, a_profile(extends="base")),
        PROVIDER,
        (Part.SKILL, a_skill(tools=("x",))),
        (Part.PROVIDER, Provider("p2")),
        config=attrs.evolve(CONFIG, event_buffer=0),
    )

    with pytest.raises(AgentError) as caught:
        validate(registrations)

    expected = [
        "[INVALID_CONFIG] tool 'bad name'",
        "[PROFILE_NOT_FOUND] profile 'writing'",
        "[SKILL_DEPENDENCY_NOT_MET] skill 'commit'",
        "[NAME_CONFLICT] model 'm1'",
    ]
    assert "event_buffer" in caught.value.message
    assert expected == [note[: len(start)] for note, start in zip(caught.value.__notes__, expected, strict=True)]


@pytest.mark.parametrize("broken", [RaisingModels(), Lacking(), Provider(models=[None])])
def test_a_broken_provider_is_the_only_complaint_about_models(broken):
    """That the default model is missing follows from the broken provider, and is not said."""
    with pytest.raises(InvalidConfig) as caught:
        validate(registered((Part.PROVIDER, broken), (Part.PROFILE, a_profile(model_id="m1"))))

    assert not hasattr(caught.value, "__notes__")
    assert "default_model" not in caught.value.message

"""What is wrong with a set of registrations, each problem at the position where it was registered (semantics 2).

Each rule adds the problems it finds and goes on with what is valid, so that one mistake does not hide another and
does not cause complaints about its consequences.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from ...messages.errors import (
    AgentError,
    InvalidConfig,
    InvalidDefaultModel,
    NameConflict,
    NoModelProvider,
    SkillDependencyNotMet,
    StorageDuplicate,
)
from ...messages.text import safe_str
from ..ports.protocols import ModelCapabilities, ModelInfo, ModelProvider
from ..profiles.profile_rules import profile_problems
from ..tools.schema import ArgumentChecker
from .config_rules import config_problems
from .protocol_checks import protocol_problem
from .registration import Part, Registration, Registrations

Named = Mapping[str, Registration]

# The common denominator of the APIs: each refuses other names with an error that does not say which tool.
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_SKILL_NAME = re.compile(r"[^\s/]+")


@attrs.define(eq=False)
class RegistrationProblems:
    """Problems found so far, and the registrations that have what their protocol asks for."""

    registrations: Registrations
    _problems: list[tuple[int, AgentError]] = attrs.field(factory=list)
    _valid: list[Registration] = attrs.field(factory=list)
    _models_known: bool = True

    def in_order(self) -> list[AgentError]:
        """All problems: those of the configuration, then by registration, then what is missing altogether."""
        return [error for _, error in sorted(self._problems, key=lambda problem: problem[0])]

    def _report(self, entry: Registration, *errors: AgentError) -> None:
        # By position, so that the first problem reported is the first line that the reader wrote.
        position = self.registrations.entries.index(entry)
        self._problems += [(position, error) for error in errors]

    def _drop(self, entry: Registration, error: AgentError) -> None:
        """Report what is not used any further. The models of a dropped provider are unknown, not missing."""
        self._report(entry, error)
        # With a provider dropped, "model not registered" would be a complaint about the consequence of another mistake.
        self._models_known &= entry.part is not Part.PROVIDER

    def check_config(self) -> None:
        """The ranges of the configuration, which comes before everything else."""
        self._problems += [(-1, error) for error in config_problems(self.registrations.config)]

    def filter_invalid(self) -> None:
        """Keep what fits the protocol of its part; the other rules see nothing else."""
        for entry in self.registrations.entries:
            problem = protocol_problem(entry.part, entry.value)
            if problem is None:
                self._valid.append(entry)
            else:
                self._drop(entry, problem)

    def named(self, part: Part, attribute: str, advice: str) -> dict[str, Registration]:
        """The valid registrations of one kind by name; a name that is taken is a conflict."""
        found: dict[str, Registration] = {}
        for entry in self._valid:
            if entry.part is not part:
                continue
            name: str = getattr(entry.value, attribute)
            if not name.strip():
                self._drop(entry, InvalidConfig(f"a {part} has a blank {attribute}; give it one"))
            elif name in found:
                self._drop(entry, NameConflict(f"{part} {name!r} is registered twice; {advice}"))
            else:
                found[name] = entry
        return found

    def models(self, providers: Named) -> dict[str, tuple[ModelInfo, ModelProvider]]:
        """All models by id, and whether the configuration names existing ones."""
        models: dict[str, tuple[ModelInfo, ModelProvider]] = {}
        for entry in providers.values():
            self._add_models(entry, models)
        if not any(entry.part is Part.PROVIDER for entry in self.registrations.entries):
            end = len(self.registrations.entries)
            missing = NoModelProvider(
                "no model provider is registered; call register_model_provider(...) before build()"
            )
            self._problems.append((end, missing))
        elif self._models_known:
            self._problems += [(-1, error) for error in self._unknown_models(models)]
        return models

    def _add_models(self, entry: Registration, models: dict[str, tuple[ModelInfo, ModelProvider]]) -> None:
        provider = entry.value
        try:
            # Code of the host's: it may raise, or give a generator.
            offered = list(provider.models())
        except Exception as error:
            self._models_known = False
            self._report(entry, InvalidConfig(f"models() of provider {provider.id!r} raised {safe_str(error)}"))
            return
        for model in offered:
            if (problem := _model_problem(provider.id, model)) is not None:
                self._models_known = False
                self._report(entry, problem)
            elif model.id in models:
                other = models[model.id][1].id
                self._report(
                    entry,
                    NameConflict(
                        f"model {model.id!r} is offered by {other!r} and {provider.id!r}; "
                        "model ids are unique across providers: give one of them another id"
                    ),
                )
            else:
                models[model.id] = (model, provider)

    def _unknown_models(self, models: Mapping[str, object]) -> Iterable[AgentError]:
        config, known = self.registrations.config, ", ".join(models) or "none"
        # What is not a string at all was reported with the configuration.
        default = getattr(config, "default_model", None)
        if isinstance(default, str) and default not in models:
            yield InvalidDefaultModel(f"default_model {default!r} is not registered; the models are: {known}")
        for name in ("compact_model", "memory_model"):
            model = getattr(config, name, None)
            if isinstance(model, str) and model not in models:
                yield InvalidConfig(f"{name} {model!r} is not registered; the models are: {known}")

    def checkers(self, tools: Named) -> dict[str, ArgumentChecker]:
        """A compiled checker for each tool whose schema is one."""
        found: dict[str, ArgumentChecker] = {}
        for name, entry in tools.items():
            self._report(entry, *_tool_problems(name, entry.value))
            try:
                found[name] = ArgumentChecker(name, entry.value.parameters)
            except InvalidConfig as error:
                self._report(entry, error)
        return found

    def check_skills(self, skills: Named, tools: Named) -> None:
        """A skill can be triggered by its name, and its tools are there."""
        for name, entry in skills.items():
            if not _SKILL_NAME.fullmatch(name):
                self._report(
                    entry, InvalidConfig(f"skill {name!r} cannot be written as /name; use no space and no slash")
                )
            for tool in entry.value.required_tools:
                if tool not in tools:
                    known = ", ".join(tools) or "none"
                    text = f"skill {name!r} requires tool {tool!r}; register it, too. Registered: {known}"
                    self._report(entry, SkillDependencyNotMet(text))

    def check_profiles(self, profiles: Named, tools: Named, models: Mapping[str, object]) -> None:
        """The rules of profiles (semantics 13)."""
        values = {id: entry.value for id, entry in profiles.items()}
        handlers = {name: entry.value for name, entry in tools.items()}
        known = models if self._models_known else None
        for id, entry in profiles.items():
            self._report(entry, *profile_problems(values[id], values, handlers, known))

    def storage(self, part: Part) -> Any:
        """The one storage of a kind, None without one; a second one is a problem."""
        entries = [entry for entry in self._valid if entry.part is part]
        for entry in entries[1:]:
            self._report(entry, StorageDuplicate(f"a second {part} is registered; register one only"))
        return entries[0].value if entries else None


def _model_problem(provider: str, model: Any) -> AgentError | None:
    if not isinstance(model, ModelInfo):
        return InvalidConfig(f"models() of provider {provider!r} gave a {type(model).__name__}; give ModelInfo objects")
    if not isinstance(model.id, str) or not model.id:
        return InvalidConfig(f"provider {provider!r} offers a model with id {model.id!r}; give it a name")
    if not isinstance(model.context_window, int) or model.context_window < 1:
        window = model.context_window
        return InvalidConfig(f"model {model.id!r} has context_window {window!r}; give a positive number of tokens")
    if not isinstance(model.capabilities, ModelCapabilities):
        can = model.capabilities
        return InvalidConfig(f"model {model.id!r} has capabilities {can!r}; give ModelCapabilities(...)")
    return None


def _tool_problems(name: str, handler: Any) -> Iterable[AgentError]:
    if not _TOOL_NAME.fullmatch(name):
        yield InvalidConfig(f"tool {name!r} has a name that APIs refuse; use 1 to 64 of a-z, A-Z, 0-9, _ and -")
    timeout_ms = getattr(handler, "timeout_ms", None)
    if timeout_ms is not None and (not isinstance(timeout_ms, int) or timeout_ms < 1):
        yield InvalidConfig(f"tool {name!r} has timeout_ms {timeout_ms!r}; give a positive integer or None")
    if not isinstance(handler.mutating, bool):
        yield InvalidConfig(f"tool {name!r} has mutating {handler.mutating!r}; say True or False")
    tags = getattr(handler, "tags", None) or ()
    if not isinstance(tags, Iterable) or not all(isinstance(tag, str) for tag in tags):
        yield InvalidConfig(f"tool {name!r} has tags {tags!r}; give strings")

"""Whether a registered object has what its protocol asks for (semantics 2).

    problem = protocol_problem(Part.PLUGIN, value)     # None, or an InvalidConfig that names what is missing

Looks at attributes and calls nothing but properties.
"""

from __future__ import annotations

import inspect
from difflib import get_close_matches
from typing import Any

from ...messages.errors import InvalidConfig
from ..ports.protocols import MemoryStorage, ModelProvider, SessionClaims, SessionStorage, ToolHandler
from ..ports.whole_plugin import WholePlugin
from ..profiles.profile import AgentProfile
from ..prompts.skills import SkillDefinition
from .registration import Part

# Attributes that are text, other attributes, methods.
_PROTOCOLS: dict[Part, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    Part.PROVIDER: (("id",), (), ("models", "chat")),
    Part.TOOL: (("name", "description"), ("parameters", "mutating"), ("execute",)),
    Part.PLUGIN: (("id",), (), ()),
    Part.SESSION_STORAGE: (
        (),
        (),
        ("save_events", "load_session", "list_sessions", "find_session", "delete_session"),
    ),
    Part.MEMORY_STORAGE: ((), (), ("search", "save", "delete")),
    Part.SKILL: (("name", "display_name", "description", "prompt"), (), ()),
    Part.PROFILE: (("id", "display_name", "description"), (), ()),
}
# What a part may leave out: texts and methods.
_OPTIONAL: dict[Part, tuple[tuple[str, ...], tuple[str, ...]]] = {
    Part.PLUGIN: (("display_name", "description"), ("initialize", "apply", "shutdown")),
}
_VALUES = {Part.SKILL: SkillDefinition, Part.PROFILE: AgentProfile}

# Methods whose result is used without an await: declared async, they would silently do nothing.
_NOT_ASYNC = {
    "models": "write def models(self)",
    "apply": "write def apply(self, ctx)",
    "chat": "write an async generator (async def with yield), or return an async context manager from a def",
}
_MISSING = object()

_CLASSES: dict[Part, tuple[type[Any], ...]] = {
    Part.PROVIDER: (ModelProvider,),
    Part.TOOL: (ToolHandler,),
    Part.PLUGIN: (WholePlugin,),
    Part.SESSION_STORAGE: (SessionStorage, SessionClaims),
    Part.MEMORY_STORAGE: (MemoryStorage,),
}


def protocol_problem(part: Part, value: Any) -> InvalidConfig | None:
    """The first thing that ``value`` lacks to be such a part, as an error that says what to write."""
    kind = type(value).__name__
    # A class has the methods as well and would pass all that follows.
    if isinstance(value, type):
        return InvalidConfig(f"{part} {value.__name__!r} is a class; register an object: {value.__name__}(...)")
    if part in _VALUES and not isinstance(value, _VALUES[part]):
        return InvalidConfig(f"a {kind} is registered as {part}; write {_VALUES[part].__name__}(...)")
    if part is Part.TOOL and inspect.isroutine(value):
        return InvalidConfig(f"tool {value.__name__!r} is a plain function; put @youyou.tool above it")
    return _attribute_problem(part, value, kind)


def _attribute_problem(part: Part, value: Any, kind: str) -> InvalidConfig | None:
    texts, others, methods = _PROTOCOLS[part]
    missing = [name for name in (*texts, *others) if _read(value, name) is _MISSING]
    missing += [f"{name}()" for name in methods if not callable(_read(value, name))]
    if missing:
        return InvalidConfig(
            f"a {kind} is registered as {part} and lacks {', '.join(missing)}; a whole one is in docs/parts.md"
        )
    if (odd := _optional_problem(part, value, kind)) is not None:
        return odd
    optional_texts, optional_methods = _OPTIONAL.get(part, ((), ()))
    texts += tuple(name for name in optional_texts if _read(value, name) is not _MISSING)
    methods += optional_methods
    for name in texts:
        if not isinstance(text := _read(value, name), str):
            return InvalidConfig(f"{part} {kind}: {name} is {text!r}; it must be a string")
    for name in methods:
        if name in _NOT_ASYNC and inspect.iscoroutinefunction(_read(value, name)):
            return InvalidConfig(f"{part} {kind}: {name} is a coroutine function; {_NOT_ASYNC[name]}")
    for protocol in _CLASSES.get(part, ()):
        for name, wanted in inspect.getmembers(protocol, inspect.isfunction):
            method = None if name.startswith("_") else _read(value, name)
            if callable(method) and (problem := _method_problem(method, wanted)) is not None:
                return InvalidConfig(f"{part} {kind}: {name} {problem}; write {_head(wanted)}")
    return None


def _optional_problem(part: Part, value: Any, kind: str) -> InvalidConfig | None:
    """What is wrong with what a part left out: all of it, or a method by a name that is nearly right."""
    texts, methods = _OPTIONAL.get(part, ((), ()))
    found = [name for name in (*texts, *methods) if _read(value, name) is not _MISSING]
    for name in methods:
        if name in found and not callable(_read(value, name)):
            return InvalidConfig(f"{part} {kind}: {name} is {_read(value, name)!r}; write a method")
    for name in dir(type(value)) if texts or methods else ():
        if not name.startswith("_") and name not in (*texts, *methods):
            near = get_close_matches(name, methods, n=1, cutoff=0.8)
            if near and near[0] not in found and callable(_read(value, name)):
                return InvalidConfig(f"{part} {kind} has {name}(), which nobody calls; did you mean {near[0]}()?")
    if methods and not {"description", *methods} & set(found):
        return InvalidConfig(f"{part} {kind} does nothing: write def apply(self, ctx), or one of {', '.join(methods)}")
    return None


def _method_problem(method: Any, wanted: Any) -> str | None:
    """What keeps the runtime from calling ``method`` as it calls ``wanted``, a function of a protocol."""
    if inspect.iscoroutinefunction(wanted) and _surely_sync(method):
        return "is not async, and the runtime awaits it"
    parameters = list(inspect.signature(wanted).parameters.values())[1:]  # without self
    by_place = [None for each in parameters if each.kind is not each.KEYWORD_ONLY]
    by_name = {each.name: None for each in parameters if each.kind is each.KEYWORD_ONLY}
    try:
        inspect.signature(method).bind(*by_place, **by_name)
    except TypeError as error:
        return f"takes other parameters than the runtime passes ({error})"
    except ValueError:  # something built in, without a signature
        return None
    return None


def _surely_sync(method: Any) -> bool:
    # What wraps an async function, a partial or a decorator, may be a plain one that returns its coroutine;
    # such a one takes whatever comes, or says by its annotation what it hands back.
    function = inspect.unwrap(getattr(method, "__func__", method))
    if not inspect.isfunction(function) or inspect.iscoroutinefunction(function):
        return False
    told = str(getattr(function, "__annotations__", {}).get("return", ""))
    if "Awaitable" in told or "Coroutine" in told:
        return False
    return not any(each.kind is each.VAR_POSITIONAL for each in inspect.signature(function).parameters.values())


def _head(wanted: Any) -> str:
    names = [
        f"*, {each.name}" if each.kind is each.KEYWORD_ONLY else each.name
        for each in inspect.signature(wanted).parameters.values()
    ]
    return f"{'async ' * inspect.iscoroutinefunction(wanted)}def {wanted.__name__}({', '.join(names)})"


def _read(value: object, name: str) -> Any:
    try:
        # Properties run code of the host's, and one that raises is as good as missing.
        return getattr(value, name, _MISSING)
    except Exception:
        return _MISSING

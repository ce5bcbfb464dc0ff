"""What a tool is: one declaration, made by hand or from a typed function (semantics 8, 13 L0).

    @tool(mutating=True, timeout_ms=5_000)
    async def save(note: Note, input: ToolInput) -> str:
        \"\"\"Save a note.\"\"\"

    @tool(thread="cooperative")
    def count(path: str) -> int: ...                    # a plain function runs in a worker thread

    Tool("echo", "Says it again.", {"type": "object"}, execute=echo)

Declares and describes; running, timing and cutting tools is the tool pool's work.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, Protocol, get_args, overload

import attrs
import msgspec

from ...messages.chat import ToolSpec
from ...messages.content import texts
from ...messages.errors import InvalidConfig
from ...messages.events import ToolOutput
from ...messages.history import ToolCall
from ...messages.jsonvalue import JsonObject, json_object
from ...messages.text import clean_json, clean_value
from ..ports.protocols import ToolHandler, ToolInput
from . import docstrings
from .schema import ArgumentChecker as ArgumentChecker
from .schema import full_schema
from .signature import Signature

ThreadStop = Literal["wait", "cooperative", "abandon"]


class Execute(Protocol):
    """What a tool does when it is called."""

    async def __call__(self, input: ToolInput) -> ToolOutput:
        """Execute the call."""


@attrs.frozen
class ThreadFunction:
    """A plain function as ``execute``. The runtime runs ``call`` in a worker thread of its own.

    ``thread`` says how it stops: "cooperative" (it checks `trio.from_thread.check_cancelled`), "abandon" (it may be
    abandoned), or "wait" (it is waited for). Awaited outside the runtime it runs where it is.
    """

    call: Callable[[ToolInput], ToolOutput]
    """The plain function; it is called in a worker thread."""
    thread: ThreadStop = attrs.field(default="wait")
    """How it stops: "wait" (default), "cooperative" or "abandon"."""

    @thread.validator
    def _is_known(self, _: object, thread: object) -> None:
        if thread not in get_args(ThreadStop):
            raise InvalidConfig(f'thread={thread!r} is unknown; write thread="wait", "cooperative" or "abandon"')

    async def __call__(self, input: ToolInput) -> ToolOutput:
        return self.call(input)  # noqa: ASYNC910  outside the runtime, where nothing waits


@attrs.frozen
class _Plain:
    """A plain function of a `ToolInput`."""

    function: Callable[[ToolInput], Any]

    def __call__(self, input: ToolInput) -> ToolOutput:
        return to_output(self.function(input))


@attrs.frozen
class _Typed:
    """A plain function of typed parameters."""

    function: Callable[..., Any]
    signature: Signature

    def __call__(self, input: ToolInput) -> ToolOutput:
        return to_output(self.function(**self.signature.bind(input)))


@attrs.frozen
class _TypedAsync:
    """An async function of typed parameters."""

    function: Callable[..., Any]
    signature: Signature

    async def __call__(self, input: ToolInput) -> ToolOutput:
        return to_output(await self.function(**self.signature.bind(input)))


def _executable(execute: Callable[[ToolInput], Any]) -> Execute:
    _refuse_uncallable(execute, "execute")
    if isinstance(execute, ThreadFunction) or is_async(execute):
        return execute  # type: ignore[return-value]  # an async callable under a parameter name of its own
    return ThreadFunction(_Plain(execute))


@attrs.frozen
class Tool(ToolHandler):  # said, as a type checker cannot match a converted field with the protocol's method
    """A tool as plain data: the only place where it is described (semantics 13 L0).

    Synopsis::

        Tool("weather", "Current weather.", schema, execute=weather, tags=("read",), timeout_ms=5_000)

    Args:
        execute: an async callable taking a `ToolInput`; a plain one becomes a `ThreadFunction` that is waited for.
        parameters: JSON Schema of the arguments.
        mutating: whether it has side effects; a batch with such a call runs serially.
        timeout_ms: how long it may run; None means the agent's ``tool_timeout_ms``.
        icon, label: for a front end.

    Calling the object calls the function it was made from.
    """

    name: str
    """Unique among the tools of an agent; what the model calls."""
    description: str
    """What the tool is for, written for the model."""
    parameters: JsonObject = attrs.field(converter=json_object)
    """JSON Schema of an object: the arguments. Keywords of any draft that jsonschema-rs knows."""
    execute: Execute = attrs.field(converter=_executable)
    """What runs: an async callable of a `ToolInput`; a plain one becomes a `ThreadFunction` that is waited for."""
    mutating: bool = False
    """Whether it has side effects. A batch with such a call runs one call after the other."""
    tags: tuple[str, ...] = attrs.field(default=(), converter=texts)
    """Words by which profiles choose tools (``require_tags``). Default: none."""
    timeout_ms: int | None = None
    """Milliseconds that it may run, from its start. None: the agent's ``tool_timeout_ms``."""
    icon: str | None = None
    """Name of an icon, for the front end to interpret. None: none."""
    label: str | None = None
    """Name that a front end shows. None: ``name``."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # So that a decorated function can still be called, and tested, as the function that it was.
        call = self.execute.call if isinstance(self.execute, ThreadFunction) else self.execute
        return getattr(call, "function", call)(*args, **kwargs)


@overload
def tool(
    fn: Callable[..., Any],
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    mutating: bool = False,
    tags: Iterable[str] = (),
    timeout_ms: int | None = None,
    icon: str | None = None,
    label: str | None = None,
    thread: ThreadStop = "wait",
) -> Tool: ...


@overload
def tool(
    fn: None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    mutating: bool = False,
    tags: Iterable[str] = (),
    timeout_ms: int | None = None,
    icon: str | None = None,
    label: str | None = None,
    thread: ThreadStop = "wait",
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    thread: ThreadStop = "wait",
    **fields: Any,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a `Tool` of a typed function (semantics 8).

    Synopsis::

        @tool
        async def weather(city: str, days: int = 1) -> str:
            \"\"\"Weather in a city.

            Args:
                city: Where.
                days: How many days ahead.
            \"\"\"

    The name and the description (the docstring's first paragraph) are the function's unless given; the schema comes
    from the hints. A parameter annotated `ToolInput` gets the input itself. A string is returned as it is, None as an
    empty text, other values as JSON. ``thread`` says how a plain function stops, see `ThreadFunction`.

    Raises:
        InvalidConfig: for what a model cannot call; the message says what to write instead.
    """

    def make(function: Callable[..., Any]) -> Tool:
        _refuse_uncallable(function, "tool")
        own_name = name or getattr(function, "__name__", None)
        if not own_name or own_name == "<lambda>":
            raise InvalidConfig('this function has no name of its own; write tool(name="...")')
        signature = Signature.of(function, own_name)
        said = docstrings.summary(function.__doc__) if description is None else description
        return Tool(own_name, said, signature.schema, _execute(function, signature, thread), **fields)

    return make if fn is None else make(fn)


def _execute(function: Callable[..., Any], signature: Signature, thread: ThreadStop) -> Execute:
    threaded = ThreadFunction(_Typed(function, signature), thread)
    if not is_async(function):
        return threaded
    if thread != "wait":
        raise InvalidConfig(f"tool {signature.tool!r} is async and runs in no thread; remove thread={thread!r}")
    return _TypedAsync(function, signature)


def is_async(function: Any) -> bool:
    """Whether calling it gives a coroutine: an async function, a partial of one, or an object with an async call."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def _refuse_uncallable(function: object, place: str) -> None:
    if isinstance(function, Tool):
        raise InvalidConfig(f"{place} got tool {function.name!r}, which is a tool already; use it as it is")
    if not callable(function) or isinstance(function, type):
        raise InvalidConfig(f"{place} needs a function, got {function!r}; write async def")
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        raise InvalidConfig(f"{place} got a generator; return the result, and tell progress by ToolInput.report(...)")


def to_output(value: object) -> ToolOutput:
    """What a tool returned as its output: text as it is, None as empty text, other values as JSON text."""
    match value:
        case ToolOutput():
            return value if isinstance(value.content, str) else attrs.evolve(value, content=str(value.content))
        case None:
            return ToolOutput("")
        case str():
            return ToolOutput(value)
        case _:
            return ToolOutput(_json_text(value))


def _json_text(value: object) -> str:
    if inspect.iscoroutine(value):
        # A coroutine that is never awaited warns later, in a place that says nothing about the tool.
        value.close()
        raise TypeError("the tool returned a coroutine: declare it 'async def', or await inside")
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        return msgspec.json.encode(clean_json(msgspec.to_builtins(value, str_keys=True))).decode()
    except TypeError as error:
        raise TypeError(
            f"the tool returned what JSON cannot carry ({error}); return text, JSON or ToolOutput"
        ) from error


def spec_of(handler: ToolHandler) -> ToolSpec:
    """The tool as the model sees it."""
    return clean_value(ToolSpec(handler.name, handler.description, full_schema(handler.parameters)))


def timeout_of(handler: ToolHandler, default_ms: int) -> int:
    """How long it may run, in milliseconds."""
    own: int | None = getattr(handler, "timeout_ms", None)
    return default_ms if own is None else own


def tags_of(handler: ToolHandler) -> tuple[str, ...]:
    """Its tags, none if it has no such attribute."""
    return texts(getattr(handler, "tags", None) or ())


# Unknown tools do not count: they are refused without running.
def batch_is_serial(calls: Iterable[ToolCall], tools: Mapping[str, ToolHandler]) -> bool:
    """Whether these calls run one after the other: any of them has side effects (semantics 8)."""
    return any(call.tool_name in tools and tools[call.tool_name].mutating for call in calls)

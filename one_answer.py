"""One call for one answer: an agent, a session and a turn of the usual kind, for the length of a call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, TypeVar, overload

import trio

from .builder import AgentBuilder
from .core.config import AgentConfig, Notices
from .core.ports.protocols import ModelProvider, ToolHandler
from .messages.content import Content, UserInput
from .messages.errors import WrongTrioRun

T = TypeVar("T")


@overload
async def ask(
    input: UserInput | Content,
    provider: ModelProvider,
    *,
    tools: Iterable[ToolHandler] = (),
    config: AgentConfig | None = None,
) -> str: ...


@overload
async def ask(
    input: UserInput | Content,
    provider: ModelProvider,
    *,
    output: type[T],
    tools: Iterable[ToolHandler] = (),
    config: AgentConfig | None = None,
) -> T: ...


@overload
async def ask(
    input: UserInput | Content,
    provider: ModelProvider,
    *,
    output: Mapping[str, Any],
    tools: Iterable[ToolHandler] = (),
    config: AgentConfig | None = None,
) -> Any: ...


async def ask(
    input: UserInput | Content,
    provider: ModelProvider,
    *,
    output: Any = None,
    tools: Iterable[ToolHandler] = (),
    config: AgentConfig | None = None,
) -> Any:
    """Ask a model once.

    Synopsis::

        print(await youyou.ask("Why is the sky blue?", OpenAIProvider(["gpt-5-mini"])))
        person = await youyou.ask(text, provider, output=Person)        # a Person (semantics 13.1)
        await youyou.ask("Weather in Oslo?", provider, tools=[weather])

    An agent is built, asked and left: for more than one question, or to see events, usage or history, build one.

    Cancellation: a checkpoint, bounded as leaving an agent is (semantics 6.2). Tools may have run.

    Args:
        input: as for `Session.send_message`.
        provider: the model to ask, its first one unless ``config`` names another.
        output: what the answer must be: a class, or a JSON Schema. None: text.
        tools: what the model may call.
        config: None: that of the provider's first model, with ``Notices.english()``.

    Returns:
        The text of the answer, or what ``output`` asks for.

    Raises:
        AgentError: whatever `AgentBuilder.build` or `Session.send_message` raises, or the turn failed with.
    """
    builder = AgentBuilder(config or _config(provider)).register_model_provider(provider)
    for tool in tools:
        builder.register_tool(tool)
    async with builder.build() as agent, agent.new_session(output=output) as session:
        result = await (await session.send_message(input)).result()
    if result.error is not None:
        raise result.error
    return result.text if output is None else result.output


def _config(provider: ModelProvider) -> AgentConfig:
    try:
        model = next(iter(provider.models())).id
    except Exception:
        model = "default"  # build() says what is wrong with the provider
    return AgentConfig(model, notices=Notices.english())


@overload
def ask_sync(
    input: UserInput | Content,
    provider: ModelProvider,
    *,
    tools: Iterable[ToolHandler] = (),
    config: AgentConfig | None = None,
) -> str: ...


@overload
def ask_sync(
    input: UserInput | Content,
    provider: ModelProvider,
    *,
    output: type[T],
    tools: Iterable[ToolHandler] = (),
    config: AgentConfig | None = None,
) -> T: ...


@overload
def ask_sync(
    input: UserInput | Content,
    provider: ModelProvider,
    *,
    output: Mapping[str, Any],
    tools: Iterable[ToolHandler] = (),
    config: AgentConfig | None = None,
) -> Any: ...


def ask_sync(
    input: UserInput | Content,
    provider: ModelProvider,
    *,
    output: Any = None,
    tools: Iterable[ToolHandler] = (),
    config: AgentConfig | None = None,
) -> Any:
    """The same as `ask`, for a program without Trio: it runs Trio for the length of the call.

    Synopsis::

        print(youyou.ask_sync("Why is the sky blue?", OpenAIProvider(["gpt-5-mini"])))

    Blocks its thread. Ctrl-C ends it within the bound of an agent (semantics 6.2).

    Raises:
        AgentError: as `ask`.
        WrongTrioRun: called within a Trio program, where it would block all tasks.
    """
    if trio.lowlevel.in_trio_run():
        raise WrongTrioRun("ask_sync() in a Trio program would block all of its tasks; write 'await youyou.ask(...)'")
    return trio.run(partial(ask, input, provider, output=output, tools=tools, config=config))

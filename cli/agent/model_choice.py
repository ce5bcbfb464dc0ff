"""Which models ``--model`` can name, what each still needs, and the provider for one.

local               the small model inside the process; local:FILE.gguf for another
openai:NAME         OpenAI, or with --base-url every server that speaks its API
anthropic:NAME      Claude
scripted            answers by rule: for trying and testing, without a model
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec

import attrs
import msgspec

from ...adapters.extras import install_command
from ...core.ports.protocols import ModelProvider
from ...messages.errors import InvalidConfig
from ..base.exits import OK, UsageError
from ..base.output import Output
from ..base.signals import Stops

DEFAULT = "local"
FORMS = "local, local:FILE.gguf, openai:NAME, anthropic:NAME or scripted"


@attrs.frozen
class Choice:
    """One form of ``--model``."""

    form: str
    what: str
    ready: bool
    needs: str = ""


def provider_for(model: str, base_url: str | None = None) -> ModelProvider:
    """The provider of what ``--model`` names.

    Raises:
        UsageError: it names nothing.
        AgentError: a package, a key or the weights are missing; the message names the command to run.
    """
    kind, _, name = model.partition(":")
    if base_url is not None and kind not in ("openai", "anthropic"):
        raise UsageError("--base-url goes with --model openai:NAME or anthropic:NAME")
    match kind:
        case "scripted" if not name:
            from .demo_model import DemoModel

            return DemoModel()
        case "local":
            from ...adapters.local import LocalProvider

            return LocalProvider(name or None)
        case "openai" if name:
            from ...adapters.openai import OpenAIProvider

            return OpenAIProvider([name], base_url=base_url)
        case "anthropic" if name:
            from ...adapters.anthropic import AnthropicProvider

            return AnthropicProvider([name], base_url=base_url)
    raise UsageError(f"--model {model} is unknown; write {FORMS}")


def choices() -> Iterator[Choice]:
    """Every form of ``--model`` and what it still needs."""
    yield _local()
    yield _sdk("openai:NAME", "OpenAI and every server that speaks its API", "openai", "OPENAI_API_KEY")
    yield _sdk("anthropic:NAME", "Claude", "anthropic", "ANTHROPIC_API_KEY")
    yield Choice("scripted", "answers by rule: for trying and testing, without a model", True)


def _local() -> Choice:
    what = "a small model inside the process, without network or key; local:FILE.gguf for another"
    if find_spec("xllamacpp") is None:
        return Choice("local", what, False, install_command("local"))
    from ...adapters.local.weights import COMMAND, find_weights

    try:
        find_weights()
    except InvalidConfig:
        return Choice("local", what, False, COMMAND)
    return Choice("local", what, True)


def _sdk(form: str, what: str, package: str, key: str) -> Choice:
    if find_spec(package) is None:
        return Choice(form, what, False, install_command(package))
    ready = key in os.environ
    return Choice(form, what, ready, "" if ready else f"{key}, or --base-url of a server without a key")


def listing(as_json: bool) -> str:
    """What ``youyou models`` prints."""
    found = list(choices())
    if as_json:
        return msgspec.json.encode([attrs.asdict(choice) for choice in found]).decode() + "\n"
    return "".join(_lines(choice) for choice in found)


def _lines(choice: Choice) -> str:
    state = "ready" if choice.ready else f"needs: {choice.needs}"
    return f"{choice.form:<16} {choice.what}\n{'':<16} {state}\n"


async def models(as_json: bool, stops: Stops) -> int:
    """Print what ``--model`` can be."""
    await Output(stops).write(listing(as_json))
    return OK

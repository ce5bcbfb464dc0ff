"""Making a provider: keys, models, and what is missing."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from youyou.adapters.anthropic import AnthropicProvider
from youyou.adapters.extras import import_extra
from youyou.adapters.local import LocalProvider
from youyou.adapters.openai import OpenAIProvider
from youyou.adapters.wire.client import ClientHolder
from youyou.core.ports.protocols import ModelCapabilities, ModelInfo, ModelProvider
from youyou.messages.chat import ChatRequest, SystemPrompt
from youyou.messages.errors import InvalidConfig
from youyou.messages.history import UserMessage


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def test_a_missing_sdk_names_the_command() -> None:
    """Anyone who lacks the SDK learns what to run."""
    with pytest.raises(InvalidConfig, match=r"pip install .*\[no_such_sdk\]'"):
        import_extra("no_such_sdk")


async def test_the_local_model_names_its_own_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """It speaks through OpenAI's SDK; its extra brings that along with the engine."""
    monkeypatch.setitem(sys.modules, "openai", None)

    with pytest.raises(InvalidConfig, match=r"pip install .*\[local\]'"):
        await LocalProvider().__aenter__()


async def test_no_key_for_anthropic_is_said_with_the_first_request(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its SDK looks in several places when it sends; where it finds nothing, the error names the variable."""
    for name in [name for name in os.environ if name.startswith("ANTHROPIC_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    request = ChatRequest("m1", SystemPrompt("s"), [UserMessage("hi")])
    async with AnthropicProvider(["m1"]) as provider:
        with pytest.raises(InvalidConfig, match="ANTHROPIC_API_KEY"):
            async with provider.chat(request):
                pass


def test_no_key_is_said_when_the_provider_is_made() -> None:
    """A missing key is noticed before anything runs."""
    with pytest.raises(InvalidConfig, match="OPENAI_API_KEY"):
        OpenAIProvider(["m1"])


def test_an_unknown_api_is_refused() -> None:
    """There are two APIs to choose from."""
    with pytest.raises(InvalidConfig, match="'chat' nor 'responses'"):
        OpenAIProvider(["m1"], api_key="k", api="smoke signals")  # type: ignore[arg-type]  # the mistake under test


@pytest.mark.parametrize(("base_url", "vision"), [(None, True), ("http://127.0.0.1:8000/v1", False)])
def test_a_bare_model_id(base_url: str | None, vision: bool) -> None:
    """An id stands for a sane window; only the official API is trusted with pictures."""
    provider = OpenAIProvider(["m1", own := ModelInfo("m2", "M2", 5)], base_url=base_url, api_key="k")

    assert provider.models() == (ModelInfo("m1", "m1", 128_000, ModelCapabilities(vision=vision)), own)
    assert isinstance(provider, ModelProvider)


async def test_closing_what_was_never_made() -> None:
    """Leaving a provider that never spoke makes no client."""
    made: list[str] = []
    holder = ClientHolder(lambda: made.append("client"))

    holder.enter()
    await holder.leave()

    assert made == []

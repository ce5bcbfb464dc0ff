"""Making a provider: keys, models, and what is missing."""

from __future__ import annotations

import pytest
from youyou.adapters.openai import OpenAIProvider
from youyou.adapters.sdk_client import ClientHolder, import_sdk
from youyou.core.ports import ModelCapabilities, ModelInfo, ModelProvider
from youyou.messages.errors import InvalidConfig


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def test_a_missing_sdk_names_the_command() -> None:
    """Whoever lacks the SDK learns what to run."""
    with pytest.raises(InvalidConfig, match=r"pip install 'youyou\[no_such_sdk\]'"):
        import_sdk("no_such_sdk")


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

    await holder.aclose()

    assert made == []

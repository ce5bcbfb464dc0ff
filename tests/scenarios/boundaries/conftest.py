"""What the tests of the boundaries share: an agent around one model, told in a function."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from youyou import AgentBuilder, AgentConfig, ChatRequest, ModelCapabilities, ModelInfo, Notices, RetryPolicy

Answer = Callable[[ChatRequest], AsyncIterator[Any]]


class Model:
    """A provider whose stream is the async generator function ``answer``. Keeps the requests."""

    id = "model"

    def __init__(self, answer: Answer, window: int = 100_000, vision: bool = True) -> None:
        self.answer = answer
        self.info = ModelInfo("m", "M", window, capabilities=ModelCapabilities(vision=vision))
        self.requests: list[ChatRequest] = []

    def models(self) -> list[ModelInfo]:
        return [self.info]

    def chat(self, request: ChatRequest) -> AsyncIterator[Any]:
        self.requests.append(request)
        return self.answer(request)


@pytest.fixture
def model() -> Callable[..., Model]:
    """Makes a provider of an async generator function."""
    return Model


@pytest.fixture
def building() -> Callable[..., AgentBuilder]:
    """Makes a builder around a provider: English notices, no jitter, the model ``m``."""

    def make(provider: Any, model_id: str = "m", **config: Any) -> AgentBuilder:
        config = {"notices": Notices.english(), "retry": RetryPolicy(attempts=1, jitter=0.0), **config}
        return AgentBuilder(AgentConfig(model_id, **config)).register_model_provider(provider)

    return make

"""Chinese alone, counted by a real tokenizer: history is compacted before the window overflows (semantics 9)."""

from __future__ import annotations

import pytest
from youyou import AgentBuilder, AgentConfig, ContextCompacted, ErrorEvent, Notices, RetryPolicy
from youyou.adapters.local import LocalProvider
from youyou.adapters.local.weights import VARIABLE
from youyou.messages.errors import ContextLengthExceeded

pytestmark = pytest.mark.long

WINDOW = 1_024
# Rare characters beside frequent ones: the tokenizer of this model takes two or three tokens for each of them.
TEXTS = (
    "鸕鶿捕魚。漁翁獨釣。薜荔攀牆。蘼蕪滿徑。",
    "我们明天去公园散步。然后一起吃晚饭。好吗。",
    "饕餮。梼杌。窮奇。渾敦。是為四凶。",
)


class Watched(LocalProvider):
    """Keeps what each request took, and whether one was too long."""

    def __init__(self) -> None:
        super().__init__(context_window=WINDOW)
        self.taken: list[int] = []
        self.refused = 0

    async def chat(self, request):
        try:
            async with super().chat(request) as events:
                async for event in events:
                    if getattr(event, "usage", None) is not None:
                        self.taken.append(event.usage.input_tokens)
                    yield event
        except ContextLengthExceeded:
            self.refused += 1
            raise


async def test_chinese_alone_is_compacted_before_a_real_window_overflows(monkeypatch):
    """The tokenizer needs more than one token for a character, and no request is refused as too long."""
    monkeypatch.delenv(VARIABLE, raising=False)
    provider = Watched()
    config = AgentConfig(
        provider.models()[0].id, max_tokens=8, notices=Notices.english(), retry=RetryPolicy(attempts=1), temperature=0.0
    )
    payloads = []
    builder = AgentBuilder(config).register_model_provider(provider)
    async with builder.build() as agent, await agent.new_session() as session:
        for number in range(60):
            turn = await session.send_message(TEXTS[number % len(TEXTS)])
            payloads += [event.payload async for event in turn]
            if any(isinstance(payload, ContextCompacted) for payload in payloads):
                break

    assert any(isinstance(payload, ContextCompacted) for payload in payloads)
    assert (0, []) == (provider.refused, [each.error for each in payloads if isinstance(each, ErrorEvent)])
    characters = sum(len(TEXTS[number % len(TEXTS)]) for number in range(number))
    assert max(provider.taken) > characters, "the case is about more than one token for a character"
    assert 0.5 * WINDOW < max(provider.taken) <= WINDOW

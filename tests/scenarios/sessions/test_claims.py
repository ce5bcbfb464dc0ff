"""A session that is open stays claimed: the claim is asked for in the configured length and renewed in time."""

from __future__ import annotations

import attrs
import trio
import youyou as y
from youyou.testing import InMemoryClaimedStorage, ScriptedProvider


@attrs.define(eq=False)
class Watched(InMemoryClaimedStorage):
    """Notes for how long claims are asked for, and when they are renewed."""

    asked: list[int] = attrs.field(factory=list)
    renewed: list[tuple[float, int]] = attrs.field(factory=list)

    async def claim(self, session_id, **given):
        self.asked.append(given["ttl_ms"])
        return await super().claim(session_id, **given)

    async def renew(self, owner, epochs, ttl_ms):
        self.renewed.append((trio.current_time(), ttl_ms))
        return await super().renew(owner, epochs, ttl_ms)


async def test_a_claim_is_renewed_at_a_third_of_its_time(autojump_clock):
    """Later than its time the session is still claimed: it was renewed every ten of thirty seconds."""
    storage = Watched()
    config = y.AgentConfig("scripted", claim_ttl_ms=30_000)
    builder = y.AgentBuilder(config).register_model_provider(ScriptedProvider([])).register_session_storage(storage)
    begun = trio.current_time()
    async with builder.build() as agent, await agent.new_session() as session:
        await trio.sleep(45)
        assert storage.holder(session.id) is not None

    assert [30_000] == storage.asked
    assert [(10.0, 30_000), (20.0, 30_000), (30.0, 30_000), (40.0, 30_000)] == [
        (round(at - begun, 3), ttl_ms) for at, ttl_ms in storage.renewed
    ]

"""A session taken over at any moment: never two acknowledged writers, no call started twice (semantics 7)."""

from __future__ import annotations

import random
from collections import Counter

import attrs
import pytest
import trio
import youyou as y
from trio.testing import MockClock
from youyou.testing import InMemoryClaimedStorage, InMemorySessionStorage, ScriptedProvider, call, calls, say


@attrs.define(eq=False)
class Owner:
    """One agent with a mutating tool, and what it was told."""

    name: str
    store: InMemorySessionStorage
    effects: list[str]
    done: list[str] = attrs.Factory(list)
    """The texts of turns that were completed without an error."""
    lost: y.AgentError | None = None

    def agent(self, turns):
        rounds = []
        for number in range(turns):
            key = f"{self.name}{number}"
            rounds += [calls(call("pay", {"key": key}, id=key)), say(f"paid {key}")]

        @y.tool(mutating=True)
        async def pay(key: str) -> str:
            self.effects.append(key)
            await trio.sleep(0.2)
            return "ok"

        config = y.AgentConfig("scripted", notices=y.Notices.english(), claim_ttl_ms=3_000)
        builder = y.AgentBuilder(config).register_model_provider(ScriptedProvider(rounds)).register_tool(pay)
        return builder.register_session_storage(self.store).build()

    async def talk(self, session, turns):
        """Turn after turn, until the session is lost."""
        for number in range(turns):
            try:
                result = await (await session.send_message(f"{self.name}{number}")).result()
            except y.AgentError as error:
                self.lost = error
                return
            if result.error is None:
                self.done.append(f"{self.name}{number}")
            elif self.lost is None:
                self.lost = result.error


async def taken_over(store, dice):
    """One owner is taken over by another at a random moment; then the promises."""
    effects = []
    former, newest = Owner("a", store, effects), Owner("b", store, effects)
    async with former.agent(3) as a, newest.agent(2) as b:
        session = await a.new_session()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(former.talk, session, 3)
            await trio.sleep(dice.uniform(0, 1.2))
            for _ in range(dice.randrange(8)):
                await trio.lowlevel.checkpoint()
            try:
                taken = await b.resume_session(session.id, steal=True)
            except y.AgentError as error:
                assert error.retryable or error.code == "SESSION_NOT_FOUND", error
                taken = None
            if taken is not None:
                await newest.talk(taken, 2)
                await taken.close()
        try:
            await session.close()
        except y.AgentError as error:
            former.lost = error
    promises(store.events(session.id), effects, former, newest)
    assert taken is None or newest.lost is None
    return former.lost is not None


def promises(log, effects, former, newest):
    """The log is gapless and whole; what was told is in it; each call was started at most once, and not unannounced."""
    assert list(range(1, len(log) + 1)) == [event.seq for event in log]
    said = [event.payload.text for event in log if isinstance(event.payload, y.UserMessage)]
    assert [text for text in said if text in former.done] == former.done
    assert [text for text in said if text in newest.done] == newest.done
    started = [
        e.payload.value["call_id"] for e in log if isinstance(e.payload, y.Metadata) and e.payload.key == "tool_started"
    ]
    assert max(Counter(effects).values(), default=0) <= 1
    assert set(effects) <= set(started)
    epochs = [
        e.payload.value["epoch"] for e in log if isinstance(e.payload, y.Metadata) and e.payload.key == "session_opened"
    ]
    assert sorted(set(epochs)) == epochs


def campaign(runs, seed):
    """So many takeovers; how many of them hit an owner that was still at work."""
    hit = 0
    for number in range(runs):
        dice = random.Random(f"{seed}:{number}")
        store = dice.choice([InMemoryClaimedStorage, InMemorySessionStorage])(delay=dice.choice([0.0, 0.01]))
        hit += trio.run(taken_over, store, dice, clock=MockClock(autojump_threshold=0))
    return hit


def test_takeovers_at_random_moments():
    """A short campaign; most takeovers must hit a session at work."""
    assert campaign(20, "short") >= 8


@pytest.mark.long
def test_a_thousand_takeovers():
    """A longer one."""
    assert campaign(1_000, "long") >= 500

"""Providers and storages that are context managers live as long as the agent: around its plugins (semantics 2, 6.2)."""

from __future__ import annotations

import pytest
import trio
from youyou.testing.agents.scripted import StrictProvider, say
from youyou.testing.agents.stores import InMemoryMemoryStorage, InMemorySessionStorage


class Entered:
    """Keeps a log of being entered and left."""

    log = None
    entering = leaving = None

    async def __aenter__(self):
        self.log.append(f"{type(self).__name__} entered")
        if self.entering is not None:
            await self.entering()
        return self

    async def __aexit__(self, *exc):
        self.log.append(f"{type(self).__name__} left")
        if self.leaving is not None:
            await self.leaving()


class Provider(Entered, StrictProvider):
    pass


class Store(Entered, InMemorySessionStorage):
    pass


class Memories(Entered, InMemoryMemoryStorage):
    pass


async def never_ends():
    await trio.sleep_forever()


@pytest.fixture
def resources(stage):
    """A conversation whose provider and storages are context managers, and that has a plugin."""
    stage.provider = Provider([])
    stage.store = Store()
    stage.memories = Memories()
    for part in (stage.provider, stage.store, stage.memories):
        part.log = stage.log
    stage.plugin("plugin")
    return stage


ENTERED = ["Provider entered", "Store entered", "Memories entered", "plugin begins"]
LEFT = ["plugin ends", "plugin ended", "Memories left", "Store left", "Provider left"]


async def test_they_are_entered_first_and_left_last(resources, autojump_clock):
    """Entered in order before the plugins, left in reverse after them; all is stored before the store is left."""
    resources.store.delay = 1.0
    stored = []

    async def notes():
        stored.extend(resources.stored())

    resources.store.leaving = notes
    resources.says(say("done"), say("[]"))
    async with resources.session() as session:
        await (await session.send_message("go")).result()

    assert [*ENTERED, *LEFT] == resources.log
    assert ["user: go", "assistant: done"] == stored


@pytest.mark.parametrize("what", ["provider", "store", "memories"])
async def test_one_that_cannot_be_entered(what, resources, autojump_clock):
    """Entering raises what it raised, bare; what was entered before is left, the plugins are not touched."""

    async def raises():
        raise OSError("no such file")

    getattr(resources, what).entering = raises
    with pytest.raises(OSError, match="no such file"):
        async with resources.agent():
            raise AssertionError("it must not be entered")

    entered = {"provider": 1, "store": 2, "memories": 3}[what]
    assert [*ENTERED[:entered], *LEFT[6 - entered :]] == resources.log


@pytest.mark.parametrize("what", ["provider", "store", "memories"])
async def test_one_that_never_leaves(what, resources, autojump_clock):
    """Leaving that hangs has ``plugin_timeout_ms``; the others are left all the same."""
    getattr(resources, what).leaving = never_ends
    with resources.takes(5):
        async with resources.session():
            pass

    assert [*ENTERED, *LEFT] == resources.log


async def test_one_that_never_leaves_under_the_host_s_cancel(resources, autojump_clock):
    """All of it within grace + closing when the host is cancelled."""
    for part in (resources.provider, resources.store, resources.memories):
        part.leaving = never_ends
    with resources.takes(1 + 7, at_most=True), trio.move_on_after(1) as host:
        async with resources.session():
            await trio.sleep_forever()

    assert host.cancelled_caught
    assert [*ENTERED, *LEFT] == resources.log

"""A session that lives in another process is cancelled, steered and closed by way of the database."""

from __future__ import annotations

import pytest
import trio
import youyou
from youyou.adapters.postgres import PostgresSessionStorage
from youyou.hosting import CancelTurn, CloseHosted, SessionHost, SteerTurn

pytestmark = pytest.mark.long  # a server of PostgreSQL

SECONDS = 30.0


class Patient:
    """A model that says one word and then waits forever."""

    id = "patient"

    def __init__(self):
        self.speaking = trio.Event()

    def models(self):
        return [youyou.ModelInfo("m", "M", 100_000)]

    async def chat(self, request):
        yield youyou.TextDelta("well")
        self.speaking.set()
        await trio.sleep_forever()
        yield youyou.Done()


@pytest.fixture
async def hosts(postgres, new_schema):
    """Two hosts as in two processes, each with storage, model and connections of its own."""
    schema = new_schema()

    def host(model):
        storage = PostgresSessionStorage(postgres.dsn, listen_dsn=postgres.dsn, schema=schema, connections=2)
        return SessionHost(
            lambda: (
                youyou.AgentBuilder(youyou.AgentConfig("m"))
                .register_model_provider(model)
                .register_session_storage(storage)
            )
        )

    model = Patient()
    async with host(model) as one, host(Patient()) as two:
        yield one, two, model


async def test_a_turn_elsewhere_is_cancelled(hosts):
    """The other host ends the turn as its own `cancel` would."""
    one, two, model = hosts
    with trio.fail_after(SECONDS):
        async with one.open() as session:
            turn = await session.send_message("hi")
            await model.speaking.wait()
            assert await two.tell(session.id, CancelTurn(grace=1))
            assert youyou.TurnStatus.CANCELLED is (await turn.result()).status


async def test_a_turn_elsewhere_is_steered(hosts):
    """The message arrives in the running turn; here it comes back undelivered, because the turn is then cancelled."""
    one, two, model = hosts
    with trio.fail_after(SECONDS):
        async with one.open() as session:
            turn = await session.send_message("hi")
            await model.speaking.wait()
            await two.tell(session.id, SteerTurn(youyou.UserInput("be brief")))
            await two.tell(session.id, CancelTurn())
            events = [event.payload async for event in turn]
    assert ["be brief"] == [given.content[0].text for given in events[-1].undelivered]


async def test_a_session_elsewhere_is_closed_to_be_opened_here(hosts):
    """A caller that wants it asks, waits, and has it."""
    one, two, model = hosts
    with trio.fail_after(SECONDS):
        async with one.open() as session:
            turn = await session.send_message("hi")
            await model.speaking.wait()
            await two.tell(session.id, CloseHosted(grace=1))
            async with two.open(session.id, wait=True) as again:
                assert 2 == len(again.history)
            assert youyou.TurnStatus.CANCELLED is (await turn.result()).status


async def test_a_command_is_carried_out_here_where_the_session_is_here(hosts):
    """Without the database; and where nobody has it, it is left and harms nobody."""
    one, two, model = hosts
    with trio.fail_after(SECONDS):
        async with one.open() as session:
            turn = await session.send_message("hi")
            await model.speaking.wait()
            assert await one.tell(session.id, CancelTurn(grace=0))
            assert youyou.TurnStatus.CANCELLED is (await turn.result()).status
            assert not await one.tell(session.id, CancelTurn())
        assert await two.tell("nobody", CancelTurn())

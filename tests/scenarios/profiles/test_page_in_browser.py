"""The page of the example in a real browser: it discovers, streams, puts in, stops and goes on.

Set ``YOUYOU_SCREENSHOTS`` to a folder to have a look.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
import trio
import youyou
from hypercorn.config import Config
from hypercorn.trio import serve
from youyou import AgentProfile, ProfileKind, QuickAction, TurnStatus

pytestmark = pytest.mark.long

STATUS = "document.querySelector('#log').lastElementChild?.dataset.status"


@pytest.fixture
def chromium() -> Any:
    """The browser's driver, which stands beside this file."""
    spec = spec_from_file_location("youyou_test_chromium", Path(__file__).with_name("chromium.py"))
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def page_of(desk: Any, chromium: Any, tmp_path: Path) -> Any:
    """Opens the page of a served agent in a browser; the agent's front comes with it."""

    @asynccontextmanager
    async def opened(pause: float = 0.01) -> AsyncIterator[Any]:
        async with desk.agent.desk_agent(desk.model.StandIn(pause)).build() as agent, trio.open_nursery() as nursery:
            front = desk.web.Front(agent)
            over = trio.Event()
            config = Config()
            config.bind = ["127.0.0.1:0"]
            config.graceful_timeout = 1
            config.errorlog = None
            (start,) = await nursery.start(partial(serve, front, config, shutdown_trigger=over.wait))
            front.hosts = desk.web.served_at(int(start.rstrip("/").rpartition(":")[2]))
            async with chromium.open_browser(tmp_path) as browser:
                yield await browser.open(start), front
                assert [] == browser.complaints
            over.set()

    return opened


async def choose(page: Any, **ids: str) -> None:
    """Choose a domain or a skill, like a person who clicks."""
    for id, value in ids.items():
        await page.evaluate(
            f"(find => {{ find.value = '{value}'; find.dispatchEvent(new Event('change')) }})"
            f"(document.getElementById('{id}'))"
        )


async def say(page: Any, text: str) -> None:
    """Type a message and send it."""
    await page.evaluate(f"document.getElementById('input').value = '{text}'")
    await page.evaluate("document.getElementById('send').click()")


async def look(page: Any, name: str) -> None:
    """Keep a screenshot, if a folder was named."""
    if folder := os.environ.get("YOUYOU_SCREENSHOTS"):
        await page.screenshot(Path(folder) / f"{name}.png")


async def texts(page: Any, selector: str) -> list[str]:
    """The texts of all that match."""
    found: list[str] = await page.evaluate(
        f"[...document.querySelectorAll('{selector}')].map(each => each.textContent)"
    )
    return found


async def test_the_page_discovers_streams_stops_and_goes_on(page_of: Any) -> None:
    """Profiles, steps and tools come from the agent; a pipeline is streamed, stopped in its second step and goes on."""
    async with page_of(pause=0.03) as (page, front):
        await page.until("document.querySelectorAll('#domain option').length > 1")
        assert ["none", "Novel", "Study notes", "Exam notes"] == await texts(page, "#domain option")
        assert 6 == len(await texts(page, "#skill option"))
        await choose(page, domain="study-notes", skill="concept-cards")
        shown = await texts(page, "#about .tools li")
        assert {"lOutline", "sSplit chapter", "lConcept cards", "hReview questions"} == set(shown)
        assert ["1. read", "2. points", "3. cards"] == (await texts(page, "#about ul:not(.tools) li"))
        await look(page, "1-discovered")

        await page.evaluate("[...document.querySelectorAll('#actions button')].at(-1).click()")
        await page.until("document.querySelectorAll('.step').length === 2")
        await page.until("document.querySelectorAll('.assistant').length === 2")
        assert await page.evaluate("document.getElementById('send').textContent") == "Put in"
        await look(page, "2-streaming")
        await page.evaluate("document.getElementById('stop').click()")
        await page.until(f"{STATUS} === 'cancelled'")
        assert TurnStatus.CANCELLED == front.turn.status
        await look(page, "3-stopped")

        await page.until("!document.getElementById('continue').disabled")
        await page.evaluate("document.getElementById('continue').click()")
        await page.until(f"{STATUS} === 'completed'")
        steps = await texts(page, ".step")
        assert ["Step 1: read", "Step 2: points", "Step 2: points", "Step 3: cards"] == [
            each for each in steps if each.startswith("Step")
        ]
        assert 2 == len(await texts(page, ".tool"))
        assert "cards on the shelf: 1" in await page.evaluate("document.body.innerText")
        await look(page, "4-completed")


async def test_a_message_is_put_into_the_running_turn(page_of: Any) -> None:
    """What is sent while a turn runs stands in that turn's history."""
    async with page_of(pause=0.05) as (page, front):
        await page.until("document.querySelectorAll('#domain option').length > 1")
        await choose(page, domain="novel")
        await say(page, "What happens?")
        await page.until("document.querySelectorAll('.assistant').length === 1")
        await say(page, "And then?")
        await page.until("document.querySelectorAll('.user').length === 2")
        await page.until(f"{STATUS} === 'completed'")

        asked = [message for message in front.session.history if isinstance(message, youyou.UserMessage)]
        assert 2 == len(asked)


async def test_a_tab_that_is_closed_stops_its_turn(page_of: Any) -> None:
    """The runtime learns that nobody reads, and cancels."""
    async with page_of(pause=0.2) as (page, front):
        await page.until("document.querySelectorAll('#domain option').length > 1")
        await say(page, "What happens?")
        await page.until("document.querySelectorAll('.assistant, .tool').length > 0")
        await page.close()
        with trio.fail_after(20):
            result = await front.turn.result()

    assert TurnStatus.CANCELLED == result.status


async def test_what_is_declared_shows_on_the_page(desk: Any, page_of: Any, monkeypatch: Any) -> None:
    """A new tool and a new profile, one declaration each: both are there, with icon, label and quick action."""

    @desk.tools.declare(tags=("notes",), icon="share-2", label="Mind map")
    async def mind_map(chapter: str = "") -> str:
        """The concepts of a chapter as a tree."""
        return "a tree"

    essay = AgentProfile(
        "essay", ProfileKind.DOMAIN, "Essay", "Arguments.", icon="scale", require_tags=("notes",),
        quick_actions=(QuickAction("Argue", "Argue about tides", "scale"),),
    )  # fmt: skip
    monkeypatch.setattr(desk.agent, "PROFILES", (*desk.profiles.PROFILES, essay))

    async with page_of() as (page, _):
        await page.until("document.querySelectorAll('#domain option').length > 1")
        assert "Essay" == (await texts(page, "#domain option"))[-1]
        await choose(page, domain="essay")
        assert "sMind map" in await texts(page, "#about .tools li")
        assert ["sArgue"] == await texts(page, "#actions button")
        await page.evaluate("document.querySelector('#actions button').click()")
        await page.until(f"{STATUS} === 'completed'")
        await look(page, "5-declared")

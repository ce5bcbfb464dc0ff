"""A report as a page: everything is in it, nothing is fetched, and what a program says stays text."""

from __future__ import annotations

import json
from contextlib import suppress
from html.parser import HTMLParser
from typing import Any

import attrs
import pytest
import trio
from youyou.testing import DurableLog, Report, Simulation, explore, replay, sweep, write_html
from youyou.testing.report import drawing

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)> !"


@attrs.define(eq=False, slots=False)
class Page(HTMLParser):
    """A page taken apart: elements with their attributes, the text, and the data of the drawing."""

    html: str
    elements: list[tuple[str, dict[str, str | None]]] = attrs.Factory(list)
    text: str = ""
    data: str = ""
    _where: str = ""

    def __attrs_post_init__(self) -> None:
        super().__init__()
        self.feed(self.html)

    def handle_starttag(self, tag: str, given: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(given)))
        self._where = str(dict(given).get("id", tag)) if tag == "script" else tag

    def handle_data(self, data: str) -> None:
        if self._where == "data":
            self.data += data
        elif self._where not in ("script", "style"):
            self.text += data

    def tags(self, name: str) -> list[dict[str, str | None]]:
        """The attributes of every element of this name."""
        return [given for tag, given in self.elements if tag == name]

    @property
    def views(self) -> list[dict[str, Any]]:
        """What can be drawn."""
        return json.loads(self.data)["views"]


async def lossy(sim: Simulation) -> None:
    """A child that loses its last word when it is cancelled."""
    send, receive = trio.open_memory_channel[str](1)
    seen: list[str] = []
    sim.at_end(lambda: not seen or seen[-1] == "done", "the last word is heard")

    async def speak() -> None:
        with send:
            await send.send("hello")
            await trio.sleep(1)
            await send.send("done")

    async def listen() -> None:
        with suppress(trio.EndOfChannel):
            while True:
                seen.append(await receive.receive())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        with sim.scope("speaker"):
            await speak()


async def evil(sim: Simulation) -> None:
    """Puts markup wherever a program can put text."""
    send, receive = trio.open_memory_channel[str](1)

    async def child() -> None:
        sim.note(EVIL)
        await send.send(EVIL)
        await trio.sleep(1)
        raise ValueError(EVIL)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(child, name=EVIL)
        await receive.receive()


@pytest.fixture(scope="module")
def report() -> Report:
    """A sweep that found something."""
    return sweep(lossy, cancel="speaker")


@pytest.fixture(scope="module")
def page(report: Report) -> Page:
    """Its page."""
    return Page(report.to_html())


def test_the_page_says_what_the_report_says(report, page):
    """Verdict, failure, token, where it hit, the numbers, and the source of the await that was hit."""
    failure = report.failures[0]
    expected = [
        "lossy",
        "1 kind of failure",
        f"at_end: {failure.message}",
        failure.injected[0],
        f"YOUYOU_REPLAY={failure.token} pytest",
        str(failure.location),
        "await trio.sleep(1)",
        f"{report.delivered} of {report.planned}",
        f"slowest shutdown ({report.worst_shutdown_token})",
    ]

    assert [] == [words for words in expected if words not in page.text]


def test_the_page_lists_what_was_never_cancelled(report, page):
    """Task and place of each await location that no cancel reached, and how many of them were reached."""
    never = report.coverage.never

    assert never
    assert [] == [pair for pair in never if str(pair[1]) not in page.text]
    assert f"{len(never)} never cancelled" in page.text


def test_the_page_needs_nothing_but_itself(page):
    """No address in any attribute, and the browser is told to fetch nothing."""
    addresses = [given for _, given in page.elements for name in given if name in ("src", "href", "srcset", "action")]
    policy = next(given["content"] for given in page.tags("meta") if "http-equiv" in given)

    assert [] == addresses
    assert policy is not None
    assert policy.startswith("default-src 'none'")


def test_each_failure_and_the_undisturbed_run_can_be_chosen(report, page):
    """One tab and one drawing for each, the words of a failure beside it."""
    tabs = [given["data-view"] for given in page.tags("button") if given.get("role") == "tab"]
    cases = [given["data-view"] for given in page.tags("section") if given.get("class") == "case"]

    assert (["0", "1"], ["0"], 2) == (tabs, cases, len(page.views))


def test_the_drawing_has_every_task_step_and_message(report, page):
    """The data is the run, place by place."""
    run, act = report.failures[0].run, page.views[0]["acts"][0]
    places = json.loads(page.data)["places"]

    assert [[task.label, task.parent, task.born] for task in run.tasks] == act["tasks"]
    assert [(s.task, s.location.line, s.time) for s in run.steps] == [
        (t, places[p]["line"], s) for t, p, s in act["steps"]
    ]
    assert report.failures[0].recording.messages_json() == act["messages"]
    assert [[d.step, d.task] for d in run.deliveries] == [d[:2] for d in act["delivered"]]
    assert "await trio.sleep(1)" in [place["source"] for place in places]


def test_what_a_program_says_is_never_markup():
    """Names of tasks, messages, notes and errors cannot add an element to the page, nor end the data."""
    report = sweep(evil, cancel=None)
    page = Page(report.to_html())

    assert ["error"] == [failure.kind for failure in report.failures]
    assert [{"type": "application/json", "id": "data"}, {}] == page.tags("script")
    assert [] == page.tags("img")
    assert EVIL in page.text
    assert EVIL in page.views[0]["acts"][0]["tasks"][1]


def test_a_deadlock_says_who_waits_for_whom():
    """Each blocked task with the place, the call, and the task that must act."""

    async def scenario(sim: Simulation) -> None:
        lock = trio.Lock()

        async def hold() -> None:
            async with lock:
                await trio.sleep_forever()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(hold, name="holder")
            await trio.sleep(1)
            async with lock:
                pass

    page = Page(sweep(scenario, cancel=None).to_html())
    waits = {wait["task"]: (wait["call"], wait["for"]) for wait in page.views[0]["acts"][0]["waits"]}

    assert {"main": ("Lock.acquire", ["holder"]), "holder": ("trio.sleep_forever", [])} == waits
    assert "Lock.acquire (locked)" in page.text


def test_a_crash_is_drawn_with_its_recovery():
    """Two acts, each with the messages of its own run; what was injected stands in the first."""

    async def scenario(sim: Simulation) -> None:
        log = sim.durable("log", DurableLog())
        await pass_on("before")
        log.append("entry")
        await trio.sleep(1)

    async def recover(sim: Simulation) -> None:
        log = sim.durable("log", DurableLog())
        sim.at_end(lambda: len(log) == 1, "the entry is there")
        await pass_on("after")

    async def pass_on(word: str) -> None:
        send, receive = trio.open_memory_channel[str](1)
        await send.send(word)
        await receive.receive()

    page = Page(sweep(scenario, cancel=None, crash=recover).to_html())
    before, after = page.views[0]["acts"]

    assert [["'before'"], ["'after'"]] == [[m["value"] for m in act["messages"]] for act in (before, after)]
    assert (["crash"], []) == ([i[0].split()[0] for i in before["injected"]], after["injected"])
    assert [[], ["at_end"]] == [[v[0] for v in act["violations"]] for act in (before, after)]


def test_only_the_end_of_a_very_long_run_is_drawn(monkeypatch):
    """The page stays small enough to open, and says from which step on it draws."""
    monkeypatch.setattr(drawing, "_MOST_STEPS", 5)

    async def scenario(sim: Simulation) -> None:
        for _ in range(20):
            await trio.sleep(1)

    act = Page(sweep(scenario, cancel=None).to_html()).views[0]["acts"][0]

    assert (16, 5) == (act["first"], len(act["steps"]))


def test_of_an_action_only_the_first_hit_is_shown():
    """A cancel that reaches another task long after the call may have another cause."""

    async def scenario(sim: Simulation) -> None:
        sim.at_end(lambda: False, "never")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever, name="first")
            nursery.start_soon(trio.sleep_forever, name="second")
            sim.action("stop", nursery.cancel_scope.cancel)
            await trio.sleep(1)
            await trio.sleep(1)
            nursery.cancel_scope.cancel()

    run = replay(scenario, "yy1-a5.stop").failures[0].run

    assert 1 < len(run.deliveries)
    assert 1 == len(drawing.hits(run))


def test_an_exploration_says_that_only_the_order_was_other():
    """Nothing was injected: the story begins with the decisions that differ."""

    async def scenario(sim: Simulation) -> None:
        order: list[int] = []
        sim.at_end(lambda: order == sorted(order), "in order")

        async def add(number: int) -> None:
            await trio.sleep(1)
            order.append(number)

        async with trio.open_nursery() as nursery:
            for number in range(2):
                nursery.start_soon(add, number)

    text = Page(explore(scenario, schedules=50).to_html()).text

    assert "The tasks ran in another order: 1 decision off the plain order" in text


def test_a_clean_report_is_a_page_too(tmp_path):
    """One drawing, no failure; written as it is."""

    async def scenario(sim: Simulation) -> None:
        await trio.sleep(1)

    report = sweep(scenario)
    write_html(report, tmp_path / "report.html")
    page = Page((tmp_path / "report.html").read_text(encoding="utf-8"))

    assert (1, []) == (len(page.views), [given for given in page.tags("section") if given.get("class") == "case"])
    assert "nothing went wrong" in page.text

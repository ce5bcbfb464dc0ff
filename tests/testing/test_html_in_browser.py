"""The page in a real browser: it loads without a complaint, draws every task, and answers the mouse."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from youyou.testing import DurableLog, Report, Simulation, replay, sweep, write_html

pytestmark = pytest.mark.long
# What the button says once it says something else: the clipboard answers when it likes.
CHANGED = """new Promise(done => {
    const look = () => {
        const text = document.querySelector(".copy").textContent;
        if (text === "copy token") setTimeout(look, 5); else done(text);
    };
    look();
})"""


async def deadlock(sim: Simulation) -> None:
    """Two tasks that hold each other's lock, after a message between them."""
    alice, bob = trio.Lock(), trio.Lock()
    send, receive = trio.open_memory_channel[str](1)

    async def give() -> None:
        async with alice:
            await send.send("<b>bold</b>")
            await trio.sleep(1)
            async with bob:
                pass

    async def take() -> None:
        async with bob:
            await receive.receive()
            await trio.sleep(1)
            async with alice:
                pass

    async with trio.open_nursery() as nursery:
        nursery.start_soon(give)
        nursery.start_soon(take)


async def lossy(sim: Simulation) -> None:
    """Loses a slot when it is cancelled; long enough not to fit without scrolling."""
    slots = [1]
    sim.at_end(lambda: slots == [1], "the slot is back")
    for number in range(300):
        slots.clear()
        await trio.sleep(number)
        slots.append(1)


def opened(browser, tmp_path: Path, report: Report) -> None:
    """Load the report's page."""
    write_html(report, tmp_path / "report.html")
    browser.open(tmp_path / "report.html")


def count(browser, selector: str) -> int:
    """How many elements there are."""
    return browser.ask(f"document.querySelectorAll({selector!r}).length")


def test_a_page_loads_without_a_complaint_and_draws_every_task_and_step(browser, tmp_path):
    """As many lanes, names and dots as the run has tasks and steps, on either axis, in the light and in the dark."""
    report = sweep(deadlock, cancel=None)
    run = report.failures[0].run
    opened(browser, tmp_path, report)

    for scheme, axis in (("light", "steps"), ("dark", "time")):
        browser.prefer(scheme)
        browser.point(f"[data-axis={axis}]", click=True)
        drawn = [count(browser, selector) for selector in (".lane", ".label", ".step", "#lines [data-step]")]
        assert [len(run.tasks)] * 2 + [len(run.steps)] * 2 == drawn
    assert [task.label for task in run.tasks] == browser.ask(
        "[...document.querySelectorAll('.label span')].map(each => each.textContent.replace('└ ', ''))"
    )
    assert [] == browser.complaints


@pytest.mark.parametrize(
    ("selector", "words"),
    [
        (".message .reach", ["message on channel 0", "'<b>bold</b>'", "give, step", "take, step"]),
        (".stuck:not(.parent) .reach", ["waits for", "Lock.acquire", "async with"]),
        (".wait.stuck", ["main waits", "the nursery's end", "test_html_in_browser.py:"]),
        (".birth .reach", ["is born", "main"]),
        (".step[data-step='6'] .dot", ["step 6", "await trio.sleep(1)"]),
        (".body .flag.violation .reach", ["deadlock", "3 tasks wait"]),
    ],
)
def test_pointing_at_a_thing_says_what_it_is(browser, tmp_path, selector, words):
    """The words appear as text beside the mouse, and go when the mouse leaves."""
    opened(browser, tmp_path, sweep(deadlock, cancel=None))

    browser.point(selector)
    shown = browser.ask("document.getElementById('tip').innerText")
    browser.point("h1")

    assert [] == [each for each in words if each not in shown]
    assert browser.ask("document.getElementById('tip').hidden")
    assert (0, []) == (count(browser, "#tip b"), browser.complaints)


def test_a_long_run_begins_where_something_was_injected(browser, tmp_path):
    """The injection is in sight, the first step is not; a line finds its dot and a dot its line."""
    opened(browser, tmp_path, replay(lossy, "yy1-a250"))
    left, right, flag, first = browser.ask(
        "(box => [box.left, box.right, ...['.head .injection line', '.step'].map("
        "each => document.querySelector(each).getBoundingClientRect().left)])"
        "(document.querySelector('.chart').getBoundingClientRect())"
    )
    assert first < left < flag < right

    browser.point("#lines [data-step='245']")
    assert ["245"] == browser.ask("[...document.querySelectorAll('.step.hot')].map(each => each.dataset.step)")
    browser.point(".step[data-step='3'] .dot", click=True)
    assert ["3"] == browser.ask("[...document.querySelectorAll('.line.hot')].map(each => each.dataset.step)")
    assert [] == browser.complaints


def test_buttons_do_what_they_say(browser, tmp_path):
    """A click on a name leaves its lines only; the token is copied, or at least selected; a box takes arrows away."""
    report = sweep(deadlock, cancel=None)
    opened(browser, tmp_path, report)
    own = sum(step.task == 1 for step in report.failures[0].run.steps)

    browser.point(".label[data-task='1']", click=True)
    assert own == count(browser, "#lines [data-step]:not([hidden])")
    browser.point(".label[data-task='1']", click=True)
    assert len(report.failures[0].run.steps) == count(browser, "#lines [data-step]:not([hidden])")

    browser.point(".copy", click=True)
    assert browser.ask(CHANGED) in ("copied", "selected: press copy")

    assert 1 == count(browser, ".link.message")
    browser.point(".layers .messages input", click=True)
    assert 0 == count(browser, ".link.message")
    assert [] == browser.complaints


def test_a_crash_shows_two_pictures(browser, tmp_path):
    """Before the crash, and the recovery."""

    async def scenario(sim: Simulation) -> None:
        log = sim.durable("log", DurableLog())
        log.append("entry")
        await trio.sleep(1)

    async def recover(sim: Simulation) -> None:
        log = sim.durable("log", DurableLog())
        sim.at_end(lambda: len(log) == 1, "the entry is there")
        await trio.sleep(1)

    opened(browser, tmp_path, sweep(scenario, cancel=None, crash=recover))

    assert ["before the crash", "recovery"] == browser.ask(
        "[...document.querySelectorAll('#acts h3')].map(each => each.textContent)"
    )
    assert (2, []) == (count(browser, ".chart"), browser.complaints)

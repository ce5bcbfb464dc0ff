"""A real headless Chromium, driven over its DevTools pipe: no driver, no web socket, no package.

async with open_browser(tmp_path) as browser:
    page = await browser.open("http://127.0.0.1:8000/")
    assert "Writing desk" == await page.evaluate("document.title")
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import trio

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    "--remote-debugging-pipe", "--window-size=1100,760",
)  # fmt: skip

# Chromium reads commands from descriptor 3 and writes to 4. The copies are out of the way, so that neither of the two
# is overwritten before it is copied, and dup2 onto itself does not leave one to be closed by exec.
LAUNCH = """
import fcntl, os, sys
commands, answers = (fcntl.fcntl(int(given), fcntl.F_DUPFD, 10) for given in sys.argv[1:3])
os.dup2(commands, 3)
os.dup2(answers, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


@attrs.define(eq=False)
class Browser:
    """The running browser: commands go down one pipe, answers come up the other."""

    _down: Any
    _up: Any
    _last: int = 0
    _answers: dict[int, trio.MemorySendChannel[Any]] = attrs.Factory(dict)
    complaints: list[str] = attrs.Factory(list)
    """What pages reported: uncaught errors and failed loads."""

    async def command(self, method: str, session: str | None = None, **params: Any) -> Any:
        """One DevTools command and its result."""
        self._last += 1
        number = self._last
        self._answers[number], waiting = trio.open_memory_channel[Any](1)
        told = {"id": number, "method": method, "params": params}
        if session is not None:
            told["sessionId"] = session
        await self._down.send_all(json.dumps(told).encode() + b"\0")
        answer = await waiting.receive()
        assert "error" not in answer, answer
        return answer["result"]

    async def listen(self) -> None:
        """Hand answers to the tasks that wait for them."""
        rest = b""
        async for part in self._up:
            *whole, rest = (rest + part).split(b"\0")
            for each in whole:
                self._take(json.loads(each))

    def _take(self, told: Any) -> None:
        if "id" in told:
            self._answers.pop(told["id"]).send_nowait(told)
        elif told["method"] == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(told["params"]["exceptionDetails"])[:500])
        elif told["method"] == "Log.entryAdded" and told["params"]["entry"]["level"] == "error":
            self.complaints.append(told["params"]["entry"]["text"])

    async def open(self, url: str) -> Page:
        """A tab at this address."""
        target = (await self.command("Target.createTarget", url="about:blank"))["targetId"]
        session = (await self.command("Target.attachToTarget", targetId=target, flatten=True))["sessionId"]
        page = Page(self, session, target)
        for domain in ("Page", "Runtime", "Log"):
            await self.command(f"{domain}.enable", session)
        await self.command("Page.navigate", session, url=url)
        await page.until("document.readyState === 'complete'")
        return page


@attrs.define(eq=False)
class Page:
    """One tab."""

    browser: Browser
    session: str
    target: str

    async def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression, awaited."""
        result = await self.browser.command(
            "Runtime.evaluate", self.session, expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    async def until(self, condition: str) -> None:
        """Wait until a JavaScript condition holds, within 20 seconds."""
        waiting = (
            f"new Promise(done => {{ const look = () => ({condition}) ? done(1) : setTimeout(look, 20); look() }})"
        )
        with trio.move_on_after(20):
            await self.evaluate(waiting)
            return
        raise AssertionError(
            f"never true: {condition}; the page says: {await self.evaluate('document.body.innerText')}"
        )

    async def close(self) -> None:
        """Close the tab, as a person does."""
        await self.browser.command("Target.closeTarget", targetId=self.target)

    async def screenshot(self, path: Path) -> None:
        """A picture of what is to be seen."""
        shot = await self.browser.command("Page.captureScreenshot", self.session)
        await trio.Path(path).write_bytes(base64.b64decode(shot["data"]))


@asynccontextmanager
async def open_browser(folder: Path) -> AsyncIterator[Browser]:
    """A browser with a profile of its own in ``folder``; gone at the end, whatever happens."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    assert found is not None, "no Chromium is installed: apt-get install chromium"
    read_commands, write_commands = os.pipe()
    read_answers, write_answers = os.pipe()
    profile = folder / "chromium"
    command = [sys.executable, "-c", LAUNCH, str(read_commands), str(write_answers)]
    command += [found, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
    process = await trio.lowlevel.open_process(
        command, pass_fds=(read_commands, write_answers), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    os.close(read_commands)
    os.close(write_answers)
    down, up = trio.lowlevel.FdStream(write_commands), trio.lowlevel.FdStream(read_answers)
    browser = Browser(down, up)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(browser.listen)
            yield browser
            nursery.cancel_scope.cancel(reason="the browser is not needed any more")
    finally:
        process.terminate()
        with trio.move_on_after(10, shield=True) as ending:
            await process.wait()
        if ending.cancelled_caught:
            process.kill()
        down.close()
        up.close()

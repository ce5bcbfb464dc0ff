"""A real browser, spoken to over a pipe in the DevTools protocol; nothing but the standard library."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
)
PATIENCE = 60.0
# The middle of a curve is on the curve, not in the box around it.
_MIDDLE = """found => {
    found.scrollIntoView({ block: "center", inline: "center" });
    if (found.getTotalLength && found.tagName === "path") {
        const { x, y } = found.getPointAtLength(found.getTotalLength() / 2).matrixTransform(found.getScreenCTM());
        return { x, y };
    }
    const box = found.getBoundingClientRect();
    return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
}"""


@attrs.define(eq=False)
class Browser:
    """One page in a headless Chromium. ``complaints`` are its errors, warnings and requests to the network."""

    reading: int
    writing: int
    complaints: list[str] = attrs.Factory(list)
    _session: str = ""
    _number: int = 0
    _rest: bytes = b""
    _events: list[dict[str, Any]] = attrs.Factory(list)

    def start(self, width: int = 1440, height: int = 1000) -> None:
        """Open an empty page and listen to it."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def open(self, path: Path) -> None:
        """Load a file and wait until its scripts have run."""
        self._events.clear()
        self.complaints.clear()
        self.call("Page.navigate", url=path.as_uri())
        self._until(lambda event: event.get("method") == "Page.loadEventFired")

    def ask(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def point(self, selector: str, *, click: bool = False) -> None:
        """Move the mouse to the middle of the first element that ``selector`` finds, and perhaps click."""
        place = self.ask(f"({_MIDDLE})(document.querySelector({json.dumps(selector)}))")
        self.call("Input.dispatchMouseEvent", type="mouseMoved", **place)
        if click:
            for kind in ("mousePressed", "mouseReleased"):
                self.call("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **place)

    def prefer(self, scheme: str) -> None:
        """Light or dark."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """A screenshot."""
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the protocol and its answer."""
        self._number += 1
        number = self._number
        command = {"id": number, "method": method, "params": parameters}
        if self._session:
            command["sessionId"] = self._session
        os.write(self.writing, json.dumps(command).encode() + b"\0")
        answer = self._until(lambda event: event.get("id") == number)
        assert "error" not in answer, (method, answer["error"])
        result: dict[str, Any] = answer["result"]
        return result

    def _until(self, wanted: Any) -> dict[str, Any]:
        until = time.monotonic() + PATIENCE
        while True:
            for event in self._events:
                if wanted(event):
                    self._events.remove(event)
                    return event
            self._hear(until)

    def _hear(self, until: float) -> None:
        ready, _, _ = select.select([self.reading], [], [], max(0.0, until - time.monotonic()))
        assert ready, "the browser says nothing"
        heard = os.read(self.reading, 1 << 16)
        assert heard, "the browser is gone"
        *whole, self._rest = (self._rest + heard).split(b"\0")
        for text in whole:
            event = json.loads(text)
            self._events.append(event)
            self._judge(event)

    def _judge(self, event: dict[str, Any]) -> None:
        method, given = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(str(given["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(f"console.{given['type']}: {given['args']}")
        elif method == "Log.entryAdded":
            self.complaints.append(given["entry"]["text"])
        elif method == "Network.requestWillBeSent" and not given["request"]["url"].startswith(("file:", "about:")):
            self.complaints.append(f"request to {given['request']['url']}")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A headless Chromium with a profile of its own."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert program is not None, "this test looks at the page in a real browser: install chromium"
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    # The browser reads from descriptor 3 and writes to 4.
    shell = f'exec "$0" "$@" 3</dev/fd/{theirs_in} 4>/dev/fd/{theirs_out}'
    command = ["sh", "-c", shell, program, *FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]
    with subprocess.Popen(
        command, pass_fds=(theirs_in, theirs_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        os.close(theirs_in)
        os.close(theirs_out)
        try:
            browser = Browser(ours_in, ours_out)
            browser.start()
            yield browser
        finally:
            os.close(ours_out)
            os.close(ours_in)
            process.terminate()
            process.wait(PATIENCE)

"""Controls a headless Chromium through a pipe (the DevTools protocol). Needs no package besides Chromium."""

import json
import os
import shutil
import subprocess
import tempfile
from typing import Any, Dict, List, Optional

#: Longest time that an answer may take.
PATIENCE_S = 60


def find() -> Optional[str]:
    """Path of the program; None if it is not installed."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Browser:
    """A process of Chromium that has one page open at a time. `errors` are the errors and warnings of the page's console,
    `requested` the addresses that the page requested."""

    def __init__(self, program: str) -> None:
        self._profile = tempfile.TemporaryDirectory(prefix="hipress_chromium_", ignore_cleanup_errors=True)
        from_us, self._to_browser = os.pipe()
        self._from_browser, to_us = os.pipe()

        def as_three_and_four() -> None:
            kept = os.dup(from_us), os.dup(to_us)
            os.dup2(kept[0], 3)
            os.dup2(kept[1], 4)

        self._process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-extensions", "--disable-background-networking", "--remote-debugging-pipe", f"--user-data-dir={self._profile.name}",
             "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False,
            preexec_fn=as_three_and_four)
        os.close(from_us)
        os.close(to_us)
        self._number, self._buffer, self._session = 0, b"", None  # type: int, bytes, Optional[str]
        self._events: List[Dict[str, Any]] = []
        self.errors: List[str] = []
        self.requested: List[str] = []

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *_: Any) -> None:
        os.close(self._to_browser)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._from_browser)
        self._profile.cleanup()

    def _receive(self) -> Dict[str, Any]:
        while b"\0" not in self._buffer:
            part = os.read(self._from_browser, 1 << 16)
            if not part:
                raise RuntimeError("the browser ended")
            self._buffer += part
        text, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(text)

    def call(self, method: str, **parameters: Any) -> Dict[str, Any]:
        """Calls a method of the protocol, on the page if one is open."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to_browser, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self._note(answer)

    def _note(self, event: Dict[str, Any]) -> None:
        method, said = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = said["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and said["type"] in ("error", "warning", "assert"):
            self.errors.append(str(said["args"]))
        elif method == "Log.entryAdded" and said["entry"]["level"] in ("error", "warning"):
            self.errors.append(said["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requested.append(said["request"]["url"])
        self._events.append(event)

    def open(self, address: str, width: int, height: int) -> None:
        """Opens a page in a window of that size, and waits until it is loaded."""
        self._session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.errors, self.requested = [], []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self._events = []
        self.call("Page.navigate", url=address)
        while not any(event.get("method") == "Page.loadEventFired" for event in self._events):
            self._note(self._receive())

    def run(self, script: str) -> Any:
        """Evaluates a JavaScript expression in the page and returns its value."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"]["description"])
        return answer["result"].get("value")

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """Sends mouseMoved, mousePressed, mouseReleased or mouseWheel at a point of the window."""
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def screenshot(self, full: bool = False) -> bytes:
        """Returns a PNG of the window, or of the whole page."""
        import base64

        return base64.b64decode(self.call("Page.captureScreenshot", format="png", captureBeyondViewport=full)["data"])

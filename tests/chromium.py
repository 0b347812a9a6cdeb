"""Drives a headless Chromium through its own debugging pipe, so that no driver and no package is needed besides the browser."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from debian_packages import need

_PATIENCE = 30.0  # seconds for an answer, or for something on the page to become so
# The browser reads commands from descriptor 3 and writes answers to 4.
_LAUNCH = "import os, sys; i, o = map(int, sys.argv[1:3]); os.dup2(i, 13); os.dup2(o, 14); os.dup2(13, 3); os.dup2(14, 4); os.execv(sys.argv[3], sys.argv[3:])"
_KEYS = {
    "Enter": (13, "\r"),
    "Tab": (9, ""),
    "Escape": (27, ""),
    "ArrowUp": (38, ""),
    "ArrowDown": (40, ""),
    "ArrowLeft": (37, ""),
    "ArrowRight": (39, ""),
}


def program() -> str:
    """Return Chromium's program. The test is skipped where there is none."""
    for name in ("chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    need("chromium")
    return str(shutil.which("chromium"))


class Chromium:
    """One browser with one page. Use it as a context manager; *size* is the page's, in pixels."""

    def __init__(self, size: tuple[int, int] = (1280, 900), dark: bool = False, scale: float = 1.0) -> None:
        chosen = program()  # before anything is opened that a skip would leave behind
        self._folder = tempfile.TemporaryDirectory(prefix="chromium-")
        commands_in, commands_out = os.pipe()
        answers_in, answers_out = os.pipe()
        command = [
            chosen,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
        ]
        command += [
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--hide-scrollbars",
        ]
        command += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", f"--user-data-dir={self._folder.name}"]
        command += ["--remote-debugging-pipe", "about:blank"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _LAUNCH, str(commands_in), str(answers_out), *command],
            pass_fds=(commands_in, answers_out),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands_in)
        os.close(answers_out)
        self._commands, self._answers = commands_out, answers_in
        self._read = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        targets = self.send("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        self._session = self.send("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network"):
            self.send(f"{domain}.enable")
        self.resize(size, scale)
        self.use_scheme(dark)

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Carry out one command of the DevTools protocol and return its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + _PATIENCE
        while True:
            answer = self._next_message(until)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def _next_message(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._read:
            ready, _, _ = select.select([self._answers], [], [], max(0.0, until - time.monotonic()))
            piece = os.read(self._answers, 1 << 20) if ready else b""
            if not piece:
                raise RuntimeError(f"Chromium said nothing; exit status {self._process.poll()}")
            self._read += piece
        message, _, self._read = self._read.partition(b"\0")
        return json.loads(message)

    def resize(self, size: tuple[int, int], scale: float = 1.0) -> None:
        width, height = size
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False
        )

    def use_scheme(self, dark: bool) -> None:
        feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[feature])

    def open(self, file: Path, fragment: str = "") -> None:
        """Load *file* anew and wait until it is there."""
        self.visit(file.resolve().as_uri() + fragment)

    def visit(self, address: str) -> None:
        """Load the page at *address*, of a file or of a server on this machine, anew and wait until it is there."""
        self.send("Page.navigate", url="about:blank")
        self.send("Page.navigate", url=address)
        self.wait_for(f"document.readyState === 'complete' && location.protocol === '{address.partition('/')[0]}'")

    def evaluate(self, expression: str) -> Any:
        """Return the value of the JavaScript *expression* on the page."""
        done = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            raise RuntimeError(f"{expression}: {done['exceptionDetails']}")
        return done["result"].get("value")

    def wait_for(self, expression: str) -> None:
        """Wait until *expression* is true."""
        until = time.monotonic() + _PATIENCE
        while not self.evaluate(expression):
            if time.monotonic() > until:
                raise TimeoutError(f"never true: {expression}")
            time.sleep(0.02)

    def click(self, selector: str) -> None:
        """Click with the mouse in the middle of the element that *selector* finds first."""
        found = f"document.querySelector({json.dumps(selector)})"
        self.evaluate(f"{found}.scrollIntoView({{block: 'center'}})")
        box = self.evaluate(
            f"(({{x, y, width, height}}) => [x + width / 2, y + height / 2])({found}.getBoundingClientRect())"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def press(self, key: str) -> None:
        """Press one key: a character, or a name such as ``Enter``."""
        code, text = _KEYS.get(key, (ord(key.upper()[0]), key))
        shared = {"key": key, "windowsVirtualKeyCode": code}
        self.send("Input.dispatchKeyEvent", type="keyDown", **shared, **({"text": text} if text else {}))
        self.send("Input.dispatchKeyEvent", type="keyUp", **shared)

    def type(self, text: str) -> None:
        for character in text:
            self.press(character)

    def show(self, markup: str) -> None:
        """Put *markup* in the place of the page."""
        frame = self.send("Page.getFrameTree")["frameTree"]["frame"]["id"]
        self.send("Page.navigate", url="about:blank")
        self.send("Page.setDocumentContent", frameId=frame, html=markup)
        self.wait_for("document.readyState === 'complete' && [...document.images].every((image) => image.complete)")

    def screenshot(self) -> bytes:
        """Return what the page looks like now, as a PNG."""
        return base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"])

    def requests(self) -> list[str]:
        """Return the addresses that pages have asked for so far."""
        return [
            event["params"]["request"]["url"] for event in self.events if event["method"] == "Network.requestWillBeSent"
        ]

    def complaints(self) -> list[str]:
        """Return the errors of scripts so far."""
        thrown = [
            event["params"]["exceptionDetails"] for event in self.events if event["method"] == "Runtime.exceptionThrown"
        ]
        return [each.get("exception", {}).get("description", each["text"]) for each in thrown]

    def __enter__(self) -> Chromium:
        return self

    def __exit__(self, *exception: object) -> None:
        self._session = None
        try:
            self.send("Browser.close")
            self._process.wait(_PATIENCE)
        finally:
            self._process.kill()
            self._process.wait()
            os.close(self._commands)
            os.close(self._answers)
            self._folder.cleanup()

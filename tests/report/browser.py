"""A headless Chromium, spoken to over its debugging protocol."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import websocket

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

#: Seconds until the browser must have answered.
_PATIENCE = 60.0


class Browser:
    """One page of a browser of its own; use it in `with`."""

    def __init__(self, folder: Path) -> None:
        assert CHROMIUM is not None
        self._port_file = folder / "DevToolsActivePort"
        self._process = subprocess.Popen(
            [
                CHROMIUM,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--remote-debugging-port=0",
                "--remote-allow-origins=*",
                f"--user-data-dir={folder}",
                "about:blank",
            ],
            # A sanitizer that watches the library is nothing for the browser.
            env={name: value for name, value in os.environ.items() if name != "LD_PRELOAD"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._socket: websocket.WebSocket | None = None
        self._number = 0
        #: Requests that the page made, and messages of its console and its faults.
        self.requests: list[str] = []
        self.complaints: list[str] = []

    def __enter__(self) -> Self:
        try:
            port, path = self._address()
            top = websocket.create_connection(f"ws://127.0.0.1:{port}{path}", timeout=_PATIENCE)
            self._socket = top
            target = self.call("Target.createTarget", url="about:blank")["targetId"]
            top.close()
            self._socket = websocket.create_connection(
                f"ws://127.0.0.1:{port}/devtools/page/{target}", timeout=_PATIENCE
            )
            for domain in ("Page", "Runtime", "Network", "Log", "Accessibility"):
                self.call(f"{domain}.enable")
        except BaseException:
            self.close()
            raise
        return self

    def _address(self) -> tuple[str, str]:
        end = time.monotonic() + _PATIENCE
        while time.monotonic() < end:
            if self._port_file.exists() and self._port_file.read_text().count("\n") == 1:
                port, path = self._port_file.read_text().split("\n")
                return port, path
            time.sleep(0.05)
        raise TimeoutError("the browser does not start")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._process.terminate()
        self._process.wait(_PATIENCE)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """A command of the protocol and its result."""
        assert self._socket is not None
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv())
            if message.get("id") == self._number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                result: dict[str, Any] = message["result"]
                return result
            self._note(message)

    def _note(self, message: dict[str, Any]) -> None:
        parameters = message.get("params", {})
        match message.get("method"):
            case "Network.requestWillBeSent":
                self.requests.append(parameters["request"]["url"])
            case "Runtime.exceptionThrown":
                self.complaints.append(str(parameters["exceptionDetails"]))
            case "Log.entryAdded":
                self.complaints.append(parameters["entry"]["text"])

    def open(self, address: str) -> None:
        """Go to an address and wait until it is there."""
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=address)
        self.wait("document.readyState == 'complete' && location.protocol == 'file:'")

    def wait(self, expression: str) -> None:
        """Wait until an expression is true in the page."""
        end = time.monotonic() + _PATIENCE
        while self.value(expression) is not True:
            if time.monotonic() > end:
                raise TimeoutError(f"it never came true: {expression}")
            time.sleep(0.05)

    def value(self, expression: str) -> Any:
        """The value of an expression in the page."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"]
        return result.get("value")

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        self.call("Input.insertText", text=text)

    def press(self, key: str, code: int) -> None:
        """Press and let go a key."""
        text = {"Enter": "\r", " ": " "}.get(key, "")
        common = {"key": key, "code": "Space" if key == " " else key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

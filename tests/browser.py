"""Headless Chromium over its debugging pipe, with nothing but the standard library and with the network cut off."""

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--proxy-server=127.0.0.1:9",  # nobody listens there: what is asked of the network fails
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--remote-debugging-pipe",
]


def no_network():
    """The command that takes the network away from what follows it, or nothing where that is not allowed."""
    command = ["unshare", "--net", "--map-root-user"]
    try:
        allowed = subprocess.run([*command, "true"], capture_output=True, timeout=20).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        allowed = False
    return command if allowed else []


class Browser:
    """One Chromium with one page."""

    def __init__(self, width=1400, height=1000):
        self.profile = tempfile.mkdtemp(prefix="chromium-")
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()
        shell = f'exec 3<&{to_browser} 4>&{from_browser}; exec "$@"'
        command = [*no_network(), CHROMIUM, *FLAGS, f"--user-data-dir={self.profile}", "about:blank"]
        self.process = subprocess.Popen(
            ["bash", "-c", shell, "bash", *command],
            pass_fds=(to_browser, from_browser),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(to_browser)
        os.close(from_browser)
        self.buffer, self.last, self.events, self.session = b"", 0, [], None
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.resize(width, height)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # The group is ours alone: bash became Chromium, or unshare with Chromium below it.
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.write_end)
        os.close(self.read_end)
        for _ in range(20):  # a helper process may still be writing into it
            shutil.rmtree(self.profile, ignore_errors=True)
            if not os.path.exists(self.profile):
                break
            time.sleep(0.05)

    def call(self, method, timeout=60, **parameters):
        """One command of the DevTools protocol; its result."""
        self.last += 1
        message = {"id": self.last, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + timeout
        while True:
            answer = self._receive(deadline)
            if answer.get("id") == self.last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def _receive(self, deadline):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.read_end], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError("Chromium does not answer")
            more = os.read(self.read_end, 1 << 16)
            if not more:
                raise RuntimeError("Chromium has gone")
            self.buffer += more
        line, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(line)

    def resize(self, width, height):
        """Set the size of the page, in CSS pixels."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def media(self, scheme="light", medium="screen"):
        """Choose light or dark, screen or print."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=medium, features=features)

    def open(self, path):
        """Open a file, and wait until it and its pictures are there."""
        self.events.clear()
        self.call("Page.navigate", url=path.as_uri())
        deadline = time.monotonic() + 60
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._receive(deadline))
        self.run("Promise.all([...document.images].map(i => i.decode().catch(() => 0))).then(() => 0)")

    def run(self, script):
        """The value of a JavaScript expression."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def screenshot(self, path, whole=True):
        """Write a PNG."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=whole, format="png")
        path.write_bytes(base64.b64decode(shot["data"]))

    def requests(self):
        """Addresses that the page has asked for since it was opened."""
        sent = [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]
        return [url for url in sent if not url.startswith("data:")]

    def complaints(self):
        """What stands in the console: errors, warnings, exceptions, blocked loads."""
        found = []
        for event in self.events:
            method, parameters = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(parameters["exceptionDetails"]["text"])
            elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
                found.append(parameters["entry"]["text"])
            elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning"):
                found.append(str(parameters["args"]))
        return found

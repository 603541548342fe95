# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, controlled over its pipe with only Python's standard library."""
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


class Browser:
    """Chromium's DevTools protocol: JSON objects, each followed by a NUL, in both directions."""

    def __init__(self, program="chromium"):
        self.home = tempfile.mkdtemp()
        to_read, self.to = os.pipe()
        self.back, to_write = os.pipe()
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-dev-shm-usage",
                 "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe",
                 "--user-data-dir=" + self.home, "about:blank"]

        def place():    # Chromium expects the pipe on descriptors 3 and 4
            a, b = os.dup2(to_read, 30), os.dup2(to_write, 31)
            os.dup2(a, 3)
            os.dup2(b, 4)
        with open(os.path.join(self.home, "log"), "w") as log:
            self.process = subprocess.Popen([program] + flags, stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=place,
                                            close_fds=False, env=dict(os.environ, HOME=self.home, XDG_CONFIG_HOME=self.home, TMPDIR=self.home))
        os.close(to_read)
        os.close(to_write)
        self.number, self.buffer, self.events, self.session = 0, b"", [], None
        target = self("Target.createTarget", url="about:blank")["targetId"]
        self.session = self("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self(domain + ".enable")

    def message(self, limit):
        end = time.monotonic() + limit
        while b"\0" not in self.buffer:
            if not select.select([self.back], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError("the browser is silent")
            data = os.read(self.back, 1 << 20)
            if not data:
                raise EOFError("the browser has ended")
            self.buffer += data
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def __call__(self, method, **params):
        self.number += 1
        request = {"id": self.number, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.to, json.dumps(request).encode() + b"\0")
        while True:
            m = self.message(300)
            if m.get("id") == self.number:
                if "error" in m:
                    raise RuntimeError(f"{method}: {m['error']}")
                return m["result"]
            self.events.append(m)

    def js(self, text):
        """Return the value of an expression, which may be a promise."""
        r = self("Runtime.evaluate", expression=text, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in r:
            raise RuntimeError(r["exceptionDetails"].get("exception", {}).get("description", r["exceptionDetails"]["text"]))
        return r["result"].get("value")

    def wait(self, text, limit=60):
        end = time.monotonic() + limit
        while True:
            try:
                if self.js(text):
                    return
            except RuntimeError:
                pass            # the page is reloading
            if time.monotonic() > end:
                raise TimeoutError(text + " " + str(self.js("[location.hash, document.readyState, typeof reportStats, window.reportStats && reportStats.first, window.report && [...report.model.filters.keys()].join()]")))
            time.sleep(0.1)

    def open(self, path, wide=1400, high=3000, drawn=True):
        self.events.clear()
        self("Emulation.setDeviceMetricsOverride", width=wide, height=high, deviceScaleFactor=1, mobile=False)
        self("Page.navigate", url="about:blank")
        self("Page.navigate", url="file://" + path)
        self.wait("document.readyState === 'complete' && location.protocol === 'file:'")
        if drawn:
            self.wait("window.reportStats && window.reportStats.first > 0")

    def complaints(self):
        """Return the console's messages, exceptions, and requests that leave the file."""
        found = []
        for e in self.events:
            p = e.get("params", {})
            if e.get("method") == "Runtime.exceptionThrown":
                found.append(p["exceptionDetails"].get("exception", {}).get("description", "exception"))
            elif e.get("method") == "Log.entryAdded" and p["entry"]["level"] in ("error", "warning"):
                found.append(p["entry"]["text"])
            elif e.get("method") == "Runtime.consoleAPICalled":
                found.append("console." + p["type"])
            elif e.get("method") == "Network.requestWillBeSent" and not p["request"]["url"].startswith(("file:", "data:", "about:", "blob:")):
                found.append("request of " + p["request"]["url"])
        return found

    def drag(self, x0, y0, x1, y1):
        for kind, x, y in (("mousePressed", x0, y0), ("mouseMoved", (x0 + x1) / 2, (y0 + y1) / 2), ("mouseMoved", x1, y1), ("mouseReleased", x1, y1)):
            self("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=0 if kind == "mouseReleased" else 1, clickCount=1)

    def move(self, x, y):
        self("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def key(self, name):
        for kind in ("keyDown", "keyUp"):
            self("Input.dispatchKeyEvent", type=kind, key=name, code=name)

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.home, ignore_errors=True)

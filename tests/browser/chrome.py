"""chrome.py: a headless Chromium for tests, spoken to over pipes (DevTools protocol): no port, no other library."""
import base64
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-extensions",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    "--force-color-profile=srgb", "--remote-debugging-pipe",
]


def program():
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Chrome:
    def __init__(self, patience=60):
        self.patience = patience
        self.home = tempfile.mkdtemp(prefix="rdgate-chrome-")
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()

        def pipes():  # Chromium reads file descriptor 3 and writes 4
            read, write = fcntl.fcntl(theirs_in, fcntl.F_DUPFD, 10), fcntl.fcntl(theirs_out, fcntl.F_DUPFD, 10)
            os.dup2(read, 3)
            os.dup2(write, 4)

        self.process = subprocess.Popen(
            [program(), *FLAGS, f"--user-data-dir={self.home}", "about:blank"], preexec_fn=pipes, close_fds=False,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self.out, self.inn = ours_out, ours_in
        self.pending, self.number, self.events = b"", 0, []
        self.session = None
        target = next(t for t in self.ask("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.ask(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        os.close(self.out)
        os.close(self.inn)
        shutil.rmtree(self.home, ignore_errors=True)

    def message(self, deadline):
        while b"\0" not in self.pending:
            if time.monotonic() > deadline:
                raise TimeoutError("the browser does not answer")
            if select.select([self.inn], [], [], 1)[0]:
                piece = os.read(self.inn, 1 << 20)
                if not piece:
                    raise EOFError("the browser has ended")
                self.pending += piece
        one, _, self.pending = self.pending.partition(b"\0")
        return json.loads(one)

    def ask(self, method, **params):
        self.number += 1
        number = self.number
        call = {"id": number, "method": method, "params": params}
        if self.session:
            call["sessionId"] = self.session
        data = json.dumps(call).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data):]
        deadline = time.monotonic() + self.patience
        while True:
            m = self.message(deadline)
            if m.get("id") == number:
                if "error" in m:
                    raise RuntimeError(f"{method}: {m['error']['message']}")
                return m["result"]
            self.events.append(m)

    def screen(self, width, height, phone=False, dark=False, scale=1):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=phone)
        self.ask("Emulation.setTouchEmulationEnabled", enabled=phone)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def open(self, path, fragment=""):
        """Opens a file and waits until the page says that it is ready."""
        self.ask("Page.navigate", url="about:blank")
        self.events.clear()
        self.ask("Page.navigate", url=f"file://{os.path.abspath(path)}{fragment}")
        deadline = time.monotonic() + self.patience
        while self.value("location.protocol == 'file:' && document.documentElement?.dataset.ready") != "yes":
            if time.monotonic() > deadline:
                raise TimeoutError(f"the page is not ready: {self.troubles()}")

    def value(self, expression):
        r = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in r:
            raise RuntimeError(r["exceptionDetails"].get("exception", {}).get("description", str(r)))
        return r["result"].get("value")

    def troubles(self):
        """Exceptions and logged errors since open()."""
        self.value("0")
        found = []
        for e in self.events:
            if e.get("method") == "Runtime.exceptionThrown":
                d = e["params"]["exceptionDetails"]
                found.append(d.get("exception", {}).get("description", d.get("text")))
            if e.get("method") == "Log.entryAdded" and e["params"]["entry"]["level"] == "error":
                found.append(e["params"]["entry"]["text"])
        return found

    def requests(self):
        """What the page has asked for besides itself."""
        self.value("0")
        asked = [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]
        return [u for u in asked if not u.startswith(("file:", "data:"))] + [u for u in asked if u.startswith("file:")][1:]

    def picture(self, path):
        with open(path, "wb") as f:
            f.write(base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"]))

    def mouse(self, kind, x, y, **more):
        self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y):
        self.mouse("mousePressed", x, y, button="left", clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)

    def touch(self, kind, *points):
        self.ask("Input.dispatchTouchEvent", type=kind, touchPoints=[{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(points)])

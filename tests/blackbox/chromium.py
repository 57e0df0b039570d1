"""A real browser, driven as the WebDriver specification says, over plain HTTP: Chromium behind its driver, headless,
with a profile of its own. It knows nothing of what it shows."""

import base64
import json
import os
import re
import select
import shutil
import subprocess
import time
import urllib.request

import pytest

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
PATIENCE = 30


class Refused(Exception):
    """The driver's answer to what cannot be done: its error word is `word`."""

    def __init__(self, word, message):
        super().__init__(f"{word}: {message}")
        self.word = word


class Chromium:
    """One browser. Selectors are CSS."""

    def __init__(self, folder):
        missing = [name for name in ("chromium", "chromedriver") if not shutil.which(name)]
        if missing:
            pytest.fail(f"{missing} is not installed; ./test installs Debian's chromium and chromium-driver")
        environment = {**os.environ, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_CACHE_HOME": str(folder)}
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, env=environment)
        self.base = f"http://127.0.0.1:{self._port()}"
        options = {"args": ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
                            f"--user-data-dir={folder / 'profile'}", "--window-size=1100,900"]}
        wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        try:
            self.session = self._call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]
        except BaseException:
            self.driver.kill()
            raise

    def _port(self):
        text, deadline = "", time.monotonic() + PATIENCE
        while not (found := re.search(r"started successfully on port (\d+)", text)):
            readable = select.select([self.driver.stdout], [], [], max(0, deadline - time.monotonic()))[0]
            piece = os.read(self.driver.stdout.fileno(), 4096) if readable else b""
            assert piece, f"the driver did not start: {text}"
            text += piece.decode()
        return found[1]

    def _call(self, verb, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=verb)
        try:
            with urllib.request.urlopen(request, timeout=2 * PATIENCE) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as fault:
            value = json.load(fault)["value"]
            raise Refused(value["error"], value["message"]) from None

    def _do(self, path, body=None):
        verb = "GET" if body is None else "POST"
        return self._call(verb, f"/session/{self.session}{path}", body)

    def go(self, url):
        self._do("/url", {"url": url})

    @property
    def url(self):
        return self._do("/url")

    @property
    def title(self):
        return self._do("/title")

    def find(self, selector, within=None):
        """Every element that matches."""
        place = f"/element/{within}/elements" if within else "/elements"
        return [found[ELEMENT] for found in self._do(place, {"using": "css selector", "value": selector})]

    def one(self, selector, within=None):
        found = self.find(selector, within)
        assert len(found) == 1, (selector, len(found), self.text())
        return found[0]

    def text(self, element=None):
        """What is to be read, as it is laid out."""
        return self._do(f"/element/{element or self.find('body')[0]}/text")

    def click(self, element):
        self._do(f"/element/{element}/click", {})

    def press(self, label, within=None):
        """The one button of this label."""
        (button,) = [button for button in self.find("button", within) if self.text(button) == label]
        self.click(button)

    def run(self, script, *arguments):
        return self._do("/execute/sync", {"script": script, "args": list(arguments)})

    def dialog(self):
        """The text of an open dialogue, if there is one."""
        try:
            return self._do("/alert/text")
        except Refused as refused:
            assert refused.word == "no such alert", refused
            return None

    def console(self):
        return [entry["message"] for entry in self._do("/se/log", {"type": "browser"})]

    def devtools(self, command, **parameters):
        return self._do("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def phone(self, dark=False):
        """The screen of a phone held upright."""
        self.devtools("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=2, mobile=True)
        self.scheme("dark" if dark else "light")

    def scheme(self, scheme):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.devtools("Emulation.setEmulatedMedia", features=features)

    def picture(self, file, whole=False):
        shot = self.devtools("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(shot["data"]))

    def until(self, true, what):
        """Waits for something to become true."""
        deadline = time.monotonic() + PATIENCE
        while not true():
            assert time.monotonic() < deadline, f"never came: {what}\n{self.url}\n{self.text()}"
            time.sleep(0.05)

    def close(self):
        try:
            self._call("DELETE", f"/session/{self.session}")
        finally:
            self.driver.terminate()
            self.driver.wait(PATIENCE)
            self.driver.stdout.close()

"""Studio as a user operates it: a page with its buttons and keys, and the probe that records the sound with its times."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from playwright.sync_api import ConsoleMessage, Locator, Page, TimeoutError, expect

from tests.browser.stage.speech import RATE, Sound, from_pcm16, pcm16

ROOT: Final = Path(__file__).resolve().parents[3]
AXE: Final = ROOT / "node_modules" / "axe-core" / "axe.min.js"
MICROPHONE: Final = Path(__file__).with_name("microphone.js")
PICTURES: Final = ROOT / "tests" / "out" / "browser"
WAIT_MS: Final = 90_000
"""Milliseconds to wait for the slowest step: an answer of the language model on a busy machine."""

_SAMPLES: Final = """(which) => {
  const { rate, start, samples } = window.__voxbridge[which]();
  const pcm = Int16Array.from(samples, (x) => Math.max(-32768, Math.min(32767, Math.round(x * 32768))));
  const bytes = new Uint8Array(pcm.buffer);
  let text = "";
  for (let i = 0; i < bytes.length; i += 32768) text += String.fromCharCode(...bytes.subarray(i, i + 32768));
  return { rate, start, data: btoa(text) };
}"""


@dataclass(frozen=True)
class Recording:
    """Samples on the sound device's clock: `start` is the time of the first one in seconds."""

    rate: int
    start: float
    sound: Sound

    def between(self, begin: float, end: float) -> Sound:
        """Return the sound from `begin` to `end`, in seconds."""
        return self.sound[max(0, round((begin - self.start) * self.rate)) : max(0, round((end - self.start) * self.rate))]

    def first_loud(self, level: float, after: float) -> float | None:
        """Return the time at which a sample first reached the level."""
        found = np.flatnonzero(np.abs(self.between(after, self.end)) >= level)
        return max(after, self.start) + float(found[0]) / self.rate if found.size else None

    def last_loud(self, level: float, before: float) -> float | None:
        """Return the time at which a sample last reached the level."""
        found = np.flatnonzero(np.abs(self.between(self.start, before)) >= level)
        return self.start + float(found[-1]) / self.rate if found.size else None

    @property
    def end(self) -> float:
        """Time of the last sample in seconds."""
        return self.start + len(self.sound) / self.rate


class Studio:
    """A page of Studio. Errors and warnings of its console are collected; the test fails when there are any."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        self.complaints: list[str] = []
        self._cuts = False
        page.set_default_timeout(WAIT_MS)
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def cuts_are_expected(self) -> None:
        """Ignore console messages about an absent server from now on: the page reconnects."""
        self._cuts = True

    def _console(self, message: ConsoleMessage) -> None:
        if self._cuts and any(word in message.text for word in ("WebSocket connection", "net::ERR_", "503")):
            return
        if "503" in message.text and message.location["url"].endswith("/readyz"):
            return  # on a busy machine the probe may exceed its timeout of a second
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")

    def open(self, path: str = "/?probe=1") -> None:
        """Go to a room; the page is rendered when its heading is visible."""
        self.page.goto(self.url + path)
        self.page.get_by_role("heading", level=1).wait_for()

    def button(self, name: str) -> Locator:
        """Return a button by its exact name."""
        return self.page.get_by_role("button", name=name, exact=True)

    def start(self) -> str:
        """Press start and wait for the session. Return its id."""
        self.button("Start talking").click()
        return self.connected()

    def connected(self) -> str:
        """Wait until the session is set up. Return its id."""
        self.until("(s) => s.connection === 'connected' && s.sessionId !== null")
        return str(self.snapshot()["sessionId"])

    def snapshot(self) -> dict[str, Any]:
        """Return the agent's snapshot."""
        found = self.page.evaluate("() => window.__voxbridge.snapshot()")
        assert isinstance(found, dict)
        return found

    def until(self, holds: str, argument: object = None) -> None:
        """Wait until a function of the snapshot, and of an argument, is true."""
        try:
            self.page.wait_for_function(f"(argument) => ({holds})(window.__voxbridge.snapshot(), argument)", arg=argument)
        except TimeoutError as error:
            raise AssertionError(f"never {holds} with {argument}: {json.dumps(self.snapshot())}") from error

    def until_state(self, *states: str) -> None:
        """Wait until the session is in one of the states."""
        self.until("(s, states) => states.includes(s.state)", list(states))

    def until_quiet(self) -> None:
        """Wait until the agent has said everything and listens."""
        self.until("(s) => s.state === 'listening' && s.conversation.every((e) => e.kind !== 'said' || e.final)")

    def until_said(self, role: str, pattern: str) -> str:
        """Wait for a final line of `user` or `assistant` that matches the pattern. Return the line."""
        holds = "(s, [who, p]) => s.conversation.some((e) => e.kind === 'said' && e.role === who && e.final && RegExp(p, 'i').test(e.text))"
        self.until(holds, [role, pattern])
        lines: list[str] = [e["text"] for e in self.said(role)]
        return next(line for line in reversed(lines) if self.page.evaluate("([p, t]) => new RegExp(p, 'i').test(t)", [pattern, line]))

    def said(self, role: str) -> list[dict[str, Any]]:
        """Return the final lines of one side."""
        return [e for e in self.snapshot()["conversation"] if e["kind"] == "said" and e["role"] == role and e["final"]]

    def captions(self) -> Locator:
        """Return the captions of both sides."""
        return self.page.get_by_role("log", name="Captions")

    def load(self, name: str, sound: Sound) -> None:
        """Load a clip into the microphone of `microphone.js`."""
        data = base64.b64encode(pcm16(sound)).decode()
        self.page.evaluate("([name, data, rate]) => window.__microphone.load(name, data, rate)", [name, data, RATE])

    def say(self, name: str) -> None:
        """Start to play a loaded clip into the microphone."""
        self.page.evaluate("(name) => window.__microphone.say(name)", name)

    def type(self, text: str) -> None:
        """Write into the text box and press Enter."""
        field = self.page.get_by_role("textbox", name="Message")
        field.fill(text)
        field.press("Enter")
        self.page.evaluate("() => document.activeElement?.blur()")

    def heard(self, seconds: float) -> None:
        """Wait until the page has reported so many seconds of playback since now, of a reply that begins or goes on."""
        reports = self.marks()["reports"]
        last = reports[-1] if reports and reports[-1]["state"] == "playing" else {"generation": None, "played_ms": 0}
        self.page.wait_for_function(
            """([count, generation, before, ms]) => window.__voxbridge.marks().reports.slice(count).some(
              (r) => r.state === 'playing' && r.played_ms >= ms + (r.generation === generation ? before : 0))""",
            arg=[len(reports), last["generation"], last["played_ms"], seconds * 1_000],
        )

    def played(self) -> Recording:
        """Return every sample that went to the loudspeaker."""
        return self._recording("played")

    def recorded(self) -> Recording:
        """Return every sample that came from the microphone."""
        return self._recording("recorded")

    def _recording(self, which: str) -> Recording:
        found = self.page.evaluate(_SAMPLES, which)
        sound = from_pcm16(base64.b64decode(found["data"]))
        return Recording(round(found["rate"]), float(found["start"]), sound)

    def marks(self) -> dict[str, Any]:
        """Return onsets, flushes and playback reports with their times."""
        found = self.page.evaluate("() => window.__voxbridge.marks()")
        assert isinstance(found, dict)
        return found

    def now(self) -> float:
        """Return the seconds on the sound device's clock."""
        return float(self.page.evaluate("() => window.__voxbridge.clock().time"))

    def after(self, seconds: float) -> None:
        """Wait until the sound device's clock has advanced by so many seconds."""
        self.page.wait_for_function("(time) => (window.__voxbridge.clock()?.time ?? Infinity) >= time", arg=self.now() + seconds)

    def try_now(self) -> None:
        """Reconnect without waiting for the next attempt; does nothing when it is already connected."""
        self.page.evaluate("() => [...document.querySelectorAll('button')].find((button) => button.textContent === 'Try now')?.click()")

    def end(self) -> None:
        """End the call."""
        self.button("End the call").click()
        self.until("(s) => s.connection === 'closed'")

    def violations(self) -> list[str]:
        """Return the accessibility problems that axe finds on the page in its present state."""
        session = self.page.context.new_cdp_session(self.page)
        try:
            # The page's content security policy blocks scripts, but not those of the debugger.
            session.send("Runtime.evaluate", {"expression": AXE.read_text()})
            found = self.page.evaluate("async () => (await axe.run(document, { resultTypes: ['violations'] })).violations")
        finally:
            session.detach()
        return [f"{v['id']}: {json.dumps([n['target'] for n in v['nodes']])}" for v in found]

    def picture(self, name: str) -> None:
        """Save a screenshot for inspection."""
        PICTURES.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=PICTURES / f"{name}.png")


def see(locator: Locator) -> None:
    """Wait until it is visible on the page."""
    expect(locator).to_be_visible(timeout=WAIT_MS)

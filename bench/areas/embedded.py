"""An agent in a page of others, as a person hears it: how soon it speaks, how soon it is back, and how soon it is silent.

    python -m bench.areas.embedded 5

Starts the whole product with `voxbridge up` and the installation's own models, and opens `examples/vanilla` from another origin with its
default UI. The sound is measured in the page, at the microphone and before the loudspeaker, every few milliseconds. Prints one JSON line.
"""

from __future__ import annotations

import base64
import itertools
import re
import sys
from typing import TYPE_CHECKING, Final

import msgspec

from bench import figures
from bench.areas.audio import Found, Say
from bench.program import put, result
from bench.report import Figure

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.stage.cable import Cable

TIMES: Final = 9
TIMEOUT_S: Final = 1_200.0
SPOKEN_MS: Final = 1_500
BACK_MS: Final = 500
SILENT_MS: Final = 200
_WAIT_MS: Final = 90_000
_TAIL_MS: Final = 400
"""Milliseconds behind the end of an answer in which it would still be heard."""

_THEMES: Final = ("the sea", "a mountain", "a small town", "a journey")
_WORDS: Final = 12
"""Words of an answer that are written before it is interrupted: more than those that fill a wait."""

_SUM: Final = "what two and two is"
_CUT_MS: Final = 2_000
"""Milliseconds without a network."""

_SOUND: Final = """
(() => {
  const taps = { microphone: [], loudspeaker: [] };
  const heard = { allowed: 0, microphone: 0, loudspeaker: 0, last: 0, status: "", changed: 0 };
  const connect = AudioNode.prototype.connect;
  AudioNode.prototype.connect = function (to, ...rest) {
    if (to instanceof AudioDestinationNode || to instanceof MediaStreamAudioDestinationNode) {
      const analyser = new AnalyserNode(this.context, { fftSize: 512 });
      connect.call(this, analyser);
      taps[this instanceof AudioBufferSourceNode ? "microphone" : "loudspeaker"].push(analyser);
    }
    return connect.call(this, to, ...rest);
  };
  const samples = new Float32Array(512);
  const loud = (level) => (analyser) => (analyser.getFloatTimeDomainData(samples), samples.some((x) => Math.abs(x) >= level));
  setInterval(() => {
    const now = performance.now();
    const status = document.querySelector("#app")?.firstElementChild?.shadowRoot?.querySelector("[role=status]")?.textContent ?? "";
    if (status !== heard.status) Object.assign(heard, { status, changed: now });
    if (taps.microphone.some(loud(ONSET))) heard.microphone ||= now;
    if (taps.loudspeaker.some(loud(QUIET))) { heard.loudspeaker ||= now; heard.last = now; }
  }, 4);
  const open = navigator.mediaDevices.getUserMedia;
  navigator.mediaDevices.getUserMedia = async (...of) => {
    const found = await open(...of);
    heard.allowed ||= performance.now();
    return found;
  };
  window.__heard = () => heard;
  window.__listen = () => Object.assign(heard, { microphone: 0, loudspeaker: 0, last: 0 });
})();
"""
"""Script of the page: its status and since when, when the microphone was allowed, and, since `__listen`, when either side was first loud
and the agent last; `ONSET` and `QUIET` are the levels of the area `barge_in`."""

_SOUNDS: Final = """(words) => {
  const log = document.querySelector("#app").firstElementChild.shadowRoot.querySelector("[role=log]");
  const lines = [...log.children].map((one) => one.textContent);
  const answer = lines.slice(lines.findLastIndex((line) => line.includes("twelve sentences")) + 1).join(" ");
  return answer.trim().split(/\\s+/).length >= words && performance.now() - window.__heard().last < 8;
}"""
"""Tests whether the answer is being heard now, and is more than a few words."""


class Times(msgspec.Struct, frozen=True):
    """Output of this module when run as a program; all in ms."""

    first_sound: list[float]
    back: list[float]
    silence: list[float]


async def embedded(quick: bool, say: Say) -> Found:
    """Measure a page that embeds an agent; a run that fails is a missed target."""
    times = 2 if quick else TIMES
    say(f"embedded: a page goes from text to voice, loses its network and interrupts, {times} times each")
    found = await result("bench.areas.embedded", str(times), kind=Times, within_s=TIMEOUT_S)
    rows = (
        ("embedded.first_sound", "microphone allowed → first sound of the pending answer, local models, p50", found.first_sound, SPOKEN_MS),
        ("embedded.back", "network back → the page is back in its call, nothing twice, p50", found.back, BACK_MS),
        ("embedded.silence", "onset → silence with the default UI, p50", found.silence, SILENT_MS),
    )
    made, series = [], {}
    for key, what, values, target in rows:
        series[key] = figures.series(values)
        note = f"{series[key].count} times, longest {series[key].longest:.0f} ms"
        made.append(Figure(area="embedded", what=what, key=key, unit="ms", value=series[key].p50, target=target, note=note))
    return made, {"times": found, **series}, []


def taken(times: int) -> Times:
    """Return what was measured; raises `RuntimeError` without a Chromium."""
    # Imported here, because machines that only read figures may lack the browser tools.
    from bench.clients.chromium import product_and_browser
    from tests.browser.stage import embedded as pages
    from tests.browser.stage.barge_in import QUIET
    from tests.browser.stage.cable import cable
    from tests.browser.stage.speech import LOUD, RATE, human, pcm16, spoken
    from tests.browser.stage.studio import MICROPHONE
    from tests.running_models import running_models

    models = running_models()
    sounds = (spoken(models, "Stop, please."), spoken(models, "Wait a moment."), human())
    clips = itertools.cycle([base64.b64encode(pcm16(sound)).decode() for sound in sounds])
    found = Times([], [], [])
    with product_and_browser(models) as (product, browser):
        for _ in range(times):
            html = pages.example("vanilla", product, pages.make_key(product))  # a key has two calls at a time, and pages leave theirs
            with cable(product.url) as wire, pages.site(html.replace(product.url, wire.url)) as address:
                page = browser.new_context().new_page()
                page.set_default_timeout(_WAIT_MS)
                page.add_init_script(path=MICROPHONE)
                page.add_init_script(_SOUND.replace("ONSET", str(LOUD)).replace("QUIET", str(QUIET)))
                page.goto(address)
                found.back.append(_back(page, wire))
                found.first_sound.append(_first_sound(page))
                page.evaluate("([data, rate]) => window.__microphone.load('stop', data, rate)", [next(clips), RATE])
                found.silence.append(_silence(page))
                page.context.close()
    return found


def _says(page: Page, text: str) -> None:
    page.get_by_label("Message").fill(text)
    page.get_by_role("button", name="Send").click()


def _until_ready(page: Page, status: str) -> float:
    """Wait until the page says that it is ready, and return when it was, ms on the page's clock."""
    page.wait_for_function("(status) => window.__heard().status === status", arg=status)
    return float(page.evaluate("window.__heard().changed"))


def _back(page: Page, wire: Cable) -> float:
    """Type something, cut the network, mend it, and return the milliseconds until the page is back in its call."""
    _says(page, "Good morning.")
    page.wait_for_function("window.__heard().status === 'Thinking…' || window.__heard().status === 'Writing…'")
    _until_ready(page, "Ready")
    lines = page.get_by_role("log").inner_text()
    page.context.set_offline(True)
    wire.cut()
    page.wait_for_function("window.__heard().status !== 'Ready'")
    page.wait_for_timeout(_CUT_MS)
    wire.mend()
    mended = float(page.evaluate("performance.now()"))
    page.context.set_offline(False)
    back = _until_ready(page, "Ready") - mended
    if page.get_by_role("log").inner_text() != lines:
        raise RuntimeError("The page shows another conversation than before.")
    return back


def _first_sound(page: Page) -> float:
    """Ask for voice and something besides, and return the milliseconds from the microphone to the answer's first sound."""
    page.evaluate("window.__listen()")
    _says(page, f"Switch to voice, and tell me {_SUM}.")
    page.wait_for_function("window.__heard().allowed > 0 && window.__heard().loudspeaker > window.__heard().allowed")
    heard = page.evaluate("window.__heard()")
    _until_ready(page, "Listening")
    answer = page.get_by_role("log").inner_text().rpartition(_SUM)[2]
    if not re.search(r"\b(four|4)\b", answer, re.IGNORECASE):
        raise RuntimeError(f"The answer to what two and two is: {answer.strip()!r}")
    return float(heard["loudspeaker"] - heard["allowed"])


def _silence(page: Page) -> float:
    """Ask for a long story, speak into it, and return the milliseconds from the onset to lasting silence. An interruption that falls into a
    pause between two sentences measures nothing, and is made again."""
    for theme in _THEMES:
        page.evaluate("window.__listen()")
        _says(page, f"Tell me a long story about {theme}, with at least twelve sentences.")
        page.wait_for_function(_SOUNDS, arg=_WORDS)
        page.evaluate("window.__microphone.say('stop')")
        page.wait_for_function("window.__heard().microphone > 0")
        page.wait_for_function("(tail) => performance.now() - window.__heard().last > tail", arg=_TAIL_MS)
        heard = page.evaluate("window.__heard()")
        _until_ready(page, "Listening")
        if heard["last"] > heard["microphone"]:
            return float(heard["last"] - heard["microphone"])
    raise RuntimeError(f"The agent paused at each of {len(_THEMES)} interruptions.")


if __name__ == "__main__":
    put(taken(int(sys.argv[1])))

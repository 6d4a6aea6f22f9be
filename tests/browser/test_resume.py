"""A call outlives its socket: the connection is cut during it, and nothing is lost, repeated, or left unsaid."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from tests.browser.conftest import DESKTOP
from tests.browser.stage.barge_in import ANSWERS, WORDS
from tests.browser.stage.cable import Cable, cable
from tests.browser.stage.product import Product
from tests.browser.stage.speech import Sound, spoken
from tests.browser.stage.studio import MICROPHONE, Studio

pytestmark = pytest.mark.timeout(600)

TOLD: Final = {"session.started", "user.said", "agent.said", "turn.completed", "tool.called", "tool.cancelled", "tool.completed"}
"""Events that a page receives, and that occur in each of these calls."""

PHONE: Final = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "has_touch": True, "is_mobile": True}
STORY: Final = "Tell me a long story about the sea, with at least twelve sentences."

OpenPage = Callable[..., Studio]


@pytest.fixture
def line(product: Product) -> Iterator[Cable]:
    """The connection of a test's pages."""
    with cable(product.url) as found:
        yield found


@pytest.fixture
def open_page(browser: Browser, line: Cable) -> Iterator[OpenPage]:
    """Open Talk at the other end of the cable, in the given context or a new one."""
    with ExitStack() as open_contexts:

        def make(context: BrowserContext | None = None, *, clips: dict[str, Sound] | None = None, **options: Any) -> Studio:
            if context is None:
                context = browser.new_context(**{**DESKTOP, **options})
                open_contexts.callback(context.close)
            studio = Studio(context.new_page(), line.url)
            studio.cuts_are_expected()
            open_contexts.callback(_quiet, studio)
            studio.page.add_init_script(path=MICROPHONE)
            studio.open()
            for name, sound in (clips or {}).items():
                studio.load(name, sound)
            return studio

        yield make


def _quiet(studio: Studio) -> None:
    """Ignore the browser's own messages about the cut connection, and fail on others."""
    assert [complaint for complaint in studio.complaints if "net::ERR_" not in complaint] == []


def test_what_is_said_while_the_line_is_cut_is_heard_and_answered(product: Product, line: Cable, open_page: OpenPage) -> None:
    studio = open_page(clips={"question": spoken(product.models, "What time is it in Tokyo?")})
    sid = studio.start()
    studio.until_quiet()
    line.cut()
    studio.until_state("reconnecting")
    expect(studio.page.get_by_role("heading", name="Reconnecting")).to_be_visible()
    expect(studio.page.get_by_role("status")).to_contain_text("The connection was lost.")
    expect(studio.page.get_by_text(re.compile(r"^Try \d+ "))).to_be_visible()
    studio.say("question")
    studio.after(2)
    line.mend()
    studio.try_now()
    studio.until("(s) => s.connection === 'connected'")
    told = re.compile(r"You were cut off for [\d.]+ s; (nothing was lost|.*last 5 s)")  # the second form occurs on a busy machine
    expect(studio.page.get_by_role("status")).to_contain_text(told)
    studio.until_said("user", "time.*Tokyo")
    studio.until_said("assistant", r"\d")
    studio.until_quiet()
    assert len(product.logged(sid, "user.said")) == 1
    assert len(product.logged(sid, "client.connected", resumed=True)) == 1
    _check_facts(product, studio, sid)


def test_a_reply_that_is_cut_off_goes_on_and_no_sound_of_the_old_one_is_left(product: Product, line: Cable, open_page: OpenPage) -> None:
    studio = open_page()
    sid = studio.start()
    studio.until_quiet()
    studio.type(STORY)
    studio.heard(2)
    studio.until(ANSWERS, WORDS)
    line.cut()
    studio.until_state("reconnecting")
    studio.page.wait_for_function("() => window.__voxbridge.marks().flushes.some((flush) => flush.cut)")
    cut = float(studio.marks()["flushes"][-1]["time"])
    old = int(studio.marks()["flushes"][-1]["generation"])
    studio.after(1)
    last = studio.played().last_loud(1e-3, cut + 1)
    assert last is not None
    assert last - cut <= 0.05, "sound of the lost socket went on"
    line.mend()
    studio.until("(s) => s.connection === 'connected'")
    studio.until_state("speaking")
    product.logged(sid, "generation.cancelled", by="disconnect")
    (before,) = product.logged(sid, "agent.said", generation=old)
    assert before["data"]["interrupted"]
    expect(studio.captions().get_by_text("The connection broke here. The rest is said again.")).to_be_visible()
    studio.heard(1)
    studio.page.keyboard.press("Escape")
    studio.until_quiet()
    later = [r["generation"] for r in studio.marks()["reports"] if r["time"] > cut + 0.1 and r["state"] == "playing"]
    assert later
    assert min(later) > old
    _check_facts(product, studio, sid)


def test_a_call_goes_on_over_many_cuts_and_a_reload(product: Product, line: Cable, open_page: OpenPage) -> None:
    studio = open_page()
    sid = studio.start()
    studio.until_quiet()
    for number, (sum_, answer) in enumerate((("2 plus 3", "5|five"), ("10 minus 3", "7|seven"), ("4 plus 5", "9|nine"))):
        studio.type(f"What is {sum_}?")
        line.cut()
        studio.until_state("reconnecting")
        line.mend()
        studio.until("(s) => s.connection === 'connected'")
        studio.until_said("assistant", answer)
        studio.until_quiet()
        assert len(product.logged(sid, "client.connected", resumed=True)) >= number + 1
    _check_facts(product, studio, sid)
    shown = [(e["role"], e["text"]) for e in studio.snapshot()["conversation"] if e["kind"] == "said"]

    studio.page.reload()
    studio.until("(s) => s.connection === 'connected'")
    assert studio.snapshot()["sessionId"] == sid
    expect(studio.page.get_by_role("status")).to_contain_text("You are back in the call; nothing was lost.")
    studio.until("(s, count) => s.conversation.filter((e) => e.kind === 'said').length >= count", len(shown))
    assert [(e["role"], e["text"]) for e in studio.snapshot()["conversation"] if e["kind"] == "said"] == shown
    studio.until("(s) => s.microphone === 'on'")
    _check_facts(product, studio, sid)
    studio.end()
    assert product.logged(sid, "session.ended")
    studio.page.reload()
    expect(studio.button("Start talking")).to_be_visible()


def test_another_window_takes_the_call_and_it_is_taken_back(product: Product, line: Cable, open_page: OpenPage) -> None:
    studio = open_page(**PHONE)
    sid = studio.start()
    studio.until_quiet()
    other = open_page(studio.page.context)
    # The same tab, as when the browser reopens it from its history.
    ticket = studio.page.evaluate("() => sessionStorage.getItem('voxbridge.call')")
    other.page.evaluate(
        "(text) => sessionStorage.setItem('voxbridge.call', JSON.stringify({ ...JSON.parse(text), left: Date.now() }))", ticket
    )
    other.open()
    other.until("(s) => s.connection === 'connected'")
    studio.until_state("elsewhere")
    expect(studio.page.get_by_role("heading", name="In another window")).to_be_visible()
    for scheme in ("light", "dark"):
        studio.page.emulate_media(color_scheme=scheme)
        studio.picture(f"elsewhere-phone-{scheme}")
    assert studio.violations() == []
    other.type("What is 6 times 7?")
    other.until_said("user", "6 times 7")
    studio.button("Take the call back").click()
    studio.until("(s) => s.connection === 'connected'")
    studio.until_said("user", "6 times 7")
    other.until_state("elsewhere")
    studio.until("(s) => s.turn > 0")
    studio.until_quiet()
    _check_facts(product, studio, sid)

    # The session is ended there while this page is disconnected.
    line.cut()
    studio.until_state("reconnecting")
    far = Studio(studio.page.context.new_page(), product.url)
    far.page.goto(f"{product.url}/")
    far.page.evaluate(_END, [studio.page.evaluate("() => sessionStorage.getItem('voxbridge.call')")])
    product.logged(sid, "session.ended")
    line.mend()
    studio.until_state("ended")
    expect(studio.page.get_by_role("status")).to_contain_text("The call has ended")
    assert studio.snapshot()["error"] is None
    studio.button("Start again").click()
    studio.until("(s, old) => s.connection === 'connected' && s.sessionId !== old", sid)


@pytest.mark.parametrize("size", ["desktop", "phone"])
def test_an_interruption_is_without_barriers(line: Cable, open_page: OpenPage, size: str) -> None:
    studio = open_page(**(PHONE if size == "phone" else {}))
    studio.start()
    studio.until_quiet()
    studio.type("What is 6 times 7?")
    studio.until_said("user", "6 times 7")
    line.cut()
    # A pause that is long enough for a screenshot.
    studio.until("(s) => s.interruption !== null && s.interruption.attempt > 5 && s.interruption.nextTryAt - performance.now() > 1000")
    _look(studio, f"reconnecting-{size}")
    line.mend()
    studio.try_now()
    studio.until("(s) => s.connection === 'connected'")
    _look(studio, f"resumed-{size}")


_END: Final = """([text]) => new Promise((resolve) => {
  const { sessionId, token } = JSON.parse(text);
  const socket = new WebSocket(`ws://${location.host}/ws/vox`, 'voxbridge.v1');
  socket.onopen = () => socket.send(JSON.stringify({ type: 'resume', sessionId, resumeToken: token, last_seq: 0 }));
  socket.onmessage = ({ data }) => typeof data === 'string' && JSON.parse(data).type === 'resumed' && socket.send('{"type":"end"}');
  socket.onclose = () => resolve(true);
})"""


def _look(studio: Studio, name: str) -> None:
    for scheme in ("light", "dark"):
        studio.page.emulate_media(color_scheme=scheme)
        studio.picture(f"{name}-{scheme}")
    assert studio.violations() == []


def _check_facts(product: Product, studio: Studio, sid: str) -> None:
    """Check that the page processed every event of the log once and in order, over any number of sockets."""
    logged = [event["seq"] for event in product.log(sid) if event["type"] in TOLD]
    studio.until("(_, seq) => window.__voxbridge.marks().facts.at(-1).seq >= seq", logged[-1])
    taken = [fact["seq"] for fact in studio.marks()["facts"]]
    assert taken == sorted(set(taken))
    assert [seq for seq in taken if seq in logged] == [seq for seq in logged if seq <= taken[-1]]

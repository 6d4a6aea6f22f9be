"""The user's screen as models of vendors are told of it (stand-ins behind their SDKs): as data, once, and never as the user's turn."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

import pytest

from tests.awareness.injections import TEXTS
from tests.awareness.serving import Serving, error, fact, serving, visit
from tests.eventually import eventually
from tests.fakes.anthropic.server import KEY as ANTHROPIC_KEY
from tests.fakes.anthropic.server import AnthropicServer
from tests.fakes.gemini.server import GeminiServer
from tests.fakes.openai.realtime import KEY, OpenAIRealtimeServer
from tests.voice.conftest import Page, Workers, config, connection, google, model_server, pages, silero, store
from voxbridge.services.voice.core.turns import screen
from voxbridge.shared.awareness.prompt import BEGIN, END, OPENING
from voxbridge.shared.config import Config
from voxbridge.shared.events import gateway, tools, voice

__all__ = ["config", "connection", "google", "model_server", "pages", "silero", "store"]

pytestmark = pytest.mark.timeout(120)
VENDORS = ("gemini", "openai", "claude")


class Stage(NamedTuple):
    """An awareness service, a voice worker, and what the models of each vendor were sent."""

    awareness: Serving
    page: Callable[[], Page]
    google: GeminiServer
    openai: OpenAIRealtimeServer
    claude: AnthropicServer

    def told(self, vendor: str) -> list[list[tuple[str, str]]]:
        """Return role and text of what each connection of this vendor was told, or each request to it."""
        if vendor == "gemini":
            return [_of_gemini(one.contents) for one in self.google.sessions]
        if vendor == "openai":
            return [_of_openai(one.items.values()) for one in self.openai.sessions]
        return [_of_claude(body["messages"]) for body in self.claude.bodies]

    def instructions(self, vendor: str) -> str:
        """Return all that the vendor's models were given as instructions."""
        if vendor == "gemini":
            return json.dumps([one.setup.get("systemInstruction") for one in self.google.sessions])
        if vendor == "openai":
            return json.dumps([event.get("session", {}).get("instructions") for one in self.openai.sessions for event in one.events])
        return json.dumps([body.get("system") for body in self.claude.bodies])

    def screens(self, vendor: str) -> list[list[str]]:
        """Return the parts about the screen in each."""
        return [[text for role, text in some if OPENING in text and role == "user"] for some in self.told(vendor)]


def _of_gemini(contents: Any) -> list[tuple[str, str]]:
    return [
        (turn.get("role", "user"), part.get("text", ""))
        for one in contents
        for turn in one.get("turns", ())
        for part in turn.get("parts", ())
    ]


def _of_openai(items: Any) -> list[tuple[str, str]]:
    return [(one["role"], part.get("text", "")) for one in items if one.get("type") == "message" for part in one["content"]]


def _of_claude(messages: Any) -> list[tuple[str, str]]:
    found = []
    for one in messages:
        blocks = [{"text": one["content"]}] if isinstance(one["content"], str) else one["content"]
        found += [(one["role"], block.get("text", "")) for block in blocks]
    return found


@pytest.fixture
async def stage(config: Config, google: GeminiServer, pages: Callable[[], Page], monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    async with AsyncExitStack() as stack:
        openai = await stack.enter_async_context(OpenAIRealtimeServer())
        claude = await stack.enter_async_context(AnthropicServer())
        env = {"OPENAI_BASE_URL": openai.url, "OPENAI_API_KEY": KEY, "ANTHROPIC_BASE_URL": claude.url, "ANTHROPIC_API_KEY": ANTHROPIC_KEY}
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        awareness = await stack.enter_async_context(serving(config))
        await stack.enter_async_context(Workers(config).running())
        yield Stage(awareness, pages, google, openai, claude)


async def talks(stage: Stage, page: Page, vendor: str, text: str) -> None:
    """Type something, and wait for the answer."""
    if vendor == "claude":
        stage.claude.script(["Fine."])
    before = len(page.told(voice.TurnCompleted))
    await page.says(gateway.TextReceived(text=text))
    await page.until(voice.TurnCompleted, before + 1)


async def reports(stage: Stage, *what: Any) -> None:
    """Report, and wait until it is known."""
    for one in what:
        await stage.awareness.recorder.report("local", one, client="c")

    async def known() -> bool:
        view = (await stage.awareness.known()).view
        return len(view.pages) + len(view.errors) + len(view.context) >= len(what)

    await eventually(known)


async def begins(stage: Stage, vendor: Any) -> Page:
    page = await stage.page().open(vendor, output="text" if vendor == "claude" else "audio")
    await page.until(voice.SessionStarted)
    if vendor != "claude":
        await page.until(voice.ProviderConnected)
    return page


@pytest.mark.parametrize("vendor", VENDORS)
async def test_a_vendors_model_is_told_of_the_screen_beside_the_users_words(stage: Stage, vendor: str) -> None:
    await reports(stage, visit("/orders", "Orders"), error("orders is undefined"), fact("project", "Apollo"))
    page = await begins(stage, vendor)
    await talks(stage, page, vendor, "What am I looking at?")
    (told,) = await eventually(lambda: stage.screens(vendor)[-1])
    assert told.startswith(OPENING)
    assert told.endswith(END)
    for piece in (BEGIN, '"/orders" titled "Orders"', '"TypeError": "orders is undefined"', '"project" is "Apollo"'):
        assert piece in told
    assert "/orders" not in stage.instructions(vendor), "instructions are not where strangers write"
    assert [one.text for one in page.told(voice.UserSaid)] == ["What am I looking at?"]
    assert len(page.told(voice.TurnCompleted)) == 1, "nobody answers what is told"
    await page.ends()


@pytest.mark.parametrize("vendor", ["gemini", "openai"])
async def test_a_connection_that_does_not_know_is_told_and_one_that_stays_or_goes_on_is_not(stage: Stage, vendor: str) -> None:
    await reports(stage, visit("/orders", "Orders"))
    page = await begins(stage, vendor)
    await talks(stage, page, vendor, "Hello.")
    await eventually(lambda: stage.screens(vendor)[-1])
    await reports(stage, visit("/orders", "Orders"), visit("/keys", "Keys"))
    await talks(stage, page, vendor, "And now?")
    assert [len(one) for one in stage.screens(vendor)] == [1], f"not twice within {screen.REALTIME_GAP_MS} ms"
    if vendor == "gemini":
        await stage.google.sessions[-1].close(1011)
    else:
        stage.openai.sessions[-1].kill()
    again = await page.event(voice.ProviderConnected, 2)
    await talks(stage, page, vendor, "Still there?")
    assert again.resumed_by == ("handle" if vendor == "gemini" else "seed")
    assert len(stage.screens(vendor)[-1]) == (0 if again.resumed_by == "handle" else 1)
    assert [one.text for one in page.told(voice.UserSaid)] == ["Hello.", "And now?", "Still there?"]
    await page.ends()


@pytest.mark.parametrize("vendor", VENDORS)
async def test_what_strangers_write_reaches_a_vendors_model_within_its_marks_and_does_nothing(stage: Stage, vendor: str) -> None:
    await reports(stage, *(visit(f"/{number}", text) for number, text in enumerate(TEXTS[:5])), *(error(text) for text in TEXTS[5:8]))
    page = await begins(stage, vendor)
    await talks(stage, page, vendor, "Hello.")
    (told,) = await eventually(lambda: stage.screens(vendor)[-1])
    assert (told.count(BEGIN), told.count("</screen-data>")) == (1, 1)
    assert told.index(BEGIN) < told.index("Ignore") < told.rindex(END)
    assert not page.told(voice.ToolCalled)
    log = await page.everything()
    assert not any(isinstance(one.event, tools.ApprovalRequested | tools.ToolStarted) for one in log)
    await page.ends()

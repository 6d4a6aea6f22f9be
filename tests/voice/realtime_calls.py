"""What the tests of calls on realtime models share."""

from __future__ import annotations

from typing import Any

from tests.fakes.gemini.server import GeminiServer
from tests.fakes.gemini.session import Session
from tests.voice.conftest import Page
from tests.voice.sounds import silence, speech
from voxbridge.shared.events import gateway
from voxbridge.shared.events import voice as ev

UTTERANCE = silence(300) + speech(1_200) + silence(900)
BARGE_IN = speech(700) + silence(900)


async def connected(page: Page, mode: gateway.Mode = "gemini", **options: Any) -> Page:
    """A session whose model listens."""
    await page.open(mode, **options)
    await page.until(ev.ProviderConnected)
    return page


async def asks(page: Page, text: str) -> int:
    """The user types."""
    return await page.says(gateway.TextReceived(text=text))


async def a_turn(page: Page, text: str = "Hello?", *, count: int = 1) -> None:
    """The user types and is answered to the end."""
    await asks(page, text)
    await page.until(ev.TurnCompleted, count, reason="completed")


def asked_in_text(session: Session) -> list[str]:
    """Everything that a connection was told in text, but for the conversation that it was seeded with."""
    contents = [one for one in session.contents if one not in session.declared and one.get("turnComplete")]
    turns: list[Any] = [turn for content in contents for turn in content.get("turns", ())]
    return [part["text"] for turn in turns for part in turn["parts"] if "text" in part] + session.texts


def seeded_with(session: Session) -> list[tuple[str, str]]:
    """The conversation that a connection was told at its start: `(role, text)`."""
    contents = [one for one in session.contents if one in session.declared or not one.get("turnComplete")]
    turns: list[Any] = [turn for content in contents for turn in content.get("turns", ())]
    return [(turn["role"], part["text"]) for turn in turns for part in turn["parts"] if part.get("text", "").strip()]


def said(page: Page) -> list[str]:
    """What was heard of the agent."""
    return [one.text for one in page.told(ev.AgentSaid) if one.text]


def user_said(page: Page) -> list[str]:
    """What the user said."""
    return [one.text for one in page.told(ev.UserSaid)]


def restored(page: Page) -> list[str]:
    """How the session was restored, each time."""
    return [one.how for one in page.told(ev.SessionRestored)]


async def rotated(google: GeminiServer, count: int) -> Session:
    """The connection with this number, once it is there."""
    return await google.opened(count)

"""Helpers for tests of calls on realtime models."""

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
    """Open a session and wait until its model listens."""
    await page.open(mode, **options)
    await page.until(ev.ProviderConnected)
    return page


async def asks(page: Page, text: str) -> int:
    """Send a typed text."""
    return await page.says(gateway.TextReceived(text=text))


async def a_turn(page: Page, text: str = "Hello?", *, count: int = 1) -> None:
    """Send a typed text and wait until it is answered completely."""
    await asks(page, text)
    await page.until(ev.TurnCompleted, count, reason="completed")


def asked_in_text(session: Session) -> list[str]:
    """Return all texts sent to a connection, without the conversation that it was seeded with."""
    contents = [one for one in session.contents if one not in session.declared and one.get("turnComplete")]
    turns: list[Any] = [turn for content in contents for turn in content.get("turns", ())]
    return [part["text"] for turn in turns for part in turn["parts"] if "text" in part] + session.texts


def seeded_with(session: Session) -> list[tuple[str, str]]:
    """Return the conversation that a connection was seeded with: `(role, text)`."""
    contents = [one for one in session.contents if one in session.declared or not one.get("turnComplete")]
    turns: list[Any] = [turn for content in contents for turn in content.get("turns", ())]
    return [(turn["role"], part["text"]) for turn in turns for part in turn["parts"] if part.get("text", "").strip()]


def said(page: Page) -> list[str]:
    """Return the heard texts of the agent."""
    return [one.text for one in page.told(ev.AgentSaid) if one.text]


def user_said(page: Page) -> list[str]:
    """Return the texts of the user."""
    return [one.text for one in page.told(ev.UserSaid)]


def restored(page: Page) -> list[str]:
    """Return how the session was restored, each time."""
    return [one.how for one in page.told(ev.SessionRestored)]


async def rotated(google: GeminiServer, count: int) -> Session:
    """Wait for the connection with this number, and return it."""
    return await google.opened(count)

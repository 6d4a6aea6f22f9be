"""A call on Gemini Live over the death of its worker, of the provider, of NATS or of Valkey, in every state of the call. The call
continues, all texts of both sides are in the log once and complete, and no effect happens twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import nats
import pytest
from nats.errors import Error as NatsError
from redis.asyncio import Redis

from tests.fakes.gemini.server import Refusal
from tests.fakes.gemini.turns import Call, Turn
from tests.faults.installation import Google
from tests.voice.conftest import Page, Workers, becomes
from tests.voice.realtime_calls import UTTERANCE, a_turn, asks, connected
from tests.voice.replaying import causes_come_first, replay, stored
from tests.voice.sounds import speech
from voxbridge.services.voice.service import VoiceService
from voxbridge.shared.config import Config
from voxbridge.shared.embedded.nats_server import NatsServer
from voxbridge.shared.embedded.valkey_server import ValkeyServer
from voxbridge.shared.events import voice as ev
from voxbridge.shared.log.reader import Log
from voxbridge.shared.store.store import Store

pytestmark = pytest.mark.timeout(180)
SENTENCE = "Once upon a time there was a king who had three daughters."
Said = tuple[list[str], list[str]]
"""Texts of the user and of the agent in a turn."""


@pytest.fixture
async def google(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Google]:
    async with Google(tmp_path) as server:
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.url)
        monkeypatch.setenv("SSL_CERT_FILE", str(server.ca_file))
        monkeypatch.setenv("GEMINI_API_KEY", "a-key-for-tests")
        yield server


class Stand:
    """Servers and workers that the test may kill, and a page in a call on them."""

    def __init__(self, what: str, config: Config, google: Google, nats_server: NatsServer, valkey: ValkeyServer) -> None:
        self.what = what
        """The process to kill."""

        self.google = google
        self.nats = nats_server
        self.valkey = valkey
        self.workers = Workers(config)
        self.running = AsyncExitStack()
        self.process: asyncio.subprocess.Process | None = None
        self.page: Page

    async def __aenter__(self) -> Stand:
        self.connection = connection = await nats.connect(self.nats.url)
        self.running.push_async_callback(connection.close)
        redis = await self.running.enter_async_context(Redis.from_url(self.valkey.url, decode_responses=True))
        await Log(connection).ensure_streams(retention_days=1)
        self.page = Page(connection, Store(redis))
        self.running.push_async_callback(self.page.stop)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.running.aclose()

    async def worker(self) -> None:
        """Start a worker that can be killed."""
        self.process = await self.running.enter_async_context(self.workers.process())

    async def successor(self) -> VoiceService:
        """Start a worker in this process."""
        return await self.running.enter_async_context(self.workers.running())

    async def kill(self) -> None:
        """Send SIGKILL, and start it again unless a successor takes over."""
        if self.what == "voice":
            assert self.process is not None
            self.process.kill()
        elif self.what == "provider":
            self.google.kill()
        elif self.what == "nats":
            self.nats.kill()
            self.nats.start()
            await becomes(self._reconnected)
        else:
            self.valkey.kill()
            self.valkey.start()

    async def _reconnected(self) -> bool:
        try:
            await self.connection.flush(timeout=1)
        except (NatsError, OSError):
            return False
        return True


@pytest.fixture
async def stand(
    config: Config,
    google: Google,
    own_nats: Callable[[], NatsServer],
    own_valkey: Callable[[], ValkeyServer],
    what: str,
    tmp_path: Path,
) -> AsyncIterator[Stand]:
    folder, bus, store = tmp_path / "agents", own_nats(), own_valkey()
    folder.mkdir()
    (folder / "triage.yaml").write_text("model: gemini\nprompt: You send people on.\nvoice: Aoede\nhandoffs: [advisor]\n")
    (folder / "advisor.yaml").write_text("model: gemini\nprompt: You advise.\nvoice: Charon\n")
    config = replace(config, nats_url=bus.url, redis_url=store.url, agents_dir=folder)
    async with Stand(what, config, google, bus, store) as stand:
        await (stand.worker() if what == "voice" else stand.successor())
        await connected(stand.page, agent="triage")
        google.script(Turn(says="Hello."))
        await a_turn(stand.page)
        if what == "voice":  # the successor exists beforehand, so that it takes over at once
            await stand.successor()
        yield stand


async def idle(stand: Stand) -> Said:
    """Kill while the call is idle."""
    await stand.kill()
    stand.google.script(Turn(says="Still here."))
    await asks(stand.page, "Are you there?")
    await stand.page.until(ev.TurnCompleted, 2, reason="completed")
    return ["Are you there?"], ["Still here."]


async def user_speaking(stand: Stand) -> Said:
    """Kill while the user is in the middle of a sentence."""
    stand.google.script(Turn(hears="What is it that you can do?", says="Everything."))
    await stand.page.speaks(UTTERANCE[: len(UTTERANCE) // 2])
    await stand.kill()
    await stand.page.speaks(speech(400) + UTTERANCE[len(UTTERANCE) // 2 :])
    await stand.page.until(ev.TurnCompleted, 2, reason="completed")
    return ["What is it that you can do?"], ["Everything."]


async def model_speaking(stand: Stand) -> Said:
    """Kill while the model is in the middle of a sentence."""
    stand.google.script(Turn(says=SENTENCE, stops_at_ms=2_500), Turn(says="The youngest was the cleverest."))
    await asks(stand.page, "Tell me a story.")
    await stand.page.when(lambda: stand.page.sent_ms(2) >= 1_500)
    await stand.kill()
    for session in stand.google.connections:
        session.model.go_on()
    await stand.page.until(ev.TurnCompleted, 2, reason="completed")
    if stand.what in ("nats", "valkey"):
        return ["Tell me a story."], [SENTENCE]
    begun = next(one.text for one in stand.page.told(ev.AgentSaid) if one.turn == 2 and one.text)
    assert SENTENCE.startswith(begun)
    assert begun.startswith("Once upon a"), "all that was heard but for half a second"
    return ["Tell me a story."], [begun, "The youngest was the cleverest."]


async def tool_open(stand: Stand) -> Said:
    """Kill while a function runs."""
    stand.google.script(Turn(calls=(Call("get_time", {}),), after="It is noon.", blocking=True), Turn(says="It is noon."))
    await asks(stand.page, "What time is it?")
    called = await stand.page.event(ev.ToolCalled)
    await stand.kill()
    await stand.page.executes(called, {"time": "12:00"})
    await stand.page.until(ev.TurnCompleted, 2, reason="completed")
    delivered = stand.page.told(ev.ToolDelivered)
    assert [one.call_id for one in delivered] == [called.call_id]
    assert len(stand.page.told(ev.ToolCalled)) == 1
    return ["What time is it?"], ["It is noon."]


async def handing_over(stand: Stand) -> Said:
    """Kill after one agent has handed over, before the other one is connected."""
    stand.google.script(Turn(calls=(Call("handoff_conversation", {"target": "advisor", "reason": "money"}),)), Turn(says="I can help."))
    stand.google.door.clear()
    await asks(stand.page, "I need advice.")
    await stand.page.until(ev.HandoffStarted)
    await stand.kill()
    if stand.what == "provider":  # the new connection, which waits at the door, dies too
        stand.google.refuse(Refusal(code=1011))
    assert not stand.page.told(ev.HandoffCompleted)
    stand.google.door.set()
    await stand.page.until(ev.TurnCompleted, 2, reason="completed")
    speakers = [one.agent for one in stand.page.told(ev.AgentSaid) if one.text]
    assert list(dict.fromkeys(speakers)) == ["triage", "advisor"]
    assert len(stand.page.told(ev.HandoffStarted)) == len(stand.page.told(ev.HandoffCompleted)) == 1
    return ["I need advice."], ["I can help."]


STATES: dict[str, Callable[[Stand], Awaitable[Said]]] = {
    "idle": idle,
    "user speaking": user_speaking,
    "model speaking": model_speaking,
    "tool open": tool_open,
    "handing over": handing_over,
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("what", ["voice", "provider", "nats", "valkey"])
async def test_the_call_goes_on(stand: Stand, what: str, state: str) -> None:
    asked, answered = await STATES[state](stand)
    await stand.page.ends()
    log = await stand.page.everything()
    assert [one.event.text for one in log if isinstance(one.event, ev.UserSaid)] == ["Hello?", *asked]
    assert [one.event.text for one in log if isinstance(one.event, ev.AgentSaid) and one.event.text] == ["Hello.", *answered]
    assert [one.number for one in stand.page.told(ev.TurnCompleted)] == [1, 2], "a turn is completed once"
    assert causes_come_first(log)
    assert replay(stand.page.sid, log)[1] == stored(log)
    if what == "voice" and state != "handing over":
        assert [one.how for one in stand.page.told(ev.SessionRestored)] == ["handle"]

"""Behaviour of every provider: one suite over real servers and the real voice service, parametrised by a `Provider`.

A provider that lacks a capability names it with the reason in `limits`, and the suite checks the alternative. After every test the log is
replayed and must give the same result, and no secret may be on the bus or in the process's log.
"""

from __future__ import annotations

import io
import json
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from tests.answers import answers, apologies
from tests.voice.conftest import Page, Workers
from tests.voice.providers.page_suite import THEME, PageFunctionsSuite, Reply
from tests.voice.realtime_calls import UTTERANCE, a_turn, asks, restored, said, user_said
from tests.voice.replaying import causes_come_first, replay, stored
from tests.voice.sounds import silence, speech
from voxbridge.shared.agents.functions import Function
from voxbridge.shared.events import gateway
from voxbridge.shared.events import voice as ev
from voxbridge.shared.store.store import Store

STORY: Final = "Once upon a time there was a king who had three daughters and no crown."
_PLACE: Final = {"type": "object", "properties": {"place": {"type": "string"}}}
FUNCTIONS: Final = (
    Function(name="get_time", description="The time in a place.", parameters=_PLACE),
    Function(name="get_weather", description="The weather in a place.", parameters=_PLACE),
)

Limit = Literal["connection", "truncation", "interruption"]
"""Capabilities that some providers lack: a connection as long as the session, a message for how much was heard, a message to stop, and a
voice that is not the model's own."""


class Provider:
    """A provider: its script, what it received, and its limits."""

    mode: gateway.Mode
    agent: str
    """Lines of an agent's file that select it."""

    voices: tuple[str, str]
    limits: ClassVar[Mapping[Limit, str]] = {}
    """Missing capabilities, with the reasons."""

    restored: Literal["handle", "reseeded", ""] = ""
    """Way in which the session is restored when the connection is lost."""

    secrets: tuple[str, ...]
    settings: ClassVar[Mapping[str, Any]] = {}
    """Settings of the worker."""

    def can(self, what: Limit) -> bool:
        """Return whether it has a capability."""
        return what not in self.limits

    @property
    def handles(self) -> tuple[str, ...]:
        """Handles that it issued."""
        return ()

    def script(self, *replies: Reply) -> None:
        """Set its next replies."""
        raise NotImplementedError

    def empty(self) -> None:
        """Make the next answer empty."""
        raise NotImplementedError

    def kill(self) -> None:
        """Die without a message, and accept new connections a moment later."""
        raise NotImplementedError

    def forget(self) -> None:
        """Forget the conversation: the next connection must get it again."""

    def refuse_the_key(self) -> None:
        """Refuse the key from now on, with the vendor's message, which may contain the key."""
        raise NotImplementedError

    def knows(self) -> str:
        """Return the model's present knowledge of the conversation, as text."""
        raise NotImplementedError

    def instructions(self) -> str:
        """Return the model's present instructions."""
        raise NotImplementedError

    def offered(self) -> set[str]:
        """Return the names of the functions that the model may call now."""
        raise NotImplementedError

    def opened(self) -> int:
        """Return the number of connections so far; 0 where none lasts."""
        return 0

    def truncated_at(self) -> list[int]:
        """Return the ms of its responses that were reported to it as heard."""
        return []

    async def stopped(self) -> None:
        """Wait until it was told to stop."""
        raise NotImplementedError


class Stage:
    """A call with a provider, and all bus messages and log lines of it."""

    def __init__(self, provider: Provider, workers: Workers, page: Page, connection: Client) -> None:
        self.provider = provider
        self.page = page
        self.bus: list[bytes] = []
        self.logged = io.StringIO()
        self._workers = workers
        self._connection = connection
        self._running = AsyncExitStack()

    async def open(
        self, *, plays: bool = True, agents: Path | None = None, functions: tuple[Function, ...] = (), browser: tuple[str, ...] = ()
    ) -> Page:
        """Start a worker, and a session whose model listens, of a page that declares `functions` and answers the catalogue's `browser`."""
        settings = {**self.provider.settings, **({"agents_dir": agents} if agents is not None else {})}
        options: dict[str, Any] = {"agent": "host"} if agents is not None else {"mode": self.provider.mode, "output": "audio"}
        self._running.enter_context(logged_to(self.logged))
        await self._connection.subscribe(">", cb=self._overheard)
        self._worker = await self._running.enter_async_context(self._workers.running(**settings))
        self._settings = settings
        await self.page.open(**options, plays=plays, functions=functions, browser=browser)
        await self.page.until(ev.ProviderConnected if self.provider.can("connection") else ev.SessionStarted)
        return self.page

    async def replace_worker(self) -> None:
        """Have another worker take the session over."""
        await self._running.enter_async_context(self._workers.running(**self._settings))
        await self._worker.drain()
        await self.page.until(ev.SessionOwned, 2)

    async def close(self) -> None:
        """End the session; check that its log replays identically and that no secret appeared."""
        try:
            if not self.page.told(ev.SessionEnded):
                await self.page.ends()
            log = await self.page.everything()
        finally:
            await self._running.aclose()
        assert replay(self.page.sid, log)[1] == stored(log)
        assert causes_come_first(log)
        self.nothing_secret()

    def nothing_secret(self) -> None:
        """Check that no key and no handle is on the bus, in events, journals or moments, or in the log of the process."""
        heard, logged = b"\n".join(self.bus), self.logged.getvalue()
        assert self.page.sid.encode() in heard
        assert b"session.started" in heard or b"session.ended" in heard
        assert "the call begins" in logged
        for secret in (*self.provider.secrets, *self.provider.handles):
            assert secret.encode() not in heard, f"{secret} is on the bus"
            assert [line for line in logged.splitlines() if secret in line] == []

    async def _overheard(self, message: Msg) -> None:
        headers = json.dumps(dict(message.headers or {}))
        self.bus.append(message.subject.encode() + headers.encode() + message.data)


@contextmanager
def logged_to(text: io.StringIO) -> Iterator[None]:
    """Capture the log of all levels and loggers, except the server side of the sockets."""
    root, handler = logging.getLogger(), logging.StreamHandler(text)
    handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
    handler.addFilter(lambda record: record.name != "websockets.server")
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    root.debug("the call begins")
    try:
        yield
    finally:
        root.setLevel(level)
        root.removeHandler(handler)


def numbers(page: Page) -> list[tuple[int, str]]:
    """Return number and reason of the completed turns."""
    return [(one.number, one.reason) for one in page.told(ev.TurnCompleted)]


def went_on(page: Page, provider: Provider) -> None:
    """Check that the death of the provider was recorded correctly: as a new connection, or as a repeated request."""
    if provider.can("connection"):
        assert restored(page) == [provider.restored]
        assert len(page.told(ev.ProviderLost)) == 1
        assert provider.opened() == 2
    else:
        assert restored(page) == [], "there was nothing to restore: every request carries the conversation"
        assert [(one.part, one.handled) for one in page.told(ev.ProviderFailed)] == [("llm", True)]


class ProviderSuite(PageFunctionsSuite):
    """The suite. Inherit it beside a fixture `provider`."""

    @pytest.fixture
    async def stage(self, provider: Provider, workers: Workers, page: Page, connection: Client, store: Store) -> AsyncIterator[Stage]:
        """A call that is not open yet."""
        await store.publish_functions([*FUNCTIONS, THEME])
        stage = Stage(provider, workers, page, connection)
        yield stage
        await stage.close()

    async def test_a_typed_question_is_answered(self, stage: Stage, provider: Provider) -> None:
        provider.script(Reply(says="It is noon."))
        page = await stage.open()
        await a_turn(page, "What time is it?")
        assert [(one.text, one.turn, one.source) for one in page.told(ev.UserSaid)] == [("What time is it?", 1, "text")]
        assert [(one.text, one.turn, one.interrupted) for one in page.told(ev.AgentSaid)] == [("It is noon.", 1, False)]
        assert numbers(page) == [(1, "completed")]
        assert page.sent_ms(page.told(ev.AgentSaid)[0].generation) >= 200

    async def test_spoken_questions_are_transcribed_and_answered_in_order(self, stage: Stage, provider: Provider) -> None:
        provider.script(Reply(hears="What time is it?", says="It is noon."), Reply(hears="And in Oslo?", says="There too."))
        page = await stage.open()
        await page.speaks(UTTERANCE)
        await page.until(ev.TurnCompleted, reason="completed")
        await page.speaks(UTTERANCE)
        await page.until(ev.TurnCompleted, 2, reason="completed")
        lines = [one.event for one in page.heard if isinstance(one.event, ev.UserSaid | ev.AgentSaid)]
        order = [(type(one), one.turn, one.text) for one in lines]
        assert order == [
            (ev.UserSaid, 1, "What time is it?"),
            (ev.AgentSaid, 1, "It is noon."),
            (ev.UserSaid, 2, "And in Oslo?"),
            (ev.AgentSaid, 2, "There too."),
        ]
        assert {one.source for one in page.told(ev.UserSaid)} == {"speech"}
        assert numbers(page) == [(1, "completed"), (2, "completed")]

    async def test_a_function_is_called_once_and_its_result_reaches_the_model(self, stage: Stage, provider: Provider) -> None:
        provider.script(Reply(calls=(("get_time", {"place": "Oslo"}),), after="In Oslo it is noon."))
        page = await stage.open()
        await asks(page, "What time is it in Oslo?")
        called = await page.event(ev.ToolCalled)
        await page.executes(called, {"time": "12:07"})
        await page.until(ev.TurnCompleted, reason="completed")
        assert (called.name, called.arguments, called.turn) == ("get_time", {"place": "Oslo"}, 1)
        assert len(page.told(ev.ToolCalled)) == 1
        assert [(one.call_id, one.how) for one in page.told(ev.ToolDelivered)] == [(called.call_id, "response")]
        assert provider.knows().count("12:07") == 1
        assert said(page) == ["In Oslo it is noon."]
        assert numbers(page) == [(1, "completed")]

    async def test_two_calls_of_one_round_are_answered_together(self, stage: Stage, provider: Provider) -> None:
        provider.script(Reply(calls=(("get_time", {"place": "Oslo"}), ("get_weather", {"place": "Rome"})), after="Noon and rain."))
        page = await stage.open()
        await asks(page, "What time is it in Oslo and how is Rome?")
        second, first = await page.event(ev.ToolCalled, 2), await page.event(ev.ToolCalled)
        await page.executes(second, {"weather": "rain-42"})
        await page.until(ev.ToolDelivered)
        assert said(page) == [], "one result is missing"
        await page.executes(first, {"time": "12:07"})
        await page.until(ev.TurnCompleted, reason="completed")
        assert [(first.name, first.arguments), (second.name, second.arguments)] == [
            ("get_time", {"place": "Oslo"}),
            ("get_weather", {"place": "Rome"}),
        ]
        assert {one.call_id for one in page.told(ev.ToolDelivered)} == {first.call_id, second.call_id}
        assert [provider.knows().count(result) for result in ("12:07", "rain-42")] == [1, 1]
        assert said(page) == ["Noon and rain."]
        assert numbers(page) == [(1, "completed")]

    async def test_barge_in_flushes_at_once_and_only_heard_words_are_history(self, stage: Stage, provider: Provider) -> None:
        provider.script(Reply(says=STORY, lasts_ms=5_000, holds=True), Reply(hears="Stop.", says="All right."))
        page = await stage.open(plays=False)
        await asks(page, "Tell me a story.")
        await page.when(lambda: page.sent_ms(1) >= 300)
        await page.says(gateway.PlaybackReported(generation=1, played_ms=200, state="playing"))
        await page.speaks(speech(700))
        await page.when(lambda: page.flushed(1))
        flushed = len(page.frames)
        await page.says(gateway.PlaybackReported(generation=1, played_ms=1_500, state="flushed"))
        cut = await page.event(ev.AgentSaid, interrupted=True)
        await page.speaks(silence(900))
        await page.when(lambda: page.ended(2))
        await page.says(gateway.PlaybackReported(generation=2, played_ms=page.sent_ms(2), state="finished"))
        await page.until(ev.TurnCompleted, reason="completed")
        assert {prefix.generation for prefix, _ in page.frames[flushed:]} <= {2}, "nothing of it is heard after the flush"
        assert cut.text
        assert cut.text != STORY
        assert STORY.startswith(cut.text)
        assert numbers(page) == [(1, "interrupted"), (2, "completed")]
        heard_ms = cut.played_ms
        assert heard_ms is not None
        assert provider.truncated_at() == ([heard_ms] if provider.can("truncation") else [])
        # A provider that needs the conversation again gets only the words that were heard.
        provider.forget()
        if provider.can("connection"):
            provider.kill()
            await page.until(ev.ProviderConnected, 2)
        provider.script(Reply(says="You said stop."))
        await asks(page, "What did I say?")
        await page.when(lambda: page.ended(3))
        knows = provider.knows()
        assert cut.text in knows
        assert "no crown" not in knows
        assert "Stop." in knows

    async def test_the_client_stops_the_answer_and_the_call_goes_on(self, stage: Stage, provider: Provider) -> None:
        provider.script(Reply(says=STORY, lasts_ms=5_000, holds=True), Reply(says="Here I am."))
        page = await stage.open()
        await asks(page, "Tell me a story.")
        await page.when(lambda: page.sent_ms(1) >= 300)
        await page.says(gateway.InterruptRequested())
        await page.when(lambda: page.flushed(1))
        flushed = len(page.frames)
        await page.says(gateway.PlaybackReported(generation=1, played_ms=1_500, state="flushed"))
        await page.until(ev.TurnCompleted, reason="interrupted")
        if provider.can("interruption"):
            await provider.stopped()
        await asks(page, "Are you there?")
        await page.until(ev.TurnCompleted, reason="completed")
        assert [one.by for one in page.told(ev.GenerationCancelled)] == ["client"]
        assert {prefix.generation for prefix, _ in page.frames[flushed:]} == {2}
        first, last = page.told(ev.AgentSaid)
        assert first.interrupted
        assert STORY.startswith(first.text)
        assert last.text == "Here I am."
        assert numbers(page) == [(1, "interrupted"), (2, "completed")]

    async def test_who_types_over_an_answer_has_a_turn_of_his_own(self, stage: Stage, provider: Provider) -> None:
        provider.script(Reply(says=STORY, lasts_ms=5_000, holds=True), Reply(says="Here I am."))
        page = await stage.open()
        await asks(page, "Tell me a story.")
        await page.when(lambda: page.sent_ms(1) >= 300)
        await asks(page, "Are you there?")
        await page.until(ev.TurnCompleted, reason="completed")
        assert numbers(page) == [(1, "interrupted"), (2, "completed")]
        assert [(one.turn, one.interrupted) for one in page.told(ev.AgentSaid)] == [(1, True), (2, False)]
        assert page.flushed(1)

    async def test_an_empty_answer_is_asked_for_again_and_then_owned_up_to(self, stage: Stage, provider: Provider) -> None:
        page = await stage.open()
        provider.empty()
        provider.script(Reply(says="Yes."))
        await asks(page, "Are you there?")
        await page.until(ev.TurnCompleted, reason="completed")
        assert said(page) == ["Yes."]
        provider.empty()
        provider.empty()
        await asks(page, "And now?")
        await page.until(ev.TurnCompleted, reason="failed")
        last = page.told(ev.ProviderFailed)[-1]
        assert (last.part, last.turn, last.handled) == ("llm", 2, False)
        assert "without a word" in last.error.message
        assert (answers(page.heard), len(apologies(page.heard))) == (["Yes."], 1)
        provider.script(Reply(says="Still here."))
        await asks(page, "And again?")
        await page.until(ev.TurnCompleted, number=3, reason="completed")
        assert said(page)[-1] == "Still here."
        assert numbers(page) == [(1, "completed"), (2, "failed"), (3, "completed")]

    async def test_a_provider_that_dies_while_nobody_speaks(self, stage: Stage, provider: Provider) -> None:
        page = await stage.open()
        provider.script(Reply(says="Hello Ann."))
        await a_turn(page, "I am Ann.")
        provider.kill()
        if provider.can("connection"):
            await page.until(ev.SessionRestored)
        provider.script(Reply(says="You are Ann."))
        await asks(page, "Who am I?")
        await page.until(ev.TurnCompleted, 2, reason="completed")
        assert said(page) == ["Hello Ann.", "You are Ann."], "no second greeting"
        assert provider.knows().count("I am Ann.") == 1
        went_on(page, provider)

    async def test_a_provider_that_dies_in_the_middle_of_an_answer(self, stage: Stage, provider: Provider) -> None:
        page = await stage.open()
        provider.script(Reply(says="Hello Ann."))
        await a_turn(page, "I am Ann.")
        provider.script(Reply(says=STORY, lasts_ms=2_500, holds=True))
        await asks(page, "Tell me a story.")
        await page.when(lambda: page.sent_ms(2) >= 300)
        provider.kill()
        provider.script(Reply(says="The youngest was the cleverest."))
        await page.until(ev.TurnCompleted, 2, reason="completed")
        assert user_said(page) == ["I am Ann.", "Tell me a story."]
        assert numbers(page) == [(1, "completed"), (2, "completed")]
        told = " ".join(said(page)[1:])
        assert told.startswith("Once upon a time")
        assert told.count("Once upon a time") == 1, "what was heard is not said again"
        assert {one.turn for one in page.told(ev.AgentSaid)[1:]} == {2}
        went_on(page, provider)

    async def test_a_provider_that_dies_with_a_call_open(self, stage: Stage, provider: Provider) -> None:
        page = await stage.open()
        provider.script(Reply(calls=(("get_time", {"place": "Oslo"}),), after="Never said."))
        await asks(page, "What time is it in Oslo?")
        called = await page.event(ev.ToolCalled)
        provider.kill()
        if provider.can("connection"):
            await page.until(ev.ProviderConnected, 2)
        provider.script(Reply(says="It is noon."))
        await page.executes(called, {"time": "12:07"})
        await page.until(ev.TurnCompleted, reason="completed")
        assert len(page.told(ev.ToolCalled)) == 1
        how = "content" if provider.can("connection") else "response"
        assert [(one.call_id, one.how) for one in page.told(ev.ToolDelivered)] == [(called.call_id, how)]
        assert provider.knows().count("12:07") == 1
        assert said(page) == ["It is noon."]
        assert numbers(page) == [(1, "completed")]

    async def test_one_agent_hands_over_to_another_with_the_history(self, stage: Stage, provider: Provider, tmp_path: Path) -> None:
        folder = tmp_path / "agents"
        folder.mkdir()
        one, other = provider.voices
        (folder / "host.yaml").write_text(f"{provider.agent}prompt: You greet.\nvoice: {one}\nhandoffs: [advisor]\n")
        (folder / "advisor.yaml").write_text(f"{provider.agent}prompt: You advise.\nvoice: {other}\n")
        page = await stage.open(agents=folder)
        provider.script(Reply(says="Hello Ann."))
        await a_turn(page, "I am Ann.")
        arguments = {"target": "advisor", "reason": "money", "summary": "Ann wants advice."}
        provider.script(Reply(calls=(("handoff_conversation", arguments),)), Reply(says="I am the advisor."))
        await asks(page, "I want advice.")
        await page.until(ev.TurnCompleted, 2, reason="completed")
        (done,) = page.told(ev.HandoffCompleted)
        assert (done.source, done.target, done.voice) == ("host", "advisor", other)
        assert done.history == ("seed" if provider.can("connection") else "log")
        assert [(line.agent, line.voice, line.text) for line in page.told(ev.AgentSaid)] == [
            ("host", one, "Hello Ann."),
            ("advisor", other, "I am the advisor."),
        ]
        assert "You advise." in provider.instructions()
        assert "You greet." not in provider.instructions()
        knows = provider.knows()
        assert [knows.count(text) for text in ("I am Ann.", "Hello Ann.", "I want advice.", "Ann wants advice.")] == [1, 1, 1, 1]
        assert page.told(ev.ToolCalled) == [], "a handoff is not a function of an executor"
        assert numbers(page) == [(1, "completed"), (2, "completed")]

    async def test_the_log_of_an_eventful_call_comes_out_the_same_again(self, stage: Stage, provider: Provider) -> None:
        page = await stage.open()
        provider.script(Reply(hears="Hello?", says="Hello."))
        await page.speaks(UTTERANCE)
        await page.until(ev.TurnCompleted, 1)
        provider.script(Reply(calls=(("get_time", {"place": "Oslo"}),), after="It is noon."))
        await asks(page, "What time is it in Oslo?")
        await page.executes(await page.event(ev.ToolCalled), {"time": "12:07"})
        await page.until(ev.TurnCompleted, 2)
        provider.script(Reply(says=STORY, lasts_ms=5_000, holds=True))
        await asks(page, "Tell me a story.")
        await page.when(lambda: page.sent_ms(3) >= 300)
        await page.says(gateway.InterruptRequested())
        await page.until(ev.TurnCompleted, 3)
        provider.kill()
        provider.script(Reply(says="Still here."))
        await asks(page, "Are you there?")
        await page.until(ev.TurnCompleted, number=4)
        await page.ends()
        log = await page.everything()
        assert replay(page.sid, log)[1] == stored(log)
        assert causes_come_first(log)
        assert numbers(page) == [(1, "completed"), (2, "completed"), (3, "interrupted"), (4, "completed")]

    async def test_a_key_that_is_refused_is_named_nowhere(self, stage: Stage, provider: Provider) -> None:
        page = await stage.open()
        await a_turn(page)
        provider.refuse_the_key()
        await asks(page, "Are you there?")
        await page.when(lambda: page.told(ev.ProviderFailed) or page.told(ev.SessionEnded))
        assert page.told(ev.ProviderFailed)[-1].error.message
        assert page.told(ev.ProviderFailed)[-1].error.retryable is False

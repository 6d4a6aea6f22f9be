"""The provider suite for each provider, against its stand-in: Gemini Live, OpenAI Realtime, the local cascade, and Claude with the
cascade's speech recognition and voice."""

# ruff: noqa: E402 - the suite's assertions have to be rewritten before it is imported

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest

from tests.eventually import BOUND_S

pytest.register_assert_rewrite("tests.voice.providers.provider_suite", "tests.voice.providers.page_suite")

from tests.fakes.anthropic import server as anthropic_server
from tests.fakes.anthropic.server import AnthropicServer
from tests.fakes.gemini.rules import Options
from tests.fakes.gemini.server import GeminiServer
from tests.fakes.gemini.turns import Call
from tests.fakes.gemini.turns import Turn as GeminiTurn
from tests.fakes.openai.realtime import KEY as OPENAI_KEY
from tests.fakes.openai.realtime import OpenAIRealtimeServer
from tests.fakes.openai.realtime import Session as OpenAISession
from tests.fakes.openai.realtime_turns import Turn as OpenAITurn
from tests.voice.model_server import Fault, ModelServer, Status, call
from tests.voice.providers.page_suite import Reply
from tests.voice.providers.provider_suite import STORY, Limit, Provider, ProviderSuite, Stage
from tests.voice.realtime_calls import BARGE_IN, asks
from voxbridge.services.voice.core import capabilities
from voxbridge.services.voice.core.realtime import connection as realtime_connection
from voxbridge.shared.events import gateway
from voxbridge.shared.events import voice as ev
from voxbridge.shared.language import endpoints

pytestmark = pytest.mark.timeout(120)
GEMINI_KEY: Final = "AIza-key-of-the-tests"
LOCAL_KEY: Final = "sk-local-key-of-the-tests"
REQUESTS: Final = 2
"""Attempts of each request: the clients of the cascade's models retry once by themselves."""


class Models(ModelServer):
    """The models' stand-in, which notices a client that leaves a hanging answer."""

    def __init__(self) -> None:
        super().__init__()
        self.left = asyncio.Event()
        self._readers: dict[asyncio.StreamWriter, asyncio.StreamReader] = {}

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._readers[writer] = reader
        await super()._accept(reader, writer)

    async def _fault(self, writer: asyncio.StreamWriter, fault: Fault) -> bool:
        if fault is Fault.HANG:
            await writer.drain()
            gone, released = asyncio.create_task(self._readers[writer].read()), asyncio.create_task(self._released.wait())
            try:
                await asyncio.wait({gone, released}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                if gone.done():
                    self.left.set()
                gone.cancel()
                released.cancel()
            fault = Fault.DROP
        return await super()._fault(writer, fault)


@pytest.fixture
async def model_server() -> AsyncIterator[ModelServer]:
    async with Models() as server:
        yield server


class Gemini(Provider):
    """Gemini Live with its default model."""

    mode = "gemini"
    agent = "model: gemini\n"
    voices = ("Aoede", "Charon")
    restored = "handle"
    secrets = (GEMINI_KEY,)
    limits: ClassVar[Mapping[Limit, str]] = {
        "truncation": "Google trims an interrupted response by itself; a new connection is told what was heard.",
        "interruption": "Nothing stops a response but speech or text; what is left of it is not played.",
    }

    def __init__(self, server: GeminiServer) -> None:
        self.server = server

    @property
    def handles(self) -> tuple[str, ...]:
        return tuple(self.server.handles.issued)

    def script(self, *replies: Reply) -> None:
        for one in replies:
            pace = max(1, one.lasts_ms // max(1, len(one.says)))
            calls = tuple(Call(name, arguments) for name, arguments in one.calls)
            stop = one.lasts_ms // 2 if one.holds else None
            turn = GeminiTurn(hears=one.hears, says=one.says, calls=calls, after=one.after, ms_per_char=pace, stops_at_ms=stop)
            self.server.script(turn)

    def empty(self) -> None:
        self.server.script(GeminiTurn(empty=True))

    def kill(self) -> None:
        self.server.kill()

    def forget(self) -> None:
        self.server.handles.all_refused = True

    def refuse_the_key(self) -> None:
        self.server.options.close_codes["key"] = (1007, f"API key not valid: {GEMINI_KEY}. Please pass a valid API key.")
        self.server.options.keys = {"another"}
        self.server.handles.all_refused = True
        self.server.kill()

    def knows(self) -> str:
        return "\n".join(f"{line.role}: {line.text}" for line in self.server.sessions[-1].history)

    def instructions(self) -> str:
        return self.server.sessions[-1].instruction

    def offered(self) -> set[str]:
        return set(self.server.sessions[-1].offered)

    def opened(self) -> int:
        return len(self.server.sessions)


class OpenAI(Provider):
    """OpenAI Realtime with its default model."""

    mode = "openai"
    agent = "model: openai\n"
    voices = ("marin", "cedar")
    restored = "reseeded"
    secrets = (OPENAI_KEY,)
    limits: ClassVar[Mapping[Limit, str]] = {}

    def __init__(self, server: OpenAIRealtimeServer) -> None:
        self.server = server

    @property
    def session(self) -> OpenAISession:
        """Newest connection."""
        return self.server.sessions[-1]

    def script(self, *replies: Reply) -> None:
        for one in replies:
            calls = tuple((name, json.dumps(arguments)) for name, arguments in one.calls)
            hold = one.lasts_ms // 2 if one.holds else -1
            length = one.lasts_ms if one.says else 0
            self.server.script(OpenAITurn(hears=one.hears, says=one.says, audio_ms=length, calls=calls, hold_after_ms=hold))
            if one.after:
                self.server.script(OpenAITurn(says=one.after, audio_ms=300))

    def empty(self) -> None:
        self.server.script(OpenAITurn())

    def kill(self) -> None:
        self.server.turns.clear()
        self.session.kill(mid_frame=True)

    def refuse_the_key(self) -> None:
        for _ in range(realtime_connection.TRIES_LIMIT):
            self.server.refuse(401, "invalid_api_key")
        self.session.kill()

    def knows(self) -> str:
        return json.dumps(list(self.session.items.values()))

    def instructions(self) -> str:
        return str(self.session.settings["instructions"])

    def offered(self) -> set[str]:
        return {tool["name"] for tool in self.session.settings["tools"]}

    def opened(self) -> int:
        return len(self.server.sessions)

    def truncated_at(self) -> list[int]:
        return [ms for session in self.server.sessions for ms in session.truncated.values()]

    async def stopped(self) -> None:
        await self.session.until("response.cancel")


class Cascade(Provider):
    """Local models: speech to text, a language model, text to speech."""

    mode: gateway.Mode = "local"
    agent = ""
    voices = ("one", "two")
    secrets = (LOCAL_KEY,)
    settings: ClassVar[Mapping[str, Any]] = {"llm_key": LOCAL_KEY}
    limits: ClassVar[Mapping[Limit, str]] = {
        "connection": "Each request carries the whole conversation; one that fails is made again.",
        "truncation": "Each request carries the words that were heard.",
    }

    def __init__(self, models: Models) -> None:
        self.models = models

    def script(self, *replies: Reply) -> None:
        for one in replies:
            if one.hears:
                self.models.script("stt", [one.hears])
                self.models.usual["stt"] = [one.hears]  # of a pause within the speech, as a busy machine has them, too
            self.write(one)
            if one.says:
                self.models.script("tts", [one.lasts_ms])

    def write(self, reply: Reply) -> None:
        """Script the language model's reply."""
        says = [f"{reply.says} "] if reply.says else []
        hold = [Fault.HANG] if reply.holds else []
        calls = [delta for index, (name, given) in enumerate(reply.calls) for delta in call(name, json.dumps(given), index=index)]
        self.models.script("llm", [*says, *hold, *calls])
        if reply.after:
            self.models.script("llm", [reply.after])

    def empty(self) -> None:
        self.models.script("llm", [])

    def kill(self) -> None:
        self.models._scripts["llm"][:] = [[Fault.DROP]] * REQUESTS
        self.models.release()

    def refuse_the_key(self) -> None:
        self.models.script("llm", *[[Status(401, f"Incorrect API key provided: {LOCAL_KEY}.")]] * 2)

    def knows(self) -> str:
        return json.dumps(self.models.asked("llm")[-1]["messages"][1:])

    def instructions(self) -> str:
        return str(self.models.asked("llm")[-1]["messages"][0]["content"])

    def offered(self) -> set[str]:
        return {tool["function"]["name"] for tool in self.models.asked("llm")[-1]["tools"]}

    async def stopped(self) -> None:
        async with asyncio.timeout(BOUND_S):
            await self.models.left.wait()


class Claude(Cascade):
    """Claude in a voice call."""

    mode = "claude"
    agent = "llm: anthropic\n"
    secrets = (anthropic_server.KEY,)
    settings: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, models: Models, server: AnthropicServer) -> None:
        super().__init__(models)
        self.server = server

    def write(self, reply: Reply) -> None:
        says = [f"{reply.says} "] if reply.says else []
        hold = [Fault.HANG] if reply.holds else []
        self.server.script([*says, *hold, *(anthropic_server.Use(name, dict(given)) for name, given in reply.calls)])
        if reply.after:
            self.server.script([reply.after])

    def empty(self) -> None:
        self.server.script([])

    def kill(self) -> None:
        self.server._scripts[:] = [[Fault.DROP]] * REQUESTS
        for connection in self.server._connections:
            connection.cancel()

    def refuse_the_key(self) -> None:
        self.server.script(*[[anthropic_server.Status(401, "authentication_error", f"invalid x-api-key {anthropic_server.KEY}")]] * 2)

    def knows(self) -> str:
        return json.dumps(self.server.bodies[-1]["messages"])

    def instructions(self) -> str:
        return json.dumps(self.server.bodies[-1]["system"])

    def offered(self) -> set[str]:
        return {tool["name"] for tool in self.server.bodies[-1]["tools"]}

    async def stopped(self) -> None:
        await self.server.until_dropped()


class TestGeminiLive(ProviderSuite):
    @pytest.fixture
    async def provider(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Provider]:
        async with GeminiServer(tmp_path, Options()) as server:
            monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.url)
            monkeypatch.setenv("SSL_CERT_FILE", str(server.ca_file))
            monkeypatch.setenv("GEMINI_API_KEY", GEMINI_KEY)
            yield Gemini(server)


class TestOpenAIRealtime(ProviderSuite):
    @pytest.fixture
    async def provider(self, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Provider]:
        async with OpenAIRealtimeServer() as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
            monkeypatch.setenv("OPENAI_API_KEY", OPENAI_KEY)
            yield OpenAI(server)

    async def test_who_tells_late_what_was_heard_has_the_stopped_answer_truncated(self, stage: Stage, provider: Provider) -> None:
        """The next answer may have begun by then; it must stay whole."""
        assert isinstance(provider, OpenAI)
        provider.script(Reply(says=STORY, lasts_ms=5_000, holds=True), Reply(hears="Stop.", says="All right.", lasts_ms=3_000))
        page = await stage.open(plays=False)
        await asks(page, "Tell me a story.")
        await page.when(lambda: page.sent_ms(1) >= 300)
        await page.speaks(BARGE_IN)
        await page.when(lambda: page.sent_ms(2) > 0)
        await page.says(gateway.PlaybackReported(generation=1, played_ms=300, state="flushed"))
        await page.until(ev.AgentSaid, interrupted=True)
        await provider.session.until("conversation.item.truncate")
        answers = [id for id, item in provider.session.items.items() if item.get("role") == "assistant"]
        assert [*provider.session.truncated] == answers[:1]


class TestLocalCascade(ProviderSuite):
    @pytest.fixture
    def provider(self, model_server: Models) -> Provider:
        return Cascade(model_server)


class TestClaudeSpokenTo(ProviderSuite):
    @pytest.fixture
    async def provider(self, model_server: Models, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Provider]:
        async with AnthropicServer() as server:
            monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
            monkeypatch.setenv("ANTHROPIC_API_KEY", anthropic_server.KEY)
            yield Claude(model_server, server)
            assert server.refused == [], "nothing that the service would refuse was sent"


@pytest.mark.parametrize(("provider", "name"), [(Gemini, "gemini"), (OpenAI, "openai")])
def test_what_a_provider_is_said_to_be_able_to_do_is_what_the_suite_asserts(provider: type[Provider], name: str) -> None:
    able = capabilities.of(name, capabilities.DEFAULT_MODELS[name])
    assert able.truncates is ("truncation" not in provider.limits)
    assert able.resumes is (provider.restored == "handle")


@pytest.mark.parametrize("provider", [Gemini, OpenAI, Cascade, Claude])
def test_whatever_a_provider_cannot_do_has_its_reason(provider: type[Provider]) -> None:
    assert all(len(reason) > 20 for reason in provider.limits.values())


def test_a_cascade_is_said_to_think_with_the_model_that_is_asked() -> None:
    assert {name: endpoints.VENDORS[name].llm for name in capabilities.TEXT_MODELS} == capabilities.TEXT_MODELS

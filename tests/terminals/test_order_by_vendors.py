"""A captain speaks one order for a coding agent, the real Codex and a shell, to a model of each vendor. Scripted are the words that are
heard and the calls that the model makes of them; the adapters, approvals, terminals and programs are real.

What the first program wrote reaches the second without passing through a model, and what a program asks is asked aloud and answered so.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from tests.eventually import eventually
from tests.fakes.anthropic.server import KEY as CLAUDE_KEY
from tests.fakes.anthropic.server import AnthropicServer, Use
from tests.fakes.gemini.turns import Call
from tests.fakes.gemini.turns import Turn as GeminiTurn
from tests.fakes.openai.realtime import KEY, OpenAIRealtimeServer, Session
from tests.fakes.openai.realtime_turns import Turn as OpenAITurn
from tests.faults.caller import Caller
from tests.faults.installation import Google, Installation, Servers, installed
from tests.terminals.coding_agent import PROGRAM
from tests.terminals.real_agents import CodexModel, programs
from tests.terminals.serving import Viewer, process, viewing
from tests.voice.conftest import model_server, silero
from tests.voice.model_server import ModelServer
from tests.voice.sounds import silence, speech
from voxbridge.shared.terminals import questions as asked
from voxbridge.shared.terminals.model import Definition

__all__ = ["model_server", "silero"]
pytestmark = pytest.mark.timeout(300)

ORDER: Final = (
    "Tell Claude to ask before it refactors the auth module and tell Codex to write the tests, and in the shell make a folder called out. "
    "When Claude finishes, paste its diff into Codex."
)
CALLS: Final[list[tuple[str, dict[str, Any]]]] = [
    ("send_to_terminal", {"terminal": "Claude", "text": "ask before you refactor the auth module"}),
    ("send_to_terminal", {"terminal": "Codex", "text": "write the tests"}),
    ("run_in_terminal", {"terminal": "Shell", "command": "mkdir out"}),
    ("forward_output", {"source": "Claude", "terminal": "Codex", "when": "done"}),
]
WROTE: Final = "diff of ask"
"""Words of the program that stands for Claude Code, when it is done."""

AGENT: Final = """
{model}
prompt: You pass on orders.
tools: [send_to_terminal, send_key, run_in_terminal, forward_output, watch_terminals]
starts: [watch_terminals]
"""
MODELS: Final = {"gemini": "model: gemini", "openai": "model: openai", "claude": "llm: anthropic\nstt: local\ntts: local"}


class Vendor:
    """The stand-ins of all vendors, of which one is spoken to."""

    def __init__(self, name: str, google: Google, openai: OpenAIRealtimeServer, claude: AnthropicServer, models: ModelServer) -> None:
        self.name = name
        self._google, self._openai, self._claude, self._models = google, openai, claude, models

    def hears(self, words: str, *calls: tuple[str, dict[str, Any]]) -> None:
        """Have the next speech heard as these words, of which the model makes these calls."""
        if self.name == "gemini":
            self._google.script(GeminiTurn(hears=words, calls=[Call(name, arguments) for name, arguments in calls], after="Passed on."))
        elif self.name == "openai":
            self._openai.script(OpenAITurn(hears=words, calls=tuple((name, json.dumps(arguments)) for name, arguments in calls)))
        else:
            self._models.script("stt", [words])
            if calls:
                self._claude.script([Use(name, arguments) for name, arguments in calls])

    def told(self) -> str:
        """Return all that any model was told."""
        google = [[*one.contents, *one.texts, *one.answers, *one.updates] for one in self._google.sessions]
        openai = [one.events for one in self._openai.sessions]
        return json.dumps([google, openai, self._claude.bodies, self._models.asked("llm")])


def passed_on(session: Session) -> OpenAITurn:
    """Say that an order was passed on, and nothing of what is told besides."""
    last: dict[str, Any] = next(reversed(session.items.values()), {})
    return OpenAITurn(says="Passed on.", audio_ms=100) if last.get("type") == "function_call_output" else OpenAITurn()


class Bridge:
    """The installation, with a fleet of three programs."""

    def __init__(self, there: Installation, fleet: Viewer, vendor: Vendor, codex: CodexModel, folder: Path) -> None:
        self.there, self.fleet, self.vendor, self.codex, self.folder = there, fleet, vendor, codex, folder


@pytest.fixture
async def bridge(
    request: pytest.FixtureRequest, model_server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Bridge]:
    """Run everything, and start the programs."""
    monkeypatch.setenv("PATH", os.pathsep.join((str(programs()), os.environ["PATH"])))
    crew, work = tmp_path / "crew", tmp_path / "work"
    for folder in (crew, work):
        folder.mkdir()
    (crew / "officer.yaml").write_text(AGENT.format(model=MODELS[request.param]))
    async with AsyncExitStack() as leaving:
        openai = await leaving.enter_async_context(OpenAIRealtimeServer())
        openai.reply = passed_on
        claude = await leaving.enter_async_context(AnthropicServer())
        keys = {
            "OPENAI_BASE_URL": openai.url,
            "OPENAI_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": claude.url,
            "ANTHROPIC_API_KEY": CLAUDE_KEY,
        }
        servers = Servers(tmp_path)
        models = dict.fromkeys(("models_url", "stt_url", "llm_url", "tts_url"), model_server.url)
        packs = "voxbridge.services.tools.packs.terminals.functions"
        there = await leaving.enter_async_context(installed(tmp_path, servers, env=keys, agents_dir=crew, tool_packs=packs, **models))
        service = leaving.enter_context(process(servers.nats.url_of("terminals"), servers.valkey.url))
        fleet = await leaving.enter_async_context(viewing(servers.nats.url))
        codex = CodexModel()
        await codex.start()
        leaving.push_async_callback(codex.stop)
        codex.configure(service.folder.parent, work)
        program = tmp_path / "agent.py"
        program.write_text(PROGRAM)
        mine = Definition(id="mine", title="Mine", kind="agent", command=(sys.executable, str(program)), approve="enter")
        await fleet.ask(asked.Define(by="tester", definition=mine))
        for definition, name in (("mine", "Claude"), ("codex", "Codex"), ("bash", "Shell")):
            card = await fleet.ask(asked.Start(by="tester", definition=definition, name=name, directory=str(work)))
            waited = await fleet.ask(asked.Wait(by="tester", terminal=card.id, until="idle", timeout_s=60))
            assert waited.met, await fleet.text(card.id)
        vendor = Vendor(request.param, there.google, openai, claude, model_server)
        yield Bridge(there, fleet, vendor, codex, work)


@asynccontextmanager
async def calling(bridge: Bridge) -> AsyncIterator[Caller]:
    """Call the officer."""
    caller = Caller(bridge.there.config.port)
    try:
        await caller.start(mode=bridge.vendor.name, agent="officer", output="audio")
        await caller.until("async_task_started", function="watch_terminals")
        yield caller
    finally:
        await caller.stop()


async def says_yes(bridge: Bridge, caller: Caller, name: str) -> None:
    """Wait until a call of this function is asked for aloud, and answer it aloud."""
    question = (await caller.until("approval_requested", name=name))["question"]

    def was_asked() -> bool:
        said = [one["text"] for one in caller.facts("transcript", role="assistant") if one["text"]]
        states = [one["state"] for one in caller.told if one["type"] == "state"]
        return (said[-1:], states[-1:]) == ([question], ["listening"])

    await caller.when(was_asked)
    bridge.vendor.hears("Yes.")
    await caller.speaks(speech(700) + silence(1_500))
    ended = await caller.until("approval_ended", name=name)
    assert (ended["outcome"], ended["by"]) == ("approved", "voice")


@pytest.mark.parametrize("bridge", MODELS, indirect=True)
async def test_the_order_reaches_all_programs_and_the_diff_no_model(bridge: Bridge) -> None:
    async with calling(bridge) as caller:
        bridge.vendor.hears(ORDER, *CALLS)
        await caller.speaks(speech(2_000) + silence(1_500))
        await caller.until("transcript", role="user", text=ORDER)
        await says_yes(bridge, caller, "run_in_terminal")
        await caller.until("async_task_complete", function="run_in_terminal")
        assert (bridge.folder / "out").is_dir()
        assert not _asked(bridge, WROTE), "the first program is not done: it asks"
        await says_yes(bridge, caller, "send_key")
        ended = await caller.until("async_task_complete", function="forward_output")
        assert ended["result"]["success"], ended
        await eventually(lambda: _asked(bridge, WROTE))
        assert _asked(bridge, "write the tests")
        assert "Claude has it." in bridge.vendor.told()
        assert WROTE not in bridge.vendor.told()


def _asked(bridge: Bridge, words: str) -> Any:
    return [one for one in bridge.codex.requests if words in json.dumps(one.body)]

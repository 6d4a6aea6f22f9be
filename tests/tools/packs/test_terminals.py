"""The functions about terminals, from a call to a program's keyboard and back; and which terminal is meant by what is said."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client

from tests.eventually import eventually
from tests.terminals.serving import Process, process
from tests.tools.conftest import Caller, Executors
from tests.tools.packs.asking import Asking, asking
from voxbridge.services.tools.packs.terminals import reach
from voxbridge.services.tools.packs.terminals.named import find
from voxbridge.shared.bus.accounts import TERMINALS_FOR_TOOLS
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events.gateway import ApprovalClicked
from voxbridge.shared.events.tools import TaskCompleted, TaskFailed, ToolFailed
from voxbridge.shared.events.voice import Failure
from voxbridge.shared.log.writer import SessionWriter
from voxbridge.shared.terminals import client as terminals
from voxbridge.shared.terminals import questions as asked
from voxbridge.shared.terminals.model import LOCAL_HOST, Card, Definition, State

pytestmark = pytest.mark.timeout(120)

AGENT = """
import sys
print("agent ready", flush=True)
for line in sys.stdin:
    print("> " + line.strip().upper(), flush=True)
"""


def card(token: str, name: str, definition: str = "bash", *, active: bool = False) -> Card:
    kind = "agent" if definition in ("claude", "codex") else "shell"
    state = State(phase="idle", since=0)
    return Card(host="local", id=token, name=name, workspace="default", definition=definition, kind=kind, state=state, active=active)  # type: ignore[arg-type]


def test_functions_may_ask_every_question_that_they_ask() -> None:
    folder = Path(reach.__file__).parent
    asks = {name for path in folder.glob("*.py") for name in re.findall(r"asked\.([A-Z]\w+)\(", path.read_text())}
    verbs = {question.verb for question in asked.QUESTIONS if question.__name__ in asks}
    assert verbs == set(TERMINALS_FOR_TOOLS)


CARDS = (
    card("build-1", "Build", active=True),
    card("claude-2", "Claude Code", "claude"),
    card("codex-3", "Codex", "codex"),
    card("tests-4", "Unit tests"),
)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("", "build-1"),
        ("build-1", "build-1"),
        ("the build terminal", "build-1"),
        ("BUILD", "build-1"),
        ("claude", "claude-2"),
        ("Claude Code", "claude-2"),
        ("cloud code", "claude-2"),
        ("clawed code", "claude-2"),
        ("cloud", "claude-2"),
        ("clawed", "claude-2"),
        ("claud", "claude-2"),
        ("quad", "claude-2"),
        ("card", "claude-2"),
        ("covix", "codex-3"),
        ("codecs", "codex-3"),
        ("tests", "tests-4"),
        ("the first one", "build-1"),
        ("the left one", "build-1"),
        ("last", "tests-4"),
        ("second", "claude-2"),
        ("this one", "build-1"),
    ],
)
def test_a_terminal_is_found_by_what_is_said_of_it(said: str, meant: str) -> None:
    assert find(CARDS, said).id == meant


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("bash", Code.CONFLICT),
        ("agent", Code.CONFLICT),
        *((said, Code.NOT_FOUND) for said in ("zebra", "x" * 64, "cursor", "gemini", "Carl", "Mark", "the database", "chrome")),
    ],
)
def test_what_could_be_several_or_none_is_asked_back_with_the_names(said: str, code: Code) -> None:
    with pytest.raises(VoxbridgeError) as raised:
        find(CARDS, said)
    assert (raised.value.code, raised.value.field) == (code, "terminal")
    assert "Build" in raised.value.message or "Codex" in raised.value.message
    with pytest.raises(VoxbridgeError, match="Start one"):
        find((), said)


@pytest.fixture
def service(nats_url: str, redis_url: str) -> Any:
    with process(nats_url, redis_url) as service:
        yield service


@pytest.fixture
async def ask(service: Process, executors: Executors, caller: Caller, tmp_path: Path) -> AsyncIterator[Asking]:
    async with asking(executors, caller, tmp_path / "work", "terminals", "terminals.modes") as ask:

        async def answers() -> bool:
            return isinstance(await ask.outcome("list_terminals", {}), dict)

        await eventually(answers)
        yield ask


class Captain:
    """A person who approves by a click."""

    def __init__(self, caller: Caller, ask: Asking) -> None:
        self._caller, self._ask = caller, ask
        self._clicks = SessionWriter(caller.log, caller.sid, "gateway")

    async def approved(self, name: str, /, **arguments: Any) -> dict[str, Any] | Failure:
        """Call a function that asks first, say yes, and return what became of it."""
        return await self.clicked(await self._ask.answer(name, **arguments))

    async def clicked(self, asks: dict[str, Any]) -> dict[str, Any] | Failure:
        """Say yes to a question that was asked, and return what became of it."""
        assert asks["status"] == "needs_approval", asks
        click = ApprovalClicked(approval_id=asks["approval_id"], answer="approved")
        await self._clicks.append(click, ts=self._caller.now(), cause=None)
        ended, _ = await self._caller.next((TaskCompleted, TaskFailed), asks["approval_id"].removeprefix("approval-"))
        if isinstance(ended, TaskCompleted):
            return ended.result
        assert isinstance(ended, TaskFailed)
        return ended.error


@pytest.fixture
def captain(caller: Caller, ask: Asking) -> Captain:
    return Captain(caller, ask)


async def test_a_command_is_run_once_a_person_approved_it_and_read(ask: Asking, captain: Captain, tmp_path: Path) -> None:
    assert (await ask.answer("list_terminals"))["spoken"] == "There is no terminal. Shall I start one?"
    started = await ask.answer("start_terminal", program="bash", name="Build")
    notes = tmp_path / "notes"
    command = f"touch {notes}; echo made $((40+2))"
    asks = await ask.answer("run_in_terminal", terminal="the build one", command=command)
    assert command in asks["spoken"]
    assert not notes.exists(), "nobody has said yes"
    done = await captain.approved("run_in_terminal", terminal="build", command=command)
    assert isinstance(done, dict), done
    assert (done["spoken"], done["terminal"]) == ("Build has it.", started["terminal"])

    async def reads() -> bool:
        return "made 42" in (await ask.answer("read_terminal", terminal="left"))["text"]

    await eventually(reads)
    assert notes.exists()
    assert "Build" in (await ask.answer("list_terminals"))["spoken"]
    closed = await captain.approved("close_terminal", terminal="build")
    assert isinstance(closed, dict)
    assert closed["spoken"] == "Build is closed."


async def test_what_is_typed_word_for_word_into_a_shell_is_read_back_first(ask: Asking, captain: Captain, tmp_path: Path) -> None:
    assert (await ask.answer("switch_mode", mode="chat"))["spoken"] == "What you say goes to the terminal that is active."
    await ask.answer("start_terminal", program="bash", name="Build")
    switched = await ask.answer("switch_mode", mode="chat")
    assert (switched["mode"], switched["terminal"]) == ("chat", "Build")
    notes = tmp_path / "notes"
    asks = await ask.answer("type_into_terminal", text=f"touch {notes}")
    assert asks["spoken"] == f"Shall I run touch {notes} in Build? Please say yes or no."
    assert not notes.exists(), "nobody has said yes"
    typed = await captain.clicked(asks)
    assert isinstance(typed, dict), typed
    assert typed["spoken"] == "Build has it."
    await eventually(notes.exists)
    several = await ask.refusal("type_into_terminal", text="true\nfalse")
    assert (several.code, several.field) == (Code.INVALID_ARGUMENT, "text")


async def test_a_key_stops_a_program_and_a_wait_tells_when_it_is_done(ask: Asking, captain: Captain, caller: Caller) -> None:
    await ask.answer("start_terminal", program="bash")
    await captain.approved("run_in_terminal", command="sleep 600")
    waiting = await ask.answer("wait_for_terminal", until="done")
    assert waiting["status"] == "started"
    pressed = await ask.answer("send_key", key="ctrl-c")
    assert pressed["spoken"] == "I pressed ctrl c in Bash."
    ended, _ = await caller.next((TaskCompleted, TaskFailed), waiting["task_id"].removeprefix("task-"))
    assert isinstance(ended, TaskCompleted), ended
    assert ended.result["met"]
    assert ended.result["announce"] in ("Bash is done, with an error.", "Bash is idle.")


async def test_an_agent_is_told_words_and_a_shell_is_not(ask: Asking, captain: Captain, connection: Client, tmp_path: Path) -> None:
    program = tmp_path / "agent.py"
    program.write_text(AGENT)
    definition = Definition(id="mine", title="Mine", kind="agent", command=(sys.executable, str(program)))
    await terminals.ask(connection, LOCAL_HOST, asked.Define(by="tester", definition=definition))
    agent = await ask.answer("start_terminal", program="mine")
    await ask.answer("start_terminal", program="bash")
    waited = await terminals.ask(connection, LOCAL_HOST, asked.Wait(by="tester", terminal=agent["terminal"], until="idle", timeout_s=20))
    assert waited.met
    told = await ask.answer("send_to_terminal", terminal="mine", text="write the\x1b[31m tests")
    assert (told["spoken"], told["removed"]) == ("Mine has it.", 1)

    async def answers() -> bool:
        return "> WRITE THE[31M TESTS" in (await ask.answer("read_terminal", terminal="mine"))["text"]

    await eventually(answers)
    await ask.answer("start_terminal", program="mine", name="Ada")
    for clause in ("When Ada is done, paste its stiff into Mine", "if all is well, and once ada finishes tell it so"):
        meant = await ask.refusal("send_to_terminal", terminal="mine", text=f"write more. {clause}")
        assert (meant.code, meant.field) == (Code.INVALID_ARGUMENT, "text")
        assert clause[-25:] in meant.message
    for words in (
        "write more when ada is done",
        "go on. When it is done, run it",
        "go on. When bash is done, do it",
        "tell me when mine is",
    ):
        assert (await ask.answer("send_to_terminal", terminal="mine", text=words))["spoken"] == "Mine has it."
    assert "stiff" not in (await ask.answer("read_terminal", terminal="mine"))["text"].lower()
    shell = await ask.refusal("send_to_terminal", terminal="bash", text="rm -rf /")
    assert (shell.code, shell.field) == (Code.PERMISSION_DENIED, "terminal")
    both = await captain.approved("run_in_terminal", terminal="bash", command="true\nfalse")
    assert isinstance(both, Failure)
    assert (both.code, both.field) == (Code.INVALID_ARGUMENT, "command")


async def test_what_a_program_asks_is_answered_by_a_person_and_that_very_question(
    ask: Asking, captain: Captain, connection: Client
) -> None:
    shell = (await ask.answer("start_terminal", program="bash", name="Build"))["terminal"]

    async def asks(word: str) -> None:
        await terminals.ask(
            connection, LOCAL_HOST, asked.Send(by="tester", terminal=shell, text=f"read -rn1 -p '{word}? [y/N] ' x; echo; echo said $x")
        )
        wait = asked.Wait(by="tester", terminal=shell, until="blocked", timeout_s=20)
        assert (await terminals.ask(connection, LOCAL_HOST, wait)).met

    await asks("Overwrite")
    done = await captain.approved("send_key", key="y")
    assert isinstance(done, dict), done

    async def shows(text: str) -> bool:
        return text in (await ask.answer("read_terminal"))["text"]

    await eventually(lambda: shows("said y"))
    await asks("Delete")
    question = await ask.answer("send_key", key="y")
    assert "Delete? [y/N]" in question["spoken"]
    assert (await ask.answer("send_key", key="n"))["spoken"] == "I pressed n in Build.", "no gives no permission"
    await asks("Publish")
    refused = await captain.clicked(question)
    assert isinstance(refused, Failure)
    assert refused.code == Code.CONFLICT
    assert not await shows("said y\nsaid")


async def test_only_the_account_of_the_installation_reaches_terminals(ask: Asking, caller: Caller) -> None:
    asks: dict[str, dict[str, Any]] = {"list_terminals": {}, "read_terminal": {}, "start_terminal": {}, "send_key": {"key": "enter"}}
    for number, (name, arguments) in enumerate(asks.items()):
        await caller.call(name, f"other-{number}", account="ada", **arguments)
        failed, _ = await caller.next(ToolFailed, f"other-{number}")
        assert (failed.error.code, failed.error.field) == (Code.PERMISSION_DENIED, "account")


async def test_without_the_service_a_sentence_says_so(ask: Asking, service: Process) -> None:
    service.stop()
    away = await ask.refusal("list_terminals")
    assert away.code == Code.UNAVAILABLE
    assert "terminals service" in away.message

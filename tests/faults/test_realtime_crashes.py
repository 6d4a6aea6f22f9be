"""A call on Gemini Live through a whole installation of real processes, each of which is killed in every state of the call. The call
continues, each utterance is in the log and was delivered once, and no effect happens twice."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from tests import replayed
from tests.fakes.gemini.session import Session
from tests.fakes.gemini.turns import Call, Turn
from tests.faults import orders
from tests.faults.caller import Caller
from tests.faults.installation import Installation, installed
from tests.voice.realtime_calls import UTTERANCE
from tests.voice.replaying import causes_come_first
from tests.voice.sounds import speech
from voxbridge.services.gateway.core import outbound
from voxbridge.shared import events
from voxbridge.shared.events import tools
from voxbridge.shared.events import voice as ev

pytestmark = [pytest.mark.timeout(240), pytest.mark.asyncio(loop_scope="module")]
STORY = "Once upon a time there was a king who had three daughters, and a crown that he had never once taken off his head."
Said = tuple[list[str], list[str]]
"""Texts of the user and of the agent in a turn."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def installation(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Installation]:
    async with installed(tmp_path_factory.mktemp("installation")) as found:
        yield found


class Stand:
    """A call in the installation, and the process to kill."""

    def __init__(self, installation: Installation, victim: str, folder: Path) -> None:
        self.installation = installation
        self.google = installation.google
        self.caller = Caller(installation.config.port)
        self.victim = victim
        self.folder = folder
        self.pause_s = 0.0
        """Seconds that the call was without a worker."""

        self._before = len(self.google.sessions)

    @property
    def sessions(self) -> list[Session]:
        """Connections to Google of this call."""
        return self.google.sessions[self._before :]

    async def kill(self) -> None:
        """Kill the process with SIGKILL, and start it again unless a standby takes over."""
        there = self.installation
        match self.victim:
            case "voice":
                await there.kill(await there.owner(self.caller.sid))
                killed = time.monotonic()
                await there.logged(self.caller.sid, "voice", "session.owned", 2)
                self.pause_s = time.monotonic() - killed
            case "provider":
                self.google.kill()
            case "nats":
                there.nats.kill()
                there.nats.start()
                await there.servers.prepare()
            case "valkey":
                there.valkey.kill()
                there.valkey.start()
            case service:
                if service == "gateway":
                    await there.stand_by(service)
                await there.kill(service)
                await there.start(service)

    async def turn(self, number: int) -> None:
        """Wait until a turn is completed."""
        await self.caller.until("turn_complete", turn=number, reason="completed")

    async def attached(self) -> None:
        """Wait until the voice worker can know that the caller is back."""
        await self.caller.resumed()
        await self.installation.logged(self.caller.sid, "gateway", "client.connected", 2)

    def arguments(self, name: str) -> dict[str, str]:
        """Return arguments for calls whose effects are counted in a folder of this name."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        return {"folder": str(folder)}


@pytest_asyncio.fixture(loop_scope="module")
async def stand(installation: Installation, victim: str, tmp_path: Path) -> AsyncIterator[Stand]:
    await installation.heal()
    installation.google.door.set()
    stand = Stand(installation, victim, tmp_path)
    try:
        stand.google.says(Turn(says="Hello."))
        await stand.caller.start(mode="gemini", agent="triage")
        await stand.caller.until("provider", status="connected")
        await stand.caller.types("Hello?")
        await stand.turn(1)
        yield stand
    finally:
        await stand.caller.stop()


async def idle(stand: Stand) -> Said:
    """Kill while the call is idle."""
    await stand.kill()
    stand.google.says(Turn(says="Still here."))
    await stand.caller.types("Are you there?")
    return ["Are you there?"], ["Still here."]


async def user_speaking(stand: Stand) -> Said:
    """Kill while the user is in the middle of a sentence, which they continue."""
    stand.google.says(Turn(hears="What is it that you can do?", says="Everything."))
    await stand.caller.speaks(UTTERANCE[: len(UTTERANCE) // 2])
    await stand.google.until(lambda: [name for name, _ in stand.sessions[-1].activity][-1:] == ["speech"])
    await stand.kill()
    await stand.caller.speaks(speech(400) + UTTERANCE[len(UTTERANCE) // 2 :])
    return ["What is it that you can do?"], ["Everything."]


async def model_speaking(stand: Stand) -> Said:
    """Kill while the model is in the middle of a sentence."""
    stand.google.says(Turn(says=STORY, stops_at_ms=5_000), Turn(says="The youngest was the cleverest."))
    before = set(stand.caller.loudspeaker.heard)
    await stand.caller.types("Tell me a story.")
    await stand.caller.when(lambda: any(ms >= 1_200 for one, ms in stand.caller.loudspeaker.heard.items() if one not in before))
    await stand.kill()
    if stand.victim == "gateway":
        await stand.attached()
    for session in stand.google.connections:
        session.model.go_on()
    await stand.turn(2)
    if stand.victim in ("tools", "nats", "valkey"):
        return ["Tell me a story."], [STORY]
    begun = stand.caller.facts("transcript", role="assistant", turn=2)[0]
    assert begun["interrupted"] == (stand.victim != "provider"), "what had come of it is heard to its end"
    assert STORY.startswith(begun["text"])
    assert begun["text"].startswith("Once upon a"), "all that was heard"
    return ["Tell me a story."], [begun["text"], "The youngest was the cleverest."]


async def tool_open(stand: Stand) -> Said:
    """Kill while two functions have had their effects but not returned."""
    done, again = stand.arguments("open"), Turn(says="It is done.")
    calls = (Call("charge", done), Call("book", done))
    stand.google.says(Turn(calls=calls, after="It is done.", blocking=True), again)
    await stand.caller.types("Book a table.")
    folder = Path(done["folder"])
    await stand.caller.until("function_call", 2)
    await stand.installation.begun(folder, 2)
    stand.google.door.clear()  # connections that must be reopened wait until the results are there
    await stand.kill()
    orders.release(folder)
    await stand.caller.until("function_result", 2)
    stand.google.door.set()
    await stand.turn(2)
    for name, noted in (("charge", orders.CHARGES), ("book", orders.BOOKINGS)):
        (called,) = stand.caller.facts("function_call", name=name)
        (result,) = stand.caller.facts("function_result", name=name)
        assert orders.effects(folder, noted) == [called["fn_call_id"]]
        lost = stand.victim == "tools" and name == "charge"
        assert ("error" in result["result"]) == lost, result
    return ["Book a table."], ["It is done."]


async def handing_over(stand: Stand) -> Said:
    """Kill after one agent has handed over, before the other one is connected."""
    call = Call("handoff_conversation", {"target": "advisor", "reason": "money"})
    stand.google.says(Turn(calls=(call,)), Turn(says="I can help."))
    stand.google.door.clear()
    await stand.caller.types("I need advice.")
    await stand.caller.until("agent", phase="started")
    await stand.kill()
    if stand.victim == "gateway":
        await stand.attached()
    assert not stand.caller.facts("agent", phase="completed")
    stand.google.door.set()
    await stand.turn(2)
    assert len(stand.caller.facts("agent")) == 2
    return ["I need advice."], ["I can help."]


VICTIMS = ("gateway", "tools", "voice", "provider", "nats", "valkey")
CASES = [(victim, state) for victim in VICTIMS for state in ("idle", "user speaking", "model speaking", "tool open", "handing over")]
PAUSE_S = 30.0
"""Seconds until the call continues after its worker was killed; `make bench` has the target, a quarter of this."""

STATES: dict[str, Callable[[Stand], Awaitable[Said]]] = {
    "idle": idle,
    "user speaking": user_speaking,
    "model speaking": model_speaking,
    "tool open": tool_open,
    "handing over": handing_over,
}


async def goes_on(stand: Stand, agent: str) -> Said:
    """Have another turn: spoken, with a function that has an effect, and answered."""
    arguments = stand.arguments("after")
    orders.release(Path(arguments["folder"]))
    stand.google.says(Turn(hears="And a table, please.", calls=(Call("charge", arguments),), after="It is yours.", blocking=True))
    await stand.caller.speaks(UTTERANCE)
    await stand.turn(3)
    (called,) = stand.caller.facts("function_call", args=arguments)
    assert orders.effects(Path(arguments["folder"]), orders.CHARGES) == [called["fn_call_id"]]
    answers = [one["response"] for session in stand.sessions for one in session.answers if "charged" in str(one["response"])]
    assert [one for one in answers if one.get("charged")][-1] == {"charged": True}
    assert stand.caller.facts("transcript", role="assistant")[-1]["agent"] == agent
    return ["And a table, please."], ["It is yours."]


@pytest.mark.parametrize(("victim", "state"), CASES)
async def test_the_call_goes_on(stand: Stand, state: str) -> None:
    asked, answered = await STATES[state](stand)
    await stand.turn(2)
    then, last = await goes_on(stand, "advisor" if state == "handing over" else "triage")
    caller = stand.caller
    await caller.ends()
    log = await stand.installation.events(caller.sid)

    lines = [(one["role"], one["text"]) for one in caller.facts("transcript") if one["text"]]
    assert [text for role, text in lines if role == "user"] == ["Hello?", *asked, *then]
    assert [text for role, text in lines if role == "assistant"] == ["Hello.", *answered, *last]
    assert [one["turn"] for one in caller.facts("turn_complete", reason="completed")] == [1, 2, 3]
    reader = outbound.Reader(caller.sid, True, caller.token)
    visible = [outbound.of_event(one, reader) for one in log if one.visible]
    assert caller.facts() == [message for message in visible if message is not None], "each fact was told once, in order"
    assert all(one["recovered"] for one in caller.resumes)
    assert len(caller.resumes) == (stand.victim == "gateway")
    assert stand.pause_s <= PAUSE_S, "another worker is there"
    assert not [one.event for one in log if isinstance(one.event, ev.ProviderFailed)], "an apology is not an answer"
    _nothing_happened_twice(log)
    assert causes_come_first(log)
    assert list(replayed.of_session(log, ("voice", "tools"))) == []


def _nothing_happened_twice(log: list[events.Recorded]) -> None:
    """Check that every call was finished or reported once, and its result delivered once."""
    called = [one.event.call_id for one in log if isinstance(one.event, ev.ToolCalled)]
    ends = tools.ToolCompleted | tools.ToolFailed | tools.ToolInterrupted
    ended = [one.event.call_id for one in log if isinstance(one.event, ends)]
    delivered = [one.event.call_id for one in log if isinstance(one.event, ev.ToolDelivered)]
    assert len(set(called)) == len(called)
    assert sorted(ended) == sorted(delivered) == sorted(called)

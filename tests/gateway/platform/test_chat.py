"""`POST /api/chat`: one message and one answer, in a session that goes on from one to the next."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.eventually import BOUND_S, eventually
from tests.gateway.conftest import Running
from tests.gateway.platform.conftest import SHOP, make_key, page
from tests.gateway.stand_in import Session, StandIn
from voxbridge.services.gateway.platform.chat import NEWS_LIMIT, TOLD_LIMIT, Asked, ChatSocket, Exchange
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events import gateway
from voxbridge.shared.events import voice as ev

CONFIGURE = {"instructions": "Be brief.", "greeting": "Hi!"}


@pytest.fixture
async def key(running: Running) -> str:
    return (await make_key(running, kind="secret"))[1]


@pytest.fixture
async def http(running: Running) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{running.port}", timeout=BOUND_S) as client:
        yield client


def posts(http: httpx.AsyncClient, key: str, message: str, **more: Any) -> asyncio.Task[httpx.Response]:
    headers = {"Authorization": f"Bearer {key}", **more.pop("headers", {})}
    return asyncio.create_task(http.post("/api/chat", json={"message": message, **more}, headers=headers))


async def typed(voice: StandIn, session: Session, message: str) -> str:
    """Return the name of the text that the exchange wrote, as soon as the log has it."""

    async def found() -> str:
        texts = [one.event for one in await voice.log.read(session.sid, writer="gateway") if isinstance(one.event, gateway.TextReceived)]
        return next((one.text_id for one in texts if one.text == message), "")

    await eventually(found)
    return await found()


async def answers(session: Session, text_id: str, turn: int, text: str) -> None:
    await session.says(ev.AgentSaid(text=text, turn=turn, generation=turn, output="text"))
    await session.says(ev.TurnCompleted(number=turn, reason="completed"))


async def test_a_conversation_goes_on_from_one_message_to_the_next(http: httpx.AsyncClient, key: str, voice: StandIn) -> None:
    first = posts(http, key, "What is the weather?", configure=CONFIGURE)
    session = await voice.session()
    asked = next(
        one.event for one in await voice.log.read(session.sid, writer="gateway") if isinstance(one.event, gateway.SessionRequested)
    )
    assert (asked.system_prompt, asked.options.output) == ("Be brief.", "text")
    text_id = await typed(voice, session, "What is the weather?")
    await session.says(ev.AgentSaid(text="Hi!", turn=0, generation=1, output="text"))
    await session.says(ev.UserSaid(text="What is the weather?", turn=1, source="text", text_id=text_id))
    await session.says(ev.ToolCalled(call_id="c1", name="get_weather", arguments={}, kind="customer", turn=1, deadline_ms=30_000))
    await answers(session, text_id, 1, "It is sunny.")
    told = (await first).json()
    conversation = told.pop("conversation")
    about = {"startVoiceSession": False, "pendingRequest": None, "steps": ["Using get_weather"], "news": []}
    assert told == {"message": "It is sunny.", **about}
    second = posts(http, key, "And tomorrow?", conversation=conversation)
    text_id = await typed(voice, session, "And tomorrow?")
    await session.says(ev.UserSaid(text="And tomorrow?", turn=2, source="text", text_id=text_id))
    await answers(session, text_id, 2, "It rains.")
    assert (await second).json()["message"] == "It rains."


async def test_a_page_goes_on_with_a_conversation_and_leaves_it_to_http_again(
    running: Running, http: httpx.AsyncClient, key: str, voice: StandIn
) -> None:
    first = posts(http, key, "Let us talk.", configure=CONFIGURE)
    session = await voice.session()
    text_id = await typed(voice, session, "Let us talk.")
    await session.says(ev.UserSaid(text="Let us talk.", turn=1, source="text", text_id=text_id))
    await answers(session, text_id, 1, "With pleasure.")
    conversation = (await first).json()["conversation"]
    sid, token, _ = conversation.split(".")
    _, public = await make_key(running, origins=(SHOP,))
    async with page(running, public, v1=True) as client:
        resumed = await client.resume({"sessionId": sid, "resumeToken": token}, 0)
        assert resumed["recovered"]
        assert (await client.until("text"))["text"] == "With pleasure."
        await client.say({"type": "output", "output": "audio"})

        async def speaks() -> bool:
            return any(isinstance(one.event, gateway.OutputRequested) for one in await voice.log.read(sid, writer="gateway"))

        await eventually(speaks)
    second = posts(http, key, "And in text again?", conversation=conversation)
    text_id = await typed(voice, session, "And in text again?")
    await session.says(ev.UserSaid(text="And in text again?", turn=2, source="text", text_id=text_id))
    await answers(session, text_id, 2, "Gladly.")
    assert (await second).json()["message"] == "Gladly."


async def test_what_the_agent_says_by_itself_comes_with_the_next_answer_once(http: httpx.AsyncClient, key: str, voice: StandIn) -> None:
    async def exchange(message: str, number: int, conversation: str, *told: str) -> dict[str, Any]:
        asked = posts(http, key, message, conversation=conversation)
        text_id = await typed(voice, session, message)
        for text in told:
            await session.says(ev.AgentSaid(text=text, turn=0, generation=90 + number, output="text"))
        await session.says(ev.UserSaid(text=message, turn=number, source="text", text_id=text_id))
        await answers(session, text_id, number, f"Answer {number}.")
        return dict((await asked).json())

    first = posts(http, key, "Start it.", configure=CONFIGURE)
    session = await voice.session()
    text_id = await typed(voice, session, "Start it.")
    await session.says(ev.UserSaid(text="Start it.", turn=1, source="text", text_id=text_id))
    await answers(session, text_id, 1, "It runs.")
    conversation = (await first).json()["conversation"]
    await session.says(ev.AgentSaid(text="Your export is done.", turn=0, generation=9, output="text"))
    second = await exchange("Anything new?", 2, conversation, "And your tea is ready.")
    assert (second["message"], second["news"]) == ("Answer 2.", ["Your export is done.", "And your tea is ready."])
    third = await exchange("And now?", 3, second["conversation"])
    assert (third["message"], third["news"]) == ("Answer 3.", [])
    many = [f"News {number}." for number in range(NEWS_LIMIT + 1)]
    fourth = await exchange("What else?", 4, third["conversation"], *many)
    assert fourth["news"] == many[1:]


@pytest.mark.parametrize(("pending", "words"), [("tell me a joke", "Gladly."), (None, "")])
async def test_a_wish_to_talk_is_told_to_the_client(
    http: httpx.AsyncClient, key: str, voice: StandIn, pending: str | None, words: str
) -> None:
    told = posts(http, key, "start voice mode", configure=CONFIGURE)
    session = await voice.session()
    text_id = await typed(voice, session, "start voice mode")
    await session.says(ev.UserSaid(text="start voice mode", turn=1, source="text", text_id=text_id))
    arguments = {} if pending is None else {"pending_request": pending}
    called = ev.ToolCalled(call_id="c1", name="start_voice_session", arguments=arguments, kind="browser", turn=1, deadline_ms=5_000)
    await session.says(called)

    async def answered() -> list[dict[str, Any]]:
        read = await voice.log.read(session.sid, writer="gateway")
        return [one.event.result for one in read if isinstance(one.event, gateway.BrowserCallAnswered)]

    await eventually(answered)
    data = {"voice_session_requested": True, "pending_request": pending, "message": "Voice session will be activated by client"}
    assert await answered() == [{"ok": True, "data": data}]
    await answers(session, text_id, 1, words)
    answer = (await told).json()
    assert (answer["startVoiceSession"], answer["pendingRequest"]) == (True, pending)
    assert answer["message"] == (words or "Let's switch to voice mode.")


async def test_an_answer_comes_as_a_stream_of_events_where_that_is_asked_for(http: httpx.AsyncClient, key: str, voice: StandIn) -> None:
    told = posts(http, key, "Hello", configure=CONFIGURE, headers={"Accept": "text/event-stream"})
    session = await voice.session()
    text_id = await typed(voice, session, "Hello")
    await session.says(ev.UserSaid(text="Hello", turn=1, source="text", text_id=text_id))
    await answers(session, text_id, 1, "Good day.")
    answer = await told
    assert answer.headers["content-type"].startswith("text/event-stream")
    parts = [part.split("\ndata: ") for part in answer.text.removesuffix("\n\n").split("\n\n")]
    assert [kind for kind, _ in parts] == ["event: text", "event: answer"]
    assert [json.loads(data).get("text", json.loads(data).get("message")) for _, data in parts] == ["Good day.", "Good day."]


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({}, 422, "body"),
        ({"message": " "}, 422, "message"),
        ({"message": "x" * 8_193}, 422, "message"),
        ({"message": "x", "conversation": "mine"}, 422, "conversation"),
        ({"message": "x", "configure": {"speed": 9}}, 422, "speed"),
        ({"message": "x", "other": 1}, 422, "body"),
    ],
)
async def test_a_request_that_is_wrong_names_its_field(
    http: httpx.AsyncClient, key: str, body: dict[str, Any], status: int, field: str
) -> None:
    answer = await http.post("/api/chat", json=body, headers={"Authorization": f"Bearer {key}"})
    assert (answer.status_code, answer.json()["field"]) == (status, field)


async def test_a_stranger_is_refused(http: httpx.AsyncClient, running: Running, key: str) -> None:
    assert (await http.post("/api/chat", json={"message": "x"})).status_code == 401
    foreign = {"Authorization": f"Bearer {key}", "Origin": "https://other.example"}
    assert (await http.post("/api/chat", json={"message": "x"}, headers=foreign)).status_code == 403
    over = {"message": "x", "conversation": f"{'0' * 32}.{'t' * 43}.7"}
    gone = await http.post("/api/chat", json=over, headers={"Authorization": f"Bearer {key}"})
    assert (gone.status_code, gone.json()["code"]) == (404, "NOT_FOUND")


async def test_a_session_that_does_not_answer_is_left_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voxbridge.services.gateway.platform.chat.OPEN_S", 0.05)
    left = asyncio.Event()

    class Sink:
        def text(self, payload: bytes) -> None:
            assert json.loads(payload)["type"] == "configure"

        def lost(self, code: int) -> None:
            left.set()

    async def serve(socket: ChatSocket) -> None:
        socket.attach(Sink(), None)  # type: ignore[arg-type]  # what an exchange needs of them
        await left.wait()

    with pytest.raises(VoxbridgeError) as refused:
        async for _ in Exchange(Asked(message="x")).run(serve):
            pass
    assert (refused.value.code, left.is_set()) == (Code.TIMED_OUT, True)


async def test_a_socket_that_is_not_read_is_closed_at_its_bound() -> None:
    full: list[str] = []

    class Sink:
        def overflowed(self) -> None:
            full.append("overflowed")

    socket = ChatSocket()
    socket.attach(Sink(), None)  # type: ignore[arg-type]  # what a full queue needs of them
    for _ in range(TOLD_LIMIT):
        socket.send_text(b'{"type":"state","state":"listening"}')
    assert full == []
    socket.send_text(b'{"type":"state","state":"listening"}')
    assert full == ["overflowed"]

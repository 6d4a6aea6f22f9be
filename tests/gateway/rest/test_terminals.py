"""Terminals through the gateway: REST, tickets, and sockets of each role, over a real service and real shells."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus

from tests.eventually import BOUND_S, eventually
from tests.gateway.conftest import Running
from tests.terminals.serving import Process, process
from voxbridge.services.terminals.folder import SCREENS
from voxbridge.services.terminals.tape import PART_BYTES
from voxbridge.shared.secrets import access_tokens
from voxbridge.shared.terminals import live

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
async def service(running: Running, nats_url: str, redis_url: str) -> AsyncIterator[Process]:
    with process(nats_url, redis_url) as service:

        async def answers() -> bool:
            return (await running.get("/api/terminals")).status_code == 200

        await eventually(answers)
        yield service


class Caller:
    """A caller of REST."""

    def __init__(self, running: Running) -> None:
        self._base = running.base

    async def ask(self, method: str, path: str = "", body: Any = None, status: int = 200, **headers: str) -> Any:
        """Ask, and return the answer; its status must be this one."""
        async with httpx.AsyncClient(base_url=self._base, trust_env=False, timeout=BOUND_S) as client:
            answer = await client.request(method, f"/api/terminals{path}", json=body, headers=headers)
        assert answer.status_code == status, answer.text
        return answer.json()

    async def start(self, definition: str = "bash", **fields: Any) -> str:
        """Start a terminal; return its id once it waits for a command."""
        card = await self.ask("POST", body={"definition": definition, **fields}, status=201)
        assert (await self.ask("POST", f"/{card['id']}/wait", {"until": "idle", "timeout_s": 20}))["met"]
        return str(card["id"])


@pytest.fixture
async def caller(running: Running, service: Process) -> Caller:
    return Caller(running)


class Socket:
    """A viewer's socket: the screens that it was sent, and messages in order."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.written: dict[int, bytes] = {}
        self.ends: dict[int, int] = {}

    async def say(self, kind: str, terminal: str, **fields: Any) -> None:
        """Send an order."""
        await self.socket.send(json.dumps({"type": kind, "id": terminal, **fields}))

    async def until(self, kind: str) -> dict[str, Any]:
        """Return the next message of a type; frames before it are taken."""
        while True:
            message = await asyncio.wait_for(self.socket.recv(), BOUND_S)
            if isinstance(message, bytes):
                self._take(message)
            elif (told := json.loads(message))["type"] == kind:
                return dict(told)

    async def shows(self, channel: int, text: bytes) -> None:
        """Wait until output of a channel holds a text."""
        while text not in self.written.get(channel, b""):
            message = await asyncio.wait_for(self.socket.recv(), BOUND_S)
            if isinstance(message, bytes):
                self._take(message)

    def _take(self, message: bytes) -> None:
        channel, frame = message[0], live.decode_output(message[1:])
        if frame.keyframe:
            self.written[channel] = b""
        else:
            assert frame.offset == self.ends[channel], "a gap"
        self.written[channel] += bytes(frame.data)
        self.ends[channel] = frame.offset + (0 if frame.keyframe else len(frame.data))


@asynccontextmanager
async def socket(running: Running, caller: Caller, role: str = "type", **fields: Any) -> AsyncIterator[Socket]:
    """Open a socket with a ticket."""
    ticket = await caller.ask("POST", "/tickets", {"role": role, **fields}, status=201)
    async with connect(f"ws://127.0.0.1:{running.port}/ws/terminals?ticket={ticket['ticket']}", compression=None) as connection:
        yield Socket(connection)


async def test_a_terminal_by_rest_from_its_start_to_its_end(caller: Caller) -> None:
    offers = (await caller.ask("GET", "/definitions"))["offers"]
    assert {"bash", "zsh", "claude", "codex", "gemini"} <= {one["definition"]["id"] for one in offers}
    bash = await caller.start(name="Work", workspace="site")
    sent = await caller.ask("POST", f"/{bash}/send", {"text": "echo $((6*7))"})
    assert (sent["outcome"], sent["proof"]) == ("submitted", "The shell says that a command began.")
    assert (await caller.ask("POST", f"/{bash}/wait", {"until": "idle"}))["met"]
    seen = await caller.ask("GET", f"/{bash}?view=command")
    assert (seen["text"], seen["exit_code"]) == ("42", 0)
    explained = await caller.ask("GET", f"/{bash}/explain")
    assert explained["state"]["phase"] == "done"
    assert [rung["source"] for rung in explained["rungs"] if rung["counts"]] == ["shell"]
    (card,) = (await caller.ask("GET"))["terminals"]
    assert (card["name"], card["workspace"], card["active"]) == ("Work", "site", True)
    assert (await caller.ask("POST", f"/{bash}/rename", {"name": "Später"}))["name"] == "Später"
    assert (await caller.ask("POST", f"/{bash}/key", {"key": "ctrl-c"}))["outcome"] == "typed"
    assert (await caller.ask("POST", f"/{bash}/resize", {"columns": 100, "rows": 30}))["columns"] == 100
    assert (await caller.ask("POST", f"/{bash}/restart", {}))["run"] == 2
    await caller.ask("DELETE", f"/{bash}")
    assert (await caller.ask("GET"))["terminals"] == []


async def test_what_happened_in_a_terminal_is_read_after_it_was_closed(caller: Caller) -> None:
    bash = await caller.start(name="Work")
    (card,) = (await caller.ask("GET"))["terminals"]
    await caller.ask("POST", f"/{bash}/send", {"text": "false"})
    assert (await caller.ask("POST", f"/{bash}/wait", {"until": "idle"}))["met"]
    await caller.ask("DELETE", f"/{bash}")

    async def is_closed() -> dict[str, Any]:
        (lived,) = (await caller.ask("GET", "/lives"))["lives"]
        return lived if "closed_ms" in lived else {}

    lived = await eventually(is_closed)
    assert (lived["life"], lived["terminal"], lived["name"], lived["by"]) == (card["life"], bash, "Work", "local")
    whole = await caller.ask("GET", f"/lives/{card['life']}")
    sentences = [one["sentence"] for one in whole["events"]]
    assert sentences[0].startswith("local started bash in /")
    assert "local sent a text of 5 bytes. The shell says that a command began." in sentences
    assert "It is done: exit code 1" in sentences or "It has failed: exit code 1" in sentences, sentences
    assert sentences[-1] == "local closed it."
    first = await caller.ask("GET", f"/lives/{card['life']}?limit=2")
    rest = await caller.ask("GET", f"/lives/{card['life']}?after={first['events'][-1]['seq']}")
    assert (first["more"], rest["more"]) == (True, False)
    assert first["events"] + rest["events"] == whole["events"]
    newest = await caller.ask("GET", f"/lives/{card['life']}?limit=2&newest=true")
    assert (newest["events"], newest["more"]) == (whole["events"][-2:], True)
    ends = whole["events"][-1]["at_ms"]
    shown = await caller.ask("GET", f"/lives/{card['life']}/screen?at_ms={ends}")
    assert (shown["life"], shown["columns"], shown["rows"]) == (card["life"], 120, 40)
    assert shown["at_ms"] <= ends
    assert " false\n" in shown["text"]
    begins = whole["events"][0]["at_ms"]
    await caller.ask("GET", f"/lives/{card['life']}/screen?at_ms={begins - 1_000}", status=404)


WRONG: Final[tuple[tuple[str, str, Any, int, str], ...]] = (
        ("POST", "", {}, 422, "definition"),
        ("POST", "", {"definition": "bash", "columns": 501}, 422, "columns"),
        ("POST", "", {"definition": "bash", "colour": "red"}, 422, "colour"),
        ("POST", "", {"definition": "no-such"}, 404, "definition"),
        ("POST", "", {"definition": "bash", "directory": "/no/such"}, 404, "directory"),
        ("POST", "/no-such/send", {"text": "ls"}, 404, "terminal"),
        ("POST", "/no-such/send", {}, 422, "text"),
        ("GET", "/no-such?lines=0", None, 422, "lines"),
        ("GET", "/lives?limit=501", None, 422, "limit"),
        ("GET", "/lives/no-such-life", None, 404, "life"),
        ("GET", f"/lives/no-such-life?after={2**64}", None, 422, "after"),
        ("GET", f"/lives/no-such-life/screen?at_ms={2**64}", None, 422, "at_ms"),
        ("GET", "/lives/no.such", None, 422, "life"),
        ("GET", "/lives/no-such-life/screen?at_ms=1", None, 404, "life"),
        ("GET", "/lives/no-such-life/screen?at_ms=-1", None, 422, "at_ms"),
        ("GET", "/lives/no-such-life/screen", None, 422, "at_ms"),
        ("GET", "/lives/no-such-life/cast", None, 404, "life"),
        ("GET", "/lives/no.such/cast", None, 422, "life"),
        ("POST", "/tickets", {"role": "root"}, 422, "role"),
        ("PUT", "/definitions/bash", {"title": "x", "kind": "shell", "command": ["x"]}, 403, "definition.id"),
    )  # fmt: skip


async def test_a_wrong_request_names_its_field(caller: Caller) -> None:
    for method, path, body, status, field in WRONG:
        assert (await caller.ask(method, path, body, status=status))["field"] == field, (method, path, body)


async def test_terminals_are_for_administrators_alone(running: Running, caller: Caller) -> None:
    secret = running.gateway.access.secret()
    terms = access_tokens.Terms(id="t", account="guest", modes=("local",), expires_s=4_000_000_000)
    token = access_tokens.sign(terms, secret)
    answer = await caller.ask("GET", status=403, Authorization=f"Bearer {token}")
    assert answer["code"] == "PERMISSION_DENIED"
    await caller.ask("POST", "/tickets", {}, status=403, Origin="https://evil.example")


async def test_keys_are_typed_and_shown_at_two_sockets(running: Running, caller: Caller) -> None:
    bash = await caller.start()
    async with socket(running, caller) as one, socket(running, caller, "view") as other:
        for viewer in (one, other):
            assert [card["id"] for card in (await viewer.until("cards"))["cards"]] == [bash]
            await viewer.say("attach", bash)
            assert (await viewer.until("attached"))["channel"] == 0
        await one.socket.send(b"\x00echo $((40+2))\r")
        for viewer in (one, other):
            await viewer.shows(0, b"42\r\n")
        await other.socket.send(b"\x00rm -rf x\r")
        refused = await other.until("error")
        assert (refused["code"], refused["field"], refused["about"]) == ("PERMISSION_DENIED", "role", bash)
        await one.say("take", bash)
        while not (await other.until("card"))["card"].get("held_by"):
            pass
    assert "rm -rf" not in (await caller.ask("GET", f"/{bash}"))["text"]

    async def is_given_back() -> bool:
        return not (await caller.ask("GET"))["terminals"][0].get("held_by")

    await eventually(is_given_back)


async def test_a_ticket_opens_one_socket_once(running: Running, caller: Caller) -> None:
    ticket = (await caller.ask("POST", "/tickets", {}, status=201))["ticket"]
    url = f"ws://127.0.0.1:{running.port}/ws/terminals"
    async with connect(f"{url}?ticket={ticket}", compression=None) as first:
        assert json.loads(await first.recv())["role"] == "view"
        for query in (f"?ticket={ticket}", "", "?ticket=wrong", f"?ticket={'x' * 65}", "?ticket=a&ticket=b"):
            with pytest.raises(InvalidStatus) as refused:
                await connect(url + query)
            assert refused.value.response.status_code == 401
    another = (await caller.ask("POST", "/tickets", {}, status=201))["ticket"]
    with pytest.raises(InvalidStatus) as foreign:
        await connect(f"{url}?ticket={another}", additional_headers={"Origin": "https://evil.example"})
    assert foreign.value.response.status_code == 403


async def test_a_ticket_for_a_workspace_shows_no_other(running: Running, caller: Caller) -> None:
    hidden, shown = await caller.start("sh", workspace="a"), await caller.start("sh", workspace="b")
    async with socket(running, caller, workspace="b") as viewer:
        assert [card["id"] for card in (await viewer.until("cards"))["cards"]] == [shown]
        await viewer.say("attach", hidden)
        assert (await viewer.until("error"))["code"] == "NOT_FOUND"


ORDERS: Final = {
    "view": ("attach", "detach", "see"),
    "type": ("size", "take", "give"),
    "control": ("start", "restart", "rename", "signal", "activate"),
    "admin": ("close",),
}
FIELDS: Final[dict[str, dict[str, Any]]] = {
    "size": {"columns": 90, "rows": 20},
    "rename": {"name": "Other"},
    "signal": {"signal": "INT"},
    "start": {"definition": "sh"},
}


@pytest.mark.parametrize("role", ORDERS)
async def test_a_role_has_its_orders_and_those_of_the_roles_before_it(running: Running, caller: Caller, role: str) -> None:
    here, elsewhere = await caller.start("sh", workspace="mine"), await caller.start("sh", workspace="theirs")
    above = [kind for other, kinds in ORDERS.items() if [*ORDERS].index(other) > [*ORDERS].index(role) for kind in kinds]
    async with socket(running, caller, role, workspace="mine") as one:
        await one.until("cards")
        for kind in above:
            await one.say(kind, here, **FIELDS.get(kind, {}))
            refused = await one.until("error")
            assert (refused["code"], refused["field"]) == ("PERMISSION_DENIED", "role"), kind
        for kind in (kind for kinds in ORDERS.values() for kind in kinds if kind not in (*above, "start")):
            await one.say(kind, elsewhere, **FIELDS.get(kind, {}))
            assert (await one.until("error"))["code"] == "NOT_FOUND", kind
    assert {card["id"]: card.get("run", 1) for card in (await caller.ask("GET"))["terminals"]} == {here: 1, elsewhere: 1}


async def test_terminals_are_started_steered_and_closed_over_a_socket(running: Running, caller: Caller) -> None:
    async with socket(running, caller, "admin", workspace="mine", by="Ada") as one:
        await one.until("cards")
        await one.socket.send(json.dumps({"type": "start", "definition": "sh", "name": "Build", "workspace": "theirs"}))
        card = (await one.until("card"))["card"]
        assert (card["name"], card["workspace"], card["definition"]) == ("Build", "mine", "sh")
        await one.say("rename", card["id"], name="Test")
        while (await one.until("card"))["card"]["name"] != "Test":
            pass
        await one.say("signal", card["id"], signal="HUP")
        while (await one.until("card"))["card"]["state"]["phase"] != "dead":
            pass
        await one.say("restart", card["id"])
        while (await one.until("card"))["card"].get("run", 1) != 2:
            pass
        await one.socket.send(json.dumps({"type": "start", "definition": "no-such"}))
        refused = await one.until("error")
        assert (refused["code"], refused["field"], refused["about"]) == ("NOT_FOUND", "definition", "")
        await one.say("close", card["id"])
        assert (await one.until("gone"))["id"] == card["id"]
    (lived,) = (await caller.ask("GET", "/lives"))["lives"]
    assert (lived["life"], lived["by"]) == (card["life"], "Ada")
    sentences = [one["sentence"] for one in (await caller.ask("GET", f"/lives/{card['life']}"))["events"]]
    assert sentences[-1] == "Ada closed it."


UNREADABLE: Final = ("", "{", '{"type":"fly","id":"x"}', '{"type":"attach","id":"../x"}', '{"type":"size","id":"x","columns":0,"rows":1}')


async def test_a_message_that_cannot_be_read_is_refused_and_the_socket_lives(running: Running, caller: Caller) -> None:
    async with socket(running, caller) as viewer:
        await viewer.until("cards")
        for message in (*UNREADABLE, b"", b"\x05x"):
            await viewer.socket.send(message)
            assert (await viewer.until("error"))["code"] == "INVALID_MESSAGE", message


async def test_who_attaches_in_a_flood_gets_screens_without_a_gap(running: Running, caller: Caller) -> None:
    bash = await caller.start()
    await caller.ask("POST", f"/{bash}/send", {"text": "seq 1 400000; echo the-$((1))-end"})
    async with socket(running, caller) as viewer:
        await viewer.until("cards")
        await viewer.say("attach", bash)
        await viewer.shows(0, b"the-1-end")


async def test_the_service_killed_its_viewers_see_on(running: Running, caller: Caller, service: Process) -> None:
    bash = await caller.start()
    async with socket(running, caller) as viewer:
        await viewer.until("cards")
        await viewer.say("attach", bash)
        await viewer.until("attached")
        service.stop()
        refused = await caller.ask("GET", status=503)
        assert "terminals service" in refused["message"]
        service.start()

        async def answers() -> bool:
            return (await running.get("/api/terminals")).status_code == 200

        await eventually(answers)
        await viewer.say("attach", bash)
        await viewer.until("attached")
        await viewer.socket.send(b"\x00echo $((40+2))\r")
        await viewer.shows(0, b"42\r\n")


PIECES: Final = 40
"""Megabytes of a recording: more than the sockets between the service and a reader who waits can hold."""


async def test_a_recording_is_read_whole_and_breaks_off_where_it_cannot_be_read_on(
    running: Running, caller: Caller, service: Process
) -> None:
    """Each of its pieces is asked for in several parts. When the service is killed, who reads must not take what came for the whole."""
    life, begun_ms = "work-1f2e3d-0", time.time_ns() // 1_000_000
    folder = service.folder / SCREENS / life
    folder.mkdir(parents=True)
    header = b'{"version":3,"term":{"cols":80,"rows":24}}\n'
    event = json.dumps([0.001, "o", "x" * 1_000]).encode() + b"\n"
    events = 1 + 2 * PART_BYTES // len(event)
    for number in range(PIECES):
        (folder / f"{begun_ms + number * 2_000:015d}.cast").write_bytes(header + event * events)
    async with (
        httpx.AsyncClient(base_url=running.base, trust_env=False, timeout=BOUND_S) as client,
        client.stream("GET", f"/api/terminals/lives/{life}/cast") as answer,
    ):
        lines = [json.loads(line) async for line in answer.aiter_lines()]
    assert (lines[0]["version"], len(lines)) == (3, 1 + PIECES * events)
    assert {text for _, _, text in lines[1:]} == {"x" * 1_000}
    assert round(sum(interval for interval, _, _ in lines[1:])) == 2 * (PIECES - 1) + 1

    async def read_on() -> None:
        async with (
            httpx.AsyncClient(base_url=running.base, trust_env=False, timeout=BOUND_S) as client,
            client.stream("GET", f"/api/terminals/lives/{life}/cast") as answer,
        ):
            parts = answer.aiter_bytes()
            await anext(parts)
            service.stop()
            async for _ in parts:
                pass

    with pytest.raises(httpx.RemoteProtocolError, match="incomplete"):
        await read_on()

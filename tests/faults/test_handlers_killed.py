"""kill -9 of gateway, voice workers, executor and sandboxes while calls of a page's handler are held before and after each append, and in
the request that is their effect. The server outside counts at most one request of each call, and what is told of a call is true."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final, NamedTuple

import httpx
import psutil
import pytest

from tests.eventually import eventually
from tests.faults import told
from tests.faults.caller import Caller
from tests.faults.installation import WORKERS, Installation, installed
from tests.faults.told import Wired
from tests.faults.wire import Stop
from tests.replayed import of_session
from tests.tools.sandbox.servers import Seen, Server, answer, serving
from voxbridge.shared.errors import Code
from voxbridge.shared.events import tools
from voxbridge.shared.events import voice as ev

pytestmark = pytest.mark.timeout(300)
SHOP: Final = "http://127.0.0.1:5173"
SECRET: Final = "sk-of-the-shop-0123456789"
EFFECT: Final = "effect"
APPENDS: Final = (("voice", "tool.called"), ("tools", "tool.started"), ("tools", "tool.completed"), ("voice", "tool.delivered"))
PLACES: Final = [EFFECT, *(f"{when} {writer} {event}" for writer, event in APPENDS for when in ("before", "after"))]
SERVICES: Final = {"gateway": ("gateway",), "tools": ("tools",), "voice": WORKERS}
VICTIMS: Final = (*SERVICES, "sandboxes")
ENDS: Final = tools.ToolCompleted | tools.ToolFailed | tools.ToolInterrupted


class Case(NamedTuple):
    """A call of a handler in a session of its own, and the place at which it is held."""

    place: str
    path: str
    caller: Caller


class Api:
    """The server that handlers ask. A request is counted, and answered at once or when its path is released."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._released: dict[str, asyncio.Event] = {}

    def hold(self, path: str) -> None:
        """Answer no request of a path until it is released."""
        released = self._released[path] = asyncio.Event()

        async def reply(_: Seen) -> bytes:
            await released.wait()
            return answer("charged")

        self._server.replies[path] = reply

    def release(self) -> None:
        """Answer everything."""
        for released in self._released.values():
            released.set()

    def requests(self, path: str) -> int:
        """Return how many requests of a path came, each with the secret."""
        found = [seen for seen in self._server.seen if seen.path == path]
        assert all(seen.headers["authorization"] == f"Bearer {SECRET}" for seen in found)
        return len(found)


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as found:
        yield found


@pytest.fixture
async def wired(server: Server, tmp_path: Path) -> AsyncIterator[tuple[Installation, Wired]]:
    async with AsyncExitStack() as leaving:
        servers = Wired(tmp_path, ("tools", "voice"), leaving)
        async with installed(tmp_path, servers, fetch_hosts=f"127.0.0.1:{server.port}") as there:
            there.google.reply = told.gemini
            yield there, servers


async def key_of(there: Installation, server: Server) -> str:
    """Return the text of a key of the shop, whose secret may be sent to the server."""
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{there.config.port}") as client:
        secret = {"value": SECRET, "rule": {"hosts": [server.url]}}
        (await client.put("/api/secrets/test/SHOP", params={"account": "shop"}, json=secret)).raise_for_status()
        wishes = {"account": "shop", "mode": "gemini", "origins": [SHOP], "limits": {"concurrent": 100}}
        return str((await client.post("/api/keys", json=wishes)).raise_for_status().json()["text"])


async def begins(case: Case, server: Server, api: Api, servers: Wired) -> None:
    """Configure a session and make its call, which is then held at its place."""
    handler = f"""async ({{ folder }}, ctx) => {{
        const headers = {{ Authorization: `Bearer ${{ctx.secrets.SHOP}}` }};
        const answer = await ctx.fetch("{server.url}" + folder, {{ method: "POST", headers }});
        return {{ said: await answer.text() }};
    }}"""
    tool = {"name": "buy", "description": "Buy an article", "parameters": {"folder": "string"}, "handler": handler}
    server.replies[case.path] = answer("charged")
    await case.caller.start(type="configure", instructions="You sell.", tools=[tool])
    await case.caller.until("provider", status="connected")
    if case.place == EFFECT:
        api.hold(case.path)
    else:
        when, service, event = case.place.split()
        servers.wires[service].stop_at(case.caller.sid, Stop("before" if when == "before" else "after", event))
    await case.caller.types(f"buy {case.path}")


def is_held(case: Case, api: Api, servers: Wired) -> bool:
    if case.place == EFFECT:
        return api.requests(case.path) == 1
    return any(wire.holds(case.caller.sid) for wire in servers.wires.values())


async def kill(there: Installation, victim: str) -> None:
    """Kill every process of this kind."""
    if victim == "sandboxes":
        for process in psutil.Process(there.pid("tools")).children(recursive=True):
            process.kill()
    for name in SERVICES.get(victim, ()):
        await there.kill(name)


@pytest.mark.parametrize("victim", VICTIMS)
async def test_a_request_of_a_handler_is_made_once_whatever_is_killed(
    victim: str, server: Server, wired: tuple[Installation, Wired]
) -> None:
    there, servers = wired
    api, key = Api(server), await key_of(there, server)
    for name in SERVICES.get(victim, ()):
        await there.stand_by(name)
    async with AsyncExitStack() as leaving:
        cases = [
            Case(place, f"/{number}", Caller(there.config.port, path=f"/session?key={key}", origin=SHOP))
            for number, place in enumerate(PLACES)
        ]
        for case in cases:
            leaving.push_async_callback(case.caller.stop)
            await begins(case, server, api, servers)
        await eventually(lambda: all(is_held(case, api, servers) for case in cases))
        await kill(there, victim)
        api.release()
        await there.start(*SERVICES.get(victim, ()))
        for case in cases:
            for wire in servers.wires.values():
                wire.release(case.caller.sid)
        for case in cases:
            await check(there, api, case, victim)


async def check(there: Installation, api: Api, case: Case, victim: str) -> None:
    """Check that a call had one end, which its page was told once, and that it agrees with what the server counted."""
    await case.caller.when(lambda: told.is_over(case.caller))
    await case.caller.until("turn_complete")
    log = await there.events(case.caller.sid)
    (called,) = [one.event.call_id for one in log if isinstance(one.event, ev.ToolCalled)]
    (end,) = [one.event for one in log if isinstance(one.event, ENDS)]
    requests = api.requests(case.path)
    assert told.page(case.caller)["calls"] == {called: 1}, case
    assert SECRET not in str(log)
    if isinstance(end, tools.ToolCompleted):
        assert (end.result, requests) == ({"said": "charged"}, 1), case
    else:
        assert victim in ("tools", "sandboxes"), (case, end)
        assert case.place in _UNKNOWN[victim], (case, end)
        assert isinstance(end, tools.ToolInterrupted) or end.error.code == Code.INTERRUPTED, case
        assert requests <= 1, case
    assert not list(of_session(log, ("tools", "voice")))


_UNKNOWN: Final = {
    "tools": (EFFECT, "before tools tool.started", "after tools tool.started", "before tools tool.completed"),
    "sandboxes": (EFFECT,),
}
"""Places at which it is not known whether the request was made: such a call is interrupted, and not made again. An executor decides in its
journal to start a call, so one that died before `tool.started` may have started it for all that its successor knows."""

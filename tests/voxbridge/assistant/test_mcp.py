"""`voxbridge mcp` as coding assistants use it: the SDK's own client starts it and asks over standard input and output."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.gateway.conftest import Running, running, serve
from tests.gateway.door.test_access import admin, guarded, token
from tests.long_call import Call
from voxbridge.shared.bus import subjects
from voxbridge.shared.clock import SystemClock
from voxbridge.shared.events import gateway, voice
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.log.writer import SessionWriter

__all__ = ["guarded", "running", "serve"]

BEGAN_US = 1_790_000_000_000_000
NAMES = {
    "list_sessions",
    "read_session",
    "session_events",
    "session_state",
    "session_latencies",
    "explain_silence",
    "replay_session",
    "list_functions",
    "call_function",
}


@asynccontextmanager
async def assistant(door: Running, key: str, *, mode: str = "auto") -> AsyncIterator[Client]:
    """Start the server with a key, as an editor does."""
    env = {"VOXBRIDGE_TOKEN": key, "VOXBRIDGE_URL": door.base}
    server = StdioServerParameters(command=sys.executable, args=["-m", "voxbridge", "mcp"], env=env)
    async with Client(stdio_client(server), mode=mode) as client:
        yield client


async def tell(client: Client, name: str, /, **arguments: Any) -> dict[str, Any]:
    """Call a tool; return its result, or its error with `failed`."""
    result = await client.call_tool(name, arguments)
    told = dict(result.structured_content or {})
    return {**told, "failed": True} if result.is_error else told


async def call_of(door: Running, *, turns: int = 12, account: str = "local") -> str:
    """Put a call into the log that a worker would have written; return its id."""
    log = door.gateway.log
    first = (await log.js.stream_info(subjects.EVENT_STREAM)).state.last_seq + 1
    call = Call(f"{first:032x}", turns=turns, began_us=BEGAN_US + first, first=first, account=account)
    await call.write(log)
    await door.gateway.store.session_opened(call.sid, BEGAN_US + first)
    return call.sid


async def silent(door: Running, *events: Any, seconds: int = 9) -> str:
    """Put a call into the log in which the user asked, these events came, and nothing was heard for some seconds."""
    sid, now = new_session_id(), SystemClock().now_us()
    door_, worker = SessionWriter(door.gateway.log, sid, "gateway", stem="c", fenced=False), SessionWriter(door.gateway.log, sid, "voice")
    await door_.append(gateway.SessionRequested(mode="local"), ts=now, cause=None)
    at = now
    for event in (voice.SessionStarted(mode="local", model="m", voice="v", output="audio"), *events):
        at += 500_000
        await worker.append(event, ts=at, cause=None)
    await worker.append(voice.SessionEnded(reason="client"), ts=at + seconds * 1_000_000, cause=None)
    await door.gateway.store.session_opened(sid, now)
    return sid


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_of_either_generation_is_offered_the_tools(guarded: Running, mode: str) -> None:
    async with assistant(guarded, admin(guarded), mode=mode) as client:
        listed = await client.list_tools()
    assert {tool.name for tool in listed.tools} == NAMES
    assert [tool.name for tool in listed.tools if tool.annotations and not tool.annotations.read_only_hint] == ["call_function"]
    assert all(tool.description and tool.input_schema["type"] == "object" for tool in listed.tools)


async def test_a_session_is_listed_read_and_timed(guarded: Running) -> None:
    sid = await call_of(guarded)
    async with assistant(guarded, admin(guarded)) as client:
        assert [one["id"] for one in (await tell(client, "list_sessions"))["sessions"]] == [sid]
        read = await tell(client, "read_session", session_id="last")
        latencies = await tell(client, "session_latencies", session_id=sid)
        events = await tell(client, "session_events", session_id=sid, limit=20)
    assert (read["id"], read["transcript"][0]["role"]) == (sid, "user")
    assert len(latencies["turns"]) >= 10
    assert latencies["ms"]["llm_first_token"]["p50"] <= latencies["ms"]["llm_first_token"]["p95"]
    assert events["events"]
    assert not any(one["type"].endswith(".journal") for one in events["events"])


async def test_a_recorded_call_is_replayed_and_its_differences_are_told(guarded: Running) -> None:
    sid = await call_of(guarded)
    async with assistant(guarded, admin(guarded)) as client:
        same = await tell(client, "replay_session", session_id=sid)
        changed = new_session_id()
        await _copied(guarded, sid, changed)
        other = await tell(client, "replay_session", session_id=changed)
    assert (same["same"], same["services"]["voice"]["differences"]) == (True, [])
    assert other["same"] is False
    assert any("agent.said" in one for one in other["services"]["voice"]["differences"])


async def _copied(door: Running, sid: str, to: str) -> None:
    """Copy a call into another session, with other words of the agent than its inputs led to."""
    log = door.gateway.log
    writers = {name: SessionWriter(log, to, name) for name in ("gateway", "voice", "tools")}
    positions: dict[int, int] = {}
    async for one in log.read_all(sid):
        event: Any = one.event
        if isinstance(event, voice.AgentSaid):
            event = voice.AgentSaid(text="Something else.", turn=event.turn, generation=event.generation)
        if one.type == "voice.journal":
            import msgspec

            inputs = tuple(
                msgspec.structs.replace(taken, seq=positions.get(taken.seq or 0)) if taken.seq else taken for taken in event.inputs
            )
            event = msgspec.structs.replace(event, inputs=inputs)
        cause = positions.get(one.cause, one.cause) if isinstance(one.cause, int) else one.cause
        positions[one.seq] = await writers[one.writer].append(event, ts=one.ts, cause=cause)


SAID = voice.UserSaid(text="What is the weather?", turn=1, source="speech")
FAILED = voice.ProviderFailed(
    part="llm", error=voice.Failure(code="PROVIDER_REFUSED", message="The key was refused."), turn=1, handled=False
)
CALLED = voice.ToolCalled(call_id="c1", name="slow_lookup", arguments={}, kind="server", turn=1, deadline_ms=30_000)


@pytest.mark.parametrize(
    ("events", "cause", "says"),
    [
        ((SAID, CALLED), "function", "slow_lookup"),
        ((SAID, FAILED), "provider_error", "The key was refused."),
        ((), "no_audio_in", "No audio and no text came in"),
    ],
    ids=["a function hangs", "the provider failed", "nothing came in"],
)
async def test_why_was_this_call_silent(guarded: Running, events: tuple[Any, ...], cause: str, says: str) -> None:
    sid = await silent(guarded, *events)
    async with assistant(guarded, admin(guarded)) as client:
        told = await tell(client, "explain_silence", session_id=sid[:8])
    assert cause in [one["cause"] for one in told["findings"]], told
    assert says in " ".join(one["why"] for one in told["findings"])
    assert says in told["answer"] or len(told["findings"]) > 3
    lines = told["since_the_last_words"]
    assert lines[0]["type"] == ("user.said" if events else "session.requested")
    assert lines[-1]["type"] == "session.ended"


async def test_a_refused_session_and_a_limit_are_told(guarded: Running) -> None:
    log, now = guarded.gateway.log, SystemClock().now_us()
    found = {}
    for code, message in (("PROVIDER_UNAVAILABLE", "no provider for mode 'claude'."), ("OVERLOADED", "A call has 9 events at most here.")):
        sid = new_session_id()
        await SessionWriter(log, sid, "gateway").append(gateway.SessionRequested(mode="local"), ts=now, cause=None)
        ended = voice.SessionEnded(reason="refused", error=voice.Failure(code=code, message=message))
        await SessionWriter(log, sid, "voice").append(ended, ts=now, cause=None)
        async with assistant(guarded, admin(guarded)) as client:
            found[code] = await tell(client, "explain_silence", session_id=sid)
    assert [one["cause"] for one in found["PROVIDER_UNAVAILABLE"]["findings"]] == ["no_audio_in", "restricted"]
    assert [one["cause"] for one in found["OVERLOADED"]["findings"]] == ["no_audio_in", "limit"]


async def test_the_key_of_an_account_sees_nothing_of_another_and_may_do_no_more_than_over_rest(guarded: Running) -> None:
    own, strange = await call_of(guarded, account="ada"), await call_of(guarded, account="bob")
    async with assistant(guarded, token(guarded, account="ada")) as client:
        assert [one["id"] for one in (await tell(client, "list_sessions"))["sessions"]] == [own]
        assert (await tell(client, "read_session", session_id=own))["account"] == "ada"
        for name in ("read_session", "session_events", "session_state", "session_latencies", "explain_silence", "replay_session"):
            refused = await tell(client, name, session_id=strange)
            assert (refused["failed"], refused["code"]) == (True, "NOT_FOUND" if name != "replay_session" else refused["code"]), name
            assert "bob" not in str(refused)
        assert (await tell(client, "read_session", session_id=strange[:31]))["code"] == "NOT_FOUND"
        assert (await tell(client, "replay_session", session_id=own))["code"] == "PERMISSION_DENIED"
        called = await tell(client, "call_function", name="calculate", arguments={"expression": "1+1"})
        assert (called["failed"], called["code"]) == (True, "PERMISSION_DENIED")


async def test_a_wrong_key_and_a_gateway_that_is_away_are_one_sentence_each(guarded: Running) -> None:
    async with assistant(guarded, "no-such-key") as client:
        refused = await tell(client, "list_sessions")
    assert (refused["failed"], refused["code"]) == (True, "UNAUTHENTICATED")
    guarded.base = "http://127.0.0.1:9"
    async with assistant(guarded, "any") as client:
        away = await tell(client, "list_sessions")
    assert (away["code"], away["message"].startswith("No gateway answers at http://127.0.0.1:9 ")) == ("UNAVAILABLE", True)


async def run(*arguments: str, input: bytes = b"", **env: str) -> tuple[int, bytes, str]:
    made = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "voxbridge", "mcp", *arguments),
        env={"PATH": "/usr/bin", **env},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await made.communicate(input)
    return made.returncode or 0, out, err.decode()


async def test_without_a_key_it_ends_with_one_sentence() -> None:
    code, out, err = await run()
    assert (code, out, len(err.strip().splitlines())) == (2, b"", 1)
    assert "VOXBRIDGE_TOKEN" in err


async def test_lines_that_are_no_messages_and_too_long_ones_are_refused_and_the_next_is_answered() -> None:
    ping = b'{"jsonrpc": "2.0", "id": 7, "method": "ping"}\n'
    long = b'{"x": "' + b"a" * (1024 * 1024) + b'"}\n'
    code, out, _ = await run(input=b"nonsense\n" + long + b"\xff\xfe\n" + ping, VOXBRIDGE_TOKEN="t")
    lines = out.splitlines()
    assert (code, len(lines)) == (0, 4)
    assert [b'"error"' in one for one in lines] == [True, True, True, False]
    assert lines[-1] == b'{"jsonrpc":"2.0","id":7,"result":{}}'

"""The calls in the log, from the command line: without a running product, with one, and live."""

from __future__ import annotations

import asyncio
import stat
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result
from nats.aio.msg import Msg
from nats.micro.request import ERROR_CODE_HEADER

from tests.eventually import BOUND_S
from tests.recorded_calls import a_call, file_of
from voxbridge.cli import cli
from voxbridge.installation import runtime
from voxbridge.installation.preflight import FolderLock
from voxbridge.sessions import move, report
from voxbridge.shared import events
from voxbridge.shared.bus.connection import EVENTS_PENDING, close_nats, connect_nats
from voxbridge.shared.config import Config
from voxbridge.shared.embedded.nats_server import NatsServer
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events import tools
from voxbridge.shared.events import voice as ev
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.writer import SessionWriter

SID = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def product(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Config]:
    """A data folder with a server as `voxbridge up` runs it, and one call in its log."""
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("VOXBRIDGE_DATA_DIR", str(folder))
    for name in ("VOXBRIDGE_NATS_URL", "VOXBRIDGE_REDIS_URL"):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "call.jsonl"
    file.write_bytes(file_of(a_call(2)))
    assert run("import", str(file)).exit_code == 0
    lock = FolderLock.take(folder, "http://127.0.0.1:1")
    with NatsServer(folder / "nats", sync_interval="1m") as server:
        config = replace(Config(), data_dir=folder, nats_url=server.url)
        runtime.tell(config, "http://127.0.0.1:1")
        yield config
        runtime.forget(folder)
    lock.release()


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments)


def test_the_list_has_what_the_log_says_of_each_call(product: Config) -> None:
    shown = run("sessions", "ls").stdout
    for words in (SID, "local", "client", "0:28"):
        assert words in shown
    (one,) = [msgspec.json.decode(line) for line in run("sessions", "ls", "--json").stdout.splitlines()]
    assert (one["id"], one["state"], one["reason"], one["turns"]) == (SID, "ended", "client", 6)


def test_a_call_is_shown_with_its_words_its_times_its_tools_and_its_workers(product: Config) -> None:
    shown = run("sessions", "show", SID[:6]).stdout
    for words in (
        "what is the weather like",
        "█",
        "end of turn",
        "current_time",
        "12:30",
        "interrupted",
        "voice-1 holds",
        "term 1",
        "ended: client",
    ):
        assert words in shown
    told = msgspec.json.decode(run("sessions", "show", SID, "--json").stdout)
    assert told["events"] == len(a_call(2))
    assert {"user", "agent", "turn", "tool", "worker", "end"} <= {row["kind"] for row in told["rows"]}


def test_a_call_says_why_it_was_silent_for_people_and_for_programs(product: Config) -> None:
    (listed, *_) = (msgspec.json.decode(line) for line in run("sessions", "ls", "--json").stdout.splitlines())
    shown = run("sessions", "why", listed["id"])
    assert shown.exit_code == 0
    told = [msgspec.json.decode(line) for line in run("sessions", "why", listed["id"], "--json").stdout.splitlines()]
    assert all({"cause", "why", "todo", "from_ms", "to_ms"} <= set(one) for one in told)
    assert all(one["why"] in shown.stdout for one in told) if told else "longer than 2.5 s" in shown.stdout
    assert run("sessions", "why", "f" * 32).exit_code != 0


def test_gaps_failures_and_clients_are_told() -> None:
    failure = ev.Failure(code="TIMED_OUT", message="It took too long.")
    told = {
        ev.SessionRestored(worker="w2", term=2, how="reseeded", gap_ms=3_100, lost=("a call",)): ("worker", "gap of 3100 ms; lost: a call"),
        ev.SessionRestored(how="handle", gap_ms=210): ("model", "the model goes on (handle) after a gap of 210 ms; nothing lost"),
        ev.SessionStarted(mode="local", model="m", voice="v", output="audio", agent="triage", pipeline="p"): (
            "handoff",
            "triage begins in",
        ),
        events.gateway.HandoffRequested(target="closer"): ("handoff", "an operator asks for closer"),
        ev.HandoffStarted(source="triage", target="advisor", reason="a loan"): ("handoff", "triage hands over to advisor"),
        ev.HandoffCompleted(source="triage", target="advisor", voice="v", model="m", ms=9, history="log"): ("handoff", "after 9 ms (log)"),
        ev.ProviderConnected(provider="gemini", model="m", agent="triage", resumed_by="seed"): ("model", "gemini is connected"),
        ev.ProviderLost(provider="gemini", model="m", close_code=1006, error=failure): ("failure", "gemini was lost: It took too long."),
        ev.ProviderGoAway(provider="gemini", model="m", time_left_ms=9_000): ("model", "in 9000 ms"),
        ev.AgentSaid(text="Hello.", turn=1, generation=1, agent="triage"): ("agent", "triage: Hello."),
        ev.SessionReleased(worker="w1", term=1, reason="drain"): ("worker", "let go"),
        ev.ProviderFailed(part="tts", error=failure, turn=2): ("failure", "It took too long."),
        tools.ToolInterrupted(call_id="c", name="pay"): ("failure", "not known"),
        events.gateway.ClientConnected(gateway="g", connection="c", resumed=True): ("client", "resumed"),
    }
    for event, (kind, words) in told.items():
        recorded = events.Recorded(seq=1, id="", sid=SID, ts=5, cause=None, writer="voice", visible=True, type="", v=1, event=event)
        row = report.row(recorded, 0)
        assert row is not None
        assert (row.kind, words in row.text) == (kind, True)


def test_what_was_said_in_a_turn_that_went_on_after_a_pause_is_one_row() -> None:
    parts = [
        ev.UserSaid(text=text, turn=2, source="speech", continues=number > 0)
        for number, text in enumerate(("And so,", "my fellow,", "ask not."))
    ]
    log = [
        events.Recorded(seq=seq, id="", sid=SID, ts=seq, cause=None, writer="voice", visible=True, type="", v=1, event=event)
        for seq, event in enumerate([ev.UserSaid(text="Hello?", turn=1, source="speech"), *parts], 1)
    ]
    assert [(row.seq, row.text, row.note) for row in report.rows(log)] == [(1, "Hello?", ""), (2, "And so, my fellow, ask not.", "")]
    assert [row.text for row in report.rows(log[2:])] == ["my fellow, ask not."], "also where the log let go of the first words"
    row = report.row(log[2], 0)
    assert row is not None
    assert (row.text, row.note) == ("my fellow,", "goes on")


def test_what_was_said_cannot_write_control_characters_to_a_terminal(product: Config, tmp_path: Path) -> None:
    log = a_call(1)
    at = next(number for number, one in enumerate(log) if isinstance(one.event, ev.UserSaid))
    log[at] = msgspec.structs.replace(log[at], event=ev.UserSaid(text="\x1b]0;owned\x07[red]x", turn=1, source="text"))
    file = tmp_path / "bad.jsonl"
    file.write_bytes(file_of(log))
    run("import", str(file), "--as", "f" * 32)
    shown = run("sessions", "show", "f" * 32).stdout
    assert "[red]x" in shown
    assert not {"\x1b", "\x07"} & set(shown)


def test_an_unknown_id_is_answered_with_the_nearest(product: Config) -> None:
    for wanted in (SID[:-1] + "e", "0129", "zzz"):
        found = run("sessions", "show", wanted)
        assert isinstance(found.exception, VoxbridgeError)
        assert (found.exception.code, SID in found.exception.message) == ("NOT_FOUND", True)


def test_a_beginning_that_several_calls_have_is_not_enough(product: Config, tmp_path: Path) -> None:
    assert run("import", str(tmp_path / "call.jsonl"), "--as", SID[:8] + "e" * 24).exit_code == 0
    found = run("sessions", "show", SID[:8])
    assert isinstance(found.exception, VoxbridgeError)
    assert "2 sessions have an id that begins with" in found.exception.message
    assert SID in run("sessions", "show", SID[:9]).stdout


def test_the_product_is_found_by_its_folder_and_by_its_url(product: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert SID in run("sessions", "ls").stdout
    monkeypatch.setenv("VOXBRIDGE_DATA_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("VOXBRIDGE_NATS_URL", product.nats_url)
    assert SID in run("sessions", "ls").stdout
    assert not (tmp_path / "elsewhere").exists()


def test_the_file_that_tells_where_the_servers_are_is_its_owners_only(product: Config) -> None:
    assert stat.S_IMODE((product.data_dir / "runtime.json").stat().st_mode) == 0o600


def test_a_file_that_a_crash_left_behind_misleads_nobody(product: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = tmp_path / "left"
    monkeypatch.setenv("VOXBRIDGE_DATA_DIR", str(left))
    assert run("import", str(tmp_path / "call.jsonl")).exit_code == 0
    runtime.tell(replace(product, data_dir=left, nats_url="nats://127.0.0.1:1"), "http://127.0.0.1:1")
    assert SID in run("sessions", "ls").stdout
    assert runtime.told(left) is None


async def test_a_call_is_followed_as_it_happens_until_it_ends(product: Config) -> None:
    client = await connect_nats(product.nats_url, "test", pending=EVENTS_PENDING)
    sid = "a" * 32
    writer = SessionWriter(Log(client), sid, "gateway", stem="c", fenced=False)
    voice = SessionWriter(Log(client), sid, "voice")
    await writer.append(events.gateway.SessionRequested(mode="local"), ts=1_000_000, cause=None)
    following = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "voxbridge", "sessions", "tail", sid, "--json", stdout=asyncio.subprocess.PIPE
    )
    assert following.stdout is not None
    async with asyncio.timeout(BOUND_S):
        first = msgspec.json.decode(await following.stdout.readline())
        await voice.append(ev.UserSaid(text="hello", turn=1, source="text"), ts=2_000_000, cause=1)
        second = msgspec.json.decode(await following.stdout.readline())
        await voice.append(ev.SessionEnded(reason="client"), ts=3_000_000, cause=1)
        third = msgspec.json.decode(await following.stdout.readline())
        assert await following.wait() == 0
    assert [one["type"] for one in (first, second, third)] == ["session.requested", "user.said", "session.ended"]
    assert second["data"]["text"] == "hello"
    await close_nats(client)


async def test_a_call_is_moved_and_it_is_told_from_where_to_where_and_how_long_it_paused(product: Config) -> None:
    client = await connect_nats(product.nats_url, "test", pending=EVENTS_PENDING)
    sid = "b" * 32
    writer = SessionWriter(Log(client), sid, "gateway", stem="c", fenced=False)
    voice = SessionWriter(Log(client), sid, "voice")
    await writer.append(events.gateway.SessionRequested(mode="local"), ts=1_000_000, cause=None)
    await voice.append(ev.SessionOwned(worker="voice-1", term=1), ts=1_000_000, cause=None)
    nobody = await asyncio.to_thread(run, "sessions", "move", sid)
    assert isinstance(nobody.exception, VoxbridgeError)
    assert (nobody.exception.code, nobody.exception.message) == ("UNAVAILABLE", "No voice worker is running.")

    asked: list[dict[str, str]] = []

    async def give_up(message: Msg) -> None:
        asked.append(msgspec.json.decode(message.data))
        term = len(asked)
        await voice.append(ev.SessionReleased(worker="voice-1", term=term, reason="move"), ts=2_000_000, cause=None)
        await message.respond(b'{"from": "voice-1", "to": "voice-2"}')
        await voice.append(ev.SessionOwned(worker="voice-2", term=term + 1), ts=2_040_000, cause=None)
        restored = ev.SessionRestored(worker="voice-2", term=term + 1, how="reseeded", gap_ms=20)
        await voice.append(restored, ts=2_042_000, cause=None)

    await client.subscribe("vx.svc.voice.move", cb=give_up)
    await client.flush()
    shown = await asyncio.to_thread(run, "sessions", "move", sid[:5], "--to", "voice-2")
    assert shown.stdout == f"{sid}: from voice-1 to voice-2, a pause of 42 ms\n"
    told = msgspec.json.decode((await asyncio.to_thread(run, "sessions", "move", sid, "--json")).stdout)
    assert told == {"session": sid, "from": "voice-1", "to": "voice-2", "pause_ms": 42}
    assert asked == [{"sid": sid, "to": "voice-2"}, {"sid": sid, "to": ""}]
    await close_nats(client)


async def test_a_move_that_is_refused_says_why_and_which_workers_there_are(product: Config) -> None:
    client = await connect_nats(product.nats_url, "test", pending=EVENTS_PENDING)
    sid = "c" * 32
    writer = SessionWriter(Log(client), sid, "gateway", stem="c", fenced=False)
    await writer.append(events.gateway.SessionRequested(mode="local"), ts=1_000_000, cause=None)
    full = VoxbridgeError(Code.OVERLOADED, "No other voice worker has room; nothing was moved.", retry_after_ms=5_000)

    async def refuse(message: Msg) -> None:
        headers = {ERROR_CODE_HEADER: full.code.value}
        await client.publish(message.reply, msgspec.json.encode(full.as_dict()), headers=headers)

    async def describe(message: Msg) -> None:
        figures = {"sessions": 3, "room": 0, "loop_lag_p95_ms": 1.25, "cpu_share": 0.5, "events_appended": 9}
        await message.respond(msgspec.json.encode({"metadata": {"process": "voice-1"}, "endpoints": [{"data": figures}]}))
        for odd in (b"not JSON", b"[]", b"{}", b'{"metadata": {"process": 1}, "endpoints": [{"data": {}}]}'):
            await message.respond(odd)

    await client.subscribe("vx.svc.voice.move", cb=refuse)
    await client.subscribe("$SRV.STATS.voxbridge-voice", cb=describe)
    await client.flush()
    refused = (await asyncio.to_thread(run, "sessions", "move", sid)).exception
    assert isinstance(refused, VoxbridgeError)
    assert (refused.code, refused.retryable, refused.retry_after_ms) == ("OVERLOADED", True, 5_000)
    assert refused.message == f"{full.message} Workers: voice-1 (room for 0)."
    shown = (await asyncio.to_thread(run, "sessions", "workers")).stdout
    assert [one.split() for one in shown.splitlines()][1] == ["voice-1", "3", "0", "1.2", "ms", "50%"]
    told = msgspec.json.decode((await asyncio.to_thread(run, "sessions", "workers", "--json")).stdout)
    assert told == {"process": "voice-1", "sessions": 3, "room": 0, "loop_lag_p95_ms": 1.25, "cpu_share": 0.5}
    await close_nats(client)


async def test_a_call_that_ends_or_stays_away_while_it_is_moved_is_told(product: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    client = await connect_nats(product.nats_url, "test", pending=EVENTS_PENDING)
    told = dict[str, VoxbridgeError]()
    for sid, after in {
        "d" * 32: [ev.SessionEnded(reason="client")],
        "e" * 32: [ev.SessionOwned(worker="voice-2", term=2)],
        "f" * 32: [],
    }.items():
        voice = SessionWriter(Log(client), sid, "voice")
        await voice.append(ev.SessionReleased(worker="voice-1", term=1, reason="move"), ts=1, cause=None)

        async def give_up(message: Msg, voice: SessionWriter = voice, after: list[events.Event] = after) -> None:  # type: ignore[assignment]
            for event in (ev.SessionReleased(worker="voice-1", term=1, reason="move"), *after):
                await voice.append(event, ts=2, cause=None)
            await message.respond(b"{}")

        monkeypatch.setattr(move, "RESTORED_S", 2.0 if after else 0.3)
        subscription = await client.subscribe("vx.svc.voice.move", cb=give_up)
        with pytest.raises(VoxbridgeError) as caught:
            await move.move(Log(client), sid)
        told[sid[0]] = caught.value
        await subscription.unsubscribe()
    assert [told[one].code for one in "def"] == ["CONFLICT", "TIMED_OUT", "TIMED_OUT"]
    assert "then ended (client)" in told["d"].message
    assert "voice-2 has it" in told["e"].message
    assert "nobody has it yet" in told["f"].message
    await close_nats(client)


def test_a_call_that_is_unknown_or_has_ended_is_not_moved(product: Config) -> None:
    for wanted, code, words in ((SID, "CONFLICT", "has ended (client)"), ("9" * 32, "NOT_FOUND", SID)):
        found = run("sessions", "move", wanted)
        assert isinstance(found.exception, VoxbridgeError)
        assert (found.exception.code, words in found.exception.message) == (code, True)
    assert run("sessions", "workers").stdout == "No voice worker answers.\n"
    shown = run("sessions", "move", "--help").stdout
    for words in ("Examples:", "voxbridge sessions move 4f1c --to", "--json"):
        assert words in shown


def test_a_log_at_rest_is_not_followed(product: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOXBRIDGE_DATA_DIR", str(tmp_path / "rest"))
    run("import", str(tmp_path / "call.jsonl"))
    done = run("sessions", "tail", SID)
    assert isinstance(done.exception, VoxbridgeError)
    assert "nothing to follow" in done.exception.message

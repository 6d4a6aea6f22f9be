"""The matrix of permissions on a real nats-server: each user's permitted actions work, and all others are refused and reported."""

from __future__ import annotations

import json
import logging
import socket
from base64 import urlsafe_b64encode
from pathlib import Path
from urllib.parse import urlsplit

import nkeys
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js.api import StreamConfig

from tests.deploy.conftest import Guarded, SignIn
from tests.voice.conversation import SID
from tests.voice.session.test_macros import Held, Keeper, knows
from voxbridge.installation import streams as installation_streams
from voxbridge.installation.credentials import new_seed
from voxbridge.services.gateway.calls.runs import Runs
from voxbridge.services.voice.ownership import migration
from voxbridge.services.voice.session.macros import Macros
from voxbridge.sessions import move
from voxbridge.shared.bus import subjects
from voxbridge.shared.bus.accounts import KNOWLEDGE_FOR_TOOLS, RECORDINGS, WRITERS, awareness_subject, knowledge_subject
from voxbridge.shared.bus.connection import connect_nats, denied
from voxbridge.shared.bus.permission_check import check_rights
from voxbridge.shared.bus.permissions import RIGHTS
from voxbridge.shared.clock import SystemClock
from voxbridge.shared.errors import Unavailable, VoxbridgeError
from voxbridge.shared.events.envelope import KINDS
from voxbridge.shared.events.tools import RunStarted
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.knowledge import ANSWERS
from voxbridge.shared.log import streams
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.writer import SessionWriter
from voxbridge.shared.terminals import live
from voxbridge.shared.terminals.model import LOCAL_HOST
from voxbridge.shared.terminals.questions import question_subject

SERVICES = tuple(name for name in RIGHTS if name != RECORDINGS)
ADMINISTRATION = (
    "$JS.API.STREAM.CREATE.OTHER",
    "$JS.API.STREAM.UPDATE.EV",
    "$JS.API.STREAM.DELETE.EV",
    "$JS.API.STREAM.PURGE.EV",
    "$JS.API.STREAM.MSG.DELETE.EV",
    "$JS.API.STREAM.UPDATE.ACCOUNT",
    "$JS.API.STREAM.DELETE.ACCOUNT",
    "$JS.API.STREAM.PURGE.ACCOUNT",
    "$JS.API.STREAM.MSG.DELETE.ACCOUNT",
    "$JS.API.CONSUMER.CREATE.ACCOUNT",
    "$JS.API.CONSUMER.DELETE.ACCOUNT.tools",
    "$JS.API.STREAM.LIST",
    "$JS.API.CONSUMER.CREATE.EV",
    "$JS.API.CONSUMER.CREATE.EV.mine.vx.s.*.ev.>",
    "$JS.API.CONSUMER.DURABLE.CREATE.EV.mine",
    "$JS.API.CONSUMER.DELETE.EV.voice",
    "$SYS.REQ.SERVER.PING",
)


async def told(client: Client) -> None:
    """Wait until the server has reported its refusals; the client's first PING can overtake its pending messages."""
    await client.flush()
    await client.flush()


async def published(client: Client, subject: str) -> bool:
    """Return whether the server accepted a publish: it reports a refusal before it answers the next PING."""
    known = denied(client)
    await client.publish(subject, b"x")
    await told(client)
    return denied(client) == known


async def subscribed(client: Client, subject: str) -> bool:
    """Return whether the server accepted a subscription."""
    known = denied(client)
    subscription = await client.subscribe(subject)
    await told(client)
    await subscription.unsubscribe()
    return denied(client) == known


def test_every_writer_of_events_has_its_own_user() -> None:
    writers = {kind.writer for kind in KINDS.values()}
    assert writers == {*WRITERS, "awareness", "terminals", "operator"}, "an operator's commands sign in as the administrator"


@pytest.mark.parametrize("service", WRITERS)
async def test_a_service_appends_its_own_branch_and_is_refused_every_other(service: str, sign_in: SignIn) -> None:
    client = await sign_in(service)
    sid = new_session_id()
    stored = await client.jetstream().publish(f"vx.s.{sid}.ev.{service}.i.test.done", b"x")
    assert (stored.stream, stored.seq) == (subjects.EVENT_STREAM, 1)
    others = [branch for branch in (*SERVICES, "operator", "admin") if branch != service]
    taken = [
        (branch, visibility)
        for branch in others
        for visibility in ("c", "i")
        if await published(client, f"vx.s.{sid}.ev.{branch}.{visibility}.test.done")
    ]
    assert taken == []
    assert not await published(client, f"vx.s.{sid}.ev")
    assert not await published(client, f"vxc.{sid}.{service}.i.test.done"), "a live copy is the server's to make"
    assert (await client.jetstream().stream_info(subjects.EVENT_STREAM)).state.messages == 1


@pytest.mark.parametrize("service", WRITERS)
async def test_into_an_accounts_log_gateway_and_tools_write_their_own_branch_and_voice_nothing(service: str, sign_in: SignIn) -> None:
    client, log_id = await sign_in(service), subjects.account_log("local")
    kinds = [
        subjects.stored_subject(log_id, branch, visibility, "x") for branch in (*SERVICES, "facts", "operator") for visibility in ("c", "i")
    ]
    taken = [place for place in kinds if await published(client, place)]
    branches = {"voice": (), "tools": ("tools", "facts")}.get(service, (service,))
    own = [subjects.stored_subject(log_id, branch, visibility, "x") for branch in branches for visibility in ("c", "i")]
    assert taken == own
    assert not await published(client, "vx.a.local.ev")
    assert not await published(client, subjects.live_subject(log_id, service, "i", "x")), "a live copy is the server's to make"
    assert (await client.jetstream().stream_info(subjects.ACCOUNT_STREAM)).state.messages == len(taken)


@pytest.mark.parametrize("service", WRITERS)
async def test_a_service_reads_the_log_of_an_account_and_hears_it_live(service: str, sign_in: SignIn) -> None:
    writer, reader, log_id = await sign_in("tools"), await sign_in(service), subjects.account_log("local")
    live = await reader.subscribe(subjects.live_subject(log_id))
    await told(reader)
    place = subjects.event_subject(log_id, "tools", visible=False, event_type="note.remembered")
    assert (await writer.jetstream().publish(place, b"kept")).stream == subjects.ACCOUNT_STREAM
    assert (await live.next_msg(5)).data == b"kept"
    request = json.dumps({"seq": 1, "next_by_subj": subjects.stored_subject(log_id)}).encode()
    assert (await reader.request(f"$JS.API.DIRECT.GET.{subjects.ACCOUNT_STREAM}", request, timeout=5)).data == b"kept"


async def test_the_knowledge_service_has_no_part_in_the_log(sign_in: SignIn) -> None:
    client, sid = await sign_in("knowledge"), new_session_id()
    roots = (f"vx.s.{sid}", "vx.a.local")
    places = [f"{root}.ev.{branch}.{end}" for root in roots for branch in (*WRITERS, "knowledge") for end in ("c.test.done", "i.x")]
    assert [place for place in places if await published(client, place)] == []
    assert not any([await subscribed(client, place) for place in ("vxc.>", "vxa.>", subjects.live_subject(sid), f"vx.s.{sid}.>")])
    reads = (subjects.EVENT_STREAM, subjects.ACCOUNT_STREAM)
    assert not any([await published(client, f"$JS.API.{verb}.{stream}") for stream in reads for verb in ("DIRECT.GET", "STREAM.MSG.GET")])


async def test_the_knowledge_service_asks_whether_calls_are_live_and_nothing_else(sign_in: SignIn) -> None:
    client = await sign_in("knowledge")
    subjects_of_others = [f"vx.svc.{name}.{verb}" for name in ("voice", "tools") for verb in ("figures", "health", "state", "list")]
    assert [each for each in subjects_of_others if await published(client, each)] == ["vx.svc.voice.figures"]


async def test_functions_ask_the_knowledge_service_and_the_administrator_alone_removes_graphs(sign_in: SignIn) -> None:
    asking = {
        name: [verb for verb in ANSWERS if await published(await sign_in(name), knowledge_subject(verb))]
        for name in ("gateway", "voice", "tools", RECORDINGS)
    }
    assert asking == {"gateway": [], "voice": [], "tools": list(KNOWLEDGE_FOR_TOOLS), RECORDINGS: []}
    knowledge, admin = await sign_in("knowledge"), await sign_in("admin")

    async def answer(message: Msg) -> None:
        await message.respond(b"{}")

    await knowledge.subscribe(knowledge_subject("forget"), cb=answer)
    await told(knowledge)
    assert (await admin.request(knowledge_subject("forget"), b"", timeout=5)).data == b"{}"


async def test_tools_alone_takes_the_work_of_accounts(sign_in: SignIn) -> None:
    gateway, tools = await sign_in("gateway"), await sign_in("tools")
    place = subjects.event_subject(subjects.account_log("local"), "gateway", visible=False, event_type="task.cancel_requested")
    await gateway.jetstream().publish(place, b"x")
    subscription = await tools.jetstream().pull_subscribe_bind(durable=subjects.TOOLS_CONSUMER, stream=subjects.ACCOUNT_STREAM)
    (message,) = await subscription.fetch(1, timeout=5)
    await message.in_progress()
    await message.ack_sync(timeout=5)
    assert denied(tools) == ()
    for other in (gateway, await sign_in("voice")):
        assert not await published(other, f"$JS.API.CONSUMER.MSG.NEXT.ACCOUNT.{subjects.TOOLS_CONSUMER}")
        assert not await published(other, message.reply)


@pytest.mark.parametrize("service", SERVICES)
async def test_a_service_administers_nothing(service: str, sign_in: SignIn) -> None:
    client = await sign_in(service)
    assert [subject for subject in ADMINISTRATION if await published(client, subject)] == []
    with pytest.raises((TimeoutError, NatsError)):
        await client.jetstream(timeout=0.3).add_stream(StreamConfig(name="MINE", subjects=["mine.>"]))
    await told(client)
    assert "stream.create.mine" in denied(client)[-1]


@pytest.mark.parametrize(
    ("service", "subject"),
    [
        ("gateway", "audio.in"),
        ("voice", "audio.out"),
        ("voice", "ctl.voice"),
    ],
)
async def test_audio_and_moments_have_one_speaker_and_one_hearer(service: str, subject: str, sign_in: SignIn) -> None:
    place = f"vx.s.{new_session_id()}.{subject}"
    speakers = [name for name in SERVICES if await published(await sign_in(name), place)]
    hearers = [name for name in SERVICES if await subscribed(await sign_in(name), place)]
    assert speakers == [service]
    assert hearers == ["voice" if service == "gateway" else "gateway"]


async def test_nobody_hears_the_answers_of_another(sign_in: SignIn) -> None:
    heard = [
        (name, other)
        for name in (*SERVICES, RECORDINGS)
        for other in (*SERVICES, RECORDINGS, "admin")
        if other != name and await subscribed(await sign_in(name), f"_INBOX_{other}.>")
    ]
    assert heard == []
    everything = [
        name
        for name in (*SERVICES, RECORDINGS)
        for subject in (">", "vx.>", "_INBOX.>", "$JS.>")
        if await subscribed(await sign_in(name), subject)
    ]
    assert everything == []


@pytest.mark.parametrize("service", WRITERS)
async def test_a_service_reads_the_log_and_hears_it_live(service: str, sign_in: SignIn) -> None:
    writer, reader, sid = await sign_in("voice"), await sign_in(service), new_session_id()
    live = await reader.subscribe(subjects.live_subject(sid))
    await told(reader)
    await writer.jetstream().publish(f"vx.s.{sid}.ev.voice.c.test.done", b"said")
    assert (await live.next_msg(5)).data == b"said"
    request = {"seq": 1, "next_by_subj": subjects.stored_subject(sid)}
    answer = await reader.request(f"$JS.API.DIRECT.GET.{subjects.EVENT_STREAM}", json.dumps(request).encode(), timeout=5)
    assert answer.data == b"said"


async def test_the_reader_of_recordings_reads_the_log_and_the_record_and_does_nothing_else(sign_in: SignIn, guarded: Guarded) -> None:
    await installation_streams.make_streams(guarded.config("admin", recording="on", recording_mb=64))
    voice, reader, sid = await sign_in("voice"), await sign_in(RECORDINGS), new_session_id()
    await voice.jetstream().publish(f"vx.s.{sid}.ev.voice.c.test.done", b"said")
    await voice.jetstream().publish(subjects.recorded(sid), b"sealed")
    for stream, subject, stored in (
        (subjects.EVENT_STREAM, subjects.stored_subject(sid), b"said"),
        (subjects.RECORD_STREAM, subjects.recorded(sid), b"sealed"),
    ):
        request = json.dumps({"seq": 1, "next_by_subj": subject}).encode()
        assert (await reader.request(f"$JS.API.DIRECT.GET.{stream}", request, timeout=5)).data == stored
        assert (await reader.jetstream().stream_info(stream)).state.messages == 1
    assert denied(reader) == ()
    places = [f"vx.s.{sid}.ev.{branch}.c.test.done" for branch in (*SERVICES, RECORDINGS, "operator")]
    places += [
        subjects.recorded(sid),
        f"vx.s.{sid}.audio.in",
        f"vx.s.{sid}.audio.out",
        f"$JS.API.DIRECT.GET.{subjects.MICROPHONE_STREAM}",
        f"$JS.API.DIRECT.GET.{subjects.REPLY_STREAM}",
        f"$JS.API.DIRECT.GET.{subjects.ACCOUNT_STREAM}",
        *(subjects.stored_subject("@local", branch, "c", "x") for branch in (*SERVICES, RECORDINGS, "operator")),
        *ADMINISTRATION,
    ]
    assert [place for place in places if await published(reader, place)] == []
    heard = (
        subjects.live_subject(sid),
        subjects.live_subject("@local"),
        f"vx.s.{sid}.audio.in",
        f"vx.s.{sid}.audio.out",
        "$SRV.>",
        "vx.svc.voice.health",
    )
    assert [place for place in heard if await subscribed(reader, place)] == []


async def test_a_worker_takes_and_acknowledges_from_its_own_consumer_alone(sign_in: SignIn) -> None:
    gateway, voice, tools = await sign_in("gateway"), await sign_in("voice"), await sign_in("tools")
    await gateway.jetstream().publish(
        subjects.event_subject(new_session_id(), "gateway", visible=False, event_type="session.requested"), b"x"
    )
    subscription = await voice.jetstream().pull_subscribe_bind(durable=subjects.VOICE_CONSUMER, stream=subjects.EVENT_STREAM)
    (message,) = await subscription.fetch(1, timeout=5)
    await message.in_progress()
    await message.ack_sync(timeout=5)
    assert denied(voice) == ()
    for other in (gateway, tools):
        assert not await published(other, f"$JS.API.CONSUMER.MSG.NEXT.EV.{subjects.VOICE_CONSUMER}")
        assert not await published(other, message.reply)


async def test_a_request_is_answered_only_by_who_it_was_sent_to(sign_in: SignIn) -> None:
    gateway, voice, tools = await sign_in("gateway"), await sign_in("voice"), await sign_in("tools")

    async def answer(message: Msg) -> None:
        await message.respond(b"well")

    await voice.subscribe("vx.svc.voice.state", cb=answer)
    await told(voice)
    assert (await gateway.request("vx.svc.voice.state", b"", timeout=5)).data == b"well"
    assert not await subscribed(tools, "vx.svc.voice.state")
    assert not await published(tools, "_INBOX_gateway.anything")
    assert not await published(voice, "_INBOX_gateway.anything")


async def test_only_the_gateway_and_the_admin_ask_the_workers_what_they_heard(sign_in: SignIn) -> None:
    assert [name for name in SERVICES if await subscribed(await sign_in(name), subjects.MICROPHONE)] == ["voice"]
    assert [name for name in (*SERVICES, "admin") if await published(await sign_in(name), subjects.MICROPHONE)] == ["gateway", "admin"]


async def test_workers_move_sessions_among_themselves_and_the_admin_alone_asks_for_it(sign_in: SignIn) -> None:
    for subject in (migration.MOVE, migration.ROOM, migration.RELEASED, move.STATS):
        hearers = [name for name in SERVICES if await subscribed(await sign_in(name), subject)]
        assert hearers == (list(SERVICES) if subject == move.STATS else ["voice"]), subject
        speakers = [name for name in (*SERVICES, "admin") if await published(await sign_in(name), subject)]
        assert speakers == (["voice", "admin"] if subject in (migration.ROOM, migration.RELEASED) else ["admin"]), subject


@pytest.mark.parametrize("who", ["nobody", "a user with a password", "a user of another installation"])
def test_a_stranger_is_refused(who: str, guarded: Guarded) -> None:
    place = urlsplit(guarded.url)
    with socket.create_connection((str(place.hostname), place.port or 0), 5) as stranger, stranger.makefile("rb") as said:
        nonce = json.loads(said.readline().removeprefix(b"INFO "))["nonce"]
        shown: dict[str, str] = {}
        if who == "a user with a password":
            shown = {"user": "voxbridge", "pass": "voxbridge"}
        elif who == "a user of another installation":
            pair = nkeys.from_seed(bytearray(new_seed().encode()))
            shown = {"nkey": pair.public_key.decode(), "sig": urlsafe_b64encode(pair.sign(nonce.encode())).rstrip(b"=").decode()}
        stranger.sendall(b"CONNECT " + json.dumps(shown).encode() + b"\r\nPING\r\n")
        assert said.readline() == b"-ERR 'Authorization Violation'\r\n"
        assert said.read() == b""


@pytest.mark.parametrize("with_seed", [False, True])
async def test_a_process_with_the_wrong_credentials_gives_up_and_says_why(with_seed: bool, guarded: Guarded, tmp_path: Path) -> None:
    seed = tmp_path / "seed"
    seed.write_text(new_seed())
    with pytest.raises(Unavailable, match=r"(?i)within 1 s: .*authorization violation"):
        await connect_nats(guarded.url, "lost", pending=1_024, timeout_s=1, user="voice", seed_file=str(seed) if with_seed else "")


@pytest.mark.parametrize("content", ["", None])
async def test_a_seed_file_that_cannot_be_used_is_named(content: str | None, guarded: Guarded, tmp_path: Path) -> None:
    seed = tmp_path / "seed"
    if content is not None:
        seed.write_text(content)
    with pytest.raises(VoxbridgeError, match=r"VOXBRIDGE_NATS_SEED_FILE names .*seed, which (is empty|cannot be read)"):
        await connect_nats(guarded.url, "lost", pending=1_024, timeout_s=1, user="voice", seed_file=str(seed))


async def test_the_start_of_a_process_with_the_credentials_of_another_says_so(sign_in: SignIn, caplog: pytest.LogCaptureFixture) -> None:
    tools = await sign_in("tools")
    await check_rights(tools, "tools")
    assert denied(tools) == ()
    with caplog.at_level(logging.ERROR), pytest.raises(VoxbridgeError, match="VOXBRIDGE_NATS_SEED_FILE that of voice") as refused:
        await check_rights(tools, "voice")
    assert refused.value.code == "PERMISSION_DENIED"
    assert "NATS refuses tools-test: permissions violation for publish" in caplog.text
    info = await tools.jetstream().stream_info(subjects.EVENT_STREAM)
    assert info.state.messages == 0, "the look stores nothing"


async def test_what_was_refused_is_kept_once_and_bounded(sign_in: SignIn) -> None:
    tools = await sign_in("tools")
    for number in [1, *range(20)]:
        await published(tools, f"elsewhere.{number}")
    assert len(denied(tools)) == 16
    assert "elsewhere.19" in denied(tools)[-1]


async def test_a_service_finds_its_streams_made_and_asks_for_nothing_more(sign_in: SignIn) -> None:
    for name in WRITERS:
        client = await sign_in(name)
        js = client.jetstream(timeout=2)
        await streams.ensure_streams(js, retention_days=30)
        for stream, wanted in streams.DURABLES:
            if wanted.durable_name == name:
                await streams.ensure_consumer(js, wanted, stream)
        assert denied(client) == ()


async def test_a_service_waits_for_the_admin_to_make_again_what_is_gone_and_is_refused_nothing(sign_in: SignIn) -> None:
    voice, admin = await sign_in("voice"), await sign_in("admin")
    await admin.jetstream().delete_stream(subjects.MICROPHONE_STREAM)
    await admin.jetstream().delete_consumer(subjects.EVENT_STREAM, subjects.VOICE_CONSUMER)
    with pytest.raises(Unavailable, match="The stream MICROPHONE is not there yet; `voxbridge admin streams` makes it"):
        await streams.ensure_streams(voice.jetstream(), retention_days=30)
    with pytest.raises(Unavailable, match="The consumer voice is not there yet"):
        await streams.ensure_consumer(voice.jetstream(), streams.CONSUMERS["voice"])
    await streams.ensure_streams(admin.jetstream(), retention_days=7)
    await streams.ensure_consumer(admin.jetstream(), streams.CONSUMERS["voice"])
    await streams.ensure_streams(voice.jetstream(), retention_days=30)
    await streams.ensure_consumer(voice.jetstream(), streams.CONSUMERS["voice"])
    assert denied(voice) == ()
    assert (await voice.jetstream().stream_info(subjects.EVENT_STREAM)).config.max_age == 7 * 86_400, "the admin's settings stand"


async def test_a_worker_reads_and_follows_the_macros_of_an_account_with_its_own_credentials(sign_in: SignIn) -> None:
    keeper = Keeper(Log(await sign_in("tools")))
    await keeper.save("night", "good night")
    call = Held()
    macros = Macros(Log(await sign_in("voice")), {SID: call})  # type: ignore[dict-item]  # the core's side of a session
    await macros.start()
    assert [one.name for one in await macros.of("local")] == ["night"]
    await keeper.save("lunch", "time for lunch")
    await knows(call, "night", "lunch")
    await macros.stop()


async def test_a_gateway_lists_the_runs_of_sessions_and_accounts_with_its_own_credentials(sign_in: SignIn) -> None:
    tools = Log(await sign_in("tools"))
    for log_id in (new_session_id(), subjects.account_log("local")):
        started = RunStarted(run_id=f"run {log_id}", name="night", kind="macro", steps=1, inputs={})
        await SessionWriter(tools, log_id, "tools").append(started, ts=1, cause=None)
    runs = Runs(Log(await sign_in("gateway")), SystemClock().now_us, "g")
    assert len(await runs.lately()) == 2


async def test_what_is_known_of_screens_is_written_by_two_read_by_three_and_erased_by_one(sign_in: SignIn) -> None:
    names = ("gateway", "voice", "tools", "knowledge", "awareness")
    clients = {name: await sign_in(name) for name in names}
    writes = {
        name: [branch for branch in names if await published(client, f"vx.w.local.ev.{branch}.i.page.visited")]
        for name, client in clients.items()
    }
    assert writes == {"gateway": ["gateway"], "voice": [], "tools": [], "knowledge": [], "awareness": ["awareness"]}
    for request, allowed in (
        ("$JS.API.DIRECT.GET.AWARENESS", {"gateway", "voice", "awareness"}),
        ("$JS.API.STREAM.MSG.DELETE.AWARENESS", {"awareness"}),
        ("$JS.API.STREAM.MSG.DELETE.ACCOUNT", set()),
        ("$JS.API.STREAM.PURGE.AWARENESS", set()),
        (awareness_subject("view"), {"gateway"}),
        (awareness_subject("forget"), set()),
    ):
        assert {name for name, client in clients.items() if await published(client, request)} - {"awareness"} == allowed - {"awareness"}
    assert not await published(clients["awareness"], f"vx.s.{new_session_id()}.ev.awareness.c.main")
    assert not await published(clients["awareness"], "$JS.API.STREAM.MSG.DELETE.EV")


async def test_terminals_are_asked_by_two_and_typed_into_by_one(sign_in: SignIn) -> None:
    clients = {name: await sign_in(name) for name in ("gateway", "voice", "tools", "knowledge", "awareness", "terminals")}
    for request, allowed in (
        (question_subject(LOCAL_HOST, "list"), {"gateway", "tools"}),
        (question_subject(LOCAL_HOST, "send"), {"gateway", "tools"}),
        (question_subject(LOCAL_HOST, "close"), {"gateway", "tools"}),
        (question_subject(LOCAL_HOST, "hold"), {"gateway"}),
        (question_subject(LOCAL_HOST, "attach"), {"gateway"}),
        (question_subject(LOCAL_HOST, "define"), {"gateway"}),
        (question_subject(LOCAL_HOST, "past"), {"gateway"}),
        (question_subject(LOCAL_HOST, "tape"), {"gateway"}),
        (question_subject(LOCAL_HOST, "forget"), set()),
        (live.typed_subject(LOCAL_HOST, "any"), {"gateway"}),
        (live.output_subject(LOCAL_HOST, "any"), set()),
        (live.card_subject(LOCAL_HOST, "any"), set()),
        ("vx.l.any-life.ev.terminals.c.main", set()),
        ("$JS.API.DIRECT.GET.TERMINALS", {"gateway"}),
        ("$JS.API.STREAM.MSG.GET.TERMINALS", {"gateway"}),
        ("$JS.API.STREAM.MSG.DELETE.TERMINALS", set()),
        ("$JS.API.STREAM.PURGE.TERMINALS", set()),
    ):
        assert {name for name, client in clients.items() if await published(client, request)} - {"terminals"} == allowed, request
    for writer in ("gateway", "voice", "tools"):
        assert not await published(clients["terminals"], f"vx.s.{new_session_id()}.ev.{writer}.c.main")
    assert not await published(clients["terminals"], "$JS.API.STREAM.MSG.DELETE.EV")


async def test_the_terminals_service_writes_and_reads_the_logs_of_terminals_and_no_others(sign_in: SignIn) -> None:
    client = await sign_in("terminals")
    for subject in ("vx.l.any-life.ev.terminals.c.main", "$JS.API.DIRECT.GET.TERMINALS", "$JS.API.STREAM.INFO.TERMINALS"):
        assert await published(client, subject), subject
    others = [f"$JS.API.{verb}.{log}" for log in ("EV", "ACCOUNT", "AWARENESS", "RECORD") for verb in ("DIRECT.GET", "STREAM.MSG.GET")]
    erasing = ("$JS.API.STREAM.MSG.DELETE.TERMINALS", "$JS.API.STREAM.PURGE.TERMINALS", "vx.l.any-life.ev.gateway.c.main")
    for subject in (*others, *erasing):
        assert not await published(client, subject), subject

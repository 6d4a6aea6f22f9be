"""Attacks with each service's own credentials, from a process that is not the product's: by publishing, by reply subjects, by delivery
subjects of consumers, by copying a stream, by headers. Targets are the log, the streams, and the messages that others receive."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from tests.deploy.conftest import Guarded, SignIn
from voxbridge.installation import streams as installation_streams
from voxbridge.shared.bus import permissions, subjects
from voxbridge.shared.bus.accounts import RECORDINGS
from voxbridge.shared.bus.permissions import RIGHTS
from voxbridge.shared.log import streams

SID = "b" * 32
FORGED = b"forged by the attacker"
SERVICES = tuple(name for name in RIGHTS if name != RECORDINGS)
WRITERS = (*SERVICES, "operator")
AGES_S = 60
"""Seconds of age below which a stream's messages may be gone while a test runs on a busy machine."""

EVENTS = tuple(f"vx.s.{SID}.ev.{writer}.{visibility}.agent.said" for writer in WRITERS for visibility in ("c", "i"))
OF_ACCOUNTS = tuple(f"vx.a.local.ev.{writer}.{visibility}.request" for writer in (*WRITERS, subjects.FACTS) for visibility in ("c", "i"))
OF_SCREENS = tuple(f"vx.w.local.ev.{writer}.i.page.visited" for writer in WRITERS)
OF_TERMINALS = tuple(f"vx.l.any-life.ev.{writer}.c.main" for writer in WRITERS)
LIVE = (subjects.live_subject(SID, "voice", "c", "agent.said"), subjects.live_subject("@local", "tools", "c", "main"))
MOMENTS = (f"vx.s.{SID}.audio.in", f"vx.s.{SID}.audio.out", f"vx.s.{SID}.ctl.voice", *LIVE)
REQUESTS = (
    *("vx.svc.voice.health", "vx.svc.voice.state", "vx.svc.voice.move", "vx.svc.voice.room", "vx.svc.voice.released", subjects.MICROPHONE),
    *("vx.svc.tools.list", "vx.svc.tools.held", "vx.svc.tools.health", "vx.svc.gateway.health", "$SRV.PING", "$SRV.STATS.voxbridge-voice"),
)
STREAMS = ("EV", "ACCOUNT", "AWARENESS", "TERMINALS", "MICROPHONE", "REPLY", "RECORD")
DURABLES = tuple(f"{stream}.{consumer.durable_name}" for stream, consumer in streams.DURABLES)
_COPY = {"deliver_subject": EVENTS[2], "ack_policy": "none"}
ADMINISTRATION: dict[str, dict[str, Any]] = {
    "$JS.API.STREAM.CREATE.MIRROR": {"name": "MIRROR", "mirror": {"name": "MICROPHONE"}},
    "$JS.API.STREAM.CREATE.SOURCED": {"name": "SOURCED", "sources": [{"name": "RECORD"}]},
    "$JS.API.STREAM.CREATE.MINE": {"name": "MINE", "subjects": ["mine.>"], "republish": {"src": ">", "dest": "vxc.>"}},
    "$JS.API.STREAM.UPDATE.EV": {"name": "EV", "subjects": ["vx.s.*.ev.>"], "max_msgs": 1},
    "$JS.API.STREAM.UPDATE.ACCOUNT": {"name": "ACCOUNT", "subjects": ["vx.a.*.ev.>"], "max_age": 1_000_000_000},
    **{f"$JS.API.STREAM.SNAPSHOT.{stream}": {"deliver_subject": EVENTS[2]} for stream in ("EV", "ACCOUNT", "AWARENESS", "TERMINALS")},
    "$JS.API.CONSUMER.CREATE.EV": {"stream_name": "EV", "config": _COPY},
    **{f"$JS.API.CONSUMER.CREATE.{stream}": {"stream_name": stream, "config": _COPY} for stream in STREAMS[1:]},
    "$JS.API.CONSUMER.DURABLE.CREATE.EV.mine": {"stream_name": "EV", "config": {"durable_name": "mine", **_COPY}},
    **{f"$JS.API.STREAM.{verb}.{stream}": {} for stream in STREAMS for verb in ("PURGE", "DELETE")},
    **{f"$JS.API.STREAM.MSG.DELETE.{stream}": {"seq": 1, "no_erase": False} for stream in STREAMS},
    **{f"$JS.API.CONSUMER.{verb}.{name}": {} for name in DURABLES for verb in ("DELETE", "RESET")},
    **{f"$JS.API.CONSUMER.PAUSE.{name}": {"pause_until": "2099-01-01T00:00:00Z"} for name in DURABLES},
    "$JS.API.STREAM.NAMES": {},
    "$JS.API.STREAM.LEADER.STEPDOWN.EV": {},
    "$JS.API.ACCOUNT.PURGE.LOG": {},
}
FOREIGN_READS = (
    *(f"$JS.API.{verb}.{stream}" for stream in STREAMS if stream not in ("EV", "ACCOUNT") for verb in ("DIRECT.GET", "STREAM.MSG.GET")),
)
WORK = tuple(f"$JS.API.CONSUMER.MSG.NEXT.{name}" for name in DURABLES)
PLACES = (
    *EVENTS,
    *OF_ACCOUNTS,
    *OF_SCREENS,
    *OF_TERMINALS,
    *MOMENTS,
    *REQUESTS,
    *ADMINISTRATION,
    *WORK,
    subjects.recorded(SID),
    "_INBOX_admin.x",
    "_INBOX_voice.x",
    "_INBOX_tools.x",
)
"""Subjects on which a message could do harm."""


def may(rights: tuple[str, ...], subject: str) -> bool:
    """Return whether one of these patterns matches the subject."""
    found = subject.split(".")

    def matches(wanted: list[str]) -> bool:
        if wanted[-1] == ">":
            return len(found) >= len(wanted) and all(a in ("*", b) for a, b in zip(wanted[:-1], found, strict=False))
        return len(found) == len(wanted) and all(a in ("*", b) for a, b in zip(wanted, found, strict=True))

    return any(matches(pattern.split(".")) for pattern in rights)


def askable(name: str) -> Iterator[tuple[str, bytes]]:
    """Yield every request that this user may make, in variants with each kind of answer: bytes of its own choice, nothing, an error."""
    for pattern in RIGHTS[name].publish:
        own = f".ev.{name}.>"
        subject = bait(name, pattern[:5]) if pattern.endswith(own) else pattern.replace("*", SID).replace(">", "x")
        yield subject, b""
        if ".GET." in subject:
            for body in ({"seq": 1}, {"seq": 999}, {"seq": 1, "batch": 2, "next_by_subj": ">"}, {"last_by_subj": bait(name)}):
                yield subject, json.dumps(body).encode()


def bait(name: str, root: str = "vx.s.") -> str:
    """Return the subject of the attacker's own event, whose bytes it tries to inject elsewhere."""
    return f"{root}{SID if root == 'vx.s.' else 'local'}.ev.{name if name in SERVICES else 'tools'}.i.bait.laid"


async def told(*clients: Client) -> None:
    for client in (*clients, *clients):
        await client.flush()


class House:
    """All other users with their permitted subscriptions, messages in each stream, and pending work on each consumer."""

    def __init__(self, attacker: str, client: Client, administrator: Client, others: dict[str, Client]) -> None:
        self.client = client
        self.others = others
        self.heard: list[tuple[str, str, bytes]] = []
        self._attacker = attacker
        self._admin = administrator

    async def listen(self) -> None:
        for name, client in {**self.others, "admin": self._admin}.items():
            for subject in (">",) if name == "admin" else RIGHTS[name].subscribe:
                await client.subscribe(subject, cb=self._listener(name))
        await told(*self.others.values(), self._admin)

    def _listener(self, name: str) -> Callable[[Msg], Awaitable[None]]:
        async def hear(message: Msg) -> None:
            self.heard.append((name, message.subject, message.data))

        return hear

    async def state(self) -> dict[str, Any]:
        """Return the state that an attack must not change: streams, consumers, the events of others."""
        await told(self.client, *self.others.values(), self._admin)
        js = self._admin.jetstream(timeout=5)
        found: dict[str, Any] = {}
        for name in STREAMS:
            info = await js.stream_info(name, subjects_filter=">")
            there = {subject: count for subject, count in (info.state.subjects or {}).items() if not may(self._mine, subject)}
            ages = 0 < (info.config.max_age or 0) <= AGES_S  # what is gone by its age says nothing about an attack
            found[name] = (info.config.as_dict(),) if ages else (info.config.as_dict(), info.state.first_seq, there)
        found["names"] = sorted(str(info.config.name) for info in await js.streams_info())
        infos = [info for stream in subjects.LOG_STREAMS for info in await js.consumers_info(stream)]
        found["consumers"] = sorted((info.name, info.stream_name, info.num_pending, info.config.pause_until) for info in infos)
        return found

    @property
    def _mine(self) -> tuple[str, ...]:
        return tuple(pattern for pattern in RIGHTS[self._attacker].publish if not pattern.startswith("$"))

    def reached(self) -> set[tuple[str, str]]:
        """Return the users that received a message on a subject closed to the attacker, or bytes of the attacker's choice on any subject.

        Replies to the attacker pass through the log's account under a name of the server's, and the server tells the administrator of
        messages that were deleted; neither counts."""
        return {
            (name, subject)
            for name, subject, data in self.heard
            if not subject.startswith(("_R_.", "$JS.EVENT.ADVISORY.")) and not may(RIGHTS[self._attacker].publish, subject)
            if subject in PLACES or FORGED in data
            if not (subject.startswith(("vxc.", "vxa.", "vxw.", "vxl.")) and FORGED not in data and f".{self._attacker}." in subject)
        }


@pytest.fixture(params=[*SERVICES, RECORDINGS])
def attacker(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def house(attacker: str, guarded: Guarded, sign_in: SignIn) -> House:
    await installation_streams.make_streams(guarded.config("admin", recording="on", recording_mb=64))
    administrator = await sign_in("admin")
    js = administrator.jetstream(timeout=5)
    await js.publish(bait(attacker), FORGED)
    await js.publish(bait(attacker, "vx.a."), FORGED)
    await js.publish(bait(attacker, "vx.w."), FORGED)
    await js.publish(bait(attacker, "vx.l."), FORGED)
    await js.publish("vx.a.ada.ev.gateway.i.request", b"open work")
    await js.publish(f"vx.s.{SID}.ev.gateway.i.session.requested", b"open work")
    await js.publish(f"vx.s.{SID}.ev.voice.i.tool.called", b"open work")
    await js.publish(subjects.recorded("c" * 32), b"sealed")
    await administrator.publish(subjects.audio_in("c" * 32), b"said")
    await administrator.publish(subjects.audio_out("c" * 32), b"answered")
    house = House(attacker, await sign_in(attacker), administrator, {name: await sign_in(name) for name in RIGHTS if name != attacker})
    await house.listen()
    return house


@pytest.fixture(params=["accounts and permissions", "accounts alone"])
def bound_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The restriction of users: each of the two layers must hold without the other."""
    if request.param == "accounts alone":
        monkeypatch.setattr(permissions, "_permissions", lambda _: "")


@pytest.mark.usefixtures("bound_by")
async def test_what_is_published_where_one_may_not_reaches_nobody(attacker: str, house: House) -> None:
    before = await house.state()
    for place in PLACES:
        if not may(RIGHTS[attacker].publish, place):
            await house.client.publish(place, json.dumps(ADMINISTRATION.get(place, {})).encode() if place in ADMINISTRATION else FORGED)
    assert await house.state() == before
    assert house.reached() == set()


async def test_an_answer_goes_back_to_who_asked_whatever_subject_it_is_sent_to(attacker: str, house: House) -> None:
    """The client that asks chooses the reply subject, and no permission applies to it."""
    before = await house.state()
    for place in PLACES:
        for subject, body in askable(attacker):
            if not subject.startswith(("$JS.API.CONSUMER.MSG.NEXT", "$JS.ACK")):  # work of consumers is tested below
                await house.client.publish(subject, body, reply=place)
    after = await house.state()
    assert after == before
    assert house.reached() == set()


@pytest.mark.parametrize("attacker", ["voice", "tools"], indirect=True)
async def test_work_is_delivered_to_who_takes_it_whatever_subject_it_is_sent_to(attacker: str, house: House) -> None:
    before = await house.state()
    for place in PLACES:
        body = json.dumps({"batch": 1, "no_wait": True}).encode()
        await house.client.publish(f"$JS.API.CONSUMER.MSG.NEXT.EV.{attacker}", body, reply=place)
        await house.client.publish(f"$JS.ACK.EV.{attacker}.1.2.1.1.0", b"-NAK", reply=place)
        if attacker == "tools":
            await house.client.publish("$JS.API.CONSUMER.MSG.NEXT.ACCOUNT.tools", body, reply=place)
            await house.client.publish("$JS.ACK.ACCOUNT.tools.1.2.1.1.0", b"-NAK", reply=place)
    after = await house.state()
    for found in (before, after):
        found["consumers"] = [one[:2] for one in found["consumers"]]  # the attacker may consume its own work
    assert after == before
    assert house.reached() == set()


async def test_nobody_reads_audio_or_recordings_that_are_not_for_it(attacker: str, house: House) -> None:
    readers = {
        "AWARENESS": ("gateway", "voice", "awareness"),
        "TERMINALS": ("gateway", "terminals"),
        "MICROPHONE": ("voice",),
        "REPLY": ("voice",),
        "RECORD": ("voice", RECORDINGS),
    }
    for subject in FOREIGN_READS:
        if attacker in readers[subject.rpartition(".")[2]]:
            continue
        with pytest.raises((TimeoutError, NatsError)):
            await house.client.request(subject, b'{"seq": 1}', timeout=0.3)


async def test_headers_open_no_other_way(attacker: str, house: House) -> None:
    before = await house.state()
    headers = (
        {"Nats-Rollup": "all"},
        {"Nats-Trace-Dest": EVENTS[0], "Nats-Trace-Only": "false"},
        {"Nats-Request-Info": '{"acc": "LOG", "svc": "LOG"}'},
        {"Nats-Schedule": "@at 2020-01-01T00:00:00Z", "Nats-Schedule-Target": EVENTS[0]},
        {"Nats-Batch-Id": "1", "Nats-Batch-Sequence": "1", "Nats-Batch-Commit": "1"},
    )
    closed = (place for place in ADMINISTRATION if not may(RIGHTS[attacker].publish, place))
    asked = (subject for subject, _ in askable(attacker) if subject not in ADMINISTRATION)
    for place in (bait(attacker), *closed, *asked):
        for header in headers:
            body = json.dumps(ADMINISTRATION[place]).encode() if place in ADMINISTRATION else b""
            await house.client.publish(place, body, headers=header)
            if "Nats-Trace-Dest" in header:
                for other in PLACES:
                    if not may(RIGHTS[attacker].publish, other):
                        await house.client.publish(place, body, headers={**header, "Nats-Trace-Dest": other})
    after = await house.state()
    for found in (before, after):
        found["consumers"] = [one[:2] for one in found["consumers"]]
    assert after == before
    assert house.reached() == set()

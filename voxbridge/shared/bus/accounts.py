"""NATS accounts: one for each service and one for the log, and the doors (exports and imports) between them.

Owns which subjects cross from one account into another, as data, and their text in the server's configuration. Does not own what a user may
do within its account: `voxbridge.shared.bus.permissions` derives that from these doors.

A subject of one account does not exist in another, unless a door leads there. So the writer of audio, a moment or an event is known by the
account that it comes from. A reply goes back to the account that asked and to no other: its reply subject, which the requester may choose,
is looked up in that account. JetStream is in an account of its own, in which only the administrator creates, changes or removes anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from voxbridge.shared.bus import subjects as bus_subjects
from voxbridge.shared.bus.subjects import TOOLS_CONSUMER, VOICE_CONSUMER
from voxbridge.shared.platform import checking
from voxbridge.shared.terminals import live, questions
from voxbridge.shared.terminals.model import LOCAL_HOST

ADMIN: Final = "admin"
"""User that creates the streams and the consumers, and that an operator's commands sign in as: may do everything in the log's account."""

RECORDINGS: Final = "recordings"
"""User that makes files of recordings where users have rights of their own: reads the log and the record, opens recordings, and writes
nothing."""

LOG: Final = "LOG"
KNOWLEDGE: Final = "vx.svc.knowledge"
KNOWLEDGE_FOR_TOOLS: Final = ("graphs", "search", "analytics", "ingest")
"""Questions to the knowledge service that functions may ask; the administrator alone removes a graph, or has its index made again."""

TERMINALS_FOR_TOOLS: Final = ("list", "watch", "definitions", "start", "close", "activate", "see", "read", "send", "key", "wait")
"""Questions to the terminals service that functions may ask. The keys of people come from the gateway alone."""

AWARENESS: Final = "vx.svc.awareness"
WRITERS: Final = ("gateway", "voice", "tools")
"""Services that write events into the logs of sessions and accounts, and read these."""

SERVICES: Final = (*WRITERS, "knowledge", "awareness", "terminals")
"""Services that sign in to NATS; of the last three, the awareness service writes into a stream that is its own and the gateway's, the
terminals service into one of its own, and the knowledge service has no part in the log."""

ACCOUNT_WRITERS: Final = ("gateway", "tools")
LIVE: Final = ("vxc.>", "vxa.>")
"""Live copies of the events of sessions, and of those of accounts."""

AWARENESS_WRITERS: Final = ("gateway", "awareness")
AWARENESS_READERS: Final = (*AWARENESS_WRITERS, "voice")

TERMINALS_READERS: Final = ("gateway", "terminals")
"""Users that read the logs of terminals."""

API: Final = "$JS.API"
DISCOVERY: Final = "$SRV.>"
ANSWERS_S: Final = 6
"""Seconds that the server keeps a request open that may have several answers; longer than any read and any pull of a consumer."""

_EVERYONE: Final = (*WRITERS, RECORDINGS)
_READERS: Final = (*_EVERYONE, "awareness")
"""Users that read the logs of sessions. The awareness service looks there for whose a call was."""

_COUNTED: Final = ("tools", "knowledge", "awareness", "terminals")
"""Services whose figures the gateway asks for."""

_LIVE_AUDIO: Final = (bus_subjects.MICROPHONE_STREAM, bus_subjects.REPLY_STREAM)


class Export(NamedTuple):
    """A subject of one account, and the users that may use it from other accounts."""

    owner: str
    subject: str
    to: tuple[str, ...]
    heard: bool = False
    """True if the others subscribe to the subject; otherwise they publish to it, and are answered."""

    many: bool = False
    """True if a request may have more than one answer."""


def account(name: str) -> str:
    """Return the account of a user."""
    return LOG if name == ADMIN else name.upper()


def branch(writer: str) -> str:
    """Return the subject filter of all events that a service writes, in any session."""
    return f"vx.s.*.ev.{writer}.>"


def account_branch(writer: str) -> str:
    """Return the subject filter of all events that a service writes into the logs of accounts."""
    return f"vx.a.*.ev.{writer}.>"


def awareness_branch(writer: str) -> str:
    """Return the subject filter of all events that a service writes into the logs of what is known of screens."""
    return f"vx.w.*.ev.{writer}.>"


def terminals_branch() -> str:
    """Return the subject filter of all events that the terminals service writes into the logs of terminals."""
    return "vx.l.*.ev.terminals.>"


def awareness_subject(verb: str) -> str:
    """Return the subject on which the awareness service is asked."""
    return f"{AWARENESS}.{verb}"


def knowledge_subject(verb: str) -> str:
    """Return the subject on which the knowledge service is asked."""
    return f"{KNOWLEDGE}.{verb}"


def gateway_subject(verb: str) -> str:
    """Return the subject on which a gateway is asked about agents and child sessions."""
    return f"vx.svc.gateway.{verb}"


def _asked(owner: str, to: tuple[str, ...], *subjects: str, many: bool = False) -> tuple[Export, ...]:
    return tuple(Export(owner, subject, to, many=many) for subject in subjects)


def _heard(owner: str, to: tuple[str, ...], *subjects: str) -> tuple[Export, ...]:
    return tuple(Export(owner, subject, to, heard=True) for subject in subjects)


def _working(name: str, consumer: str, stream: str = bus_subjects.EVENT_STREAM) -> tuple[Export, ...]:
    return (
        *_asked(ADMIN, (name,), f"{API}.CONSUMER.INFO.{stream}.{consumer}", f"$JS.ACK.{stream}.{consumer}.>"),
        *_asked(ADMIN, (name,), f"{API}.CONSUMER.MSG.NEXT.{stream}.{consumer}", many=True),
    )


EXPORTS: Final[tuple[Export, ...]] = (
    # The log: each service appends to its own branch, and reading is one right. Voice writes nothing into the logs of accounts.
    *(Export(ADMIN, branch(name), (name,)) for name in WRITERS),
    *(Export(ADMIN, account_branch(name), (name,)) for name in ACCOUNT_WRITERS),
    Export(ADMIN, account_branch(bus_subjects.FACTS), ("tools",)),
    *_heard(ADMIN, WRITERS, *LIVE),
    *_asked(ADMIN, _READERS, f"{API}.DIRECT.GET.{bus_subjects.EVENT_STREAM}", many=True),
    *_asked(ADMIN, _READERS, f"{API}.STREAM.INFO.{bus_subjects.EVENT_STREAM}", f"{API}.STREAM.MSG.GET.{bus_subjects.EVENT_STREAM}"),
    *_asked(ADMIN, WRITERS, f"{API}.DIRECT.GET.{bus_subjects.ACCOUNT_STREAM}", many=True),
    *_asked(ADMIN, (*WRITERS, "awareness"), f"{API}.STREAM.INFO.{bus_subjects.ACCOUNT_STREAM}"),
    *_asked(ADMIN, WRITERS, f"{API}.STREAM.MSG.GET.{bus_subjects.ACCOUNT_STREAM}"),
    *_working("voice", VOICE_CONSUMER),
    *_working("tools", TOOLS_CONSUMER),
    *_working("tools", TOOLS_CONSUMER, bus_subjects.ACCOUNT_STREAM),
    # What is known of screens: a stream apart, in which the awareness service erases.
    *(Export(ADMIN, awareness_branch(name), (name,)) for name in AWARENESS_WRITERS),
    *_heard(ADMIN, AWARENESS_READERS, "vxw.>"),
    *_asked(ADMIN, AWARENESS_READERS, f"{API}.DIRECT.GET.{bus_subjects.AWARENESS_STREAM}", many=True),
    *_asked(ADMIN, (*WRITERS, "awareness"), f"{API}.STREAM.INFO.{bus_subjects.AWARENESS_STREAM}"),
    *_asked(ADMIN, AWARENESS_READERS, f"{API}.STREAM.MSG.GET.{bus_subjects.AWARENESS_STREAM}"),
    *_asked(ADMIN, ("awareness",), f"{API}.STREAM.MSG.DELETE.{bus_subjects.AWARENESS_STREAM}"),
    *_working("awareness", bus_subjects.AWARENESS_CONSUMER),
    *_working("awareness", bus_subjects.AWARENESS_CONSUMER, bus_subjects.ACCOUNT_STREAM),
    # The logs of terminals: a stream apart, so that the terminals service reads nothing that was said in calls.
    Export(ADMIN, terminals_branch(), ("terminals",)),
    *_asked(ADMIN, TERMINALS_READERS, f"{API}.DIRECT.GET.{bus_subjects.TERMINALS_STREAM}", many=True),
    *_asked(ADMIN, (*WRITERS, "awareness", "terminals"), f"{API}.STREAM.INFO.{bus_subjects.TERMINALS_STREAM}"),
    *_asked(ADMIN, TERMINALS_READERS, f"{API}.STREAM.MSG.GET.{bus_subjects.TERMINALS_STREAM}"),
    # Audio: the last seconds, and recordings.
    *_heard("gateway", (ADMIN, "voice"), bus_subjects.MICROPHONE_SUBJECTS),
    *_heard("voice", (ADMIN, "gateway"), bus_subjects.REPLY_SUBJECTS),
    *_asked(ADMIN, ("voice",), *(f"{API}.DIRECT.GET.{name}" for name in _LIVE_AUDIO), many=True),
    *_asked(ADMIN, ("voice",), *(f"{API}.STREAM.MSG.GET.{name}" for name in _LIVE_AUDIO)),
    *_asked(ADMIN, ("voice", RECORDINGS), f"{API}.DIRECT.GET.{bus_subjects.RECORD_STREAM}", many=True),
    *_asked(ADMIN, ("voice", RECORDINGS), f"{API}.STREAM.MSG.GET.{bus_subjects.RECORD_STREAM}"),
    *_asked(ADMIN, (*WRITERS, "awareness"), *(f"{API}.STREAM.INFO.{name}" for name in _LIVE_AUDIO)),
    *_asked(ADMIN, _READERS, f"{API}.STREAM.INFO.{bus_subjects.RECORD_STREAM}"),
    *_asked(ADMIN, ("voice",), bus_subjects.recorded("*")),
    # Among services.
    *_heard("voice", ("gateway",), bus_subjects.moments("*")),
    *_asked("voice", ("gateway",), "vx.svc.voice.health", "vx.svc.voice.state", bus_subjects.MICROPHONE, bus_subjects.WAVEFORM),
    *_asked("tools", ("gateway",), "vx.svc.tools.health", "vx.svc.tools.list", "vx.svc.tools.thermal", "vx.svc.tools.tasks"),
    *_asked("tools", ("voice",), "vx.svc.tools.names"),
    *_asked("tools", ("gateway",), checking.SUBJECT),
    # A function names a session of its own and the agent in it; account and limits are the gateway's to say.
    *_asked("gateway", ("tools",), gateway_subject("agents"), gateway_subject("child")),
    *_asked("awareness", ("gateway",), awareness_subject("view")),
    *_asked("knowledge", ("tools",), *(knowledge_subject(verb) for verb in KNOWLEDGE_FOR_TOOLS)),
    # Terminals: each question by its name, keys from the gateway alone, output and cards to it alone.
    *(
        Export(
            "terminals",
            questions.question_subject(LOCAL_HOST, one.verb),
            ("gateway", "tools") if one.verb in TERMINALS_FOR_TOOLS else ("gateway",),
        )
        for one in questions.QUESTIONS
        if one is not questions.Forget  # the administrator alone erases
    ),
    *_heard("gateway", ("terminals",), live.typed_subject(LOCAL_HOST, "*")),
    *_heard("terminals", ("gateway",), live.output_subject(LOCAL_HOST, "*"), live.card_subject(LOCAL_HOST, "*")),
    *(export for name in _COUNTED for export in _asked(name, ("gateway",), f"vx.svc.{name}.figures", many=True)),
    *_asked("voice", ("gateway", "knowledge"), "vx.svc.voice.figures", many=True),  # whether a call is live
    *(export for name in SERVICES for export in _asked(name, (ADMIN,), f"vx.svc.{name}.>", DISCOVERY, many=True)),
    # Without this door the server itself answers each request to JetStream that the account has none.
    *_asked(ADMIN, (*_READERS, "terminals"), f"{API}.INFO"),
)
"""Every subject that crosses from one account into another."""


def accounts(users: Mapping[str, str], *, system: str = "") -> str:
    """Return the `accounts` block of nats-server's configuration. `users` maps a service's name to the list of users of its account;
    `system` is the list of users that may ask the server about itself."""
    lines = ["accounts {"]
    if system:
        lines.append(f"  $SYS {{ users: [ {system} ] }}")
    for name in (ADMIN, *SERVICES, RECORDINGS):
        lines += [f"  {account(name)} {{", *(["    jetstream: enabled"] if name == ADMIN else []), f"    users: [ {users[name]} ]"]
        lines += ["    exports: [", *(f"      {_exported(export)}" for export in EXPORTS if export.owner == name), "    ]"]
        lines += ["    imports: [", *(f"      {_imported(export)}" for export in EXPORTS if name in export.to), "    ]", "  }"]
    return "\n".join([*lines, "}"]) + "\n"


def _exported(export: Export) -> str:
    to = ", ".join(account(name) for name in export.to)
    if export.heard:
        return f'{{ stream: "{export.subject}", accounts: [{to}] }}'
    many = f', response_type: stream, response_threshold: "{ANSWERS_S}s"' if export.many else ""
    return f'{{ service: "{export.subject}", accounts: [{to}]{many} }}'


def _imported(export: Export) -> str:
    kind = "stream" if export.heard else "service"
    return f'{{ {kind}: {{ account: {account(export.owner)}, subject: "{export.subject}" }} }}'

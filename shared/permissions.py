"""Who may say and hear what on NATS, and use which keys of Valkey: one user for each service, deny by default, and an inbox of its own.

Owns the matrices as data and the words of them in the servers' configurations. Does not own the credentials (`voxbridge.credentials`)
nor the subjects (`shared.bus`). A service may append its own branch of the log and nothing else; reading the log is one right, had by all
three. Streams and consumers are made by `ADMIN` alone. What answers a request may be published because the request came.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from shared import bus
from shared.streams import TOOLS_CONSUMER, VOICE_CONSUMER

ADMIN: Final = "admin"
"""Makes the streams and the consumers, and is who an operator's commands sign in as: may do everything."""

RECORDINGS: Final = "recordings"
"""Who makes files of recordings where users have rights of their own: reads the log and the record, opens it, and writes nothing."""

LIVE: Final = "vxc.>"
_API: Final = "$JS.API"
_ANSWERS_S: Final = 120


class Rights(NamedTuple):
    """Subjects that a user may publish and subscribe, wildcards allowed."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]


def inbox(name: str) -> str:
    """The prefix of the inboxes of a user: nobody else can hear the answers that it gets."""
    return f"_INBOX_{name}"


def branch(writer: str) -> str:
    """All events that a service writes, in any session."""
    return f"vx.s.*.ev.{writer}.>"


def _reading(*streams: str) -> tuple[str, ...]:
    return tuple(f"{_API}.{what}.{stream}" for stream in streams for what in ("STREAM.INFO", "STREAM.MSG.GET", "DIRECT.GET"))


def _service(name: str, *, publish: tuple[str, ...], subscribe: tuple[str, ...], streams: tuple[str, ...], consumer: str = "") -> Rights:
    reading = _reading(*streams)
    working = (
        f"{_API}.CONSUMER.INFO.{bus.EVENT_STREAM}.{consumer}",
        f"{_API}.CONSUMER.MSG.NEXT.{bus.EVENT_STREAM}.{consumer}",
        f"$JS.ACK.{bus.EVENT_STREAM}.{consumer}.>",
    )
    return Rights(
        publish=(branch(name), *publish, f"vx.svc.{name}.health.>", *reading, *(working if consumer else ())),
        subscribe=(f"{inbox(name)}.>", LIVE, "$SRV.>", f"vx.svc.{name}.>", *subscribe),
    )


RIGHTS: Final[Mapping[str, Rights]] = {
    "gateway": _service(
        "gateway",
        publish=(
            "vx.s.*.audio.in",
            "vx.svc.voice.health",
            "vx.svc.voice.state",
            bus.MICROPHONE,
            "vx.svc.tools.health",
            "vx.svc.tools.list",
        ),
        subscribe=("vx.s.*.audio.out", "vx.s.*.ctl.voice"),
        streams=(bus.EVENT_STREAM, bus.AUDIO_STREAM, bus.RECORD_STREAM),
    ),
    "voice": _service(
        "voice",
        publish=(
            "vx.s.*.audio.out",
            "vx.s.*.ctl.voice",
            "vx.svc.voice.released",
            "vx.svc.voice.room",
            "vx.svc.voice.alive.*",
            bus.GONE,
            "vxr.*.audio",
        ),
        subscribe=("vx.s.*.audio.in",),
        streams=(bus.EVENT_STREAM, bus.AUDIO_STREAM, bus.RECORD_STREAM),
        consumer=VOICE_CONSUMER,
    ),
    "tools": _service(
        "tools",
        publish=("vx.svc.tools.held", f"{_API}.STREAM.INFO.{bus.RECORD_STREAM}"),
        subscribe=(),
        streams=(bus.EVENT_STREAM, bus.AUDIO_STREAM),
        consumer=TOOLS_CONSUMER,
    ),
    RECORDINGS: Rights(publish=_reading(bus.EVENT_STREAM, bus.RECORD_STREAM), subscribe=(f"{inbox(RECORDINGS)}.>",)),
}
"""What each service may do, and the reader of recordings; what is not here is refused."""


_COMMON_KEYS: Final = (
    "vx:lease:*",
    "vx:term:*",
    "vx:gateway:*",
    "vx:resumable:*",
    "vx:notes:*",
    "vx:functions",
    "vx:sessions",
    "vx:sessions:*",
    "vx:workers",
    "vx:probe",
)

CLOSED_KEYS: Final = ("vx:key:*", "vx:handle:*", "vx:datakey:*")
"""Keys that gateway and voice alone may use: those of providers and of recordings, sealed as they are, and what resumes a
conversation with a provider. `RECORDINGS` may read those of recordings."""

_ORDINARY: Final = "&* +@all -@admin -@dangerous +info"
_ERASING: Final = " +bgrewriteaof (-@all +del %W~vx:handle:* %W~vx:datakey:*)"
"""What `ADMIN` may beside its keys, to erase a session: delete what it may not read, and have Valkey's file written anew without it."""

VALKEY_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    ADMIN: _COMMON_KEYS,
    "gateway": ("vx:*",),
    "voice": ("vx:*",),
    "tools": _COMMON_KEYS,
}
"""The keys of Valkey that each user may read and write, as patterns. `RECORDINGS` has none of its own to write."""

_OPENING: Final = "%R~vx:datakey:* +@connection +get -@admin -@dangerous"


def valkey_users(digests: Mapping[str, str]) -> str:
    """The users of Valkey by the SHA-256 of their passwords, without what could empty, stop or reconfigure it."""
    return "".join(f"user {name} on #{digest} {_valkey_rights(name)}\n" for name, digest in digests.items())


def _valkey_rights(name: str) -> str:
    if name == RECORDINGS:
        return _OPENING
    keys = " ".join(f"~{pattern}" for pattern in VALKEY_KEYS[name])
    return f"{keys} {_ORDINARY}{_ERASING if name == ADMIN else ''}"


def users(keys: Mapping[str, str]) -> str:
    """The `users` of nats-server's configuration for these public nkeys by name; raises `KeyError` for a name without rights."""
    lines = ["users: ["]
    for name, key in keys.items():
        if name == ADMIN:
            lines.append(f"  {{ nkey: {key} }}")
            continue
        rights = RIGHTS[name]
        lines += [
            f"  {{ nkey: {key}, permissions: {{",
            f"    publish: {{ allow: [{_quoted(rights.publish)}] }}",
            f"    subscribe: {{ allow: [{_quoted(rights.subscribe)}] }}",
            f'    allow_responses: {{ max: 1, expires: "{_ANSWERS_S}s" }}',
            "  } }",
        ]
    return "\n".join([*lines, "]"]) + "\n"


def _quoted(subjects: tuple[str, ...]) -> str:
    return ", ".join(f'"{subject}"' for subject in subjects)

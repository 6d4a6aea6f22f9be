"""Permissions on NATS subjects and Valkey keys: one user for each service, deny by default, and an inbox of its own.

Owns the matrices, and their text in Valkey's configuration. Does not own the accounts that the users of NATS are in and the doors between
them (`voxbridge.shared.bus.accounts`): what crosses from one account into another is decided there, and a user may only use these doors and
what is its account's own. Does not own the credentials (`voxbridge.installation.credentials`) nor the subjects
(`voxbridge.shared.bus.subjects`). Publishing an answer is allowed by the request that it answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from voxbridge.shared.bus import subjects as bus_subjects
from voxbridge.shared.bus.accounts import ADMIN, DISCOVERY, EXPORTS, RECORDINGS, SERVICES

_ANSWERS_S: Final = 120
_AMONG_THEMSELVES: Final[Mapping[str, tuple[str, ...]]] = {
    "voice": ("vx.svc.voice.released", "vx.svc.voice.room", "vx.svc.voice.alive.*", bus_subjects.GONE),
    "tools": ("vx.svc.tools.held", "vx.svc.tools.take.*", "vx.svc.tools.unwanted"),
}
"""Subjects on which processes of one service talk to each other."""


class Rights(NamedTuple):
    """Subjects that a user may publish and subscribe, wildcards allowed."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]


def inbox(name: str) -> str:
    """Return the prefix of the inboxes of a user: no other user can receive the answers that it gets."""
    return f"_INBOX_{name}"


def _rights(name: str) -> Rights:
    asks = tuple(export.subject for export in EXPORTS if name in export.to and not export.heard)
    hears = tuple(export.subject for export in EXPORTS if name in export.to and export.heard)
    says = tuple(export.subject for export in EXPORTS if export.owner == name and export.heard)
    if name not in SERVICES:
        return Rights(publish=asks, subscribe=(f"{inbox(name)}.>", *hears))
    own = (f"vx.svc.{name}.health.>", *_AMONG_THEMSELVES.get(name, ()))
    return Rights(publish=(*asks, *says, *own), subscribe=(f"{inbox(name)}.>", *hears, DISCOVERY, f"vx.svc.{name}.>"))


RIGHTS: Final[Mapping[str, Rights]] = {name: _rights(name) for name in (*SERVICES, RECORDINGS)}
"""Rights of each service within its account, and of the reader of recordings; anything else is refused."""


def users(identities: Mapping[str, str]) -> dict[str, str]:
    """Return the users of NATS in the format of its configuration, by name. `identities` holds what each signs in with: a fragment such as
    `nkey: U…`.

    Raises `KeyError` for a name without rights.
    """
    return {name: f"{{ {identity}{'' if name == ADMIN else _permissions(RIGHTS[name])} }}" for name, identity in identities.items()}


def _permissions(rights: Rights) -> str:
    publish, subscribe = _quoted(rights.publish), _quoted(rights.subscribe)
    answers = f'{{ max: 1, expires: "{_ANSWERS_S}s" }}'
    return f", permissions: {{ publish: {{ allow: [{publish}] }}, subscribe: {{ allow: [{subscribe}] }}, allow_responses: {answers} }}"


def _quoted(subjects: tuple[str, ...]) -> str:
    return ", ".join(f'"{subject}"' for subject in subjects)


_INDEX_KEYS: Final = ("vx:sessions", "vx:sessions:*")
_CALL_KEYS: Final = ("vx:lease:*", "vx:term:*", "vx:resumable:*", "vx:workers", *_INDEX_KEYS)
_CATALOGUE_KEYS: Final = ("vx:notes:*", "vx:functions")

SECRETS: Final = "vx:secret:*"
"""Sealed secrets of handlers: the gateway may write and not read them, the tools read and not write them."""

CLOSED_KEYS: Final = ("vx:key:*", "vx:provided", "vx:token:*", "vx:handle:*", "vx:datakey:*")
"""Keys that tools and the administrator may not use: the sealed keys of providers and of recordings, the handles that resume a conversation
with a provider, and how often access tokens were used. `RECORDINGS` may read the keys of recordings."""

_ORDINARY: Final = (
    "resetchannels +@all -@admin -@dangerous -scan -randomkey -function -fcall -fcall_ro -script|flush -script|kill -pubsub +info"
)
"""Commands of a user: none that empty, stop or reconfigure Valkey, tell the names of others' keys, or change what others run."""

_ERASING: Final = " +scan +bgrewriteaof (-@all +del %W~vx:handle:* %W~vx:datakey:*)"
"""Rights of `ADMIN` beyond its keys, to erase a session: find its notes, delete keys that it may not read, and have Valkey's file rewritten
without them."""

VALKEY_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    ADMIN: (*_CALL_KEYS, *_CATALOGUE_KEYS, "vx:gateway:*", "vx:probe"),
    # No lease, handle or key of a recording: what the outside reaches takes over no call.
    "gateway": (
        "vx:gateway:*",
        "vx:resumable:*",
        *_INDEX_KEYS,
        "vx:key:*",
        "vx:token:*",
        "vx:secretinfo:*",
        "vx:usage:*",
        "vx:pending:*",
        "vx:probe",
    ),
    "voice": (*_CALL_KEYS, "vx:key:*", "vx:provided", "vx:handle:*", "vx:datakey:*", "vx:probe"),
    # Nothing of a session: whoever writes what resumes one joins it as its user.
    "tools": (*_CATALOGUE_KEYS, "vx:probe"),
    "knowledge": ("vx:probe",),
    "awareness": ("vx:probe",),
    "terminals": ("vx:probe",),
}
"""Keys of Valkey that each user may read and write, as patterns. `RECORDINGS` may write none."""

VALKEY_READ: Final[Mapping[str, tuple[str, ...]]] = {
    "gateway": ("vx:lease:*", "vx:functions", "vx:provided"),
    "voice": ("vx:gateway:*", "vx:functions"),
    "tools": (SECRETS,),
}
"""Keys that each user may read beside those."""

VALKEY_WRITE: Final[Mapping[str, tuple[str, ...]]] = {"gateway": (SECRETS,)}
"""Keys that each user may write and not read."""

_OPENING: Final = "%R~vx:datakey:* +@connection +get -@admin -@dangerous"


def valkey_users(digests: Mapping[str, str]) -> str:
    """Return the users of Valkey by the SHA-256 of their passwords, without the commands that could empty, stop or reconfigure it."""
    return "".join(f"user {name} on #{digest} {_valkey_rights(name)}\n" for name, digest in digests.items())


def _valkey_rights(name: str) -> str:
    if name == RECORDINGS:
        return _OPENING
    patterns = (*(f"~{pattern}" for pattern in VALKEY_KEYS[name]), *(f"%R~{pattern}" for pattern in VALKEY_READ.get(name, ())))
    keys = " ".join((*patterns, *(f"%W~{pattern}" for pattern in VALKEY_WRITE.get(name, ()))))
    return f"{keys} {_ORDINARY}{_ERASING if name == ADMIN else ''}"

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
    "tools": ("vx.svc.tools.held", "vx.svc.tools.take.*"),
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

CLOSED_KEYS: Final = ("vx:key:*", "vx:provided", "vx:token:*", "vx:handle:*", "vx:datakey:*")
"""Keys that only gateway and voice may use: the sealed keys of providers and of recordings, the handles that resume a conversation with a
provider, and how often access tokens were used. `RECORDINGS` may read the keys of recordings."""

_ORDINARY: Final = "&* +@all -@admin -@dangerous +info"
_ERASING: Final = " +bgrewriteaof (-@all +del %W~vx:handle:* %W~vx:datakey:*)"
"""Rights of `ADMIN` beyond its keys, to erase a session: delete keys that it may not read, and have Valkey's file rewritten without
them."""

VALKEY_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    ADMIN: _COMMON_KEYS,
    "gateway": ("vx:*",),
    "voice": ("vx:*",),
    "tools": _COMMON_KEYS,
}
"""Keys of Valkey that each user may read and write, as patterns. `RECORDINGS` may write none."""

_OPENING: Final = "%R~vx:datakey:* +@connection +get -@admin -@dangerous"


def valkey_users(digests: Mapping[str, str]) -> str:
    """Return the users of Valkey by the SHA-256 of their passwords, without the commands that could empty, stop or reconfigure it."""
    return "".join(f"user {name} on #{digest} {_valkey_rights(name)}\n" for name, digest in digests.items())


def _valkey_rights(name: str) -> str:
    if name == RECORDINGS:
        return _OPENING
    keys = " ".join(f"~{pattern}" for pattern in VALKEY_KEYS[name])
    return f"{keys} {_ORDINARY}{_ERASING if name == ADMIN else ''}"

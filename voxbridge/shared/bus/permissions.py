"""Who may say and hear what on NATS, and use which keys of Valkey: one user for each service, deny by default, and an inbox of its own.

Owns the matrices, and the words of Valkey's in its configuration. Does not own the accounts that the users of NATS are in and the doors
between them (`voxbridge.shared.bus.accounts`): what crosses from one account into another is decided there, and a user may do no more than
use these doors and what is its account's own. Does not own the credentials (`voxbridge.installation.credentials`) nor the subjects
(`voxbridge.shared.bus.subjects`). What answers a request may be published because the request came.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from voxbridge.shared.bus import subjects as bus_subjects
from voxbridge.shared.bus.accounts import ADMIN, DISCOVERY, DOORS, RECORDINGS, SERVICES

_ANSWERS_S: Final = 120
_AMONG_THEMSELVES: Final[Mapping[str, tuple[str, ...]]] = {
    "voice": ("vx.svc.voice.released", "vx.svc.voice.room", "vx.svc.voice.alive.*", bus_subjects.GONE),
    "tools": ("vx.svc.tools.held",),
}
"""What processes of one service say to each other."""


class Rights(NamedTuple):
    """Subjects that a user may publish and subscribe, wildcards allowed."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]


def inbox(name: str) -> str:
    """The prefix of the inboxes of a user: nobody else can hear the answers that it gets."""
    return f"_INBOX_{name}"


def _rights(name: str) -> Rights:
    asks = tuple(door.subject for door in DOORS if name in door.to and not door.heard)
    hears = tuple(door.subject for door in DOORS if name in door.to and door.heard)
    says = tuple(door.subject for door in DOORS if door.owner == name and door.heard)
    if name not in SERVICES:
        return Rights(publish=asks, subscribe=(f"{inbox(name)}.>", *hears))
    own = (f"vx.svc.{name}.health.>", *_AMONG_THEMSELVES.get(name, ()))
    return Rights(publish=(*asks, *says, *own), subscribe=(f"{inbox(name)}.>", *hears, DISCOVERY, f"vx.svc.{name}.>"))


RIGHTS: Final[Mapping[str, Rights]] = {name: _rights(name) for name in (*SERVICES, RECORDINGS)}
"""What each service may do within its account, and the reader of recordings; what is not here is refused."""


def users(identities: Mapping[str, str]) -> dict[str, str]:
    """The users of NATS in the words of its configuration, by name, for what each signs in with: a fragment such as `nkey: U…`.

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
"""Keys that gateway and voice alone may use: those of providers and of recordings, sealed as they are, what resumes a
conversation with a provider, and how often access tokens were used. `RECORDINGS` may read those of recordings."""

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

"""Inputs of the awareness core besides what clients reported, which are events of the log.

They are written to the journal, so their fields are part of the log format: add a field with a default, never rename one.
"""

from __future__ import annotations

import msgspec


class CallEnded(msgspec.Struct, frozen=True, kw_only=True, tag="call_ended"):
    """A call of a function, or a task, ended at log position `seq` of its session, or of the account's own log. `message` is empty where it
    ended well."""

    sid: str
    seq: int
    function: str
    at: int
    code: str = ""
    message: str = ""


class Settled(msgspec.Struct, frozen=True, tag="settled"):
    """All that waited was taken: what the agent is told may be said anew."""


class Forget(msgspec.Struct, frozen=True, tag="forget"):
    """An operator wants everything that is known to be erased."""


class Erased(msgspec.Struct, frozen=True, tag="erased"):
    """Everything of these sources up to a position is erased from the log."""

    sources: tuple[str, ...]
    up_to: int


Input = CallEnded | Settled | Forget | Erased

"""Replay of a session from its events as REST gives them, journals included.

Owns the way back from JSON to the log's own form. Does not own the replay (`voxbridge.sessions.replay`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from voxbridge.sessions import replay
from voxbridge.shared import events
from voxbridge.shared.errors import Code, VoxbridgeError


def replayed(told: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return by service whether its outputs are the recorded ones, and what differs, in words. Raises `NOT_FOUND` without journals."""
    log = [_recorded(one) for one in told]
    names = replay.took_part(log)
    if not names:
        message = "There is nothing to replay: the session has no journal, or this key may read none."
        raise VoxbridgeError(Code.NOT_FOUND, message, field="session_id")
    found: dict[str, Any] = {}
    for name in names:
        result = replay.run(log, name)
        same = replay.same(result, unfinished=True)
        found[name] = {"same": same, "differences": [] if same else list(replay.report(result, unfinished=True))}
    return {"same": all(one["same"] for one in found.values()), "services": found}


def _recorded(told: dict[str, Any]) -> events.Recorded:
    kind = events.KINDS.get(told["type"])
    if kind is None:
        raise VoxbridgeError(Code.INVALID_ARGUMENT, f"{told['type']} is an event that this version does not know.")
    data = told["data"]
    if told["type"].endswith(".journal"):
        event = msgspec.msgpack.decode(msgspec.msgpack.encode(data), type=kind.cls)
    else:
        event = msgspec.convert(data, kind.cls)
    return events.Recorded(
        id=told["id"],
        type=told["type"],
        v=told["v"],
        sid=told["id"].partition(".")[0],
        ts=told["ts"],
        cause=told["cause"],
        event=event,
        seq=told["seq"],
        writer=told["writer"],
        visible=told["visibility"] == "c",
    )

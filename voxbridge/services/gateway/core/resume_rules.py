"""The rules of resuming a session: its state according to the log, whether the log still holds all that was missed, and the snapshot that
replaces it.

Owns the promise of docs/protocol.md: exactly what was missed, or a snapshot, never a part. Does not own reading the log (`resume_reader`)
or when a message is sent (`step`). Pure; nothing is lost in a crash here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from voxbridge.services.gateway.core import transcript
from voxbridge.shared import events
from voxbridge.shared.bus.moments import State

SAID: Final = ("user.said", "agent.said")
SNAPSHOT_ENTRIES: Final = 1_000
SNAPSHOT_BYTES: Final = 256 * 1024
"""The newest transcript entries that a snapshot holds, and the bytes of their JSON together."""

_encode: Final = msgspec.json.Encoder().encode
_CALL_ENDS: Final = ("tool.completed", "tool.failed", "tool.interrupted", "tool.cancelled", "turn.completed")
_TURN_ENDS: Final = ("turn.completed", "agent.said")


class Speaker(msgspec.Struct, frozen=True, kw_only=True):
    """The current speaker of a session, and all agents that may speak in it. Empty strings where there is no name."""

    agent: str = ""
    agents: tuple[str, ...] = ()
    pipeline: str = ""
    voice: str = ""
    model: str = ""


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a session in the log at one moment. `top` is the position of its last visible event, 0 when there is none yet; `begins`
    is 0 when the log holds the whole session, else the position of the first event that is left; `model_away` says that the connection to a
    realtime model was lost and not restored; `recorded` that the audio is kept."""

    mode: str
    top: int
    begins: int
    started: bool
    turns: int
    state: State
    model_away: bool = False
    speaker: Speaker = Speaker()
    recorded: bool = False
    account: str = ""
    """Account of the session; empty where the log no longer has its request."""


def known(last: Sequence[events.Recorded], *, mode: str, begins: int, owned: bool | None) -> Known | None:
    """Derive the state from the last event of each visible type; None when the session has ended. `owned` says whether a worker holds the
    session; None when that is not known."""
    by_type = {recorded.type: recorded for recorded in last if recorded.visible}
    if "session.ended" in by_type:
        return None
    at = {name: recorded.seq for name, recorded in by_type.items()}
    # A voice worker's first event is `session.started`, which the log of a long session may have dropped.
    started = any(recorded.writer == "voice" for recorded in by_type.values())
    began = by_type["session.started"].event if "session.started" in by_type else None
    model_away = at.get("provider.lost", 0) > max((one.seq for one in by_type.values() if brings_model_back(one.event)), default=0)
    return Known(
        mode=mode,
        top=max(at.values(), default=0),
        begins=begins,
        started=started,
        turns=max((events.voice.turns_by(one.event) for one in by_type.values()), default=0),
        state=_state(at, started=started, away=owned is False or model_away),
        model_away=model_away,
        speaker=speaker(by_type),
        recorded=isinstance(began, events.voice.SessionStarted) and began.recorded,
        account=next((one.event.account for one in last if isinstance(one.event, events.gateway.SessionRequested)), ""),
    )


def brings_model_back(event: events.Event) -> bool:
    """Tell whether an event ends the wait for a realtime model: it is connected, or given up, or the new agent needs none."""
    if isinstance(event, events.voice.ProviderFailed):
        return event.part == "llm"
    return isinstance(event, events.voice.ProviderConnected | events.voice.HandoffCompleted)


def speaker(last: Mapping[str, events.Recorded]) -> Speaker:
    """Return the current agent, from the last event of each type. This works even if the log has dropped the session's beginning."""
    found = Speaker()
    for name in ("agent.said", "session.started", "handoff.completed"):
        match last[name].event if name in last else None:
            case events.voice.AgentSaid(agent=agent, voice=voice) if "session.started" not in last:
                found = msgspec.structs.replace(found, agent=agent, voice=voice)
            case events.voice.SessionStarted() as one:
                found = Speaker(agent=one.agent, agents=one.agents, pipeline=one.pipeline, voice=one.voice, model=one.model)
            case events.voice.HandoffCompleted(target=target, voice=voice, model=model):
                found = msgspec.structs.replace(found, agent=target, voice=voice, model=model)
    return found


def recovers(known: Known, last_seq: int) -> bool:
    """Tell whether `last_seq` is a valid position and the log holds everything after it."""
    return known.begins <= last_seq <= known.top


def snapshot(past: Iterable[events.Recorded], known: Known) -> dict[str, Any]:
    """Build the snapshot for a client that cannot be sent all it missed: the newest entries up to `known.top`, within both limits."""
    entries: deque[tuple[dict[str, Any], int]] = deque()
    total = 0
    truncated = known.begins > 0
    for recorded in past:
        last = entries[-1][0] if entries else None
        entry = transcript.entry(recorded, last) if recorded.seq <= known.top else None
        if entry is None:
            continue
        if last is not None and entry["seq"] == last["seq"]:
            total -= entries.pop()[1]
        size = len(_encode(entry))
        entries.append((entry, size))
        total += size
        while len(entries) > SNAPSHOT_ENTRIES or total > SNAPSHOT_BYTES:
            total -= entries.popleft()[1]
            truncated = True
    made: dict[str, Any] = {"transcript": [entry for entry, _ in entries], "turns": known.turns}
    if truncated:
        made["truncated"] = True
    return made


def _state(at: dict[str, int], *, started: bool, away: bool) -> State:
    """Derive the state from facts. It is never `speaking`: the agent does not speak while no client is connected."""
    if not started:
        return "connecting"
    if away:
        return "restoring"
    if at.get("tool.called", 0) > max(at.get(name, 0) for name in _CALL_ENDS):
        return "calling_tool"
    if at.get("user.said", 0) > max(at.get(name, 0) for name in _TURN_ENDS):
        return "thinking"
    return "listening"

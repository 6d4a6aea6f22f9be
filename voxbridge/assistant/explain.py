"""Explanation of a silent call, and the times of its turns, from what REST tells of it. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

STAGES: Final = (
    "end_of_turn",
    "stt_final",
    "llm_first_token",
    "first_sentence",
    "tts_first_audio",
    "first_audio_sent",
    "first_audio_heard",
)
LINES: Final = 200
TEXT: Final = 200
_LIMITS: Final = ("OVERLOADED", "RATE_LIMITED")
_RESTRICTED: Final = ("MODE_RESTRICTED", "PERMISSION_DENIED", "PROVIDER_UNAVAILABLE", "PROVIDER_REFUSED", "INVALID_ARGUMENT")
_ENDS_OF_CALLS: Final = ("tool.completed", "tool.failed", "tool.interrupted", "tool.cancelled")

Event = Mapping[str, Any]


def line(event: Event, began_us: int) -> dict[str, Any]:
    """Return an event as one line: ms since the session was requested, who wrote it, its type, and what it says in short."""
    return {
        "at_ms": (event["ts"] - began_us) // 1_000,
        "seq": event["seq"],
        "writer": event["writer"],
        "type": event["type"],
        "says": _says(event),
    }


def _says(event: Event) -> str:
    data = event["data"]
    error = data.get("error")
    told = [f"{error['code']}: {error['message']}"] if isinstance(error, dict) else []
    names = (
        "text",
        "unheard",
        "name",
        "function",
        "reason",
        "agent",
        "worker",
        "provider",
        "part",
        "state",
        "how",
        "played_ms",
        "ms",
        "message",
    )
    told += [f"{name}={data[name]}" for name in names if data.get(name) not in (None, "", False, [])]
    return "; ".join(told)[:TEXT]


def after_last_words(events: Sequence[Event]) -> list[dict[str, Any]]:
    """Return what happened from the user's last words on, or in all of the session where the user said nothing."""
    if not events:
        return []
    last = max((number for number, one in enumerate(events) if one["type"] == "user.said"), default=0)
    return [line(one, events[0]["ts"]) for one in events[last : last + LINES]]


def findings(events: Sequence[Event], silences: Sequence[Mapping[str, Any]], *, live: bool, whole: bool) -> list[dict[str, Any]]:
    """Return the causes of a silence that the log shows, the surest first. `whole`: the events begin with the session's first."""
    found = [{"cause": one["cause"], "why": one["why"], "todo": one["todo"], "seq": one["seq"]} for one in silences[-3:]]
    types = [one["type"] for one in events]
    if whole and not {"speech.started", "user.said", "text.received"} & set(types):
        why = "No audio and no text came in: the detector heard no speech, and nothing was typed in the whole session."
        todo = "Look at the page's microphone permission, whether it was muted, and the level in Studio."
        found.append(_finding("no_audio_in", why, todo, events[0] if events else None))
    for event in events:
        error = event["data"].get("error")
        if isinstance(error, dict) and error.get("code") in _LIMITS:
            found.append(_finding("limit", f"A limit was reached: {error['message']}", "Wait, or raise the limit that it names.", event))
        elif event["type"] == "session.ended" and isinstance(error, dict) and error.get("code") in _RESTRICTED:
            found.append(_finding("restricted", f"The session could not do that: {error['message']}", "Change what it names.", event))
        elif event["type"] == "provider.failed" and isinstance(error, dict):
            part = event["data"].get("part", "model")
            found.append(
                _finding("provider_error", f"The {part} failed: {error.get('code')}, {error.get('message')}", "Look at it.", event)
            )
    found += [_hangs(one, live) for one in _open_calls(events)]
    ended = next((one for one in reversed(events) if one["type"] == "session.ended"), None)
    if ended is not None and not found:
        found.append(_finding("ended", f"The session ended: {ended['data'].get('reason')}.", "Start another one.", ended))
    return found


def _finding(cause: str, why: str, todo: str, event: Event | None) -> dict[str, Any]:
    return {"cause": cause, "why": why, "todo": todo, "seq": event["seq"] if event is not None else 0}


def _open_calls(events: Sequence[Event]) -> list[Event]:
    over = {one["data"].get("call_id") for one in events if one["type"] in _ENDS_OF_CALLS}
    return [one for one in events if one["type"] == "tool.called" and one["data"].get("call_id") not in over]


def _hangs(call: Event, live: bool) -> dict[str, Any]:
    name = call["data"].get("name")
    why = f"{name} was called and {'has not answered yet' if live else 'never answered'}."
    return _finding("function", why, "Look at what the function waits for, and give it a time-out of its own.", call)


def latencies(events: Sequence[Event]) -> dict[str, Any]:
    """Return the stages of each turn in ms after the user's last word, and p50 and p95 of each stage."""
    turns = [
        {"turn": one["data"]["number"], "seq": one["seq"], "reason": one["data"].get("reason"), **_stages(one["data"])}
        for one in events
        if one["type"] == "turn.completed"
    ]
    figures = {}
    for stage in STAGES:
        values = sorted(one[stage] for one in turns if stage in one)
        if values:
            figures[stage] = {"p50": _rank(values, 0.5), "p95": _rank(values, 0.95), "turns": len(values)}
    return {"turns": turns, "ms": figures}


def _stages(data: Mapping[str, Any]) -> dict[str, int]:
    latency = data.get("latency") or {}
    return {stage: latency[stage] for stage in STAGES if latency.get(stage) is not None}


def _rank(values: Sequence[int], share: float) -> int:
    return values[max(0, math.ceil(share * len(values)) - 1)]

"""A recorded call as an OpenTelemetry trace: `voxbridge export ID --otlp`.

Owns which events become spans, and their attributes by the GenAI semantic conventions. Reads only the log. So any old call can become a
trace, tracing costs a live call nothing, and every export gives the same bytes. The trace contains no words that were said, nor arguments
and results of functions: they are in the log, under the same ids.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.events import gateway, operator, tools, voice

SCOPE: Final = "voxbridge"
EVENTS_LIMIT: Final = 1_000
"""Span events of one span; further ones are counted as dropped."""
_INTERNAL, _SERVER, _CLIENT = 1, 2, 3
_ERROR: Final = 2
_PROVIDERS: Final = {
    "gemini": "gcp.gemini",
    "openai": "openai",
    "claude": "anthropic",
    "local": "voxbridge.local",
    "echo": "voxbridge.echo",
}
_MARKS: Final = (
    voice.SessionOwned
    | voice.SessionReleased
    | voice.SessionRestored
    | voice.ProviderFailed
    | voice.ProviderLost
    | voice.ProviderGoAway
    | voice.GenerationCancelled
    | gateway.ClientConnected
    | gateway.ClientDisconnected
    | operator.SessionErased
)
"""Events that become span events of the session's span, with those of their fields that are figures or names."""
_WORDS: Final = frozenset({"error", "lost", "reason"})
"""Fields that may hold sentences."""


@dataclass(slots=True)
class Span:
    """A span; times in µs of the Unix clock, `end` 0 while it is open."""

    id: str
    name: str
    parent: str
    start: int
    kind: int = _INTERNAL
    end: int = 0
    attributes: dict[str, Any] = field(default_factory=dict)
    events: list[tuple[int, str, dict[str, Any]]] = field(default_factory=list)
    dropped: int = 0
    failure: str = ""


class Trace:
    """The spans of one session, built from its events in the order of the log."""

    def __init__(self, sid: str) -> None:
        self._sid = sid
        self._root = Span(_span_id(sid, "session"), "session", "", 0, kind=_SERVER)
        self._spans: dict[str, Span] = {}
        self._speech = self._last = 0
        self._agent: dict[str, Any] = {}

    def take(self, recorded: events.Recorded) -> None:  # noqa: C901, PLR0912, PLR0915 - one case for each event
        """Take the next event."""
        at, event = recorded.ts, recorded.event
        if not at or isinstance(event, events.Unreadable):
            return
        self._root.start = min(self._root.start or at, at)
        self._last = max(self._last, at)
        if isinstance(event, _MARKS):
            self._mark(at, recorded.type, event)
        match event:
            case gateway.SessionRequested():
                self._root.start = at
            case voice.SessionStarted():
                self._begun(event)
            case voice.SessionEnded():
                self._root.end = at
                self._root.attributes |= {"voxbridge.session.ended": event.reason, "voxbridge.session.turns": event.turns}
                self._fails(self._root, event.error)
            case voice.SpeechStarted():
                self._speech = at
            case voice.UserSaid():
                start = self._speech if event.source == "speech" and self._speech else at
                self._turn(event.turn, start).attributes["voxbridge.turn.source"] = event.source
                self._speech = 0
            case voice.TurnCompleted():
                self._turn_over(at, event)
            case voice.ToolCalled():
                self._called(at, event)
            case voice.ToolCancelled(call_id=id, reason=reason):
                self._close(f"tool:{id}", at, "cancelled", {"voxbridge.tool.cancelled": reason})
            case tools.ToolCompleted(call_id=id) | gateway.BrowserCallAnswered(call_id=id):
                self._close(f"tool:{id}", at)
            case tools.ToolFailed(call_id=id, error=error):
                self._close(f"tool:{id}", at, error.code)
            case tools.ToolInterrupted(call_id=id):
                self._close(f"tool:{id}", at, "INTERRUPTED")
            case tools.TaskStarted(task_id=id, function=function):
                self._open(f"task:{id}", f"task {function}", at, {"gen_ai.tool.name": function, "voxbridge.task.id": id})
            case tools.TaskCompleted(task_id=id):
                self._close(f"task:{id}", at)
            case tools.TaskFailed(task_id=id, error=error):
                self._close(f"task:{id}", at, error.code)
            case tools.TaskCancelled(task_id=id):
                self._close(f"task:{id}", at, "CANCELLED")
            case tools.TaskInterrupted(task_id=id):
                self._close(f"task:{id}", at, "INTERRUPTED")
            case voice.ProviderConnected():
                self._connected(recorded.seq, at, event)
            case voice.ProviderLost(error=error):
                self._close_all("connection:", at, error.code)
            case voice.HandoffStarted(source=source, target=target, by=by):
                told = {"voxbridge.handoff.source": source, "voxbridge.handoff.target": target, "voxbridge.handoff.by": by}
                self._open(f"handoff:{recorded.seq}", "handoff", at, told)
            case voice.HandoffCompleted():
                self._close_all("handoff:", at)
                self._agent |= {"gen_ai.agent.name": event.target, "gen_ai.request.model": event.model}

    def encode(self) -> bytes:
        """Return the trace as OTLP in JSON, an `ExportTraceServiceRequest`; open spans end with the last event."""
        self._root.end = self._root.end or self._last
        spans = [self._root, *sorted(self._spans.values(), key=lambda span: (span.start, span.id))]
        scope = {"scope": {"name": SCOPE}, "spans": [_span(self._sid, span, self._root.end) for span in spans]}
        resource = {"attributes": _attributes({"service.name": "voxbridge"})}
        return msgspec.json.encode({"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}) + b"\n"

    def _begun(self, event: voice.SessionStarted) -> None:
        self._agent = {
            "gen_ai.provider.name": _PROVIDERS.get(event.mode, event.mode),
            "gen_ai.request.model": event.model,
            "gen_ai.agent.name": event.agent,
            "gen_ai.output.type": "speech" if event.output == "audio" else "text",
        }
        self._root.attributes |= {
            **self._agent,
            "voxbridge.session.mode": event.mode,
            "voxbridge.session.recorded": event.recorded,
            "voxbridge.session.pipeline": event.pipeline,
        }

    def _turn(self, number: int, start: int) -> Span:
        told = {"gen_ai.operation.name": "invoke_agent", **self._agent, "voxbridge.turn.number": number}
        return self._open(f"turn:{number}", f"invoke_agent {self._agent.get('gen_ai.agent.name') or ''}".strip(), start, told)

    def _turn_over(self, at: int, event: voice.TurnCompleted) -> None:
        span = self._turn(event.number, at)
        span.attributes |= {
            "voxbridge.turn.reason": event.reason,
            "gen_ai.usage.input_tokens": event.usage.input_tokens,
            "gen_ai.usage.output_tokens": event.usage.output_tokens,
        }
        for stamp, ms in msgspec.to_builtins(event.latency).items():
            if ms is not None:
                span.attributes[f"voxbridge.latency.{stamp}_ms"] = ms
        self._close(f"turn:{event.number}", at, "failed" if event.reason == "failed" else "")

    def _called(self, at: int, event: voice.ToolCalled) -> None:
        turn = self._spans.get(f"turn:{event.turn}")
        told = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": event.name,
            "gen_ai.tool.call.id": event.call_id,
            "gen_ai.tool.type": "function",
            "voxbridge.tool.kind": event.kind,
        }
        self._open(f"tool:{event.call_id}", f"execute_tool {event.name}", at, told, parent=turn)

    def _connected(self, seq: int, at: int, event: voice.ProviderConnected) -> None:
        self._close_all("connection:", at)
        told = {
            "gen_ai.provider.name": _PROVIDERS.get(event.provider, event.provider),
            "gen_ai.request.model": event.model,
            "voxbridge.connection.resumed_by": event.resumed_by,
        }
        self._open(f"connection:{seq}", f"connection {event.model}".strip(), at, told).kind = _CLIENT

    def _open(self, key: str, name: str, start: int, attributes: Mapping[str, Any], *, parent: Span | None = None) -> Span:
        if key not in self._spans:
            told = {"gen_ai.conversation.id": self._sid, **attributes}
            self._spans[key] = Span(_span_id(self._sid, key), name, (parent or self._root).id, start, attributes=told)
        return self._spans[key]

    def _close(self, key: str, at: int, failure: str = "", attributes: Mapping[str, Any] | None = None) -> None:
        span = self._spans.get(key)
        if span is not None and not span.end:
            span.end, span.failure = at, failure
            span.attributes |= attributes or {}

    def _close_all(self, prefix: str, at: int, failure: str = "") -> None:
        for key in self._spans:
            if key.startswith(prefix):
                self._close(key, at, failure)

    def _mark(self, at: int, name: str, event: events.Event) -> None:
        if len(self._root.events) >= EVENTS_LIMIT:
            self._root.dropped += 1
            return
        fields = {key: value for key, value in msgspec.to_builtins(event).items() if key not in _WORDS and not isinstance(value, dict)}
        error = getattr(event, "error", None)
        told = {f"voxbridge.{key}": value for key, value in fields.items()} | ({"error.type": error.code} if error is not None else {})
        self._root.events.append((at, name, told))

    @staticmethod
    def _fails(span: Span, error: voice.Failure | None) -> None:
        if error is not None:
            span.failure = error.code


def trace(sid: str, log: Iterable[events.Recorded]) -> bytes:
    """Return the events of a session as OTLP in JSON."""
    made = Trace(sid)
    for recorded in log:
        made.take(recorded)
    return made.encode()


def _span_id(sid: str, key: str) -> str:
    return hashlib.sha256(f"{sid}/{key}".encode()).hexdigest()[:16]


def _span(sid: str, span: Span, last: int) -> dict[str, Any]:
    told = span.attributes | ({"error.type": span.failure} if span.failure else {})
    found: dict[str, Any] = {
        "traceId": hashlib.sha256(sid.encode()).hexdigest()[:32] if subjects.account_of(sid) else sid,
        "spanId": span.id,
        **({"parentSpanId": span.parent} if span.parent else {}),
        "name": span.name,
        "kind": span.kind,
        "startTimeUnixNano": _nanoseconds(span.start),
        "endTimeUnixNano": _nanoseconds(max(span.start, span.end or last)),
        "attributes": _attributes(told if span.parent else {"gen_ai.conversation.id": sid, **told}),
    }
    if span.events:
        found["events"] = [{"timeUnixNano": _nanoseconds(at), "name": name, "attributes": _attributes(of)} for at, name, of in span.events]
    if span.dropped:
        found["droppedEventsCount"] = span.dropped
    if span.failure:
        found["status"] = {"code": _ERROR}
    return found


def _attributes(told: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return attributes sorted by name, without empty ones."""
    return [{"key": key, "value": _value(told[key])} for key in sorted(told) if told[key] not in ("", None)]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"stringValue": str(value)}


def _nanoseconds(at: int) -> str:
    return str(at * 1_000)

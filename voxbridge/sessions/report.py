"""The sessions of a log for a person at a terminal: the list, one session as rows, and finding one by its id.

Owns what is reported about a session and in which order. Does not own how it looks (`voxbridge.commands.sessions`). Only reads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Final, Literal

import msgspec

from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events import gateway, operator, tools, voice
from voxbridge.shared.events.journal import JOURNALS
from voxbridge.shared.log.reader import LAST_LIMIT, Log

LIMIT: Final = 10_000
"""Sessions in one list."""

KNOWN_LIMIT: Final = 100_000
"""Sessions among which a part of an id is looked up: the newest."""

NEAREST: Final = 3
STAGES: Final = (
    "end_of_turn",
    "stt_final",
    "llm_first_token",
    "first_sentence",
    "tts_first_audio",
    "first_audio_sent",
    "first_audio_heard",
)
"""Stamps of a turn in the order they are reached (docs/benchmarks.md)."""

_SID: Final = 32
_SUMMARY: Final = (subjects.SESSION, subjects.SAID, "session.started", "turn.completed", "session.ended")
"""Topics under which the voice service stores the state of a session; the last three in the first release."""

_PER_READ: Final = LAST_LIMIT // len(_SUMMARY)

State = Literal["connecting", "live", "ended"]
Kind = Literal["user", "agent", "turn", "tool", "task", "worker", "client", "failure", "end", "handoff", "model"]


class Summary(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A session in the list. Times in ms of the Unix clock; `length_ms` is known once it has ended."""

    id: str
    mode: str
    started_at_ms: int
    state: State = "connecting"
    turns: int = 0
    length_ms: int | None = None
    reason: str = ""
    error: str = ""


class Row(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A row of a session's report, `at_ms` after the request. `stages` are the ms of a turn's stages, in order."""

    at_ms: int
    seq: int
    kind: Kind
    text: str
    note: str = ""
    stages: dict[str, int] = {}


async def newest(log: Log, limit: int) -> list[Summary]:
    """Return the newest sessions that the log holds, newest first."""
    requests = await _requests(log, limit)
    found = {one.sid: Summary(id=one.sid, mode=getattr(one.event, "mode", ""), started_at_ms=one.ts // 1_000) for one in requests}
    sids = list(found)
    async for erased in log.read_all("*", writer="operator", visibility="c", topic="session.erased"):
        _add(found.setdefault(erased.sid, Summary(id=erased.sid, mode="", started_at_ms=0)), erased)
    for first in range(0, len(sids), _PER_READ):
        part = sids[first : first + _PER_READ]
        for recorded in await log.last([subjects.stored_subject(sid, "voice", "c", end) for sid in part for end in _SUMMARY]):
            _add(found[recorded.sid], recorded)
            found[recorded.sid].turns = max(found[recorded.sid].turns, voice.turns_by(recorded.event))
    return sorted(found.values(), key=lambda one: -one.started_at_ms)[:limit]


def _add(summary: Summary, recorded: events.Recorded) -> None:
    match recorded.event:
        case voice.TurnCompleted(number=number):
            summary.turns = max(summary.turns, number)
        case voice.SessionEnded(reason=reason, error=error):
            summary.state, summary.reason = "ended", reason
            summary.length_ms = recorded.ts // 1_000 - summary.started_at_ms
            summary.error = error.message if error is not None else ""
        case operator.SessionErased(began=began, mode=mode):
            summary.state, summary.reason, summary.mode, summary.started_at_ms = "ended", "erased", mode, began // 1_000
        case _ if recorded.visible and recorded.writer == "voice" and summary.state != "ended":
            summary.state = "live"


async def find(log: Log, wanted: str) -> str:
    """Return the session with this id, or the only one whose id begins so; raises `NOT_FOUND` that names the nearest ones. `@` and the name
    of an account stand for the account's own log, `:` and the name of a terminal's life for that one's."""
    if wanted.startswith(":"):
        terminal = subjects.terminal_log(wanted[1:])
        if not (await log.page(terminal, limit=1)).messages:
            message = f"The log holds nothing of the life {wanted[1:]!r} of a terminal. List them: voxbridge terminals lives"
            raise VoxbridgeError(Code.NOT_FOUND, message, field="life")
        return terminal
    if wanted.startswith("@"):
        found_log = subjects.account_log(wanted[1:])
        logs = (found_log, subjects.awareness_log(wanted[1:]))
        if not any([(await log.page(one, limit=1)).messages for one in logs]):
            raise VoxbridgeError(Code.NOT_FOUND, f"The log holds nothing of the account {wanted[1:]!r} itself.", field="account")
        return found_log
    if len(wanted) == _SID and wanted.isalnum() and (await log.page(wanted, limit=1)).messages:
        return wanted
    known = [one.sid for one in reversed(await _requests(log, KNOWN_LIMIT))]
    found = [sid for sid in known if wanted and sid.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        which, nearest = f"{len(found)} sessions have an id that begins with {wanted!r}", found[:NEAREST]
    else:
        which = f"There is no session {wanted[:_SID]!r}"
        alike = get_close_matches(wanted, known[:LIMIT], NEAREST, cutoff=0.7)
        nearest = alike or sorted(known, key=lambda sid: -_shared(sid, wanted))[:NEAREST]
    hint = f"; the nearest are {', '.join(nearest)}" if nearest else "; the log holds none"
    raise VoxbridgeError(Code.NOT_FOUND, f"{which}{hint}.", field="session_id")


def _shared(sid: str, wanted: str) -> int:
    """Return the number of leading characters that both have in common."""
    return next((at for at, pair in enumerate(zip(sid, wanted, strict=False)) if pair[0] != pair[1]), min(len(sid), len(wanted)))


async def _requests(log: Log, limit: int) -> deque[events.Recorded]:
    found: deque[events.Recorded] = deque(maxlen=limit)
    after, more = 0, True
    while more:
        page, more = await log.requested_after(after)
        found += page
        after = page[-1].seq if page else after
        more = more and bool(page)
    return found


def summary(log: Sequence[events.Recorded]) -> Summary:
    """Return the summary of one session from all its events."""
    found = Summary(id=log[0].sid, mode=getattr(log[0].event, "mode", ""), started_at_ms=log[0].ts // 1_000)
    for recorded in log:
        _add(found, recorded)
    return found


def rows(log: Sequence[events.Recorded]) -> Iterator[Row]:
    """Yield the rows of a session in log order, without journals and events that are only for machines. A turn's words are one row."""
    words = _words(log)
    for recorded in log:
        told = row(recorded, log[0].ts)
        if told is not None and told.kind == "user":
            told = msgspec.structs.replace(told, text=words[recorded.seq]) if recorded.seq in words else None
        if told is not None:
            yield told


def _words(log: Sequence[events.Recorded]) -> dict[int, str]:
    """Return all that the user said in each turn, by the position of the turn's first words."""
    found: dict[int, str] = {}
    begun: dict[int, int] = {}
    for one in log:
        if isinstance(one.event, voice.UserSaid):
            if one.event.continues and one.event.turn in begun:
                found[begun[one.event.turn]] += f" {one.event.text}"
            else:
                begun[one.event.turn] = one.seq
                found[one.seq] = one.event.text
    return found


def row(recorded: events.Recorded, began: int) -> Row | None:
    """Return the row of a single event, or None if it has nothing to tell a person. `began` in µs."""
    told = _told(recorded.event)
    if told is None:
        return None
    kind, text, note = told
    stages: dict[str, int] = {}
    if isinstance(recorded.event, voice.TurnCompleted):
        latency = recorded.event.latency
        stages = {name: ms for name in STAGES if (ms := getattr(latency, name)) is not None}
    return Row(at_ms=(recorded.ts - began) // 1_000, seq=recorded.seq, kind=kind, text=text, note=note, stages=stages)


def _told(event: events.Event) -> tuple[Kind, str, str] | None:
    match event:
        case voice.UserSaid(text=text, source=source, continues=continues):
            return "user", text, "typed" if source == "text" else "goes on" if continues else ""
        case voice.AgentSaid(text=text, unheard=unheard, interrupted=interrupted, agent=agent, filler=filler):
            text = " ".join([*([f"({filler})"] if filler else []), *([text] if text else [])])
            cut = (f"interrupted; not heard: {unheard}" if unheard else "interrupted") if interrupted else ""
            return "agent", f"{agent}: {text}" if agent else text, cut
        case voice.TurnCompleted(number=number, reason=reason, usage=usage):
            tokens = f"{usage.input_tokens} tokens in, {usage.output_tokens} out" if usage != voice.Usage() else ""
            return "turn", f"turn {number}", "; ".join(filter(None, ("" if reason == "completed" else reason, tokens)))
        case voice.ProviderFailed(part=part, error=error, handled=handled):
            return "failure", f"{part}: {error.message}", f"{error.code}, handled" if handled else error.code
        case voice.ToolCalled(name=name, arguments=arguments):
            return "tool", f"{name} {msgspec.json.encode(arguments).decode()}", ""
    return _work(event) or _speakers(event) or _life(event)


def _work(event: events.Event) -> tuple[Kind, str, str] | None:
    match event:
        case voice.ToolCancelled(name=name, reason=reason):
            return "tool", f"{name} is no longer wanted", reason
        case tools.ToolCompleted(name=name, result=result, ms=ms):
            return "tool", f"{name} → {msgspec.json.encode(result).decode()}", f"{ms} ms"
        case tools.ToolFailed(name=name, error=error):
            return "failure", f"{name}: {error.message}", error.code
        case tools.ToolInterrupted(name=name):
            return "failure", f"{name} was interrupted; whether it took effect is not known", "INTERRUPTED"
        case tools.TaskCompleted(function=name, announce=announce):
            return "task", f"{name} is done", announce
        case tools.TaskFailed(function=name, error=error):
            return "failure", f"{name}: {error.message}", error.code
        case tools.TaskInterrupted(function=name):
            return "failure", f"{name} was interrupted", "INTERRUPTED"
        case tools.TaskStarted(function=name) | tools.TaskCancelled(function=name):
            return "task", name, "started" if isinstance(event, tools.TaskStarted) else "cancelled"
    return None


def _speakers(event: events.Event) -> tuple[Kind, str, str] | None:
    match event:
        case voice.SessionStarted(agent=agent, pipeline=pipeline, voice=speaks, model=model) if agent:
            return "handoff", f"{agent} begins" + (f" in the pipeline {pipeline}" if pipeline else ""), _on(speaks, model)
        case gateway.HandoffRequested(target=target, reason=reason):
            return "handoff", f"an operator asks for {target}", reason
        case voice.HandoffStarted(source=source, target=target, reason=reason, by=by):
            return "handoff", f"{source or 'the agent'} hands over to {target}", reason or ("by an operator" if by == "operator" else "")
        case voice.HandoffCompleted(target=target, voice=speaks, model=model, ms=ms, history=history):
            return "handoff", f"{target} goes on after {ms} ms ({history})", _on(speaks, model)
        case voice.ProviderConnected(provider=provider, model=model, resumed_by=resumed_by):
            return "model", f"{provider} is connected", f"{model}, {resumed_by}" if resumed_by else model
        case voice.ProviderLost(provider=provider, model=model, close_code=code, error=error):
            return "failure", f"{provider} was lost: {error.message}", f"{model}, closed with {code}"
        case voice.ProviderGoAway(provider=provider, model=model, time_left_ms=left):
            return "model", f"{provider} closes the connection in {left} ms", model
    return None


def _on(speaks: str, model: str) -> str:
    return ", ".join(filter(None, (f"voice {speaks}" if speaks else "", model)))


def _life(event: events.Event) -> tuple[Kind, str, str] | None:
    match event:
        case gateway.ClientConnected(resumed=resumed):
            return "client", "resumed" if resumed else "connected", ""
        case gateway.ClientDisconnected(reason=reason):
            return "client", "gone", reason
        case voice.SessionOwned(worker=worker, term=term):
            return "worker", f"{worker} holds the session", f"term {term}"
        case voice.SessionReleased(worker=worker, term=term, reason=reason):
            return "worker", f"{worker} let go: {reason}", f"term {term}"
        case voice.SessionRestored(worker=worker, term=term, how=how, gap_ms=gap_ms, lost=lost):
            note = f"; lost: {', '.join(lost)}" if lost else "; nothing lost"
            if not worker:
                return "model", f"the model goes on ({how}) after a gap of {gap_ms} ms{note}", ""
            return "worker", f"{worker} carries on ({how}) after a gap of {gap_ms} ms{note}", f"term {term}"
        case operator.SessionErased(by=by, events=count):
            return "end", "erased", f"by {by}, {count:,} events"
        case voice.SessionEnded(reason=reason, error=error):
            return "end", f"ended: {reason}", error.message if error is not None else ""
    return None


def is_journal(recorded: events.Recorded) -> bool:
    """Return whether an event is a service's own record of its inputs."""
    return isinstance(recorded.event, tuple(JOURNALS.values()))

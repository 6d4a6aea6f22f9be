"""The state of any session at any moment, folded from the log on request: `vx.svc.voice.state`.

A question is `{sid, at}` (µs of the Unix clock) or `{sid, seq}` (a position of the log). The answer is the state after the inputs
taken until then, in JSON. One fold runs at a time, in a thread, and gives way to live calls. The sessions asked about last are kept
with snapshots, so that moving through a session costs little. Owns no session and writes nothing; everything here is a cache.
"""

from __future__ import annotations

import asyncio
import copy
import time
from bisect import bisect_right
from collections import OrderedDict
from typing import Any, Final

import msgspec
from nats.micro.request import Request

from voxbridge.services.voice.core import inputs, step
from voxbridge.services.voice.core.outstanding import Outstanding
from voxbridge.services.voice.core.state import Reply, State
from voxbridge.services.voice.core.transition import shown_state
from voxbridge.services.voice.core.turns import playout
from voxbridge.services.voice.questions import Questions
from voxbridge.shared import events
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.language.conversation import Message
from voxbridge.shared.log.reader import Log, decode, position
from voxbridge.shared.step.journal import JournalBroken, JournalReader, LogInput

SUBJECT: Final = "vx.svc.voice.state"
KEPT: Final = 4
"""Number of sessions whose inputs are kept."""

SESSION_BYTES: Final = 64 * 1024 * 1024
"""Bytes of one session's log that are read at most: about ten hours of talk."""

SNAPSHOT_EVERY: Final = 256
PAGE: Final = 512
HISTORY_SHOWN: Final = 40
TEXT_SHOWN: Final = 2_000
LIST_SHOWN: Final = 64


class Question(msgspec.Struct, frozen=True):
    """A question for the state of a session; without a time or a position, for its newest state."""

    sid: str
    at: int | None = None
    seq: int | None = None


class Snapshot(msgspec.Struct):
    """The state after some inputs, and the timers and effects running then."""

    state: State
    running: Outstanding
    since: dict[int, int]
    """Time at which each effect was started, µs."""

    worker: str = ""


class SessionInputs:
    """The inputs of one session, as far as they were read. Not safe for use by two threads at a time."""

    def __init__(self, sid: str) -> None:
        self.after = 0
        self._sid = sid
        self._bytes = 0
        self._journal: JournalReader[inputs.Input] = JournalReader("voice", inputs.Input)
        self._inputs: list[inputs.Input | LogInput] = []
        self._times: list[int] = []
        self._latest: list[int] = []
        """Greatest time up to each input: a worker's clock may be behind that of its predecessor."""
        self._journals: list[tuple[int, int]] = []
        """Position of each journal entry, and the number of inputs up to its end."""
        self._snapshots = [Snapshot(step.initial(sid), Outstanding(), {})]

    def read(self, messages: list[Any]) -> None:
        """Add a page of the log."""
        for message in messages:
            self._bytes += len(message.data)
            self.after = position(message)
            if self._bytes > SESSION_BYTES:
                raise VoxbridgeError(
                    Code.TOO_LARGE,
                    f"The log of this session is over {SESSION_BYTES >> 20} MiB: its state is not folded.",
                    limit=SESSION_BYTES,
                )
            recorded = decode(message)
            if not self._journal.holds_entry(recorded.event):
                self._journal.add(recorded)
                continue
            try:
                self._take(recorded)
            except JournalBroken as error:
                if error.missing is None:
                    raise
                raise VoxbridgeError(Code.NOT_FOUND, "The beginning of this session is older than the log keeps.", field="sid") from error

    def _take(self, entry: events.Recorded) -> None:
        for taken, input in self._journal.read(entry):
            self._inputs.append(input)
            self._times.append(taken.at)
            self._latest.append(max(taken.at, self._latest[-1] if self._latest else 0))
        self._journals.append((entry.seq, len(self._inputs)))

    def answer(self, question: Question) -> bytes:
        """Return the requested state, as JSON."""
        count = len(self._inputs)
        if question.at is not None:
            count = bisect_right(self._latest, question.at)
        elif question.seq is not None:
            known = bisect_right(self._journals, question.seq, key=lambda entry: entry[0])
            count = self._journals[known - 1][1] if known else 0
        at = question.at if question.at is not None else self._latest[count - 1] if count else 0
        return msgspec.json.encode(_shown(self._sid, self._fold(count), at, count))

    def _fold(self, count: int) -> Snapshot:
        nearest = min(count // SNAPSHOT_EVERY, len(self._snapshots) - 1)
        now = _copied(self._snapshots[nearest])
        for number in range(nearest * SNAPSHOT_EVERY, count):
            if number == len(self._snapshots) * SNAPSHOT_EVERY:
                self._snapshots.append(_copied(now))
                time.sleep(0)  # this runs in a thread: give the interpreter to the event loop
            input, at = self._inputs[number], self._times[number]
            now.state, outputs = step.step(now.state, input, at)
            now.running.watch(input, outputs, at)
            now.since = {effect_id: now.since.get(effect_id, at) for effect_id in now.running.effects}
            if isinstance(input, inputs.Opened | inputs.TakenOver | inputs.Refused):
                now.worker = input.worker
        return now


class Inspector:
    """Endpoint that answers questions for the state of a session."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._kept: OrderedDict[str, SessionInputs] = OrderedDict()
        self._questions = Questions(Question, "state", self._answer)

    async def serve(self, request: Request) -> None:
        """Answer one request; an error is sent as a typed error."""
        await self._questions.serve(request)

    async def _answer(self, question: Question) -> bytes:
        sid = question.sid
        found = self._kept.pop(sid, None) or SessionInputs(sid)
        try:
            await self._read_on(found, sid)
            answer = await asyncio.to_thread(found.answer, question)
        except VoxbridgeError:
            raise
        except Exception as error:  # an old journal that this release cannot replay must not end the service
            reason = f"{type(error).__name__}: {error}"[:TEXT_SHOWN]
            raise VoxbridgeError(Code.UNAVAILABLE, f"This release cannot fold the session: {reason}", retryable=False) from error
        self._kept[sid] = found
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return answer

    async def _read_on(self, found: SessionInputs, sid: str) -> None:
        more = True
        while more:
            page = await self._log.page(sid, after=found.after, limit=PAGE)
            await asyncio.to_thread(found.read, page.messages)
            more = page.more


def _copied(one: Snapshot) -> Snapshot:
    running = copy.copy(one.running)
    running.timers, running.effects, running.taken = dict(running.timers), dict(running.effects), dict(running.taken)
    return Snapshot(one.state, running, dict(one.since), one.worker)


def _shown(sid: str, found: Snapshot, at: int, count: int) -> dict[str, Any]:
    state, running = found.state, found.running
    speech = state.utterance
    timers = sorted(running.timers.items(), key=lambda one: one[1]) if state.phase != "ended" else []
    return {
        "sid": sid,
        "at": at,
        "inputs": count,
        "state": "restoring" if state.ownership.released else shown_state(state),
        "phase": state.phase,
        "worker": found.worker,
        "term": state.ownership.term,
        "turns": state.counters.turns,
        "model": state.team.model,
        "voice": state.team.voice,
        "client_away_since": state.client.away_since or None,
        "history": [_line(message) for message in state.conversation.history[-HISTORY_SHOWN:]],
        "history_count": len(state.conversation.history),
        "speech": None
        if speech is None
        else {"from_ms": speech.from_ms, "to_ms": speech.to_ms, "text": _cut(speech.text), "complete": speech.complete},
        "reply": _reply(state.speech.reply),
        "cut": _reply(state.speech.cut or state.speech.paused or state.speech.withdrawn),
        "notices": [_cut(notice.text) for notice in state.pending.notices],
        "timers": [{"name": name, "due": due} for name, due in timers[:LIST_SHOWN]],
        "effects": [
            {"id": effect_id, "kind": str(effect.__struct_config__.tag), "since": found.since.get(effect_id, at)}
            for effect_id, effect in list(running.effects.items())[-LIST_SHOWN:]
        ],
    }


def _line(message: Message) -> dict[str, Any]:
    calls = [_cut(f"{use.name}({msgspec.json.encode(use.arguments).decode()})") for use in message.uses]
    return {"role": message.role, "text": _cut(message.text), "calls": calls}


def _reply(reply: Reply | None) -> dict[str, Any] | None:
    if reply is None:
        return None
    return {
        "generation": reply.generation,
        "turn": reply.turn,
        "text": _cut(" ".join(piece.text for piece in reply.pieces)),
        "unsplit": _cut(reply.round.unsplit),
        "closed": reply.closed,
        "playing": reply.playback.playing,
        "made_ms": playout.made_ms(reply),
        "played_ms": reply.playback.played_ms,
        "calls": [{"call_id": call.call_id, "name": call.name, "browser": call.browser} for call in reply.round.calls],
    }


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= TEXT_SHOWN else f"{text[: TEXT_SHOWN - 1]}…"

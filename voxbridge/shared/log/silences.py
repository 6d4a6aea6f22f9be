"""Silences of a call: the stretches in which the user waited and nothing was heard, each with its cause and what to do. Pure.

Everything comes from the log, so an old call is explained like one in progress. The user waits from the end of their speech or text until
the turn is over. A stretch of that counts as a silence when neither the user nor the agent is heard for longer than `LONGEST_MS`. The CLI
(`voxbridge sessions why`), the REST interface and Studio give the same answer, since all of them ask here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from voxbridge.shared import events
from voxbridge.shared.events import gateway, tools, voice

LONGEST_MS: Final = 2_500
"""Milliseconds up to which a pause is no silence."""

LIMIT: Final = 100
"""Silences of one call that are returned at most: the newest."""

REPORT_MS: Final = 1_000
"""Milliseconds between two playback reports of a client that plays audio."""

NOISE_US: Final = 2_000_000
"""Microseconds before a silence within which a barge-in may have been a noise."""

Cause = Literal[
    "worker",
    "client",
    "provider",
    "busy",
    "model_silent",
    "model_late",
    "function",
    "handoff",
    "transcription",
    "voice",
    "noise",
    "muted",
    "ended",
    "unknown",
]

WHAT_TO_DO: Final[dict[Cause, str]] = {
    "worker": "Nothing: the call went on by itself. Where it happens often, look for what ends the workers (`voxbridge doctor`, Health).",
    "client": "Look at the network between the page and the gateway; the call waits for the page to be back.",
    "provider": "Nothing: the connection is opened again. Where it happens often, look at the provider's status page.",
    "busy": "End what else uses the machine, choose a smaller model (`VOXBRIDGE_MODELS_SET=small`) or one elsewhere (`VOXBRIDGE_LLM_URL`).",
    "model_silent": "Ask again. Where it happens often, shorten the agent's prompt, or try another model.",
    "model_late": "Look at the machine's load; choose a smaller model, or one elsewhere (`VOXBRIDGE_LLM_URL`).",
    "function": "Look at what the function waits for, and give it a time-out of its own; a task answers at once.",
    "handoff": "Nothing: the next agent's model was being connected.",
    "transcription": "Look at the machine's load; choose a smaller model for speech, or one elsewhere (`VOXBRIDGE_STT_URL`).",
    "voice": "Look at the machine's load, and at `voxbridge doctor` for the voice.",
    "noise": "Nothing was said: move the microphone, or use push to talk.",
    "muted": "Unmute the microphone, or type.",
    "ended": "Start another call.",
    "unknown": "Open the call in Studio and look at its state at this moment; `voxbridge replay` repeats it.",
}


class Silence(msgspec.Struct, frozen=True, kw_only=True):
    """A silence, in ms since the first event. `turn` is 0 when none was open; `open` is true while it goes on."""

    from_ms: int
    to_ms: int
    cause: Cause
    why: str
    todo: str
    turn: int = 0
    seq: int = 0
    """Position of the event that explains it; 0 when none does."""

    open: bool = False


def silences(log: Sequence[events.Recorded], now_us: int | None = None) -> list[Silence]:
    """Return the silences of a call in order of time. `now_us` is the current time of a call in progress; without it the call ends with its
    last event."""
    if not log:
        return []
    ended = isinstance(log[-1].event, voice.SessionEnded) or any(isinstance(one.event, voice.SessionEnded) for one in log)
    start, live = log[0].ts, not ended and now_us is not None
    end = max(now_us or 0, log[-1].ts) if live else log[-1].ts
    found = []
    for stretch in _waits(log, end):
        for begin, over in _without(stretch, _heard(log, end)):
            if (over - begin) // 1_000 > LONGEST_MS:
                cause, why, seq = _cause(log, begin, over, stretch.turn)
                open_ = over >= end and live
                found.append(
                    Silence(
                        from_ms=(begin - start) // 1_000,
                        to_ms=(over - start) // 1_000,
                        cause=cause,
                        why=why,
                        todo=WHAT_TO_DO[cause],
                        turn=stretch.turn,
                        seq=seq,
                        open=open_,
                    )
                )
    return sorted([*found, *_muted(log, start, end, live=live)], key=lambda one: one.from_ms)[-LIMIT:]


class _Wait(msgspec.Struct, frozen=True):
    begin: int
    end: int
    turn: int


def _waits(log: Sequence[events.Recorded], end: int) -> list[_Wait]:
    """Return the waits of a call: from the end of the user's speech or text to the end of the turn."""
    found: list[_Wait] = []
    spoke: int | None = None
    begun: dict[int, int] = {}
    turn = 0
    for one in log:
        match one.event:
            case voice.SpeechEnded():
                spoke = one.ts
            case voice.SpeechStarted():
                spoke = None
            case gateway.TextReceived():
                spoke = one.ts
            case voice.UserSaid(turn=number):
                turn = number
                begun.setdefault(number, spoke if spoke is not None else one.ts)
                spoke = None
            case voice.TurnCompleted(number=number):
                found.append(_Wait(begun.pop(number, one.ts), one.ts, number))
            case voice.SessionEnded():
                found += [_Wait(at, one.ts, number) for number, at in begun.items()]
                begun = {}
                spoke = None
    found += [_Wait(at, end, number) for number, at in begun.items()]
    if spoke is not None:
        found.append(_Wait(spoke, end, turn + 1))
    return found


def _heard(log: Sequence[events.Recorded], end: int) -> list[tuple[int, int]]:
    """Return the stretches in which the agent or the user could be heard, in µs."""
    found: list[tuple[int, int]] = []
    playing: dict[int, tuple[int, int]] = {}
    reported: set[int] = set()
    speaks: int | None = None
    for one in log:
        match one.event:
            case gateway.PlaybackReported(generation=generation, played_ms=played, state=state):
                reported.add(generation)
                begin = one.ts - min(played, REPORT_MS) * 1_000
                if state == "playing":
                    playing[generation] = (begin, one.ts + (REPORT_MS if played else 0) * 1_000)
                    found.append((begin, one.ts))
                elif played:
                    found.append((max(begin, playing.get(generation, (begin, 0))[0]), one.ts))
                    playing.pop(generation, None)
            case voice.AgentSaid(generation=generation, played_ms=played_ms, output=output):
                if output == "text":
                    found.append((one.ts, one.ts + 1))
                elif generation not in reported and played_ms:
                    found.append((one.ts - played_ms * 1_000, one.ts))
            case voice.SpeechStarted():
                speaks = one.ts
            case voice.SpeechEnded():
                if speaks is not None:
                    found.append((speaks, one.ts))
                speaks = None
    found += [span for span in playing.values() if span[1] > span[0]]
    if speaks is not None:
        found.append((speaks, end))
    return sorted(found)


def _without(stretch: _Wait, heard: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    found, at = [], stretch.begin
    for begin, over in heard:
        if over <= at or begin >= stretch.end:
            continue
        if begin > at:
            found.append((at, begin))
        at = max(at, over)
    if at < stretch.end:
        found.append((at, stretch.end))
    return found


def _cause(log: Sequence[events.Recorded], begin: int, over: int, turn: int) -> tuple[Cause, str, int]:
    within = [one for one in log if begin <= one.ts <= over]
    for explain in (_replaced, _away, _lost, _failed, _called, _handed, _noise):
        found = explain(log, within, begin, over)
        if found is not None:
            return found
    return _late(log, begin, over, turn)


_Found = tuple[Cause, str, int] | None
_Log = Sequence[events.Recorded]


def _replaced(_: _Log, within: _Log, _begin: int, _over: int) -> _Found:
    for one in within:
        if isinstance(one.event, voice.SessionRestored) and one.event.worker:
            lost = " ".join(one.event.lost)
            what = f"Nobody held the call for {_s(one.event.gap_ms)}: its voice worker died or was stopped, and {one.event.worker} went on."
            return "worker", f"{what} {lost}".strip(), one.seq
    return None


def _away(log: _Log, _within: _Log, begin: int, over: int) -> _Found:
    away = None
    for one in log:
        if one.ts > over:
            break
        if isinstance(one.event, gateway.ClientDisconnected):
            away = one
        elif isinstance(one.event, gateway.ClientConnected):
            if away is not None and one.ts >= begin:
                return "client", f"The page was cut off ({_event(away).reason}) and came back.", away.seq
            away = None
    if away is None:
        return None
    return "client", f"The page was cut off ({_event(away).reason}), so nothing could be heard.", away.seq


def _event(one: events.Recorded) -> gateway.ClientDisconnected:
    assert isinstance(one.event, gateway.ClientDisconnected)  # noqa: S101 - for the types
    return one.event


def _lost(log: _Log, _within: _Log, begin: int, over: int) -> _Found:
    lost = None
    for one in log:
        if one.ts > over:
            break
        if isinstance(one.event, voice.ProviderLost):
            lost = lost or one
        elif isinstance(one.event, voice.ProviderConnected) and one.ts < begin:
            lost = None
    if lost is None or not isinstance(lost.event, voice.ProviderLost):
        return None
    return "provider", f"The connection to {lost.event.provider} was lost: {_sentence(lost.event.error.message)}", lost.seq


def _failed(_: _Log, within: _Log, _begin: int, _over: int) -> _Found:
    causes: dict[str, Cause] = {"stt": "transcription", "tts": "voice", "llm": "model_silent"}
    for one in within:
        event = one.event
        if isinstance(event, voice.ProviderFailed) and event.part in causes:
            busy = "busy" in event.error.message.lower()
            asked = "It was asked again." if event.handled else "The agent said so."
            return "busy" if busy else causes[event.part], f"{_PARTS[event.part]}: {_sentence(event.error.message)} {asked}", one.seq
    return None


_PARTS: Final = {"stt": "Speech to text failed", "tts": "The voice failed", "llm": "The language model did not answer"}


def _called(log: _Log, _within: _Log, begin: int, over: int) -> _Found:
    """Return the function call that was open longest, if that was more than half of the stretch."""
    longest: _Found = None
    most = 0
    for one in log:
        if not isinstance(one.event, voice.ToolCalled) or one.ts > over:
            continue
        call_id = one.event.call_id
        done = next((other.ts for other in log if other.seq > one.seq and _ends(other.event, call_id)), None)
        shared = min(over, done or over) - max(begin, one.ts)
        if shared > max(most, (over - begin) // 2):
            most = shared
            took = f"took {_s((done - one.ts) // 1_000)}" if done is not None else f"has not answered for {_s((over - one.ts) // 1_000)}"
            longest = "function", f"The function {one.event.name} {took}.", one.seq
    return longest


def _ends(event: events.Event, call_id: str) -> bool:
    over = (tools.ToolCompleted, tools.ToolFailed, tools.ToolInterrupted, voice.ToolCancelled, gateway.BrowserCallAnswered)
    return isinstance(event, over) and event.call_id == call_id


def _handed(log: _Log, _within: _Log, begin: int, over: int) -> _Found:
    for one in log:
        if isinstance(one.event, voice.HandoffStarted) and one.ts <= over:
            done = next((other.ts for other in log if other.seq > one.seq and isinstance(other.event, voice.HandoffCompleted)), over)
            if done > begin:
                return "handoff", f"{one.event.source or 'The agent'} handed over to {one.event.target}, whose model had to begin.", one.seq
    return None


def _noise(log: _Log, within: _Log, begin: int, over: int) -> _Found:
    for one in within:
        if isinstance(one.event, voice.TurnCompleted) and one.event.reason == "no_speech":
            return "noise", "What sounded like speech held no words.", one.seq
    said = any(isinstance(one.event, voice.UserSaid) for one in within)
    lately = (one for one in log if begin - NOISE_US <= one.ts <= over)
    cut = next((one for one in lately if isinstance(one.event, voice.GenerationCancelled) and one.event.by == "barge_in"), None)
    if cut is not None and not said:
        return "noise", "Something that sounded like speech stopped the agent, and no words came.", cut.seq
    return None


def _late(log: _Log, begin: int, over: int, turn: int) -> tuple[Cause, str, int]:
    """Return the stage that took longest by the turn's latency stamps; for a turn in progress, the stage that has not finished."""
    done = next((one for one in log if isinstance(one.event, voice.TurnCompleted) and one.event.number == turn and turn), None)
    if done is not None and isinstance(done.event, voice.TurnCompleted):
        at, steps = 0, []
        for name, cause, what in _STAGES:
            stamp = getattr(done.event.latency, name)
            if stamp is not None:
                steps.append((stamp - at, cause, what))
                at = stamp
        took, cause, what = max(steps, default=(0, "unknown", ""))
        if took * 2 >= LONGEST_MS:
            return cause, f"{what} took {_s(took)}.", done.seq
    asked = (one for one in reversed(log) if one.ts <= over)
    said = next((one for one in asked if isinstance(one.event, voice.UserSaid) and one.event.turn == turn), None)
    if done is None and said is not None:
        return "model_late", f"Nothing has come of the language model for {_s((over - max(begin, said.ts)) // 1_000)}.", said.seq
    if done is None and said is None and turn:
        return "transcription", f"What was said is not understood yet after {_s((over - begin) // 1_000)}, or it held no words.", 0
    return "unknown", "The log does not say why.", 0


_STAGES: Final[tuple[tuple[str, Cause, str], ...]] = (
    ("end_of_turn", "unknown", "Deciding that the user had finished"),
    ("stt_final", "transcription", "Understanding what was said"),
    ("llm_first_token", "model_late", "The language model's first word"),
    ("first_sentence", "model_late", "The language model's first sentence"),
    ("tts_first_audio", "voice", "The voice's first sound"),
    ("first_audio_sent", "voice", "Sending the first sound"),
    ("first_audio_heard", "client", "Playing the first sound"),
)


def _muted(log: _Log, start: int, end: int, *, live: bool) -> list[Silence]:
    """Return the stretches in which the microphone was paused and the user did not type for more than ten seconds."""
    found: list[Silence] = []
    since: events.Recorded | None = None
    for one in [*log, None]:
        at = one.ts if one is not None else end
        event = one.event if one is not None else None
        spoke = event is None or isinstance(event, voice.SpeechStarted | gateway.TextReceived | voice.SessionEnded)
        if since is not None and spoke:
            if at - since.ts > 10_000_000:
                span = {"from_ms": (since.ts - start) // 1_000, "to_ms": (at - start) // 1_000}
                why = "The microphone was muted or let go, so nothing was heard of the user."
                found.append(Silence(**span, cause="muted", why=why, todo=WHAT_TO_DO["muted"], seq=since.seq, open=live and event is None))
            since = None
        if isinstance(event, gateway.AudioEnded):
            since = one
    return found


def _s(ms: int) -> str:
    return f"{ms / 1_000:.1f} s"


def _sentence(text: str) -> str:
    text = text.strip() or "it is not known why"
    return text if text[-1] in ".!?" else f"{text}."

"""Connection to a realtime model, kept for as long as the session lasts. Pure.

Providers close connections every few minutes, lose them, and refuse to resume them; workers die. This module turns each of these
faults into a short pause. It reopens a connection by a ladder of methods: with the newest handle; seeded from the session's history;
new, with a summary in the instructions. Unanswered speech is sent again from the kept microphone audio, or asked again in text. A
response that was cut off goes on after the words that were heard. Results of calls that a lost connection had requested are sent as
content. A connection that is about to be closed is replaced in time: at a turn's boundary with a fresh handle, at the latest
`MARGIN_MS` before its end.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from msgspec.structs import replace

from voxbridge.services.voice.core import capabilities, provider_events
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.prompt import prompt
from voxbridge.services.voice.core.state import Line, Note, State
from voxbridge.services.voice.core.transition import ANSWER, Draft
from voxbridge.services.voice.core.turns import turns
from voxbridge.shared.agents.model import Agent
from voxbridge.shared.events import voice as ev

LEAVE: Final = "leave"
"""Timer for leaving a connection that is about to be closed."""

MARGIN_MS: Final = 3_000
EARLY_S: Final = 90
"""Seconds before the longest duration of a connection at which it is left, if its provider gives no warning."""

HANDLE_S: Final = 7_000
"""Seconds for which a handle is tried; it is valid for two hours after its session ended."""

DEATHS_LIMIT: Final = 3
SEED_TRIES: Final = 3
TRIES_LIMIT: Final = 7
BACK_OFF_MS: Final = (0, 0, 500, 1_000, 2_000, 4_000, 4_000)
REPLAY_MS: Final = 1_500
"""Milliseconds by which words lag behind speech: this much microphone audio is sent again over a new connection."""

NOTES_LIMIT: Final = 48
"""Number of texts that may wait for a connection: results of all calls that may be open (`tool_calls.CALLS_LIMIT`), and 16 others."""

_RUNGS: Final[dict[str, Literal["handle", "reseeded", "fresh"]]] = {"handle": "handle", "seed": "reseeded", "summary": "fresh", "": "fresh"}

ONLY_A_SUMMARY: Final = "The model knows only a summary of what was said."
ONLY_THE_END: Final = "Of the beginning of the conversation the model knows only a summary."

GO_ON: Final = (
    'A technical fault cut you off. The last words that were heard of you are: "{}". Go on right after them and do not mention the fault.'
)
ASKED: Final = "A technical fault kept you from answering. Answer now, and do not mention the fault: {}"
ANSWER_AGAIN: Final = "Please answer what I just said."
MEANWHILE: Final = "For your information, this was said meanwhile:\n{}"


def begin(d: Draft, agent: Agent) -> None:
    """Open the connection of an agent that speaks from now on. State of an earlier connection to the same model is kept."""
    chosen = agent.realtime
    if chosen is None:
        raise RuntimeError("a realtime agent was expected")
    model = chosen.model or capabilities.DEFAULT_MODELS[chosen.provider]
    line = d.state.line
    if line is None or (line.provider, line.model) != (chosen.provider, model):
        if line is not None:
            leave(d)
        line = Line(provider=chosen.provider, model=model, calls=line.calls if line is not None else ())
    elif not can(line).resumes_with_changes:
        line = replace(line, handle="", resumable=False, active=False)
    d.state.line = line
    connect(d)


def leave(d: Draft) -> None:
    """Close the connection and drop its state: its model takes no part any more."""
    line = d.state.line
    if line is not None:
        d.cancel(line.effect)
        d.cancel_timers(LEAVE, ANSWER, "words", "pause")
        d.state.line = None


def connect(d: Draft, *, delay_ms: int = 0) -> None:
    """Replace the connection by a new one, with the best method of the ladder that is still possible."""
    state, line = d.state, _line(d)
    able = can(line)
    unfinished = line.notice and not line.announced and bool(line.said or line.asked)
    put_back_notice(d)
    if unfinished:
        change(d, go_on=True)  # the model was asked to go on after a noise or a fault, and has not begun
    line = _line(d)
    d.cancel(line.effect or None)
    d.cancel_timers(LEAVE)
    limit, earlier = prompt.room(state.team.agent), state.conversation.earlier
    instructions, history = (
        state.team.instructions,
        prompt.window(state.team.instructions, state.conversation.history, limit=limit, earlier=earlier)[1:],
    )
    handle = line.handle if _is_good(d, line) else ""
    if handle:
        resumes, history = "handle", ()
    elif not history:
        resumes = ""
    elif line.tries < SEED_TRIES and able.seeds_history:
        resumes = "seed"
    else:
        resumes, history = "summary", ()
        instructions = prompt.with_summary(instructions, state.conversation.history, limit=limit, earlier=earlier)
    replayed = line.from_ms if line.asking else max(line.from_ms, line.audio_ms - REPLAY_MS)
    effect = d.start(
        out.Connect(
            provider=line.provider,
            model=line.model,
            voice=state.team.voice,
            language=state.team.agent.language,
            instructions=instructions,
            functions=state.team.functions,
            history=history,
            handle=handle,
            audio_from_ms=max(0, replayed),
            delay_ms=delay_ms,
            manual_activity=state.team.agent.manual_activity,
            speaking=state.team.agent.manual_activity and line.active,
            search=state.team.agent.search,
        )
    )
    change(
        d,
        effect=effect,
        ready=False,
        resumes=resumes,
        shortened=resumes == "seed" and prompt.is_cut(state.conversation.history, limit=limit, earlier=earlier),
        handle=handle,
        resumable=bool(handle),
        leaving_at=0,
        muted=False,
        cut=False,
        speaking=False,
        called=False,
        over=True,
        counted_ms=0,
        written="",
        words=() if line.asking and not line.turn else line.words,  # unanswered words are transcribed again
    )


def ready(d: Draft, input: provider_events.ProviderReady) -> None:
    """Record that the model listens, and tell it what it missed."""
    line = _line(d)
    d.append(
        ev.ProviderConnected(provider=line.provider, model=line.model, agent=d.team.agent.name, voice=d.team.voice, resumed_by=line.resumes)
    )
    if line.restoring:
        only = ONLY_A_SUMMARY if line.resumes == "summary" else ONLY_THE_END if line.shortened else ""
        lost = (*line.lost, only) if only else line.lost
        gap_ms = (d.now - line.lost_at) // 1_000 if line.lost_at else 0
        restored = ev.SessionRestored(worker=line.worker, term=d.ownership.term, how=_RUNGS[line.resumes], gap_ms=gap_ms, lost=lost)
        d.append(restored)
    notes = line.notes
    missed = _missed(d, line) if line.resumes == "handle" else ""
    if missed:
        notes = _told(Note(MEANWHILE.format(missed), respond=False), notes)
    change(d, ready=True, restoring=False, worker="", lost=(), lost_at=0, notes=(), audio_ms=input.audio_ms)
    for note in _joined(notes):
        say(d, note.text, respond=note.respond)
    if line.asking or line.going_on:
        d.set_timer(ANSWER, d.settings.turn_timeout_s * 1_000)
    able = can(line)
    if not able.warns:
        d.set_timer(LEAVE, (able.connection_s - EARLY_S) * 1_000)


def lost(d: Draft, input: provider_events.ProviderLost) -> None:
    """Replace a lost connection, by the next method of the ladder if the last one failed. Give up after `TRIES_LIMIT`."""
    line = _line(d)
    d.append(ev.ProviderLost(provider=line.provider, model=line.model, close_code=input.code, error=input.error))
    tries = line.tries + 1
    poisoned = input.handle_refused or (line.resumes == "handle" and not (line.ready and input.error.retryable))
    deaths = line.deaths + 1 if line.handle else 0
    handle = "" if poisoned or deaths >= DEATHS_LIMIT else line.handle
    if not input.error.retryable and not line.handle:
        tries = max(tries, SEED_TRIES) if line.resumes == "seed" else TRIES_LIMIT
    change(
        d,
        ready=False,
        tries=tries,
        deaths=deaths,
        handle=handle,
        restoring=line.restoring or bool(d.conversation.asked or line.ready),
        lost_at=line.lost_at or d.now,
        audio_ms=max(line.audio_ms, input.audio_ms),
    )
    if tries >= TRIES_LIMIT:
        change(d, effect=0)
        d.append(ev.ProviderFailed(part="llm", error=input.error, turn=d.counters.turns, handled=arriving(d.state)))
        return
    change(d, effect=0)
    connect(d, delay_ms=BACK_OFF_MS[min(tries, len(BACK_OFF_MS)) - 1])


def arriving(state: State) -> bool:
    """Check whether the connection belongs to the target of a handoff whose source can still take the conversation back."""
    handoff = state.team.handoff
    if handoff is None or handoff.back or state.team.agent.name != handoff.target:
        return False
    return any(agent.name == handoff.source for agent in state.team.agents)


def given_up(d: Draft) -> bool:
    """Check whether no further connection will be tried."""
    line = d.state.line
    return line is not None and line.tries >= TRIES_LIMIT


def going_away(d: Draft, input: provider_events.GoingAway) -> None:
    """Record that the provider will close the connection, and schedule leaving it before."""
    line = _line(d)
    d.append(ev.ProviderGoAway(provider=line.provider, model=line.model, time_left_ms=input.left_ms))
    change(d, leaving_at=d.now + input.left_ms * 1_000)
    d.set_timer(LEAVE, input.left_ms - MARGIN_MS)


def handle_updated(d: Draft, input: provider_events.HandleUpdated) -> None:
    """Record a new handle, or whether the session can be resumed at the moment."""
    line = _line(d)
    if input.handle:
        change(d, handle=input.handle, handle_at=d.now, handle_knows=d.conversation.asked, resumable=True, deaths=0)
        d.append(ev.ResumptionUpdated(handle=input.handle, resumable=True))
    elif input.resumable != line.resumable:
        change(d, resumable=input.resumable)
        d.append(ev.ResumptionUpdated(handle=line.handle, resumable=input.resumable))


def leave_if_due(d: Draft) -> None:
    """Leave a connection that is about to be closed, at a turn's boundary with a fresh handle and no open call."""
    line = d.state.line
    if line is None or not line.leaving_at or not line.ready:
        return
    busy = not line.over or line.asking or line.asked or line.words or line.calls or line.go_on or line.notice
    if not busy and d.speech.cut is None and (line.resumable or not can(line).resumes):
        rotate(d)


def rotate(d: Draft) -> None:
    """Replace a connection that is near its end; a response that is being made is continued over the new one."""
    line = d.state.line
    if line is None:
        return
    if not line.ready:
        d.set_timer(LEAVE, MARGIN_MS)
        return
    will_resume = _is_good(d, line)
    change(d, lost_at=0 if will_resume else d.now, restoring=line.restoring or (not will_resume and d.conversation.asked > 0))
    if d.reply is not None and d.reply.connection == line.effect and not d.reply.closed:
        break_off(d)
    connect(d)


def break_off(d: Draft) -> None:
    """End the response that is being made: its audio so far is heard, and the model is to go on after it."""
    reply = d.reply
    if reply is None or not reply.connection or reply.closed:
        return
    text = " ".join(piece.text for piece in reply.pieces).strip()
    line = _line(d)
    mine = line.going_on in (0, reply.turn)  # else the model goes on with another turn
    d.speech.reply = replace(reply, closed=True, goes_on=mine)
    turns.stop_playing(d, reply.connection)  # audio that still comes over this connection is not part of this reply
    waits = line.called and bool(line.calls)  # the model goes on with the result of the call
    change(d, go_on=not waits, written="")
    if mine:
        change(d, said=" ".join(filter(None, [line.said, text])), going_on=reply.turn)
    else:
        turns.end_of_sound(d)


def put_back_notice(d: Draft) -> None:
    """Put an announcement that the model has not begun back into the queue."""
    line = _line(d)
    if line.notice and line.announced:
        d.pending.notices = (line.announced, *d.pending.notices)[: turns.NOTICES_LIMIT]
    change(d, notice=False, announced="")


def say(d: Draft, text: str, *, respond: bool = True) -> None:
    """Send text to the model, as soon as its connection is ready."""
    line = _line(d)
    if line.ready:
        d.outputs.append(out.Say(line.effect, text, respond))
    else:
        change(d, notes=(*line.notes, Note(text, respond))[-NOTES_LIMIT:])


def restored_later(d: Draft, worker: str, gap_ms: int, lost: tuple[str, ...]) -> None:
    """Have `session.restored` record a takeover once there is a connection."""
    change(d, worker=worker, lost=lost, lost_at=d.now - gap_ms * 1_000)


def taken_over(d: Draft) -> None:
    """Open a connection after a takeover: the old one ended with its worker."""
    line = d.state.line
    if line is not None:
        change(d, ready=False, restoring=True, lost_at=line.lost_at or d.now, deaths=line.deaths + 1 if line.handle else 0)
        line = _line(d)
        if line.deaths >= DEATHS_LIMIT:
            change(d, handle="")
        connect(d)


def change(d: Draft, **changes: Any) -> None:
    """Change fields of the connection's state."""
    d.state.line = replace(_line(d), **changes)


def watch(d: Draft) -> None:
    """Start the answer timer if the model owes a response and the timer does not run."""
    line, reply, cut = d.state.line, d.speech.reply, d.speech.cut
    if line is None or not line.ready or d.pending.watched or d.client.away_since:
        return
    unanswered = line.going_on and all(one is None or one.turn != line.going_on for one in (reply, cut))
    if line.asking or line.notice or line.muted or unanswered:
        d.set_timer(ANSWER, d.settings.turn_timeout_s * 1_000)


def _is_good(d: Draft, line: Line) -> bool:
    """Check whether to try the handle: it is not too old, and the model can be told what was said since."""
    if not line.handle or d.now - line.handle_at >= HANDLE_S * 1_000_000:
        return False
    missed = _missed(d, line)
    # Some models answer every text: they can be told what they missed only if an answer is wanted.
    wanted = can(line).late_content or d.team.handoff is not None
    return not missed or (wanted and len(missed) < prompt.SUMMARY_CHARACTERS)


def _missed(d: Draft, line: Line) -> str:
    """Return what was said since the handle was issued, without the question that will be asked again."""
    newest = d.conversation.asked - line.handle_knows
    if line.asked and line.go_on and d.team.handoff is None:
        return prompt.told(d.conversation.history[:-1], newest=newest - 1) if newest > 1 else ""
    return prompt.told(d.conversation.history, newest=newest)


def _told(first: Note, notes: tuple[Note, ...]) -> tuple[Note, ...]:
    """Put `first` before the other notes, merged into the first note that is to be answered if there is one."""
    for index, note in enumerate(notes):
        if note.respond:
            return (*notes[:index], Note(f"{first.text}\n\n{note.text}", respond=True), *notes[index + 1 :])
    return (first, *notes)


def _joined(notes: tuple[Note, ...]) -> tuple[Note, ...]:
    """Merge all notes that are to be answered into one: a model answers each message, and the next message cuts that answer off."""
    wanted = [note.text for note in notes if note.respond]
    if len(wanted) <= 1:
        return notes
    return (*(note for note in notes if not note.respond), Note("\n\n".join(wanted), respond=True))


def can(line: Line) -> capabilities.Capabilities:
    """Return the capabilities of a connection's model."""
    return capabilities.of(line.provider, line.model)


def _line(d: Draft) -> Line:
    if d.state.line is None:
        raise RuntimeError("a connection was expected")
    return d.state.line

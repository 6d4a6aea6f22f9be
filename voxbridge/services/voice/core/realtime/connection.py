"""Connection to a realtime model, kept for as long as the session lasts. Pure.

Providers close connections every few minutes, lose them, and refuse to resume them; workers die. This module turns each of these
faults into a short pause. It reopens a connection by a ladder of methods: with the newest handle; seeded from the session's history;
new, with a summary in the instructions. Unanswered speech is sent again from the kept microphone audio, or asked again in text. A
response that was cut off goes on after the words that were heard. Results of calls that a lost connection had requested are sent as
content. A connection that is about to be closed is replaced in time: at a turn's boundary with a fresh handle, at the latest
`MARGIN_MS` before its end.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec.structs import replace

from voxbridge.services.voice.core import capabilities, inputs, provider_events
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.prompt import prompt
from voxbridge.services.voice.core.state import (
    Closed,
    Hearing,
    Note,
    Notice,
    Opening,
    Outage,
    Ready,
    RealtimeState,
    Response,
    Resumes,
    Resumption,
    State,
    ToolCalls,
)
from voxbridge.services.voice.core.transition import ANSWER, Transition
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
BEGUN_AT_ONCE: Final = 5
BEGUN_EVERY_MS: Final = 2_000
"""Milliseconds for each further connection that a switch or a handoff begins: a page may ask for either as often as it likes."""

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


def begin(t: Transition, agent: Agent) -> None:
    """Open the connection of an agent that speaks from now on. State of an earlier connection to the same model is kept."""
    chosen = agent.realtime
    if chosen is None:
        raise RuntimeError("a realtime agent was expected")
    model = chosen.model or capabilities.DEFAULT_MODELS[chosen.provider]
    realtime = t.state.realtime
    if realtime is None or (realtime.provider, realtime.model) != (chosen.provider, model):
        if realtime is not None:
            leave(t)
        heard_ms = t.client.heard_ms  # what was said to another model before is not sent to this one
        realtime = RealtimeState(
            provider=chosen.provider,
            model=model,
            hearing=Hearing(from_ms=heard_ms, audio_ms=heard_ms),
            tool_calls=realtime.tool_calls if realtime is not None else ToolCalls(),
        )
    elif not realtime.can.resumes_with_changes:
        resumption = replace(realtime.resumption, handle="", resumable=False)
        realtime = replace(realtime, resumption=resumption, hearing=replace(realtime.hearing, active=False))
    t.state.realtime = realtime
    connect(t, delay_ms=_counted(t))


def _counted(t: Transition) -> int:
    """Count a connection that is begun. Return the ms that it waits: none up to `BEGUN_AT_ONCE`, and `BEGUN_EVERY_MS` at most."""
    every, free = BEGUN_EVERY_MS * 1_000, BEGUN_AT_ONCE * BEGUN_EVERY_MS * 1_000
    t.client.begun_until = min(max(t.client.begun_until, t.now) + every, t.now + free + every)
    return max(0, t.client.begun_until - t.now - free) // 1_000


def leave(t: Transition) -> None:
    """Close the connection and drop its state: its model takes no part any more."""
    realtime = t.state.realtime
    if realtime is not None:
        t.cancel(realtime.effect)
        t.cancel_timers(LEAVE, ANSWER, "words", "pause")
        if t.settings.rules >= inputs.WRITES:
            t.client.heard_ms = max(t.client.heard_ms, realtime.hearing.audio_ms)
        t.state.realtime = None


def connect(t: Transition, *, delay_ms: int = 0) -> None:
    """Replace the connection by a new one, with the best method of the ladder that is still possible."""
    state, realtime = t.state, t.realtime
    able = realtime.can
    unfinished = realtime.owed.announcement == "" and bool(realtime.owed.said or realtime.owed.question)
    put_back_notice(t)
    if unfinished:
        t.owed = replace(t.owed, go_on=True)  # the model was asked to go on after a noise or a fault, and has not begun
    realtime = t.realtime
    t.cancel(realtime.effect or None)
    t.cancel_timers(LEAVE)
    limit, said, earlier = prompt.room(state.team.agent), state.conversation.history, state.conversation.earlier
    instructions = state.team.instructions
    history = prompt.window(instructions, said, limit=limit, earlier=earlier)[1:]  # of the screen it is told once it listens
    resumes: Resumes
    handle = realtime.resumption.handle if _is_good(t, realtime) else ""
    if handle:
        resumes, history = "handle", ()
    elif not history:
        resumes = ""
    elif realtime.tries < SEED_TRIES and able.seeds_history:
        resumes = "seed"
    else:
        resumes, history = "summary", ()
        instructions = prompt.with_summary(instructions, said, limit=limit, earlier=earlier)
    replayed = realtime.hearing.from_ms if realtime.owed.asking else max(realtime.hearing.from_ms, realtime.hearing.audio_ms - REPLAY_MS)
    effect = t.start(
        out.Connect(
            provider=realtime.provider,
            model=realtime.model,
            voice=state.team.voice,
            language=state.team.agent.language,
            instructions=instructions,
            functions=state.team.functions,
            history=history,
            handle=handle,
            audio_from_ms=max(0, replayed),
            delay_ms=delay_ms,
            manual_activity=state.team.agent.manual_activity,
            speaking=state.team.agent.manual_activity and realtime.hearing.active,
            search=state.team.agent.search,
        )
    )
    shortened = resumes == "seed" and prompt.is_cut(said, limit=limit, earlier=earlier)
    unanswered = realtime.owed.asking and not realtime.hearing.turn  # words without an answer are transcribed again
    t.realtime = replace(
        realtime,
        link=Opening(effect=effect, resumes=resumes, shortened=shortened),
        resumption=replace(realtime.resumption, handle=handle, resumable=bool(handle)),
        hearing=replace(realtime.hearing, speaking=False, words=() if unanswered else realtime.hearing.words),
        response=Response(),
    )


def ready(t: Transition, input: provider_events.ProviderReady) -> Resumes:
    """Record that the model listens, and tell it what it missed. Return how it learned the conversation so far."""
    realtime, link = t.realtime, t.realtime.link
    if isinstance(link, Closed):
        return ""
    how = link.resumes
    t.append(
        ev.ProviderConnected(provider=realtime.provider, model=realtime.model, agent=t.team.agent.name, voice=t.team.voice, resumed_by=how)
    )
    if realtime.outage is not None and realtime.outage.restoring:
        shortened = isinstance(link, Opening) and link.shortened
        restored(t, _RUNGS[how], realtime.outage, ONLY_A_SUMMARY if how == "summary" else ONLY_THE_END if shortened else "")
    notes = realtime.notes
    missed = _missed(t, realtime) if how == "handle" else ""
    if missed:
        notes = _told(Note(MEANWHILE.format(missed), respond=False), notes)
    t.realtime = replace(realtime, link=Ready(effect=link.effect, resumes=how), outage=None, notes=())
    t.hearing = replace(t.hearing, audio_ms=input.audio_ms)
    for note in _joined(notes):
        say(t, note.text, respond=note.respond)
    if realtime.owed.asking or realtime.owed.turn:
        t.set_timer(ANSWER, t.settings.turn_timeout_s * 1_000)
    able = realtime.can
    if not able.warns:
        t.set_timer(LEAVE, (able.connection_s - EARLY_S) * 1_000)
    return how


def restored(t: Transition, how: Literal["handle", "reseeded", "fresh"], outage: Outage, only: str = "") -> None:
    """Record that the conversation goes on, and what was lost; `only` is a further loss."""
    lost = (*outage.lost, only) if only else outage.lost
    gap_ms = (t.now - outage.since) // 1_000 if outage.since else 0
    t.append(ev.SessionRestored(worker=outage.worker, term=t.ownership.term, how=how, gap_ms=gap_ms, lost=lost))


def lost(t: Transition, input: provider_events.ProviderLost) -> None:
    """Replace a lost connection, by the next method of the ladder if the last one failed. Give up after `TRIES_LIMIT`."""
    realtime, link = t.realtime, t.realtime.link
    if isinstance(link, Closed):
        return
    t.append(ev.ProviderLost(provider=realtime.provider, model=realtime.model, close_code=input.code, error=input.error))
    tries = realtime.tries + 1
    poisoned = input.handle_refused or (link.resumes == "handle" and not (realtime.ready and input.error.retryable))
    deaths = realtime.resumption.deaths + 1 if realtime.resumption.handle else 0
    handle = "" if poisoned or deaths >= DEATHS_LIMIT else realtime.resumption.handle
    if not input.error.retryable and not realtime.resumption.handle:
        tries = max(tries, SEED_TRIES) if link.resumes == "seed" else TRIES_LIMIT
    outage = _outage(t, realtime)
    t.realtime = replace(
        realtime,
        link=Closed(),
        resumption=replace(realtime.resumption, deaths=deaths, handle=handle),
        tries=tries,
        outage=replace(outage, restoring=outage.restoring or realtime.ready or t.conversation.asked > 0),
        hearing=replace(realtime.hearing, audio_ms=max(realtime.hearing.audio_ms, input.audio_ms)),
    )
    if tries >= TRIES_LIMIT:
        t.append(ev.ProviderFailed(part="llm", error=input.error, turn=t.counters.turns, handled=arriving(t.state) or may_write(t.state)))
        return
    connect(t, delay_ms=BACK_OFF_MS[min(tries, len(BACK_OFF_MS)) - 1])


def arriving(state: State) -> bool:
    """Check whether the connection belongs to the target of a handoff whose source can still take the conversation back."""
    handoff = state.team.handoff
    if handoff is None or handoff.back or state.team.agent.name != handoff.target:
        return False
    return any(agent.name == handoff.source for agent in state.team.agents)


def may_write(state: State) -> bool:
    """Check whether a language model can go on in writing when there will be no connection: where the conversation began in text."""
    request, agent = state.request, state.team.agent
    began_in_text = request is not None and request.options.output == "text"
    return began_in_text and agent.speaks_itself and state.settings.rules >= inputs.WRITES


def given_up(t: Transition) -> bool:
    """Check whether no further connection will be tried."""
    realtime = t.state.realtime
    return realtime is not None and realtime.tries >= TRIES_LIMIT


def going_away(t: Transition, input: provider_events.GoingAway) -> None:
    """Record that the provider will close the connection, and schedule leaving it before."""
    realtime, link = t.realtime, t.realtime.link
    t.append(ev.ProviderGoAway(provider=realtime.provider, model=realtime.model, time_left_ms=input.left_ms))
    if isinstance(link, Ready):
        t.realtime = replace(realtime, link=replace(link, leaving_at=t.now + input.left_ms * 1_000))
    t.set_timer(LEAVE, input.left_ms - MARGIN_MS)


def handle_updated(t: Transition, input: provider_events.HandleUpdated) -> None:
    """Record a new handle, or whether the session can be resumed at the moment."""
    realtime = t.realtime
    if input.handle:
        resumption = Resumption(handle=input.handle, issued_at=t.now, knows=t.conversation.asked, resumable=True)
        t.realtime = replace(realtime, resumption=resumption)
        t.append(ev.ResumptionUpdated(handle=input.handle, resumable=True))
    elif input.resumable != realtime.resumption.resumable:
        t.realtime = replace(realtime, resumption=replace(realtime.resumption, resumable=input.resumable))
        t.append(ev.ResumptionUpdated(handle=realtime.resumption.handle, resumable=input.resumable))


def leave_if_due(t: Transition) -> None:
    """Leave a connection that is about to be closed, at a turn's boundary with a fresh handle and no open call."""
    realtime = t.state.realtime
    if realtime is None or not isinstance(realtime.link, Ready) or not realtime.link.leaving_at:
        return
    owed = realtime.owed
    asked = owed.asking or owed.question or owed.go_on or owed.announces
    busy = asked or not realtime.response.over or realtime.hearing.words or realtime.tool_calls.open
    if not busy and t.speech.cut is None and (realtime.resumption.resumable or not realtime.can.resumes):
        rotate(t)


def rotate(t: Transition) -> None:
    """Replace a connection that is near its end; a response that is being made is continued over the new one."""
    realtime = t.state.realtime
    if realtime is None:
        return
    if not realtime.ready:
        t.set_timer(LEAVE, MARGIN_MS)
        return
    will_resume = _is_good(t, realtime)
    t.realtime = replace(realtime, outage=None if will_resume else Outage(since=t.now, restoring=t.conversation.asked > 0))
    if t.reply is not None and t.reply.connection == realtime.effect and not t.reply.closed:
        break_off(t)
    connect(t)


def break_off(t: Transition) -> None:
    """End the response that is being made: its audio so far is heard, and the model is to go on after it."""
    reply = t.reply
    if reply is None or not reply.connection or reply.closed:
        return
    text = " ".join(piece.text for piece in reply.pieces).strip()
    realtime = t.realtime
    mine = realtime.owed.turn in (0, reply.turn)  # else the model goes on with another turn
    t.speech.reply = replace(reply, closed=True, goes_on=mine)
    turns.stop_playing(t, reply.connection)  # audio that still comes over this connection is not part of this reply
    waits = realtime.response.called and bool(realtime.tool_calls.open)  # the model goes on with the result of the call
    t.owed = replace(t.owed, go_on=not waits)
    t.response = replace(t.response, written="")
    if mine:
        t.owed = replace(t.owed, said=" ".join(filter(None, [realtime.owed.said, text])), turn=reply.turn)
    else:
        turns.end_of_sound(t)


def put_back_notice(t: Transition) -> None:
    """Put an announcement that the model has not begun back into the queue."""
    realtime = t.realtime
    if realtime.owed.announcement:
        text = realtime.owed.announcement
        notice = next((one for one in t.pending.told if one.text == text), Notice(text))
        t.pending.told = tuple(one for one in t.pending.told if one != notice)
        t.pending.notices = (notice, *t.pending.notices)[: turns.NOTICES_LIMIT]
    t.owed = replace(t.owed, announcement=None)


def say(t: Transition, text: str, *, respond: bool = True) -> None:
    """Send text to the model, as soon as its connection is ready."""
    realtime = t.realtime
    if realtime.ready:
        t.outputs.append(out.Say(realtime.effect, text, respond))
    else:
        t.realtime = replace(t.realtime, notes=(*realtime.notes, Note(text, respond))[-NOTES_LIMIT:])


def restored_later(t: Transition, worker: str, gap_ms: int, lost: tuple[str, ...]) -> None:
    """Have `session.restored` record a takeover once there is a connection."""
    outage = t.realtime.outage or Outage()
    t.realtime = replace(t.realtime, outage=replace(outage, since=t.now - gap_ms * 1_000, worker=worker, lost=lost))


def taken_over(t: Transition) -> None:
    """Open a connection after a takeover: the old one ended with its worker."""
    realtime = t.state.realtime
    if realtime is not None:
        resumption = replace(realtime.resumption, deaths=realtime.resumption.deaths + 1 if realtime.resumption.handle else 0)
        if resumption.deaths >= DEATHS_LIMIT:
            resumption = replace(resumption, handle="")
        t.realtime = replace(realtime, resumption=resumption, outage=replace(_outage(t, realtime), restoring=True))
        connect(t)


def _outage(t: Transition, realtime: RealtimeState) -> Outage:
    """Return the outage, which begins now if there was none."""
    outage = realtime.outage or Outage()
    return replace(outage, since=outage.since or t.now)


def watch(t: Transition) -> None:
    """Start the answer timer if the model owes a response and the timer does not run."""
    realtime, reply, cut = t.state.realtime, t.speech.reply, t.speech.cut
    if realtime is None or not realtime.ready or t.pending.watched or t.client.away_since:
        return
    unanswered = realtime.owed.turn and all(one is None or one.turn != realtime.owed.turn for one in (reply, cut))
    if realtime.owed.asking or realtime.owed.announces or realtime.response.muted or unanswered:
        t.set_timer(ANSWER, t.settings.turn_timeout_s * 1_000)


def _is_good(t: Transition, realtime: RealtimeState) -> bool:
    """Check whether to try the handle: it is not too old, and the model can be told what was said since."""
    if not realtime.resumption.handle or t.now - realtime.resumption.issued_at >= HANDLE_S * 1_000_000:
        return False
    missed = _missed(t, realtime)
    # Some models answer every text: they can be told what they missed only if an answer is wanted.
    wanted = realtime.can.late_content or t.team.handoff is not None
    return not missed or (wanted and len(missed) < prompt.SUMMARY_CHARACTERS)


def _missed(t: Transition, realtime: RealtimeState) -> str:
    """Return what was said since the handle was issued, without the question that will be asked again."""
    newest = t.conversation.asked - realtime.resumption.knows
    if realtime.owed.question and realtime.owed.go_on and t.team.handoff is None:
        return prompt.told(t.conversation.history[:-1], newest=newest - 1) if newest > 1 else ""
    return prompt.told(t.conversation.history, newest=newest)


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

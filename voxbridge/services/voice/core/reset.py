"""Beginning the conversation anew in the same session: what was said is forgotten, and the client, its agent and its limits stay. Pure."""

from __future__ import annotations

from voxbridge.services.voice.core.cascade import listening
from voxbridge.services.voice.core.realtime import connection as realtime_connection
from voxbridge.services.voice.core.realtime import transcripts
from voxbridge.services.voice.core.state import Conversation, Hearing, RealtimeState, Screen
from voxbridge.services.voice.core.transition import Transition
from voxbridge.services.voice.core.turns import ledger, open_calls, reopening, turns
from voxbridge.shared.events import voice as ev


def reset(t: Transition) -> None:
    """Stop what runs, complete every turn, and empty the history. A realtime model gets a new connection, since the old one remembers."""
    if t.state.phase != "open" or t.pending.ending is not None:
        return
    _stop(t)
    conversation = t.conversation
    t.state.conversation = Conversation(uncounted=conversation.uncounted, screen=Screen(known=conversation.screen.known))
    speech, pending, display = t.speech, t.pending, t.display
    speech.unplayed, speech.resume, speech.redo, speech.broken = None, "", 0, None
    pending.notices, pending.questions, pending.results, pending.held = (), (), (), ()
    pending.dropped = ()  # a late result is of a conversation that is forgotten: the log has it, and no model is told
    display.trouble, display.written, display.called = "", (0, ""), (0, ())
    t.append(ev.ConversationReset(turns=t.counters.turns))
    t.set_timer("idle", t.settings.idle_timeout_s * 1_000)
    realtime = t.state.realtime
    if realtime is not None:
        heard_ms = realtime.hearing.audio_ms  # what was said before is not sent again
        realtime_connection.leave(t)
        hearing = Hearing(from_ms=heard_ms, audio_ms=heard_ms)
        t.state.realtime = RealtimeState(provider=realtime.provider, model=realtime.model, hearing=hearing)
        realtime_connection.connect(t)


def _stop(t: Transition) -> None:
    listening.forget(t)
    realtime = t.state.realtime
    if realtime is not None:
        transcripts.final(t)
        for call in realtime.tool_calls.open:
            open_calls.withdraw(t, call, "reset")
    reopening.give_up(t)
    turns.cancel_reply(t, "reset")
    turns.resolve_cut(t, None)
    turns.cut_trailing(t)
    if t.state.realtime is not None:
        transcripts.leave_unanswered(t)
    ledger.settle(t)

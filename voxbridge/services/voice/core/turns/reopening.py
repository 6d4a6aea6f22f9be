"""Reopening of a turn that ended too early: the user paused within a sentence and speaks on before any answer was heard. Pure.

The pending answer is withdrawn: nothing of it was heard, so none of it is recorded as said. The user's next words continue the same turn
(`UserSaid.continues`), and the model is asked again with all of them as one message. If there were no words, the turn is answered after
all.

A turn can be reopened until the first audio of its answer, fillers included, was sent. From then on, speech is a barge-in and begins a new
turn. The same holds if the model has called a function, whose result stays; if the answer failed; if another agent takes over; and if
the user had typed. A turn is reopened at most `LIMIT` times in a row. Each part is transcribed separately and is limited to the audio kept
of one utterance.
"""

from __future__ import annotations

from typing import Final, Unpack

from msgspec.structs import replace

from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.prompt import memory
from voxbridge.services.voice.core.state import Reply, Stamps
from voxbridge.services.voice.core.transition import Transition
from voxbridge.services.voice.core.turns import open_calls, turns
from voxbridge.shared.bus.moments import PartialTranscript
from voxbridge.shared.events import voice as ev

LIMIT: Final = 8
"""Number of times in a row that a turn may be reopened. With the first part, that is nine parts of at most 55 s: eight minutes of speech,
about the longest text that may be typed at once."""


def withdraw(t: Transition) -> bool:
    """Withdraw the answer to a turn that the user may be continuing. Return whether that was possible."""
    reply = t.reply
    if (
        reply is None
        or not reply.reopens
        or reply.playback.sent is not None
        or reply.failed
        or t.speech.trailing
        or t.team.handoff is not None
    ):
        return False
    t.cancel(reply.round.effect, *(piece.effect for piece in reply.pieces if not piece.done))
    t.cancel_timers("turn", "played")
    t.append(ev.GenerationCancelled(generation=reply.generation, by="barge_in"))
    t.outputs.append(out.Flush(reply.generation))
    if reply.pieces:  # their words are shown already
        t.tell(PartialTranscript("assistant", "", turn=reply.turn, generation=reply.generation))
    for call in reply.round.calls:  # they were held: none has begun
        open_calls.withdraw(t, call, "barge_in")
    t.speech.reply = None
    t.speech.withdrawn = replace(reply, round=replace(reply.round, effect=None, calls=(), uses=()), reopens=reply.reopens - 1)
    return True


def goes_on(t: Transition, text: str, *, stamps: Stamps, **details: Unpack[turns.Source]) -> bool:
    """Take what the user said as the next part of the reopened turn. Return whether there is such a turn."""
    before = _taken(t)
    if before is None:
        return False
    t.append(ev.UserSaid(text=text, turn=before.turn, source="speech", **details, continues=True))
    memory.remember_more(t, text)
    whole = memory.last_words(t)
    turns.answer(t, whole, before.turn, stamps, reopens=before.reopens, usage=before.usage, language=details.get("language", ""))
    return True


def answer_after_all(t: Transition) -> bool:
    """Say the withdrawn answer, or ask for it again: the turn was reopened without words. Return whether there is such a turn."""
    before = _taken(t)
    if before is None:
        return False
    t.set_timer("idle", t.settings.idle_timeout_s * 1_000)
    words = " ".join(filter(None, [*(piece.text for piece in before.pieces), before.round.unsplit.strip()]))
    if before.closed and words:
        reply = turns.say(t, words, turn=before.turn, stamps=before.stamps)
        t.speech.reply = replace(reply, reopens=before.reopens, usage=before.usage)
    else:
        asked = before.stamps
        stamps = Stamps(speech_ended=asked.speech_ended, end_of_turn=asked.end_of_turn, stt_final=asked.stt_final)
        turns.begin_reply(t, before.turn, stamps, reopens=before.reopens, usage=before.usage, order=before.round.order)
    return True


def give_up(t: Transition) -> None:
    """End a reopened turn without an answer: nothing continues it, and its answer is no longer wanted."""
    before = _taken(t)
    if before is not None:
        t.speech.cut, t.speech.cut_by_speech = before, False
        turns.resolve_cut(t, 0)


def turn(t: Transition) -> int:
    """Return the number of the turn to which the current utterance belongs."""
    return t.speech.withdrawn.turn if t.speech.withdrawn is not None else t.counters.turns + 1


def _taken(t: Transition) -> Reply | None:
    before, t.speech.withdrawn = t.speech.withdrawn, None
    return before

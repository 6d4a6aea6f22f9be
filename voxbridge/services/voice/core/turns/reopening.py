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

from typing import Any, Final

from msgspec.structs import replace

from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.prompt import memory
from voxbridge.services.voice.core.state import Reply, Stamps
from voxbridge.services.voice.core.transition import Draft
from voxbridge.services.voice.core.turns import turns
from voxbridge.shared.bus.moments import PartialTranscript
from voxbridge.shared.events import voice as ev

LIMIT: Final = 8
"""Number of times in a row that a turn may be reopened. With the first part, that is nine parts of at most 55 s: eight minutes of speech,
about the longest text that may be typed at once."""


def withdraw(d: Draft) -> bool:
    """Withdraw the answer to a turn that the user may be continuing. Return whether that was possible."""
    reply = d.reply
    if (
        reply is None
        or not reply.reopens
        or reply.playback.sent is not None
        or reply.failed
        or d.speech.trailing
        or d.team.handoff is not None
    ):
        return False
    d.cancel(reply.round.effect, *(piece.effect for piece in reply.pieces if not piece.done))
    d.cancel_timers("turn", "played")
    d.append(ev.GenerationCancelled(generation=reply.generation, by="barge_in"))
    d.outputs.append(out.Flush(reply.generation))
    if reply.pieces:  # their words are shown already
        d.tell(PartialTranscript("assistant", "", turn=reply.turn, generation=reply.generation))
    d.speech.reply = None
    d.speech.withdrawn = replace(reply, round=replace(reply.round, effect=None), reopens=reply.reopens - 1)
    return True


def goes_on(d: Draft, text: str, *, stamps: Stamps, **audio: Any) -> bool:
    """Take what the user said as the next part of the reopened turn. Return whether there is such a turn."""
    before = _taken(d)
    if before is None:
        return False
    d.append(ev.UserSaid(text=text, turn=before.turn, source="speech", **audio, continues=True))
    memory.remember_more(d, text)
    _ask(d, before, stamps)
    return True


def answer_after_all(d: Draft) -> bool:
    """Say the withdrawn answer, or ask for it again: the turn was reopened without words. Return whether there is such a turn."""
    before = _taken(d)
    if before is None:
        return False
    d.set_timer("idle", d.settings.idle_timeout_s * 1_000)
    words = " ".join(filter(None, [*(piece.text for piece in before.pieces), before.round.unsplit.strip()]))
    if before.closed and words:
        reply = turns.say(d, words, turn=before.turn, stamps=before.stamps)
        d.speech.reply = replace(reply, reopens=before.reopens, usage=before.usage)
    else:
        asked = before.stamps
        _ask(d, before, Stamps(speech_ended=asked.speech_ended, end_of_turn=asked.end_of_turn, stt_final=asked.stt_final))
    return True


def give_up(d: Draft) -> None:
    """End a reopened turn without an answer: nothing continues it, and its answer is no longer wanted."""
    before = _taken(d)
    if before is not None:
        d.speech.cut, d.speech.cut_by_speech = before, False
        turns.resolve_cut(d, 0)


def turn(d: Draft) -> int:
    """Return the number of the turn to which the current utterance belongs."""
    return d.speech.withdrawn.turn if d.speech.withdrawn is not None else d.counters.turns + 1


def _taken(d: Draft) -> Reply | None:
    before, d.speech.withdrawn = d.speech.withdrawn, None
    return before


def _ask(d: Draft, before: Reply, stamps: Stamps) -> None:
    turns.begin_reply(d, before.turn, stamps, reopens=before.reopens, usage=before.usage)

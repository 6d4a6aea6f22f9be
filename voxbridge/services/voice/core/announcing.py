"""Speech between the answers: the next piece of a reply that stands still, questions, ends of tasks, announcements. Pure.

An announcement begins when nobody speaks and no answer is pending. A question goes before it, and is left alone for a moment: somebody
waits for its answer.
"""

from __future__ import annotations

from voxbridge.services.voice.core import task_ends
from voxbridge.services.voice.core.cascade import speaking
from voxbridge.services.voice.core.realtime import responses, unanswered
from voxbridge.services.voice.core.state import Piece, Reply
from voxbridge.services.voice.core.transition import Transition
from voxbridge.services.voice.core.turns import consent, paused_reply, turns, written


def announce(t: Transition) -> None:
    """Finish a reply that was heard, go on with one that was not, and then say what waits."""
    if t.state.phase != "open" or t.ownership.released:
        return
    reply = t.reply
    if reply is not None and not paused_reply.waits(t):
        if paused_reply.was_heard(reply):
            turns.finish_reply(t)
        elif (reply.closed and reply.round.unsplit) or any(not piece.done and piece.effect is None for piece in _first_unspoken(reply)):
            speaking.speak(t)
    consent.watch(t)
    _ask(t)
    if t.pending.unheard != t.pending.wanted and _nobody_speaks(t):
        task_ends.want(t)
    while t.pending.notices and _nobody_speaks(t) and not consent.is_left_alone(t):
        notice, *rest = t.pending.notices
        t.pending.notices = tuple(rest)
        task_ends.told(t, notice)
        if notice.greeting:
            written.greet(t, notice.text)
        if t.state.realtime is not None:
            responses.notice(t, notice.text)
        else:
            _say(t, notice.text)
    if t.settings.rules:
        consent.watch(t)  # what is only written is said at once


def _ask(t: Transition) -> None:
    """Put the question that is due: an approval in exactly these words, whichever model the agent has."""
    if t.settings.rules and (not _nobody_speaks(t) or t.speech.trailing):
        return
    question = consent.again(t)
    if question is None:
        return
    if not t.settings.rules or (t.state.realtime is not None and question.kind != "approval"):
        turns.notice(t, question.text)
    elif t.state.realtime is not None:
        unanswered.ask_instead(t, consent.put(t, question))
    else:
        _say(t, consent.put(t, question))


def _say(t: Transition, text: str) -> None:
    turns.say(t, text, turn=0)
    speaking.speak(t)


def _nobody_speaks(t: Transition) -> bool:
    """Check whether an announcement can start: no one is speaking, and no answer is pending."""
    realtime = t.state.realtime
    if t.utterance is not None or t.reply is not None or t.speech.cut is not None or t.client.away_since or t.team.handoff is not None:
        return False
    if realtime is None:
        return True
    owed = realtime.owed
    return realtime.ready and not (owed.asking or owed.announces or owed.go_on or owed.turn or realtime.hearing.active)


def _first_unspoken(reply: Reply) -> tuple[Piece, ...]:
    return next(((piece,) for piece in reply.pieces if not piece.done), ())

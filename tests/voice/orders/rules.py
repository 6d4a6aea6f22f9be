"""Rules for a call of `Orders` after it came to rest, and the reduction of a failing call to a short one."""

from __future__ import annotations

import os
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any, Final

import msgspec

from tests import draws
from tests.voice.conversation import SID, START_US
from tests.voice.orders.simulation import IDLE_S, Orders
from tests.voice.orders.things import Thing, played, things
from voxbridge.services.voice.core import inputs, step
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.outstanding import Outstanding
from voxbridge.services.voice.core.turns import consent
from voxbridge.services.voice.core.turns.turns import NOTICES_LIMIT
from voxbridge.shared import events
from voxbridge.shared.events import voice as ev
from voxbridge.shared.events.journal import Taken, VoiceJournal
from voxbridge.shared.step.fold import fold
from voxbridge.shared.step.journal import LogInput

SEED: Final = "VOXBRIDGE_SEED"
"""Environment variable that repeats a run."""

TOLD_EARLY_MS: Final = 1_500
"""Milliseconds by which the heard part of a generation may exceed what the page played: an estimate by the clock before a report."""

STATE_LIMIT: Final = 120_000
_encode = msgspec.msgpack.Encoder().encode
_FLAGS: Final = (
    "owed.asking",
    "owed.question",
    "owed.go_on",
    "owed.announces",
    "owed.turn",
    "owed.said",
    "tool_calls.open",
    "response.muted",
    "response.cut",
    "response.written",
    "hearing.active",
    "hearing.turn",
)
_FLAGS_OF_STATE: Final = (
    "utterance",
    "speech.reply",
    "speech.cut",
    "speech.withdrawn",
    "speech.paused",
    "speech.resume",
    "speech.redo",
    "team.handoff",
    "pending.notices",
    "pending.results",
    "ownership.released",
)


def broken(seed: str, what: Sequence[Thing]) -> list[str]:
    """Return the rules, as text, that the call of this seed breaks when these things happen in it."""
    try:
        orders = played(seed, what)
        orders.rest()
    except Exception as error:  # noqa: BLE001 - any exception breaks a rule
        last = traceback.extract_tb(error.__traceback__)[-1]
        return [f"raises {type(error).__name__}: {error} ({last.name})"]
    return rules_broken(orders)


def rules_broken(orders: Orders) -> list[str]:
    """Return the rules, as text, that a call at rest has broken."""
    return list(dict.fromkeys(_rules(orders)))


def _rules(orders: Orders) -> Iterator[str]:
    if orders.state.phase == "open":
        yield from _at_rest(orders)
    elif len(_told(orders, ev.SessionEnded)) != 1:
        yield "the session ends more than once"
    yield from _turns(orders)
    yield from _calls(orders)
    yield from _words(orders)
    yield from _asked(orders)
    yield from _consented(orders)
    yield from _told_again(orders)
    yield from _left(orders)
    if len(_encode(orders.state)) > STATE_LIMIT:
        yield "the state grows"


def _told(orders: Orders, *kinds: type[events.Event]) -> list[Any]:
    return [one for _, one in orders.appended if isinstance(one, kinds)]


def _at_rest(orders: Orders) -> Iterator[str]:
    state = orders.state
    if state.display.shown[0] != "listening":
        yield f"at rest the state is {state.display.shown[0]}"
    for name in _FLAGS_OF_STATE:
        if attrgetter(name)(state):
            yield f"at rest `{name}` stands"
    realtime = state.realtime
    if realtime is not None:
        for name in _FLAGS:
            if attrgetter(name)(realtime):
                yield f"at rest `realtime.{name}` stands"
        if not realtime.ready:
            yield "at rest there is no connection"
    if "idle" not in orders.timers:
        yield "nothing will end the session"
    left = orders.timers.keys() - {"idle", "leave"}
    if left:
        yield f"at rest timers run: {sorted(left)}"


def _left(orders: Orders) -> Iterator[str]:
    """Check that an idle session ends."""
    if orders.state.phase == "open":
        orders.passes(2 * IDLE_S * 1_000)
        if orders.state.phase == "open":
            yield "nothing ends the session"


def _turns(orders: Orders) -> Iterator[str]:
    ended = [one.number for one in _told(orders, ev.TurnCompleted)]
    for number, times in Counter(ended).items():
        if times > 1:
            yield "a turn ends twice"
        if not 0 < number <= orders.state.counters.turns:
            yield "a turn ends that did not begin"
    if set(ended) != set(range(1, orders.state.counters.turns + 1)):
        yield "a turn never ends"
    answered = {one.turn for one in _told(orders, ev.AgentSaid)} | orders.voiced | orders.waiting_turns
    for one in _told(orders, ev.TurnCompleted):
        if one.reason == "completed" and one.number not in answered:
            yield "a turn is completed and nothing was said"
    begun = Counter(one.turn for one in _told(orders, ev.UserSaid) if not one.continues)
    if any(times > 1 for times in begun.values()):
        yield "UserSaid twice of a turn"
    if any(times > 1 for times in Counter(one.generation for one in _told(orders, ev.AgentSaid)).values()):
        yield "AgentSaid twice of a generation"
    yield from _reopened(orders)


def _reopened(orders: Orders) -> Iterator[str]:
    """Check that a turn is continued only when it was spoken, and nothing was heard, called or ended since."""
    before: Any = None
    parts: Counter[int] = Counter()
    for one in _told(orders, ev.UserSaid, ev.AgentSaid, ev.ToolCalled, ev.TurnCompleted):
        if isinstance(one, ev.UserSaid) and one.continues:
            parts[one.turn] += 1
            if not isinstance(before, ev.UserSaid) or before.turn != one.turn or {before.source, one.source} != {"speech"}:
                yield "a turn goes on that is not open to that"
        before = one
    if any(times > orders.reopens for times in parts.values()):
        yield "a turn is reopened too often"


def _calls(orders: Orders) -> Iterator[str]:
    called = Counter(one.call_id for one in _told(orders, ev.ToolCalled))
    delivered = Counter(one.call_id for one in _told(orders, ev.ToolDelivered) if one.how != "dropped")
    dropped = Counter(one.call_id for one in _told(orders, ev.ToolDelivered) if one.how == "dropped")
    cancelled = Counter(one.call_id for one in _told(orders, ev.ToolCancelled))
    if any(times > 1 for one in (called, delivered, dropped, cancelled) for times in one.values()):
        yield "a call is made, answered or cancelled twice"
    if orders.state.phase == "open" and any(not delivered[id] and not cancelled[id] for id in called):
        yield "a call has no result"


def _words(orders: Orders) -> Iterator[str]:
    typed = [one.text for one in _told(orders, ev.UserSaid) if one.source == "text"]
    if typed != orders.typed[: len(typed)] or (orders.state.phase == "open" and len(typed) != len(orders.typed)):
        yield "what was typed is not in the log once and in order"
    if orders.state.phase == "open":
        spoken = " ".join([*orders.told, *(f"{one.text} {one.unheard}" for one in _told(orders, ev.AgentSaid))])
        missing = [one for one in orders.said[:NOTICES_LIMIT] if one not in spoken]
        if missing:
            yield "an announcement was dropped"
    if not orders.faults:
        for one in _told(orders, ev.AgentSaid):
            sound = orders.page.generations.get(one.generation)
            if sound is not None and one.played_ms is not None and one.played_ms > sound.played + TOLD_EARLY_MS:
                yield "more is put down as heard than was heard"


def _asked(orders: Orders) -> Iterator[str]:
    """Check that a provider would accept each conversation that models were given."""
    for messages in orders.asked:
        before = ""
        open_calls: set[str] = set()
        for one in messages[1:]:
            if one.role == "tool":
                if one.call_id not in open_calls:
                    yield "a model is given a result of no call"
                open_calls.discard(one.call_id)
            else:
                if open_calls:
                    yield "a model is given a call without its result"
                if one.role == before:
                    yield f"a model is given two messages of the {before} in a row"
                if one.role == "assistant" and not (one.text or one.uses):
                    yield "a model is given a message without content"
                open_calls = {use.call_id for use in one.uses}
            before = one.role
        if open_calls:
            yield "a model is given a call without its result"


def _consented(orders: Orders) -> Iterator[str]:
    """Check that a question is answered only when it was the last thing heard, word for word, and that none is forgotten."""
    heard: list[str] = []
    for one in _told(orders, ev.AgentSaid, ev.ApprovalAnswered):
        if isinstance(one, ev.AgentSaid):
            heard += ["" if one.interrupted else one.text] if one.text else []
        elif one.answer != "lapsed" and not (heard or [""])[-1].endswith(orders.questions[one.approval_id]):
            yield "a question is answered that was not the last thing heard"
    open_questions = orders.state.pending.questions if orders.state.phase == "open" else ()
    for question in open_questions:
        asked = any(question.text in said for said in heard) or question.asked >= consent.ASKED_LIMIT
        if not asked and not any(one.heard_at for one in open_questions):
            yield "an open question is not asked"


def _told_again(orders: Orders) -> Iterator[str]:
    """Check that folding the journal gives the same state, events, timers and effects."""
    encoder = msgspec.msgpack.Encoder()
    log = [input.recorded for _, input in orders.taken if isinstance(input, LogInput)]
    journal = VoiceJournal(
        first=0,
        inputs=tuple(
            Taken(at=at, seq=one.recorded.seq)
            if isinstance(one, LogInput)
            else Taken(at=at, seq=None, input=msgspec.Raw(encoder.encode(one)))
            for at, one in orders.taken
        ),
    )
    last = max((one.seq for one in log), default=0) + 1
    kind = events.kind_of(journal)
    entry = events.Recorded(
        seq=last, id=f"{SID}.voice.0", sid=SID, ts=START_US, cause=None, writer="voice", visible=False, type=kind.name, v=1, event=journal
    )
    running = Outstanding()
    folded = fold(step.step, step.initial(SID), inputs.Input, "voice", [*log, entry], watch=running.watch)
    if encoder.encode(folded.state) != encoder.encode(orders.state):
        yield "the fold is not the live state"
    if [encoder.encode(due.event) for due in folded.missing] != [encoder.encode(one) for _, one in orders.appended]:
        yield "the replay is not the log"
    if {name: (due - START_US) // 1_000 for name, due in running.timers.items()} != orders.timers:
        yield "the timers that the fold knows are not those that run"
    # Effects that ended with their input are part of the state; only those that the fold would start again count here.
    if {id for id in running.effects if isinstance(running.effects[id], out.Connect)} != {
        id for id, one in orders.effects.items() if isinstance(one.effect, out.Connect)
    }:
        yield "the connections that the fold knows are not those that are open"


def shortest(seed: str, what: Sequence[Thing], rule: str) -> list[Thing]:
    """Return a shorter call that breaks the same rule."""
    left = list(what)
    size = max(1, len(left) // 2)
    while True:
        at = 0
        while at < len(left):
            fewer = left[:at] + left[at + size :]
            if rule in broken(seed, fewer):
                left = fewer
            else:
                at += size
        if size == 1:
            return left
        size = max(1, size // 2)


def first_broken(count: int) -> str:
    """Play so many random calls. Return the first failure as text, with the seed that repeats it; empty when there is none."""
    run = os.environ.get(SEED) or f"{draws.seed():x}"
    only = run.partition("/")[2]
    for seed in [run] if only else (f"{run}/{number}" for number in range(count)):
        what = things(seed)
        found = broken(seed, what)
        if found:
            short = shortest(seed, what, found[0])
            return f"{SEED}={seed} repeats it\n  {'; '.join(found)}\n  the shortest that is found: team {Orders.drawn(seed).team}, {short}"
    return ""

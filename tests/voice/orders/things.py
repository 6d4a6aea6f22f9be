"""Things that may happen in a call of `Orders`: each is a name and a number that selects which one and how much."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final

from tests.voice.orders.simulation import Orders
from tests.voice.orders.teams import FUNCTIONS
from voxbridge.services.voice.core import inputs, provider_events
from voxbridge.services.voice.core import outputs as out
from voxbridge.shared.agents.model import HANDOFF
from voxbridge.shared.events import gateway, tools
from voxbridge.shared.events import voice as ev
from voxbridge.shared.step.journal import LogInput

Thing = tuple[str, int]

LAPSES_MS: Final = 1_800_000
"""Milliseconds until the executor has a question lapse: after the call has come to rest."""


def things(seed: str) -> list[Thing]:
    """Return the things that happen in the call of this seed."""
    random = Random(f"{seed}|things")
    weights = list(THINGS.values())
    length = random.choice([10, 30, 60, 120])
    return [(what, random.randrange(60)) for what in random.choices(list(THINGS), weights, k=length)]


def played(seed: str, what: Sequence[Thing]) -> Orders:
    """Return the call of this seed after these things, before it comes to rest."""
    return have(Orders.drawn(seed), what)


def have(orders: Orders, what: Sequence[Thing]) -> Orders:
    """Make these things happen, one after the other."""
    for name, number in what:
        happens(orders, name, number)
    return orders


THINGS: Final = {
    "ready": 12,
    "lost": 5,
    "going away": 1,
    "handle": 4,
    "voice": 4,
    "user words": 8,
    "audio": 14,
    "words": 10,
    "text": 2,
    "call": 5,
    "hand over": 3,
    "calls cancelled": 2,
    "interrupted": 4,
    "made": 6,
    "done": 12,
    "counted": 1,
    "exchange": 8,
    "effect": 50,
    "fails": 4,
    "speaks": 6,
    "pauses": 6,
    "sentence": 8,
    "microphone closed": 1,
    "result": 5,
    "typed": 6,
    "asks": 4,
    "step asks": 2,
    "consent": 5,
    "answered": 5,
    "clicked": 1,
    "stopped": 3,
    "by voice or text": 2,
    "operator": 3,
    "announced": 4,
    "failed task": 1,
    "away": 2,
    "vanished": 1,
    "gateway lost": 2,
    "late gateway lost": 1,
    "back": 6,
    "moved": 1,
    "died": 2,
    "time": 25,
}
"""Relative frequency of each thing."""


def happens(orders: Orders, what: str, number: int) -> None:
    """Make a thing happen; does nothing where it is impossible now."""
    if orders.state.phase != "open":
        return
    doing = _DOINGS.get(what)
    if doing is not None:
        doing(orders, number)
    elif orders.ready:
        _over_the_connection(orders, what, number)


def _over_the_connection(orders: Orders, what: str, number: int) -> None:
    effect = orders.link
    match what:
        case "lost":
            orders.lose(number)
        case "going away":
            orders.take(provider_events.GoingAway(effect=effect, left_ms=number * 500))
        case "handle":
            orders.take(provider_events.HandleUpdated(effect=effect, handle=f"h{number}" if number % 3 else "", resumable=bool(number % 3)))
        case "voice":
            orders.take(provider_events.UserVoice(effect=effect, speaking=bool(number % 2), audio_ms=orders.now))
        case "user words":
            item = f"i{number % 4}" if number % 2 else ""
            orders.take(provider_events.UserWords(effect=effect, text=f" w{number}", item=item, whole=number % 4 == 1, audio_ms=orders.now))
        case "audio":
            orders.audio(number * 40 + 20)
        case "words":
            orders.in_turn = True
            orders.take(provider_events.AgentWords(effect=effect, text=f" a{number}", ms=orders.made, piece_ms=0))
        case "text" if orders.state.realtime is not None and not orders.state.realtime.response.written:
            orders.in_turn = True
            orders.take(provider_events.AgentText(effect=effect, text="look_up()" if number % 2 else "Read this aloud."))
        case "call":
            orders.in_turn = True
            name = FUNCTIONS[number % len(FUNCTIONS)].name
            orders.take(provider_events.CallRequested(effect=effect, ref=f"r{number % 4}", name=name, arguments={}))
        case "hand over":
            orders.in_turn = True
            orders.take(provider_events.CallRequested(effect=effect, ref=f"r{number}", name=HANDOFF, arguments=_target(orders, number)))
        case "calls cancelled":
            orders.take(provider_events.CallsCancelled(effect=effect, refs=(f"r{number % 4}",)))
        case "interrupted":
            orders.made, orders.in_turn = 0, True  # the end of that turn is reported, too
            orders.take(provider_events.Interrupted(effect=effect, audio_ms=orders.now))
        case "made":
            orders.take(provider_events.GenerationDone(effect=effect, ms=orders.made))
        case "done":
            orders.done(waiting=number % 9 == 0, quiet=number % 5 == 0)
        case "counted":
            orders.take(provider_events.TokensCounted(effect=effect, input_tokens=1))
        case "exchange":
            _exchange(orders, number)


def _exchange(orders: Orders, number: int) -> None:
    """Play a spoken question with its answer, the most common exchange."""
    orders.take(provider_events.UserWords(effect=orders.link, text=f" q{number}", audio_ms=orders.now))
    for index in range(1 + number % 3):
        if orders.ready:
            orders.audio(400 + number * 10)
        if orders.ready:
            orders.take(provider_events.AgentWords(effect=orders.link, text=f" e{number}{index}", ms=orders.made, piece_ms=0))
    if orders.ready and number % 4:
        orders.done()


def _target(orders: Orders, number: int) -> dict[str, str]:
    names = [*(agent.name for agent in orders.state.team.agents), "nobody"]
    return {"target": names[number % len(names)], "reason": "asked"}


def _effect(orders: Orders, number: int) -> None:
    """Advance one of the effects under way."""
    ids = list(orders.effects)
    if not ids:
        return
    id = ids[number % len(ids)]
    progress = orders.effects[id]
    match progress.effect:
        case out.Connect():
            _ready(orders, number)
        case out.Transcribe():
            orders.take(inputs.Transcribed(effect=id, text=f"s{number}" if number % 5 else ""))
        case out.JudgeTurn():
            orders.take(inputs.TurnJudged(id, number / 60))
        case out.Complete(functions=functions):
            if number % 4 == 1 and functions:
                progress.called = True
                name = functions[number % len(functions)].name
                orders.take(inputs.ToolRequested(effect=id, name=name, arguments=_target(orders, number) if name == HANDOFF else {}))
            elif number % 4 == 2 or progress.called:
                orders.take(inputs.Completed(effect=id, input_tokens=1, output_tokens=1))
            else:
                orders.take(inputs.TextDelta(id, f"This is {number}. And "))
        case out.Synthesize():
            orders.made_sound(id, 100 + number * 20, done=number % 2 == 0)


def _fails(orders: Orders, number: int) -> None:
    ids = [id for id, one in orders.effects.items() if not isinstance(one.effect, out.Connect)]
    if ids:
        retryable = number % 3 != 0
        code: Any = ("PROVIDER_UNAVAILABLE", "PROVIDER_REFUSED", "TIMED_OUT")[number % 7 % 3]
        error = ev.Failure(code=code, message="Not now.", retryable=retryable)
        orders.take(inputs.EffectFailed(effect=ids[number % len(ids)], error=error))


def _ready(orders: Orders, number: int) -> None:
    if orders.link in orders.effects and not orders.ready:
        if number % 10 == 9:
            orders.lose(number)
        else:
            orders.take(provider_events.ProviderReady(effect=orders.link, resumed=bool(number % 2), audio_ms=orders.now))


def _speaks(orders: Orders, number: int) -> None:
    orders.speaking = bool(number % 8)
    orders.hears(started=orders.speaking)


def _pauses(orders: Orders, number: int) -> None:
    """Have the user fall silent: for good, or every fourth time only for a moment."""
    if number % 3:
        orders.pauses()
    if number % 4 == 0:
        return
    orders.speaking = False
    orders.hears(started=False)


def _sentence(orders: Orders, number: int) -> None:
    """Play an utterance for a cascade that is judged complete and transcribed at once; every seventh is a noise."""
    if orders.route != "detector":
        return
    _speaks(orders, 1)
    _pauses(orders, 1)
    utterance = orders.state.utterance
    if utterance is not None and utterance.turn_effect in orders.effects:
        orders.take(inputs.TurnJudged(utterance.turn_effect or 0, 0.93))
    utterance = orders.state.utterance
    if utterance is not None and utterance.final_effect in orders.effects:
        orders.take(inputs.Transcribed(effect=utterance.final_effect or 0, text=f"u{number}" if number % 7 else ""))


def _microphone_closed(orders: Orders, _: int) -> None:
    if not orders.gone:
        orders.speaking = orders.heard_speaking = False
        orders.log(gateway.AudioEnded())


def _result(orders: Orders, number: int) -> None:
    open_calls = _open_calls(orders)
    if open_calls:
        call = open_calls[number % len(open_calls)]
        if number % 5 == 0:
            orders.log(tools.ToolFailed(call_id=call.call_id, name=call.name, error=ev.Failure(code="INTERNAL", message="No."), ms=1))
        elif number % 11 == 0:
            orders.log(tools.ToolInterrupted(call_id=call.call_id, name=call.name))
        else:
            result = {"found": number, **({"spoken": f"Found {number}."} if number % 3 == 0 else {})}
            orders.log(tools.ToolCompleted(call_id=call.call_id, name=call.name, result=result, ms=1))


def _open_calls(orders: Orders) -> list[ev.ToolCalled]:
    finished = {input.recorded.event.call_id for _, input in orders.taken if _is_result(input)}
    return [one for _, one in orders.appended if isinstance(one, ev.ToolCalled) and one.call_id not in finished]


def _asks(orders: Orders, number: int) -> None:
    """Have a call need approval: its result is the question."""
    open_calls = _open_calls(orders)
    if open_calls:
        call = open_calls[number % len(open_calls)]
        asked = _needs(orders, call.call_id)
        result = {"status": "needs_approval", "approval_id": asked.approval_id, "spoken": asked.question}
        orders.log(tools.ToolCompleted(call_id=call.call_id, name=call.name, result=result, ms=1))


def _step_asks(orders: Orders, number: int) -> None:
    asked = _needs(orders, f"run.{len(orders.questions)}.{number}")
    orders.log(tools.RunWaiting(run_id="run", name="tidy up", reason="approval", step="s", question=asked.question))


def _consent(orders: Orders, number: int) -> None:
    """Play a question that is asked and answered; every third time the model asks something of its own in between."""
    _step_asks(orders, number)
    for _ in range(3):
        for id in [id for id, one in orders.effects.items() if isinstance(one.effect, out.Synthesize)]:
            if id in orders.effects:
                orders.made_sound(id, 900, done=True)
        orders.passes(1_500)
    if number % 3 == 0 and orders.ready:
        orders.audio(400)
        if orders.ready:
            orders.take(provider_events.AgentWords(effect=orders.link, text=" Rather keep it?", ms=orders.made, piece_ms=0))
        if orders.ready:
            orders.done()
        orders.passes(1_500)
    _answered(orders, number)


def _needs(orders: Orders, call_id: str) -> tools.ApprovalRequested:
    question = f"Shall I do number {len(orders.questions)} of these? Please say yes or no."
    event = tools.ApprovalRequested(
        approval_id=f"approval-{call_id}", call_id=call_id, name="do", arguments={}, effect="write", question=question, expires_ts=0
    )
    orders.questions[event.approval_id] = question
    orders.log(event)
    lapsed = tools.ApprovalEnded(approval_id=event.approval_id, call_id=call_id, name="do", outcome="lapsed")
    orders.after(LAPSES_MS, lambda: orders.log(lapsed))
    return event


def _answered(orders: Orders, number: int) -> None:
    if not orders.gone:
        orders.typed.append("No." if number % 4 == 0 else "Yes.")
        orders.log(gateway.TextReceived(text=orders.typed[-1]))


def _clicked(orders: Orders, number: int) -> None:
    if orders.questions:
        approval = list(orders.questions)[number % len(orders.questions)]
        call_id = approval.removeprefix("approval-")
        orders.log(tools.ApprovalEnded(approval_id=approval, call_id=call_id, name="do", outcome="approved", by="click"))


def _is_result(input: Any) -> bool:
    return isinstance(input, LogInput) and isinstance(input.recorded.event, tools.ToolCompleted | tools.ToolFailed | tools.ToolInterrupted)


def _typed(orders: Orders, number: int) -> None:
    if not orders.gone:
        orders.typed.append(f"t{len(orders.typed)} {number}")
        orders.log(gateway.TextReceived(text=orders.typed[-1]))


def _stopped(orders: Orders, _: int) -> None:
    if not orders.gone:
        orders.log(gateway.InterruptRequested())


def _by_voice_or_text(orders: Orders, number: int) -> None:
    if not orders.gone:
        orders.log(gateway.OutputRequested(output="text" if number % 2 else "audio"))


def _operator(orders: Orders, number: int) -> None:
    orders.log(gateway.HandoffRequested(target=_target(orders, number)["target"], reason="wanted"))


def _announced(orders: Orders, number: int) -> None:
    orders.said.append(f"n{len(orders.said)}-{number}.")
    orders.log(tools.TaskCompleted(task_id="t", function="look_up", result={}, announce=orders.said[-1]))


def _failed_task(orders: Orders, _: int) -> None:
    error = ev.Failure(code="INTERNAL", message="It broke.")
    orders.log(tools.TaskFailed(task_id="t", function="look_up", error=error))


def _away(orders: Orders, _: int) -> None:
    if not orders.gone:
        orders.lose_client()
        connection = f"c{orders.connection}"
        orders.log(gateway.ClientDisconnected(gateway=orders.gateway, connection=connection, reason="closed", last_seq=0))


def _gateway_lost(orders: Orders, _: int) -> None:
    if not orders.gone:
        orders.lose_client()
        orders.take(inputs.GatewayLost(orders.gateway))


def _late_gateway_lost(orders: Orders, number: int) -> None:
    orders.take(inputs.GatewayLost(orders.gateway if number % 2 and orders.gone else "g-before"))


def _back(orders: Orders, number: int) -> None:
    if orders.gone or number % 9 == 0:
        if not orders.gone:
            orders.lose_client()
        orders.gone = False
        orders.connection += 1
        orders.log(gateway.ClientConnected(gateway=orders.gateway, connection=f"c{orders.connection}", resumed=bool(number % 4)))


def _moved(orders: Orders, number: int) -> None:
    """Move the client to another gateway; the loss of the old one is reported only afterwards."""
    before, orders.gateway = orders.gateway, f"g{number}-{orders.connection + 1}"
    if not orders.gone:
        orders.lose_client()
    _back(orders, number)
    orders.take(inputs.GatewayLost(before))


_DOINGS: Final[dict[str, Callable[[Orders, int], None]]] = {
    "ready": _ready,
    "effect": _effect,
    "fails": _fails,
    "speaks": _speaks,
    "pauses": _pauses,
    "sentence": _sentence,
    "microphone closed": _microphone_closed,
    "result": _result,
    "typed": _typed,
    "asks": _asks,
    "step asks": _step_asks,
    "consent": _consent,
    "answered": _answered,
    "clicked": _clicked,
    "stopped": _stopped,
    "by voice or text": _by_voice_or_text,
    "operator": _operator,
    "announced": _announced,
    "failed task": _failed_task,
    "away": _away,
    "vanished": lambda orders, _: orders.lose_client() if not orders.gone else None,
    "gateway lost": _gateway_lost,
    "late gateway lost": _late_gateway_lost,
    "back": _back,
    "moved": _moved,
    "died": lambda orders, number: orders.dies(number),
    "time": lambda orders, number: orders.passes(number * number * 10),
}

"""The end of a call at which an input could not be taken: a fault of this program, or an input beyond a limit. Pure.

Whatever is raised while an input is taken, the call that it is about ends once, typed, and the next input is taken. Delivered again, the
input would raise again until it is given up, with its call open. A step takes its whole run with it. What ran and may have changed
something is interrupted, not failed.
"""

from __future__ import annotations

from msgspec.structs import replace

from voxbridge.services.tools.core import calls, ends, runs, undo
from voxbridge.services.tools.core.calls import Steps
from voxbridge.services.tools.core.inputs import Faulted, Target
from voxbridge.services.tools.core.outputs import CancelEffect, CancelTimer, Output, Release
from voxbridge.services.tools.core.state import Asking, Call, Following, Running, State
from voxbridge.shared.events.tools import ApprovalEnded
from voxbridge.shared.step.fold import Append


def ended(state: State, input: Faulted, now: int) -> Steps:
    """End the call that the input was about, with all that it began. One that had not been opened yet ends at once."""
    call = state.open.get(input.call_id)
    while call is not None and call.run in state.open:
        call = state.open[call.run]
    if call is None and input.call_id in state.ended:
        return state, [*ends.left(state), *undo.left(state), *calls.done(state, state.ended[input.call_id])]
    if call is None:
        target = Target(input.name, {})
        call = Call(id=input.call_id, seq=input.seq, name=input.name, target=target, called_at=now, deadline_ms=0, account=input.account)
        return calls.close(state, call, input.error, now)
    outputs: list[Output] = []
    for step in [one for one in state.open.values() if _is_below(state, one, call)]:
        outputs += [*_stopped(step), CancelTimer(step.id), *([Release(step.account, step.id)] if step.rules.counted else [])]
        rest = {other_id: other for other_id, other in state.open.items() if other_id != step.id}
        state = replace(state, open=rest, ended=calls.kept({**state.ended, step.id: step.seq}, calls.ENDED_KEPT))
    if isinstance(call.phase, Following):
        state, more = runs.broken(state, call, input.error, now)
    else:
        outputs += _stopped(call)
        unknown = isinstance(call.phase, Running) and call.rules.effect != "read"
        state, more = calls.close(state, call, None if unknown else input.error, now)
    return state, [*outputs, *more]


def _is_below(state: State, call: Call, root: Call) -> bool:
    while call.run in state.open:
        call = state.open[call.run]
        if call.id == root.id:
            return True
    return False


def _stopped(call: Call) -> list[Output]:
    if isinstance(call.phase, Running):
        return [CancelEffect(call.id)]
    if isinstance(call.phase, Asking):
        asked = calls.approval_id(call.id)
        return [Append(ApprovalEnded(approval_id=asked, call_id=call.id, name=call.target.name, outcome="withdrawn"))]
    return []

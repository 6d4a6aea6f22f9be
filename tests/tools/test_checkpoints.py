"""A state that is written down is the same when it is read."""

from __future__ import annotations

from tests.tools.core_driver import BROKEN, Told, accepted, called, cancelled, raised, returned
from voxbridge.services.tools.core.inputs import Target
from voxbridge.services.tools.core.state import Recent, State
from voxbridge.services.tools.session import checkpoints
from voxbridge.shared.events import Recorded
from voxbridge.shared.events.voice import Failure

OUTCOMES: tuple[dict[str, int] | Failure | None, ...] = ({"x": 1}, BROKEN, None)


def test_a_state_is_restored_from_its_checkpoint_whatever_is_in_it() -> None:
    told = Told()
    told.take(called("c1", 1), accepted("c1", effect="write"), returned("c1", x=1))
    told.take(called("c2", 2, a=2), accepted("c2", effect="write"), raised("c2"))
    told.take(called("c3", 3, a=3), accepted("c3", mode="task", effect="write"), called("c4", 4, a=3), accepted("c4", effect="write"))
    told.take(cancelled("c9", 5))
    made = checkpoints.made(told.state, taken=11, number=7)
    assert made is not None
    recorded = Recorded(
        seq=20, id="a.tools.7", sid="a", ts=0, cause=None, writer="tools", visible=False, type="tools.checkpoint", v=1, event=made
    )
    folded = checkpoints.restored(recorded)
    assert folded is not None
    assert (folded.state, folded.taken, folded.number, folded.last_seq) == (told.state, 11, 8, 20)


def test_each_kind_of_outcome_is_kept_for_repetitions() -> None:
    for outcome in OUTCOMES:
        recent = Recent(
            target=Target("fn", {}),
            ended_at=1,
            result=outcome if isinstance(outcome, dict) else None,
            failure=outcome if isinstance(outcome, Failure) else None,
        )
        state = State(recent={"c1": recent})
        made = checkpoints.made(state, taken=0, number=0)
        assert made is not None
        recorded = Recorded(seq=1, id="a", sid="a", ts=0, cause=None, writer="tools", visible=False, type="t", v=1, event=made)
        folded = checkpoints.restored(recorded)
        assert folded is not None
        assert folded.state == state

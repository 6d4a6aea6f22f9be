"""Rules that hold for every document and every order of what may happen to its runs."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tools.runs.drawn import documents, move, moves
from tests.tools.runs.world import World, attempts
from voxbridge.services.tools.runs import inputs
from voxbridge.services.tools.runs.document import Document, as_data, parse
from voxbridge.shared.events import tools as ev

DAY_S = 86_400
ENDS = (ev.RunCompleted, ev.RunFailed, ev.RunCancelled)


def played(start: Document, macros: dict[str, Document], order: list[tuple[str, int]]) -> World:
    world = World()
    world.start(start, macros=macros)
    for what, number in order:
        move(world, what, number, start, macros)
    return world


drawn = given(
    start=documents(),
    macros=st.fixed_dictionaries({"inner": documents("inner"), "other": documents("other")}),
    order=moves,
)


@settings(max_examples=150, deadline=None)
@drawn
def test_every_run_ends_once_and_leaves_nothing_open(start: Document, macros: dict[str, Document], order: list[tuple[str, int]]) -> None:
    world = played(start, macros, order)
    world.passes(DAY_S)
    assert not world.state.open
    assert not world.state.queue
    assert not world.timers
    ends = Counter(event.run_id for event in world.events if isinstance(event, ENDS))
    assert ends == Counter(world.finished.keys())
    began = Counter((event.run_id, event.step, event.attempt) for event in world.told(ev.RunStepStarted))
    ends_of_steps = [*world.told(ev.RunStepCompleted), *world.told(ev.RunStepFailed)]
    assert began == Counter((event.run_id, event.step, event.attempt) for event in ends_of_steps)


@settings(max_examples=150, deadline=None)
@drawn
def test_no_attempt_of_a_step_is_made_twice(start: Document, macros: dict[str, Document], order: list[tuple[str, int]]) -> None:
    world = played(start, macros, order)
    made = attempts(world)
    assert len(made) == len(set(made))
    # A start that comes again asks for the open call again, under its own id.
    for call_id in world.started:
        run_id, path = call_id.split(".", 1)
        assert (run_id, path.rpartition(".")[0], int(path.rpartition(".")[2])) in made
    unknown = {(event.run_id, event.step) for event in world.told(ev.RunStepFailed) if not event.known}
    asked = {(event.run_id, event.step) for event in world.told(ev.RunWaiting) if event.reason == "error"}
    for run_id, step in unknown - asked:
        later = [number for one, path, number in made if (one, path) == (run_id, step)]
        lost = [event.attempt for event in world.told(ev.RunStepFailed) if (event.run_id, event.step, event.known) == (run_id, step, False)]
        assert max(later) == max(lost)


@settings(max_examples=100, deadline=None)
@drawn
def test_the_journal_leads_to_the_same_state_at_every_point(
    start: Document, macros: dict[str, Document], order: list[tuple[str, int]]
) -> None:
    world = World()
    world.start(start, macros=macros)
    for what, number in order:
        move(world, what, number, start, macros)
        assert world.again() == world.state


@settings(max_examples=100, deadline=None)
@drawn
def test_a_run_that_is_cancelled_anywhere_ends_and_leaves_nothing_open(
    start: Document, macros: dict[str, Document], order: list[tuple[str, int]]
) -> None:
    world = played(start, macros, order)
    for run_id in [*world.state.open, *(one.start.run_id for one in world.state.queue)]:
        world.take(inputs.Cancel(run_id=run_id, reason="the user said so"))
    for call_id in list(world.calls):
        if call_id in world.stopped:
            world.fails(call_id)
    assert not world.state.open
    assert not world.state.queue
    assert not world.timers


@settings(max_examples=100, deadline=None)
@given(start=documents())
def test_a_document_is_read_again_from_its_data(start: Document) -> None:
    assert parse(as_data(start)) == start

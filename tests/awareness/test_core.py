"""The rules of the awareness service, without a log."""

from __future__ import annotations

from typing import Any

from voxbridge.services.awareness.core.inputs import CallEnded, Erased, Forget, Settled
from voxbridge.services.awareness.core.outputs import Erase
from voxbridge.services.awareness.core.state import ENDS_REMEMBERED, VISITS_KEPT, State, initial, view
from voxbridge.services.awareness.core.step import AGE_US, INPUTS_KEPT, KEPT_US, concerns, step
from voxbridge.shared import events
from voxbridge.shared.awareness.view import ERRORS, PAGES
from voxbridge.shared.events.awareness import AwarenessChanged
from voxbridge.shared.events.gateway import AwarenessSwitched, ContextSet, ErrorReported, ErrorResolved, PageVisited
from voxbridge.shared.step.fold import Append
from voxbridge.shared.step.journal import LogInput

NOW = 1_800_000_000_000_000
SID = "a" * 32


class Screen:
    """A state, its inputs and what came of them."""

    def __init__(self, log_id: str = "~local") -> None:
        self.state: State = initial(log_id)
        self.outputs: list[Any] = []
        self.seq = 0

    def take(self, input: Any, now: int = NOW) -> list[Any]:
        self.state, outputs = step(self.state, input, now)
        self.outputs += outputs
        return list(outputs)

    def report(self, event: events.Event, now: int = NOW, seq: int = 0) -> list[Any]:
        self.seq = seq or self.seq + 1
        kind = events.kind_of(event)
        recorded = events.Recorded(
            seq=self.seq, id="i", sid="~local", ts=now, cause=None, writer="gateway", visible=False, type=kind.name, v=1, event=event
        )
        return self.take(LogInput(recorded), now)

    def visit(self, page: str, session: str = "", now: int = NOW) -> None:
        self.report(PageVisited(visit_id=f"v-{page}", page=page, session=session), now)

    def error(self, message: str, error_id: str = "e1", session: str = "") -> None:
        self.report(ErrorReported(error_id=error_id, error_type="TypeError", message=message, session=session))


def failed(seq: int = 5, function: str = "run_tool", message: str = "It broke.") -> CallEnded:
    return CallEnded(sid=SID, seq=seq, function=function, at=NOW, code="INTERNAL" if message else "", message=message)


def test_pages_are_newest_first_and_one_that_is_visited_again_moves_up() -> None:
    screen = Screen()
    for page in ("/a", "/b", "/c", "/a"):
        screen.visit(page)
    assert [one.page for one in screen.state.visits] == ["/a", "/c", "/b"]
    assert screen.state.counts == {"/a": 2, "/b": 1, "/c": 1}


def test_an_agent_is_told_five_pages_and_three_errors_and_more_are_kept_within_bounds() -> None:
    screen = Screen()
    for number in range(VISITS_KEPT + 70):
        screen.visit(f"/{number}")
        screen.error(f"{number}", f"e{number}")
    assert (len(view(screen.state).pages), len(view(screen.state).errors)) == (PAGES, ERRORS)
    assert len(screen.state.visits) == VISITS_KEPT
    assert len(screen.state.problems) == 20
    assert len(screen.state.counts) == 100
    assert "/119" in screen.state.counts


def test_the_same_error_is_one_with_a_count_and_a_resolved_one_is_gone() -> None:
    screen = Screen()
    screen.error("x is undefined")
    screen.error("x is undefined", "e2")
    screen.error("y is undefined", "e3")
    assert [(one.id, one.count) for one in screen.state.problems] == [("e3", 1), ("e1", 2)]
    screen.report(ErrorResolved(error_id="e1"))
    assert [one.id for one in screen.state.problems] == ["e3"]


def test_a_fact_is_replaced_by_its_key_and_taken_back_by_an_empty_value() -> None:
    screen = Screen()
    for key, value in (("project", "A"), ("tab", "x"), ("project", "B"), ("tab", "")):
        screen.report(ContextSet(key=key, value=value))
    assert [(one.key, one.value) for one in screen.state.facts] == [("project", "B")]


def test_a_failed_call_is_an_error_until_the_function_works_again() -> None:
    screen = Screen()
    assert not concerns(screen.state, failed(message=""))
    screen.take(failed(5))
    screen.take(failed(6, "other"))
    assert [(one.function, one.kind, one.session) for one in screen.state.problems] == [
        ("other", "INTERNAL", SID),
        ("run_tool", "INTERNAL", SID),
    ]
    assert concerns(screen.state, failed(7, message=""))
    screen.take(failed(7, message=""))
    assert [one.function for one in screen.state.problems] == ["other"]


def test_an_end_that_is_delivered_again_and_a_report_that_is_read_again_count_once() -> None:
    screen = Screen()
    screen.take(failed(5))
    for number in range(ENDS_REMEMBERED - 1):
        screen.take(failed(1_000 + number, f"f{number}"))
    before = screen.state.problems
    screen.take(failed(5))
    assert screen.state.problems == before
    screen.visit("/a")
    taken = screen.state.visits
    screen.report(PageVisited(visit_id="again", page="/b"), seq=1)
    assert screen.state.visits == taken


def test_what_changed_is_told_once_all_that_waited_is_taken() -> None:
    screen = Screen()
    screen.visit("/a")
    assert screen.outputs == []
    (told,) = screen.take(Settled())
    assert isinstance(told, Append)
    assert isinstance(told.event, AwarenessChanged)
    assert [one.page for one in told.event.view.pages] == ["/a"]
    assert screen.take(Settled()) == []


def test_a_source_that_is_switched_off_is_forgotten_erased_and_not_taken() -> None:
    screen = Screen()
    screen.visit("/a")
    screen.error("broken")
    screen.take(failed())
    (erase,) = screen.report(AwarenessSwitched(off=("errors",)))
    assert erase == Erase(("errors",), 3)
    assert screen.state.problems == ()
    assert screen.state.visits
    assert not concerns(screen.state, failed(9))
    screen.take(failed(9))
    assert screen.report(ErrorReported(error_id="late", error_type="E", message="came past the switch")) == [Erase(("errors",), 4)]
    assert screen.state.problems == ()
    assert [one.up_to for one in screen.state.erasing] == [3, 4]
    screen.take(Erased(("errors",), 3))
    screen.take(Erased(("errors",), 4))
    assert not screen.state.erasing
    assert screen.report(AwarenessSwitched(off=())) == []
    screen.error("seen again")
    assert view(screen.state).errors[0].message == "seen again"


def test_entries_age_out() -> None:
    screen = Screen()
    screen.visit("/old")
    screen.error("old")
    screen.take(Settled())
    (told,) = screen.take(Settled(), NOW + KEPT_US["errors"] + 1)
    assert [one.page for one in told.event.view.pages] == ["/old"]
    (told,) = screen.take(Settled(), NOW + KEPT_US["pages"] + 1)
    assert not told.event.view


def test_the_log_is_cut_after_enough_inputs_and_after_enough_time() -> None:
    screen = Screen()
    for number in range(INPUTS_KEPT - 1):
        screen.visit(f"/{number % 7}")
    erase = [one for one in screen.take(Settled()) if isinstance(one, Erase)]
    assert erase == [Erase(("pages", "errors", "context"), INPUTS_KEPT - 1)]
    assert screen.state.visits
    assert [one for one in screen.take(Settled()) if isinstance(one, Erase)] == []
    assert [one for one in screen.take(Settled(), NOW + AGE_US + 1) if isinstance(one, Erase)]


def test_everything_is_forgotten_when_an_operator_wants_it() -> None:
    screen = Screen()
    screen.visit("/a")
    screen.take(failed())
    screen.report(ContextSet(key="a", value="b"))
    assert screen.take(Forget()) == [Erase(("pages", "errors", "context"), 2)]
    assert not view(screen.state)
    assert screen.state.counts == {}


def test_sessions_of_a_shared_account_do_not_mix() -> None:
    screen, other = Screen("~acme"), "b" * 32
    screen.visit("/a", SID)
    screen.visit("/a", other)
    screen.error("same", "e1", SID)
    screen.error("same", "e2", other)
    for session, value in ((SID, "x"), (other, "y")):
        screen.report(ContextSet(key="k", value=value, session=session))
    seen = view(screen.state)
    assert {one.session for one in seen.pages} == {one.session for one in seen.errors} == {SID, other}
    assert {(one.session, one.value) for one in seen.context} == {(SID, "x"), (other, "y")}

from __future__ import annotations

from voxbridge.supervisor.readiness import Part, Phase, Whole, update, waits_for

URL = "http://127.0.0.1:8420"


def _whole(*phases: Phase, announced: bool = False, ever: bool = False) -> Whole:
    return Whole({name: Part(phase) for name, phase in zip("abc", phases, strict=False)}, announced, ever)


def test_the_last_part_to_be_ready_makes_the_line() -> None:
    whole, line = update(_whole(Phase.READY, Phase.STARTING), "b", Part(Phase.READY), URL)
    assert line == "Voxbridge is ready at http://127.0.0.1:8420"
    assert whole.announced


def test_the_line_is_made_once() -> None:
    whole, _ = update(_whole(Phase.READY, Phase.STARTING), "b", Part(Phase.READY), URL)
    assert update(whole, "b", Part(Phase.READY, pid=7), URL)[1] is None


def test_a_crash_is_said_and_puts_every_part_that_was_ready_in_doubt() -> None:
    whole, line = update(
        _whole(Phase.READY, Phase.READY, announced=True, ever=True), "a", Part(Phase.CRASHED, detail="was killed by SIGKILL"), URL
    )
    assert line == "Voxbridge is not ready: a was killed by SIGKILL"
    assert whole.parts["b"].phase is Phase.CHECKING
    whole, line = update(whole, "a", Part(Phase.READY), URL)
    assert line is None
    whole, line = update(whole, "b", Part(Phase.READY), URL)
    assert line == "Voxbridge is ready again at http://127.0.0.1:8420"


def test_stopping_is_not_news() -> None:
    whole, line = update(_whole(Phase.READY, Phase.READY, announced=True, ever=True), "a", Part(Phase.STOPPING), URL)
    assert line is None
    assert update(whole, "b", Part(Phase.STOPPING), URL)[1] is None


def test_what_is_waited_for_is_named_with_what_is_known_about_it() -> None:
    whole = Whole({"a": Part(Phase.READY), "b": Part(Phase.STARTING), "c": Part(Phase.CRASHED, detail="ended with code 3")})
    assert waits_for(whole) == "b, c (ended with code 3)"

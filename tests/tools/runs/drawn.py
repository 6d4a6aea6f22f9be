"""Random documents, and random orders of what may happen to their runs."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.tools.runs.world import World
from voxbridge.services.tools.runs import inputs
from voxbridge.services.tools.runs.document import Document, parse
from voxbridge.services.tools.runs.state import Asking, Calling, Confirming, Deciding, Stepping
from voxbridge.shared.events.voice import Failure

PIPES = ("plain", "${prev.n}", "${prev.absent}", "${steps.s1.result.n default: 0}", "${input.i}", '${steps.s2.state default: ""}')
_texts = st.sampled_from(PIPES)
_calls = st.builds(lambda text: {"call": "fn", "arguments": {"x": text}}, _texts)
_says = st.builds(lambda text: {"say": f"so {text}"}, _texts)
_policies = st.one_of(
    st.sampled_from(["stop", "continue", "ask"]),
    st.builds(
        lambda n, pause, then: {"retry": {"n": n, "backoff_s": pause, "then": then}},
        st.integers(1, 5),
        st.sampled_from([0, 1, 30]),
        st.sampled_from(["stop", "continue", "ask"]),
    ),
    st.builds(lambda step: {"fallback": step}, _calls | _says),
)
_conditions = st.sampled_from(["", "", "${input.i} > 3", "exists ${prev.n}", "${prev.absent} == 1", "${prev.n default: 1} < 2"])
_actions = st.one_of(
    _calls,
    _calls,
    _says,
    st.builds(lambda text: {"ask": f"what {text}?", "timeout_s": 20}, _texts),
    st.builds(lambda s: {"wait": s}, st.sampled_from([0.1, 3, 100])),
    st.builds(lambda text, error: {"stop": {"reason": text, "error": error}}, _texts, st.booleans()),
    st.sampled_from([{"run": "inner"}, {"run": "other"}, {"run": "gone"}]),
)


@st.composite
def documents(draw: Any, name: str = "outer") -> Document:
    """Draw a document of one to eight steps."""
    steps = []
    for number in range(1, draw(st.integers(1, 8)) + 1):
        step: dict[str, Any] = {"id": f"s{number}", **draw(_actions)}
        if condition := draw(_conditions):
            step["when"] = condition
        if draw(st.booleans()):
            step["on_error"] = draw(_policies)
        steps.append(step)
    return parse(
        {
            "name": name,
            "steps": steps,
            "inputs": {"i": {"type": "integer", "default": 5}},
            "on_error": draw(_policies),
            "mode": draw(st.sampled_from(["single", "restart", "queued", "parallel"])),
            "limit": draw(st.integers(1, 3)),
            "confirm": draw(st.sampled_from(["never", "never", "first", "always"])),
            "timeout_s": draw(st.sampled_from([40, 300])),
        }
    )


_happenings = st.sampled_from(["go", "go", "go", "fail", "unknown", "start", "cancel", "time", "stray", "hold"])
moves = st.lists(st.tuples(_happenings, st.integers(0, 99)), max_size=40)


def move(world: World, what: str, number: int, start: Document, macros: dict[str, Document]) -> None:
    """Let one thing happen, if there is anything that it can happen to."""
    if what == "time":
        world.passes(number)
    elif what == "start":
        world.start(start, f"r{number % 7}", macros=macros, stepwise=number % 3 == 0)
    elif what == "stray":
        world.take(inputs.Returned(run_id=f"r{number % 7}", call_id=f"r{number % 7}.s1.{number}", result={}))
    elif world.state.open:
        run = list(world.state.open.values())[number % len(world.state.open)]
        if what == "cancel":
            world.take(inputs.Cancel(run_id=run.id, reason="the user said so"))
        elif what == "hold" and isinstance(run.phase, Calling):
            world.take(inputs.Held(run_id=run.id, call_id=run.phase.call_id, question="Shall I?"))
        else:
            _answer(world, run.id, number, failed=what != "go", known=what != "unknown")


def _answer(world: World, run_id: str, number: int, *, failed: bool, known: bool) -> None:
    match world.state.open[run_id].phase:
        case Confirming():
            world.take(inputs.Confirmed(run_id=run_id, yes=not failed))
        case Asking():
            world.take(inputs.Answered(run_id=run_id, text=f"answer {number}"))
        case Deciding():
            world.take(inputs.Decided(run_id=run_id, choice=("again", "go_on", "stop")[number % 3]))
        case Stepping():
            world.take(inputs.Stepped(run_id=run_id, yes=not failed))
        case _:
            for call_id in [one for one in world.calls if one.startswith(f"{run_id}.")]:
                if failed:
                    code = ("INTERNAL", "INVALID_ARGUMENT", "TIMED_OUT")[number % 3]
                    world.fails(call_id, Failure(code=code, message="no"), known=known)
                else:
                    world.returns(call_id, n=number)

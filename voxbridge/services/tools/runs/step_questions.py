"""Runs that go step by step: what the user is asked before each step, in words. Pure.

Owns the words. Does not own what the answer does (`machine`), nor how an answer is known (`voxbridge.shared.macros.answers`).
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from voxbridge.services.tools.runs import spoken
from voxbridge.services.tools.runs.document import Action, Ask, Call, RunMacro, Say
from voxbridge.services.tools.runs.dry_run import known
from voxbridge.services.tools.runs.pipes import Resolver
from voxbridge.services.tools.runs.state import Run

STEP_US: Final = 300_000_000
"""µs for which a run waits to be told whether its next step may begin."""

HINT: Final = "Say yes, no to leave it out, or stop."


def question(run: Run, action: Action, resolver: Resolver) -> str:
    """Return what the user is asked before the step that is reached: which one it is, what it does, and the answers there are."""
    frame = run.frame
    of = "" if len(run.frames) == 1 else f" of {frame.document.name}"
    number = f"Step {frame.at + 1} of {len(frame.document.steps)}{of}"
    return f"{number}: {spoken.action(_resolved(action, resolver))}. Shall I? {HINT}"


def _resolved(action: Action, resolver: Resolver) -> Action:
    """Return an action with what its pipes bring, where that is there; what is not, its attempt says."""
    match action:
        case Call():
            return replace(action, arguments=known(action.arguments, resolver))
        case RunMacro():
            return replace(action, inputs=known(action.inputs, resolver))
        case Say():
            return replace(action, text=str(known(action.text, resolver)))
        case Ask():
            return replace(action, question=str(known(action.question, resolver)))
        case _:
            return action

"""Documents in words, to be read back before and after they are saved. Pure."""

from __future__ import annotations

from typing import Final

from voxbridge.services.tools.runs.document import Action, Ask, Call, Document, Retry, RunMacro, Say, Stop, Wait

STEPS_SPOKEN: Final = 5
TEXT_CHARACTERS: Final = 60

_ERRORS: Final = {
    "stop": "it stops",
    "continue": "it goes on",
    "ask": "I ask you",
    "retry": "I try it again",
    "fallback": "something else is done",
}
_MODES: Final = {
    "single": "It is not started twice at a time.",
    "restart": "If it is started while it runs, it begins anew.",
    "queued": "If it is started while it runs, that waits.",
    "parallel": "It may run several times at once.",
}


def steps(document: Document) -> str:
    """Return the steps in one sentence part: "first find, then note"."""
    told = [action(step.action) for step in document.steps[:STEPS_SPOKEN]]
    more = len(document.steps) - len(told)
    if more:
        told.append(f"{more} more step{'s' if more > 1 else ''}")
    return told[0] if len(told) == 1 else f"first {', then '.join(told)}"


def trigger(document: Document) -> str:
    """Return how it is started in words; empty without a trigger."""
    return f'Say "{document.triggers[0]}" to run it.' if document.triggers else f"Say run {document.name} to run it."


def policy(document: Document) -> str:
    """Return in a sentence what a failed step and a second start lead to."""
    error = document.on_error if isinstance(document.on_error, str) else "retry" if isinstance(document.on_error, Retry) else "fallback"
    return f"When a step of {document.name} fails, {_ERRORS[error]}. {_MODES[document.mode]}"


def action(one: Action) -> str:
    """Return what a step does, without its subject: "find with Ada"."""
    match one:
        case Call():
            plain = [str(value) for value in one.arguments.values() if isinstance(value, str | int | float)]
            given = ", ".join(value for value in plain if "${" not in value)
            return f"{one.function.replace('_', ' ')}{f' with {_cut(given)}' if given else ''}"
        case RunMacro():
            return f"run {one.name}"
        case Say():
            return f'say "{_cut(one.text)}"'
        case Ask():
            return f'ask "{_cut(one.question)}"'
        case Wait():
            return f"wait {one.seconds:g} seconds"
        case Stop():
            return "stop"


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_CHARACTERS else f"{text[:TEXT_CHARACTERS]}…"

"""Documents in words, to be read back before and after they are saved. Pure."""

from __future__ import annotations

from typing import Final

from voxbridge.services.tools.runs.document import Action, Ask, Call, Document, RunMacro, Say, Stop, Wait

STEPS_SPOKEN: Final = 5
TEXT_CHARACTERS: Final = 60


def steps(document: Document) -> str:
    """Return the steps in one sentence part: "first find, then note"."""
    told = [_words(step.action) for step in document.steps[:STEPS_SPOKEN]]
    more = len(document.steps) - len(told)
    if more:
        told.append(f"{more} more step{'s' if more > 1 else ''}")
    return told[0] if len(told) == 1 else f"first {', then '.join(told)}"


def trigger(document: Document) -> str:
    """Return how it is started in words; empty without a trigger."""
    return f'Say "{document.triggers[0]}" to run it.' if document.triggers else f"Say run {document.name} to run it."


def _words(action: Action) -> str:
    match action:
        case Call():
            plain = [str(value) for value in action.arguments.values() if isinstance(value, str | int | float)]
            given = ", ".join(value for value in plain if "${" not in value)
            return f"{action.function.replace('_', ' ')}{f' with {_cut(given)}' if given else ''}"
        case RunMacro():
            return f"run {action.name}"
        case Say():
            return f'say "{_cut(action.text)}"'
        case Ask():
            return f'ask "{_cut(action.question)}"'
        case Wait():
            return f"wait {action.seconds:g} seconds"
        case Stop():
            return "stop"


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_CHARACTERS else f"{text[:TEXT_CHARACTERS]}…"

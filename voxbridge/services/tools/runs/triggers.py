"""Triggers that a macro may have: words of its own, slots that are its inputs, and nothing that could mean another macro. Pure.

Does not own how they are matched (`voxbridge.shared.macros.triggers`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from voxbridge.services.tools.runs.document import Document, macro_id
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.macros.triggers import is_slot, pattern_of

SLOTS_LIMIT: Final = 4
RESERVED: Final = frozenset(
    ("yes", "no", "yes please", "no thanks", "ok", "okay", "stop", "cancel", "never mind", "go on", "again", "wait", "help")
)
"""Utterances that answer questions and stop the agent everywhere."""


def check(document: Document, others: Iterable[Document]) -> None:
    """Check a document's triggers, alone and beside those of other macros. Raises `INVALID_ARGUMENT` and `CONFLICT`, naming the trigger."""
    own: list[tuple[str, list[str]]] = []
    for number, trigger in enumerate(document.triggers):
        field = f"triggers[{number}]"
        pattern = pattern_of(trigger)
        _check(document, trigger, pattern, field)
        for other in others:
            if macro_id(other.name) != macro_id(document.name):
                _apart(trigger, pattern, other, field)
        for earlier, known in own:
            if _meet(pattern, known):
                message = f"The triggers {trigger!r} and {earlier!r} of {document.name} can mean the same words; keep one."
                raise VoxbridgeError(Code.CONFLICT, message, field=field)
        own.append((trigger, pattern))


def _check(document: Document, trigger: str, pattern: Sequence[str], field: str) -> None:
    slots = [part[1:-1] for part in pattern if is_slot(part)]
    words = [part for part in pattern if not is_slot(part)]
    if not words or any("{" in word or "}" in word for word in words):
        message = f"The trigger {trigger!r} needs a word, and its slots look like {{name}}."
    elif " ".join(pattern) in RESERVED:
        message = f"{trigger!r} is said in answer to questions, so it cannot start a macro."
    elif len(slots) > SLOTS_LIMIT or len(set(slots)) != len(slots):
        message = f"The trigger {trigger!r} has more than {SLOTS_LIMIT} slots, or one twice."
    elif any(is_slot(one) and is_slot(two) for one, two in pairwise(pattern)):
        message = f"The trigger {trigger!r} has two slots side by side; put a word between them."
    elif missing := [slot for slot in slots if slot not in document.inputs]:
        message = f"The trigger {trigger!r} fills {missing[0]!r}, which is not an input of {document.name}."
    elif needed := [name for name, one in document.inputs.items() if one.default is None and name not in slots]:
        message = f"The trigger {trigger!r} leaves {needed[0]!r} without a value; give it a slot or a default."
    else:
        return
    raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field=field)


def _apart(trigger: str, pattern: Sequence[str], other: Document, field: str) -> None:
    for known in other.triggers:
        if _meet(pattern, pattern_of(known)):
            message = f"{trigger!r} can mean {other.name} too, which {known!r} starts. Choose other words."
            raise VoxbridgeError(Code.CONFLICT, message, field=field)


def _meet(one: Sequence[str], two: Sequence[str]) -> bool:
    """Tell whether some utterance matches both patterns. A slot stands for one word or more."""
    row = {(0, 0)}
    seen: set[tuple[int, int]] = set()
    while row:
        seen |= row
        following: set[tuple[int, int]] = set()
        for left, right in row:
            if left == len(one) and right == len(two):
                return True
            if left == len(one) or right == len(two):
                continue
            first, second = one[left], two[right]
            if not is_slot(first) and not is_slot(second) and first != second:
                continue
            # One word is taken by both; a slot may stay open for more.
            lefts = (left + 1, left) if is_slot(first) else (left + 1,)
            rights = (right + 1, right) if is_slot(second) else (right + 1,)
            following |= {(a, b) for a in lefts for b in rights}
        row = following - seen
    return False

"""Triggers: words that start a macro, matched against a whole utterance without a model.

    good night              the words themselves: case, punctuation and spaces make no difference
    deploy {service}        a slot takes one word or more, as the user said them

What differs a little from a trigger starts nothing by itself: it is read back first. Owns matching, and the refusal of triggers that could
mean two macros. Pure.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Final, Literal

import msgspec

from voxbridge.services.tools.runs.document import Document, macro_id
from voxbridge.shared.errors import Code, VoxbridgeError

FUZZY_FROM: Final = 0.9
"""Likeness from which an utterance may mean a trigger that it does not match."""

FUZZY_CHARACTERS: Final = 6
"""Characters of the shortest trigger that is compared by likeness: shorter ones differ by a letter in many words."""

UTTERANCE_CHARACTERS: Final = 400
SLOTS_LIMIT: Final = 4
SLOT_WORDS: Final = 12
"""Words that one slot takes."""

RESERVED: Final = frozenset(
    ("yes", "no", "yes please", "no thanks", "ok", "okay", "stop", "cancel", "never mind", "go on", "again", "wait", "help")
)
"""Utterances that answer questions and stop the agent everywhere."""

_SLOT: Final = re.compile(r"\{([a-z][a-z0-9_]{0,31})\}")
_EDGES: Final = re.compile(r"^[^\w{]+|[^\w}]+$")


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """The macro that an utterance means. One that is not `sure` must be read back and confirmed."""

    name: str
    trigger: str
    how: Literal["exact", "slots", "fuzzy"]
    inputs: dict[str, str] = {}
    score: float = 1.0

    @property
    def sure(self) -> bool:
        """True unless the utterance is only like the trigger."""
        return self.how != "fuzzy"


class _Word(msgspec.Struct, frozen=True):
    plain: str
    said: str


def match(utterance: str, documents: Iterable[Document]) -> Match | None:
    """Return the macro that a whole utterance starts, if any: by its words, else by words with slots, else by likeness."""
    if len(utterance) > UTTERANCE_CHARACTERS:
        return None
    said = _words(utterance)
    if not said:
        return None
    text = " ".join(word.plain for word in said)
    patterns = [(document.name, trigger, _pattern(trigger)) for document in documents for trigger in document.triggers]
    plain = [(name, trigger, " ".join(pattern)) for name, trigger, pattern in patterns if not any(map(_is_slot, pattern))]
    for name, trigger, words in plain:
        if words == text:
            return Match(name=name, trigger=trigger, how="exact")
    for name, trigger, pattern in patterns:
        filled = _filled(pattern, said) if any(map(_is_slot, pattern)) else None
        if filled is not None:
            return Match(name=name, trigger=trigger, how="slots", inputs=filled)
    near = [(_likeness(words, text), name, trigger) for name, trigger, words in plain if len(words) >= FUZZY_CHARACTERS]
    score, name, trigger = max(near, default=(0.0, "", ""))
    return Match(name=name, trigger=trigger, how="fuzzy", score=score) if score >= FUZZY_FROM else None


def check(document: Document, others: Iterable[Document]) -> None:
    """Check a document's triggers, alone and beside those of other macros. Raises `INVALID_ARGUMENT` and `CONFLICT`, naming the trigger."""
    own: list[tuple[str, list[str]]] = []
    for number, trigger in enumerate(document.triggers):
        field = f"triggers[{number}]"
        pattern = _pattern(trigger)
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
    slots = [part[1:-1] for part in pattern if _is_slot(part)]
    words = [part for part in pattern if not _is_slot(part)]
    if not words or any("{" in word or "}" in word for word in words):
        message = f"The trigger {trigger!r} needs a word, and its slots look like {{name}}."
    elif " ".join(pattern) in RESERVED:
        message = f"{trigger!r} is said in answer to questions, so it cannot start a macro."
    elif len(slots) > SLOTS_LIMIT or len(set(slots)) != len(slots):
        message = f"The trigger {trigger!r} has more than {SLOTS_LIMIT} slots, or one twice."
    elif any(_is_slot(one) and _is_slot(two) for one, two in pairwise(pattern)):
        message = f"The trigger {trigger!r} has two slots side by side; put a word between them."
    elif missing := [slot for slot in slots if slot not in document.inputs]:
        message = f"The trigger {trigger!r} fills {missing[0]!r}, which is no input of {document.name}."
    elif needed := [name for name, one in document.inputs.items() if one.default is None and name not in slots]:
        message = f"The trigger {trigger!r} leaves {needed[0]!r} without a value; give it a slot or a default."
    else:
        return
    raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field=field)


def _apart(trigger: str, pattern: Sequence[str], other: Document, field: str) -> None:
    for known in other.triggers:
        if _meet(pattern, _pattern(known)):
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
            if not _is_slot(first) and not _is_slot(second) and first != second:
                continue
            # One word is taken by both; a slot may stay open for more.
            lefts = (left + 1, left) if _is_slot(first) else (left + 1,)
            rights = (right + 1, right) if _is_slot(second) else (right + 1,)
            following |= {(a, b) for a in lefts for b in rights}
        row = following - seen
    return False


def _filled(pattern: Sequence[str], said: Sequence[_Word]) -> dict[str, str] | None:
    """Return what the slots take, each as few words as it can; None if the utterance does not match."""
    filled: dict[str, str] = {}
    at = 0
    number = 0
    while number < len(pattern):
        if not _is_slot(pattern[number]):
            if at >= len(said) or said[at].plain != pattern[number]:
                return None
            at, number = at + 1, number + 1
            continue
        words = _until_slot(pattern, number + 1)
        last = number + 1 + len(words) == len(pattern)
        end = len(said) - len(words) if last else _find(words, said, at + 1)
        if end <= at or end - at > SLOT_WORDS or any(said[end + i].plain != word for i, word in enumerate(words)):
            return None
        filled[pattern[number][1:-1]] = " ".join(word.said for word in said[at:end])
        at, number = end + len(words), number + 1 + len(words)
    return filled if at == len(said) else None


def _until_slot(pattern: Sequence[str], start: int) -> list[str]:
    words = []
    for part in pattern[start:]:
        if _is_slot(part):
            break
        words.append(part)
    return words


def _find(words: Sequence[str], said: Sequence[_Word], start: int) -> int:
    for at in range(start, len(said) - len(words) + 1):
        if all(said[at + i].plain == word for i, word in enumerate(words)):
            return at
    return -1


def _pattern(trigger: str) -> list[str]:
    """Return the words and slots of a trigger."""
    parts: list[str] = []
    for piece in re.split(r"(\{[a-z][a-z0-9_]{0,31}\})", trigger):
        parts += [piece] if _SLOT.fullmatch(piece) else [word.plain for word in _words(piece)]
    return parts


def _words(text: str) -> list[_Word]:
    """Return the words of a text as they are compared, and as they were said without punctuation around them."""
    found = []
    for said in unicodedata.normalize("NFKC", text).split():
        trimmed = _EDGES.sub("", said)
        if trimmed:
            found.append(_Word(trimmed.casefold().replace("’", "'"), trimmed))
    return found


def _is_slot(part: str) -> bool:
    return _SLOT.fullmatch(part) is not None


def _likeness(one: str, two: str) -> float:
    matcher = SequenceMatcher(None, one, two, autojunk=False)
    if matcher.real_quick_ratio() < FUZZY_FROM or matcher.quick_ratio() < FUZZY_FROM:
        return 0.0
    return matcher.ratio()

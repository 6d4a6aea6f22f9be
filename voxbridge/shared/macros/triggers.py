"""Triggers: words that start a macro, matched against a whole utterance without a model.

    good night              the words themselves: case, punctuation and spaces make no difference
    deploy {service}        a slot takes one word or more, as the user said them

Around a trigger, or a macro's name, stand the words of a mode: "dry run …" only tells what it would do, "… step by step" asks before each
step. A trigger that has these words itself goes before them.

What differs a little from a trigger starts nothing by itself: it is read back first. Owns matching. Does not own which triggers a macro may
have (`voxbridge.services.tools.runs.triggers`). Pure.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from typing import Final, Literal

import msgspec

FUZZY_FROM: Final = 0.9
"""Likeness from which an utterance may mean a trigger that it does not match."""

FUZZY_CHARACTERS: Final = 6
"""Characters of the shortest trigger that is compared by likeness: shorter ones differ by a letter in many words."""

UTTERANCE_CHARACTERS: Final = 400
SLOT_WORDS: Final = 12
"""Words that one slot takes."""

Mode = Literal["", "dry_run", "step_by_step"]
"""Way in which a macro is run: as usual, only told, or with a question before each step."""

_SAID: Final[tuple[tuple[Mode, str, str], ...]] = (
    ("dry_run", "dry run", ""),
    ("dry_run", "dry-run", ""),
    ("dry_run", "do a dry run of", ""),
    ("dry_run", "do a dry run with", ""),
    ("dry_run", "make a dry run of", ""),
    ("dry_run", "a dry run of", ""),
    ("dry_run", "dry run of", ""),
    ("dry_run", "what would", "do"),
    ("step_by_step", "", "step by step"),
    ("step_by_step", "", "step-by-step"),
    ("step_by_step", "", "one step at a time"),
    ("step_by_step", "step through", ""),
)
"""The words before and after those of the macro, in each mode."""

_MODES: Final = tuple((mode, tuple(before.split()), tuple(after.split())) for mode, before, after in _SAID)

_ARTICLES: Final = ("the", "my", "macro")
"""Words that may stand before a macro's name, the last of them also after it."""

_SLOT: Final = re.compile(r"\{([a-z][a-z0-9_]{0,31})\}")
_EDGES: Final = re.compile(r"^[^\w{]+|[^\w}]+$")


class Spoken(msgspec.Struct, frozen=True, omit_defaults=True):
    """A macro as people say it: its name, and the triggers that start it."""

    name: str
    triggers: tuple[str, ...] = ()


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """The macro that an utterance means. One that is not `sure` must be read back and confirmed."""

    name: str
    trigger: str
    how: Literal["exact", "slots", "fuzzy"]
    inputs: dict[str, str] = {}
    score: float = 1.0
    mode: Mode = ""

    @property
    def sure(self) -> bool:
        """True unless the utterance is only like the trigger."""
        return self.how != "fuzzy"


class _Word(msgspec.Struct, frozen=True):
    plain: str
    said: str


_Pattern = tuple[str, str, list[str]]
"""Name of a macro, one of its triggers, and the words and slots of that."""


def match(utterance: str, macros: Iterable[Spoken]) -> Match | None:
    """Return the macro that a whole utterance starts, if any, and in which mode: by its words, else by words with slots, else by
    likeness."""
    if len(utterance) > UTTERANCE_CHARACTERS:
        return None
    said = _words(utterance)
    if not said:
        return None
    known = tuple(macros)
    patterns = _patterns(known)
    if (found := _exact(said, patterns)) is not None:
        return found
    slotted = _slotted(said, patterns)
    around = [(mode, rest) for mode, words, rest in _modes(said) if slotted is None or not words <= set(pattern_of(slotted.trigger))]
    named = _patterns(Spoken(macro.name, (*macro.triggers, macro.name)) for macro in known)
    for mode, rest in around:
        if (found := _exact(rest, named) or _slotted(rest, named)) is not None:
            return msgspec.structs.replace(found, mode=mode)
    if slotted is not None:
        return slotted
    near = [msgspec.structs.replace(one, mode=mode) for mode, rest in around if (one := _near(rest, named)) is not None]
    return max(near, key=lambda one: one.score) if near else _near(said, patterns)


def _patterns(macros: Iterable[Spoken]) -> list[_Pattern]:
    return [(macro.name, trigger, pattern_of(trigger)) for macro in macros for trigger in macro.triggers]


def _exact(said: Sequence[_Word], patterns: Iterable[_Pattern]) -> Match | None:
    words = [word.plain for word in said]
    found = next(((name, trigger) for name, trigger, pattern in patterns if pattern == words), None)
    return None if found is None else Match(name=found[0], trigger=found[1], how="exact")


def _slotted(said: Sequence[_Word], patterns: Iterable[_Pattern]) -> Match | None:
    for name, trigger, pattern in patterns:
        filled = _filled(pattern, said) if any(map(is_slot, pattern)) else None
        if filled is not None:
            return Match(name=name, trigger=trigger, how="slots", inputs=filled)
    return None


def _near(said: Sequence[_Word], patterns: Iterable[_Pattern]) -> Match | None:
    text = " ".join(word.plain for word in said)
    plain = [(name, trigger, " ".join(pattern)) for name, trigger, pattern in patterns if not any(map(is_slot, pattern))]
    near = [(_likeness(words, text), name, trigger) for name, trigger, words in plain if len(words) >= FUZZY_CHARACTERS]
    score, name, trigger = max(near, default=(0.0, "", ""))
    return Match(name=name, trigger=trigger, how="fuzzy", score=score) if score >= FUZZY_FROM else None


def _modes(said: Sequence[_Word]) -> list[tuple[Mode, set[str], Sequence[_Word]]]:
    """Return the modes whose words stand around others, with these words and what they stand around, with and without an article."""
    words = tuple(word.plain for word in said)
    found: list[tuple[Mode, set[str], Sequence[_Word]]] = []
    for mode, before, after in _MODES:
        end = len(words) - len(after)
        if end <= len(before) or words[: len(before)] != before or words[end:] != after:
            continue
        rest = said[len(before) : end]
        found += [(mode, {*before, *after}, one) for one in (rest, _bare(rest)) if one]
    return found


def _bare(said: Sequence[_Word]) -> Sequence[_Word]:
    """Return the words of a name without "the", "my" and "macro" around it, and without "run" before them."""
    first = 1 if len(said) > 1 and said[0].plain == "run" else 0
    while first < len(said) and said[first].plain in _ARTICLES:
        first += 1
    last = len(said) - (said[-1].plain == _ARTICLES[-1])
    return said[first:last]


def _filled(pattern: Sequence[str], said: Sequence[_Word]) -> dict[str, str] | None:
    """Return what the slots take, each as few words as it can; None if the utterance does not match."""
    filled: dict[str, str] = {}
    at = 0
    number = 0
    while number < len(pattern):
        if not is_slot(pattern[number]):
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
        if is_slot(part):
            break
        words.append(part)
    return words


def _find(words: Sequence[str], said: Sequence[_Word], start: int) -> int:
    for at in range(start, len(said) - len(words) + 1):
        if all(said[at + i].plain == word for i, word in enumerate(words)):
            return at
    return -1


def pattern_of(trigger: str) -> list[str]:
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


def is_slot(part: str) -> bool:
    """Tell whether a part of a pattern is a slot."""
    return _SLOT.fullmatch(part) is not None


def _likeness(one: str, two: str) -> float:
    matcher = SequenceMatcher(None, one, two, autojunk=False)
    if matcher.real_quick_ratio() < FUZZY_FROM or matcher.quick_ratio() < FUZZY_FROM:
        return 0.0
    return matcher.ratio()

"""Subjects of wishes that functions serve: whose lines of `wishes` are left out, and whose become a function's own. Pure.

A function that brings what people say when they want it needs no more than that the wishes of its subject are no longer nobody's. One that
has a description alone, as tools of MCP servers and of pages have, takes over the wishes that are near to its description: without them the
router would know no request for it. One whose requests a model has written (`core.phrasings`) takes over those that are near to them: a
model writes ten requests much alike, and people say more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from voxbridge.services.models.choice import features

_SERVED: Final = 0.62
"""Likeness of what people say to want a function and the nearest line of a subject, reached by a quarter of what they say, from which the
function serves that subject. One line alone may be near by chance: "what time is it in Madrid" and "is it raining in Madrid"."""

_DESCRIBED: Final = 0.34
_FEW: Final = 5
_IN_COMMON: Final = 0.3
"""Likeness of a description to the `_FEW` nearest lines of a subject, on average, and the share of its words that are of that subject,
from which a function with a description alone serves it."""

_TAKEN: Final = 0.5
"""Share of the nearest line's likeness from which such a function takes over a line."""

_WRITTEN: Final = 0.45
_SHARED: Final = 3
"""Likeness of the requests that were written for a function and a subject, reached by a quarter of them, and words in common, from which
the function serves the subject. Likeness alone is not enough: "turn the water off" is near to "turn Bluetooth off"."""

_TELLING: Final = 3.5
_SHORTEST: Final = 4
"""Rarity and letters of a word that tells what a text is about."""

_TELLS_NOTHING: Final = frozenset(
    (
        "back", "find", "from", "have", "list", "make", "more", "name", "need", "number", "please", "return", "show", "take", "text",
        "they", "this", "user", "what", "will", "with",
    )
)  # fmt: skip

_Places = npt.NDArray[np.intp]


class Lines(NamedTuple):
    """All lines of a training: the texts, how alike they are (1 at most), the rarity of words, and the place of each function's lines."""

    texts: Sequence[str]
    alike: npt.NDArray[Any]
    rare: features.Floats
    functions: Sequence[_Places]
    written: frozenset[int] = frozenset()
    """Functions whose requests a model has written."""


class Served(NamedTuple):
    """Subject of small talk that a function serves. `lines` are the places of its lines. Those in `taken` belonged to small talk before,
    and belong to the function now. Where several functions share a subject, the first one has its lines."""

    function: int
    lines: _Places
    taken: _Places


def served(lines: Lines, subjects: Sequence[_Places]) -> Iterator[Served]:
    """Yield each subject that a function serves. `subjects` are the places of their lines."""
    left = []
    bring = [(index, own) for index, own in enumerate(lines.functions) if len(own) > 1 and index not in lines.written]
    for subject in subjects:
        function = next((index for index, own in bring if _speaks_of(lines, own, subject)), None)
        shared = [] if function is not None else _shared(lines, subject)
        yield from shared
        if function is not None:
            yield Served(function, subject, subject[:0])
        elif not shared:
            left.append(subject)
    words = [_telling(lines, subject) for subject in left]
    best: dict[int, tuple[float, int]] = {}
    for function, own in enumerate(lines.functions):
        if len(own) == 1 and left:
            likeness = [_described(lines, own, subject, known) for subject, known in zip(left, words, strict=True)]
            nearest = int(np.argmax(likeness))
            best[nearest] = max(best.get(nearest, (_DESCRIBED, -1)), (likeness[nearest], function))
    for place, (_, function) in best.items():
        if function >= 0:
            near = lines.alike[left[place], lines.functions[function][0]]
            yield Served(function, left[place], left[place][near >= _TAKEN * near.max()])


def _speaks_of(lines: Lines, own: _Places, subject: _Places) -> bool:
    return bool(np.quantile(lines.alike[np.ix_(subject, own)].max(axis=0), 0.75) >= _SERVED)


def _shared(lines: Lines, subject: _Places) -> list[Served]:
    """Share a subject among the functions whose requests a model has written: each line goes to the nearest, or to none."""
    known = _telling(lines, subject) if lines.written else set[str]()
    serve = []
    for function in sorted(lines.written):
        own = lines.functions[function]
        near = len(own) > 0 and np.quantile(lines.alike[np.ix_(subject, own)].max(axis=0), 0.75) >= _WRITTEN
        if near and len(_telling(lines, own) & known) >= _SHARED:
            serve.append(function)
    if not serve:
        return []
    near_to = np.stack([lines.alike[np.ix_(subject, lines.functions[function])].max(axis=1) for function in serve])
    nearest, taken = near_to.argmax(axis=0), near_to.max(axis=0) >= _TAKEN * near_to.max()
    return [
        Served(function, subject if not index else subject[:0], subject[taken & (nearest == index)]) for index, function in enumerate(serve)
    ]


def _described(lines: Lines, own: _Places, subject: _Places, known: set[str]) -> float:
    """Return how near a description is to a subject; 0 if they have too few words in common."""
    named = _telling(lines, own)
    if len(named & known) < _IN_COMMON * max(len(named), 1):
        return 0.0
    return float(np.sort(lines.alike[subject, own[0]])[-_FEW:].mean())


def _telling(lines: Lines, places: Iterable[int]) -> set[str]:
    """Return the stems of the words that tell what texts are about."""
    words = {word for place in places for word in features.words(lines.texts[place]) if len(word) >= _SHORTEST} - _TELLS_NOTHING
    return {features.stem(word) for word in words if features.rarity_of(word, lines.rare) >= _TELLING}

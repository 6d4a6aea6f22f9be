"""The order of what a search found by words and by meaning. Pure.

Owns how the two are merged: a weighted sum of BM25, as a share of the best one's, and of nearness, as a share of the nearest one's above
the average of the graph. Both shares lie between 0 and 1 whatever table the vectors are of. The weight was chosen on
tests/knowledge/python_faq.json, and measured on django_faq.json beside it; docs/knowledge.md has the figures.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Final, TypeVar

MEANING: Final = 0.4
"""Weight of nearness; words have 1."""

LEAST: Final = 0.15
"""Nearness above the average that a passage has which is found by its meaning alone."""

_Key = TypeVar("_Key", bound=Hashable)


def merged(words: Mapping[_Key, float], near: Mapping[_Key, float]) -> dict[_Key, float]:
    """Return the scores of all that was found, the best first.

    Args:
        words: BM25 of passages, of all that were found by words.
        near: Nearness of passages, 0 for the average one of the graph; it has the passages of `words`, too, where they have a vector.
    """
    most = max(words.values(), default=0.0) or 1.0
    nearest = max(near.values(), default=0.0)
    if nearest <= 0:
        found = {key: score / most for key, score in words.items()}
    else:
        found = {
            key: words.get(key, 0.0) / most + MEANING * near.get(key, 0.0) / nearest
            for key in {**words, **near}
            if key in words or near[key] >= LEAST
        }
    return dict(sorted(found.items(), key=lambda one: -one[1]))

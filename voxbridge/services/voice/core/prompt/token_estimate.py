"""Estimate of how much of a model's window a text takes, without the model's tokenizer. Pure.

The unit is a character of English prose, four of which are about a token. Figures, and scripts that a tokenizer covers less well, take
more. The weights are those of Qwen2.5's tokenizer, rounded up (`tests/models/test_window.py` checks them); vendors' tokenizers need fewer
tokens.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_CACHED: Final = 1_024
_WEIGHTS: Final = tuple(
    (re.compile(f"[{characters}]"), weight)
    for characters, weight in (
        (r"0-9", 4),
        (r"!-/:-@\[-`{-~", 3),
        (r"\u0080-\u024f\u1e00-\u1eff", 6),  # Latin with marks: they cost the letters around them as well
        (r"\u0370-\u03ff\u1f00-\u1fff", 5),  # Greek
        (r"\u0400-\u052f", 3),  # Cyrillic
        (r"\u0530-\u08ff", 4),  # Armenian, Hebrew, Arabic and neighbours
        (r"\u0900-\u0dff", 6),  # the scripts of India
        (r"\u0e00-\u0eff", 4),  # Thai, Lao
        (r"\u0f00-\u1dff", 8),  # Tibetan to Mongolian: Burmese, Georgian, Ethiopic, Khmer
        (r"\u2000-\u2fff", 4),  # punctuation and signs
        (r"\u3000-\u9fff\uf900-\ufaff\uff00-\uffef", 4),  # Chinese, Japanese
        (r"\ua000-\uabff", 12),
        (r"\uac00-\ud7ff", 5),  # Korean
        (r"\U00010000-\U0010ffff", 12),
    )
)


@lru_cache(_CACHED)
def size(text: str) -> int:
    """Return the size of a text in characters of English."""
    # A character without a weight counts as one.
    patterns = _WEIGHTS[:2] if text.isascii() else _WEIGHTS
    return len(text) + sum((weight - 1) * len(pattern.findall(text)) for pattern, weight in patterns)


def first(text: str, limit: int) -> str:
    """Return as much of a text's beginning as fits into `limit`."""
    return text[: _most(text, limit, from_end=False)]


def last(text: str, limit: int) -> str:
    """Return as much of a text's end as fits into `limit`."""
    count = _most(text, limit, from_end=True)
    return text[len(text) - count :]


def level(sizes: list[int], limit: int) -> int:
    """Return the size to which the largest must be cut so that all together take no more than `limit`."""
    rest = limit
    for count, one in enumerate(sorted(sizes)):
        share = max(0, rest) // (len(sizes) - count)
        if one > share:
            return share
        rest -= one
    return max(sizes, default=0)


def _most(text: str, limit: int, *, from_end: bool) -> int:
    low, high = 0, min(len(text), max(0, limit))  # each character counts at least one
    while low < high:
        middle = (low + high + 1) // 2
        part = text[len(text) - middle :] if from_end else text[:middle]
        low, high = (middle, high) if _plain(part) <= limit else (low, middle - 1)
    return low


_plain = size.__wrapped__

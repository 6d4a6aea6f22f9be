"""Numbers in English words, read as figures.

Owns the grammar of a number. Does not own what the numbers stand for: arithmetic (`calculate`), lengths and clock times. What is no single
number by that grammar stays several numbers beside each other ("one two three" is `1 2 3`), for the caller to ask about: adding or joining
them would be a guess. text2num was tried: it splits as well, and reads neither "one point five million", "two point twenty five" nor "two
and a half".
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final, NamedTuple

_WORDS: Final = re.compile(r"\w+")
ONES: Final = {
    word: number
    for number, word in enumerate(
        _WORDS.findall(
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
            "nineteen"
        )
    )
}
TENS: Final = {
    word: 10 * number for number, word in enumerate(_WORDS.findall("twenty thirty forty fifty sixty seventy eighty ninety"), start=2)
}
SCALES: Final = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_ZEROS: Final = ("zero", "oh", "o")
_PARTS: Final = {"half": Decimal("0.5"), "quarter": Decimal("0.25"), "quarters": Decimal("0.25")}
_TOKEN: Final = re.compile(r"\d+(?:\.\d+)?|\.\d+|[^\W\d_]+|\s+|.", re.DOTALL)
_THOUSANDS: Final = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_HYPHEN: Final = re.compile(rf"\b({'|'.join(TENS)})[-\u2010\u2011]({'|'.join(list(ONES)[1:10])})\b", re.IGNORECASE)


class _Read(NamedTuple):
    """A number and the place behind its last word."""

    value: Decimal
    end: int


def in_figures(text: str) -> str:
    """Return a text with each number in words, or in figures with a scale in words, as plain figures: "two hundred and five point five" is
    `205.5`, "1.5 million" is `1500000`. Other words stay, in lower case."""
    tokens = _TOKEN.findall(_THOUSANDS.sub("", _HYPHEN.sub(r"\1 \2", text.casefold())))
    places = [place for place, token in enumerate(tokens) if not token.isspace()]
    words = [tokens[place] for place in places]
    out: list[str] = []
    at = copied = 0
    while at < len(words):
        read = _number(words, at)
        if read is None:
            at += 1
            continue
        single = read.end == at + 1 and _figures(words, at) is not None
        out += [*tokens[copied : places[at]], words[at] if single else f"{read.value.normalize():f}"]
        copied, at = places[read.end - 1] + 1, read.end
    return "".join(out + tokens[copied:])


def _number(words: list[str], at: int) -> _Read | None:
    if words[at] == "half" and _word(words, at + 1) == "a" and _word(words, at + 2) in SCALES:
        return _Read(SCALES[words[at + 2]] * Decimal("0.5"), at + 3)
    whole = _whole(words, at) if words[at] != "point" else _Read(Decimal(0), at)
    if whole is None:
        return None
    read = _with_part(words, _with_fraction(words, whole))
    if read == whole:
        return None if whole.end == at else whole
    scale = SCALES.get(_word(words, read.end))
    return _Read(read.value * scale, read.end + 1) if scale else read


def _whole(words: list[str], at: int) -> _Read | None:
    """Read groups of hundreds with falling scales: "two million three thousand and five"."""
    total, last, end = Decimal(0), Decimal("Infinity"), at
    while True:
        start = end + (end > at and _word(words, end) == ",")
        start += end > at and _word(words, start) == "and"
        group = _group(words, start)
        if group is None or (end > at and (group.value == 0 or group.value >= last)):
            break
        scale = SCALES.get(_word(words, group.end))
        if scale is None:
            return _Read(total + group.value, group.end)
        if scale >= last:
            break
        total, last, end = total + group.value * scale, Decimal(scale), group.end + 1
    return _Read(total, end) if end > at else None


def _group(words: list[str], at: int) -> _Read | None:
    """Read a number of hundreds, tens and ones; "a" before a hundred or a scale is one."""
    following = _word(words, at + 1)
    if _word(words, at) in ("a", "an") and (following == "hundred" or following in SCALES):
        low: _Read | None = _Read(Decimal(1), at + 1)
    elif _word(words, at) == "hundred" or _word(words, at) in SCALES:
        low = _Read(Decimal(1), at)
    else:
        low = _below_hundred(words, at) or _figures(words, at)
    if low is None or low.value == 0 or _word(words, low.end) != "hundred":
        return low
    hundreds, end = low.value * 100, low.end + 1
    rest = _below_hundred(words, end + (_word(words, end) == "and"))
    if rest is None or not rest.value or _word(words, rest.end) == "hundred":  # of "one hundred and eight hundred" it begins another number
        return _Read(hundreds, end)
    return _Read(hundreds + rest.value, rest.end)


def _below_hundred(words: list[str], at: int) -> _Read | None:
    word = _word(words, at)
    if word in TENS:
        ones = ONES.get(_word(words, at + 1), 0)
        return _Read(Decimal(TENS[word] + ones), at + 2) if 0 < ones < 10 else _Read(Decimal(TENS[word]), at + 1)
    return _Read(Decimal(ONES[word]), at + 1) if word in ONES else None


def _figures(words: list[str], at: int) -> _Read | None:
    word = _word(words, at)
    return _Read(Decimal(word), at + 1) if word[:1].isdecimal() or (word[:1] == "." and word[1:].isdecimal()) else None


def _with_fraction(words: list[str], whole: _Read) -> _Read:
    """Read what stands behind "point": digits one by one ("point oh five"), or one number ("point twenty five")."""
    if _word(words, whole.end) != "point" or whole.value % 1:
        return whole
    digits, at = "", whole.end + 1
    while True:
        word = _word(words, at)
        if word in _ZEROS or 0 < ONES.get(word, 0) < 10 or (word.isdecimal() and word.isascii()):
            digits, at = digits + ("0" if word in _ZEROS else word if word.isdecimal() else str(ONES[word])), at + 1
            continue
        number = _below_hundred(words, at) if not digits or set(digits) == {"0"} else None
        if number is not None:
            digits, at = f"{digits}{number.value}", number.end
        break
    return _Read(whole.value + Decimal(f"0.{digits}"), at) if digits else whole


def _with_part(words: list[str], read: _Read) -> _Read:
    """Read "and a half", "and three quarters" behind a number, unless they are of something."""
    if _word(words, read.end) != "and" or _word(words, read.end + 3) == "of":
        return read
    count, part = _word(words, read.end + 1), _PARTS.get(_word(words, read.end + 2))
    if part is None or (count != "a" and count not in ONES):
        return read
    return _Read(read.value + part * (1 if count == "a" else ONES[count]), read.end + 3)


def _word(words: list[str], at: int) -> str:
    return words[at] if at < len(words) else ""

"""Features of a text: its words, pairs of words, parts of words and how they sound, hashed into a vector of fixed length.

No word has to be known, so a text of any language has features; those that `kinds` knows have some of their kind besides. How a word
sounds brings a misheard word near to the one that was meant ("witch" and "which"); joined neighbours do that for a word that was split
("play book").
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple
from zlib import crc32

import numpy as np
import numpy.typing as npt

from voxbridge.services.models.choice import kinds

DIMENSIONS: Final = 8_192
WORDS_LIMIT: Final = 40
"""Words of a text that count: the last ones, since people come to the point at the end."""

LETTERS_LIMIT: Final = 24
"""Letters of a word that count."""

KEPT_LINES: Final = 8_192
"""Lines whose features are kept, in a kilobyte each: two routers of ninety functions have four thousand together."""

KEPT: Final = 4_096
"""Words whose stem and sound are remembered."""

Floats = npt.NDArray[np.float32]

_WORD: Final = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ENDINGS: Final = (("ies", "y"), ("sses", "ss"), ("ing", ""), ("ed", ""), ("es", "e"), ("s", ""))
_SHORT: Final = {
    "what's": "what is", "i'm": "i am", "i'd": "i would", "don't": "do not", "who's": "who is", "where's": "where is", "it's": "it is"
}  # fmt: skip
_HEARD: Final = {
    word: group[0]
    for group in (
        line.split()
        for line in """
what watt/time thyme/which witch/where wear ware/write right rite wright/for four fore/to two too/there their/here hear/by buy bye/know no
new knew/one won/our hour/week weak/mail male/meet meat/road rode/sale sail/piece peace/wait weight/whole hole/sell cell/sent cent scent
whether weather/waste waist/role roll/route root/tale tail/tied tide/steal steel/flower flour/break brake/night knight/morning mourning
board bored/eight ate/blue blew/read red reed/dear deer/be bee/see sea/so sew sow/pair pear pare/plane plain/rain reign rein/ring wring
seen scene/stair stare/through threw/vein vain vane/would wood/your you're/tour tore/tea tee/pause paws/byte bite/site sight cite
aloud allowed/base bass/bear bare/bury berry/serial cereal/cord chord/course coarse/die dye/fair fare/find fined/great grate/grown groan
hair hare/heal heel/higher hire/idle idol/key quay/led lead/lesson lessen/loan lone/made maid/main mane/minor miner/missed mist/none nun
pale pail/patients patience/pray prey/principal principle/profit prophet/wrap rap/rose rows/seem seam/soul sole/some sum/stake steak
tow toe/whale wail/way weigh/wine whine/who's whose/not knot/need knead/nose knows/more moor/meter metre/cache cash/you ewe/feet feat
flee flea/guest guessed/links lynx/past passed/pole poll/poor pour/presents presence/sees seize/side sighed/suite sweet/taught taut
tax tacks/told tolled/very vary/warn worn/wrote rote/son sun/color colour
""".replace("\n", "/")
        .strip("/")
        .split("/")
    )
    for word in group
}
"""Words that a recogniser takes for one another, by the one that requests have more often."""

_SOUNDS: Final = tuple(
    (re.compile(pattern), instead)
    for pattern, instead in (
        ("^[kg]n", "n"), ("^wr", "r"), ("sch|tch|ch|sh", "x"), ("ph", "f"), ("dge?", "j"), ("ght", "t"),
        ("ck|q|c(?![eiy])", "k"), ("[cz]", "s"), ("gh", ""),
    )
)  # fmt: skip
_QUIET: Final = re.compile("(?<!^)[aeiouyhw]")
_DOUBLE: Final = re.compile(r"(.)\1+")

_STEM, _PAIR, _PART, _SOUND, _JOINED_STEM, _JOINED_SOUND = 1.0, 0.7, 0.3, 0.5, 0.5, 0.25
_KINDS: Final = {
    kinds.NUMBER: 1.0,
    kinds.UNIT: 1.0,
    kinds.TIME: 1.0,
    kinds.OPERATOR: 1.0,
    kinds.PLACE: 0.3,
    kinds.CLOCK: 1.0,
    kinds.MONEY: 0.5,
}
_PARTS: Final = (3, 4, 5)


def words(text: str) -> list[str]:
    """Return the words of a text in lower case; names such as `search_kg` and `PriceTag` are several."""
    plain = _CAMEL.sub(" ", text.replace("’", "'")).lower()
    found = [part for word in _WORD.findall(plain) for part in _SHORT.get(word, word).split()]
    return [_HEARD.get(word, word)[:LETTERS_LIMIT] for word in found[-WORDS_LIMIT:]]


@lru_cache(KEPT)
def stem(word: str) -> str:
    """Return a word without common endings."""
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word.removesuffix(ending) + instead
            break
    return word.removesuffix("e") if len(word) > 3 else word


@lru_cache(KEPT)
def sound(word: str) -> str:
    """Return roughly how an English word sounds: its consonants, and whether it begins with a vowel."""
    for pattern, instead in _SOUNDS:
        word = pattern.sub(instead, word)
    first = "a" if word[:1] in tuple("aeiou") else word[:1]
    return _DOUBLE.sub(r"\1", first + _QUIET.sub("", word)[1:])


class Weighed(NamedTuple):
    """Features of a text: places in a vector, and what counts there."""

    places: npt.NDArray[np.uint16]
    weights: Floats


@lru_cache(KEPT_LINES)
def of_line(line: str) -> Weighed:
    """Return the features of a line that routers are trained on. Most lines are in each of them, and in both of its passes."""
    return weighed(line)


def weighed(text: str) -> Weighed:
    """Return the features of a text."""
    spoken = words(text)
    named: dict[str, float] = {}
    for one, other in pairwise(spoken):
        named["w" + stem(one + other)] = _JOINED_STEM
        named["s" + sound(one + other)] = _JOINED_SOUND
    stems = [stem(word) for word in spoken]
    named |= {f"b{one} {other}": _PAIR for one, other in pairwise(stems)}
    for word in spoken:
        named["s" + sound(word)] = _SOUND
        whole = f"<{word}>"
        for length in _PARTS:
            for start in range(len(whole) - length + 1):
                named["c" + whole[start : start + length]] = _PART
    named |= {f"w{one}": _STEM for one in stems}
    named |= _of_kinds(kinds.marked(text)[-WORDS_LIMIT:])
    places: dict[int, float] = {}
    for name, weight in named.items():
        place = crc32(name.encode()) % DIMENSIONS
        places[place] = places.get(place, 0.0) + weight
    return Weighed(np.fromiter(places.keys(), np.uint16, len(places)), np.fromiter(places.values(), np.float32, len(places)))


def _of_kinds(marked: Sequence[str]) -> dict[str, float]:
    """Return the features of a text's kinds of words, and of what stands beside each; none for a text without any."""
    named: dict[str, float] = {}
    for before, one, after in zip(["", *marked], marked, [*marked[1:], ""], strict=False):
        weight = _KINDS.get(one)
        if weight is None:
            continue
        for name in (one, f"{before} {one}", f"{one} {after}", f"{before} {one} {after}"):
            named["k" + name] = max(weight, named.get("k" + name, 0.0))
    for one in (kinds.UNIT, kinds.TIME, kinds.PLACE):
        if marked.count(one) > 1:
            named["k2" + one] = _KINDS[one]
    return named


def rarity(texts: Sequence[Weighed]) -> Floats:
    """Return how much each place tells apart: the logarithm of the texts over those that have it."""
    having = np.zeros(DIMENSIONS, np.float32)
    for text in texts:
        having[text.places] += 1
    return np.log((len(texts) + 1) / np.maximum(having, 0.5)).astype(np.float32)


def rarity_of(word: str, rare: Floats) -> float:
    """Return how much a word tells apart."""
    return float(rare[crc32(f"w{stem(word)}".encode()) % DIMENSIONS])


def vector(text: Weighed, rare: Floats) -> tuple[npt.NDArray[np.intp], Floats]:
    """Return the places of a text and their values, of length 1 together."""
    places = text.places.astype(np.intp)
    values = text.weights * rare[places]
    length = float(np.linalg.norm(values))
    return places, values / length if length else values

"""Entities of a passage by rules: names, code identifiers, dates, addresses, links and headings; and which of them stand together. Pure.

Owns what counts as an entity and of what kind. A name is a word, or several in a row, with a capital letter; a single one at the beginning
of a sentence is one if it is seen elsewhere with a capital too, or is not a word of the language that is written without one
(`certain_names`). Two entities are related where they stand in one sentence. No model takes part: the same passage gives the same entities.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Final, Literal

Kind = Literal["name", "code", "date", "address", "link", "heading"]
KINDS: Final[tuple[Kind, ...]] = ("name", "code", "date", "address", "link", "heading")

RULES: Final = "rules"
MODEL: Final = "model"
"""Names of those who tell of an entity or a relation."""

NAME_LIMIT: Final = 80
"""Characters of an entity's name; a longer one is none."""

NAME_WORDS: Final = 5
"""Words of a name."""

TOGETHER_LIMIT: Final = 12
"""Entities of a sentence that count as standing together."""

_SENTENCE: Final = re.compile(r"[^.!?\n]+(?:[.!?](?!\s|$)[^.!?\n]*)*[.!?]?")
_MONTHS: Final = "January|February|March|April|May|June|July|August|September|October|November|December"
_LINK: Final = re.compile(r"https?://[^\s<>\"')\]]{1,300}")
_ADDRESS: Final = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}")
_DAY: Final = r"\d{1,2}(?:st|nd|rd|th)?"
_DATE: Final = re.compile(
    rf"\b(?:\d{{4}}-\d{{2}}-\d{{2}}|{_DAY} (?:{_MONTHS})(?:,? \d{{4}})?|(?:{_MONTHS}) {_DAY}(?:, \d{{4}})?|(?:{_MONTHS}) \d{{4}})\b"
)
_CODE: Final = re.compile(
    r"`([^`\n]{2,80})`|\b([A-Za-z_]\w{0,40}(?:\.[A-Za-z_]\w{0,40}){0,4}\(\)|[A-Za-z]+(?:_[A-Za-z0-9]+)+|[A-Z]?[a-z]+(?:[A-Z][a-z0-9]+)+)"
)
_WORD: Final = re.compile(r"[^\W\d_][\w'’-]{0,40}")
_ENDINGS: Final = (("ies", "y"), ("es", "e"), ("s", ""), ("ied", "y"), ("ed", "e"), ("ing", "e"), ("ly", ""), ("er", "e"), ("ers", "e"))
_PARTICLES: Final = frozenset({"of", "the", "de", "van", "von", "der", "la", "le"})
_NO_NAMES: Final = frozenset(
    re.findall(
        r"\S+",
        """
        i i'm i'll i've i'd the a an this that these those it its he she we you they there here what when where who why how if in on at to
        for and or but so as of by with from no not yes ok please note see also each all any both most some
        monday tuesday wednesday thursday friday saturday sunday
        """,
    )
)


@dataclass(frozen=True, slots=True, order=True)
class Entity:
    """An entity: its kind, and its name as it is written. Two whose names differ in case alone are the same one."""

    kind: Kind
    name: str

    @property
    def key(self) -> str:
        """Form by which entities are told apart."""
        return self.name.casefold()


@dataclass(frozen=True, slots=True)
class Found:
    """Entities of a passage, and the pairs of them that stand together, each in the order of their keys, once for each sentence."""

    entities: tuple[Entity, ...]
    together: tuple[tuple[Entity, Entity], ...]
    told_by: str = RULES
    labels: tuple[str, ...] = ()
    """For each pair how the two are related, in words; empty where nobody said."""

    def labelled(self) -> Iterator[tuple[tuple[Entity, Entity], str]]:
        """Yield the pairs with their labels."""
        return zip(self.together, self.labels or [""] * len(self.together), strict=True)


def found_in(text: str, headings: Collection[str], names: Collection[str] = ()) -> Found:
    """Return the entities of a passage below these headings. `names` are keys of names that are known to be such."""
    seen: dict[tuple[Kind, str], Entity] = {}
    pairs: list[tuple[Entity, Entity]] = []

    def one(entity: Entity) -> Entity:
        return seen.setdefault((entity.kind, entity.key), entity)

    for heading in headings:
        if 0 < len(heading) <= NAME_LIMIT:
            one(Entity("heading", heading))
    for sentence in _SENTENCE.findall(text):
        stand = list(dict.fromkeys(one(entity) for entity in _of_sentence(sentence, names)))[:TOGETHER_LIMIT]
        pairs += [(a, b) if (a.key, a.kind) <= (b.key, b.kind) else (b, a) for a, b in combinations(stand, 2)]
    return Found(tuple(seen.values()), tuple(pairs))


def certain_names(text: str, common: Collection[str] = ()) -> set[str]:
    """Return the keys of the names of a text that are names wherever they stand.

    They are seen with a capital inside a sentence; or begin one, are nowhere in the text without a capital, and are none of the `common`
    words of the language, which are in lower case. Without such words the latter are not known.
    """
    named = [(name, sure) for sentence in _SENTENCE.findall(text) for name, sure in _names(sentence)]
    found = {name.casefold() for name, sure in named if sure}
    if common:
        lower = {match[0] for match in _WORD.finditer(text) if match[0].islower()}
        begin = {name.casefold() for name, sure in named if not sure}
        found |= {name for name in begin - lower if len(name) > 2 and not _is_common(name, common)}
    return found


def _is_common(word: str, common: Collection[str]) -> bool:
    """Return whether a word, or what it is an inflection of, is a common one."""
    if word in common or not word.isascii():
        return word in common
    for ending, instead in _ENDINGS:
        if word.endswith(ending):
            base = word.removesuffix(ending)
            if base + instead in common or base in common or base[:-1] in common:
                return True
    head = re.split(r"['’-]", word)[0]
    return head != word and _is_common(head, common)


def _of_sentence(sentence: str, names: Collection[str]) -> Iterator[Entity]:
    left = sentence
    taken: list[Entity] = []
    for kind, pattern in (("link", _LINK), ("address", _ADDRESS), ("date", _DATE), ("code", _CODE)):
        for match in pattern.finditer(left):
            name = next((group for group in match.groups() if group), match[0]).strip().rstrip(".,;:")
            if 1 < len(name) <= NAME_LIMIT:
                taken.append(Entity(kind, name))  # type: ignore[arg-type]  # of the tuple above
        left = pattern.sub(" \x00 ", left)
    yield from taken
    for name, sure in _names(left):
        rest = name.partition(" ")[2]
        if rest and rest.casefold() in names and left.lstrip().startswith(name):  # "Later Ada Byron": the sentence began before the name
            yield Entity("name", rest)
        elif sure or name.casefold() in names:
            yield Entity("name", name)


def _names(sentence: str) -> Iterator[tuple[str, bool]]:
    """Yield the words, or rows of words, with a capital letter, each with whether that alone makes them a name."""
    row: list[str] = []
    first = row_first = True
    end = 0
    for match in _WORD.finditer(sentence):
        word = match[0].removesuffix("'s").removesuffix("’s").rstrip("'’-") or match[0]
        near = sentence[end : match.start()].strip(" ") == ""
        if row and not near:
            yield from _named(row, row_first)
            row = []
        if word[0].isupper() and (row or word.casefold() not in _NO_NAMES):
            if not row:
                row_first = first
            row.append(word)
            if match[0] != word:  # a name in the possessive ends there
                yield from _named(row, row_first)
                row = []
        elif row and word.casefold() in _PARTICLES and near and _goes_on(sentence, match.end()):
            row.append(word)
        elif row:
            yield from _named(row, row_first)
            row = []
        first, end = False, match.end()
    if row:
        yield from _named(row, row_first)


def _named(row: list[str], first: bool) -> Iterator[tuple[str, bool]]:
    for at in range(0, len(row), NAME_WORDS):
        words = row[at : at + NAME_WORDS]
        name = " ".join(words)
        if len(name) <= NAME_LIMIT and len(name) > 1:
            yield name, not (first and at == 0 and len(words) == 1 and not words[0].isupper())


def _goes_on(sentence: str, at: int) -> bool:
    following = sentence[at:].lstrip(" ")
    return bool(following) and following[0].isupper()

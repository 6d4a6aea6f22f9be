"""The router: says of a request whether it wants a call or words, and which few functions may be meant.

Trained in a second or two from what people say when they want each function, from the functions' descriptions, from small talk
(`small_talk`) and from wishes that no function serves (`wishes`). Kernel ridge regression gives each function a score; what it gives a line
that it was not trained on has a closed form, so a small logistic regression over such scores says how likely a call is wanted. Beside what
it is trained on it takes a table of meanings of words (`meanings`), which it can do without.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from copy import copy
from typing import Any, Final, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from voxbridge.services.models.choice import features, follow_ups, small_talk, wishes
from voxbridge.services.models.choice.lines import Lines, inverted
from voxbridge.services.models.choice.meanings import NONE, Meanings
from voxbridge.services.models.choice.subjects import Lines as SubjectLines
from voxbridge.services.models.choice.subjects import served

SHORTLIST: Final = 6
"""Functions that the model chooses among at most."""

SURE_OF_FOLLOW_UP: Final = 0.98
"""Likelihood of a follow-up from which the function that the words alone suggest need not be offered beside the one before."""
FAR_BEHIND: Final = 0.3
"""Share of the best function's likelihood from which another function stays on the list. Where the router is surer than that, a model of
1.5 billion parameters chooses worse."""

SURE_OF_CALL: Final = 0.6
SURE_OF_WORDS: Final = 0.2
"""Likelihoods of a wanted call from which on only a call is possible, and below which only words are."""

_RIDGE: Final = 1.0
_MEANT: Final = 1.5
"""Weight of what a text means beside how it is written."""

_NEAREST: Final = 0.4
"""Weight of the nearest single line beside the regression over all lines."""

_KIN: Final = 2
"""Functions that are offered beside one whose requests a model has written: those whose requests are most like its own."""

_AGAIN: Final = 1.0
"""Gain in rank of the function of the turn before, for a request that surely follows up on it."""

_SHARPNESS: Final = 15.0
"""Factor between the difference of two ranks and the logarithm of their odds, fitted on lines left out of the training."""

_FAR_FROM: Final = {"words": -np.inf, "unsure": 0.35, "call": 0.6}
"""Distance in rank by which a wish that no function serves is before the best function, where the router would have words, is unsure, or
would have a call: with few functions "is it raining in Madrid" is as sure a call as "what time is it in Madrid"."""

_STEPS: Final = 25
_PENALTY: Final = 0.01

_Doubles = npt.NDArray[np.float64]


class Known(msgspec.Struct, frozen=True):
    """A function to choose: `utterances` are what people say when they want it, `written` if a model has thought them up; `names` are the
    values that its arguments can have. `about` are words of which a request has one if it wants this function; empty for any request."""

    name: str
    description: str = ""
    utterances: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    written: bool = False
    about: tuple[str, ...] = ()


class Before(msgspec.Struct, frozen=True):
    """The turn before: what the user said, and the function that was called last."""

    said: str
    called: str


class Decision(msgspec.Struct, frozen=True):
    """The choice for a request. `likelihood` is that of a call, `shortlist` names the functions that may be meant, the likeliest first, and
    the first `close` of them are too close to each other to leave any out."""

    mode: Literal["call", "words", "unsure"]
    likelihood: float
    shortlist: tuple[str, ...]
    close: int = SHORTLIST
    unserved: bool = False
    """True for a wish that no function serves; it wants words. Never with a function that says nothing of what people say."""

    @property
    def odds(self) -> float:
        """Logarithm of the odds that a call is wanted."""
        return float(np.log(self.likelihood / (1 - self.likelihood))) if 0 < self.likelihood < 1 else 0.0

    @property
    def among(self) -> tuple[str, ...]:
        """Functions for the model to choose among."""
        return self.shortlist[: self.close]


class Router:
    """A router for a set of functions; made once for the set, and used for each request."""

    def __init__(self, functions: Sequence[Known], table: Meanings = NONE, learned: Mapping[str, npt.NDArray[Any]] | None = None) -> None:
        """Train it, which takes two to four seconds of one processor for 90 functions with 14 utterances each, or take what `arrays` gave
        of one that was trained on the same. Raises `KeyError`, `ValueError` for what does not fit."""
        self._meanings = table
        self._length = 1 + _MEANT if table.known else 1.0
        self.names = [known.name for known in functions]
        self._talk, self._again, self._wish = len(functions), len(functions) + 1, len(functions) + 2
        self._spoken_for = all(known.utterances for known in functions)
        self._about = {index: frozenset(known.about) for index, known in enumerate(functions) if known.about}
        self.absent: tuple[int, ...] = ()
        """Indices of functions that the caller does not have (`without`)."""

        self._written = frozenset(index for index, known in enumerate(functions) if known.written and known.utterances)
        if learned is not None:
            self._restore(learned)
            return
        texts: list[str] = []
        owners: list[int] = []
        told: list[bool] = []
        for index, known in enumerate(functions):
            about = " ".join((known.name, known.description, *known.names))
            texts += [*known.utterances, about]
            owners += [index] * (len(known.utterances) + 1)
            told += [True] * len(known.utterances) + [not known.utterances]
        asked = [line for subject in wishes.SUBJECTS for line in subject]
        for owner, lines in ((self._talk, small_talk.LINES), (self._again, follow_ups.LINES), (self._wish, asked)):
            texts += lines
            owners += [owner] * len(lines)
            told += [True] * len(lines)
        self._owners = np.array(owners)
        self._told = np.array(told)
        self._learn(texts, [len(subject) for subject in wishes.SUBJECTS])

    def _restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        self._lines = Lines(arrays)
        self._rare, self._dual, self._first = arrays["rare"], arrays["dual"], arrays["first"]
        self._wants, self._follows, self._kin = arrays["wants"], arrays["follows"], arrays["kin"]
        if self._dual.shape != (self._lines.number, len(self.names) + 3) or self._rare.shape != (features.DIMENSIONS,):
            raise ValueError("these are not the arrays of a router of these functions")

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return what was learned, for another router of these functions."""
        learned = {"rare": self._rare, "dual": self._dual, "first": self._first, "wants": self._wants, "follows": self._follows}
        learned["kin"] = self._kin
        return {**self._lines.arrays(), **learned}

    def _learn(self, texts: Sequence[str], subjects: Sequence[int]) -> None:
        """Train with these texts; the last ones are wishes, by subjects of so many lines. What a function serves is shared out first."""
        weighed = [features.of_line(text) for text in texts]
        self._rare = features.rarity(weighed)
        self._lines = Lines.of([features.vector(one, self._rare) for one in weighed], np.stack([self._meant(text) for text in texts]))
        alike = self._lines.alike_to_each_other()
        if subjects:
            left = self._share_out(texts, alike, subjects)
            self._owners, self._told = self._owners[left], self._told[left]
            self._learn([texts[place] for place in left], ())
            return
        self._kin = self._near_to_each_other(alike)
        wanted = (self._owners[:, None] == np.arange(len(self.names) + 3)).astype(np.float64)
        inverse = inverted(alike + _RIDGE * np.eye(len(texts)))
        dual = inverse @ wanted
        unseen = wanted - dual / np.diag(inverse)[:, None]
        self._dual = dual.astype(np.float32)
        np.fill_diagonal(alike, -1.0)
        alike /= self._length
        self._first = np.searchsorted(self._owners, np.arange(len(self.names) + 3))
        nearest = np.maximum.reduceat(alike, self._first, axis=1)
        about = np.stack([self._evidence(score, near) for score, near in zip(unseen, nearest, strict=True)])
        calls = self._told & (self._owners < self._talk)
        words = (self._owners == self._talk) | (self._owners == self._wish)
        self._wants = _logistic(about, calls, calls | words)
        again = self._owners == self._again
        leads = np.stack([self._lead(score, near) for score, near in zip(unseen, nearest, strict=True)])
        self._follows = _logistic(leads, again, again | calls | words)

    def _share_out(self, texts: Sequence[str], alike: npt.NDArray[Any], numbers: Sequence[int]) -> list[int]:
        """Give wishes to the functions that serve them; return the places of the texts that are left, by owner. `numbers` are those of the
        lines of each subject, the last of which is nobody's."""
        starts = len(texts) - sum(numbers) + np.cumsum((0, *numbers))
        subjects = [np.arange(start, start + number) for start, number in zip(starts, numbers[:-1], strict=False)]
        own = [np.flatnonzero(self._told & (self._owners == function)) for function in range(self._talk)]
        about = [np.flatnonzero(self._owners == function) for function in range(self._talk)]
        functions = [said if len(lines) > 1 else lines for said, lines in zip(own, about, strict=True)]
        left_out = np.zeros(len(texts), np.bool_)
        for one in served(SubjectLines(texts, alike / self._length, self._rare, functions, self._written), subjects):
            left_out[one.lines] = True
            left_out[one.taken] = False
            self._owners[one.taken] = one.function
        return [int(place) for place in np.argsort(self._owners, kind="stable") if not left_out[place]]

    def _near_to_each_other(self, alike: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return, for each function with requests that a model wrote, the other such functions that are most like it. The nearest one comes
        first; -1 stands for none."""
        kin = np.full((len(self.names), _KIN), -1)
        lines = {function: np.flatnonzero(self._told & (self._owners == function)) for function in self._written}
        for function, own in lines.items():
            likeness = {other: alike[np.ix_(own, of)].max(axis=1).mean() for other, of in lines.items() if other != function}
            nearest = sorted(likeness, key=lambda other: -likeness[other])[:_KIN]
            kin[function, : len(nearest)] = nearest
        return kin

    def _near(self, function: int) -> list[int]:
        return [int(index) for index in self._kin[function] if index >= 0 and index not in self.absent]

    def _evidence(self, scores: npt.NDArray[Any], nearest: npt.NDArray[Any]) -> _Doubles:
        functions, near = scores[: self._talk], nearest[: self._talk]
        best = np.sort(functions)[-3:]
        calls = (best[-1], best.sum(), functions.sum(), near.max())
        others = [value for owner in (self._talk, self._again, self._wish) for value in (scores[owner], nearest[owner])]
        return np.array([*calls, *others, 1.0])

    def _lead(self, scores: npt.NDArray[Any], nearest: npt.NDArray[Any], but: int = -1) -> _Doubles:
        """Return by how much a text is more like a follow-up than like a request of its own, for any function `but` the one before."""
        others = np.arange(self._talk) != but
        best, near = scores[: self._talk][others].max(initial=0.0), nearest[: self._talk][others].max(initial=0.0)
        return np.array(
            [scores[self._again] - best, nearest[self._again] - near, scores[self._again] - scores[self._talk], 1.0], dtype=np.float64
        )

    def _meant(self, text: str) -> features.Floats:
        """Return what a text means, at the weight that it has beside how the text is written."""
        return self._meanings.of(text, self._rare) * np.float32(_MEANT**0.5)

    def without(self, names: AbstractSet[str]) -> Router:
        """Return this router for a caller that does not have some of its functions. One that is trained without them knows better what to
        make of a request for these."""
        if not names:
            return self
        found = copy(self)
        found.absent = tuple(index for index, name in enumerate(self.names) if name in names)
        return found

    def _read(self, text: str) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        alike = self._lines.alike(*features.vector(features.weighed(text), self._rare), self._meant(text))
        scores, nearest = alike @ self._dual, np.maximum.reduceat(alike, self._first) / self._length
        scores[[*self.absent]] = nearest[[*self.absent]] = 0.0
        return scores, nearest

    def _foreign(self, said: str, before: Before | None) -> list[int]:
        """Return the functions whose subject a request does not name, unless one was called in the turn before."""
        named = set(features.words(said)) if self._about else set[str]()
        called = before.called if before is not None else ""
        foreign = {index for index, about in self._about.items() if not about & named and self.names[index] != called}
        return sorted(foreign.union(self.absent))

    def decide(self, said: str, before: Before | None = None) -> Decision:
        """Return what a request wants. `before` is the turn before if a function was called in it."""
        scores, nearest = self._read(said)
        foreign = self._foreign(said, before)
        wish, talk = (float(scores[owner] + _NEAREST * nearest[owner]) for owner in (self._wish, self._talk))
        if len(foreign) == self._talk:
            return Decision("words", 0.0, (), 0, self._spoken_for and wish > talk)
        about = self._evidence(scores, nearest)
        likelihood = _chance(about, self._wants) if said.strip() else 0.0  # without a word the share of requests alone would say
        ranks = scores[: self._talk] + _NEAREST * nearest[: self._talk]
        elsewhere = int(np.argmax(ranks)) in foreign
        ranks[foreign] = -np.inf
        again, own = 0.0, int(np.argmax(ranks))
        called = self.names.index(before.called) if before is not None and before.called in self.names else -1
        if called >= 0 and called not in self.absent:
            again = _chance(self._lead(scores, nearest, called), self._follows)
            likelihood = 1 - (1 - likelihood) * (1 - again)
            ranks[called] += _AGAIN * again
        elif " ".join(features.words(said)) in follow_ups.BARE:
            likelihood = 0.0
        best = np.argsort(-ranks)[: min(SHORTLIST, self._talk - len(foreign))]
        mode: Literal["call", "words", "unsure"] = (
            "words" if likelihood < SURE_OF_WORDS else "call" if likelihood >= SURE_OF_CALL and not elsewhere else "unsure"
        )
        unserved = self._spoken_for and wish > talk and wish > ranks[best[0]] + _FAR_FROM[mode]
        mode = "words" if unserved else mode
        close = int((ranks[best] >= ranks[best[0]] + np.log(FAR_BEHIND) / _SHARPNESS).sum())
        if own != best[0] and again < SURE_OF_FOLLOW_UP:
            best = np.array([best[0], own, *(index for index in best if index not in (best[0], own))])[:SHORTLIST]
            close = max(close, 2)
        if int(best[0]) in self._written:
            # Requests that a model wrote tell the kitchen from the bedroom, and not on from off: which of its kind is left to the model.
            shortlist = (int(index) for index in best if int(index) in self._written)
            kind = list(dict.fromkeys((int(best[0]), *self._near(int(best[0])), *shortlist)))[:SHORTLIST]
            best = np.array([*kind, *(index for index in best if int(index) not in kind)])[:SHORTLIST]
            close = max(close, len(kind))
        return Decision(mode, likelihood, tuple(self.names[index] for index in best), close, unserved)


def _chance(about: _Doubles, weights: _Doubles) -> float:
    return float(1 / (1 + np.exp(-np.clip(about @ weights, -30, 30))))


def _logistic(about: _Doubles, yes: npt.NDArray[np.bool_], used: npt.NDArray[np.bool_]) -> _Doubles:
    """Return the weights of a logistic regression by Newton's method; both sides count alike, however many lines they have."""
    rows, right = about[used], yes[used]
    share = np.where(right, 0.5 / max(right.sum(), 1), 0.5 / max((~right).sum(), 1)) * len(right)
    weights = np.zeros(rows.shape[1])
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(-np.clip(rows @ weights, -30, 30)))
        slope = rows.T @ (share * (chance - right)) + _PENALTY * weights
        curve = (rows * (share * chance * (1 - chance))[:, None]).T @ rows + _PENALTY * np.eye(len(weights))
        weights -= np.linalg.solve(curve, slope)
    return weights

"""The router: says of a request whether it wants a call or words, and which few functions may be meant.

Trained in a fraction of a second from what people say when they want each function, from the functions' descriptions, and from small talk
(`small_talk`). Kernel ridge regression gives each function a score; what it gives a line that it was not trained on has a closed form, so a
small logistic regression over such scores says how likely a call is wanted. Beside what it is trained on it takes a table of meanings of
words (`meanings`), which it can do without.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from voxbridge.services.models.choice import features, follow_ups, meanings, small_talk
from voxbridge.services.models.choice.meanings import NONE, Meanings

SHORTLIST: Final = 6
"""Functions that the model chooses among at most."""

SURE_OF_FOLLOW_UP: Final = 0.98
"""Likelihood of a follow-up from which the function that the words alone suggest need not be offered beside the one before."""
FAR_BEHIND: Final = 0.3
"""Share of the best function's likelihood that another one must have for the model to choose among both. Where the router is this sure, a
model of 1.5 billion parameters chooses worse."""

SURE_OF_CALL: Final = 0.4
SURE_OF_WORDS: Final = 0.1
"""Likelihoods of a wanted call from which on only a call is possible, and below which only words are."""

_RIDGE: Final = 1.0
_MEANT: Final = 1.5
"""Weight of what a text means beside how it is written."""

_MEANINGS: Final = np.arange(features.DIMENSIONS, features.DIMENSIONS + meanings.DIMENSIONS)
_NEAREST: Final = 0.4
"""Weight of the nearest single line beside the regression over all lines."""

_AGAIN: Final = 1.0
"""Gain in rank of the function of the turn before, for a request that surely follows up on it."""

_SHARPNESS: Final = 15.0
"""Factor between the difference of two ranks and the logarithm of their odds, fitted on lines left out of the training."""

_STEPS: Final = 25
_PENALTY: Final = 0.01

_Doubles = npt.NDArray[np.float64]


class Known(msgspec.Struct, frozen=True):
    """A function to choose: `utterances` are what people say when they want it, `names` the values that its arguments can have."""

    name: str
    description: str = ""
    utterances: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


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

    def __init__(self, functions: Sequence[Known], table: Meanings = NONE) -> None:
        """Train it. Takes 0.1 to 0.5 s of one processor for 80 functions with 8 utterances each."""
        self._meanings = table
        self._length = 1 + _MEANT if table.known else 1.0
        self.names = [known.name for known in functions]
        texts: list[str] = []
        owners: list[int] = []
        told: list[bool] = []
        for index, known in enumerate(functions):
            about = " ".join((known.name, known.description, *known.names))
            texts += [*known.utterances, about]
            owners += [index] * (len(known.utterances) + 1)
            told += [True] * len(known.utterances) + [not known.utterances]
        self._talk, self._again = len(functions), len(functions) + 1
        texts += [*small_talk.LINES, *follow_ups.LINES]
        owners += [self._talk] * len(small_talk.LINES) + [self._again] * len(follow_ups.LINES)
        told += [True] * (len(small_talk.LINES) + len(follow_ups.LINES))
        self._owners = np.array(owners)
        self._told = np.array(told)
        self._learn(texts)

    def _learn(self, texts: Sequence[str]) -> None:
        weighed = [features.weighed(text) for text in texts]
        self._rare = features.rarity(weighed)
        lines = np.zeros((len(texts), features.DIMENSIONS + meanings.DIMENSIONS), np.float32)
        for line, text in zip(lines, texts, strict=True):
            places, values = self._vector(text)
            line[places] = values
        wanted = (self._owners[:, None] == np.arange(len(self.names) + 2)).astype(np.float32)
        alike = lines @ lines.T
        inverse = np.linalg.inv(alike + _RIDGE * np.eye(len(texts), dtype=np.float32))
        dual = inverse @ wanted
        # By place first, so that a request with two hundred features reads two hundred rows.
        self._weights = np.ascontiguousarray(lines.T @ dual)
        self._lines = np.ascontiguousarray(lines.T)
        unseen = wanted - dual / np.diag(inverse)[:, None]
        np.fill_diagonal(alike, -1.0)
        alike /= self._length
        self._first = np.searchsorted(self._owners, np.arange(len(self.names) + 2))
        nearest = np.maximum.reduceat(alike, self._first, axis=1)
        about = np.stack([self._evidence(score, near) for score, near in zip(unseen, nearest, strict=True)])
        calls = self._told & (self._owners < self._talk)
        self._wants = _logistic(about, calls, calls | (self._owners == self._talk))
        again = self._owners == self._again
        leads = np.stack([self._lead(score, near) for score, near in zip(unseen, nearest, strict=True)])
        self._follows = _logistic(leads, again, again | calls | (self._owners == self._talk))

    def _evidence(self, scores: npt.NDArray[Any], nearest: npt.NDArray[Any]) -> _Doubles:
        functions, near = scores[: self._talk], nearest[: self._talk]
        best = np.sort(functions)[-3:]
        return np.array(
            [best[-1], best.sum(), scores[self._talk], near.max(), nearest[self._talk], scores[self._again], nearest[self._again], 1.0]
        )

    def _lead(self, scores: npt.NDArray[Any], nearest: npt.NDArray[Any], but: int = -1) -> _Doubles:
        """Return by how much a text is more like a follow-up than like a request of its own, for any function `but` the one before."""
        others = np.arange(self._talk) != but
        best, near = scores[: self._talk][others].max(initial=0.0), nearest[: self._talk][others].max(initial=0.0)
        return np.array(
            [scores[self._again] - best, nearest[self._again] - near, scores[self._again] - scores[self._talk], 1.0], dtype=np.float64
        )

    def _vector(self, text: str) -> tuple[npt.NDArray[np.intp], features.Floats]:
        """Return the places and values of how a text is written, and behind them of what it means."""
        places, values = features.vector(features.weighed(text), self._rare)
        meant = self._meanings.of(text, self._rare) * np.float32(_MEANT**0.5)
        return np.concatenate((places, _MEANINGS)), np.concatenate((values, meant))

    def _read(self, text: str) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        places, values = self._vector(text)
        return values @ self._weights[places], np.maximum.reduceat(values @ self._lines[places], self._first) / self._length

    def decide(self, said: str, before: Before | None = None) -> Decision:
        """Return what a request wants. `before` is the turn before if a function was called in it."""
        scores, nearest = self._read(said)
        about = self._evidence(scores, nearest)
        likelihood = _chance(about, self._wants)
        ranks = scores[: self._talk] + _NEAREST * nearest[: self._talk]
        again, own = 0.0, int(np.argmax(ranks))
        if before is not None and before.called in self.names:
            called = self.names.index(before.called)
            again = _chance(self._lead(scores, nearest, called), self._follows)
            likelihood = 1 - (1 - likelihood) * (1 - again)
            ranks[called] += _AGAIN * again
        best = np.argsort(-ranks)[:SHORTLIST]
        mode: Literal["call", "words", "unsure"] = (
            "call" if likelihood >= SURE_OF_CALL else "words" if likelihood < SURE_OF_WORDS else "unsure"
        )
        close = int((ranks[best] >= ranks[best[0]] + np.log(FAR_BEHIND) / _SHARPNESS).sum())
        if own != best[0] and again < SURE_OF_FOLLOW_UP:
            best = np.array([best[0], own, *(index for index in best if index not in (best[0], own))])[:SHORTLIST]
            close = max(close, 2)
        return Decision(mode, likelihood, tuple(self.names[index] for index in best), close)


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

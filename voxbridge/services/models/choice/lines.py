"""Lines that a router was trained on, by the places of their features: how alike a text is to each of them.

A line has some hundred of eight thousand places, so an index by place holds two thousand lines in a few MB and reads those that share a
place with a text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from voxbridge.services.models.choice.features import DIMENSIONS, Floats

_COMMON: Final = 48
"""Lines that have a place, from which on it is a column of a matrix."""

_SMALL: Final = 256
"""Rows of a matrix that is inverted as a whole."""

Places = npt.NDArray[np.intp]
Doubles = npt.NDArray[np.float64]


class Lines:
    """An index of lines: how they are written (`written`: places and values of each), and what they mean (`meant`: a row of each)."""

    def __init__(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take what `arrays` gave. Raises `KeyError`, `ValueError`."""
        self._meant: Floats = arrays["meant"]
        self._rows: Places = arrays["rows"]
        self._values: Floats = arrays["values"]
        self._starts: Places = arrays["starts"]
        self.number = len(self._meant)
        if len(self._starts) != DIMENSIONS + 1 or not len(self._rows) == len(self._values) == self._starts[-1]:
            raise ValueError("these are not the arrays of an index")

    @classmethod
    def of(cls, written: Sequence[tuple[Places, Floats]], meant: Floats) -> Lines:
        """Return the index of lines."""
        places = np.concatenate([line for line, _ in written])
        order = np.argsort(places, kind="stable")
        rows = np.repeat(np.arange(len(written)), [len(line) for line, _ in written])[order]
        values = np.concatenate([values for _, values in written])[order]
        starts = np.searchsorted(places[order], np.arange(DIMENSIONS + 1))
        return cls({"meant": meant, "rows": rows, "values": values, "starts": starts})

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return what the index consists of."""
        return {"meant": self._meant, "rows": self._rows, "values": self._values, "starts": self._starts}

    def alike(self, places: Places, values: Floats, meant: Floats) -> Floats:
        """Return how alike a text is to each line."""
        starts = self._starts[places]
        counts = self._starts[places + 1] - starts
        ends = np.cumsum(counts)
        found = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - ends + counts, counts)
        shared = np.bincount(self._rows[found], self._values[found] * np.repeat(values, counts), self.number)
        return shared.astype(np.float32) + self._meant @ meant

    def alike_to_each_other(self) -> Floats:
        """Return how alike each line is to each line."""
        counts = np.diff(self._starts)
        common = np.flatnonzero(counts > _COMMON)
        dense = np.zeros((self.number, len(common)), np.float32)
        for column, place in enumerate(common):
            span = slice(self._starts[place], self._starts[place + 1])
            dense[self._rows[span], column] = self._values[span]
        found = self._meant @ self._meant.T + dense @ dense.T
        for place in np.flatnonzero((counts > 0) & (counts <= _COMMON)):
            span = slice(self._starts[place], self._starts[place + 1])
            rows, values = self._rows[span], self._values[span]
            found[rows[:, None], rows] += values[:, None] * values
        return found


def inverted(matrix: Doubles) -> Doubles:
    """Return the inverse of a symmetric, positive definite matrix, by halves: in half the time of one that need not be symmetric. In single
    precision the differences of the halves lose too much."""
    half = len(matrix) // 2
    if half < _SMALL:
        return np.asarray(np.linalg.inv(matrix), np.float64)
    first, between = inverted(matrix[:half, :half]), matrix[:half, half:]
    step = first @ between
    last = inverted(matrix[half:, half:] - between.T @ step)
    found = np.empty_like(matrix)
    found[half:, half:] = last
    found[:half, half:] = -(step @ last)
    found[half:, :half] = found[:half, half:].T
    found[:half, :half] = first - found[:half, half:] @ step.T
    return found

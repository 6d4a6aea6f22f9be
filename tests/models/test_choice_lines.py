"""Lines of a router: an index by place gives what the whole matrix of all places would, and its inverse is one."""

from __future__ import annotations

import numpy as np
import pytest

from voxbridge.services.models.choice import features, small_talk
from voxbridge.services.models.choice.features import DIMENSIONS, Floats
from voxbridge.services.models.choice.lines import Lines, inverted

TEXTS = small_talk.LINES[:400]


def _written(texts: tuple[str, ...]) -> tuple[Lines, Floats]:
    weighed = [features.weighed(text) for text in texts]
    rare = features.rarity(weighed)
    written = [features.vector(one, rare) for one in weighed]
    meant = (np.random.default_rng(1).normal(size=(len(texts), 96)) / 10).astype(np.float32)
    dense = np.zeros((len(texts), DIMENSIONS), np.float32)
    for line, (places, values) in zip(dense, written, strict=True):
        line[places] = values
    return Lines.of(written, meant), np.concatenate((dense, meant), axis=1)


def test_likeness_is_that_of_all_places() -> None:
    lines, dense = _written(TEXTS)
    assert np.abs(lines.alike_to_each_other() - dense @ dense.T).max() < 1e-4
    for row in (0, 17, 399):
        places = np.flatnonzero(dense[row, :DIMENSIONS])
        alike = lines.alike(places, dense[row, places], dense[row, DIMENSIONS:])
        assert alike == pytest.approx(dense @ dense[row], abs=1e-4)


def test_a_text_without_words_is_like_no_line() -> None:
    lines, _ = _written(TEXTS)
    nothing = np.zeros(0, np.intp), np.zeros(0, np.float32)
    assert not lines.alike(*nothing, np.zeros(96, np.float32)).any()


@pytest.mark.parametrize("rows", [1, 255, 513, 1_200])
def test_the_inverse_of_lines_that_are_much_alike_is_exact(rows: int) -> None:
    """Lines share most of what they have, so a direction has a thousand times the weight of the others."""
    drawn = np.random.default_rng(2).normal(size=(rows, 40)) / 6 + 0.15
    matrix = drawn @ drawn.T + np.eye(rows)
    assert np.abs(matrix @ inverted(matrix) - np.eye(rows)).max() < 1e-7

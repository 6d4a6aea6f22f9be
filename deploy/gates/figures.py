"""Gate: README and docs quote only the newest committed run of `make bench`."""

from __future__ import annotations

from bench.pages import PageError, differing


def problems() -> list[str]:
    """Return one problem for each page that differs."""
    try:
        return differing()
    except (PageError, OSError, ValueError) as error:
        return [str(error)]

"""README and docs quote the newest committed run of `make bench`, and nothing else."""

from __future__ import annotations

from bench.pages import PageError, differing


def problems() -> list[str]:
    """One problem for each page that differs."""
    try:
        return differing()
    except (PageError, OSError, ValueError) as error:
        return [str(error)]

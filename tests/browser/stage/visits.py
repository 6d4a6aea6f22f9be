"""Pages of Studio, each in a browser context of its own, that are closed at the end and must have complained of nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from playwright.sync_api import Browser

from tests.browser.stage.studio import Studio

Visit = Callable[..., Studio]
"""`visit(path, **options)` opens a path of Studio; the options are those of a browser context."""


def quiet(studio: Studio) -> None:
    """Fail on any console message."""
    assert studio.complaints == [], studio.complaints


@contextmanager
def visits(
    browser: Browser, url: str, usual: Mapping[str, Any], *, check: Callable[[Studio], None] = quiet, cuts: bool = True
) -> Iterator[Visit]:
    """Open pages below `url`, with the `usual` options. `check` looks at each at the end; with `cuts`, answers of 503 are expected."""
    with ExitStack() as pages:

        def visit(path: str, **options: Any) -> Studio:
            context = browser.new_context(**{**usual, **options})
            pages.callback(context.close)
            studio = Studio(context.new_page(), url)
            if cuts:
                studio.cuts_are_expected()
            pages.callback(check, studio)
            studio.open(path)
            return studio

        yield visit

"""The product, started once for this folder, and browsers connected to it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Playwright, sync_playwright

from deploy.browser import find
from tests.browser.stage.product import Product, running
from tests.browser.stage.speech import Sound, wav
from tests.browser.stage.studio import MICROPHONE, Studio
from tests.running_models import RunningModels, running_models

FLAGS: Final = ("--no-sandbox", "--autoplay-policy=no-user-gesture-required", "--use-fake-device-for-media-stream")
DESKTOP: Final = {"viewport": {"width": 1280, "height": 820}}

OpenStudio = Callable[..., Studio]


@pytest.fixture(scope="session")
def models() -> RunningModels:
    """The running models, shared by the test session."""
    return running_models()


@pytest.fixture(scope="package")
def product(models: RunningModels, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """The running product."""
    # The first turns may come while the prompt of all functions is still being read.
    environment = {"VOXBRIDGE_RECORDING": "allow", "VOXBRIDGE_TURN_TIMEOUT_S": "90"}
    with running(tmp_path_factory.mktemp("product"), models, environment=environment) as found:
        yield found


@pytest.fixture(scope="package")
def playwright() -> Iterator[Playwright]:
    """Playwright for this folder only: its event loop would disturb other tests. It runs on the Node.js of the set-up: its own wants a
    library that a bare Debian does not have."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PLAYWRIGHT_NODEJS_PATH", str(Path(sys.executable).with_name("node")))
        with sync_playwright() as found:
            yield found


@pytest.fixture(scope="package")
def launch(playwright: Playwright) -> Iterator[Callable[..., Browser]]:
    """Start a Chromium with additional flags."""
    path = find()
    assert path is not None, "the browser tests need Chromium: run `python3 deploy/browser.py`"
    with ExitStack() as open_browsers:

        def start(*flags: str) -> Browser:
            browser = playwright.chromium.launch(executable_path=path, headless=True, args=[*FLAGS, *flags])
            open_browsers.callback(browser.close)
            return browser

        yield start


@pytest.fixture(scope="package")
def browser(launch: Callable[..., Browser]) -> Browser:
    """The Chromium that most tests share, each with a profile of its own."""
    return launch("--use-fake-ui-for-media-stream")


@pytest.fixture
def open_studio(product: Product, browser: Browser) -> Iterator[OpenStudio]:
    """`open_studio(path=..., **context options)`: a page whose microphone plays the clips that the test chooses."""
    with ExitStack() as pages:

        def open_page(path: str = "/?probe=1", *, clips: dict[str, Sound] | None = None, **options: Any) -> Studio:
            studio = _page(pages, browser, product, **options)
            studio.page.add_init_script(path=MICROPHONE)
            studio.open(path)
            for name, sound in (clips or {}).items():
                studio.load(name, sound)
            return studio

        yield open_page


@pytest.fixture
def studio(open_studio: OpenStudio) -> Studio:
    """A desktop page, in Talk."""
    return open_studio()


@pytest.fixture
def hear(product: Product, launch: Callable[..., Browser], tmp_path: Path) -> Iterator[Callable[[Sound], Studio]]:
    """A page in a browser whose microphone device plays a recording once, from the moment it is opened."""
    with ExitStack() as pages:

        def open_page(sound: Sound) -> Studio:
            file = tmp_path / "microphone.wav"
            file.write_bytes(wav(sound))
            own = launch("--use-fake-ui-for-media-stream", f"--use-file-for-fake-audio-capture={file}%noloop")
            pages.callback(own.close)
            studio = _page(pages, own, product)
            studio.open()
            return studio

        yield open_page


def _page(pages: ExitStack, browser: Browser, product: Product, **options: Any) -> Studio:
    context = browser.new_context(**{**DESKTOP, **options})
    studio = Studio(context.new_page(), product.url)
    pages.callback(_done, studio)
    return studio


def _done(studio: Studio) -> None:
    studio.page.context.close()
    assert studio.complaints == []

"""Twenty requests by recorded speech, over more than ten functions: at least seventeen are done as asked."""

from __future__ import annotations

import sys

import pytest

from tests.browser.conftest import OpenStudio, browser, launch, models, open_studio, playwright
from tests.browser.stage import requests
from tests.browser.stage.product import Product
from tests.browser.test_spoken_requests import product

__all__ = ["browser", "launch", "models", "open_studio", "playwright", "product"]

ENOUGH = 17
pytestmark = pytest.mark.timeout(3_600)


def test_of_twenty_spoken_requests_seventeen_are_done_as_asked(product: Product, open_studio: OpenStudio) -> None:
    found = [done for group in requests.ALL for done in requests.asked(product, open_studio(), group)]
    sys.stdout.write(requests.table(found))
    assert len({one.request.function for one in found}) >= 10
    assert len(found) == 20
    assert sum(not one.why for one in found) >= ENOUGH, requests.table(found)

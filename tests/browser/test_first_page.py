"""From zero to a voice agent in five minutes: the first page of docs/platform.md, taken out of it, with the installation's own models."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.stage.product import Product
from tests.browser.stage.studio import ROOT, WAIT_MS

GUIDE: Final = ROOT / "docs" / "platform.md"
MADE: Final = re.compile(r"pk_test_[\w-]+")


def first_page() -> str:
    """Return the page that the guide has people save."""
    section = GUIDE.read_text(encoding="utf-8").partition("## A first page")[2]
    return section.partition("```html\n")[2].partition("```")[0]


def made_key(product: Product) -> str:
    """Return the key that `voxbridge platform make` prints."""
    command = [str(Path(sys.executable).with_name("voxbridge")), "platform", "make"]
    done = subprocess.run(command, env={**os.environ, **product.environment}, capture_output=True, text=True, check=True)
    (key,) = MADE.findall(done.stdout)
    return str(key)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("asked", "answer"), [("When does the next train to Rome leave?", r"\b(12|twelve)\b"), ("What is 2 plus 3?", r"\b(5|five)\b")]
)
def test_the_first_page_of_the_guide_answers(asked: str, answer: str, product: Product, browser: Browser, tmp_path: Path) -> None:
    html = first_page().replace("http://127.0.0.1:8420", product.url).replace("pk_test_…", made_key(product))
    assert len(html.splitlines()) <= 35
    file = tmp_path / "index.html"
    file.write_text(html, encoding="utf-8")
    context = browser.new_context()
    try:
        page = context.new_page()
        page.goto(file.as_uri())
        expect(page.get_by_role("log")).to_contain_text("Hi! Ask me when your train leaves.", timeout=WAIT_MS)
        page.get_by_label("Message").fill(asked)
        page.get_by_role("button", name="Send").click()
        expect(page.get_by_role("log")).to_contain_text(re.compile(answer), timeout=2 * WAIT_MS)
    finally:
        context.close()

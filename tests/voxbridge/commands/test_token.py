"""`voxbridge token`: the printed token is valid, and invalid terms are refused by name."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from voxbridge.commands.token import token
from voxbridge.shared.secrets import access_tokens


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data folder."""
    monkeypatch.setenv("VOXBRIDGE_DATA_DIR", str(tmp_path))
    return tmp_path


def read(folder: Path, printed: str) -> access_tokens.Terms:
    return access_tokens.read(printed.strip(), (folder / "admin.token").read_text().strip(), now_s=int(time.time()))


def test_a_token_is_printed_with_the_terms_that_were_asked_for(folder: Path) -> None:
    options = ["--account", "ada", "--agent", "triage", "--agent", "closer", "--model", "m", "--prompt", "--calls", "3", "--for", "2m"]
    found = read(folder, CliRunner().invoke(token, options, catch_exceptions=False).output)
    assert (found.account, found.agents, found.models, found.prompt, found.calls) == ("ada", ("triage", "closer"), ("m",), True, 3)
    assert 0 < found.expires_s - time.time() <= 120


def test_a_link_opens_studio_where_people_find_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printed = CliRunner().invoke(token, ["--link"], catch_exceptions=False).output
    address, _, made = printed.partition("/#token=")
    assert address == "http://127.0.0.1:8420"
    assert read(folder, made).modes == ()
    monkeypatch.setenv("VOXBRIDGE_ALLOWED_ORIGINS", "https://voice.example.com, https://other.example.com")
    assert CliRunner().invoke(token, ["--link"], catch_exceptions=False).output.startswith("https://voice.example.com/#token=")


@pytest.mark.parametrize("options", [["--for", "8d"], ["--for", "soon"], ["--calls", "-1"], ["--mode", "loud"], ["--account", "A"]])
def test_what_cannot_be_is_refused(folder: Path, options: list[str]) -> None:
    assert CliRunner().invoke(token, options).exit_code != 0

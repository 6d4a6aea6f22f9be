"""An unusable certificate file is reported by name, before any connection is made."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes import tls
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.secrets.certificates import VARIABLE, check_certificates


def test_one_that_is_good_or_not_named_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    check_certificates()
    authority = tls.issue(tmp_path)[0]
    monkeypatch.setenv(VARIABLE, str(authority))
    check_certificates()
    assert os.environ[VARIABLE] == str(authority)


def test_an_empty_name_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    usual = ssl.create_default_context().cert_store_stats()
    monkeypatch.setenv(VARIABLE, "")
    check_certificates()
    assert VARIABLE not in os.environ
    assert ssl.create_default_context().cert_store_stats() == usual


@pytest.mark.parametrize(("kind", "reason"), [("missing", "no such file"), ("folder", "is a directory"), ("text", "no certificate")])
def test_one_that_cannot_be_used_is_named(kind: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "authorities.pem"
    if kind == "folder":
        path.mkdir()
    elif kind == "text":
        path.write_text("no certificates")
    monkeypatch.setenv(VARIABLE, str(path))
    with pytest.raises(VoxbridgeError, match=reason) as caught:
        check_certificates()
    assert (caught.value.code, caught.value.field) == (Code.INVALID_ARGUMENT, VARIABLE)
    assert str(path) in caught.value.message


def test_a_service_ends_with_one_line() -> None:
    env = {**os.environ, VARIABLE: "/nowhere/at/all.pem"}
    done = subprocess.run(
        [sys.executable, "-m", "voxbridge.services.voice"], env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"{VARIABLE} names /nowhere/at/all.pem, which cannot be read")
    assert done.stderr.count("\n") == 1

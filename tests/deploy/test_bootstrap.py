from __future__ import annotations

import hashlib
import http.server
import io
import json
import os
import shutil
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from deploy import bootstrap

ROOT = Path(__file__).resolve().parents[2]
FAKE_UV = b"#!/bin/sh\necho uv 99.0.0\n"


def _wheel() -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as wheel:
        wheel.writestr("uv-0.data/scripts/uv", FAKE_UV)
    return made.getvalue()


@contextmanager
def _index(pages: Mapping[str, tuple[str, bytes]]) -> Iterator[str]:
    """Serve a package index on loopback with these pages: path -> (content type, body)."""

    class Pages(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            kind, body = pages.get(self.path, ("", b""))
            self.send_response(200 if kind else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/simple"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout without uv on the path, whose pinned wheel is the one of `_wheel`."""
    digest = hashlib.sha256(_wheel()).hexdigest()
    monkeypatch.setattr(bootstrap, "UV_WHEELS", {"x86_64": digest, "aarch64": digest})
    monkeypatch.setattr(bootstrap, "STATE", tmp_path)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    for name in ("UV_INDEX_URL", "PIP_INDEX_URL", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def _pages(body: str, kind: str = "text/html") -> dict[str, tuple[str, bytes]]:
    return {"/simple/uv/": (kind, body.encode()), "/files/uv.whl": ("application/zip", _wheel())}


def test_uv_is_taken_from_an_index_of_html_pages(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = hashlib.sha256(_wheel()).hexdigest()
    page = f'<a href="../../files/old.whl#sha256={"0" * 64}">old</a><a href="../../files/uv.whl#sha256={digest}">uv</a>'
    with _index(_pages(page)) as url:
        monkeypatch.setenv("UV_DEFAULT_INDEX", f"company={url}/")
        assert bootstrap.uv() == str(bare / "bin" / "uv")
    assert (bare / "bin" / "uv").read_bytes() == FAKE_UV
    assert bootstrap.uv() == str(bare / "bin" / "uv")


def test_uv_is_taken_from_an_index_that_answers_json(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = hashlib.sha256(_wheel()).hexdigest()
    page = json.dumps({"files": [{"url": "/files/uv.whl", "hashes": {"sha256": digest}}]})
    with _index(_pages(page, "application/vnd.pypi.simple.v1+json")) as url:
        monkeypatch.delenv("UV_DEFAULT_INDEX", raising=False)
        monkeypatch.setenv("PIP_INDEX_URL", url)
        assert Path(bootstrap.uv()).read_bytes() == FAKE_UV


def test_a_wheel_of_other_bytes_is_refused(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = hashlib.sha256(_wheel()).hexdigest()
    pages = _pages(f'<a href="/files/uv.whl#sha256={digest}">uv</a>') | {"/files/uv.whl": ("application/zip", b"other bytes")}
    with _index(pages) as url:
        monkeypatch.setenv("UV_DEFAULT_INDEX", url)
        with pytest.raises(bootstrap.SetupError, match="It is not used; check the index"):
            bootstrap.uv()
    assert not (bare / "bin" / "uv").exists()


def test_an_index_without_the_pinned_wheel_is_named(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with _index(_pages("<a href='x.whl'>x</a>")) as url:
        monkeypatch.setenv("UV_DEFAULT_INDEX", url)
        with pytest.raises(bootstrap.SetupError, match=r"The index 127\.0\.0\.1 does not have uv"):
            bootstrap.uv()
    assert list(bare.glob("bin/*")) == []


def test_an_index_that_cannot_be_reached_is_one_line_without_its_password(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://name:secret@127.0.0.1:9/simple")
    with pytest.raises(bootstrap.SetupError) as caught:
        bootstrap.uv()
    assert str(caught.value).startswith("127.0.0.1 cannot be reached: ")
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert bare.exists()


def test_an_old_uv_on_the_path_is_passed_over(bare: Path, tmp_path: Path) -> None:
    old = tmp_path / "old-uv"
    old.write_text("#!/bin/sh\necho uv 0.2.9\n")
    old.chmod(0o755)
    assert bootstrap.version_of(str(old)) == (0, 2, 9)
    assert bootstrap.version_of(str(old)) < bootstrap.UV_OLDEST
    assert bootstrap.version_of(str(bare / "none")) == (0,)


def test_a_full_disk_and_a_foreign_folder_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "VENV", tmp_path / "none")
    assert "is full" in bootstrap.explain(OSError(28, "No space left on device", "/x"))
    assert "/x cannot be written: permission denied" in bootstrap.explain(OSError(13, "Permission denied", "/x"))
    with pytest.raises(bootstrap.SetupError, match="too little room"):
        bootstrap.room(Path("/proc"))


def test_a_library_that_the_system_lacks_is_one_line_where_it_cannot_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VOXBRIDGE_MODELS_URL", raising=False)
    monkeypatch.setattr(bootstrap, "LIBRARIES", {"libnone-such.so.1": "libnone1", "libc.so.6": "libc6"})
    monkeypatch.setattr(os, "geteuid", lambda: 1_000)
    assert bootstrap.libraries(check=True)
    with pytest.raises(bootstrap.SetupError, match=r"apt-get install libnone1`\) and run this again\.$"):
        bootstrap.libraries(check=False)
    monkeypatch.setattr(bootstrap, "LIBRARIES", {"libc.so.6": "libc6"})
    assert not bootstrap.libraries(check=True)


def test_no_library_is_asked_for_where_the_models_are_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "LIBRARIES", {"libnone-such.so.1": "libnone1"})
    monkeypatch.setenv("VOXBRIDGE_MODELS_URL", "http://127.0.0.1:1/v1")
    assert not bootstrap.libraries(check=True)


def test_an_old_python_is_told_which_one_is_needed() -> None:
    code = "import sys; sys.version_info = (3, 9, 2); sys.path.insert(0, 'deploy'); import bootstrap; sys.exit(bootstrap.main())"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("Python 3.11 or later is needed; this is ")
    assert done.stderr.count("\n") == 1


def _checkout(folder: Path) -> Path:
    """Copy all files in version control, in their present state."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.split(b"\0")
    for name in (os.fsdecode(name) for name in listed if name):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


@pytest.mark.timeout(900)
def test_a_clean_checkout_sets_itself_up_with_the_systems_python_and_make_alone(tmp_path: Path) -> None:
    checkout = _checkout(tmp_path / "checkout")
    tools = tmp_path / "bin"
    tools.mkdir()
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin") or sys.executable
    for name, path in {"python3": python, "make": shutil.which("make"), "sh": "/bin/sh", "awk": shutil.which("awk")}.items():
        assert path is not None, f"{name} is needed on the path"
        (tools / name).symlink_to(path)
    passed = ("SSL_CERT_FILE", "PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "UV_CACHE_DIR")
    env = {"PATH": str(tools), "HOME": str(tmp_path / "home"), **{name: os.environ[name] for name in passed if name in os.environ}}
    first = subprocess.run(["/usr/bin/env", "make", "setup"], cwd=checkout, env=env, capture_output=True, text=True, check=False)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "[1/3] Python packages, as locked in uv.lock" in first.stdout
    assert "[3/3] Browser bundles" in first.stdout
    for made in (".venv/bin/voxbridge", ".venv/bin/nats-server", "client/dist/client.js", "studio/dist/index.html"):
        assert (checkout / made).exists(), made

    second = subprocess.run(["/usr/bin/env", "make", "setup"], cwd=checkout, env=env, capture_output=True, text=True, check=True)
    assert second.stdout == ""

    source = checkout / "client" / "src" / "client.ts"
    source.write_text(source.read_text() + "\n")
    third = subprocess.run(["/usr/bin/env", "make", "setup"], cwd=checkout, env=env, capture_output=True, text=True, check=True)
    assert third.stdout.startswith("[1/1] Browser bundles")

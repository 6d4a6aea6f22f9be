"""Pages of others that embed an agent: a web server of another origin, and the shop of examples/order-tracking with its key."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx

from tests.browser.stage.product import Product
from tests.browser.stage.studio import ROOT

EXAMPLES = ROOT / "examples"


@contextmanager
def served(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serve by this handler on a free port of 127.0.0.1, and yield the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


@contextmanager
def site(html: str | Mapping[str, str], headers: Mapping[str, str] | None = None) -> Iterator[str]:
    """Serve one page at every path, and yield its address. A mapping has it as `html`, as it is then."""

    class Pages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            data = (html if isinstance(html, str) else html["html"]).encode()
            self.send_response(200)
            for name, value in {"Content-Type": "text/html; charset=utf-8", "Content-Length": str(len(data)), **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    with served(Pages) as address:
        yield address


@contextmanager
def folder(path: Path) -> Iterator[str]:
    """Serve a folder, and yield its address."""

    class Files(SimpleHTTPRequestHandler):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given, directory=str(path))

        def log_message(self, *_: Any) -> None:
            pass

    with served(Files) as address:
        yield address


@contextmanager
def shop() -> Iterator[tuple[str, list[str]]]:
    """Run the example's shop. Yield its address, and the `Authorization` headers that it was asked with."""
    spec = importlib.util.spec_from_file_location("shop_api", EXAMPLES / "order-tracking" / "api.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    asked: list[str] = []

    class Shop(module.Shop):  # type: ignore[misc, name-defined]  # loaded from a file
        def do_GET(self) -> None:  # noqa: N802 - the library's name
            asked.append(self.headers.get("Authorization", ""))
            super().do_GET()

        def log_message(self, *_: Any) -> None:
            pass

    with served(Shop) as address:
        yield address, asked


def make_key(product: Product, **wishes: Any) -> str:
    """Make a test key of the account `shop`, and return its text."""
    answer = httpx.post(f"{product.url}/api/keys", json={"account": "shop", **wishes}).raise_for_status().json()
    return str(answer["text"])


def example(name: str, product: Product, key: str, *, api: str = "") -> str:
    """Return the page of an example with this gateway, this key and this API."""
    html = (EXAMPLES / name / "index.html").read_text()
    html = _filled(html, product, key)
    return html.replace("http://127.0.0.1:9400", api) if api else html


def built_react(product: Product, key: str, folder: Path) -> Path:
    """Install and build the React example with the package of this gateway, as its README says, in `folder`; return the built files."""
    shutil.copytree(EXAMPLES / "react", folder, ignore=shutil.ignore_patterns("node_modules", "dist"))
    for path in (folder / "package.json", folder / "src" / "agent.ts"):
        path.write_text(_filled(path.read_text(), product, key))
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    for command in (["npm", "install", "--no-audit", "--no-fund"], ["npm", "run", "build"]):
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder / "dist"


def _filled(text: str, product: Product, key: str) -> str:
    return text.replace("http://127.0.0.1:8420", product.url).replace("pk_test_…", key)

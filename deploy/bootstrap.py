"""Set-up of a checkout with nothing but Python: missing libraries, uv, the locked Python and npm packages, the browser bundles.

Runs on the system's Python 3.11 or later with its standard library alone. A step runs only when its inputs have changed, so a second run
costs only a few file digests. On failure it prints one line that says what to do.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import errno
import fcntl
import hashlib
import html.parser
import io
import json
import os
import platform
import re
import shutil
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STATE = ROOT / ".voxbridge"
PYTHON = (3, 11)
UV_OLDEST = (0, 8, 0)
UV_VERSION = "0.13.8"
UV_WHEELS = {  # machine -> SHA-256 of the wheel; only this digest selects the file of the index
    "x86_64": "e18a57b8b352eb7c8feb317b9f6f533c8f0ad9673fd6cf34bbe3cf1a9f6a8984",
    "aarch64": "0b3e8b1a4f5e405e31e2ff33de8af4744831e9f7338539671efbd8c3c94e791d",
}
DEFAULT_INDEX = "https://pypi.org/simple"
LIBRARIES = {"libgomp.so.1": "libgomp1", "libstdc++.so.6": "libstdc++6"}  # shared library -> Debian's package
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
TIMEOUT_S = 60
NEEDED_BYTES = 3 << 30
ALMOST_FULL_BYTES = 64 << 20


class SetupError(Exception):
    """Failure of the set-up: the reason and the remedy in one line."""


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    """Run the steps that are due. Return 0 when everything is in place."""
    try:
        check_python()
        STATE.mkdir(exist_ok=True)
        due = [step for step in (libraries, packages, modules, bundles) if step(check=True)]
        if due:
            with alone():
                begun = time.monotonic()
                for number, step in enumerate(due, 1):
                    say(f"[{number}/{len(due)}] {(step.__doc__ or '').strip()}")
                    step(check=False)
                say(f"Set up in {time.monotonic() - begun:.0f} s.")
    except SetupError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"{explain(error)}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("Stopped. Run it again to go on.\n")
        return 130
    return 0


def check_python() -> None:
    """Raise `SetupError` when this Python is too old."""
    if sys.version_info < PYTHON:
        wanted = ".".join(map(str, PYTHON))
        raise SetupError(
            f"Python {wanted} or later is needed; this is {platform.python_version()}. Name another: make up PYTHON=python{wanted}"
        )


def explain(error: OSError) -> str:
    """Return a sentence for a failed access to a file, with what to do."""
    where = error.filename or ROOT
    if error.errno == errno.ENOSPC:
        return f"The disk of {where} is full. Free {NEEDED_BYTES >> 30} GiB and run it again."
    if error.errno in (errno.EACCES, errno.EROFS, errno.EPERM):
        return f"{where} cannot be written: {(error.strerror or '').lower()}. Run this as the owner of {ROOT}."
    return f"{error}. Run it again; if it stays, {STATE} and {VENV} can be removed safely."


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Hold the lock of this checkout; other set-ups of the same checkout wait for it."""
    with (STATE / "setup.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Another set-up of this checkout is running; waiting for it.")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


# The inputs of a step, and the stamp file that holds the digest of its last run.


def digest(paths: Iterable[Path]) -> str:
    """Return the digest of these files' names and contents."""
    found = hashlib.sha256()
    for path in paths:
        found.update(str(path.relative_to(ROOT)).encode() + b"\0")
        found.update(path.read_bytes() if path.is_file() else b"-")
    return found.hexdigest()


def sources(*folders: str) -> Iterator[Path]:
    """Return the source files below these folders."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and not {"dist", "node_modules", "tests"} & set(path.relative_to(ROOT).parts):
                yield path


def due(stamp: Path, wanted: str, made: Path) -> bool:
    """Tell whether a step has to run: nothing was made, or it was made from something else."""
    return not made.exists() or not stamp.exists() or stamp.read_text() != wanted


# The steps. With check=True a step only returns whether it is due.


def libraries(check: bool) -> bool:
    """System libraries that the models' engines are linked with"""
    if os.environ.get("VOXBRIDGE_MODELS_URL"):
        return False  # the models run on another host
    missing = [package for library, package in LIBRARIES.items() if not loads(library)]
    if check or not missing:
        return bool(missing)
    command = ["apt-get", "-q", "-y", "--no-install-recommends", "install", *missing]
    by_hand = f"Install {' and '.join(missing)} (on Debian: `apt-get install {' '.join(missing)}`) and run this again."
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise SetupError(f"The models' engines need a library that this system lacks, and this user cannot install it. {by_hand}")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    run(["apt-get", "-q", "update"], "The list of Debian's packages could not be read", env)
    run(command, "Debian's package could not be installed", env)
    if not all(map(loads, LIBRARIES)):
        raise SetupError(f"The models' engines need a library that is still missing. {by_hand}")
    return True


def loads(library: str) -> bool:
    """Return whether the dynamic loader finds a shared library."""
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def packages(check: bool) -> bool:
    """Python packages, as locked in uv.lock"""
    stamp = VENV / "setup.stamp"
    wanted = digest([ROOT / "uv.lock", ROOT / "pyproject.toml"])
    if check:
        return due(stamp, wanted, VENV / "bin" / "python")
    room(ROOT)
    env = trusting(os.environ)
    if not (VENV / "bin" / "python").exists():
        env.setdefault("UV_PYTHON", sys.executable)
    env.setdefault("UV_PYTHON_DOWNLOADS", "never")
    env.pop("VIRTUAL_ENV", None)
    run([uv(), "sync", "--frozen", "--all-extras", "--project", str(ROOT)], "The Python packages could not be installed", env)
    stamp.write_text(wanted)
    return True


def modules(check: bool) -> bool:
    """npm packages, as locked in package-lock.json"""
    lock = ROOT / "package-lock.json"
    if not lock.exists():
        return False
    stamp = ROOT / "node_modules" / "setup.stamp"
    wanted = digest([lock, ROOT / "package.json"])
    if check:
        return due(stamp, wanted, ROOT / "node_modules")
    run(
        [str(VENV / "bin" / "npm"), "ci", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"],
        "The npm packages could not be installed",
        node_env(),
    )
    stamp.write_text(wanted)
    return True


def bundles(check: bool) -> bool:
    """Browser bundles: client.js, react.js and Studio"""
    if not (ROOT / "package.json").exists():
        return False
    stamp = ROOT / "client" / "dist" / "setup.stamp"
    wanted = digest([*sources("client", "studio"), ROOT / "package.json", ROOT / "package-lock.json"])
    if check:
        return due(stamp, wanted, ROOT / "studio" / "dist")
    run([str(VENV / "bin" / "npm"), "run", "--silent", "build"], "The browser bundles could not be built", node_env())
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.write_text(wanted)
    return True


def node_env() -> dict[str, str]:
    """Return the environment in which npm and Node of this checkout run."""
    return {**trusting(os.environ), "PATH": f"{VENV / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}


def trusting(env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which uv and Node use this machine's CA certificates, as needed behind a company's proxy.

    Variables that are already set stay."""
    if not CERTIFICATES.exists():
        return dict(env)
    return {"UV_SYSTEM_CERTS": "true", "UV_NATIVE_TLS": "true", "NODE_EXTRA_CA_CERTS": str(CERTIFICATES), **env}


def run(command: list[str], failure: str, env: dict[str, str]) -> None:
    """Run a command; raise `SetupError` with `failure` when it fails."""
    try:
        code = subprocess.run(command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, check=False).returncode
    except OSError as error:
        raise SetupError(f"{failure}: {command[0]} cannot be run ({error.strerror}).") from error
    if code:
        full = shutil.disk_usage(ROOT).free < ALMOST_FULL_BYTES
        reason = "the disk is full" if full else f"{Path(command[0]).name} ended with code {code}, and its reason is above"
        raise SetupError(f"{failure}: {reason}. Put it right and run this again.")


def room(folder: Path) -> None:
    """Raise `SetupError` when a first installation would not fit on the disk."""
    free = shutil.disk_usage(folder).free
    if not VENV.exists() and free < NEEDED_BYTES:
        needed = f"{free >> 20} MiB are free and {NEEDED_BYTES >> 20} MiB are needed"
        raise SetupError(f"The disk of {folder} has too little room: {needed}. Free some space and run this again.")


# uv: the program on the PATH when it is new enough, else the pinned wheel.


def uv() -> str:
    """Return the path of uv; fetch it when there is none or only an old one."""
    own = STATE / "bin" / "uv"
    for found in (shutil.which("uv"), str(own)):
        if found and Path(found).exists() and version_of(found) >= UV_OLDEST:
            return found
    own.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(io.BytesIO(fetch_uv())) as wheel:
        member = next(name for name in wheel.namelist() if name.endswith("/scripts/uv"))
        part = own.with_name(f"uv.{os.getpid()}")
        part.write_bytes(wheel.read(member))
        part.chmod(0o755)
        part.replace(own)
    return str(own)


def version_of(program: str) -> tuple[int, ...]:
    """Return the version that a program reports; (0,) when it cannot be run."""
    try:
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False, timeout=20).stdout
    except (OSError, subprocess.TimeoutExpired):
        return (0,)
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", said)
    return tuple(int(part) for part in found.groups()) if found else (0,)


def fetch_uv() -> bytes:
    """Return the bytes of the pinned wheel, from the index that the environment names. Raises `SetupError`."""
    machine = platform.machine()
    wanted = UV_WHEELS.get(machine)
    if wanted is None or platform.system() != "Linux":
        raise SetupError(f"There is no pinned uv for {platform.system()} on {machine}. Install uv {UV_VERSION} and run this again.")
    index = index_url()
    url = wheel_url(index, wanted)
    say(f"      fetching uv {UV_VERSION} from {host_of(url)}")
    data = get(url)
    found = hashlib.sha256(data).hexdigest()
    if found != wanted:
        raise SetupError(f"The uv wheel from {host_of(url)} has SHA-256 {found}, not {wanted}. It is not used; check the index.")
    return data


def index_url() -> str:
    """Return the package index of this machine's settings."""
    named = (os.environ.get(name) for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"))
    url: str = next((value for value in named if value), DEFAULT_INDEX)
    return re.sub(r"^[A-Za-z0-9_-]+=(?=\w+://)", "", url).rstrip("/")  # uv allows name=url


class Links(html.parser.HTMLParser):
    """Collector of the href of each link of an index page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the address of a link."""
        if tag == "a":
            self.found += [value for name, value in attrs if name == "href" and value]


def wheel_url(index: str, wanted: str) -> str:
    """Return the URL of the file with this SHA-256, from an index that answers with JSON or HTML. Raises `SetupError`."""
    page = f"{index}/uv/"
    text = get(page, accept="application/vnd.pypi.simple.v1+json, text/html;q=0.5").decode(errors="replace")
    try:
        files = json.loads(text)["files"]
        found = next((file["url"] for file in files if file.get("hashes", {}).get("sha256") == wanted), None)
    except ValueError:
        links = Links()
        links.feed(text)
        found = next((link for link in links.found if link.endswith(f"#sha256={wanted}")), None)
    if found is None:
        raise SetupError(f"The index {host_of(index)} does not have uv {UV_VERSION} for this machine. Install uv and run this again.")
    return urllib.parse.urljoin(page, str(found).partition("#")[0])


def host_of(url: str) -> str:
    """Return the host of an address."""
    parts = urllib.parse.urlsplit(url)
    return parts.hostname or parts.path


def get(url: str, accept: str = "*/*") -> bytes:
    """Return the content of an address."""
    parts = urllib.parse.urlsplit(url)
    headers = {"Accept": accept, "User-Agent": "voxbridge-setup"}
    if parts.username:
        secret = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
        headers["Authorization"] = "Basic " + base64.b64encode(secret.encode()).decode()
        url = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    host = host_of(url)
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - the scheme is that of the index, and the digest is checked
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:  # noqa: S310
            return bytes(answer.read())
    except urllib.error.HTTPError as error:
        raise SetupError(f"{host} answered {error.code} for {parts.path}. Set UV_DEFAULT_INDEX to an index that has uv.") from error
    except urllib.error.URLError as error:
        if isinstance(error.reason, ssl.SSLCertVerificationError):
            raise SetupError(f"The certificate of {host} cannot be checked. Install ca-certificates, or set SSL_CERT_FILE.") from error
        raise SetupError(f"{host} cannot be reached: {error.reason}. Check the network, HTTPS_PROXY or UV_DEFAULT_INDEX.") from error
    except (TimeoutError, ConnectionError) as error:
        raise SetupError(f"{host} stopped answering. Check the network and run this again.") from error


if __name__ == "__main__":
    sys.exit(main())

"""One executor, one gateway and one workspace for the whole table, and the count of what they leave behind."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from string import ascii_lowercase
from typing import Final

import psutil
import pytest

from tests.eventually import eventually
from tests.gateway.conftest import Serve, serve
from tests.knowledge.serving import serving as knowledge
from tests.shared.test_fetch import serving
from tests.terminals.serving import process
from tests.tools.conftest import Executors
from tests.tools.every_function.agents import answered
from tests.tools.every_function.doors import MARKS, Doors, open_doors
from voxbridge.services.tools.packs.device import sensors
from voxbridge.shared.config import Config
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.log.reader import Log
from voxbridge.shared.terminals import client as terminals
from voxbridge.shared.terminals.model import LOCAL_HOST, Definition, Submit
from voxbridge.shared.terminals.questions import Define

__all__ = ["serve"]

CANARY: Final = "K-2317-never-told"
"""Text of a file outside the workspace; no answer may hold it."""

FILES: Final = {
    "sales.csv": "region,amount\nnorth,10\nsouth,5\nnorth,30\n",
    "lib/LICENSE": "Apache License\nVersion 2.0, January 2004\n",
    "lib/package.json": '{"name": "x", "license": "MIT"}',
    "notes.md": "# Leave\nHolidays are thirty days. Questions go to Mary Poppins.\n",
    **{f"library/hall-{one}.md": f"# Hall {one}\nThe days of hall {one} are thirty days apart.\n" for one in ascii_lowercase},
    "lib/a.py": "# SPDX-License-Identifier: BSD-3-Clause\n",
    "src/bad_app.py": "import subprocess\nsubprocess.call(input(), shell=True)\n",
    "src/knots.py": "def knotty(a):\n    if a:\n        return 1\n    return 2 if a else 3\n",
    "src/broken.py": "def f(:\n",
    **{f"src/core_{mark}.py": "def add(a, b):\n    return a + b\n\n\ndef double(a):\n    return a * 2\n" for mark in MARKS.values()},
}
PLAYBOOK: Final = "# Backups\n\n## Restore\n\nStop the service, then restore the latest snapshot.\n\n## Make\n\nEach night.\n"
WORKFLOW: Final = {"name": "greet", "inputs": {"who": {}}, "steps": [{"say": "Hello ${input.who}."}]}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace with files of each kind, and beside it what must not be read."""
    root, outside = tmp_path / "workspace", tmp_path / "outside"
    outside.mkdir()
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for name in ("secret.csv", "secret.py"):
        (outside / name).write_text(f"# {CANARY}\n1\n")
    (root / "link.csv").symlink_to(outside / "secret.csv")
    (root / "link.py").symlink_to(outside / "secret.py")
    (root / "link").symlink_to(outside)
    os.mkfifo(root / "pipe.csv")
    os.mkfifo(root / "pipe.py")
    return root


@pytest.fixture
async def doors(
    serve: Serve, config: Config, log: Log, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Doors]:
    """The doors of a running installation. Afterwards no child process, socket, file descriptor or file outside is left."""
    zone = tmp_path / "sysfs" / "thermal" / "thermal_zone0"
    zone.mkdir(parents=True)
    (zone / "type").write_text("cpu\n")
    (zone / "temp").write_text("41500\n")
    monkeypatch.setattr(sensors, "SYSFS", tmp_path / "sysfs")
    monkeypatch.setattr(sensors, "PROGRAM", "no-such-program-here")
    monkeypatch.setenv("VOXBRIDGE_SECRET", CANARY)
    (tmp_path / "playbooks").mkdir()
    (tmp_path / "playbooks" / "backups.md").write_text(PLAYBOOK)
    (tmp_path / "workflows").mkdir()
    (tmp_path / "workflows" / "greet.json").write_text(json.dumps(WORKFLOW))
    gateway = await serve(config.nats_url, config.redis_url)
    # The connections that many requests at once take from the gateway's pool stay there.
    await asyncio.gather(*(gateway.gateway.store.gateway_alive(str(number)) for number in range(32)))
    with process(config.nats_url, config.redis_url), nothing_left(tmp_path):
        await eventually(partial(_defined, log))
        async with serving(_site) as site, knowledge(replace(config, knowledge_dir=str(tmp_path / "graphs"))):
            running = Executors(config).running(
                "built-in",
                workspace_dirs=str(workspace),
                playbooks_dir=tmp_path / "playbooks",
                workflows_dir=tmp_path / "workflows",
                fetch_hosts=f"localhost:{site.port}",
            )
            async with running, answered(log), open_doors(log, gateway, workspace) as opened:
                opened.values["{server}"] = f"http://localhost:{site.port}"
                yield opened


async def _defined(log: Log) -> bool:
    """Tell the terminals service of a program that stands for a coding agent; False while it does not answer."""
    definition = Definition(id="mine", title="Mine", kind="agent", command=("cat",), submit=Submit(gap_ms=0))
    try:
        await terminals.ask(log.nc, LOCAL_HOST, Define(by="tester", definition=definition))
    except VoxbridgeError:
        return False
    return True


@contextmanager
def nothing_left(tmp_path: Path) -> Iterator[None]:
    """Fail if there are more children, sockets or open files afterwards, or if something was written outside the workspace."""
    before, files = _held(), _outside(tmp_path)
    yield
    after = _held()
    assert after[0] <= before[0], "child processes are left"
    assert after[1] <= before[1], f"{after[1]} open files and sockets, and {before[1]} before"
    assert _outside(tmp_path) == files


def _held() -> tuple[set[int], int]:
    process = psutil.Process()
    return {child.pid for child in process.children(recursive=True)}, process.num_fds()


def _outside(tmp_path: Path) -> dict[str, str]:
    """Return the files beside the workspace with their contents, and the names of temporary files of ours."""
    found = {
        str(Path(folder) / name): (Path(folder) / name).read_text(errors="replace")
        for beside in ("outside", "playbooks", "workflows", "sysfs")
        for folder, _, names in os.walk(tmp_path / beside)
        for name in names
    }
    temporary = Path(tempfile.gettempdir())
    return found | {str(one): "" for pattern in ("voxbridge-table-*", "stolen*") for one in temporary.glob(pattern)}


async def _site(path: str, _headers: dict[str, str], writer: asyncio.StreamWriter) -> None:
    """A site that is asked by name; two of its pages lead elsewhere."""
    body = b"<title>Home &amp; garden</title>"
    places = {"/away": b"http://169.254.169.254/latest/meta-data/", "/around": b"/around"}
    head = b"302 Found\r\nLocation: " + places[path] if path in places else b"200 OK"
    writer.write(b"HTTP/1.1 " + head + b"\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(body), body))
    await writer.drain()

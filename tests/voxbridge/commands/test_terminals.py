"""`voxbridge terminals` against a running gateway and service; attached in a terminal of its own."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.eventually import eventually
from tests.gateway.conftest import Running, Serve, serve
from tests.terminals.serving import Process, process
from voxbridge.cli import cli
from voxbridge.shared.errors import VoxbridgeError

__all__ = ["serve"]  # a fixture


@pytest.fixture
async def service(serve: Serve, nats_url: str, redis_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Process]:
    running: Running = await serve(nats_url, redis_url)
    monkeypatch.setenv("VOXBRIDGE_PORT", str(running.port))
    monkeypatch.setenv("VOXBRIDGE_DATA_DIR", str(running.gateway.resources.config.data_dir))
    with process(nats_url, redis_url) as service:

        async def answers() -> bool:
            return (await running.get("/api/terminals")).status_code == 200

        await eventually(answers)
        yield service


async def run(*arguments: str) -> Result:
    """Run the command in a thread, since the gateway runs in this one."""
    return await asyncio.to_thread(lambda: CliRunner().invoke(cli, ["terminals", *arguments]))


async def test_a_terminal_is_started_steered_and_closed(service: Process, tmp_path: Path) -> None:
    assert (await run("list")).output == "There is no terminal. Start one: voxbridge terminals start bash\n"
    started = await run("start", "sh", "--name", "Work", "--directory", "/tmp")
    assert started.exit_code == 0, started.output
    name = started.output.strip()

    async def has_a_prompt() -> bool:
        return bool((await run("read", name)).output.strip())

    await eventually(has_a_prompt)
    assert (await run("send", name, "echo $((6*7)); pwd")).exit_code == 0

    async def shows_both() -> bool:
        return "42\n/tmp\n" in (await run("read", name)).output

    await eventually(shows_both)
    assert (await run("key", name, "ctrl-l")).output == "typed.\n"
    assert "silence" in (await run("explain", name)).output
    assert "Work" in (await run("list")).output
    assert "bash" in (await run("programs")).output
    assert (await run("restart", name)).exit_code == 0
    assert isinstance((await run("read", "nobody")).exception, VoxbridgeError)
    assert (await run("attach", name)).exit_code == 2, "nothing to draw on"

    async def tells() -> bool:
        return "local sent the key ctrl-l." in (await run("log", name)).output

    await eventually(tells)
    (one,) = [line for line in (await run("lives")).output.splitlines() if line]
    assert one.startswith(f"{name}-")
    assert " open " in one
    (first, *_) = (await run("log", one.split()[0], "--json")).output.splitlines()
    assert json.loads(first)["data"]["name"] == "Work"
    assert isinstance((await run("log", "nobody")).exception, VoxbridgeError)
    file = tmp_path / "work.cast"
    assert (await run("cast", name, str(file))).exit_code == 0
    header, *shown = map(json.loads, file.read_text().splitlines())
    assert (header["version"], "42" in "".join(event[2] for event in shown)) == (3, True)
    assert (await run("cast", name)).stdout_bytes.splitlines()[0] == file.read_bytes().splitlines()[0]
    assert isinstance((await run("cast", "nobody")).exception, VoxbridgeError)
    assert isinstance((await run("cast", name, str(tmp_path / "none" / "work.cast"))).exception, VoxbridgeError)
    assert (await run("close", name)).exit_code == 0
    refused = await run("send", name, "ls")
    assert refused.exit_code == 1


async def test_attached_it_draws_and_types_until_it_is_left(service: Process) -> None:
    name = (await run("start", "sh")).output.strip()
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 21, 77, 0, 0))
    attached = subprocess.Popen(  # noqa: ASYNC220 - it is only started here
        [sys.executable, "-m", "voxbridge", "terminals", "attach", name], stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    os.set_blocking(ours, False)
    shown = bytearray()

    def shows(text: bytes) -> bool:
        with suppress(BlockingIOError):
            shown.extend(os.read(ours, 65_536))
        return text in shown

    try:
        await eventually(lambda: shows(b"\x1bc"))

        async def has_its_size() -> bool:
            shows(b"")
            os.write(ours, b"stty size\r")
            await asyncio.sleep(0.1)  # between two questions
            return shows(b"21 77")

        await eventually(has_its_size)
        os.write(ours, b"\x1d")
        await asyncio.to_thread(attached.wait, 30)
        assert attached.returncode == 0
    finally:
        attached.kill()
        attached.wait()
        os.close(ours)
    assert "stty size" in (await run("read", name)).output

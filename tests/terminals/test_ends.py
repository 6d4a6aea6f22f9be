"""Everything that a terminal started ends with it: in sessions of its own, without its parent, stopped, and deaf to signals."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import textwrap
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.eventually import eventually
from tests.processes import gone
from tests.terminals.fleets import BY, Viewed, fleet, held_folder
from voxbridge.services.terminals.holder import processes
from voxbridge.services.terminals.holder.client import HolderClient
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.terminals import questions as asked
from voxbridge.shared.terminals.model import Definition

LEAVES = {
    "a child": "sleep 1000 & echo $! > {pid}",
    "setsid": "setsid sh -c 'echo $$ > {pid}; exec sleep 1000' & disown",
    "nohup": "nohup sleep 1000 > /dev/null 2>&1 & echo $! > {pid}; disown",
    "a double fork": "({python} {daemon} {pid} &)",
    "without variables": "env -i setsid sh -c 'echo $$ > {pid}; exec sleep 1000' & disown",
    "stopped": "sleep 1000 & echo $! > {pid}; kill -STOP $!",
    "deaf": "(trap '' HUP TERM INT; echo $BASHPID > {pid}; while :; do sleep 0.1; done) & disown",
}
DAEMON = textwrap.dedent("""
    import os, sys, time
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    for number in range(64):
        try:
            os.close(number)
        except OSError:
            pass
    with open(sys.argv[1] + "~", "w") as file:
        file.write(str(os.getpid()))
    os.rename(sys.argv[1] + "~", sys.argv[1])
    time.sleep(1000)
""")


@pytest.fixture
def folder() -> Iterator[Path]:
    with held_folder() as folder:
        yield folder


@pytest.fixture
async def here(folder: Path) -> AsyncIterator[Viewed]:
    async with fleet(folder) as here:
        yield here


async def started(here: Viewed, terminal: str, how: str, tmp_path: Path) -> int:
    """Start something in a terminal that leaves its shell; return its process id."""
    (tmp_path / "daemon.py").write_text(DAEMON)
    path = tmp_path / "pid"
    path.unlink(missing_ok=True)
    await here.send(terminal, LEAVES[how].format(pid=path, python=sys.executable, daemon=tmp_path / "daemon.py"))
    pid = int(await eventually(lambda: path.exists() and path.read_text().strip()))
    assert not gone(pid)
    return pid


@pytest.mark.parametrize("how", LEAVES)
async def test_after_a_close_nothing_lives_on(here: Viewed, tmp_path: Path, how: str) -> None:
    bash = await here.start()
    pid = await started(here, bash, how, tmp_path)
    closed = await here.ask(asked.Close(by=BY, terminal=bash))
    assert closed.left == ()
    assert gone(pid)


async def test_of_a_shell_that_ended_the_rest_is_ended_too(here: Viewed, tmp_path: Path) -> None:
    bash = await here.start()
    pid = await started(here, bash, "setsid", tmp_path)
    await here.send(bash, "exit")
    await here.wait(bash, "exit")
    assert not gone(pid)
    await here.ask(asked.Restart(by=BY, terminal=bash))
    assert gone(pid)


async def test_one_terminal_ends_without_the_others(here: Viewed, tmp_path: Path) -> None:
    one, other = await here.start(), await here.start()
    pid = await started(here, other, "setsid", tmp_path)
    await here.ask(asked.Close(by=BY, terminal=one))
    assert not gone(pid)
    assert (await here.card(other)).ended == ""
    await here.ask(asked.Close(by=BY, terminal=other))


@pytest.mark.parametrize("how", ["setsid", "stopped", "deaf"])
async def test_where_the_keeper_is_killed_all_of_its_terminal_is(here: Viewed, tmp_path: Path, how: str) -> None:
    bash = await here.start()
    pid = await started(here, bash, how, tmp_path)
    shell = (await here.card(bash)).pid
    assert shell is not None
    found = processes.of(shell)
    assert found is not None
    os.kill(found.parent, signal.SIGKILL)
    await here.wait(bash, "exit")
    await eventually(lambda: gone(pid) and gone(shell))


async def test_where_the_holder_is_killed_all_of_its_terminals_are(here: Viewed, folder: Path, tmp_path: Path) -> None:
    bash = await here.start()
    pid = await started(here, bash, "a double fork", tmp_path)
    client = HolderClient(folder, lambda *_: None, lambda: None)
    os.kill((await client.connect()).pid, signal.SIGKILL)
    client.close()
    await here.wait(bash, "exit")
    await eventually(lambda: gone(pid))


async def test_a_connection_of_nobody_breaks_nothing(here: Viewed, folder: Path) -> None:
    bash = await here.start()
    for line in (b"\n", b"{}\n", b'{"request": 1, "verb": "fly"}\n', b'{"request": "x", "verb": "take", "id": "none"}\n', b"x" * 400_000):
        reader, writer = await asyncio.open_unix_connection(str(folder / "holder.sock"))
        writer.write(line)
        with suppress(ConnectionError):
            writer.write_eof()
            answer = await reader.read()
            assert b"error" in answer or not answer
        writer.close()
    assert (await here.send(bash, "true")).outcome == "submitted"


async def test_a_program_that_cannot_start_says_why(here: Viewed, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF nothing")
    broken.chmod(0o755)
    await here.ask(asked.Define(by=BY, definition=Definition(id="broken", title="Broken", kind="agent", command=(str(broken),))))
    with pytest.raises(VoxbridgeError, match="cannot be started"):
        await here.start("broken")
    assert (await here.ask(asked.ListTerminals(by=BY))).terminals == ()

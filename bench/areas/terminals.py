"""Terminals: what a key, a flood, an idle shell, a killed service and a late viewer cost.

Programs run in real terminals; viewers are at the gateway's socket, as Studio is. What a browser takes to draw is not in these figures.
"""

from __future__ import annotations

import asyncio
import os
import pty
import statistics
import tempfile
import time
import tty
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import psutil

from bench import figures
from bench.areas.audio import Found, Say
from bench.clients.terminal import Terminals, Viewer
from bench.installed import installed
from bench.report import Figure, beside
from bench.stack import LIGHT, Stack, StackError, stack
from voxbridge.services.terminals.folder import place
from voxbridge.services.terminals.holder import holder
from voxbridge.shared.setting import PREFIX

KEYS: Final = 300
PACE_S: Final = 0.03
"""Seconds between two keys."""

FLOOD: Final = 64 * 1024 * 1024
"""Bytes of coloured listing whose reading is timed."""

IDLE: Final = 50
IDLE_S: Final = 20.0
KILLS: Final = 10
ATTACHED: Final = 40
BARE: Final = "a bare pseudo terminal in one process"
SERVICE: Final = "voxbridge.services.terminals"
LINE: Final = "\x1b[0m\x1b[01;34mdrwxr-xr-x\x1b[0m  2 root root 4096 Nov 29 00:31 \x1b[01;32msome-file-{}\x1b[0m\r\n"


async def terminals(quick: bool, say: Say) -> Found:
    """Measure over one product; its terminals end with it."""
    rows: list[Figure] = []
    detail: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="vxt-") as home:
        env = {"VOXBRIDGE_TERMINALS_DIR": str(Path(home) / "terminals")}
        try:
            async with stack((*LIGHT, "terminals"), greeting=False, extra=env) as product:
                fleet = Terminals(product.config.port)
                try:
                    for part in (_keys, _keys_in_a_flood, _flood, _attached, _idle):
                        say(f"terminals: {part.__name__.strip('_').replace('_', ' ')}")
                        found, about = await part(product, fleet, Path(home), quick)
                        rows += found
                        detail |= about
                finally:
                    await fleet.close()
        finally:
            if holder.stop(place(Path(home) / "terminals")):
                raise StackError("The holder of the terminals did not end.")
    say("terminals: killed")
    found, about = await _killed(quick)
    return [*rows, *found], detail | about, []


async def _keys(_: Stack, fleet: Terminals, __: Path, quick: bool) -> tuple[list[Figure], dict[str, Any]]:
    """Type into a shell, and wait for each key on the socket."""
    count = 60 if quick else KEYS
    shell = await fleet.start(name="keys")
    async with fleet.viewing() as viewer:
        channel = await viewer.attach(shell)
        alone = figures.series([await _echoed(viewer, channel) for _ in range(count)])
    await fleet.ask("DELETE", f"/{shell}")
    bare = figures.series(await asyncio.to_thread(_bare_echoes, count))
    what = "a key typed → its echo at a viewer, p50"
    note = f"{count} keys, one each {1_000 * PACE_S:g} ms, at the gateway's socket"
    first = Figure(area="terminals", what=what, key="terminals.key.p50", unit="ms", value=alone.p50, target=3, note=note)
    last = Figure(area="terminals", what="the same, p95", key="terminals.key.p95", unit="ms", value=alone.p95, target=10)
    return [beside(first, BARE, bare.p50), beside(last, BARE, bare.p95)], {"keys_ms": alone, "keys_bare_ms": bare}


async def _keys_in_a_flood(_: Stack, fleet: Terminals, __: Path, quick: bool) -> tuple[list[Figure], dict[str, Any]]:
    """Type into a shell while another terminal prints without end, and then end that."""
    count = 60 if quick else KEYS
    shell, other = await fleet.start(name="keys"), await fleet.start(name="flood")
    async with fleet.viewing() as viewer, fleet.viewing() as watcher:
        channel, seen = await viewer.attach(shell), await watcher.attach(other)
        await watcher.type(seen, b"while :; do seq 1 100000; done\r")
        await watcher.until(seen, lambda output: output.offset > 1_000_000)
        reading = asyncio.create_task(watcher.until(seen, lambda _: False))
        flooded = figures.series([await _echoed(viewer, channel) for _ in range(count)])
        reading.cancel()
        with suppress(asyncio.CancelledError, TimeoutError):
            await reading
        began = time.perf_counter()
        await watcher.type(seen, b"\x03")
        ended = await fleet.ask("POST", f"/{other}/wait", until="idle", timeout_s=20)
        obeyed = 1_000 * (time.perf_counter() - began)
    for one in (shell, other):
        await fleet.ask("DELETE", f"/{one}")
    if not ended["met"]:
        raise StackError("Ctrl-C did not end the flood.")
    what = "a key typed → its echo while another terminal floods, p95"
    found = [
        Figure(area="terminals", what=what, key="terminals.key.flood", unit="ms", value=flooded.p95, target=15),
        Figure(
            area="terminals",
            what="Ctrl-C in the flood → its shell is idle again",
            key="terminals.ctrl_c",
            unit="ms",
            value=round(obeyed, 1),
            target=200,
        ),
    ]
    return found, {"keys_beside_a_flood_ms": flooded}


async def _echoed(viewer: Viewer, channel: int) -> float:
    """Return the ms from a key to its echo; then take it back. Keys come as fast as from a fast typist."""
    await asyncio.sleep(PACE_S)
    began = time.perf_counter()
    await viewer.type(channel, b"x")
    await viewer.until(channel, lambda output: b"x" in bytes(output.data) and not output.keyframe)
    took = 1_000 * (time.perf_counter() - began)
    await viewer.type(channel, b"\x7f")
    await viewer.until(channel, lambda output: b"\x08" in bytes(output.data))
    return took


def _bare_echoes(count: int) -> list[float]:
    """Return the ms from each key to its echo by the shell of a pseudo terminal in this process."""
    pid, master = pty.fork()
    if pid == 0:
        os.execvp("bash", ["bash", "--norc", "--noprofile"])
    try:
        _read_until(master, b"$ ", b"# ")
        found = []
        for _ in range(count):
            time.sleep(PACE_S)
            began = time.perf_counter()
            os.write(master, b"x")
            _read_until(master, b"x")
            found.append(1_000 * (time.perf_counter() - began))
            os.write(master, b"\x7f")
            _read_until(master, b"\x08")
        return found
    finally:
        os.close(master)
        os.waitpid(pid, 0)


def _read_until(master: int, *wanted: bytes) -> None:
    held = b""
    while not any(one in held for one in wanted):
        held += os.read(master, 65_536)


async def _flood(product: Stack, fleet: Terminals, home: Path, quick: bool) -> tuple[list[Figure], dict[str, Any]]:
    """Write a large coloured listing into a terminal that somebody looks at, and into a bare one."""
    size = FLOOD // 8 if quick else FLOOD
    file = home / "listing"
    lines = "".join(LINE.format(number) for number in range(1_000)).encode()
    with file.open("wb") as out:
        for _ in range(size // len(lines)):
            out.write(lines)
    whole = file.stat().st_size
    shell = await fleet.start(name="listing")
    ours: list[float] = []
    bare: list[float] = []
    service = product.processes["terminals"]
    async with fleet.viewing() as viewer:
        channel = await viewer.attach(shell)
        for _ in range(3):
            bare.append(await asyncio.to_thread(_bare_read, file, whole))
            end = await _offset(fleet, shell) + whole
            began = time.perf_counter()
            await viewer.type(channel, f" cat {file}\r".encode())
            await viewer.until(channel, _ends_at(end))
            ours.append(whole / 1e6 / (time.perf_counter() - began))
    memory = service.memory_full_info().pss / 2**20
    await fleet.ask("DELETE", f"/{shell}")
    file.unlink()
    rate, plain = statistics.median(ours), statistics.median(bare)
    row = Figure(
        area="terminals",
        what="a program that floods: pseudo terminal → screen, ring, bus and viewer",
        key="terminals.flood",
        unit="MB/s",
        value=round(rate, 1),
        target=round(plain / 2, 1),
        aim="at least",
        note=f"{whole >> 20} MiB of coloured listing, three times in turn",
    )
    weight = Figure(area="terminals", what="memory of the service after the floods", unit="MiB", value=round(memory, 1))
    return [beside(row, BARE, round(plain, 1)), weight], {"flood_mb_s": ours, "flood_bare_mb_s": bare}


def _ends_at(offset: int) -> Any:
    return lambda output: output.offset + (0 if output.keyframe else len(output.data)) >= offset


async def _offset(fleet: Terminals, terminal: str) -> int:
    """Return how many bytes a terminal has written."""
    return next(int(one.get("offset", 0)) for one in (await fleet.ask("GET"))["terminals"] if one["id"] == terminal)


def _bare_read(file: Path, whole: int) -> float:
    """Return the MB/s at which one process reads a file from a pseudo terminal that `cat` writes it to."""
    pid, master = pty.fork()
    if pid == 0:
        tty.setraw(0)
        os.execvp("cat", ["cat", str(file)])
    began, taken = time.perf_counter(), 0
    try:
        while taken < whole:
            taken += len(os.read(master, 65_536))
        return taken / 1e6 / (time.perf_counter() - began)
    finally:
        os.close(master)
        os.waitpid(pid, 0)


@asynccontextmanager
async def _ticking(fleet: Terminals) -> AsyncIterator[str]:
    """Run a program that redraws its terminal a hundred times a second."""
    shell = await fleet.start(name="ticks")
    async with fleet.viewing() as viewer:
        channel = await viewer.attach(shell)
        await viewer.type(channel, b" n=0; while :; do n=$((n+1)); printf '\\r\\033[Ktick %07d ' $n; sleep 0.01; done\r")
        await viewer.until(channel, lambda output: b"tick 0" in bytes(output.data))
    try:
        yield shell
    finally:
        await fleet.ask("DELETE", f"/{shell}")


async def _attached(_: Stack, fleet: Terminals, __: Path, quick: bool) -> tuple[list[Figure], dict[str, Any]]:
    """Attach to a terminal that is being written to, and wait for its screen."""
    took = []
    async with _ticking(fleet) as shell:
        for _number in range(8 if quick else ATTACHED):
            async with fleet.viewing() as viewer:
                began = time.perf_counter()
                channel = await viewer.attach(shell)
                await viewer.until(channel, lambda output: output.keyframe)
                took.append(1_000 * (time.perf_counter() - began))
    found = figures.series(took)
    row = Figure(
        area="terminals",
        what="attaching to a terminal that is written to → its whole screen, p95",
        key="terminals.attach",
        unit="ms",
        value=found.p95,
        target=150,
        note=f"{found.count} viewers, one after the other",
    )
    return [row], {"attach_ms": found}


async def _killed(quick: bool) -> tuple[list[Figure], dict[str, Any]]:
    """Kill the service of a whole installation beside a program that writes, and wait for what it wrote since."""
    # Imported here, because machines that only read figures may lack the tests' packages.
    from tests.voice.model_server import ModelServer

    took: list[float] = []
    wrong = 0
    async with ModelServer() as models, installed({f"{PREFIX}MODELS_URL": models.url}) as product:
        fleet = Terminals(product.port)
        try:
            async with _ticking(fleet) as shell:
                for _number in range(2 if quick else KILLS):
                    service = await product.only("terminals")
                    async with fleet.viewing() as viewer:
                        channel = await viewer.attach(shell)
                        await viewer.until(channel, lambda output: not output.keyframe)
                        before = await _offset(fleet, shell)
                        began = time.perf_counter()
                        service.kill()
                        await viewer.until(channel, lambda output, before=before: output.offset > before)  # type: ignore[misc]
                        took.append(1_000 * (time.perf_counter() - began))
                        wrong += viewer.lost
        finally:
            await fleet.close()
    found = figures.series(took)
    rows = [
        Figure(
            area="terminals",
            what="`kill -9` of the service below `voxbridge up` → output at its viewer again, longest",
            key="terminals.killed",
            unit="ms",
            value=found.longest,
            target=1_000,
            note=f"{found.count} kills, p50 {found.p50:.0f} ms; the supervisor's wait is in it",
            needs="a terminals service standing by",
        ),
        Figure(
            area="terminals",
            what="bytes lost or doubled at the viewer over these kills",
            key="terminals.lost",
            unit="",
            value=wrong,
            target=0,
        ),
    ]
    return rows, {"killed_ms": found}


async def _idle(_: Stack, fleet: Terminals, home: Path, quick: bool) -> tuple[list[Figure], dict[str, Any]]:
    """Start shells that nobody uses, and weigh what keeps them: the service, the holder and the keepers, without the shells."""
    count = 10 if quick else IDLE
    before = _weight(home)
    shells = [await fleet.start("sh", name=f"idle {number}") for number in range(count)]
    after = _weight(home)
    used = _used(home)
    await asyncio.sleep(IDLE_S / 4 if quick else IDLE_S)  # the reading
    share = 100 * (_used(home) - used) / (IDLE_S / 4 if quick else IDLE_S)
    for shell in shells:
        await fleet.ask("DELETE", f"/{shell}")
    rows = [
        Figure(
            area="terminals",
            what=f"{count} idle shells: processor time of what keeps them",
            key="terminals.idle",
            unit="% of a core",
            value=round(share, 2),
            target=3.0,
        ),
        Figure(
            area="terminals",
            what="the same, memory a terminal",
            key="terminals.memory",
            unit="MiB",
            value=round((after - before) / count / 2**20, 2),
            target=5.0,
            note="proportional set size, without the shells",
        ),
    ]
    return rows, {}


def _keeping(home: Path) -> list[psutil.Process]:
    """Return the service, the holder and its keepers: one is told of the folder by a variable, the others by an argument."""
    folder = str(home / "terminals")
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            words = process.cmdline()
            if any(word.startswith(SERVICE) for word in words):
                mine = folder in words or process.environ().get("VOXBRIDGE_TERMINALS_DIR") == folder
                found += [process] if mine else []
    return found


def _weight(home: Path) -> int:
    return sum(int(one.memory_full_info().pss) for one in _keeping(home))


def _used(home: Path) -> float:
    return sum(times.user + times.system for times in (one.cpu_times() for one in _keeping(home)))

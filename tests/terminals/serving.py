"""A terminals service as a process of its own, killed and started again, and a viewer on the bus as the gateway is one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

from nats.aio.client import Client
from nats.aio.msg import Msg

from tests.eventually import eventually
from voxbridge.services.terminals import folder as folders
from voxbridge.services.terminals.holder import holder
from voxbridge.shared.bus.connection import connect_nats
from voxbridge.shared.embedded.child import die_with_parent
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.terminals import live
from voxbridge.shared.terminals import questions as asked
from voxbridge.shared.terminals.client import ask
from voxbridge.shared.terminals.model import LOCAL_HOST, Card

BY = "tester"


class Process:
    """The process of the service; `folder` is its data folder."""

    def __init__(self, folder: Path, nats_url: str, redis_url: str) -> None:
        self.folder = folders.place(folder / "terminals")
        given = {"VOXBRIDGE_NATS_URL": nats_url, "VOXBRIDGE_REDIS_URL": redis_url, "VOXBRIDGE_DATA_DIR": str(folder)}
        # What a developer's own shell does as it starts has no part in a test.
        self._env = os.environ | given | {"HOME": str(folder)}
        self._running: subprocess.Popen[bytes] | None = None
        self.kills = 0

    def start(self) -> None:
        """Start it."""
        command = [sys.executable, "-m", "voxbridge.services.terminals"]
        self._running = subprocess.Popen(command, env=self._env, stderr=subprocess.DEVNULL, preexec_fn=die_with_parent())  # noqa: PLW1509 - as the product's own children

    def stop(self, number: signal.Signals = signal.SIGKILL) -> None:
        """End it by a signal."""
        running, self._running = self._running, None
        if running is not None:
            self.kills += number == signal.SIGKILL
            running.send_signal(number)
            running.wait()


@contextmanager
def process(nats_url: str, redis_url: str, *, start: bool = True) -> Iterator[Process]:
    """Run the service in a folder of its own. What ran in its terminals ends with the test."""
    with tempfile.TemporaryDirectory(prefix="vxt-") as named:
        made = Process(Path(named), nats_url, redis_url)
        if start:
            made.start()
        try:
            yield made
        finally:
            made.stop()
            assert holder.stop(made.folder) == 0


class Viewer:
    """A viewer of terminals on the bus, who follows one of them as a browser does: by its snapshot and what comes after."""

    def __init__(self, nc: Client) -> None:
        self.nc = nc
        self.count = self.gaps = self.frames = 0

    async def ask(self, question: asked.Question[asked._A]) -> asked._A:
        """Ask; where no service answers, ask the next one."""
        found: list[asked._A] = []

        async def is_answered() -> bool:
            try:
                found.append(await ask(self.nc, LOCAL_HOST, question))
            except VoxbridgeError as error:
                if error.code != Code.UNAVAILABLE:
                    raise
            return bool(found)

        await eventually(is_answered)
        return found[0]

    async def start(self, definition: str = "bash") -> Card:
        """Start a terminal, once the service answers."""
        return await self.ask(asked.Start(by=BY, definition=definition))

    async def send(self, terminal: str, text: str) -> asked.Sent:
        """Send a text."""
        return await self.ask(asked.Send(by=BY, terminal=terminal, text=text))

    async def text(self, terminal: str, view: asked.View = "screen", lines: int = 40) -> str:
        """Read a terminal."""
        return (await self.ask(asked.Read(by=BY, terminal=terminal, view=view, lines=lines))).text

    async def follow(self, terminal: str) -> None:
        """Follow the output of a terminal."""

        async def output(message: Msg) -> None:
            frame = live.decode_output(message.data)
            self.frames += 1
            if frame.keyframe:
                self.count = frame.offset
            elif frame.offset == self.count:
                self.count += len(frame.data)
            elif frame.offset > self.count:
                self.gaps += 1
                self.count = frame.offset + len(frame.data)

        await self.nc.subscribe(live.output_subject(LOCAL_HOST, terminal), cb=output)
        with suppress(VoxbridgeError):
            self.count = (await ask(self.nc, LOCAL_HOST, asked.Attach(by=BY, terminal=terminal))).offset


@asynccontextmanager
async def viewing(nats_url: str) -> AsyncIterator[Viewer]:
    """Connect a viewer."""
    nc = await connect_nats(nats_url, "views", pending=1 << 20, timeout_s=5)
    try:
        yield Viewer(nc)
    finally:
        await nc.close()

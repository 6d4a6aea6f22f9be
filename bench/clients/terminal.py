"""A viewer of terminals for a measurement: orders, keys and frames over `/ws/terminals`, and terminals over REST."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx
from websockets.asyncio.client import ClientConnection, connect

from bench.stack import StackError
from voxbridge.shared.terminals import live

ANSWER_S: Final = 40.0


class Terminals:
    """Requests to the fleet of an installation."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._http = httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=ANSWER_S, trust_env=False)

    async def ask(self, method: str, path: str = "", **body: Any) -> Any:
        """Ask; raises `StackError` with the answer when it is refused."""
        answer = await self._http.request(method, f"/api/terminals{path}", json=body if method == "POST" else None)
        if answer.is_error:
            raise StackError(f"{method} /api/terminals{path} was refused: {answer.text[:300]}")
        return answer.json()

    async def start(self, definition: str = "bash", *, name: str = "") -> str:
        """Start a program; return the id of its terminal once it waits."""
        terminal = str((await self.ask("POST", definition=definition, name=name, directory="/"))["id"])
        if not (await self.ask("POST", f"/{terminal}/wait", until="idle", timeout_s=20))["met"]:
            raise StackError(f"{definition} did not show a prompt.")
        return terminal

    async def send(self, terminal: str, text: str) -> None:
        """Send a line."""
        await self.ask("POST", f"/{terminal}/send", text=text)

    @asynccontextmanager
    async def viewing(self) -> AsyncIterator[Viewer]:
        """Open a socket that sees and types."""
        ticket = (await self.ask("POST", "/tickets", role="type"))["ticket"]
        address = f"ws://127.0.0.1:{self._port}/ws/terminals?ticket={ticket}"
        async with connect(address, compression=None, max_size=None, max_queue=None) as socket:
            yield Viewer(socket)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()


class Viewer:
    """A socket to terminals. `lost` counts places at which output did not follow what came before it."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._ends: dict[int, int] = {}
        self.lost = 0

    async def attach(self, terminal: str) -> int:
        """Attach to a terminal; return the channel of its frames. Frames of others that come before are dropped."""
        await self._socket.send(json.dumps({"type": "attach", "id": terminal}))
        while True:
            message = await asyncio.wait_for(self._socket.recv(), ANSWER_S)
            if isinstance(message, bytes):
                self._took(message)
            elif (told := json.loads(message))["type"] == "attached":
                return int(told["channel"])
            elif told["type"] == "error":
                raise StackError(f"attaching was refused: {told['message']}")

    async def detach(self, terminal: str) -> None:
        """Detach from a terminal."""
        await self._socket.send(json.dumps({"type": "detach", "id": terminal}))

    async def type(self, channel: int, keys: bytes) -> None:
        """Type keys."""
        await self._socket.send(bytes([channel]) + keys)

    async def until(self, channel: int, wanted: Callable[[live.Output], bool]) -> live.Output:
        """Return the next frame of a channel that is wanted."""
        while True:
            message = await asyncio.wait_for(self._socket.recv(), ANSWER_S)
            if isinstance(message, bytes):
                number, output = self._took(message)
                if number == channel and wanted(output):
                    return output

    def _took(self, message: bytes) -> tuple[int, live.Output]:
        channel, output = message[0], live.decode_output(message[1:])
        if not output.keyframe:
            self.lost += output.offset != self._ends.get(channel, output.offset)
            self._ends[channel] = output.offset + len(output.data)
        else:
            self._ends[channel] = output.offset
        return channel, output

"""An HTTP server that sleeps while nobody asks for anything, and stops at once."""

from __future__ import annotations

import asyncio
import signal
import socket
import time

import httpx
import pytest
import uvicorn

from tests.eventually import eventually
from voxbridge.shared.service import http_server
from voxbridge.shared.service.http_server import HttpServer


async def _app(scope: object, receive: object, send: object) -> None:
    assert callable(send)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"here"})


@pytest.mark.parametrize("by", ["stop", "a signal"])
async def test_it_answers_and_stops_without_waiting_for_its_next_look(by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "TICK_S", 3_600.0)
    server = HttpServer(uvicorn.Config(_app, lifespan="off", log_config=None))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        await eventually(lambda: server.started)
        async with httpx.AsyncClient(trust_env=False) as client:
            answer = await client.get(f"http://127.0.0.1:{listening.getsockname()[1]}/")
        assert (answer.text, "date" in answer.headers) == ("here", True)
        begun = time.monotonic()
        if by == "stop":
            server.stop()
        else:
            server.handle_exit(signal.SIGTERM, None)
        server._captured_signals.clear()  # else uvicorn raises the signal again, in the process of the tests
        await serving
    assert time.monotonic() - begun < 60
    server.stop()  # once more, after its end

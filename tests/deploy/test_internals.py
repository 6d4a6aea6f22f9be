"""Private parts of libraries that an adapter of ours uses: pinned to a minor version, and read again by a person when they change.

A failure here names the adapter. Read what changed in the library, see that the adapter still holds (its tests are beside it), and write
the new digest.
"""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from google.genai.live import AsyncSession
from nats.aio.client import Client
from nats.aio.transport import TcpTransport
from nats.js.client import JetStreamContext
from openai.resources.realtime.realtime import AsyncRealtimeConnection
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.connection import Connection

REPOSITORY = Path(__file__).parents[2]
USED: dict[str, tuple[str, list[type | Callable[..., Any]], str]] = {
    "nats-py": (
        "voxbridge/shared/bus/client.py, stream_admin.py",
        [
            Client._send_ping,
            Client._attempt_reconnect,
            Client._process_msg,
            Client._process_connect_init,
            Client._send_publish,
            Client._flush_pending,
            TcpTransport,
            JetStreamContext._api_request,
        ],
        "2564fc76510d751c",
    ),
    "uvicorn": (
        "voxbridge/services/gateway/door/http_front.py, transport.py",
        [HttpToolsProtocol, WebSocketsSansIOProtocol],
        "71e20e8e0cdb5363",
    ),
    "websockets": (
        "voxbridge/services/voice/providers/realtime/websocket.py",
        [ClientConnection, Connection.send, Connection.data_received, Connection.connection_made, Connection.connection_lost],
        "7251206cc254a65e",
    ),
    "google-genai": ("voxbridge/services/voice/providers/realtime/gemini/connection.py", [AsyncSession.__init__], "35d16e82bb428ff1"),
    "openai": ("voxbridge/services/voice/providers/realtime/openai/wire.py", [AsyncRealtimeConnection.__init__], "1de7ebf18a8305bd"),
}


@pytest.mark.parametrize("library", USED)
def test_what_an_adapter_uses_of_a_library_is_as_it_was_read(library: str) -> None:
    adapter, parts, digest = USED[library]
    found = sha256("".join(map(inspect.getsource, parts)).encode()).hexdigest()[:16]
    assert found == digest, f"{library} {version(library)} has changed what {adapter} uses"


@pytest.mark.parametrize("library", USED)
def test_such_a_library_is_pinned_to_its_minor_version(library: str) -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    needs = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    named = [one for one in needs if one.split("=")[0].split(">")[0].split("[")[0] == library]
    minor = ".".join(version(library).split(".")[:2])
    assert named
    assert all(one.endswith(f"=={minor}.*") for one in named), named

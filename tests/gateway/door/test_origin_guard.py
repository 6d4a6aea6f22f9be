"""Foreign origins and hosts are refused before all other checks."""

from __future__ import annotations

from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.gateway.conftest import Running
from voxbridge.services.gateway.door.origin_guard import Guard
from voxbridge.shared.config import Config
from voxbridge.shared.errors import VoxbridgeError

CONFIG = Config(
    port=8420, allowed_origins="https://app.example.com, https://b.example:444", allowed_hosts="voice.example.com,odd.example:99"
)


def scope(host: str | None, origin: str | None = None, *, type: str = "websocket", method: str = "GET") -> dict[str, Any]:
    headers = [(name, value.encode()) for name, value in ((b"host", host), (b"origin", origin)) if value is not None]
    return {"type": type, "method": method, "headers": headers}


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1:8420", "localhost:8420", "[::1]:8420", "LOCALHOST:8420", "voice.example.com", "voice.example.com:8420", "odd.example:99"],
)
def test_own_and_listed_hosts_are_allowed(host: str) -> None:
    Guard(CONFIG).check(scope(host))


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "evil.example",
        "127.0.0.1",
        "127.0.0.1:80",
        "localhost:8421",
        "127.0.0.1:8420.evil.example",
        "odd.example",
        "xvoice.example.com",
        "voice.example.com.",
    ],
)
@pytest.mark.parametrize("type", ["websocket", "http"])
def test_other_hosts_are_refused(host: str | None, type: str) -> None:
    with pytest.raises(VoxbridgeError) as refused:
        Guard(CONFIG).check(scope(host, type=type))
    assert refused.value.as_dict()["code"] == "FORBIDDEN_ORIGIN"
    assert refused.value.field == "Host"


@pytest.mark.parametrize(
    "origin", [None, "http://127.0.0.1:8420", "http://localhost:8420", "https://app.example.com", "https://b.example:444"]
)
def test_no_origin_and_own_and_listed_origins_are_allowed(origin: str | None) -> None:
    Guard(CONFIG).check(scope("127.0.0.1:8420", origin))


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "",
        "https://evil.example",
        "http://127.0.0.1",
        "https://127.0.0.1:8420",
        "http://127.0.0.1:8421",
        "https://app.example.com.evil.example",
        "https://b.example",
    ],
)
def test_other_origins_are_refused_on_sockets_and_on_what_changes_things(origin: str) -> None:
    for asked in (scope("127.0.0.1:8420", origin), scope("127.0.0.1:8420", origin, type="http", method="POST")):
        with pytest.raises(VoxbridgeError) as refused:
            Guard(CONFIG).check(asked)
        assert refused.value.field == "Origin"
    Guard(CONFIG).check(scope("127.0.0.1:8420", origin, type="http"))


def test_two_origins_or_two_hosts_are_refused() -> None:
    for name in (b"origin", b"host"):
        asked = scope("127.0.0.1:8420", "http://127.0.0.1:8420")
        asked["headers"].append((name, b"http://127.0.0.1:8420" if name == b"origin" else b"127.0.0.1:8420"))
        with pytest.raises(VoxbridgeError):
            Guard(CONFIG).check(asked)


@pytest.mark.parametrize("headers", [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Host": "evil.example"}])
async def test_a_foreign_handshake_is_refused_with_403_before_the_upgrade(running: Running, headers: dict[str, str]) -> None:
    url = f"ws://127.0.0.1:{running.port}/ws/vox"
    host = headers.get("Host")
    options: dict[str, Any] = {"host": "127.0.0.1", "port": running.port} if host else {"additional_headers": headers}
    with pytest.raises(InvalidStatus) as refused:
        await connect(f"ws://{host}/ws/vox" if host else url, **options)
    response = refused.value.response
    assert response.status_code == 403
    assert response.body is not None
    assert b'"FORBIDDEN_ORIGIN"' in response.body
    assert not running.gateway.connections


async def test_a_foreign_host_is_refused_over_http_and_a_foreign_origin_where_it_could_change_something(running: Running) -> None:
    assert (await running.get("/api/sessions", headers={"Host": "evil.example"})).status_code == 403
    assert (await running.get("/healthz", headers={"Origin": "https://evil.example"})).status_code == 200


async def test_there_is_one_socket_and_it_is_at_its_own_path(running: Running) -> None:
    with pytest.raises(InvalidStatus) as refused:
        await connect(f"ws://127.0.0.1:{running.port}/ws/else")
    assert refused.value.response.status_code == 404

"""Keys over HTTP: permissions, refusals, and the absence of any key in plain text."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import stat
import urllib.parse
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.eventually import BOUND_S
from tests.gateway.conftest import Running, Serve, keys_of_voice, listening, publish
from tests.gateway.rest.test_app import held
from tests.ports import free_port
from voxbridge.services.gateway.door.admin_auth import Admins, is_loopback, owner_alone
from voxbridge.services.gateway.rest.bodies import BODY_LIMIT
from voxbridge.services.gateway.service import Gateway
from voxbridge.shared.agents import voices
from voxbridge.shared.clock import SystemClock
from voxbridge.shared.config import Config
from voxbridge.shared.embedded.nats_server import NatsServer
from voxbridge.shared.embedded.valkey_server import ValkeyServer
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.secrets.provider_keys import KEY_LIMIT
from voxbridge.shared.secrets.secret_file import LENGTH
from voxbridge.shared.service.process import connected

SECRET = "sk-only-in-this-test-0123456789abcdef"
PATH = "/api/config/keys"


@asynccontextmanager
async def gateway(nats_url: str, redis_url: str, folder: Path, **settings: Any) -> AsyncIterator[Running]:
    """Run a gateway with its own settings."""
    config = Config(port=free_port(), nats_url=nats_url, redis_url=redis_url, models_port=free_port(), data_dir=folder, **settings)
    publish(config)
    async with connected(config, "gateway", "gateway-test", SystemClock()) as resources:
        found = Running(Gateway(resources), config.port)
        serving = asyncio.create_task(found.gateway.serve())
        await listening(found)
        try:
            yield found
        finally:
            await found.gateway.drain()
            await asyncio.wait_for(serving, BOUND_S)


async def ask(door: Running, method: str, path: str = PATH, **options: Any) -> httpx.Response:
    async with httpx.AsyncClient(base_url=door.base, trust_env=False, timeout=BOUND_S) as client:
        return await client.request(method, path, **options)


async def sources(door: Running) -> dict[str, str]:
    return {name: one["source"] for name, one in (await ask(door, "GET")).json()["keys"].items()}


async def test_a_key_is_set_listed_used_and_forgotten_and_never_told(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await sources(running) == dict.fromkeys(("gemini", "anthropic", "openai", "assemblyai", "elevenlabs"), "none")
    answer = await ask(running, "POST", json={"provider": "gemini", "key": SECRET})
    assert (answer.status_code, answer.content) == (204, b"")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment")
    await keys_of_voice(running).tell()
    listed = await ask(running, "GET")
    assert listed.json()["keys"] == {
        "gemini": {"source": "stored", "variables": ["GEMINI_API_KEY", "GOOGLE_API_KEY"]},
        "anthropic": {"source": "none", "variables": ["ANTHROPIC_API_KEY"]},
        "openai": {"source": "environment", "variables": ["OPENAI_API_KEY"]},
        "assemblyai": {"source": "none", "variables": ["ASSEMBLYAI_API_KEY"]},
        "elevenlabs": {"source": "none", "variables": ["ELEVENLABS_API_KEY"]},
    }
    assert await keys_of_voice(running).get("gemini") == SECRET
    for _ in range(2):
        answer = await ask(running, "DELETE", f"{PATH}/gemini")
        assert (answer.status_code, answer.content) == (204, b"")
    assert (await sources(running))["gemini"] == "none"


async def test_the_status_follows_the_keys_and_counts_the_sessions(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    async def available() -> set[str]:
        told = (await running.get("/api/vox/status")).json()
        assert told["active_sessions"] == 1
        return {name for name in ("gemini", "claude", "openai", "local") if told[f"{name}_available"]}

    await held(running, 1)
    assert await available() == set()
    await ask(running, "POST", json={"provider": "anthropic", "key": SECRET})
    monkeypatch.setenv("GOOGLE_API_KEY", "of-the-environment")
    await keys_of_voice(running).tell()
    assert await available() == {"gemini", "claude"}
    await running.gateway.resources.redis.set("vx:key:openai", "damaged")
    await keys_of_voice(running).tell()
    assert await available() == {"gemini", "claude"}, "a key that cannot be opened is not a key"


async def test_the_sixteen_voices_are_listed_with_gender_and_style_whatever_is_away(running: Running) -> None:
    answer = await running.get("/api/vox/voices")
    assert answer.status_code == 200
    told = answer.json()
    assert told["local"] is None
    assert len(told["voices"]) == len({voice["id"] for voice in told["voices"]}) == 16
    assert told["voices"][:2] == [
        {"id": "Puck", "name": "Puck", "gender": "Male", "style": "Upbeat, lively"},
        {"id": "Charon", "name": "Charon", "gender": "Male", "style": "Informative, steady"},
    ]
    for voice in told["voices"]:
        assert set(voice) == {"id", "name", "gender", "style"}
        assert voice["gender"] in ("Male", "Female")
        assert voice["style"]
    assert tuple(voice["id"] for voice in told["voices"]) == tuple(voice.id for voice in voices.GEMINI)


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({"provider": "gemini", "key": "k" * (KEY_LIMIT + 1)}, "INVALID_ARGUMENT", "key"),
        ({"provider": "gemini", "key": ""}, "INVALID_ARGUMENT", "key"),
        ({"provider": "gemini", "key": f"{SECRET} {SECRET}"}, "INVALID_ARGUMENT", "key"),
        ({"provider": "gemini", "key": f"{SECRET}\u0000"}, "INVALID_ARGUMENT", "key"),
        ({"provider": "gemni", "key": SECRET}, "INVALID_ARGUMENT", "provider"),
        ({"provider": "gemini"}, "INVALID_ARGUMENT", "body"),
        ({"provider": "gemini", "key": [SECRET]}, "INVALID_ARGUMENT", "body"),
        ([SECRET], "INVALID_ARGUMENT", "body"),
        (SECRET.encode(), "INVALID_ARGUMENT", "body"),
        (b'{"provider": "gemini", "key": "\xff' + SECRET.encode() + b'"}', "INVALID_ARGUMENT", "body"),
        (b'{"x": ' + b"[" * 4_000, "INVALID_ARGUMENT", "body"),
        (b"", "INVALID_ARGUMENT", "body"),
        (b" " * (BODY_LIMIT + 1), "TOO_LARGE", "body"),
    ],
)
async def test_what_is_no_key_is_refused_and_not_repeated(running: Running, body: Any, code: str, field: str) -> None:
    answer = await ask(running, "POST", content=body if isinstance(body, bytes) else json.dumps(body))
    assert answer.status_code == 422
    told = answer.json()
    assert (told["code"], told["field"]) == (code, field)
    assert SECRET not in answer.text
    assert set((await sources(running)).values()) == {"none"}


async def test_a_body_and_a_key_of_just_the_limit_are_taken(running: Running) -> None:
    body = json.dumps({"provider": "openai", "key": "k" * KEY_LIMIT}).encode().ljust(BODY_LIMIT)
    assert (await ask(running, "POST", content=body)).status_code == 204
    assert await keys_of_voice(running).get("openai") == "k" * KEY_LIMIT


async def test_a_body_that_does_not_come_is_waited_for_a_bounded_time(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voxbridge.services.gateway.rest.bodies.BODY_S", 0.05)
    reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
    head = f"POST {PATH} HTTP/1.1\r\nHost: 127.0.0.1:{running.port}\r\nContent-Length: 100\r\n\r\n"
    writer.write(head.encode() + b'{"provider": "gemini"')
    async with asyncio.timeout(BOUND_S):
        assert (await reader.readline()).split()[1] == b"504"
    writer.close()
    await writer.wait_closed()


async def test_a_client_that_leaves_in_its_body_leaves_no_trace(running: Running, caplog: pytest.LogCaptureFixture) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", running.port)
    writer.write(f"POST {PATH} HTTP/1.1\r\nHost: 127.0.0.1:{running.port}\r\nContent-Length: 100\r\n\r\n{SECRET}".encode())
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    assert set((await sources(running)).values()) == {"none"}
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert SECRET not in caplog.text


async def test_pages_of_other_origins_change_nothing(running: Running) -> None:
    foreign = {"Origin": "https://evil.example"}
    for method, path in (("POST", PATH), ("DELETE", f"{PATH}/gemini")):
        answer = await ask(running, method, path, json={"provider": "gemini", "key": SECRET}, headers=foreign)
        assert (answer.status_code, answer.json()["code"]) == (403, "FORBIDDEN_ORIGIN")
    assert set((await sources(running)).values()) == {"none"}


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "[::1]", "localhost", "LOCALHOST"])
def test_who_reaches_a_gateway_on_loopback_is_its_owner(host: str, tmp_path: Path) -> None:
    config = Config(host=host, data_dir=tmp_path)
    assert is_loopback(host)
    Admins(config).check(None)
    assert list(tmp_path.iterdir()) == [], "no token is needed, and none is made"


@pytest.mark.parametrize(
    "settings",
    [
        {"host": "0.0.0.0"},
        {"host": "::"},
        {"host": ""},
        {"host": "192.168.1.5"},
        {"host": "voice.example.com"},
        {"host": "127.0.0.1.example.com"},
        {"allowed_hosts": "voice.example.com"},
        {"allowed_origins": "https://voice.example.com"},
    ],
)
def test_where_others_may_reach_it_a_token_is_asked_for(settings: dict[str, str], tmp_path: Path) -> None:
    config = Config(data_dir=tmp_path, **settings)  # type: ignore[arg-type]
    assert not owner_alone(config)
    admins = Admins(config)
    token = (tmp_path / "admin.token").read_text()
    assert len(token) == LENGTH
    assert stat.S_IMODE((tmp_path / "admin.token").stat().st_mode) == 0o600
    admins.check(f"Bearer {token}")
    admins.check(f"bearer  {token} ")
    for wrong in (None, "", token, "Bearer", "Bearer ", f"Basic {token}", f"Bearer {token}x", f"Bearer {token[:-1]}", "Bearer é"):
        with pytest.raises(VoxbridgeError) as refused:
            admins.check(wrong)
        assert (refused.value.code, refused.value.field) == (Code.UNAUTHENTICATED, "Authorization")
        assert token not in refused.value.message
    Admins(config).check(f"Bearer {token}")


def test_a_new_token_counts_at_once_and_without_one_nobody_may(tmp_path: Path) -> None:
    admins = Admins(Config(host="0.0.0.0", data_dir=tmp_path))
    file = tmp_path / "admin.token"
    old = file.read_text()
    file.write_text("n" * LENGTH)
    admins.check(f"Bearer {'n' * LENGTH}")
    for refused in (old, ""):
        with pytest.raises(VoxbridgeError, match="token is needed"):
            admins.check(f"Bearer {refused}")
    file.unlink()
    for refused in ("n" * LENGTH, ""):
        with pytest.raises(VoxbridgeError, match="token is needed"):
            admins.check(f"Bearer {refused}")


def test_a_token_that_others_may_read_lets_nobody_in_and_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "admin.token"
    file.write_text("n" * LENGTH)
    file.chmod(0o644)
    admins = Admins(Config(host="0.0.0.0", data_dir=tmp_path))
    assert "may be read by others (mode 0644)" in caplog.text
    with pytest.raises(VoxbridgeError, match="may be read by others"):
        admins.check(f"Bearer {'n' * LENGTH}")


async def test_a_gateway_that_others_reach_answers_401_without_the_token(nats_url: str, redis_url: str, tmp_path: Path) -> None:
    async with gateway(nats_url, redis_url, tmp_path, host="0.0.0.0") as door:
        token = (tmp_path / "admin.token").read_text()
        body = {"provider": "gemini", "key": SECRET}
        for method, path in (("GET", PATH), ("POST", PATH), ("DELETE", f"{PATH}/gemini")):
            for headers in ({}, {"Authorization": "Bearer wrong"}):
                answer = await ask(door, method, path, json=body, headers=headers)
                assert (answer.status_code, answer.json()["code"]) == (401, "UNAUTHENTICATED")
                assert answer.headers["WWW-Authenticate"] == "Bearer"
        twice = await ask(door, "POST", json=body, headers=[("Authorization", f"Bearer {token}"), ("Authorization", "Bearer wrong")])
        assert twice.status_code == 401
        assert await door.gateway.resources.redis.exists("vx:key:gemini") == 0
        assert (await door.get("/api/vox/status")).status_code == 401
        signed = {"Authorization": f"Bearer {token}"}
        assert (await ask(door, "POST", json=body, headers=signed)).status_code == 204
        assert (await ask(door, "GET", headers=signed)).json()["keys"]["gemini"]["source"] == "stored"
        assert (await ask(door, "DELETE", f"{PATH}/gemini", headers=signed)).status_code == 204


async def test_a_named_endpoint_has_a_key_too(nats_url: str, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    async with gateway(nats_url, redis_url, tmp_path, endpoints="my-own=http://127.0.0.1:1/v1") as door:
        assert (await ask(door, "POST", json={"provider": "my-own", "key": SECRET})).status_code == 204
        assert (await ask(door, "GET")).json()["keys"]["my-own"] == {"source": "stored", "variables": ["VOXBRIDGE_KEY_MY_OWN"]}


@pytest.mark.parametrize(
    ("content", "why"),
    [(None, "is not there: `voxbridge up`"), (b"no key", "does not hold 32 bytes in base64"), (b"\xff", "cannot be read")],
)
async def test_without_the_public_key_nothing_is_stored_and_that_is_said(running: Running, content: bytes | None, why: str) -> None:
    path = running.gateway.resources.config.vault_public_key_path
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    answer = await ask(running, "POST", json={"provider": "gemini", "key": SECRET})
    assert (answer.status_code, answer.json()["code"], answer.json()["retryable"]) == (503, "UNAVAILABLE", False)
    assert why in answer.json()["message"]
    assert (await sources(running))["gemini"] == "none"


async def test_the_gateway_works_without_the_key_that_opens(running: Running) -> None:
    key = running.gateway.resources.config.vault_key_path
    hidden = key.rename(key.with_suffix(".elsewhere"))
    assert (await ask(running, "POST", json={"provider": "gemini", "key": SECRET})).status_code == 204
    assert not key.exists()
    assert (await sources(running))["gemini"] == "stored"
    assert not hasattr(running.gateway.keys, "get")
    hidden.rename(key)
    assert await keys_of_voice(running).get("gemini") == SECRET


async def test_while_valkey_is_away_it_is_said(serve: Serve, nats_url: str, own_valkey: Callable[[], ValkeyServer]) -> None:
    valkey = own_valkey()
    door = await serve(nats_url, valkey.url)
    valkey.kill()
    for method, path in (("GET", PATH), ("POST", PATH), ("DELETE", f"{PATH}/gemini")):
        answer = await ask(door, method, path, json={"provider": "gemini", "key": SECRET})
        assert (answer.status_code, answer.json()["code"]) == (503, "UNAVAILABLE")
        assert SECRET not in answer.text
    valkey.start()


def shapes(secret: str) -> list[bytes]:
    """Return a secret in the forms in which it might be written."""
    raw = secret.encode()
    based = {base64.b64encode(raw[at:])[4:-4] for at in range(3)}
    return [raw, raw[::-1], raw.hex().encode(), raw.hex().upper().encode(), urllib.parse.quote(secret).encode(), *based]


def all_of(folder: Path) -> dict[Path, bytes]:
    """Return every file below a folder."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def test_a_key_is_nowhere_in_plain(
    serve: Serve,
    own_nats: Callable[[], NatsServer],
    own_valkey: Callable[[], ValkeyServer],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    nats, valkey = own_nats(), own_valkey()
    door = await serve(nats.url, valkey.url)
    redis = door.gateway.resources.redis
    answers = [
        await ask(door, "POST", json={"provider": "gemini", "key": SECRET}),
        await ask(door, "POST", json={"provider": "nobody", "key": SECRET}),
        await ask(door, "POST", json={"provider": "openai", "key": f"{SECRET} "}),
        await ask(door, "POST", json={"provider": "openai", "secret": SECRET}),
        await ask(door, "POST", content=SECRET),
        await ask(door, "PUT", json={"provider": "openai", "key": SECRET}),
        await ask(door, "GET"),
    ]
    assert [answer.status_code for answer in answers] == [204, 422, 422, 422, 422, 405, 200]
    sid = await held(door, 1)
    async with door.client() as client:
        await client.say({"type": "?"})
        await client.until("error")
    paths = (
        "/api/vox/status",
        "/api/vox/voices",
        "/metrics",
        "/readyz",
        "/openapi.json",
        f"/api/sessions/{sid}",
        f"/api/sessions/{sid}/events",
    )
    answers += [await door.get(path) for path in paths]
    assert await keys_of_voice(door).get("gemini") == SECRET, "it was there all the while"
    stored = [str(await redis.dump("vx:key:gemini")).encode(), str(await redis.get("vx:key:gemini")).encode()]
    log = [str(one).encode() async for one in door.gateway.log.read_all(sid)]
    assert len(log) > 3
    await redis.save()
    files = all_of(tmp_path)
    for name, control in (("nats", sid.encode()), ("valkey", b"vx:key:gemini")):
        assert [path for path, text in files.items() if name in str(path) and control in text], f"the files of {name} are looked at"
    assert {path.suffix for path in files} >= {".rdb", ".aof"}
    shown = [part for answer in answers for part in (answer.content, str(answer.headers).encode())]
    places: list[bytes] = [*shown, *stored, *log, caplog.text.encode(), repr(vars(door.gateway)).encode(), *files.values()]
    for shape in shapes(SECRET):
        assert not [place[:200] for place in places if shape in place]
    vault = door.gateway.resources.config.vault_key_path
    key = vault.read_bytes()
    assert [path for path, text in files.items() if key in text] == [vault], "nor is the vault key anywhere but in its file"

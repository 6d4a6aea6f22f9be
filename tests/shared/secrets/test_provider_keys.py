"""The keys of providers: a stored key overrides the environment's, is sealed, and takes effect at once; Valkey may be down for a minute."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from voxbridge.shared.agents.providers import variables
from voxbridge.shared.config import Config
from voxbridge.shared.embedded.valkey_server import ValkeyServer
from voxbridge.shared.errors import Code, Unavailable, VoxbridgeError
from voxbridge.shared.secrets.provider_keys import KEPT_S, KEY_LIMIT, Keys
from voxbridge.shared.secrets.secret_file import vault_key_file
from voxbridge.shared.secrets.vault import Vault, WrongKey

SECRET = "sk-of-the-test-0123456789"
OTHER = "sk-another-9876543210"


class Time:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


Make = Callable[..., Keys]


def vault_in(folder: Path) -> Vault:
    return Vault(vault_key_file(Config(data_dir=folder)))


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[Redis]:
    client = Redis.from_url(redis_url, decode_responses=True)
    yield client
    await client.aclose()


@pytest.fixture
def make(redis: Redis, tmp_path: Path) -> Make:
    """Make the keys of one process, each with the vault of the same folder."""

    def made(env: dict[str, str] | None = None, **options: object) -> Keys:
        return Keys(redis, vault_in(tmp_path), env or {}, **options)  # type: ignore[arg-type]

    return made


async def test_a_stored_key_goes_before_the_environments_and_is_seen_by_every_process_at_once(make: Make) -> None:
    gateway, voice = make({"GEMINI_API_KEY": OTHER}), make({"GEMINI_API_KEY": OTHER})
    assert await voice.get("gemini") == OTHER
    await gateway.set("gemini", SECRET)
    assert await voice.get("gemini") == SECRET
    await gateway.set("gemini", "sk-third")
    assert await voice.get("gemini") == "sk-third"
    await gateway.forget("gemini")
    await gateway.forget("gemini")
    assert await voice.get("gemini") == OTHER


@pytest.mark.parametrize(
    ("provider", "env", "key"),
    [
        ("gemini", {"GEMINI_API_KEY": "a", "GOOGLE_API_KEY": "b"}, "a"),
        ("gemini", {"GEMINI_API_KEY": " ", "GOOGLE_API_KEY": " b\n"}, "b"),
        ("anthropic", {"ANTHROPIC_API_KEY": "c", "OPENAI_API_KEY": "d"}, "c"),
        ("openai", {"ANTHROPIC_API_KEY": "c", "OPENAI_API_KEY": "d"}, "d"),
        ("my-own", {"VOXBRIDGE_KEY_MY_OWN": "e"}, "e"),
        ("openai", {}, ""),
    ],
)
async def test_the_environment_names_a_key_for_each_provider(make: Make, provider: str, env: dict[str, str], key: str) -> None:
    keys = make(env, endpoints=("my-own",))
    assert await keys.get(provider) == key
    assert (await keys.known())[provider] == ("environment" if key else "none")
    assert (await keys.usable())[provider] == bool(key)


async def test_what_is_known_says_where_each_key_is_from(make: Make) -> None:
    keys = make({"OPENAI_API_KEY": OTHER, "GEMINI_API_KEY": OTHER}, endpoints=("b", "a", "a"))
    await keys.set("gemini", SECRET)
    await keys.set("b", SECRET)
    streaming = {"assemblyai": "none", "elevenlabs": "none"}
    assert await keys.known() == {
        "gemini": "stored", "anthropic": "none", "openai": "environment", **streaming, "a": "none", "b": "stored",
    }  # fmt: skip


async def test_keys_are_made_of_settings(redis: Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOXBRIDGE_KEY_GROQ", OTHER)
    keys = Keys.of(Config(data_dir=tmp_path, endpoints="groq=https://groq/v1"), redis)
    assert await keys.get("groq") == OTHER
    assert variables("groq") == ("VOXBRIDGE_KEY_GROQ",)


@pytest.mark.parametrize("name", ["", "gemni", "Gemini", "vx:key:gemini", "g" * 100])
async def test_a_name_that_nobody_has_is_refused_with_those_that_there_are(make: Make, redis: Redis, name: str) -> None:
    keys = make()
    for use in (keys.get(name), keys.set(name, SECRET), keys.forget(name)):
        with pytest.raises(VoxbridgeError) as refused:
            await use
        assert (refused.value.code, refused.value.field) == (Code.INVALID_ARGUMENT, "provider")
        assert "gemini, anthropic, openai" in refused.value.message
        assert len(refused.value.message) < 300
    assert await redis.dbsize() == 0


async def test_a_key_has_bounds_and_what_is_refused_is_not_repeated(make: Make, redis: Redis, tmp_path: Path) -> None:
    keys = make()
    await keys.set("openai", "k" * KEY_LIMIT)
    assert await keys.get("openai") == "k" * KEY_LIMIT
    await redis.flushall()
    for bad in ("", " ", f"{SECRET}\n", f"a{SECRET} b", f"{SECRET}é", f"{SECRET}\x7f", SECRET + "k" * KEY_LIMIT):
        with pytest.raises(VoxbridgeError) as refused:
            await keys.set("openai", bad)
        assert (refused.value.code, refused.value.field) == (Code.INVALID_ARGUMENT, "key")
        assert SECRET not in refused.value.message
    assert await redis.dbsize() == 0


async def test_a_key_of_the_environment_that_cannot_be_one_is_not_used_and_said_once(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    keys = make({"GEMINI_API_KEY": f"{SECRET}\nX-Header: 1", "GOOGLE_API_KEY": OTHER, "OPENAI_API_KEY": "k" * (KEY_LIMIT + 1)})
    assert [await keys.get("gemini"), await keys.get("gemini"), await keys.get("openai")] == [OTHER, OTHER, ""]
    assert [record.getMessage().partition(" ")[0] for record in caplog.records] == ["GEMINI_API_KEY", "OPENAI_API_KEY"]
    assert SECRET not in caplog.text


async def test_one_record_does_not_open_in_the_place_of_another(make: Make, redis: Redis) -> None:
    keys = make()
    await keys.set("gemini", SECRET)
    await redis.copy("vx:key:gemini", "vx:key:openai")
    with pytest.raises(WrongKey, match="The stored key of openai cannot be used"):
        await keys.get("openai")
    assert (await keys.usable())["openai"] is False
    assert await keys.get("gemini") == SECRET


@pytest.mark.parametrize("raw", ["", "not base64!", base64.b64encode(b"short").decode(), "é"])
async def test_a_record_that_is_damaged_is_said_and_not_taken_for_none(make: Make, redis: Redis, raw: str) -> None:
    await redis.set("vx:key:gemini", raw)
    with pytest.raises(WrongKey, match="The stored key of gemini cannot be used"):
        await make({"GEMINI_API_KEY": OTHER}).get("gemini")


async def test_another_vault_key_is_a_typed_error_that_says_what_to_do(make: Make, redis: Redis, tmp_path: Path) -> None:
    await make().set("gemini", SECRET)
    foreign = Keys(redis, vault_in(tmp_path / "other"), {})
    with pytest.raises(WrongKey, match=r"there is no vault key at .* Set it again; the public key must be that of the vault key"):
        await foreign.get("gemini")
    vault_in(tmp_path / "other").seal(b"", name="n")
    with pytest.raises(WrongKey, match="sealed with another key"):
        await foreign.get("gemini")


async def test_a_key_is_in_no_repr_and_no_log_line(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    keys = make({"OPENAI_API_KEY": OTHER})
    await keys.set("gemini", SECRET)
    assert [await keys.get("gemini"), await keys.get("openai")] == [SECRET, OTHER]
    await keys.forget("gemini")
    assert [record.getMessage() for record in caplog.records] == ["The key of gemini was set.", "The stored key of gemini was forgotten."]
    assert not [shown for shown in (repr(keys), str(keys), caplog.text) if SECRET in shown or OTHER in shown]


async def test_while_valkey_is_away_the_last_known_key_counts_for_a_minute(own_valkey: Callable[[], ValkeyServer], tmp_path: Path) -> None:
    server, time = own_valkey(), Time()
    client = Redis.from_url(server.url, decode_responses=True, retry=Retry(NoBackoff(), 0))
    keys = Keys(client, vault_in(tmp_path), {"OPENAI_API_KEY": OTHER, "GEMINI_API_KEY": OTHER}, clock=time)
    await keys.set("gemini", SECRET)
    await keys.set("anthropic", SECRET)
    assert [await keys.get(name) for name in ("gemini", "anthropic", "openai")] == [SECRET, SECRET, OTHER]
    server.kill()
    time.now += KEPT_S
    assert [await keys.get(name) for name in ("gemini", "anthropic", "openai")] == [SECRET, SECRET, OTHER]
    streaming = {"assemblyai": False, "elevenlabs": False}
    assert await keys.usable() == {"gemini": True, "anthropic": True, "openai": True, **streaming}
    time.now += 0.001
    for name in ("gemini", "anthropic"):
        with pytest.raises(Unavailable, match="Valkey does not serve the keys of providers"):
            await keys.get(name)
    assert await keys.get("openai") == OTHER, "none was stored, and the environment is always there"
    for use in (keys.known(), keys.set("gemini", SECRET), keys.forget("gemini")):
        with pytest.raises(Unavailable):
            await use
    server.start()
    await client.connection_pool.disconnect()
    assert await keys.get("gemini") == SECRET
    await client.aclose()


async def test_a_process_that_begins_while_valkey_is_away_has_the_environments_keys(tmp_path: Path) -> None:
    client = Redis.from_url(f"unix://{tmp_path / 'nothing.sock'}", retry=Retry(NoBackoff(), 0))
    keys = Keys(client, vault_in(tmp_path), {"OPENAI_API_KEY": OTHER})
    assert await keys.get("openai") == OTHER
    with pytest.raises(Unavailable):
        await keys.get("gemini")
    await client.aclose()


async def test_valkey_that_stands_still_is_waited_for_a_bounded_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voxbridge.shared.secrets.provider_keys.ANSWER_S", 0.05)
    over = asyncio.Event()

    async def silent(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await over.wait()
        writer.close()

    server = await asyncio.start_unix_server(silent, tmp_path / "valkey.sock")
    client = Redis.from_url(f"unix://{tmp_path / 'valkey.sock'}")
    keys = Keys(client, vault_in(tmp_path), {"OPENAI_API_KEY": OTHER})
    try:
        assert await keys.get("openai") == OTHER
        with pytest.raises(Unavailable, match="TimeoutError"):
            await keys.known()
    finally:
        over.set()
        await client.aclose()
        server.close()

"""Rotation of the vault key in a running installation: nothing is lost, the old key is useless, and an interrupted rotation continues."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from redis.asyncio import Redis

from voxbridge.installation.rotation import rotate
from voxbridge.installation.secret_copies import write_secret
from voxbridge.shared.audio.recordings import DataKeys
from voxbridge.shared.audio.recordings import name as of_recording
from voxbridge.shared.config import Config
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.secrets import vault
from voxbridge.shared.secrets.provider_keys import Keys, SealedKeys
from voxbridge.shared.secrets.secret_file import SecretFile, vault_key_file
from voxbridge.shared.secrets.vault import OLD, Vault, WrongKey

SECRET = "sk-of-the-test-0123456789"
SID = "a" * 32


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[Redis]:
    client = Redis.from_url(redis_url, decode_responses=True)
    yield client
    await client.aclose()


def made(folder: Path) -> tuple[Config, tuple[Path, ...], Path]:
    """Return an installation: its settings, the private key files, and the public key file."""
    config = Config(data_dir=folder / "voice", vault_public_key_file=str(folder / "gateway.pub"))
    Vault(vault_key_file(config)).publish(config.vault_public_key_path)
    also = folder / "recordings.key"
    write_secret(also, config.vault_key_path.read_text())
    return config, (config.vault_key_path, also), config.vault_public_key_path


def raw_key(path: Path) -> bytes:
    return base64.b64decode(path.read_text().strip() + "=", altchars=b"-_")


def left(folder: Path) -> list[Path]:
    """Return the remaining files of old keys."""
    return list(folder.rglob(f"*{OLD}"))


async def test_what_was_sealed_before_opens_with_the_new_key_alone(redis: Redis, tmp_path: Path) -> None:
    config, opens, public = made(tmp_path)
    running, gateway, data_keys = Keys.of(config, redis), SealedKeys.of(config, redis), DataKeys.of(config, redis)
    await gateway.set("gemini", SECRET)
    of_session = await data_keys.make(SID)
    before = raw_key(opens[0])
    # The format of releases before the public half existed.
    old_form = base64.b64encode(vault.seal(before, b"sk-sealed-long-ago-12345", name="vx:key:openai")).decode()
    await redis.set("vx:key:openai", old_form)
    kept_s = await redis.ttl(of_recording(SID))
    assert await running.get("openai") == "sk-sealed-long-ago-12345"

    assert await rotate(redis, opens, (public,)) == 3

    assert raw_key(opens[0]) == raw_key(opens[1]) != before
    assert left(tmp_path) == []
    assert (await running.get("gemini"), await running.get("openai")) == (SECRET, "sk-sealed-long-ago-12345"), "no restart is needed"
    assert await data_keys.find(SID) == of_session
    assert 0 <= kept_s - await redis.ttl(of_recording(SID)) < 60, "what is to be forgotten is forgotten in time"
    robbed = SecretFile(tmp_path / "robbed.key", what="vault key", variable="V")
    write_secret(robbed.path, base64.urlsafe_b64encode(before).decode().rstrip("="))
    for name in ("vx:key:gemini", "vx:key:openai", of_recording(SID)):
        with pytest.raises(WrongKey):
            Vault(robbed).unseal(base64.b64decode(str(await redis.get(name))), name=name)
    await gateway.set("gemini", f"{SECRET}-2")
    assert await running.get("gemini") == f"{SECRET}-2"
    assert await rotate(redis, opens, (public,)) == 3, "and again"


async def test_a_rotation_that_was_cut_off_goes_on_where_it_was(redis: Redis, tmp_path: Path) -> None:
    config, opens, public = made(tmp_path)
    running, gateway = Keys.of(config, redis), SealedKeys.of(config, redis)
    await gateway.set("gemini", SECRET)
    old = opens[0].read_text()
    write_secret(opens[0].with_name(f"{opens[0].name}{OLD}"), old)
    write_secret(opens[0], "n" * 43)  # killed at this point
    assert await running.get("gemini") == SECRET, "both open meanwhile"
    assert await rotate(redis, opens, (public,)) == 1
    assert opens[0].read_text() == opens[1].read_text() == "n" * 43
    assert await running.get("gemini") == SECRET
    assert left(tmp_path) == []


async def test_a_record_that_nobody_can_open_stops_it_with_both_keys_in_place(redis: Redis, tmp_path: Path) -> None:
    config, opens, public = made(tmp_path)
    await SealedKeys.of(config, redis).set("gemini", SECRET)
    await redis.set("vx:key:openai", "damaged")
    with pytest.raises(VoxbridgeError, match=r"vx:key:openai cannot be opened.*Set that key again or forget it"):
        await rotate(redis, opens, (public,))
    assert await Keys.of(config, redis).get("gemini") == SECRET
    await redis.delete("vx:key:openai")
    await rotate(redis, opens, (public,))
    assert await Keys.of(config, redis).get("gemini") == SECRET


async def test_a_key_that_is_set_meanwhile_is_kept(redis: Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config, opens, public = made(tmp_path)
    gateway = SealedKeys.of(config, redis)
    await gateway.set("gemini", SECRET)
    original = redis.eval

    async def raced(script: str, keys: int, *rest: str) -> int:
        await gateway.set("gemini", f"{SECRET}-set-meanwhile")
        return int(await original(script, keys, *rest))

    monkeypatch.setattr(redis, "eval", raced)
    assert await rotate(redis, opens, (public,)) == 0
    assert await Keys.of(config, redis).get("gemini") == f"{SECRET}-set-meanwhile"

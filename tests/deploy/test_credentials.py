from __future__ import annotations

import asyncio
import re
import stat
from base64 import b64decode
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from fnmatch import fnmatchcase
from pathlib import Path

import nkeys
import pytest
import redis
from click.testing import CliRunner
from redis.asyncio import Redis
from redis.exceptions import AuthenticationError, NoPermissionError, ResponseError

from tests.eventually import BOUND_S
from tests.ports import free_port
from voxbridge.commands.admin import admin
from voxbridge.installation import credentials
from voxbridge.shared.bus.accounts import ADMIN
from voxbridge.shared.bus.permissions import CLOSED_KEYS, RIGHTS, VALKEY_KEYS, VALKEY_READ
from voxbridge.shared.config import Config
from voxbridge.shared.embedded.valkey_server import ValkeyServer
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.platform.secrets import Rule, SealedSecrets, Secrets
from voxbridge.shared.secrets import vault
from voxbridge.shared.secrets.sealed_box import Sealer
from voxbridge.shared.secrets.secret_file import vault_key_file
from voxbridge.shared.secrets.vault import Vault
from voxbridge.shared.service.health import valkey_condition
from voxbridge.shared.store.store import Note, Resumable, Store

KEY_MODULES = ("store/store", "service/health", "secrets/provider_keys", "audio/recordings")
"""Modules that name keys of Valkey."""


BEYOND = (
    ("KEYS", "*"),
    ("RANDOMKEY",),
    ("FUNCTION", "LOAD", "REPLACE", "#!lua name=f\nserver.register_function('f', function() return 1 end)"),
    ("FUNCTION", "FLUSH"),
    ("SCRIPT", "FLUSH"),
    ("PUBLISH", "c", "m"),
    ("FLUSHALL",),
    ("CONFIG", "GET", "*"),
    ("ACL", "LIST"),
    ("MONITOR",),
)
"""Commands that no service has: they tell of others' keys, change what others run, or reach all of Valkey."""


def made(folder: Path) -> list[str]:
    return credentials.make(folder, sync_interval="always", max_file_store="1GB")


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_every_user_gets_a_seed_of_its_own_once(tmp_path: Path) -> None:
    assert made(tmp_path) == [ADMIN, *RIGHTS]
    before = files(tmp_path)
    assert len({before[f"{name}/nats.seed"] for name in credentials.NAMES}) == len(credentials.NAMES)
    assert made(tmp_path) == []
    after = files(tmp_path)
    assert {name for name in before if after[name] != before[name]} == {"valkey/users.acl"}, "nobody's password is another one"
    assert set(after) == set(before)


def test_a_user_that_a_new_release_adds_gets_a_seed_and_a_password(tmp_path: Path) -> None:
    made(tmp_path)
    before = files(tmp_path)
    for path in (tmp_path / "tools").iterdir():
        path.unlink()
    assert made(tmp_path) == ["tools"]
    after = files(tmp_path)
    for file in ("redis.password", "nats.seed"):
        assert after[f"tools/{file}"] != before[f"tools/{file}"]
        assert after[f"voice/{file}"] == before[f"voice/{file}"]


def test_the_one_password_of_an_older_release_becomes_one_for_each(tmp_path: Path) -> None:
    made(tmp_path)
    for name in credentials.NAMES:
        file = tmp_path / name / "redis.password"
        file.chmod(0o600)
        file.write_text("everybody's")
    made(tmp_path)
    after = files(tmp_path)
    assert len({after[f"{name}/redis.password"] for name in credentials.NAMES}) == len(credentials.NAMES)
    made(tmp_path)
    assert {name: text for name, text in files(tmp_path).items() if name != "valkey/users.acl"} == {
        name: text for name, text in after.items() if name != "valkey/users.acl"
    }


def vault_of(folder: Path, name: str) -> Vault:
    return Vault(vault_key_file(Config(vault_key_file=str(folder / name / "vault.key"))))


def test_those_who_open_share_the_vault_key_and_the_gateway_has_its_public_half_and_the_token(tmp_path: Path) -> None:
    made(tmp_path)
    found = files(tmp_path)
    assert {name for name in found if name.endswith("vault.key")} == {f"{name}/vault.key" for name in ("voice", "recordings")}
    assert found["voice/vault.key"] == found["recordings/vault.key"] != found["gateway/admin.token"]
    assert {name for name in found if name.endswith("admin.token")} == {"gateway/admin.token"}
    assert {name for name in found if name.endswith("vault.pub")} == {"gateway/vault.pub"}
    sealed = Sealer(tmp_path / "gateway" / "vault.pub", variable="V").seal(b"secret", name="n")
    assert vault_of(tmp_path, "voice").unseal(sealed, name="n") == vault_of(tmp_path, "recordings").unseal(sealed, name="n") == b"secret"
    (tmp_path / "voice" / "vault.key").unlink()
    made(tmp_path)
    after = files(tmp_path)
    for name in ("voice/vault.key", "recordings/vault.key", "gateway/vault.pub"):
        assert after[name] == found[name]


def test_a_gateway_that_an_earlier_release_gave_the_vault_key_loses_it_and_what_was_sealed_with_it_opens(tmp_path: Path) -> None:
    made(tmp_path)
    key = (tmp_path / "voice" / "vault.key").read_bytes()
    for name in ("voice", "recordings"):
        (tmp_path / name / "vault.key").unlink()
    (tmp_path / "gateway" / "vault.pub").unlink()
    (tmp_path / "gateway" / "vault.key").write_bytes(key)
    (tmp_path / "gateway" / "vault.key").chmod(0o400)
    sealed = vault.seal(b64decode(key + b"=", altchars=b"-_"), b"secret", name="n")
    made(tmp_path)
    assert not (tmp_path / "gateway" / "vault.key").exists()
    assert (tmp_path / "voice" / "vault.key").read_bytes() == (tmp_path / "recordings" / "vault.key").read_bytes() == key
    assert vault_of(tmp_path, "voice").unseal(sealed, name="n") == b"secret"


def test_the_servers_are_told_public_keys_and_digests_and_no_secret(tmp_path: Path) -> None:
    made(tmp_path)
    found = files(tmp_path)
    told = b"".join(found[name] for name in found if name.startswith(("nats/", "valkey/")))
    for name in credentials.NAMES:
        assert found[f"{name}/nats.seed"] not in told
        assert found[f"{name}/redis.password"] not in told
        assert credentials.public_key(tmp_path / name / "nats.seed").encode() in told


def test_only_their_owner_reads_the_secrets(tmp_path: Path) -> None:
    made(tmp_path)
    for path in tmp_path.rglob("*"):
        mode = stat.S_IMODE(path.stat().st_mode)
        if path.is_dir():
            assert mode == 0o700, path
        else:
            assert mode == (0o444 if path.parent.name in ("nats", "valkey") else 0o400), path


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "voice").write_text("in the way")
    with pytest.raises(VoxbridgeError, match=r"voice cannot be written: file exists"):
        made(tmp_path)


def test_the_command_says_who_is_new(tmp_path: Path) -> None:
    run = CliRunner().invoke
    assert (
        run(admin, ["credentials", str(tmp_path)]).output
        == "New users: admin, gateway, voice, tools, knowledge, awareness, terminals, recordings.\n"
    )
    assert run(admin, ["credentials", str(tmp_path)]).output == "Every user has its credentials.\n"


def test_a_seed_signs_as_its_public_key_says(tmp_path: Path) -> None:
    made(tmp_path)
    pair = nkeys.from_seed(bytearray((tmp_path / "voice" / "nats.seed").read_bytes()))
    assert pair.public_key.decode() == credentials.public_key(tmp_path / "voice" / "nats.seed")
    assert pair.verify(b"nonce", pair.sign(b"nonce"))


async def test_valkey_lets_the_services_use_their_keys_and_nothing_that_empties_or_stops_it(tmp_path: Path) -> None:
    made(tmp_path)
    port, program = free_port(), ValkeyServer(tmp_path / "unused").command()[0]
    configuration = credentials.VALKEY_CONFIGURATION.replace("/etc/voxbridge", str(tmp_path / "valkey")).replace("/store", str(tmp_path))
    file = tmp_path / "valkey.conf"
    file.write_text(configuration.replace("bind * -::*", "bind 127.0.0.1").replace("port 6379", f"port {port}"))
    passwords = {name: (tmp_path / name / "redis.password").read_text() for name in credentials.NAMES}
    password = passwords["voice"]
    async with running(program, file):
        with redis.Redis(port=port, username="gateway", password=passwords["gateway"]) as gateway:
            assert gateway.set("vx:key:gemini", "sealed")
        for name in ("tools", "admin"):
            with redis.Redis(port=port, username=name, password=passwords[name]) as other:
                assert other.set("vx:functions", "[]")
                for command in ("GET", "DUMP", "DEL", "EXISTS"):
                    with pytest.raises(redis.exceptions.NoPermissionError):
                        other.execute_command(command, "vx:key:gemini")
                with pytest.raises(redis.exceptions.NoPermissionError):
                    other.set("vx:key:gemini", "another")
            with redis.Redis(port=port, username="gateway", password=passwords[name]) as thief, pytest.raises(AuthenticationError):
                thief.ping()
        with redis.Redis(port=port, username="voice", password=password) as service:
            assert service.set("vx:datakey:{a}", "sealed")
        with redis.Redis(port=port, username="recordings", password=passwords["recordings"]) as reader:
            assert reader.ping()
            assert reader.get("vx:datakey:{a}") == b"sealed"
            others = ("GET", "vx:key:gemini"), ("GET", "vx:sessions"), ("SCAN", "0"), ("PUBLISH", "c", "m"), ("CLIENT", "LIST"), ("INFO",)
            for refused in (("SET", "vx:datakey:{a}", "1"), ("DEL", "vx:datakey:{a}"), ("EXPIRE", "vx:datakey:{a}", "1"), *others):
                with pytest.raises(redis.exceptions.NoPermissionError):
                    reader.execute_command(*refused)
        with redis.Redis(port=port, username="admin", password=passwords["admin"]) as eraser:
            for command in ("GET", "DUMP", "EXISTS"):
                with pytest.raises(redis.exceptions.NoPermissionError):
                    eraser.execute_command(command, "vx:datakey:{a}")
            assert eraser.delete("vx:datakey:{a}") == 1
            assert eraser.bgrewriteaof()
        with redis.Redis(port=port, username="voice", password=password) as service:
            assert service.get("vx:key:gemini") == b"sealed"
            assert service.set("vx:lease:{a}", "w")
            assert service.register_script("return redis.call('GET', KEYS[1])")(keys=["vx:lease:{a}"]) == b"w"
            service.pipeline(transaction=True).set("vx:term:{a}", 1).set("vx:term:{b}", 2).execute()
            assert service.info("memory")["maxmemory"] == 512 * 1024 * 1024
            for refused in (("SET", "other", "1"), ("FLUSHALL",), ("CONFIG", "GET", "*"), ("SHUTDOWN",), ("KEYS", "*"), ("ACL", "LIST")):
                with pytest.raises(redis.exceptions.NoPermissionError):
                    service.execute_command(*refused)
        with redis.Redis(port=port, username="health", password="any") as probe:
            assert probe.execute_command("PING")
            with pytest.raises(redis.exceptions.NoPermissionError):
                probe.get("vx:lease:{a}")
        with redis.Redis(port=port) as stranger, pytest.raises(redis.exceptions.AuthenticationError):
            stranger.ping()
    async with running(program, file):
        with redis.Redis(port=port, username="voice", password=password, decode_responses=True) as service:
            assert service.mget("vx:lease:{a}", "vx:term:{a}", "vx:term:{b}") == ["w", "1", "2"], (
                "what it kept is read back, transactions too"
            )


def keys_that_there_are() -> set[str]:
    root = Path(__file__).parents[2]
    sources = "".join((root / "voxbridge" / "shared" / f"{module}.py").read_text() for module in KEY_MODULES)
    named = {f"{key}x" if key.endswith(":") else key for key in re.findall(r'"(vx:[a-z:]+)', sources)}
    assert {"vx:lease:x", "vx:sessions", "vx:probe", "vx:key:x", "vx:datakey:x"} <= named
    return named


def test_every_key_is_somebodys_and_none_that_is_closed_is_of_tools_or_the_administrator() -> None:
    """A new key is refused to everybody until `voxbridge/shared/bus/permissions.py` lists it."""
    for key in keys_that_there_are():
        holders = {name for name, patterns in VALKEY_KEYS.items() if any(fnmatchcase(key, pattern) for pattern in patterns)}
        assert holders, key
        if any(fnmatchcase(key, pattern) for pattern in CLOSED_KEYS):
            assert holders <= {"gateway", "voice"}, key


@pytest.mark.parametrize("name", VALKEY_KEYS)
async def test_a_user_of_valkey_reads_and_writes_its_own_keys_and_nobody_elses(name: str, tmp_path: Path) -> None:
    async with valkey(tmp_path) as connect, connect(name) as client:
        for key in sorted(keys_that_there_are()):
            writes = any(fnmatchcase(key, pattern) for pattern in VALKEY_KEYS[name])
            reads = writes or any(fnmatchcase(key, pattern) for pattern in VALKEY_READ.get(name, ()))
            for may, command in ((writes, ("DEL", key)), (writes, ("SET", key, "x")), (reads, ("GET", key)), (reads, ("EXISTS", key))):
                if not may and command[0] == "DEL" and name == ADMIN:
                    continue  # to erase a session, it deletes keys that it may not read
                try:
                    await client.execute_command(*command)  # type: ignore[no-untyped-call]
                except NoPermissionError:
                    assert not may, (name, command)
                else:
                    assert may, (name, command)
            for told in (*(() if name == ADMIN else (("SCAN", "0"),)), *BEYOND):
                with pytest.raises(NoPermissionError):
                    await client.execute_command(*told)  # type: ignore[no-untyped-call]
            with pytest.raises(ResponseError, match="No permissions"):
                await client.eval("return redis.call('SET', 'vx:unheard:of', 'x')", 0)


async def test_with_its_own_rights_each_service_does_all_that_it_does_in_valkey(tmp_path: Path) -> None:
    note = Note(note_id="a.1", text="milk", ts=1)
    async with AsyncExitStack() as connected:
        connect = await connected.enter_async_context(valkey(tmp_path))
        one, two, three, four = [await connected.enter_async_context(connect(name)) for name in ("gateway", "voice", "tools", "admin")]
        gateway, voice, tools, admin = Store(one), Store(two), Store(three), Store(four)
        await tools.publish_functions([])
        assert await tools.add_note("local", note)
        assert await gateway.functions() == await voice.functions() == await tools.functions() == ()
        await gateway.gateway_lives("g")
        assert await voice.gateways_alive(["g"]) == [True]
        await gateway.keep_resumable("a", Resumable(resume_hash="h", mode="local"))
        assert await gateway.resumable("a") is not None
        await gateway.session_opened("a", 1)
        await gateway.add_to_index({"a": 1}, {"a": 1})
        await gateway.index_built()
        assert await gateway.index_is_whole()
        assert await gateway.count_call("t", keep_s=9) == 1
        await voice.worker_listens("w", 1)
        assert await voice.acquire_lease("a", "w") == 1
        assert await voice.renew_leases(["a"], "w") == []
        assert (await gateway.held(["a"]), await gateway.renewed(["a"], within_ms=60_000)) == ([True], [True])
        assert await voice.held_by("w") == await gateway.live_sessions() == ["a"]
        assert await voice.hand_over_lease("a", "w", "v")
        assert await voice.handed_lease("a", "v") == 2
        assert await voice.seize_lease("a", "v", "w") == 3
        await voice.release_lease("a", "w")
        assert await voice.orphans(10) == await admin.orphans(10) == ["a"]
        await voice.keep_handle("a", "handle", 9)
        assert await voice.handle("a") == "handle"
        await voice.session_closed("a")
        assert [sid for sid, _ in await gateway.recent_sessions(limit=5)] == ["a"]
        assert await admin.held(["a"]) == [False]
        await admin.erase("a")
        assert await admin.notes_from(["a"]) == await tools.noted_from(["a"]) == [("local", "a.1")]
        assert await admin.forget_notes([("local", "a.1")]) == 1
        assert await tools.notes("local") == []
        await gateway.gateway_gone("g")
        for client in (one, two, three, four):
            assert (await valkey_condition(client)).state == "ok"


async def test_the_gateway_sets_secrets_that_the_tools_alone_read_and_nobody_else_reaches(tmp_path: Path) -> None:
    async with AsyncExitStack() as connected:
        connect = await connected.enter_async_context(valkey(tmp_path))
        clients = {
            name: await connected.enter_async_context(connect(name)) for name in ("gateway", "tools", "voice", "knowledge", "awareness")
        }
        public = Config(secrets_public_key_file=str(tmp_path / "gateway" / credentials.SECRETS_PUBLIC_FILE))
        private = Config(secrets_key_file=str(tmp_path / "tools" / credentials.SECRETS_FILE))
        sealed, opened = SealedSecrets.of(public, clients["gateway"]), Secrets.of(private, clients["tools"])
        for name in ("KEPT", "GONE"):
            await sealed.set("shop", "live", name, "a-value-that-is-secret", Rule(hosts=("api.shop.example",)), now=1)
        await sealed.erase("shop", "live", "GONE")
        assert [one.name for one in await sealed.known("shop")] == ["KEPT"]
        assert {name: one.value for name, one in (await opened.opened("shop", "live")).items()} == {"KEPT": "a-value-that-is-secret"}
        key = "vx:secret:{shop}:live"
        refused = [("gateway", "HGETALL"), ("tools", "DEL"), *((name, "HGETALL") for name in ("voice", "knowledge", "awareness"))]
        for name, command in refused:
            with pytest.raises(NoPermissionError):
                await clients[name].execute_command(command, key)  # type: ignore[no-untyped-call]
        with pytest.raises(NoPermissionError):
            await clients["tools"].hset(key, "KEPT", "another")


@asynccontextmanager
async def valkey(folder: Path) -> AsyncIterator[Callable[[str], Redis]]:
    """Run a Valkey with the users of a new installation; what is yielded connects as one of them."""
    made(folder)
    port = free_port()
    configuration = credentials.VALKEY_CONFIGURATION.replace("/etc/voxbridge", str(folder / "valkey")).replace("/store", str(folder))
    (folder / "valkey.conf").write_text(configuration.replace("bind * -::*", "bind 127.0.0.1").replace("port 6379", f"port {port}"))

    def connect(name: str) -> Redis:
        return Redis(port=port, username=name, password=(folder / name / "redis.password").read_text(), decode_responses=True)

    async with running(ValkeyServer(folder / "unused").command()[0], folder / "valkey.conf"):
        yield connect


@asynccontextmanager
async def running(program: str, configuration: Path) -> AsyncIterator[None]:
    server = await asyncio.create_subprocess_exec(program, str(configuration), stdout=asyncio.subprocess.PIPE, cwd=configuration.parent)
    try:
        assert server.stdout is not None
        async with asyncio.timeout(BOUND_S):
            while b"Ready to accept connections" not in await server.stdout.readline():
                assert server.returncode is None
        yield
    finally:
        server.terminate()
        await server.communicate()

"""`voxbridge keys` against a running gateway: it reads a key from standard input, and never prints one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner, Result

from tests.eventually import BOUND_S
from tests.gateway.conftest import Running, keys_of_voice, listening, publish
from tests.ports import free_port
from voxbridge.cli import cli
from voxbridge.installation import runtime
from voxbridge.installation.preflight import FolderLock
from voxbridge.services.gateway.service import Gateway
from voxbridge.shared.agents.providers import PROVIDERS
from voxbridge.shared.clock import SystemClock
from voxbridge.shared.config import Config
from voxbridge.shared.embedded.nats_server import NatsServer
from voxbridge.shared.embedded.valkey_server import ValkeyServer
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.secrets.provider_keys import KEY_LIMIT
from voxbridge.shared.service.process import connected
from voxbridge.supervisor import up
from voxbridge.supervisor.probes import Probes

SECRET = "sk-only-in-this-test-0123456789abcdef"


def at_once(*arguments: str, given: str = "") -> Result:
    return CliRunner().invoke(cli, ["keys", *arguments], input=given)


async def run(*arguments: str, given: str = "") -> Result:
    """Run the command in a thread, since its gateway runs in this one."""
    return await asyncio.to_thread(at_once, *arguments, given=given)


@pytest.fixture
async def door(nats_url: str, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Running]:
    """A gateway that requires the token, at the address in the command's settings."""
    for name in [one for names in PROVIDERS.values() for one in names]:
        monkeypatch.delenv(name, raising=False)
    config = Config(
        host="0.0.0.0", port=free_port(), models_port=free_port(), nats_url=nats_url, redis_url=redis_url, data_dir=tmp_path / "data"
    )
    for name, value in config.as_env().items():
        monkeypatch.setenv(name, value)
    publish(config)
    async with connected(config, "gateway", "gateway-test", SystemClock()) as resources:
        found = Running(Gateway(resources), config.port)
        serving = asyncio.create_task(found.gateway.serve())
        await listening(found)
        yield found
        await found.gateway.drain()
        await asyncio.wait_for(serving, BOUND_S)


async def test_a_key_is_set_from_standard_input_listed_and_forgotten(door: Running) -> None:
    done = await run("set", "gemini", given=f"{SECRET}\n")
    assert (done.exit_code, done.output) == (0, "The key of gemini is stored.\n")
    assert await keys_of_voice(door).get("gemini") == SECRET
    listed = await run("ls")
    rows = [line.split() for line in listed.output.splitlines()]
    assert rows == [
        ["provider", "key", "variable"],
        ["gemini", "stored", "GEMINI_API_KEY", "or", "GOOGLE_API_KEY"],
        ["anthropic", "none", "ANTHROPIC_API_KEY"],
        ["openai", "none", "OPENAI_API_KEY"],
        ["assemblyai", "none", "ASSEMBLYAI_API_KEY"],
        ["elevenlabs", "none", "ELEVENLABS_API_KEY"],
    ]
    as_json = json.loads((await run("ls", "--json")).output)
    assert as_json["gemini"] == {"source": "stored", "variables": ["GEMINI_API_KEY", "GOOGLE_API_KEY"]}
    gone = await run("forget", "gemini")
    assert (gone.exit_code, gone.output) == (0, "No key of gemini is stored.\n")
    assert await keys_of_voice(door).get("gemini") == ""


async def test_at_a_terminal_the_key_is_asked_for_and_not_shown(door: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voxbridge.commands.keys.at_a_terminal", lambda: True)
    done = await run("set", "openai", given=f"{SECRET}\n")
    assert (done.exit_code, SECRET in done.output) == (0, False)
    assert "Key of openai: " in done.output
    assert await keys_of_voice(door).get("openai") == SECRET


async def test_a_key_is_never_an_argument_and_not_repeated(door: Running) -> None:
    for arguments in (("set", "gemini", SECRET), ("set", "gemini", f"--key={SECRET}")):
        refused = await run(*arguments, given=f"{SECRET}\n")
        assert refused.exit_code == 2
        assert SECRET not in refused.output
    assert await keys_of_voice(door).get("gemini") == ""


@pytest.mark.parametrize(
    ("arguments", "given", "words"),
    [
        (("set", "gemini"), "", "this one is empty"),
        (("set", "gemini"), f"{SECRET} {SECRET}", "without spaces"),
        (("set", "gemini"), "k" * (KEY_LIMIT + 1), f"A key has {KEY_LIMIT} characters at most"),
        (("set", "gemini"), "k" * 100_000, "The body has more than"),
        (("set", "gemni"), SECRET, "keys are kept for gemini, anthropic, openai"),
        (("forget", "a/b?c"), "", "Not Found"),
    ],
)
async def test_what_the_gateway_refuses_is_one_line_and_no_key(door: Running, arguments: tuple[str, ...], given: str, words: str) -> None:
    refused = await run(*arguments, given=given)
    assert isinstance(refused.exception, VoxbridgeError)
    message = refused.exception.message
    assert words in message
    assert SECRET not in message
    assert "\n" not in message


async def test_with_another_token_nothing_is_told(door: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other.token"
    other.write_text("n" * 43)
    other.chmod(0o600)
    monkeypatch.setenv("VOXBRIDGE_ADMIN_TOKEN_FILE", str(other))
    refused = await run("ls")
    assert isinstance(refused.exception, VoxbridgeError)
    assert (refused.exception.code, "VOXBRIDGE_ADMIN_TOKEN_FILE" in refused.exception.message) == (Code.UNAUTHENTICATED, True)


async def test_the_gateway_of_the_data_folder_is_found_on_whatever_port(door: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    config = door.gateway.resources.config
    monkeypatch.setenv("VOXBRIDGE_PORT", str(free_port()))
    lock = FolderLock.take(config.data_dir, door.base)
    try:
        runtime.tell(config, door.base)
        assert (await run("ls")).exit_code == 0
    finally:
        lock.release()
    left = await run("ls")
    assert isinstance(left.exception, VoxbridgeError), "what a crash left behind misleads nobody"


def test_without_a_gateway_it_says_how_to_start_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    monkeypatch.setenv("VOXBRIDGE_PORT", str(port))
    monkeypatch.setenv("VOXBRIDGE_DATA_DIR", str(tmp_path / "none"))
    for arguments in (("ls",), ("set", "gemini"), ("forget", "gemini")):
        missing = at_once(*arguments, given=SECRET)
        assert isinstance(missing.exception, VoxbridgeError)
        assert missing.exception.message == (
            f"No gateway answers at http://127.0.0.1:{port} (ConnectError). "
            "Start it with `voxbridge up`, or set VOXBRIDGE_PORT to its port."
        )


async def started(
    config: Config, monkeypatch: pytest.MonkeyPatch, bus: NatsServer | None = None, store: ValkeyServer | None = None
) -> dict[str, Mapping[str, str]]:
    """Return the environments that `voxbridge up` gives to the services, by their names."""
    given: dict[str, Mapping[str, str]] = {}

    async def start(command: Sequence[str], env: Mapping[str, str], *_: object, waits: bool) -> SimpleNamespace:
        assert not waits
        given[command[-1].removeprefix("voxbridge.services.")] = env
        return SimpleNamespace(pid=1)

    monkeypatch.setattr(up, "start_command", start)
    probes = Probes("")
    for program in up.services(config, probes, lambda _: None, bus, store):
        await program.spawn()
    await probes.close()
    assert set(given) == set(up.SERVICES)
    return given


async def test_each_service_is_given_the_keys_that_it_works_with_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("VOXBRIDGE_KEY_GROQ", "GEMINI_API_KEY", "GOOGLE_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, f"{SECRET}-{name}")
    config = Config(
        data_dir=tmp_path,
        endpoints="groq=https://groq/v1",
        stt_key=f"{SECRET}-STT",
        llm_key=f"{SECRET}-LLM",
        tts_key=f"{SECRET}-TTS",
        vault_key_file=str(tmp_path / "vault.key"),
        admin_token_file=str(tmp_path / "admin.token"),
        secrets_key_file=str(tmp_path / "secrets.key"),
        nats_url="nats://of:everybody@h",
        redis_url="redis://h",
    )
    given = await started(config, monkeypatch)
    holders = {name for name, env in given.items() if any(SECRET in value for value in env.values())}
    assert holders == {"voice", "knowledge"}
    own = {name for name, value in given["knowledge"].items() if SECRET in value}
    assert own == {"VOXBRIDGE_LLM_KEY"}, "the model reads passages for it"
    assert {name for name, env in given.items() if f"{SECRET}-LLM" in env.values()} == {"voice", "knowledge"}
    assert {name for name, env in given.items() if "VOXBRIDGE_VAULT_KEY_FILE" in env} == {"voice"}
    assert {name for name, env in given.items() if "VOXBRIDGE_ADMIN_TOKEN_FILE" in env} == {"gateway"}
    assert {name for name, env in given.items() if "VOXBRIDGE_SECRETS_KEY_FILE" in env} == {"tools"}
    on_the_bus = {"voice", "gateway", "tools", "knowledge", "awareness", "terminals"}
    assert {name for name, env in given.items() if "VOXBRIDGE_REDIS_URL" in env} == on_the_bus
    assert {name for name, env in given.items() if "VOXBRIDGE_NATS_URL" in env} == on_the_bus


async def test_functions_that_use_keys_are_given_those_that_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("VOXBRIDGE_KEY_GROQ", "GEMINI_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, f"{SECRET}-{name}")
    given = await started(Config(data_dir=tmp_path, tool_keys="OPENAI_API_KEY, VOXBRIDGE_KEY_GROQ"), monkeypatch)
    assert {name for name, value in given["tools"].items() if SECRET in value} == {"OPENAI_API_KEY", "VOXBRIDGE_KEY_GROQ"}
    assert [value for value in given["models"].values() if SECRET in value] == []


async def test_each_service_signs_in_to_the_bus_and_to_valkey_as_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bus, store = NatsServer(tmp_path / "nats"), ValkeyServer(tmp_path / "valkey")
    owners = (bus.reserve(), store.reserve())
    given = await started(Config(data_dir=tmp_path, nats_url=owners[0], redis_url=owners[1]), monkeypatch, bus, store)
    for name, env in given.items():
        assert not set(owners) & set(env.values()), name
        assert env.get("VOXBRIDGE_NATS_URL") == (None if name == "models" else bus.url_of(name)), name
        assert env.get("VOXBRIDGE_REDIS_URL") == (None if name == "models" else store.url_of(name)), name


def test_every_command_has_help_with_an_example() -> None:
    for command in ((), ("ls",), ("set",), ("forget",)):
        shown = at_once(*command, "--help").output
        assert "Example" in shown
        assert f"voxbridge keys {' '.join(command)}".strip() in shown

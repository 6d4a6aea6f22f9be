"""Absent parts are named in one sentence, the same to a model, over REST and by `voxbridge doctor`; everything else goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.eventually import eventually
from tests.gateway.conftest import Serve, serve
from tests.ports import free_port
from tests.tools.conftest import Executors
from tests.tools.every_function.doors import Doors, Outcome, open_doors
from voxbridge.doctor import examination, mcp, tools
from voxbridge.doctor.finding import Finding
from voxbridge.services.tools.packs.device import sensors
from voxbridge.services.voice.providers.cascade.models import Models
from voxbridge.shared.config import Config
from voxbridge.shared.embedded.valkey_server import ValkeyServer
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.language.conversation import Complete, Message
from voxbridge.shared.log.reader import Log

__all__ = ["serve"]
SERVERS = {
    "paper": {"command": "npx", "args": ["-y", "@example/paper"]},
    "lost": {"command": "there-is-no-such-program"},
    "keyed": {"command": "there-is-none", "env": {"TOKEN": "${NOWHERE_SET}"}},
}
ABSENT: dict[str, tuple[str, dict[str, Any], Code, str]] = {
    "sensors": ("check_thermal", {}, Code.NOT_FOUND, "install Termux:API"),
    "Node": ("paper__search", {"query": "x"}, Code.UNAVAILABLE, "install Node.js 20 or later"),
    "an MCP server's program": ("lost__read", {}, Code.UNAVAILABLE, "install it, or correct its path"),
    "an MCP server's variable": ("keyed__read", {}, Code.UNAVAILABLE, "NOWHERE_SET"),
    **{
        f"the knowledge service, of {name}": (name, arguments, Code.UNAVAILABLE, "The knowledge service does not answer: start it")
        for name, arguments in {
            "list_kgs": {},
            "query_kg": {"query": "x"},
            "search_kg": {"query": "x", "database": "g"},
            "cross_kg_search": {"query": "x"},
            "get_kg_analytics": {"database": "g"},
            "ingest_to_kg": {"source": "leave.md", "database": "g"},
        }.items()
    },
    "a page": ("navigate_page", {"path": "/"}, Code.UNAVAILABLE, "Call it in a session of such a page."),
}
"""Absent parts: the function that needs it, its arguments, the code, and what to do about it."""


async def asked(doors: Doors, name: str, arguments: dict[str, Any]) -> dict[str, Outcome]:
    """Ask a model's way, by `run_tool`, and over REST."""
    return {
        "model": await doors.ask("model", name, arguments, subject="somebody"),
        "run_tool": await doors.ask("model", "run_tool", {"tool_id": name, "params": arguments}, subject="somebody"),
        "rest": await doors.ask("rest", name, arguments),
    }


async def test_what_is_not_there_is_said_in_one_sentence_the_same_by_each_door(
    serve: Serve, config: Config, log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(sensors, "SYSFS", tmp_path / "sysfs")
    (tmp_path / "leave.md").write_text("Thirty days.\n")
    file = tmp_path / "mcp.yaml"
    file.write_text(json.dumps({"servers": SERVERS}))
    gateway = await serve(config.nats_url, config.redis_url)
    async with Executors(config).running("built-in", mcp_file=str(file)), open_doors(log, gateway, tmp_path) as doors:

        async def examined() -> list[Finding]:
            found = [*await mcp.on_the_bus(log.nc), *await tools.on_the_bus(log.nc)]
            known = SERVERS.keys() <= {one.name for one in found}
            return found if known and not any("started" in one.says for one in found) else []

        findings = {one.name: one for one in await eventually(examined)}
        for what, (name, arguments, code, remedy) in ABSENT.items():
            found = await asked(doors, name, arguments)
            assert len({outcome.message for outcome in found.values()}) == 1, (what, found)
            for door, outcome in found.items():
                assert (outcome.code, outcome.result) == (code, None), (what, door, outcome)
                assert remedy in outcome.message, (what, door)
            assert (await doors.ask("model", "list_tools", {}, subject="somebody")).result, "the session goes on"
    told = " ".join(f"{one.says} {one.do}" for one in findings.values())
    assert all(remedy in told for what, (_, _, _, remedy) in ABSENT.items() if not what.startswith(("a page", "the knowledge"))), told
    assert {findings[name].level for name in SERVERS} == {"WARN"}


async def test_without_valkey_notes_say_so_and_all_else_goes_on(
    serve: Serve, config: Config, log: Log, tmp_path: Path, own_valkey: Callable[[], ValkeyServer]
) -> None:
    valkey = own_valkey()
    gateway = await serve(config.nats_url, valkey.url)
    settings = Config(nats_url=config.nats_url, redis_url=valkey.url, workspace_dirs=str(tmp_path))
    async with Executors(settings).running("built-in"), open_doors(log, gateway, tmp_path) as doors:
        assert (await doors.ask("model", "remember", {"note": "the key is under the mat"}, subject="somebody")).result
        valkey.kill()
        found = {door: await doors.ask(door, "recall", {"query": "key"}, subject="somebody") for door in ("model", "rest")}
        kept = await doors.ask("model", "remember", {"note": "the milk is out"}, subject="somebody")
        counted = await doors.ask("rest", "calculate", {"expression": "2 + 2"})
        findings = {(one.area, one.name): one for one in await examination.examine(settings)}
    for door, outcome in found.items():
        assert (outcome.code, outcome.message) == (Code.UNAVAILABLE, found["rest"].message), (door, outcome)
        assert "Valkey" in outcome.message
    assert kept.result, "the log has it"
    assert counted.result
    assert findings["valkey", "Valkey"].level == "FAIL"
    assert findings["valkey", "Valkey"].do


async def test_without_local_models_it_is_said_what_to_do_and_functions_go_on(
    serve: Serve, config: Config, log: Log, tmp_path: Path
) -> None:
    settings = replace(config, models_port=free_port())
    gateway = await serve(config.nats_url, config.redis_url, models_port=settings.models_port)
    async with Executors(settings).running("built-in"), open_doors(log, gateway, tmp_path) as doors:
        counted = await asked(doors, "calculate", {"expression": "2 + 2"})
        ready = await gateway.get("/readyz")
        status = await gateway.get("/api/vox/status")
        findings = {(one.area, one.name): one for one in await examination.examine(settings)}
    assert all(outcome.result for outcome in counted.values()), counted
    assert (ready.status_code, status.json()["local_available"]) == (503, False)
    said = ready.json()["dependencies"]["models"]["detail"]
    assert str(settings.models_port) in said
    assert "`voxbridge up`" in said
    finding = findings["models", "service"]
    assert (finding.level, str(settings.models_port) in finding.says, "log" in finding.do) == ("FAIL", True, True), finding
    # As a call hears it: a model that cannot be reached is an error with a code, and an apology in the same turn.
    models = Models(settings)
    request = Complete(model="", messages=(Message(role="user", text="hello"),), functions=())
    with pytest.raises(VoxbridgeError) as caught:
        await anext(models.complete(1, request))
    await models.close()
    assert (caught.value.code, "cannot be reached" in caught.value.message) == (Code.PROVIDER_UNAVAILABLE, True)


def test_a_pack_that_cannot_be_loaded_is_said_before_the_executor_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_pack.py").write_text("def of(:\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for packs, says in (("no.such.pack", "no.such.pack"), ("built-in,broken_pack", "SyntaxError"), ("tests.eventually", "no function")):
        (found,) = [one for one in tools.look(Config(tool_packs=packs)) if one.name == "packs"]
        assert (found.level, says in found.says, "VOXBRIDGE_TOOL_PACKS" in found.do) == ("FAIL", True, True), found
    (found,) = [one for one in tools.look(Config(tool_packs="built-in")) if one.name == "packs"]
    assert found.level == "OK"


def test_folders_that_were_named_and_are_not_there_are_said(tmp_path: Path) -> None:
    usual = {one.name for one in tools.look(Config())}
    named = Config(playbooks_dir=tmp_path / "none", workflows_dir=tmp_path)
    assert {one.name: one.level for one in tools.look(named) if one.name not in usual} == {"playbooks": "WARN"}


@pytest.mark.parametrize(("path", "says"), [("", "is not installed"), ("bin", "is installed")])
def test_node_is_said_to_be_there_or_not(path: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = tmp_path / "bin" / "node"
    node.parent.mkdir()
    node.write_text("#!/bin/sh\n")
    node.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / path))
    (found,) = [one for one in tools.look(Config()) if one.name == tools.NODE]
    assert says in found.says


async def test_executors_of_different_packs_are_said(config: Config, log: Log) -> None:
    one, same = Executors(config), Executors(config)

    async def said() -> list[Finding]:
        return [found for found in await examination.examine(config) if (found.area, found.name) == (tools.AREA, "packs")]

    async with one.running("built-in"):
        async with same.running("built-in"):
            assert [found for found in await said() if found.level != "OK"] == []
        async with same.running("voxbridge.services.tools.packs.everyday.time"):
            (found,) = [found for found in await said() if found.level != "OK"]
    assert found.level == "WARN"
    assert "functions: 1, " in found.says
    assert "VOXBRIDGE_TOOL_PACKS" in found.do

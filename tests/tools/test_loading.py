"""Packs that cannot be used are left out, each with its reason, and all others serve."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.gateway.conftest import Serve, serve
from tests.tools.conftest import Caller
from voxbridge.doctor import tools as doctor
from voxbridge.doctor.parts import on_the_bus
from voxbridge.doctor.place import Place
from voxbridge.services.tools import loading
from voxbridge.services.tools.loading import prepare, usable
from voxbridge.services.tools.service import build
from voxbridge.shared.clock import SystemClock
from voxbridge.shared.config import Config
from voxbridge.shared.events.tools import ToolCompleted, ToolFailed
from voxbridge.shared.ids import new_process_id
from voxbridge.shared.log.reader import Log
from voxbridge.shared.service import process

__all__ = ["serve"]
HEAD = "from voxbridge.services.tools.registry import function\n"
FUNCTION = '@function(effect="read")\nasync def {name}() -> dict:\n    """Say {name}."""\n    return {{"said": "{name}"}}\n'
BAD = {
    "broken": ("def of(:\n", "SyntaxError"),
    "missing": ("import there_is_no_such_module\n", "there_is_no_such_module"),
    "leaving": ("raise SystemExit(3)\n", "SystemExit: 3"),
    "vanishing": ("import os\nos._exit(0)\n", "ended the process"),
    "crashing": ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n", "ended the process"),
    "spinning": ("while True:\n    pass\n", "did not end within"),
    "asleep": ("import time\ntime.sleep(3600)\n", "did not end within"),
    "taking": (HEAD + FUNCTION.format(name="current_time"), "current_time"),
    "unclear": (HEAD + '@function()\nasync def unclear(what: "Nowhere") -> dict:\n    """Do."""\n', "NameError"),
    "idle": ("", "no function"),
    "wordy": ("raise RuntimeError('x' * 9_000)\n", "RuntimeError: xxx"),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(loading, "IMPORT_S", 3.0)
    for name, (text, _) in BAD.items():
        (tmp_path / f"{name}_pack.py").write_text(text)
    (tmp_path / "good_pack.py").write_text(
        HEAD + FUNCTION.format(name="say_good") + "def prepare() -> None:\n    raise RuntimeError('no')\n"
    )
    (tmp_path / "second_pack.py").write_text(HEAD + FUNCTION.format(name="say_good"))
    return tmp_path


def forget() -> None:
    for name in [*(f"{name}_pack" for name in BAD), "good_pack", "second_pack"]:
        sys.modules.pop(name, None)


def test_each_pack_that_cannot_be_used_is_named_with_its_reason_and_the_others_serve(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    everyday = "voxbridge.services.tools.packs.everyday.time"
    packs = [*(f"{name}_pack" for name in BAD), "good_pack", "second_pack", everyday]
    loaded = usable(packs, timeout_s=5)
    forget()
    assert loaded.packs == ("good_pack", everyday), "the name is that of the built-in function, though its pack comes last"
    assert loaded.tools["current_time"].run.__module__ == everyday
    for name, (_, says) in BAD.items():
        assert says in loaded.left_out[f"{name}_pack"], name
    assert "say_good" in loaded.left_out["second_pack"]
    assert len(loaded.left_out["wordy_pack"]) < loading._WHY_LIMIT + 100
    for pack in loaded.left_out:
        assert caplog.text.count(f"The function pack {pack} cannot be used") == 1
    assert loaded.condition.state == "degraded"
    assert all(pack in loaded.condition.detail for pack in loaded.left_out)
    sys.path_importer_cache.clear()
    prepare(["good_pack"])
    forget()
    assert "could not prepare" in caplog.text


@asynccontextmanager
async def running(config: Config) -> AsyncIterator[None]:
    """Run an executor as its process does, which is asked for its health."""
    async with process.connected(config, "tools", new_process_id("tools"), SystemClock()) as resources:
        stop = asyncio.Event()
        served = process._serve("tools", resources, await build(resources), asyncio.create_task(stop.wait()))
        serving = asyncio.create_task(served)
        yield
        stop.set()
        await serving


async def test_an_executor_serves_without_the_packs_that_it_cannot_use_and_says_so(
    serve: Serve, config: Config, log: Log, folder: Path, caller: Caller
) -> None:
    setting = "built-in,hasty,good_pack,spinning_pack,taking_pack,vanishing_pack"
    gateway = await serve(config.nats_url, config.redis_url)
    async with running(replace(config, tool_packs=setting)):
        await caller.call("say_good", "c1")
        assert (await caller.next(ToolCompleted, "c1"))[0].result["said"] == "say_good"
        await caller.call("current_time", "c2", place="Rome")
        done, _ = await caller.next((ToolCompleted, ToolFailed), "c2")
        assert isinstance(done, ToolCompleted)
        ready = await gateway.get("/readyz")
        told_on_the_bus = [one for one in await on_the_bus(log.nc, Place(here=True)) if one.name == "tools"]
        (here,) = [one for one in await asyncio.to_thread(doctor.look, Config(tool_packs=setting)) if one.name == "packs"]
    forget()
    # What else there is to find are counters of this process, in which other tests ran.
    findings = [one for one in told_on_the_bus if "packs: " in one.says]
    assert len(findings) == 1, told_on_the_bus
    (finding,) = findings
    told = ready.json()["dependencies"]["tools"]
    assert (told["ok"], told["state"]) == (True, "degraded"), json.dumps(ready.json())
    for said in (told["detail"], finding.says, here.says):
        assert all(f"pack {name} cannot be used" in said for name in ("hasty", "spinning_pack", "taking_pack", "vanishing_pack")), said
    assert (finding.level, here.level) == ("WARN", "FAIL")

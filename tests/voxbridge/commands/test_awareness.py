"""`voxbridge awareness` against a running service."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.awareness.serving import error, fact, serving, visit
from tests.eventually import eventually
from voxbridge.cli import cli
from voxbridge.shared.config import Config
from voxbridge.shared.errors import VoxbridgeError


async def run(*arguments: str) -> Result:
    """Run the command in a thread, since its service runs in this one."""
    return await asyncio.to_thread(lambda: CliRunner().invoke(cli, ["awareness", *arguments]))


async def test_what_agents_are_told_is_shown_and_folded_again(
    nats_url: str, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VOXBRIDGE_NATS_URL", nats_url)
    async with serving(Config(nats_url=nats_url, redis_url=redis_url, data_dir=tmp_path)) as there:
        assert (await run("show")).output == "Nothing is known of the screen of local.\n"
        await there.recorder.report("ada", visit("/cart", "Your cart"), client="c")
        await there.recorder.report("ada", error("The card was refused."), client="c")
        await there.recorder.report("ada", fact("step", "payment"), client="c")
        await there.recorder.switch("ada", "errors", on=False)

        async def known() -> bool:
            return "errors" in (await there.known("ada")).off

        await eventually(known)
        shown = await run("show", "--account", "ada")
        assert shown.exit_code == 0
        assert "/cart" in shown.stdout
        assert "payment" in shown.stdout
        assert "refused" not in shown.stdout
        assert shown.stderr == "The source errors is off: nothing of it is kept.\n"
        assert (await run("show")).output == "Nothing is known of the screen of local.\n"
        rebuilt = await run("rebuild", "--account", "ada")
        assert rebuilt.exit_code == 0, rebuilt.output
        assert "inputs of ada were folded in" in rebuilt.output
        assert rebuilt.output.endswith(": equal to what the service had.\n")
    away = await run("show")
    assert away.exit_code != 0
    assert "awareness service does not answer" in (str(away.exception) if isinstance(away.exception, VoxbridgeError) else away.output)

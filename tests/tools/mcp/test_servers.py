"""The servers that others wrote, and one on the newest protocol, over stdio and HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.eventually import eventually, opens
from tests.ports import free_port
from tests.tools.mcp.conftest import EVERYTHING, HERE, Running, files, hostile, modern, serving
from voxbridge.services.tools.mcp.programs import INHERITED
from voxbridge.shared.errors import Code, VoxbridgeError

pytestmark = pytest.mark.timeout(90)


async def test_the_reference_servers_answer_and_one_that_is_missing_delays_neither(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("milk and bread")
    missing = {"command": "there-is-no-such-program"}
    async with serving({"everything": EVERYTHING, "files": files(tmp_path), "gone": missing}) as running:
        await running.ready("everything", "files")
        assert running.view("everything").protocol == running.view("files").protocol == "2025-11-25"
        assert (await running.call("everything", "echo", message="hello"))["spoken"] == "Echo: hello"
        read = await running.call("files", "read_text_file", path=str(tmp_path / "list.txt"))
        assert read["text"] == "milk and bread"
        await eventually(lambda: "install it" in running.view("gone").why)
        assert {"everything__echo", "files__write_file"} <= set(running.catalogue)
        assert running.catalogue["everything__echo"].category == "everything"
        assert not running.catalogue["everything__echo"].listed
        with pytest.raises(VoxbridgeError, match="outside allowed") as refused:
            await running.call("files", "read_text_file", path="/etc/passwd")
        assert refused.value.code == Code.PROVIDER_REFUSED


@pytest.mark.parametrize(("generation", "protocol"), [("older", "2025-11-25"), ("newer", "2026-07-28")])
async def test_a_tool_that_appears_is_offered_in_both_generations_of_the_protocol(tmp_path: Path, generation: str, protocol: str) -> None:
    server = modern("stdio") if generation == "newer" else hostile("learning", tmp_path / "learned")
    async with serving({"pupil": server}) as running:
        await running.ready("pupil")
        assert running.view("pupil").protocol == protocol
        assert "pupil__recite" not in running.catalogue
        before = running.view("pupil").tools
        await running.call("pupil", "learn")
        await eventually(lambda: "pupil__recite" in running.catalogue)
        assert running.view("pupil").tools == before + 1
        assert (await running.call("pupil", "recite"))["text"] in ("A, B, C", "recite done")


async def test_a_server_sees_the_short_list_and_what_its_configuration_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOXBRIDGE_ADMIN_TOKEN", "of-ours")
    monkeypatch.setenv("SOME_KEY", "of-the-operator")
    monkeypatch.setenv("TERM", "dumb")
    everything = {**EVERYTHING, "env": {"TOKEN": "is ${SOME_KEY}"}}
    async with serving({"everything": everything, "curious": {**EVERYTHING, "env": {"A": "${VOXBRIDGE_ADMIN_TOKEN}"}}}) as running:
        await running.ready("everything")
        seen = json.loads((await running.call("everything", "get-env"))["text"])
        assert seen["TOKEN"] == "is of-the-operator"
        assert set(seen) <= {*INHERITED, "TOKEN", "LC_CTYPE"}  # Python adds the last one where no locale is set
        assert running.view("curious").state == "down"
        assert "given to no server" in running.view("curious").why


async def test_images_and_resources_come_as_links_and_wrong_arguments_as_the_servers_words() -> None:
    async with serving({"everything": EVERYTHING}) as running:
        await running.ready("everything")
        image = await running.call("everything", "get-tiny-image")
        (link,) = image["links"]
        assert (link["kind"], link["mime"]) == ("image", "image/png")
        assert link["bytes"] > 100
        assert (await running.call("everything", "get-resource-links", count=2))["links"][0]["uri"].startswith("demo://")
        structured = await running.call("everything", "get-structured-content", location="Chicago")
        assert structured["structured"]["conditions"]
        with pytest.raises(VoxbridgeError, match="nvalid"):
            await running.call("everything", "get-sum", a="one", b=2)


async def test_a_question_to_the_user_is_the_answer_of_the_call() -> None:
    async with serving({"everything": EVERYTHING}) as running:
        await running.ready("everything")
        asked = await running.call("everything", "trigger-elicitation-request")
        assert asked["status"] == "needs_input"
        assert "everything asks" in asked["spoken"]


async def test_a_cancelled_call_leaves_the_connection_as_it_is() -> None:
    async with serving({"modern": modern("stdio")}) as running:
        await running.ready("modern")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(running.call("modern", "wait", seconds=60), 0.2)
        assert (await running.call("modern", "add", a=2, b=3))["structured"] == {"sum": 5}
        assert running.view("modern").state == "ready"


async def test_progress_is_told_by_the_newest_protocol_over_stdio() -> None:
    async with serving({"modern": modern("stdio")}) as running:
        await running.ready("modern")
        await _makes_progress(running)


async def test_the_newest_protocol_over_http_answers_is_bounded_and_comes_back() -> None:
    port = free_port()
    command = [sys.executable, str(HERE / "modern_server.py"), "http", str(port)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    with _program(command, environment):
        await eventually(lambda: opens(port))
        async with serving({"web": {"url": f"http://127.0.0.1:{port}/mcp", "headers": {"X-Test": "1"}}}) as running:
            await running.ready("web")
            assert running.view("web").protocol == "2026-07-28"
            assert (await running.call("web", "add", a=2, b=3))["structured"] == {"sum": 5}
            await _makes_progress(running, "web")
            with pytest.raises(VoxbridgeError) as refused:
                await running.call("web", "large", size=3_000_000)
            assert refused.value.code in (Code.TOO_LARGE, Code.PROVIDER_REFUSED)
            assert (await running.call("web", "add", a=3, b=3))["structured"] == {"sum": 6}


@contextmanager
def _program(command: list[str], environment: dict[str, str]) -> Iterator[None]:
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            yield
        finally:
            server.kill()


async def _makes_progress(running: Running, name: str = "modern") -> None:
    told: list[tuple[float, str]] = []

    async def report(done: float, message: str) -> None:
        told.append((done, message))

    result = await running.servers.call(name, "steps", {"count": 4}, report)
    assert result["text"] == "all done"
    await eventually(lambda: told and told[-1] == (1.0, "step 4"))
    assert told == sorted(told)

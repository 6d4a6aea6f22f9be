"""`voxbridge erase` of a session and of its account: no stored byte of either is left, of whatever functions kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.tools.conftest import Caller, Executors
from tests.tools.test_account_calls import LOCAL, Asking
from voxbridge.sessions.erase import erase
from voxbridge.shared.clock import SystemClock
from voxbridge.shared.config import Config
from voxbridge.shared.embedded.nats_server import NatsServer
from voxbridge.shared.embedded.valkey_server import ValkeyServer
from voxbridge.shared.events.gateway import ApprovalClicked, ToolRequested
from voxbridge.shared.events.tools import ApprovalRequested, TaskCompleted, ToolCompleted
from voxbridge.shared.events.voice import SessionEnded, ToolCalled
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.log.writer import SessionWriter
from voxbridge.shared.service.process import connected

PACKS = "built-in,tests.tools.pack"
IN_SESSION, IN_ACCOUNT = b"quokka-in-the-session", b"numbat-of-the-account"


def holding(folder: Path, marker: bytes) -> set[str]:
    """Return the files of the servers that hold these bytes."""
    places = [path for path in folder.rglob("*") if path.is_file() and path.relative_to(folder).parts[0].startswith(("nats", "valkey"))]
    assert places
    return {str(path.relative_to(folder)) for path in places if marker in path.read_bytes()}


async def filled(caller: Caller, marker: str) -> None:
    """Keep these words in every way that there is: results, a macro, its run, a note, a standing approval, a task and a project."""
    numbers = iter(range(99))

    async def call(name: str, ended_by: Any = ToolCompleted, /, **arguments: Any) -> None:
        call_id = f"c{next(numbers)}"
        if isinstance(caller, Asking):
            await caller.ask(ToolRequested(call_id=call_id, name=name, arguments=arguments, deadline_ms=30_000))
        else:
            await caller.say(ToolCalled(call_id=call_id, name=name, arguments=arguments, kind="server", turn=1, deadline_ms=30_000))
        if name == "guarded":
            asked, _ = await caller.next(ApprovalRequested, call_id)
            await click(caller, asked.approval_id)
        await caller.next(ended_by, call_id)

    await call("echo", text=marker)
    await call("remember", note=f"do not forget {marker}")
    await call("create_macro", name=marker, steps=[{"say": marker}, {"call": "echo", "arguments": {"text": marker}}])
    await call("run_macro", TaskCompleted, name=marker)
    await call("guarded", TaskCompleted, text=marker)
    await call("remind", TaskCompleted, ms=1)
    await call("create_project", name=f"{marker} garden")


async def click(caller: Caller, approval_id: str) -> None:
    event = ApprovalClicked(approval_id=approval_id, answer="approved", scope="arguments")
    writer = SessionWriter(caller.log, caller.sid, "gateway", stem=approval_id, fenced=False)
    await writer.append(event, ts=SystemClock().now_us(), cause=None)


async def test_nothing_that_functions_kept_is_left_of_a_session_and_of_its_account(
    own_nats: Callable[[], NatsServer], own_valkey: Callable[[], ValkeyServer], tmp_path: Path
) -> None:
    config = Config(nats_url=own_nats().url, redis_url=own_valkey().url, workspace_dirs=str(tmp_path / "workspace"))
    (tmp_path / "workspace").mkdir()
    async with connected(config, "test", "test-1", SystemClock()) as resources:
        log, redis = resources.log, resources.redis
        await log.ensure_streams(retention_days=1)
        session, account = Caller(log, new_session_id()), Asking(log)
        for one in (session, account):
            await one.start()
        async with Executors(config).running(PACKS):
            await filled(session, IN_SESSION.decode())
            await filled(account, IN_ACCOUNT.decode())
            await session.say(SessionEnded(reason="client"))
        for one in (session, account):
            await one.stop()
        assert all(holding(tmp_path, marker) for marker in (IN_SESSION, IN_ACCOUNT)), "else the test proves nothing"
        now = SystemClock().now_us()
        for sid in (session.sid, LOCAL):
            erased = await erase(log, redis, sid, by="Ada", now=now)
            assert erased.left == ()
        assert (holding(tmp_path, IN_SESSION), holding(tmp_path, IN_ACCOUNT)) == (set(), set())
        kept = [key async for key in redis.scan_iter("*") if b"notes" in (key if isinstance(key, bytes) else key.encode())]
        assert [key for key in kept if not str(key).rstrip("'").endswith(":erased")] == []
    assert sorted(path.name for path in (tmp_path / "workspace").iterdir()), "files in the workspace are the user's own (docs/privacy.md)"

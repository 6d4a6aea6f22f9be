"""Handlers of pages, called as every function is: on a real log, with a real executor."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.eventually import eventually
from tests.tools.conftest import Caller, Executors
from tests.tools.sandbox.servers import Server, answer
from voxbridge.services.tools.sandbox.sandboxes import SPARE
from voxbridge.services.tools.service import ToolService
from voxbridge.shared.errors import Code, Unavailable, VoxbridgeError
from voxbridge.shared.events.gateway import ClientConnected, SessionConfigured
from voxbridge.shared.events.tools import (
    HandlerLine,
    HandlerLogged,
    TaskInterrupted,
    ToolCompleted,
    ToolFailed,
    ToolInterrupted,
    ToolStarted,
)
from voxbridge.shared.events.voice import SessionEnded, ToolCalled, ToolCancelled
from voxbridge.shared.log.writer import SessionWriter
from voxbridge.shared.platform.checking import HandlersWanted, check
from voxbridge.shared.platform.handlers import Configuration, GivenTool, configuration_of, digest_of
from voxbridge.shared.platform.problems import Problem
from voxbridge.shared.platform.secrets import Rule, SealedSecrets
from voxbridge.shared.secrets.sealed_box import Sealer

VALUE = "sk-live-0123456789abcdef"


async def configure(caller: Caller, *, account: str = "local", environment: Any = "live", **handlers: str) -> Configuration:
    """Configure a session as a gateway does, which writes more of its client after that."""
    tools = [GivenTool(name=name, parameters={"n": "number?", "url": "string?"}, handler=source) for name, source in handlers.items()]
    made = configuration_of(tools=tools)
    event = SessionConfigured(account=account, environment=environment, configuration=made, digest=digest_of(made))
    writer = SessionWriter(caller.log, caller.sid, "gateway", fenced=False)
    for one in (event, ClientConnected(gateway="g", connection="g-1")):
        await writer.append(one, ts=caller.now(), cause=None)
    return made


async def call(caller: Caller, name: str, call_id: str = "c1", *, account: str = "local", **arguments: Any) -> None:
    await caller.say(
        ToolCalled(call_id=call_id, name=name, arguments=arguments, kind="customer", turn=1, deadline_ms=30_000, account=account)
    )


def sandboxes(service: ToolService) -> list[int]:
    return service._customers._sandboxes.pids


async def test_a_handler_is_called_by_the_path_of_every_function(executors: Executors, caller: Caller) -> None:
    await configure(caller, double="async ({ n }, ctx) => ({ doubled: 2 * n })")
    async with executors.running():
        await call(caller, "double", n=21)
        done, _ = await caller.next(ToolCompleted)
        assert (done.name, done.result) == ("double", {"doubled": 42})
        assert [type(one) for one in caller.told()] == [ToolStarted, ToolCompleted]


async def test_arguments_are_validated_before_a_handler_sees_them(executors: Executors, caller: Caller) -> None:
    await configure(caller, double="async ({ n }) => n")
    async with executors.running() as service:
        await call(caller, "double", n="many")
        failed, _ = await caller.next(ToolFailed)
        assert (failed.error.code, failed.error.field) == (Code.INVALID_ARGUMENT, "n")
        assert not sandboxes(service)


async def test_a_handler_of_another_session_or_account_is_not_found(executors: Executors, caller: Caller) -> None:
    await configure(caller, mine="() => 1")
    async with executors.running():
        await call(caller, "other")
        await call(caller, "mine", "c2", account="stranger")
        for call_id in ("c1", "c2"):
            failed, _ = await caller.next(ToolFailed, call_id)
            assert failed.error.code == Code.NOT_FOUND


async def test_a_call_of_a_handler_never_reaches_a_function_of_the_installation(executors: Executors, caller: Caller) -> None:
    await configure(caller, mine="() => 1")
    async with executors.running():
        await call(caller, "get_current_time")
        failed, _ = await caller.next(ToolFailed)
        assert failed.error.code == Code.NOT_FOUND


async def test_what_a_handler_throws_is_told_with_its_words(executors: Executors, caller: Caller) -> None:
    await configure(caller, broken="async () => { console.warn('about to', { fail: true }); throw new RangeError('too far'); }")
    async with executors.running():
        await call(caller, "broken")
        failed, _ = await caller.next(ToolFailed)
        assert failed.error.message == "broken failed: RangeError: too far"
        logged, _ = await caller.next(HandlerLogged)
        assert logged.lines == (HandlerLine(level="warn", text='about to {"fail":true}'),)


async def test_a_handler_that_does_not_end_is_killed_at_its_deadline(executors: Executors, caller: Caller) -> None:
    await configure(caller, endless="async () => { for (;;); }", quick="() => 1")
    async with executors.running() as service:
        await call(caller, "quick", "c0")
        await caller.next(ToolCompleted, "c0")
        await eventually(lambda: service._customers._sandboxes._idle)  # the next call has this process, and nothing is started first
        await caller.say(ToolCalled(call_id="c1", name="endless", arguments={}, kind="customer", turn=1, deadline_ms=1_500))
        await caller.next(ToolStarted, "c1")
        _, ended = await caller.next(ToolInterrupted)
        called = next(one for one in caller.heard if isinstance(one.event, ToolStarted) and one.event.call_id == "c1")
        assert ended.ts - called.ts < 10_000_000
        await eventually(lambda: len(sandboxes(service)) <= 2)  # those made ahead


async def test_a_cancelled_call_goes_on_and_a_lapsed_one_is_killed(executors: Executors, caller: Caller) -> None:
    await configure(
        caller, slow="async () => { await new Promise((done) => setTimeout(done, 300)); return 'done'; }", loop="() => { for (;;); }"
    )
    async with executors.running() as service:
        await call(caller, "loop")
        await caller.next(ToolStarted)
        await caller.say(ToolCancelled(call_id="c1", name="loop", reason="timed_out"))
        await caller.next((ToolInterrupted, TaskInterrupted))
        await call(caller, "slow", "c2")
        done, _ = await caller.next(ToolCompleted, "c2")
        assert done.result == {"result": "done"}
        assert len(sandboxes(service)) <= 3


async def test_a_killed_sandbox_ends_its_own_call_alone(executors: Executors, caller: Caller) -> None:
    await configure(caller, slow="async () => { await new Promise((done) => setTimeout(done, 60000)); }", quick="() => 1")
    async with executors.running() as service:
        await call(caller, "slow")
        await caller.next(ToolStarted)
        boxes = service._customers._sandboxes
        await eventually(lambda: len(boxes._spare) == SPARE and len(boxes) == SPARE + 1)  # the others are ready, so its own is too
        killed = boxes.pids
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        failed, _ = await caller.next(ToolFailed)
        assert failed.error.code == Code.INTERRUPTED
        await eventually(lambda: not set(killed) & set(boxes.pids))  # one that is dying may still be given a call, which then ends with it
        await call(caller, "quick", "c2")
        done, _ = await caller.next(ToolCompleted, "c2")
        assert done.result == {"result": 1}


async def test_a_killed_zygote_is_replaced(executors: Executors, caller: Caller) -> None:
    await configure(caller, quick="() => 1")
    async with executors.running() as service:
        await call(caller, "quick")
        await caller.next(ToolCompleted)
        zygote = service._customers._sandboxes._zygote._process
        assert zygote is not None
        before = sandboxes(service)
        os.kill(zygote.pid, signal.SIGKILL)
        await eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in before))
        await call(caller, "quick", "c2")
        await caller.next(ToolCompleted, "c2")


async def test_the_end_of_a_session_ends_its_sandbox(executors: Executors, caller: Caller) -> None:
    await configure(caller, quick="() => 1")
    async with executors.running() as service:
        await call(caller, "quick")
        await caller.next(ToolCompleted)
        await eventually(lambda: bool(service._customers._sandboxes._idle))
        await caller.say(SessionEnded(reason="closed"))
        await eventually(lambda: not service._customers._sandboxes._idle)


async def test_the_value_of_a_secret_is_in_no_event(
    executors: Executors, caller: Caller, web: Server, caplog: pytest.LogCaptureFixture
) -> None:
    web.replies["/echo"] = lambda seen: answer(f"you sent {seen.headers['authorization']}")
    source = """async ({ url }, ctx) => {
      const response = await ctx.fetch(url, { headers: { Authorization: `Bearer ${ctx.secrets.KEY}` } });
      const text = await response.text();
      console.log(text, ctx.secrets.KEY);
      return text;
    }"""
    await configure(caller, leak=source)
    async with executors.running(fetch_hosts=f"127.0.0.1:{web.port}") as service:
        config = executors.config
        sealer = Sealer(config.secrets_public_key_path, variable="VOXBRIDGE_SECRETS_PUBLIC_KEY_FILE")
        rule = Rule(hosts=(f"http://127.0.0.1:{web.port}",))
        await SealedSecrets(service._store.redis, sealer).set("local", "live", "KEY", VALUE, rule, now=1)
        await call(caller, "leak", url=f"{web.url}/echo")
        done, _ = await caller.next(ToolCompleted)
        assert done.result == {"result": "you sent Bearer ***"}
        assert web.seen[0].headers["authorization"] == f"Bearer {VALUE}"
        logged, _ = await caller.next(HandlerLogged)
        assert logged.lines[0].text.startswith("you sent Bearer *** vxs_")
        whole = [recorded async for recorded in caller.log.read_all(caller.sid)]
        assert len(whole) > 4
        assert not any(VALUE.encode() in msgspec.msgpack.encode(recorded) for recorded in whole)
    assert VALUE not in caplog.text


async def test_a_test_session_has_no_live_secret(executors: Executors, caller: Caller) -> None:
    await configure(caller, environment="test", tell="(args, ctx) => 'KEY' in ctx.secrets")
    async with executors.running() as service:
        sealer = Sealer(executors.config.secrets_public_key_path, variable="VOXBRIDGE_SECRETS_PUBLIC_KEY_FILE")
        rule = Rule(hosts=("api.example.com",))
        await SealedSecrets(service._store.redis, sealer).set("local", "live", "KEY", VALUE, rule, now=1)
        await call(caller, "tell")
        done, _ = await caller.next(ToolCompleted)
        assert done.result == {"result": False}


async def test_a_gateway_is_told_which_handler_cannot_run(executors: Executors, connection: Any) -> None:
    good = configuration_of(tools=[GivenTool(name="good", handler="async (args, ctx) => 1")])

    async def listens() -> bool:
        try:
            await check(connection, HandlersWanted(tools=good.tools))
        except Unavailable:  # it does not listen yet
            return False
        return True

    async with executors.running():
        await eventually(listens)
        bad = configuration_of(tools=[GivenTool(name="good", handler="() => 1"), GivenTool(name="bad", handler="() => apiUrl + 1")])
        with pytest.raises(Problem) as caught:
            await check(connection, HandlersWanted(tools=bad.tools))
        assert (caught.value.tool, caught.value.identifier, caught.value.field) == ("bad", "apiUrl", "tools.bad.handler")
        pattern = configuration_of(tools=[GivenTool(name="p", parameters={"a": {"type": "string", "pattern": "(?=x)"}}, handler="() => 1")])
        with pytest.raises(Problem, match="look-around"):
            await check(connection, HandlersWanted(tools=pattern.tools))


async def test_an_unanswered_check_is_told(connection: Any) -> None:
    with pytest.raises(VoxbridgeError) as caught:
        await check(connection, HandlersWanted(tools=()))
    assert caught.value.code == Code.UNAVAILABLE
    await asyncio.sleep(0)

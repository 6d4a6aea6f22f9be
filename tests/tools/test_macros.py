"""Macros and workflows on real servers: made, run, killed half way, listed and deleted."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest

from tests.eventually import eventually
from tests.tools.conftest import Caller, Executors
from voxbridge.services.tools.packs.macros.functions import MACROS_LIMIT
from voxbridge.services.tools.runs.checks import check
from voxbridge.services.tools.runs.document import DOCUMENT_BYTES, Call
from voxbridge.services.tools.session.library import EXAMPLES, FILE_BYTES, Library, read_file, read_folders
from voxbridge.services.tools.session.session import refold
from voxbridge.shared.bus import subjects
from voxbridge.shared.clock import SystemClock
from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events.gateway import ApprovalClicked
from voxbridge.shared.events.tools import (
    ApprovalRequested,
    MacroDeleted,
    MacroSaved,
    RunStepCompleted,
    RunStepStarted,
    TaskCompleted,
    TaskFailed,
    ToolCompleted,
    ToolFailed,
)
from voxbridge.shared.events.voice import ToolCalled
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.writer import SessionWriter

PACKS = "tests.tools.pack,voxbridge.services.tools.packs.macros.functions,voxbridge.services.tools.packs.workflows.functions"
ECHOES = [{"id": "one", "call": "echo", "arguments": {"text": "first"}}, {"call": "echo", "arguments": {"text": "${prev.text} and last"}}]


@asynccontextmanager
async def process(config: Config) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a real executor process that has macros."""
    env = {
        "VOXBRIDGE_NATS_URL": config.nats_url,
        "VOXBRIDGE_REDIS_URL": config.redis_url,
        "VOXBRIDGE_TOOL_PACKS": PACKS,
        "PATH": "/usr/bin:/bin",
    }
    root = Path(__file__).parents[2]
    running = await asyncio.create_subprocess_exec(sys.executable, "-m", "voxbridge.services.tools", cwd=root, env=env)
    try:
        yield running
    finally:
        if running.returncode is None:
            running.kill()
        await running.wait()


async def call(caller: Caller, function: str, call_id: str, /, **arguments: Any) -> None:
    await caller.say(
        ToolCalled(call_id=call_id, name=function, arguments=arguments, kind="server", turn=1, deadline_ms=30_000, account="local")
    )


def release(*files: Path) -> None:
    for file in files:
        Path(f"{file}.go").touch()


async def click(caller: Caller, event: Any) -> None:
    writer = SessionWriter(caller.log, caller.sid, "gateway", stem=token_hex(4), fenced=False)
    await writer.append(event, ts=SystemClock().now_us(), cause=None)


async def save(caller: Caller, name: str, steps: list[Any], call_id: str = "make", **fields: Any) -> Any:
    await call(caller, "create_macro", call_id, name=name, steps=steps, **fields)
    return (await caller.next(ToolCompleted, call_id))[0].result


async def test_a_macro_is_made_listed_run_and_deleted(executors: Executors, caller: Caller, log: Log) -> None:
    async with executors.running(PACKS):
        made = await save(caller, "Good night", ECHOES, trigger="good night")
        assert made["macro_id"] == "good_night"
        assert made["spoken"] == 'I saved Good night: first echo with first, then echo. Say "good night" to run it.'
        await call(caller, "list_macros", "list")
        assert (await caller.next(ToolCompleted, "list"))[0].result["macros"] == [
            {"macro_id": "good_night", "name": "Good night", "triggers": ["good night"], "steps": 2}
        ]
        await call(caller, "list_macros", "shown", name="good night")
        (shown,) = (await caller.next(ToolCompleted, "shown"))[0].result["macros"]
        assert [step["action"]["function"] for step in shown["document"]["steps"]] == ["echo", "echo"]
        await call(caller, "run_macro", "run", name="good-night")
        done, _ = await caller.next(TaskCompleted, "run")
        assert done.result == {"text": "first and last", "spoken": "first and last"}
        await call(caller, "delete_macro", "delete", name="good night")
        asked, _ = await caller.next(ApprovalRequested, "delete")
        await click(caller, ApprovalClicked(approval_id=asked.approval_id, answer="approved", scope="once"))
        await caller.next(TaskCompleted, "delete")
        await call(caller, "run_macro", "again", name="good night")
        failed, _ = await caller.next(ToolFailed, "again")
        assert failed.error.code == Code.NOT_FOUND
    kept = [recorded.event async for recorded in log.read_all(subjects.account_log("local"), writer="tools", visibility="i")]
    assert [type(event) for event in kept if isinstance(event, MacroSaved | MacroDeleted)] == [MacroSaved, MacroDeleted]
    assert refold([event async for event in log.read_all(caller.sid)]).missing == ()


@pytest.mark.parametrize(
    "by", [("delete_macro", {"name": "Night"}), ("run_tool", {"tool_id": "delete macro", "params": {"name": "Night"}})]
)
async def test_a_macro_that_never_ran_is_deleted(executors: Executors, caller: Caller, by: tuple[str, dict[str, Any]]) -> None:
    async with executors.running(f"{PACKS},voxbridge.services.tools.packs.catalogue.functions"):
        await save(caller, "night", ECHOES)
        await call(caller, by[0], "delete", **by[1])
        asked, _ = await caller.next(ApprovalRequested, "delete")
    assert (asked.name, asked.arguments) == ("delete_macro", {"name": "Night"})


async def test_of_two_macros_that_are_made_of_one_name_at_a_time_the_first_counts(executors: Executors, caller: Caller, log: Log) -> None:
    async with executors.running(PACKS):
        for number in range(4):
            for text in ("one", "other"):
                steps = [{"call": "echo", "arguments": {"text": text}}]
                arguments = {"name": f"tidy up {number}", "steps": steps}
                called = ToolCalled(
                    call_id=f"{text}{number}", name="create_macro", arguments=arguments, kind="server", turn=1, deadline_ms=30_000
                )
                await caller.say(called)
        await eventually(lambda: len(caller.told(ToolCompleted, ToolFailed)) == 8)
    made = {event.call_id for event in caller.told(ToolCompleted) if isinstance(event, ToolCompleted)}
    failed = {event.call_id: event.error.code for event in caller.told(ToolFailed) if isinstance(event, ToolFailed)}
    assert len(made) == 4
    assert set(failed.values()) == {Code.CONFLICT}
    macros = await Library(log, EXAMPLES).macros("local")
    found = {
        key: document.steps[0].action.arguments["text"] for key, document in macros.items() if isinstance(document.steps[0].action, Call)
    }
    assert found == {f"tidy_up_{number}": "one" if f"one{number}" in made else "other" for number in range(4)}


async def test_what_a_macro_cannot_do_is_said_before_it_is_saved(executors: Executors, caller: Caller) -> None:
    bad: list[tuple[dict[str, Any], str]] = [
        ({"steps": ["nothing"]}, "no function 'nothing'"),
        ({"steps": [{"call": "echo"}]}, "text is missing"),
        ({"steps": [{"call": "echo", "arguments": {"text": "x", "more": 1}}]}, "more is no argument"),
        ({"steps": ["run_macro"]}, "cannot call run_macro"),
        ({"steps": [{"run": "night"}]}, "never end"),
        ({"steps": ECHOES, "trigger": "yes"}, "answer to questions"),
        ({"steps": ECHOES, "trigger": "say {what}"}, "not an input"),
        ({"steps": ECHOES, "policy": "explode"}, "for `policy`"),
        ({"steps": [{"call": "echo", "arguments": {"text": "x" * DOCUMENT_BYTES}}]}, "at most"),
    ]
    async with executors.running(PACKS):
        for number, (fields, why) in enumerate(bad):
            await call(caller, "create_macro", f"c{number}", name="night", **fields)
            failed, _ = await caller.next(ToolFailed, f"c{number}")
            assert why in failed.error.message
        await save(caller, "night", ECHOES, trigger="good night")
        for call_id, fields, why in (
            ("x1", {"name": "NIGHT", "steps": ["check"]}, "already"),
            ("x2", {"name": "other", "steps": ECHOES, "trigger": "Good night!"}, "can mean night too"),
        ):
            await call(caller, "create_macro", call_id, **fields)
            assert why in (await caller.next(ToolFailed, call_id))[0].error.message


async def test_an_account_has_a_bound_of_macros(executors: Executors, caller: Caller) -> None:
    async with executors.running(PACKS) as service:
        for number in range(MACROS_LIMIT - 1):
            document = {"name": f"m{number}", "steps": ECHOES}
            await service._keep("local", MacroSaved(macro_id=f"m{number}", account="local", document=document))
        await save(caller, "last", ECHOES)
        await call(caller, "create_macro", "over", name="over", steps=ECHOES)
        assert (await caller.next(ToolFailed, "over"))[0].error.code == Code.OVERLOADED


async def test_a_dry_run_says_what_would_be_called_and_calls_nothing(executors: Executors, caller: Caller) -> None:
    async with executors.running(PACKS):
        await save(caller, "night", ECHOES)
        await call(caller, "run_macro", "dry", name="night", dry_run=True)
        done, _ = await caller.next(TaskCompleted, "dry")
    assert done.result["steps"] == [
        {"step": "one", "action": "call", "target": "echo", "arguments": {"text": "first"}},
        {"step": "step2", "action": "call", "target": "echo", "arguments": {"text": "${prev.text} and last"}},
    ]
    assert not caller.told(RunStepStarted)


async def test_what_was_just_done_is_drafted_read_back_saved_and_run(executors: Executors, caller: Caller) -> None:
    async with executors.running(f"{PACKS},voxbridge.services.tools.packs.catalogue.functions") as service:
        await call(caller, "echo", "e1", text="the key is K-2317")
        await caller.next(ToolCompleted, "e1")
        await call(caller, "echo", "e2", text="not needed")
        await caller.next(ToolCompleted, "e2")
        await call(caller, "run_tool", "e3", tool_id="note", params={"text": "the key is K-2317"})
        await caller.next(ToolCompleted, "e3")
        asked = await save(caller, "keys", [], "draft")
        would = "keys would first echo with the key is K-2317, then note. Shall I save it? Please say yes or no."
        assert (asked["status"], asked["spoken"]) == ("needs_approval", would)
        requested, _ = await caller.next(ApprovalRequested, "draft")
        assert [step["action"]["function"] for step in requested.arguments["steps"]] == ["echo", "note"]
        assert await service._library.macros("local") == {}
        await call(caller, "echo", "e4", text="after the question")
        await caller.next(ToolCompleted, "e4")
        await click(caller, ApprovalClicked(approval_id=asked["approval_id"], answer="approved", scope="function"))
        saved, _ = await caller.next(TaskCompleted, "draft")
        assert saved.result["spoken"].startswith("I saved keys: first echo")
        await call(caller, "run_macro", "run", name="keys")
        await caller.next(TaskCompleted, "run")
        document = (await service._library.macros("local"))["keys"]
    assert [step.action for step in document.steps] == [
        Call(function="echo", arguments={"text": "the key is K-2317"}),
        Call(function="note", arguments={"text": "${steps.step1.result.text}"}),
    ]


async def changed(caller: Caller, call_id: str, **arguments: Any) -> Any:
    await call(caller, "change_macro", call_id, **arguments)
    return (await caller.next(ToolCompleted, call_id))[0].result


async def refused(caller: Caller, call_id: str, **arguments: Any) -> Any:
    await call(caller, "change_macro", call_id, **arguments)
    return (await caller.next(ToolFailed, call_id))[0].error


async def test_a_macro_gets_another_name_trigger_and_policy(executors: Executors, caller: Caller) -> None:
    async with executors.running(PACKS) as service:
        await save(caller, "evening", ECHOES, trigger="lights out")
        renamed = await changed(caller, "rename", name="Evening", new_name="Late night")
        assert (renamed["macro_id"], renamed["spoken"]) == ("late_night", "evening is called Late night now.")
        started = await changed(caller, "trigger", name="late night", trigger="off to bed")
        assert (started["triggers"], started["spoken"]) == (["off to bed"], 'Say "off to bed" to run it.')
        queued = await changed(caller, "policy", name="late night", policy="queued")
        assert queued["spoken"].endswith("If it is started while it runs, that waits.")
        await changed(caller, "error", name="late night", policy="continue")
        macros = await service._library.macros("local")
        assert list(macros) == ["late_night"]
        assert (macros["late_night"].mode, macros["late_night"].on_error) == ("queued", "continue")
        await call(caller, "run_macro", "run", name="late night")
        await caller.next(TaskCompleted, "run")


async def test_a_macro_is_not_changed_into_what_could_not_be(executors: Executors, caller: Caller) -> None:
    async with executors.running(PACKS) as service:
        await save(caller, "one", ECHOES, "m1", trigger="first")
        await save(caller, "two", ECHOES[:1], "m2", trigger="second")
        await save(caller, "outer", [{"run": "one"}], "m3")
        before = await service._library.macros("local")
        assert (await refused(caller, "c1", name="two", new_name="one")).code == Code.CONFLICT
        assert (await refused(caller, "c2", name="two", trigger="First!")).code == Code.CONFLICT
        runs = await refused(caller, "c3", name="one", new_name="three")
        assert (runs.code, runs.message) == (Code.CONFLICT, "outer runs one by its name; delete outer first.")
        assert (await refused(caller, "c4", name="two")).code == Code.INVALID_ARGUMENT
        assert await service._library.macros("local") == before


async def test_nothing_to_draft_from_is_said(executors: Executors, caller: Caller) -> None:
    async with executors.running(PACKS):
        await call(caller, "create_macro", "draft", name="nothing")
        assert (await caller.next(ToolFailed, "draft"))[0].error.code == Code.NOT_FOUND


async def test_a_run_that_was_killed_goes_on_at_its_step_and_repeats_nothing(
    executors: Executors, config: Config, caller: Caller, log: Log, tmp_path: Path
) -> None:
    files = [tmp_path / f"step{number}" for number in range(3)]
    steps = [{"id": f"s{number}", "call": "harmless", "arguments": {"file": str(file)}} for number, file in enumerate(files)]
    release(files[0])
    async with process(config) as killed:
        await save(caller, "three", steps)
        await call(caller, "run_macro", "run", name="three")
        await eventually(files[1].exists)
        killed.kill()
        await killed.wait()
    release(*files)
    async with executors.running(PACKS):
        await caller.next(TaskCompleted, "run")
    ran = [len(file.read_text().splitlines()) for file in files]
    assert ran == [1, 2, 1], "the idempotent step was begun again, and no other"
    assert [event.step for event in caller.told(RunStepCompleted) if isinstance(event, RunStepCompleted)] == ["s0", "s1", "s2"]
    assert refold([event async for event in log.read_all(caller.sid)]).missing == ()


async def test_a_step_that_may_have_changed_something_is_not_run_again(
    executors: Executors, config: Config, caller: Caller, tmp_path: Path
) -> None:
    file = tmp_path / "changed"
    async with process(config) as killed:
        await save(caller, "once", [{"call": "change", "arguments": {"file": str(file)}}, ECHOES[0]])
        await call(caller, "run_macro", "run", name="once")
        await eventually(file.exists)
        killed.kill()
        await killed.wait()
    release(file)
    async with executors.running(PACKS):
        failed, _ = await caller.next(TaskFailed, "run")
    assert failed.error.code == Code.INTERRUPTED
    assert len(file.read_text().splitlines()) == 1


async def test_a_drained_executor_leaves_the_next_step_to_its_successor(executors: Executors, caller: Caller, tmp_path: Path) -> None:
    files = [tmp_path / "a", tmp_path / "b"]
    async with executors.running(PACKS) as first:
        await save(caller, "two", [{"call": "change", "arguments": {"file": str(file)}} for file in files])
        await call(caller, "run_macro", "run", name="two")
        await eventually(files[0].exists)
        draining = asyncio.create_task(first.drain())
        release(files[0])
        await draining
        assert not files[1].exists()
    release(files[1])
    async with executors.running(PACKS):
        await caller.next(TaskCompleted, "run")
    assert [len(file.read_text().splitlines()) for file in files] == [1, 1]


async def test_a_workflow_of_a_file_runs_with_its_inputs(executors: Executors, caller: Caller, tmp_path: Path) -> None:
    steps = [{"call": "echo", "arguments": {"text": "${input.who}"}}]
    (tmp_path / "greet.json").write_text(json.dumps({"name": "greet", "inputs": {"who": {}}, "steps": steps}))
    (tmp_path / "broken.json").write_text("{")
    async with executors.running(PACKS, workflows_dir=tmp_path):
        await call(caller, "list_workflows", "list")
        listed, _ = await caller.next(ToolCompleted, "list")
        assert [one["name"] for one in listed.result["workflows"]] == ["focus block", "two cities", "greet"]
        await call(caller, "run_workflow", "run", name="Greet", inputs={"who": "Ada"})
        done, _ = await caller.next(TaskCompleted, "run")
        assert done.result["text"] == "Ada"
        await call(caller, "run_workflow", "bare", name="greet")
        assert "needs a value" in (await caller.next(ToolFailed, "bare"))[0].error.message


@pytest.mark.parametrize(
    ("name", "inputs", "said"), [("two cities", {}, "Tokyo"), ("focus block", {"topic": "mail", "minutes": 1}, "mail")]
)
async def test_the_workflows_that_are_always_there_run(
    executors: Executors, caller: Caller, tmp_path: Path, name: str, inputs: dict[str, Any], said: str
) -> None:
    async with executors.running("built-in", workflows_dir=tmp_path) as service:
        functions = {tool.name: tool.card() for tool in service._tools.values()}
        for document in read_folders(EXAMPLES).values():
            check(document, functions, {})
        await call(caller, "run_workflow", "run", name=name, inputs=inputs)
        done, _ = await caller.next(TaskCompleted, "run")
    assert said in done.result["spoken"]


def test_a_file_that_is_no_workflow_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "w.json"
    for text in ("{", "[]", '{"name": "x"}', "[" * 100_000, "\x00", " " * (FILE_BYTES + 1)):
        path.write_text(text)
        with pytest.raises(VoxbridgeError) as caught:
            read_file(path)
        assert caught.value.code in (Code.INVALID_ARGUMENT, Code.TOO_LARGE)
    with pytest.raises(VoxbridgeError):
        read_file(tmp_path / "absent.json")


async def test_a_macro_of_other_rules_is_left_out(log: Log, tmp_path: Path) -> None:
    keeper = SessionWriter(log, subjects.account_log("local"), "tools")
    for name, document in (("old", {"nothing": 1}), ("new", {"name": "new", "steps": ECHOES})):
        await keeper.append(MacroSaved(macro_id=name, account="local", document=document), ts=1, cause=None)
    assert list(await Library(log, tmp_path).macros("local")) == ["new"]
    assert await Library(log, tmp_path).macros("other") == {}

"""A row for every limit of the tool executor: what is at the bound passes, and what is beyond it is refused with the field and the limit
named, or cut to it. A constant without a row fails, and so does a row that names a test that is not there."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest
from redis.asyncio import Redis

from tests.tools.limits import PROOFS
from tests.tools.proofs import Elsewhere, Kept, Limit, Refused
from voxbridge.services.tools.core.inputs import Accepted
from voxbridge.services.tools.core.outputs import Resolve
from voxbridge.services.tools.isolation import children as children_module
from voxbridge.services.tools.isolation.children import Children
from voxbridge.services.tools.packs.device import sensors
from voxbridge.services.tools.packs.everyday import calculator
from voxbridge.services.tools.registry import load
from voxbridge.services.tools.session import decisions as decisions_module
from voxbridge.services.tools.session import history
from voxbridge.services.tools.session.customers import Customers
from voxbridge.services.tools.session.decisions import Decisions
from voxbridge.services.tools.session.library import Library
from voxbridge.shared.clock import SystemClock
from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events.voice import ToolCalled
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.writer import SessionWriter

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / "voxbridge" / "services" / "tools"
_LIMIT = re.compile(r"_?[A-Z_]*(LIMIT|KEPT)(_[A-Z]+)?|[A-Z_]+_(BYTES|CHARACTERS)")


def declared() -> dict[Limit, float]:
    """Return the limits of the executor, with their values."""
    found: dict[Limit, float] = {}
    for file in sorted(TOOLS.rglob("*.py")):
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and _LIMIT.fullmatch(node.target.id):
                module = ".".join(file.relative_to(TOOLS).with_suffix("").parts)
                found[module, node.target.id] = getattr(importlib.import_module(f"voxbridge.services.tools.{module}"), node.target.id)
    return found


DECLARED = declared()


def test_every_limit_has_a_row_and_every_row_a_limit() -> None:
    assert {limit for limit in DECLARED if limit not in PROOFS} == set()
    assert {limit for limit in PROOFS if limit not in DECLARED} == set()


def _named(limit: Limit) -> str:
    return ".".join(limit)


@pytest.mark.parametrize("limit", [limit for limit, proof in PROOFS.items() if isinstance(proof, Refused)], ids=_named)
def test_what_is_at_the_bound_passes_and_beyond_it_the_error_names_field_and_limit(limit: Limit) -> None:
    proof, bound = PROOFS[limit], int(DECLARED[limit])
    assert isinstance(proof, Refused)
    proof.take(bound)
    with pytest.raises(VoxbridgeError) as refused:
        proof.take(bound + proof.step)
    error = refused.value
    assert error.code == proof.code
    if proof.field is not None:
        assert (error.field or "").startswith(proof.field), error.field
    told = error.message.replace(",", "").replace("_", "")
    assert error.limit == DECLARED[limit] or re.search(rf"\b{bound}\b", told), (error.limit, error.message)


@pytest.mark.parametrize("limit", [limit for limit, proof in PROOFS.items() if isinstance(proof, Kept)], ids=_named)
def test_what_is_at_the_bound_is_kept_and_what_is_beyond_is_cut_or_left_out(limit: Limit) -> None:
    proof, bound = PROOFS[limit], int(DECLARED[limit])
    assert isinstance(proof, Kept)
    assert proof.take(bound) == bound
    assert proof.take(bound + 1) <= bound + proof.more


@pytest.mark.parametrize("limit", [limit for limit, proof in PROOFS.items() if isinstance(proof, Elsewhere)], ids=_named)
def test_the_test_that_a_row_names_is_there(limit: Limit) -> None:
    proof = PROOFS[limit]
    assert isinstance(proof, Elsewhere)
    text = (ROOT / "tests" / proof.file).read_text()
    assert re.search(rf"^(async )?def {proof.test}\(", text, re.MULTILINE), f"{proof.file} has no {proof.test}"


def _entries(tmp_path: Path, count: int) -> int:
    for number in range(count):
        (tmp_path / f"thermal_zone{number}").touch()
    return len(sensors._entries(tmp_path, "thermal_zone"))


def _output(tmp_path: Path, size: int) -> object:
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\nhead -c {size} /dev/zero\n")
    program.chmod(0o755)
    return sensors._output(str(program), 5.0)


async def test_what_decisions_need_is_kept_of_so_many_accounts(log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decisions_module, "ACCOUNTS_KEPT", 2)

    async def room(_account: str, _sid: str, _call_id: str) -> bool:
        return True

    config = Config(data_dir=tmp_path)
    customers = Customers.of(config, Redis(), log)
    decisions = Decisions(log, load(["tests.tools.pack"], timeout_s=10), Library(log, tmp_path), room, customers)
    for number, account in enumerate(("a", "b", "a", "c")):
        call = ToolCalled(
            call_id=f"c{number}", name="guarded", arguments={"text": "x"}, kind="server", turn=1, deadline_ms=1, account=account
        )
        await decisions.learn("s1", call)
        assert list(decisions._known) == [["a"], ["a", "b"], ["b", "a"], ["a", "c"]][number]
    forgotten = decisions.decide(Resolve("c9", "guarded", {"text": "x"}, "b", None), full=False)
    assert isinstance(forgotten, Accepted)
    assert forgotten.approval == "always"  # nothing that was not read anew approves


@pytest.mark.parametrize("beyond", [0, 1])
async def test_the_newest_calls_of_a_session_are_drafted_from(log: Log, beyond: int) -> None:
    sid, now = new_session_id(), SystemClock().now_us()
    voice = SessionWriter(log, sid, "voice")
    for number in range(history.CALLS_LIMIT + beyond):
        call = ToolCalled(call_id=f"c{number}", name="echo", arguments={"n": number}, kind="server", turn=1, deadline_ms=1, account="local")
        await voice.append(call, ts=now, cause=None)
    found = await history.done(log, sid, load(["tests.tools.pack"], timeout_s=10), now=now)
    assert [past.arguments["n"] for past in found] == list(range(beyond, history.CALLS_LIMIT + beyond))


async def test_a_child_makes_so_many_calls_and_another_takes_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children_module, "CALLS_LIMIT", 2)
    known = load(["tests.tools.pack"], timeout_s=10)
    pool = Children(known)
    try:
        pids = [(await pool.run(known["double"], {"number": number}))["pid"] for number in range(4)]
    finally:
        pool.close()
        await pool.stop()
    assert pids[0] == pids[1] != pids[2] == pids[3]


async def test_an_answer_of_a_child_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    known = load(["tests.tools.pack"], timeout_s=10)
    monkeypatch.setattr(children_module, "FRAME_LIMIT", 10)
    pool = Children(known)
    try:
        with pytest.raises(VoxbridgeError) as refused:
            await pool.run(known["double"], {"number": 1})
    finally:
        pool.close()
        await pool.stop()
    assert (refused.value.code, refused.value.field, refused.value.limit) == (Code.TOO_LARGE, "result", 10)


def test_a_program_of_sensors_says_so_much(tmp_path: Path) -> None:
    _output(tmp_path, sensors.OUTPUT_LIMIT)
    with pytest.raises(VoxbridgeError, match="more than") as refused:
        _output(tmp_path, sensors.OUTPUT_LIMIT + 1)
    assert refused.value.limit == sensors.OUTPUT_LIMIT


def test_so_many_sensors_are_read(tmp_path: Path) -> None:
    assert _entries(tmp_path, sensors.ENTRIES_LIMIT) == sensors.ENTRIES_LIMIT
    assert _entries(tmp_path, sensors.ENTRIES_LIMIT + 1) == sensors.ENTRIES_LIMIT


def test_a_number_is_worked_out_up_to_its_bound() -> None:
    assert calculator.evaluate("10 ** 299 * 10")[0] == calculator.MAGNITUDE_LIMIT
    with pytest.raises(VoxbridgeError) as refused:
        calculator.evaluate("10 ** 299 * 11")
    assert (refused.value.field, refused.value.limit) == ("expression", calculator.MAGNITUDE_LIMIT)

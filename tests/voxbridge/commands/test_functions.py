"""`voxbridge functions` and `voxbridge new-pack`: what is listed, and a pack that works as it is made."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from voxbridge.commands.functions import functions, new_pack, page
from voxbridge.services.tools.registry import BUILT_IN, load, named
from voxbridge.shared.errors import Code, VoxbridgeError


def test_the_functions_of_this_installation_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("VOXBRIDGE_TOOL_PACKS", "voxbridge.services.tools.packs.everyday.time,tests.tools.pack")
    shown = CliRunner().invoke(functions).output
    assert "current_time" in shown
    assert "destroy" in shown
    assert "destructive" in shown
    assert "set_timer" not in shown


def test_the_page_has_every_built_in_function_once() -> None:
    printed = CliRunner().invoke(functions, ["--markdown"]).output
    assert printed == page()
    for name in load(BUILT_IN, timeout_s=30):
        assert printed.count(f"| `{name}` |") == 1


def test_a_new_pack_has_a_test_that_passes_and_is_known_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = CliRunner().invoke(new_pack, ["my_orders", "--into", str(tmp_path)])
    assert result.exit_code == 0, result.output
    folder = tmp_path / "voxbridge-my-orders"
    assert f"pip install -e {folder}" in result.output
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(Path.cwd())])}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts=", "--rootdir", str(folder), str(folder)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False, cwd=folder)
    assert "7 passed" in ran.stdout, ran.stdout + ran.stderr

    installed = tmp_path / "voxbridge_my_orders-0.1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Name: voxbridge-my-orders\nVersion: 0.1.0\n")
    (installed / "entry_points.txt").write_text("[voxbridge.packs]\nmy_orders = voxbridge_my_orders.functions\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(folder))
    packs = named("built-in, my_orders")
    assert packs == [*BUILT_IN, "voxbridge_my_orders.functions"]
    tool = load(packs, timeout_s=30)["find_my_orders"]
    assert (tool.category, tool.effect, len(tool.utterances)) == ("my_orders", "read", 3)


@pytest.mark.parametrize("name", ["", "Orders", "2orders", "my-orders", "x" * 41, "../orders", "a b"])
def test_a_name_that_is_no_package_name_is_refused(tmp_path: Path, name: str) -> None:
    error = CliRunner().invoke(new_pack, [name, "--into", str(tmp_path)]).exception
    assert isinstance(error, VoxbridgeError)
    assert (error.code, error.field) == (Code.INVALID_ARGUMENT, "NAME")
    assert list(tmp_path.iterdir()) == []


def test_a_pack_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    kept = tmp_path / "voxbridge-orders"
    kept.mkdir()
    error = CliRunner().invoke(new_pack, ["orders", "--into", str(tmp_path)]).exception
    assert isinstance(error, VoxbridgeError)
    assert error.code == Code.CONFLICT
    assert list(kept.iterdir()) == []


def test_packs_are_named_by_module_and_by_built_in() -> None:
    assert named("") == list(BUILT_IN)
    assert named("a.b, built-in ,a.b,") == ["a.b", *BUILT_IN]

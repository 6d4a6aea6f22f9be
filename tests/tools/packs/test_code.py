"""The functions that judge code find what was planted, and nothing in clean code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.conftest import Caller, Executors
from tests.tools.packs.asking import asking
from voxbridge.services.tools.packs.code import complexity, functions, security, sources
from voxbridge.services.tools.packs.code.sources import gather
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events.voice import Failure
from voxbridge.shared.workspace import READ_LIMIT, Workspace

pytestmark = pytest.mark.timeout(120)

PLANTED = {
    "B602": "import subprocess\nsubprocess.call(input(), shell=True)\n",
    "B105": 'password = "hunter2hunter2"\n',
    "B307": "eval(input())\n",
    "B301": "import pickle\npickle.loads(b'')\n",
    "B506": "import yaml\nyaml.load('a')\n",
    "B324": "import hashlib\nhashlib.md5(b'x')\n",
    "B608": "def find(cursor, name):\n    cursor.execute(\"SELECT * FROM users WHERE name = '%s'\" % name)\n",
    "B501": "import requests\nrequests.get('https://example.com', verify=False, timeout=1)\n",
    "B103": "import os\nos.chmod('/etc/hosts', 0o777)\n",
    "B104": "HOST = '0.0.0.0'\n",
}
CLEAN = '''"""Sums."""

import json


def total(text: str) -> int:
    """Return the sum of a list in JSON."""
    return sum(json.loads(text))
'''
BRANCHES = "def knotty(a, b, c):\n" + "".join(f"    if a == {n} and b > c:\n        c += {n}\n" for n in range(8)) + "    return c\n"
TYPESCRIPT = "export function pick(a: number): string {\n  if (a > 1) { return 'x'; }\n  return a < 0 ? 'y' : 'z';\n}\n"
BOMBS = {
    "brackets": "x = " + "(" * 20_000 + ")" * 20_000,
    "unclosed": "x = " + "[" * 100_000,
    "minus": "x = " + "-" * 50_000 + "1",
    "sum": "x = " + "+".join(["a"] * 50_000),
    "calls": "f" + "()" * 30_000,
    "attributes": "a" + ".b" * 30_000,
    "subscripts": "a" + "[0]" * 30_000,
    "lambdas": "x = " + "lambda: " * 20_000 + "1",
    "nots": "x = " + "not " * 30_000 + "1",
    "blocks": "".join(" " * depth + "if a:\n" for depth in range(200)) + " " * 200 + "pass\n",
    "number": "x = " + "9" * 100_000,
    "quotes": "x = '''" + "a" * 500_000,
    "bad bytes": "x = '\ufffe\uffff'\n\x0c",
}


@pytest.mark.parametrize("rule", sorted(PLANTED))
def test_a_planted_vulnerability_is_found_with_its_line(rule: str) -> None:
    text = '"""A module."""\n\n' + PLANTED[rule]
    line = 2 + len(PLANTED[rule].rstrip().splitlines())
    found = security.scan({"app.py": text})["findings"]
    (finding,) = [one for one in found if one["rule"] == rule]
    assert (finding["file"], finding["line"]) == ("app.py", line)
    assert finding["severity"] in ("LOW", "MEDIUM", "HIGH")
    assert finding["says"]


def test_clean_code_is_clean_and_an_allowed_line_is_left_out() -> None:
    assert security.scan({"clean.py": CLEAN}) == {"findings": [], "unreadable": {}}
    assert [one["rule"] for one in security.scan({"a.py": "eval(input())  # nosec\n"})["findings"]] == []
    assert [one["rule"] for one in security.scan({"a.py": "eval(input())  # nosec B307\n"})["findings"]] == []
    assert [one["rule"] for one in security.scan({"a.py": "eval(input())  # nosec B105\n"})["findings"]] == ["B307"]


def test_the_worst_is_first_and_a_broken_file_does_not_hide_the_others() -> None:
    found = security.scan({"a.py": PLANTED["B105"], "b.py": PLANTED["B602"], "broken.py": "def f(:\n"})
    assert found["findings"][0]["rule"] == "B602"
    assert found["unreadable"] == {"broken.py": "line 1 is not valid Python"}
    with pytest.raises(VoxbridgeError, match=r"broken\.py cannot be scanned: line 1 is not valid Python"):
        security.scan({"broken.py": "def f(:\n"})


def test_complexity_is_that_of_the_branches_in_python_and_typescript() -> None:
    found = complexity.measure({"a.py": CLEAN, "b.py": BRANCHES, "c.ts": TYPESCRIPT})["functions"]
    assert [(one["function"], one["complexity"], one["parameters"]) for one in found] == [
        ("knotty", 17, 3),
        ("pick", 3, 1),
        ("total", 1, 1),
    ]
    assert (found[0]["file"], found[0]["line"], found[0]["lines"]) == ("b.py", 1, 18)


async def test_both_are_asked_of_files_and_folders_by_spoken_paths(executors: Executors, caller: Caller, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    (folder / "src").mkdir(parents=True)
    (folder / "src/bad_app.py").write_text(PLANTED["B602"])
    (folder / "src/clean.py").write_text(CLEAN)
    (folder / "src/knots.py").write_text(BRANCHES)
    (folder / "src/pick.ts").write_text(TYPESCRIPT)
    (folder / "src/notes.txt").write_text("notes")
    (folder / "empty").mkdir()
    async with asking(executors, caller, folder, "code") as ask:
        bad = await ask.answer("scan_code_security", path="bad app dot py")
        assert (bad["path"], bad["files"], bad["findings"][0]["rule"]) == ("src/bad_app.py", 1, "B602")
        assert bad["spoken"].startswith(f"I found {bad['count']} problems in src/bad_app.py. The worst is in line 2: ")
        clean = await ask.answer("scan_code_security", path="src/clean.py")
        assert (clean["count"], clean["spoken"]) == (0, "I found no security problems in src/clean.py.")
        whole = await ask.answer("scan_code_security", path="src")
        assert (whole["files"], whole["count"]) == (3, bad["count"])
        assert "src/bad_app.py, line 2" in whole["spoken"]
        complex_ = await ask.answer("analyze_code_complexity", path="src")
        assert (complex_["files"], complex_["functions"][0]["function"], complex_["count"]) == (4, "knotty", 3)
        said = "The most complex function in src is knotty, with a complexity of 17. 1 of 3 are hard to follow."
        assert complex_["spoken"] == said
        for path, code in (("empty", Code.NOT_FOUND), ("notes.txt", Code.INVALID_ARGUMENT), ("nothing.py", Code.NOT_FOUND)):
            assert (await ask.refusal("scan_code_security", path=path)).code == code
            assert (await ask.refusal("analyze_code_complexity", path=path)).code == code
        missing = await ask.refusal("scan_code_security")
        assert "path" in missing.message


async def test_a_bomb_for_a_parser_costs_its_own_call_at_most(executors: Executors, caller: Caller, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "clean.py").write_text(CLEAN)
    for number, text in enumerate(BOMBS.values()):
        (folder / f"bomb{number}.py").write_text(text)
    (folder / "huge.py").write_text("x = 1\n" * (READ_LIMIT // 6 + 1))
    async with asking(executors, caller, folder, "code") as ask:
        for number, name in enumerate(BOMBS):
            for function in ("scan_code_security", "analyze_code_complexity"):
                found = await ask.outcome(function, {"path": f"bomb{number}.py"})
                assert not isinstance(found, Failure) or found.code != Code.INTERNAL, (name, function, found)
        assert (await ask.refusal("scan_code_security", path="huge.py")).code == Code.TOO_LARGE
        assert (await ask.answer("scan_code_security", path="clean.py"))["count"] == 0


def test_a_folder_is_read_within_its_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        (tmp_path / f"m{number}.py").write_text("x = 1\n")
    (tmp_path / "bytes.py").write_bytes(b"\xff")
    workspace = Workspace([tmp_path])
    found = gather(workspace, ".", (".py",))
    assert (len(found.texts), found.left_out) == (5, 1)
    monkeypatch.setattr(sources, "FILES_LIMIT", 3)
    found = gather(workspace, ".", (".py",))
    assert (len(found.texts), found.left_out) == (3, 3)
    monkeypatch.setattr(sources, "TOTAL_LIMIT", 13)
    found = gather(workspace, ".", (".py",))
    assert (len(found.texts), found.left_out) == (2, 4)


def test_a_long_list_is_cut_with_a_count() -> None:
    text = "".join("eval(input())\n" for _ in range(functions.FOUND_LIMIT + 1))
    found = functions.scan({"a.py": text})
    assert (len(found["findings"]), found["total"]) == (functions.FOUND_LIMIT, functions.FOUND_LIMIT + 1)
    shown = sources.some(found["findings"], functions.SHOWN)
    assert (len(shown["found"]), shown["not_shown"]) == (functions.SHOWN, functions.FOUND_LIMIT - functions.SHOWN)

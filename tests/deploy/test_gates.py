from __future__ import annotations

from pathlib import Path

import pytest

from deploy.gates import configuration, docstrings, functions, length, licences, purity, readme


def test_every_core_is_pure() -> None:
    assert len(purity.cores()) >= 3
    assert purity.problems() == []


@pytest.mark.parametrize(
    "line",
    [
        "import time",
        "import asyncio as a",
        "from random import random",
        "from os import environ",
        "from voxbridge.shared.clock import SystemClock",
        "from voxbridge.shared.ids import new_session_id",
        "import numpy.random",
        "def late():\n    import secrets",
        "x = open('f')",
        "import datetime\nx = datetime.datetime.now()",
    ],
)
def test_a_core_that_reaches_out_is_found(tmp_path: Path, line: str) -> None:
    core = tmp_path / "core.py"
    core.write_text(f'"""A core."""\n\n{line}\n')
    (problem,) = purity.problems_of(core)
    assert problem.startswith("core.py:")
    assert problem.endswith("core.py must be pure.")


def test_a_core_may_use_values(tmp_path: Path) -> None:
    core = tmp_path / "core.py"
    lines = ["import re", "import msgspec", "from voxbridge.shared.errors import Code", "from voxbridge.shared.step.fold import fold"]
    core.write_text("\n".join(lines))
    assert purity.problems_of(core) == []


@pytest.mark.parametrize(
    ("line", "where"),
    [
        ("from voxbridge.shared.bus.permission_check import ANSWER_S", "voxbridge/shared/bus/permission_check.py"),
        ("from voxbridge.shared.secrets import secret_file", "voxbridge/shared/secrets/secret_file.py"),
        ("from voxbridge.supervisor.repeats import Repeats\nfrom voxbridge.supervisor import logfile", "voxbridge/supervisor/logfile.py"),
        ("from voxbridge.services.voice.ownership import orphans", "voxbridge/services/voice/ownership/orphans.py"),
    ],
)
def test_what_a_core_reaches_by_other_modules_is_found_where_it_is(tmp_path: Path, line: str, where: str) -> None:
    core = tmp_path / "core.py"
    core.write_text(f"{line}\n")
    found = purity.problems_of(core)
    assert any(problem.startswith(f"{where}:") for problem in found), found
    assert all(problem.endswith("core.py must be pure.") for problem in found)


def test_no_module_is_too_long() -> None:
    assert length.problems() == []


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("def f():\n" + "    x = 1\n" * 60, "1 f has 61 lines"),
        ("class C:\n    def f(self, a, b, c, d, e, f, g, h): ...\n", "2 f takes 8 parameters"),
        ("def f():\n" + "    x = 1\n" * 59, ""),
        ("class C:\n    def f(self, a, b, c, d, /, e, f, *, g): ...\n", ""),
        ("@click.command()\ndef f(a, b, c, d, e, f, g, h): ...\n", ""),
    ],
)
def test_a_function_that_is_too_long_or_takes_too_much_is_named(tmp_path: Path, source: str, problem: str) -> None:
    file = tmp_path / "module.py"
    file.write_text(source)
    found = list(length.of(file))
    assert [one.startswith(problem) for one in found] == ([True] if problem else [])


def test_docstrings_open_with_a_verb_or_a_name() -> None:
    assert docstrings.problems() == []


@pytest.mark.parametrize("opening", ["What was heard.", "Whether it runs.", "That which is left.", "Those who wait."])
def test_a_docstring_that_opens_with_a_clause_is_named_with_its_line(tmp_path: Path, opening: str) -> None:
    file = tmp_path / "module.py"
    file.write_text(
        f'"""Return the words."""\n\n\nclass Heard:\n    """{opening}"""\n\n    def words(self) -> str:\n        """Return the words."""\n'
    )
    (problem,) = docstrings.of(file)
    assert problem.startswith(f"4 has a docstring that opens with {opening.split()[0]!r}")


@pytest.mark.parametrize("value", ["LIMIT = 3", "limit: int = 3", "limit: int"])
def test_the_text_behind_a_value_is_a_docstring_too(tmp_path: Path, value: str) -> None:
    file = tmp_path / "module.py"
    file.write_text(f'class Bounds:\n    """Bounds."""\n\n    {value}\n    """What it holds."""\n')
    (problem,) = docstrings.of(file)
    assert problem.startswith("5 has a docstring that opens with 'What'")


def test_the_configuration_page_is_current() -> None:
    assert configuration.problems() == []


def test_the_page_of_functions_is_current_and_one_that_is_not_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert functions.problems() == []
    monkeypatch.setattr(functions, "ROOT", tmp_path)
    (problem,) = functions.problems()
    assert "voxbridge functions --markdown" in problem


def test_every_installed_licence_is_allowed() -> None:
    assert licences.problems() == []


@pytest.mark.parametrize(
    ("expression", "fine"),
    [
        ("MIT", True),
        ("MIT AND Zlib", True),
        ("GPL-3.0-or-later OR MIT", True),
        ("(MIT OR Apache-2.0) AND MPL-2.0", True),
        ("GPL-3.0-or-later", False),
        ("MIT AND GPL-3.0-or-later", False),
        ("AGPL-3.0-only", False),
        ("(MIT OR Apache-2.0) AND GPL-3.0-only", False),
        ("MIT OR GPL-3.0-only AND AGPL-3.0-only", True),
        ("(MIT", False),
        ("MIT Apache-2.0", False),
        ("Proprietary", False),
    ],
)
def test_licence_expressions_are_judged_by_their_parts(expression: str, fine: bool) -> None:
    assert licences.allowed(expression) is fine


def test_an_unknown_licence_and_an_outdated_exception_are_said() -> None:
    assert licences.problem_of("nobody", "") == "nobody declares no licence; look it up and write it into deploy/gates/licences.py."
    assert "now says MIT" in (licences.problem_of("piper-tts", "MIT") or "")
    assert licences.problem_of("piper-tts", "GPL-3.0-or-later") is None


def test_readme_has_the_34_functions_once_each_as_the_code_has_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [name for group in readme.NAMES.values() for name in group]
    assert (len(names), len(set(names))) == (34, 34)
    assert readme.problems() == []
    changed, text = tmp_path / "README.md", readme.README.read_text()
    monkeypatch.setattr(readme, "README", changed)
    changed.write_text(text.replace("`run_agent`", "`run_agents`", 1))
    assert "run `python -m deploy.gates.readme`" in readme.problems()[0]
    changed.write_text("# Nothing")
    assert "no place for the table" in readme.problems()[0]

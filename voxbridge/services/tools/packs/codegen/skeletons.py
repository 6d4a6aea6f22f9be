"""The text of pytest skeletons for a module's outline. Pure.

Owns the form of the text. What is checked holds now and fails when the module's interface changes; what nobody can know from the text, the
values, is left to be written, as a skipped test.
"""

from __future__ import annotations

from typing import Any


def skeletons(module: str, file_name: str, outline: dict[str, Any]) -> str:
    """Return the text of a test module for the file `file_name` in the folder above it; `module` is a name for it that no other has."""
    functions, classes = outline["functions"], outline["classes"]
    needs = {
        "doctest": any(one["examples"] for one in (*functions, *classes)),
        "importlib.util": True,
        "inspect": bool(functions),
        "sys": True,
    }
    lines = [
        f'"""Tests of {_plain(file_name)}."""',
        "",
        *(f"import {name}" for name, needed in needs.items() if needed),
        "from pathlib import Path",
        "from types import ModuleType",
        "",
        "import pytest",
        "",
        f"SOURCE = Path(__file__).parents[1] / {file_name!r}",
        "",
        "",
        '@pytest.fixture(name="module", scope="module")',
        "def load() -> ModuleType:",
        '    """Load the module under test from its file; skip where something that it imports is not installed."""',
        f"    spec = importlib.util.spec_from_file_location({module!r}, SOURCE)",
        "    assert spec is not None and spec.loader is not None",
        "    loaded = importlib.util.module_from_spec(spec)",
        f"    sys.modules[{module!r}] = loaded",
        "    try:",
        "        spec.loader.exec_module(loaded)",
        "    except ImportError as error:",
        '        pytest.skip(f"{SOURCE.name} cannot be imported: {error}")',
        "    return loaded",
    ]
    for one in functions:
        lines += _of_function(one)
    for one in classes:
        lines += _of_class(one)
    return "\n".join([*lines, ""])


def _of_function(one: dict[str, Any]) -> list[str]:
    name = one["name"]
    checks = [f"    assert callable(module.{name})"]
    if one["plain"]:
        if one["coroutine"]:
            checks.append(f"    assert inspect.iscoroutinefunction(module.{name}) or inspect.isasyncgenfunction(module.{name})")
        compare = "<=" if one["starred"] else "=="
        checks.append(f"    assert {_set(one['parameters'])} {compare} set(inspect.signature(module.{name}).parameters)")
    given = ", ".join(one["parameters"])
    return [
        "",
        "",
        f"def test_{name}_takes_its_arguments(module: ModuleType) -> None:",
        *checks,
        "",
        "",
        f'@pytest.mark.skip(reason="write what {name}({given[:200]}) returns")',
        f"def test_{name}_returns_what_it_should(module: ModuleType) -> None:",
        f"    assert module.{name}",
        *_of_examples(one),
    ]


def _of_class(one: dict[str, Any]) -> list[str]:
    name = one["name"]
    lines = ["", "", f"def test_{name}_has_its_methods(module: ModuleType) -> None:", f"    assert isinstance(module.{name}, type)"]
    lines += [
        f"    assert callable(getattr(module.{name}, {method!r}, None)) or hasattr(module.{name}, {method!r})" for method in one["methods"]
    ]
    return [
        *lines,
        "",
        "",
        f'@pytest.mark.skip(reason="write what a {name} does")',
        f"def test_{name}_does_what_it_should(module: ModuleType) -> None:",
        f"    assert module.{name}",
        *_of_examples(one),
    ]


def _of_examples(one: dict[str, Any]) -> list[str]:
    if not one["examples"]:
        return []
    name = one["name"]
    return [
        "",
        "",
        f"def test_{name}_does_as_its_examples_say(module: ModuleType) -> None:",
        "    runner = doctest.DocTestRunner(verbose=False)",
        f"    for example in doctest.DocTestFinder().find(module.{name}, {name!r}, module=False, globs=vars(module).copy()):",
        "        runner.run(example)",
        "    assert runner.summarize(verbose=False).failed == 0",
    ]


def _set(names: list[str]) -> str:
    return "{" + ", ".join(repr(name) for name in names) + "}" if names else "set()"


def _plain(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "._-/ " else "_" for letter in name)

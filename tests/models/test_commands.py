"""Shell commands by what people say, and the terminal that is meant by its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from voxbridge.services.models.choice import commands
from voxbridge.services.models.choice.arguments import narrowed

TERMINALS = ("Build", "Notes", "Claude", "Claude Code")
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"command": {"type": "string"}, "terminal": {"type": "string"}},
    "required": ["command"],
}


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("In the Notes terminal, make a folder called Papers.", "mkdir Papers"),
        ("please create a new folder named out in Build", "mkdir out"),
        ("in the left one make a file called notes", "touch notes"),
        ("make a file called shopping list", "touch 'shopping list'"),
        ("make a file called x;reboot", "touch 'x;reboot'"),
        ("make a file called $HOME", "touch '$HOME'"),
        ("in Build, show me the free space", "df -h"),
        ("how much space is left on the last one?", "df -h"),
        ("list all the files in the second terminal", "ls"),
        ("which files are there", "ls"),
        ("in Notes go into the source folder", "cd source"),
        ("go to the build folder", "cd build"),
        ("go up one level in Build", "cd .."),
        ("show me the contents of readme.md", "cat readme.md"),
        ("could you print the time in Notes", "date"),
        ("where am I", "pwd"),
        ("show the last commits", "git log --oneline -10"),
    ],
)
def test_a_request_means_a_command(said: str, line: str) -> None:
    assert commands.command(said, TERMINALS) == line


@pytest.mark.parametrize(
    "said",
    [
        "make a folder called out and go into it",
        "make a folder for the pictures of last summer",
        "tell Claude to make a folder called out",
        "list the files that are larger than a megabyte",
        "do not list the files",
        "run the tests",
        "what is the capital of France",
        "make a file called",
        "make me a sandwich",
        "delete the file notes",
        "",
    ],
)
def test_whatever_else_is_said_means_none(said: str) -> None:
    assert commands.command(said, TERMINALS) == ""


@pytest.mark.parametrize(
    ("said", "terminal", "command"),
    [
        ("in the left one make a file called notes", "left one", "touch notes"),
        ("in the left one, make a file called Build", "left one", "touch Build"),
        ("in Build make a file called notes", "Build", "touch notes"),
        ("compile everything in the last terminal", "last terminal", None),
        ("compile everything in Build", "Build", None),
        ("compile everything", None, None),
        ("make a file called Notes", None, "touch Notes"),
    ],
)
def test_the_terminal_is_the_one_that_was_said_and_never_the_name_of_what_is_made(
    said: str, terminal: str | None, command: str | None
) -> None:
    found = narrowed(SCHEMA, said, {"terminal": TERMINALS})["properties"]
    assert found["terminal"].get("enum") == (None if terminal is None else [terminal])
    assert found["command"].get("enum") == (None if command is None else [command])


@dataclass(frozen=True)
class Run:
    """The function that runs a command, with the terminals that there are."""

    name: str = "run_in_terminal"
    parameters: Mapping[str, Any] = field(default_factory=lambda: SCHEMA)
    names: Mapping[str, Sequence[str]] = field(default_factory=lambda: {"terminal": TERMINALS})
    reads: bool = False
    orders: tuple[str, ...] = ()


@pytest.mark.parametrize(
    ("said", "arguments"),
    [
        ("In Notes show me the disk usage", {"command": "df -h", "terminal": "Notes"}),
        ("in the left one make a file called Build", {"command": "touch Build", "terminal": "left one"}),
        ("could you list the files in the Build terminal, please?", {"command": "ls", "terminal": "Build"}),
        ("show me the disk usage", None),
        ("make a file called Build", None),
        ("do not list the files in Build", None),
        ("list the files in Build and in Notes", None),
        ("list the files in Harbour", None),
    ],
)
def test_a_command_in_a_terminal_that_is_named_needs_no_router(said: str, arguments: dict[str, str] | None) -> None:
    found = commands.read(said, [Run()])
    assert [order.arguments for order in found] == ([] if arguments is None else [arguments])
    assert commands.read(said, [Run(names={})]) == (found if "left" in said else [])
    assert commands.read(said, [Run(parameters={"properties": {"terminal": {}}})]) == []


@pytest.mark.parametrize(
    ("heard", "meant"),
    [
        ("In the Notes, Terminal, make a folder called Papers.", "In the Notes Terminal, make a folder called Papers."),
        ("in the left. Terminal make a file called notes", "in the left Terminal make a file called notes"),
        ("Look at the notes' terminals.", "Look at the notes terminal."),
        ("list the terminals, shell by shell", "list the terminals, shell by shell"),
        ("which terminals are there", "which terminals are there"),
    ],
)
def test_a_pause_behind_a_name_is_no_end(heard: str, meant: str) -> None:
    assert commands.unbroken(heard, TERMINALS) == meant


def test_two_places_are_left_to_the_model() -> None:
    assert commands.place("from the left one into the right one") == ""

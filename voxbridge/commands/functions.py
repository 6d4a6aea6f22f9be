"""The commands about functions: list those of the installation, print their page, and begin a pack.

Owns the page docs/functions.md, whose facts are those of the code. Does not own the functions (`voxbridge.services.tools.packs`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console
from rich.table import Table

from voxbridge.commands.new_pack import files
from voxbridge.services.tools.loading import usable
from voxbridge.services.tools.registry import Tool, load, named
from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code, VoxbridgeError

_HEAD: Final = """# Functions

What agents can do, by subject. This page is printed by `voxbridge functions --markdown`. [tools.md](tools.md) says what an effect, an
approval and a task are, and how to write a function; those that are *not listed* are reached by `list_tools` and `run_tool`.
"""
_EXAMPLES: Final = 3
_PACK_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,39}")


@click.command()
@click.option("--markdown", is_flag=True, help="Print docs/functions.md.")
def functions(markdown: bool) -> None:
    """List the functions that agents of this installation may call.

    \b
    Examples:
      voxbridge functions
      VOXBRIDGE_TOOL_PACKS=built-in,my_company.orders voxbridge functions
      voxbridge functions --markdown > docs/functions.md
    """
    if markdown:
        click.echo(page(), nl=False)
        return
    config = Config.from_env()
    loaded = usable(named(config.tool_packs), timeout_s=config.tool_timeout_s)
    for why in loaded.left_out.values():
        click.echo(why, err=True)
    grid = Table("function", "subject", "effect", "approval", "what it does")
    for tool in by_category(loaded.tools):
        grid.add_row(tool.name, tool.category, tool.effect, tool.approval, tool.description)
    Console().print(grid)


@click.command("new-pack")
@click.argument("name")
@click.option("--into", type=click.Path(file_okay=False, path_type=Path), default=Path(), help="Folder to make it in; the current one.")
def new_pack(name: str, into: Path) -> None:
    """Begin a pack of functions: a package with one function, its test, and what makes it known.

    \b
    Examples:
      voxbridge new-pack orders
      voxbridge new-pack orders --into ~/src
    """
    if _PACK_NAME.fullmatch(name) is None:
        message = f"The name of a pack is a lower-case Python name of at most 40 characters, such as `orders`; it is {name[:64]!r}."
        raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field="NAME", limit=40)
    folder = into.expanduser() / f"voxbridge-{name.replace('_', '-')}"
    if folder.exists():
        raise VoxbridgeError(Code.CONFLICT, f"{folder} exists already; choose another name or folder.", field="NAME", retryable=False)
    for path, text in files(name).items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    click.echo(f"Made {folder}. Next:")
    click.echo(f"  pip install -e {folder}          and so it is offered under the name {name}")
    click.echo(f"  pytest {folder}                  its test passes")
    click.echo(f"  VOXBRIDGE_TOOL_PACKS=built-in,{name} voxbridge up")


def page() -> str:
    """Return docs/functions.md for the built-in packs."""
    tools = load(named(""), timeout_s=Config().tool_timeout_s)
    listed = sum(tool.listed for tool in tools.values())
    lines = [_HEAD, f"{len(tools)} functions, {listed} of them listed.", ""]
    for category, group in groupby(by_category(tools), key=lambda tool: tool.category):
        lines += [f"## {category.replace('_', ' ').capitalize()}", ""]
        lines += ["| function | arguments | what it does | effect | |", "|---|---|---|---|---|"]
        lines += [_row(tool) for tool in group]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def by_category(tools: Mapping[str, Tool]) -> Iterable[Tool]:
    """Return the tools by category, then by name."""
    return sorted(tools.values(), key=lambda tool: (tool.category, tool.name))


def _row(tool: Tool) -> str:
    required = tool.parameters.get("required", ())
    properties: dict[str, Any] = tool.parameters.get("properties", {})
    arguments = ", ".join(f"`{name}`" + ("" if name in required else "?") for name in properties)
    said = " · ".join(f"“{utterance}”" for utterance in tool.utterances[:_EXAMPLES])
    notes = [f"approval: {tool.approval}"] if tool.approval != "never" else []
    notes += ["task"] if tool.mode == "task" else []
    notes += [] if tool.listed else ["not listed"]
    what = tool.description.replace("|", "\\|")
    return f"| `{tool.name}` | {arguments} | {what}{f'<br>{said}' if said else ''} | {tool.effect} | {', '.join(notes)} |"

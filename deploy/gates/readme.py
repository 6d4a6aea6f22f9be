"""README's table of the functions by which agents are steered: each as the code has it now.

`python -m deploy.gates.readme` writes the table anew. Owns the list of names, and where the table stands.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from voxbridge.services.tools.registry import BUILT_IN, Tool, load

README: Final = Path(__file__).parents[2] / "README.md"
BEGIN: Final = "<!-- functions: begin (python -m deploy.gates.readme) -->"
END: Final = "<!-- functions: end -->"

NAMES: Final[dict[str, tuple[str, ...]]] = {
    "Tools": ("run_tool", "list_tools"),
    "Knowledge": ("query_kg", "search_kg", "cross_kg_search", "list_kgs", "get_kg_analytics", "ingest_to_kg"),
    "Agents and experts": ("run_agent", "list_agents", "chat_with_expert", "list_experts"),
    "Macros and workflows": ("create_macro", "list_macros", "run_macro", "delete_macro", "run_workflow"),
    "Code": (
        "generate_react_component",
        "generate_fastapi_endpoint",
        "generate_tests",
        "scan_code_security",
        "analyze_code_complexity",
    ),
    "Projects and playbooks": ("create_project", "list_projects", "search_playbooks"),
    "Tours": ("start_guided_tour", "get_available_tours"),
    "The device": ("check_thermal",),
    "The page": ("navigate_page", "get_current_page", "get_workspace_state", "read_page_content", "switch_model", "switch_theme"),
}
"""The 34 functions by subject; the others are in docs/functions.md."""

_KINDS: Final = {"call": "answers", "task": "a task", "alarm": "a task", "run": "a run"}


def table() -> str:
    """Return the table in Markdown."""
    tools = load(BUILT_IN, timeout_s=30)
    lines = ["| | function | what it does | how |", "|---|---|---|---|"]
    for subject, names in NAMES.items():
        for number, name in enumerate(names):
            lines.append(f"| {subject if not number else ''} | `{name}` | {_told(tools.get(name))} |")
    return "\n".join(lines)


def _told(tool: Tool | None) -> str:
    if tool is None:
        return "not there yet | "
    how = [_KINDS.get(tool.mode, tool.mode) if not tool.browser else "the page answers", tool.effect]
    how += [f"approval: {tool.approval}"] if tool.approval != "never" else []
    return f"{tool.description.splitlines()[0].replace('|', chr(92) + '|')} | {', '.join(how)}"


def written(text: str) -> str:
    """Return README with the table as it is now. Raises `ValueError` where its place is missing."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"README.md has no place for the table: {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def problems() -> list[str]:
    """Return what is wrong with the table."""
    text = README.read_text(encoding="utf-8")
    try:
        same = text == written(text)
    except ValueError as error:
        return [f"{error}."]
    return [] if same else ["README.md's table of functions is not what the code says: run `python -m deploy.gates.readme`."]


if __name__ == "__main__":
    README.write_text(written(README.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stdout.write("README.md is written.\n")

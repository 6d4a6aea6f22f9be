"""The part of the table that is not utilities."""

from __future__ import annotations

import json
from typing import Any, Final

from tests.tools.every_function.doors import MARKS
from tests.tools.every_function.entry import Before, Check, Entry

REFUSED: Final = "PERMISSION_DENIED"
WRONG: Final = "INVALID_ARGUMENT"
MISSING: Final = "NOT_FOUND"
TIMER: Final = Before(name="set_timer", arguments={"seconds": 600, "label": "{own} @@"})
STEPS: Final = [
    {"id": "sum", "call": "calculate", "arguments": {"expression": "20 * ${input.n}"}},
    {"say": "It is ${steps.sum.result.value}."},
]
MACRO: Final = {"name": "twenty @@", "steps": STEPS, "inputs": {"n": {"type": "integer"}}}
PATHS: Final = (
    ({"path": "../outside/secret.py"}, REFUSED),
    ({"path": "/etc/passwd"}, REFUSED),
    ({"path": "/proc/self/environ"}, REFUSED),
    ({"path": "link.py"}, REFUSED),
    ({"path": "link/secret.py"}, REFUSED),
    ({"path": "pipe.py"}, WRONG),
    ({"path": "src/nothing.py"}, MISSING),
    ({"path": "a\x00.py"}, WRONG),
)
"""Paths that lead out of the workspace, or to no file."""


def has(kind: str, **wanted: Any) -> Check:
    """Return a check: one entry of a list of the result has these values, with the word of one of the doors."""
    forms = [json.loads(json.dumps(wanted).replace("@@", mark)) for mark in MARKS.values()]

    def check(result: dict[str, Any]) -> bool:
        return any(all(one.get(name) == value for name, value in form.items()) for one in result[kind] for form in forms)

    return check


EVERYDAY: Final[dict[str, Entry]] = {
    "calculate": Entry(
        arguments={"expression": "15 percent of 80"},
        wanted={"value": 12, "spoken": "That is 12."},
        hostile=(
            ({"expression": "9**9**9"}, WRONG),
            ({"expression": "__import__('os').system('id')"}, WRONG),
            ({"expression": "'a' * 9**9"}, WRONG),
            ({"expression": "(" * 100}, WRONG),
            ({"expression": "1/0"}, WRONG),
            ({"expression": "[0]*9**9"}, WRONG),
        ),
    ),
    "current_time": Entry(
        arguments={"place": "Tokyo"},
        wanted={"time_zone": "Asia/Tokyo", "utc_offset": "+09:00"},
        check=lambda result: len(result["local_time"]) == 16 and "in Tokyo" in result["spoken"],
        varies=("local_time", "weekday", "spoken"),
        hostile=(({"place": "../../etc/localtime"}, MISSING), ({"place": "\x00"}, MISSING), ({"place": "here"}, "")),
    ),
    "find_date": Entry(
        arguments={"day": "2020-05-01"},
        wanted={"date": "2020-05-01", "weekday": "Friday"},
        check=lambda result: result["days_away"] < -2_000 and result["spoken"].startswith("That was Friday, May 1, 2020, "),
        varies=("days_away", "spoken"),
        hostile=(({"day": "3/4"}, WRONG), ({"day": "in 999999999999999999 days"}, WRONG), ({"day": "9999-12-31"}, WRONG)),
    ),
    "remember": Entry(
        arguments={"note": "The  spare key hangs\nat the @@."},
        wanted={"note": "The spare key hangs at the @@.", "spoken": "I'll remember that."},
        hostile=(({"note": "   "}, WRONG), ({"note": "\u202eevil\x00"}, "")),
    ),
    "recall": Entry(
        before=(Before(name="remember", arguments={"note": "My locker has the number @@."}),),
        arguments={"query": "locker"},
        wanted={"notes": ["My locker has the number @@."], "spoken": "You asked me to remember: My locker has the number @@."},
        hostile=(({"query": "\u0000"}, ""), ({"query": "' OR 1=1 --"}, "")),
    ),
    "set_timer": Entry(
        arguments={"seconds": 3600, "label": "tea @@"},
        wanted={"spoken": "Tea @@ timer set for 1 hour."},
        varies=("task_id", "status", "seconds", "label"),
        hostile=(({"seconds": 86_401}, WRONG), ({"seconds": -1}, WRONG), ({"seconds": "1e999"}, WRONG), ({"seconds": 2**62}, WRONG)),
    ),
}

LEARNED: Final = Before(name="ingest_to_kg", arguments={"database": "graph @@", "source": "notes dot md"})
LIBRARY: Final = tuple(
    Before(name="ingest_to_kg", arguments={"database": "library @@", "source": source}) for source in ("library", "notes dot md")
)
"""Documents about something else, and the one that is asked for."""

GRAPH: Final = (({"database": "nothing there"}, MISSING), ({"database": "../.."}, WRONG), ({"database": "\x00"}, WRONG))
KNOWLEDGE: Final[dict[str, Entry]] = {
    "list_kgs": Entry(
        before=(LEARNED,),
        wanted={"searched_by": "words"},
        check=has("graphs", name="graph-@@", documents=1, chunks=1),
        varies=("graphs", "count", "spoken"),
    ),
    "query_kg": Entry(
        before=LIBRARY,
        arguments={"query": "how many holidays are there"},
        wanted={"spoken": "Holidays are thirty days. That is from notes.md."},
        check=lambda result: result["passages"][0]["source"] == "notes.md",
        varies=("passages", "count"),
        hostile=(({"query": "zzzzqqq"}, MISSING), ({"query": "* OR id:1"}, MISSING)),
    ),
    "search_kg": Entry(
        before=LIBRARY,
        arguments={"query": "mary", "database": "library @@", "node_type": "name"},
        wanted={"spoken": "Questions go to Mary Poppins. That is from notes.md."},
        check=lambda result: (result["nodes"][0]["name"], result["passages"][0]["source"]) == ("Mary Poppins", "notes.md"),
        varies=("passages", "nodes"),
        hostile=GRAPH,
    ),
    "cross_kg_search": Entry(
        before=LIBRARY,
        arguments={"query": "holidays"},
        check=lambda result: result["results"][0]["passages"][0]["source"] == "notes.md",
        varies=("results", "count", "announce", "spoken"),
    ),
    "get_kg_analytics": Entry(
        before=(LEARNED,),
        arguments={"database": "graph @@"},
        wanted={"documents": 1, "chunks": 1},
        check=lambda result: "Mary Poppins" in {one["name"] for one in result["top"]},
        varies=("database", "spoken"),
        hostile=GRAPH,
    ),
    "ingest_to_kg": Entry(
        arguments={"database": "new @@", "source": "notes dot md"},
        wanted={"documents": 1, "unchanged": 0, "chunks": 1, "left_out_count": 0},
        varies=("database", "announce"),
        hostile=(
            ({"source": "../outside/secret.csv"}, REFUSED),
            ({"source": "/etc/passwd"}, REFUSED),
            ({"source": "link.csv"}, REFUSED),
            ({"source": "pipe.csv"}, WRONG),
            ({"source": "http://169.254.169.254/latest/meta-data/"}, REFUSED),
            ({"source": "http://[::1]:9/"}, REFUSED),
            ({"source": "{server}/away"}, REFUSED),
            ({"database": "\u202e"}, WRONG),
        ),
    ),
}

CATALOGUE: Final[dict[str, Entry]] = {
    "list_tools": Entry(
        arguments={"category": "device"},
        wanted={"category": "device", "count": 1, "spoken": "For device I have check thermal."},
        check=has("tools", id="check_thermal"),
        hostile=(({"category": "nothing"}, MISSING), ({"category": "\u202e"}, MISSING)),
    ),
    "run_tool": Entry(
        arguments={"tool_id": "make slug", "params": {"text": "Hello World"}},
        wanted={"slug": "hello-world"},
        step=False,
        hostile=(
            ({"tool_id": "run_tool", "params": {"tool_id": "make_slug", "params": {}}}, WRONG),
            ({"tool_id": "__init__", "params": {}}, MISSING),
            ({"tool_id": "make_slug", "params": {"text": "x", "more": 1}}, WRONG),
            ({"tool_id": "read_page_content", "params": {}}, "UNAVAILABLE"),
        ),
    ),
    "list_tasks": Entry(
        before=(TIMER,),
        check=has("tasks", function="set_timer", label="list_tasks @@", state="scheduled"),
        varies=("count", "tasks", "spoken"),
    ),
    "cancel_task": Entry(
        before=(TIMER,),
        arguments={"task": "cancel_task @@ timer"},
        wanted={"cancelled": 1, "spoken": "I cancelled the cancel_task @@ timer."},
        varies=("task_id",),
        hostile=(({"task": "nothing like it"}, MISSING),),
    ),
    "undo_last": Entry(
        arguments={"call": "nothing like it"},  # what it does take back is in test_undo_called.py: here it would be another case's
        wanted={"undone": [], "spoken": "That cannot be taken back, or was already."},
        hostile=(({"call": " "}, WRONG), ({"call": "* OR 1=1"}, "")),
    ),
    "list_approvals": Entry(
        before=(
            Before(name="create_macro", arguments={**MACRO, "name": "gone @@"}),
            Before(name="delete_macro", arguments={"name": "gone @@"}, scope="arguments"),
        ),
        check=has("approvals", function="delete_macro", arguments={"name": "gone @@"}),
        varies=("count", "approvals", "spoken"),
        alone="approvals",
    ),
    "revoke_approval": Entry(
        before=(
            Before(name="create_macro", arguments={**MACRO, "name": "gone too @@"}),
            Before(name="delete_macro", arguments={"name": "gone too @@"}, scope="function"),
        ),
        arguments={"approval": "delete macro"},
        wanted={"spoken": "I will ask again before I delete macro."},
        varies=("revoked",),
        alone="approvals",
        hostile=(({"approval": "nothing like it"}, MISSING),),
    ),
}

MACROS: Final[dict[str, Entry]] = {
    "create_macro": Entry(
        arguments=MACRO,
        wanted={"macro_id": "twenty_@@", "name": "twenty @@", "steps": 2},
        step=False,
        hostile=(
            ({"steps": [{"call": "run_macro"}]}, WRONG),
            ({"steps": [{"call": "calculate", "arguments": {"expression": "${steps.__class__.result}"}}]}, WRONG),
            ({"steps": [{"call": "calculate", "arguments": {"expression": "${{7*7}}"}}]}, WRONG),
            ({"steps": [{"say": "x", "when": "__import__('os').system('id')"}]}, WRONG),
            ({"steps": [{"say": "x", "when": "().__class__"}]}, WRONG),
            ({"steps": [{"say": "x" * 2_001}]}, WRONG),
            ({"steps": [{"say": "x" * 2_000}] * 17}, "TOO_LARGE"),
            ({"steps": [{"call": "nothing"}]}, MISSING),
            ({"steps": ["list_tasks"] * 51}, WRONG),
            ({"trigger": "yes"}, WRONG),
            ({"policy": {"mode": "explode"}}, WRONG),
        ),
    ),
    "change_macro": Entry(
        before=(Before(name="create_macro", arguments={**MACRO, "name": "was @@"}),),
        arguments={"name": "was @@", "new_name": "is @@", "policy": "queued"},
        wanted={"macro_id": "is_@@", "name": "is @@", "mode": "queued"},
        step=False,
        hostile=(
            ({"name": "nothing"}, MISSING),
            ({"trigger": "yes"}, WRONG),
            ({"policy": {"mode": "explode"}}, WRONG),
            ({"new_name": "is\u202e @@"}, WRONG),
        ),
    ),
    "list_macros": Entry(
        before=(Before(name="create_macro", arguments={**MACRO, "name": "listed @@"}),),
        check=has("macros", macro_id="listed_@@", steps=2),
        varies=("count", "macros", "spoken"),
    ),
    "run_macro": Entry(
        before=(Before(name="create_macro", arguments={**MACRO, "name": "run @@"}),),
        arguments={"name": "Run @@", "inputs": {"n": 4}},
        wanted={"spoken": "It is 80."},
        step=False,
        hostile=(
            ({"name": "nothing"}, MISSING),
            ({"inputs": {"n": "${input.n}"}}, WRONG),
            ({"inputs": {"other": 1}}, WRONG),
            ({"inputs": {}}, WRONG),
        ),
    ),
    "delete_macro": Entry(
        before=(Before(name="create_macro", arguments={**MACRO, "name": "lost @@"}),),
        arguments={"name": "lost @@"},
        wanted={"macro_id": "lost_@@", "deleted": True, "spoken": "I deleted lost @@."},
        step=False,
        alone="approvals",
        hostile=(({"name": "nothing"}, MISSING), ({"name": "*"}, MISSING)),
    ),
    "list_workflows": Entry(
        wanted={"count": 3},
        check=has("workflows", name="greet", steps=1),
    ),
    "run_workflow": Entry(
        arguments={"name": "Greet", "inputs": {"who": "Ada"}},
        wanted={"spoken": "Hello Ada."},
        step=False,
        hostile=(({"name": "../../etc/passwd"}, MISSING), ({"inputs": {"who": 7}}, WRONG), ({"inputs": {}}, WRONG)),
    ),
}

CODE: Final[dict[str, Entry]] = {
    "scan_code_security": Entry(
        arguments={"path": "bad app dot py"},
        wanted={"path": "src/bad_app.py", "files": 1},
        check=lambda result: (result["findings"][0]["rule"], result["findings"][0]["line"]) == ("B602", 2),
        hostile=PATHS,
    ),
    "analyze_code_complexity": Entry(
        arguments={"path": "src/knots.py"},
        wanted={"files": 1, "count": 1},
        check=lambda result: (result["functions"][0]["function"], result["functions"][0]["complexity"]) == ("knotty", 3),
        hostile=PATHS,
    ),
    "generate_react_component": Entry(
        before=(Before(name="create_project", arguments={"name": "web @@"}),),
        arguments={"name": "price tag", "props": ["title", "price: number", "on save?: action"], "project": "Web @@"},
        wanted={"file": "web-@@/components/PriceTag.tsx", "spoken": "I wrote the component PriceTag into web @@."},
        files={"web-@@/components/PriceTag.tsx": "export function PriceTag("},
        varies=("path",),
        hostile=(
            ({"name": 'Card"; process.exit(1); //', "project": ""}, WRONG),
            ({"name": "../Card"}, WRONG),
            ({"props": ["a: {}"]}, WRONG),
            ({"props": ["x"] * 13}, WRONG),
            ({"project": "../outside"}, MISSING),
            ({"project": "nothing"}, MISSING),
        ),
    ),
    "generate_fastapi_endpoint": Entry(
        before=(Before(name="create_project", arguments={"name": "api @@"}),),
        arguments={"path": "/orders/{order_id}", "method": "post", "fields": ["price: number", "gift?: boolean"], "project": "api @@"},
        wanted={"file": "api-@@/api/post_orders_order_id.py"},
        files={"api-@@/api/post_orders_order_id.py": '"/orders/{order_id}"'},
        varies=("path",),
        hostile=(
            ({"path": "/../etc"}, WRONG),
            ({"path": '/a"b'}, WRONG),
            ({"fields": ["a: __import__('os')"]}, WRONG),
            ({"method": "steal"}, WRONG),
            ({"project": "/etc/none"}, MISSING),
        ),
    ),
    "generate_tests": Entry(
        arguments={"path": "core @@ dot py"},
        wanted={"file": "src/tests/test_src_core_@@.py", "tests": 4},
        files={"src/tests/test_src_core_@@.py": "def test_"},
        varies=("path",),
        hostile=(*PATHS, ({"path": "sales.csv"}, WRONG), ({"path": "src/broken.py"}, WRONG)),
    ),
    "create_project": Entry(
        arguments={"name": "My Shop @@", "description": "Sells\ntea."},
        wanted={"name": "My Shop @@", "folder": "my-shop-@@", "spoken": "The project My Shop @@ is created."},
        files={"my-shop-@@/project.json": '"description": "Sells tea."'},
        varies=("path",),
        hostile=(
            ({"name": "../../etc @@"}, ""),
            ({"name": "con"}, WRONG),
            ({"name": "\u202eexe"}, WRONG),
            ({"description": "\x07"}, WRONG),
        ),
    ),
    "list_projects": Entry(
        before=(Before(name="create_project", arguments={"name": "A listed @@", "description": "One."}),),
        check=has("projects", name="A listed @@", folder="a-listed-@@", description="One."),
        varies=("projects", "count", "spoken"),
    ),
    "search_playbooks": Entry(
        arguments={"query": "how do we restore a backup"},
        check=lambda result: (
            result["sections"][0]["file"] == "backups.md"
            and result["sections"][0]["heading"] == "Backups > Restore"
            and "snapshot" in result["sections"][0]["text"]
        ),
        hostile=(({"query": "zzzzqqq"}, MISSING), ({"query": "* OR 1=1"}, MISSING)),
    ),
    "start_guided_tour": Entry(
        arguments={"page": "tools"},
        wanted={"action": "start_tour", "page": "tools", "name": "Tools", "path": "/tools"},
        check=lambda result: result["step_count"] == len(result["steps"]) > 2 and "Say next" in result["spoken"],
        hostile=(({"page": "../../etc/passwd"}, MISSING), ({"page": "no such page"}, MISSING)),
    ),
    "get_available_tours": Entry(
        check=lambda result: result["count"] == len(result["tours"]) > 3 and "Tools" in result["spoken"],
    ),
    "check_thermal": Entry(
        wanted={"source": "kernel", "temperature_c": 41.5},
        check=lambda result: "42 degrees" in result["spoken"] or "41 degrees" in result["spoken"],
    ),
}
PACKS: Final = {**EVERYDAY, **CATALOGUE, **KNOWLEDGE, **MACROS, **CODE}
PAGE: Final[dict[str, tuple[dict[str, Any], dict[str, Any]]]] = {
    "navigate_page": ({"path": "/sessions"}, {"path": "/sessions", "title": "Sessions"}),
    "get_current_page": ({}, {"path": "/", "title": "Voxbridge"}),
    "get_workspace_state": ({}, {"connection": "open", "microphone": "off", "theme": "dark", "panels": ["tools"]}),
    "read_page_content": ({}, {"text": "Three calls today.", "cut": False}),
    "steer_tour": ({"action": "next"}, {"touring": True, "step": 1, "title": "Search"}),
    "switch_model": ({"model": "gemini"}, {"model": "gemini", "takes_effect": "next call"}),
    "switch_theme": ({"theme": "dark"}, {"theme": "dark"}),
}
"""Functions of a page: arguments, and what the page answers."""

"""Each utility through an executor: what it answers, and how it refuses what it cannot use."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.shared.test_fetch import page, serving
from tests.tools.conftest import Caller, Executors
from tests.tools.packs.asking import Asking
from voxbridge.services.tools.packs.utilities.bounds import TEXT_LIMIT
from voxbridge.services.tools.registry import BUILT_IN, load

UTILITIES = [pack for pack in BUILT_IN if ".utilities." in pack]
TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJBZGEifQ.nF_p0SXlba0wPsiqAkW1MoBRSDqYftWUfrSK86d9sWs"
SUMS = "select region, sum(amount) from data group by region order by region"
TABLE = "region,amount\nnorth,10\nsouth,5\nnorth,30\n"

CALLS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("format_json", {"text": '{"b":1.10,"a":[]}', "indent": 0}, {"json": '{"b":1.10,"a":[]}'}),
    ("validate_json", {"text": '{"a": }'}, {"valid": False, "line": 1, "column": 7}),
    ("query_json", {"text": '{"a":[{"b":7}]}', "path": "a[0].b"}, {"value": 7, "found": True}),
    ("yaml_to_json", {"text": "a: no\nb: [1, 2]", "indent": 0}, {"json": '{"a":"no","b":[1,2]}'}),
    ("json_to_yaml", {"text": '{"a":"no"}'}, {"yaml": "a: 'no'\n"}),
    ("markdown_to_html", {"text": "# Hi"}, {"html": "<h1>Hi</h1>\n"}),
    ("parse_url", {"url": "https://a.example:8443/x%20y?q=1#z"}, {"host": "a.example", "port": 8443, "path": "/x y", "fragment": "z"}),
    ("encode_text", {"text": "ü?", "encoding": "base64url"}, {"encoded": "w7w_"}),
    ("decode_text", {"text": "w7w_", "encoding": "base64"}, {"text": "ü?"}),
    ("decode_jwt", {"token": TOKEN}, {"verified": False, "signature": "not checked", "claims": {"sub": "Ada"}}),
    ("hash_text", {"text": "abc", "algorithm": "md5"}, {"hash": "900150983cd24fb0d6963f7d28e17f72"}),
    ("generate_uuid", {"version": 5, "name": "python.org"}, {"uuids": ["886313e1-3b8a-5372-9b90-0c9aee199e5d"]}),
    ("generate_password", {"length": 12}, {"length": 12}),
    ("count_words", {"text": "One two. Three!"}, {"words": 3, "sentences": 2}),
    ("make_slug", {"text": "Füße & Straßen"}, {"slug": "fusse-strassen"}),
    ("convert_case", {"text": "parseHTTPResponse", "case": "snake"}, {"text": "parse_http_response"}),
    ("compare_texts", {"first": "a\nb", "second": "a\nc"}, {"added": 1, "removed": 1, "same": False}),
    ("try_regex", {"pattern": r"(\d)(\d)", "text": "a12", "replacement": r"\2\1"}, {"count": 1, "replaced": "a21"}),
    ("find_secrets", {"text": "key AKIAABCDEFGHIJKLMNOP"}, {"count": 1}),
    ("explain_cron", {"expression": "0 9 * * 1", "runs": 2}, {"explanation": "At 09:00 on Monday"}),
    ("convert_time_zone", {"time": "3 pm", "from_zone": "London", "to_zone": "Tokyo", "date": "2026-01-05"}, {"difference_hours": 9.0}),
    ("convert_units", {"amount": 5, "from_unit": "miles", "to_unit": "kilometres"}, {"value": 8.04672}),
    ("describe_color", {"color": "tomato"}, {"hex": "#ff6347", "name": "tomato"}),
    ("check_contrast", {"foreground": "#000", "background": "white"}, {"ratio": 21, "aaa": True}),
    ("describe_ip", {"address": "10.0.0.0/29"}, {"usable": "6", "last": "10.0.0.6"}),
    ("format_python", {"code": "x = {'a':1}"}, {"code": 'x = {"a": 1}\n', "changed": True}),
    ("lint_python", {"code": "import os\n"}, {"count": 1}),
    ("query_table", {"sql": SUMS, "table": TABLE}, {"rows": [["north", 40], ["south", 5]]}),
    ("query_table", {"sql": "select count(*) from data", "path": "sales.csv"}, {"rows": [[3]]}),
    ("query_table", {"sql": "select max(n) from data", "path": "numbers.json"}, {"rows": [[4]]}),
    ("query_table", {"sql": "select max(n) from data", "path": "numbers.json", "table": None}, {"rows": [[4]]}),
    ("json_to_yaml", {"text": '{"a":"12e5"}'}, {"yaml": "a: '12e5'\n"}),
    ("summarize_csv", {"path": "sales.csv"}, {"rows": 3, "column_count": 2}),
    ("list_licences", {"path": "lib"}, {"count": 3, "complete": True}),
]  # fmt: skip

REFUSALS: list[tuple[str, dict[str, Any], str]] = [
    ("probe_url", {"url": "http://169.254.169.254/latest/meta-data/"}, "PERMISSION_DENIED"),
    ("probe_url", {"url": "http://[::ffff:127.0.0.1]/"}, "PERMISSION_DENIED"),
    ("probe_url", {"url": "file:///etc/passwd"}, "INVALID_ARGUMENT"),
    ("query_table", {"sql": "copy data to '/tmp/stolen.csv'", "table": TABLE}, "PERMISSION_DENIED"),
    ("query_table", {"sql": "select 1", "path": "../outside.csv"}, "PERMISSION_DENIED"),
    ("query_table", {"sql": "select 1", "path": "/etc/passwd"}, "PERMISSION_DENIED"),
    ("query_table", {"sql": "select 1"}, "INVALID_ARGUMENT"),
    ("query_table", {"sql": "select 1", "table": TABLE, "path": "sales.csv"}, "INVALID_ARGUMENT"),
    ("summarize_csv", {"path": "link.csv"}, "PERMISSION_DENIED"),
    ("list_licences", {"path": ".."}, "PERMISSION_DENIED"),
    ("generate_password", {"length": 7}, "INVALID_ARGUMENT"),
    ("generate_password", {"length": 129}, "INVALID_ARGUMENT"),
    ("count_words", {}, "INVALID_ARGUMENT"),
    ("count_words", {"text": ["a"]}, "INVALID_ARGUMENT"),
    ("count_words", {"text": "x" * (TEXT_LIMIT + 1)}, "INVALID_ARGUMENT"),
    ("convert_units", {"amount": 1, "from_unit": "9**9**9**9", "to_unit": "m"}, "INVALID_ARGUMENT"),
    ("hash_text", {"text": "a", "algorithm": "rot13"}, "INVALID_ARGUMENT"),
]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace with tables, licences, and a link that leads out of it."""
    root = tmp_path / "workspace"
    (root / "lib").mkdir(parents=True)
    (tmp_path / "outside.csv").write_text("a\n1\n")
    (root / "link.csv").symlink_to(tmp_path / "outside.csv")
    (root / "sales.csv").write_text(TABLE)
    (root / "numbers.json").write_text('[{"n": 4}, {"n": 2}]')
    (root / "lib" / "LICENSE").write_text("Apache License\nVersion 2.0, January 2004\n")
    (root / "lib" / "package.json").write_text('{"name": "x", "license": "MIT"}')
    (root / "lib" / "a.py").write_text("# SPDX-License-Identifier: BSD-3-Clause\n")
    return root


def copies() -> set[Path]:
    """Return the copies of tables that queries are run on, and what one of them tried to write."""
    temporary = Path(tempfile.gettempdir())
    return {*temporary.glob("voxbridge-table-*"), *temporary.glob("stolen.csv")}


async def test_each_utility_answers_and_refuses_by_a_call(executors: Executors, caller: Caller, workspace: Path) -> None:
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    files = copies()
    async with executors.running(",".join(UTILITIES), workspace_dirs=str(workspace)):
        asking = Asking(caller)
        for name, arguments, wanted in CALLS:
            answer = await asking.answer(name, **arguments)
            assert {key: answer[key] for key in wanted} == wanted, name
            assert 0 < len(answer["spoken"]) <= 300, name
        for name, arguments, code in REFUSALS:
            assert (name, (await asking.refusal(name, **arguments)).code) == (name, code)
        longest = await asking.answer("count_words", text="word " * (TEXT_LIMIT // 5))
        assert longest["words"] == TEXT_LIMIT // 5
    assert {child.pid for child in psutil.Process().children(recursive=True)} <= before
    assert copies() <= files


@pytest.mark.parametrize(
    "sql",
    [
        "with recursive r(n) as (select 1 union all select n + 1 from r) select count(*) from r",
        "select count(*) from range(10000000000) a, range(10000000000) b where a.range * b.range = 7",
    ],
)
async def test_a_query_that_never_ends_is_ended_with_its_process(executors: Executors, caller: Caller, workspace: Path, sql: str) -> None:
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    async with executors.running(",".join(UTILITIES), workspace_dirs=str(workspace)):
        refused = await Asking(caller).refusal("query_table", sql=sql, table=TABLE)
        assert refused.code in ("TIMED_OUT", "TOO_LARGE"), refused
        assert (await Asking(caller).answer("query_table", sql="select 1", table=TABLE))["rows"] == [[1]]
    assert {child.pid for child in psutil.Process().children(recursive=True)} <= before


async def test_a_probe_tells_of_a_server_that_answers(executors: Executors, caller: Caller, tmp_path: Path) -> None:
    async with serving(page(b"<title>Home</title>")) as server:
        host = f"localhost:{server.port}"
        async with executors.running(",".join(UTILITIES), workspace_dirs=str(tmp_path), fetch_hosts=host):
            told = await Asking(caller).answer("probe_url", url=f"http://{host}/")
    assert (told["status"], told["ok"], told["title"], server.asked[0][1]["host"]) == (200, True, "Home", host)


def test_no_utility_goes_without_a_call() -> None:
    tools = load(UTILITIES, timeout_s=30)
    called = {name for name, _, _ in CALLS} | {name for name, _, _ in REFUSALS}
    assert set(tools) == called
    assert len(tools) >= 25
    assert {name for name, tool in tools.items() if tool.listed} == {
        "generate_password",
        "convert_units",
        "convert_time_zone",
        "count_words",
    }
    assert all(tool.effect == "read" and 6 <= len(tool.utterances) <= 24 and tool.category == "utilities" for tool in tools.values())

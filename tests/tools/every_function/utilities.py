"""The utilities' part of the table."""

from __future__ import annotations

import re
from typing import Any, Final

from tests.tools.every_function.entry import Entry

TOKEN: Final = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJBZGEifQ.nF_p0SXlba0wPsiqAkW1MoBRSDqYftWUfrSK86d9sWs"
UNSIGNED: Final = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJyb290In0."
TABLE: Final = "region,amount\nnorth,10\nsouth,5\nnorth,30\n"
BOMB: Final = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join(['*' + before] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
REFUSED: Final = "PERMISSION_DENIED"
WRONG: Final = "INVALID_ARGUMENT"


def is_password(result: dict[str, Any]) -> bool:
    """Tell whether a password has what was asked for, and is not read out."""
    made = result["password"]
    kinds = [any(map(kind, made)) for kind in (str.islower, str.isupper, str.isdigit)]
    return len(made) == 24 and made.isalnum() and all(kinds) and not set(made) & set("l1IO0o") and made not in result["spoken"]


UTILITIES: Final[dict[str, Entry]] = {
    "format_json": Entry(
        arguments={"text": '{"b":1.5,"a":[true,null]}', "indent": 0, "sort_keys": True},
        wanted={"json": '{"a":[true,null],"b":1.5}', "spoken": "It is formatted, in 1 line."},
        hostile=(
            ({"text": "[" * 60_000}, WRONG),
            ({"text": "[NaN]"}, WRONG),
            ({"text": "[" + "1," * 32_000 + "1]", "indent": 8}, "TOO_LARGE"),
        ),
    ),
    "validate_json": Entry(
        arguments={"text": '{"a": }'},
        wanted={"valid": False, "line": 1, "column": 7},
        hostile=(({"text": "[" * 60_000}, ""), ({"text": "\x00"}, ""), ({"text": "9" * 60_000}, "")),
    ),
    "query_json": Entry(
        arguments={"text": '{"people":[{"name":"Ada"},{"name":"Bob"}]}', "path": "people[*].name"},
        wanted={"found": True, "value": ["Ada", "Bob"]},
        hostile=(({"path": "[" * 400}, WRONG), ({"path": "people[?"}, WRONG), ({"text": '{"a":' * 9_000}, WRONG)),
    ),
    "yaml_to_json": Entry(
        arguments={"text": "a: no\nb: [1, 2]\n", "indent": 0},
        wanted={"json": '{"a":"no","b":[1,2]}', "documents": 1},
        hostile=(
            ({"text": BOMB}, WRONG),
            ({"text": "!!python/object/apply:os.system [id]"}, WRONG),
            ({"text": "&a [*a]"}, WRONG),
            ({"text": "{a: " * 9_000}, WRONG),
        ),
    ),
    "json_to_yaml": Entry(
        arguments={"text": '{"a":"no","b":[1,"2"]}'},
        wanted={"yaml": "a: 'no'\nb:\n- 1\n- '2'\n"},
        hostile=(({"text": "[" * 60_000}, WRONG), ({"text": "{'a': 1}"}, WRONG)),
    ),
    "markdown_to_html": Entry(
        arguments={"text": "# Hi\n\n*there* <b>x</b>"},
        wanted={"html": "<h1>Hi</h1>\n<p><em>there</em> &lt;b&gt;x&lt;/b&gt;</p>\n"},
        hostile=(({"text": "<script>alert(1)</script>"}, ""), ({"text": "[" * 30_000}, WRONG), ({"text": "> " * 15_000}, "")),
    ),
    "parse_url": Entry(
        arguments={"url": "https://ada:secret@a.example:8443/x%20y?q=1&q=2#z"},
        wanted={"host": "a.example", "port": 8443, "path": "/x y", "fragment": "z", "has_password": True},
        check=lambda result: "secret" not in str(result) and result["query"] == [{"name": "q", "value": "1"}, {"name": "q", "value": "2"}],
        hostile=(({"url": "http://[::1"}, WRONG), ({"url": "http://a:99999/"}, WRONG), ({"url": "http://a/?" + "a&" * 1_001}, WRONG)),
    ),
    "encode_text": Entry(
        arguments={"text": "<ü?>", "encoding": "base64url"},
        wanted={"encoded": "PMO8Pz4"},
        hostile=(({"text": "\u202e" * 20_000, "encoding": "url"}, "TOO_LARGE"),),
    ),
    "decode_text": Entry(
        arguments={"text": "PMO8Pz4=", "encoding": "base64"},
        wanted={"text": "<ü?>"},
        hostile=(({"text": "!!", "encoding": "base64"}, WRONG), ({"text": "zz", "encoding": "hex"}, WRONG), ({"text": "/w=="}, "")),
    ),
    "decode_jwt": Entry(
        arguments={"token": TOKEN, "key": "secret"},
        wanted={"verified": True, "signature": "valid", "claims": {"sub": "Ada"}},
        hostile=(({"token": UNSIGNED}, ""), ({"token": "a.b.c"}, WRONG), ({"token": "." * 5_000}, WRONG), ({"key": "wrong"}, "")),
    ),
    "hash_text": Entry(
        arguments={"text": "what do ya want for nothing?", "algorithm": "sha256", "key": "Jefe"},
        wanted={"hash": "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843", "hmac": True},
        hostile=(({"algorithm": "rot13"}, WRONG),),
    ),
    "generate_uuid": Entry(
        arguments={"version": 7, "number": 3},
        check=lambda result: len(set(result["uuids"])) == 3 and all(map(UUID.fullmatch, result["uuids"])),
        wanted={"spoken": "I made 3 UUIDs."},
        varies=("uuids",),
        hostile=(({"number": 51}, WRONG), ({"version": 1}, WRONG), ({"version": 5, "name": "\x00" * 500}, "")),
    ),
    "generate_password": Entry(
        arguments={"length": 24, "symbols": False},
        check=is_password,
        wanted={"length": 24},
        varies=("password",),
        hostile=(({"length": 7}, WRONG), ({"length": 129}, WRONG)),
    ),
    "count_words": Entry(
        arguments={"text": "One two. Three!"},
        wanted={"words": 3, "sentences": 2, "characters": 15},
        hostile=(({"text": "\u0301" * 60_000}, ""), ({"text": "a" * 65_536}, "")),
    ),
    "make_slug": Entry(
        arguments={"text": "Füße & Straßen, zum Mitnehmen", "max_length": 14},
        wanted={"slug": "fusse-strassen"},
        hostile=(({"text": "../../etc/passwd"}, ""), ({"text": "!!!"}, WRONG)),
    ),
    "convert_case": Entry(
        arguments={"text": "parseHTTPResponse", "case": "snake"},
        wanted={"text": "parse_http_response", "spoken": "It is: parse_http_response."},
        hostile=(({"text": "ß" * 65_536, "case": "upper"}, "TOO_LARGE"),),
    ),
    "compare_texts": Entry(
        arguments={"first": "a\nb\nc", "second": "a\nB\nc\nd"},
        wanted={"added": 2, "removed": 1, "same": False},
        hostile=(({"first": "\n" * 5_001}, WRONG), ({"first": "ab" * 32_000, "second": "ba" * 32_000}, "")),
    ),
    "try_regex": Entry(
        arguments={"pattern": r"(\d)(\d)", "text": "a12", "replacement": r"\2\1"},
        wanted={"count": 1, "replaced": "a21"},
        hostile=(
            ({"pattern": "(a+)+$", "text": "a" * 60_000 + "!", "replacement": None}, ""),
            ({"pattern": "(a|aa)+$", "text": "a" * 60_000 + "!", "replacement": None}, ""),
            ({"pattern": r"(a)\1", "text": "aa"}, WRONG),
            ({"pattern": "((a{100}){100}){100}"}, WRONG),
            ({"replacement": r"\7"}, WRONG),
        ),
    ),
    "find_secrets": Entry(
        arguments={"text": "id = 7\nkey AKIAABCDEFGHIJKLMNOP\n"},
        wanted={"count": 1},
        check=lambda result: result["secrets"][0]["line"] == 2 and "ABCDEFGH" not in str(result),
        hostile=(({"text": "token" * 13_000}, ""), ({"text": "eyJ" * 20_000}, "")),
    ),
    "explain_cron": Entry(
        arguments={"expression": "0 9 * * 1", "runs": 2, "time_zone": "Europe/Lisbon"},
        wanted={"explanation": "At 09:00 on Monday"},
        check=lambda result: len(result["next_runs"]) == 2 and all("T09:00" in one for one in result["next_runs"]),
        varies=("next_runs", "spoken"),
        hostile=(({"expression": "0 0 31 2 *"}, WRONG), ({"expression": "*/0 * * * *"}, WRONG), ({"time_zone": "../etc/passwd"}, WRONG)),
    ),
    "convert_time_zone": Entry(
        arguments={"time": "3 pm", "from_zone": "London", "to_zone": "Tokyo", "date": "2026-07-01"},
        wanted={"difference_hours": 8.0, "spoken": "3:00 PM in London is 11:00 PM in Tokyo."},
        hostile=(({"time": "25:00"}, WRONG), ({"date": "2026-13-01"}, WRONG), ({"to_zone": "../../etc/localtime"}, WRONG)),
    ),
    "convert_units": Entry(
        arguments={"amount": 5, "from_unit": "miles", "to_unit": "kilometres"},
        wanted={"value": 8.04672},
        hostile=(
            ({"from_unit": "9**9**9**9"}, WRONG),
            ({"from_unit": "__import__('os')"}, WRONG),
            ({"amount": "nan"}, WRONG),
            ({"amount": "inf"}, WRONG),
            ({"amount": 1e308, "from_unit": "light years", "to_unit": "nanometers"}, WRONG),
            ({"to_unit": "kg"}, WRONG),
        ),
    ),
    "describe_color": Entry(
        arguments={"color": "tomato"},
        wanted={"hex": "#ff6347", "name": "tomato", "rgb": [255, 99, 71]},
        hostile=(({"color": "rgb(256,0,0)"}, WRONG), ({"color": "url(javascript:alert(1))"}, WRONG)),
    ),
    "check_contrast": Entry(
        arguments={"foreground": "#777", "background": "white"},
        wanted={"ratio": 4.47, "aa": False, "aa_large_text": True},
        hostile=(({"background": "#ggg"}, WRONG),),
    ),
    "describe_ip": Entry(
        arguments={"address": "10.0.0.0/29"},
        wanted={"usable": "6", "first": "10.0.0.1", "last": "10.0.0.6"},
        hostile=(({"address": "256.1.1.1"}, WRONG), ({"address": "10.0.0.0/33"}, WRONG), ({"address": "::/0"}, "")),
    ),
    "probe_url": Entry(
        arguments={"url": "{server}/", "method": "GET"},
        wanted={"status": 200, "ok": True, "title": "Home & garden", "redirects": []},
        varies=("elapsed_ms", "spoken"),
        hostile=(
            ({"url": "http://169.254.169.254/latest/meta-data/"}, REFUSED),
            ({"url": "http://[::ffff:127.0.0.1]/"}, REFUSED),
            ({"url": "http://[64:ff9b::7f00:1]/"}, REFUSED),
            ({"url": "http://[fd00:ec2::254]/"}, REFUSED),
            ({"url": "http://127.0.0.1/"}, REFUSED),
            ({"url": "http://2130706433/"}, REFUSED),
            ({"url": "http://0x7f.1/"}, REFUSED),
            ({"url": "http://0/"}, REFUSED),
            ({"url": "{server}/away"}, REFUSED),
            ({"url": "{server}/around"}, "UNAVAILABLE"),
            ({"url": "file:///etc/passwd"}, WRONG),
            ({"url": "gopher://127.0.0.1:6379/_flushall"}, WRONG),
            ({"url": "http://a:b@example.com/"}, REFUSED),
            ({"url": "http://example.com:22/"}, REFUSED),
            ({"url": "http://example.com/\r\nHost: evil"}, WRONG),
        ),
    ),
    "format_python": Entry(
        arguments={"code": "x = {'a':1}"},
        wanted={"code": 'x = {"a": 1}\n', "changed": True},
        hostile=(({"code": "(" * 60_000}, WRONG), ({"code": "x = (" * 2_000}, WRONG), ({"code": "\x00"}, WRONG)),
    ),
    "lint_python": Entry(
        arguments={"code": "import os  # noqa\nprint(undefined)\n"},
        wanted={"count": 2},
        check=lambda result: [(one["rule"], one["line"]) for one in result["problems"]] == [("F401", 1), ("F821", 2)],
        hostile=(({"code": "x = " + "-" * 60_000 + "1"}, WRONG), ({"code": "def f(:"}, "")),
    ),
    "query_table": Entry(
        arguments={"sql": "select region, sum(amount) from data group by region order by region", "path": "sales.csv"},
        wanted={"rows": [["north", 40], ["south", 5]]},
        hostile=(
            ({"sql": "copy data to '/tmp/stolen.csv'"}, REFUSED),
            ({"sql": "drop table data"}, REFUSED),
            ({"sql": "select 1; delete from data"}, REFUSED),
            ({"sql": "attach '/tmp/x.db'"}, REFUSED),
            ({"sql": "select * from read_text('/proc/self/environ')"}, REFUSED),
            ({"sql": "select * from '/etc/passwd.csv'"}, REFUSED),
            ({"sql": "select getenv('HOME')"}, WRONG),
            ({"path": "../outside/secret.csv"}, REFUSED),
            ({"path": "/proc/self/environ"}, REFUSED),
            ({"path": "link.csv"}, REFUSED),
            ({"path": "pipe.csv"}, WRONG),
            ({"path": "sales.csv", "table": TABLE}, WRONG),
        ),
    ),
    "summarize_csv": Entry(
        arguments={"table": TABLE},
        wanted={"rows": 3, "column_count": 2},
        check=lambda result: (
            (result["columns"][1]["mean"], result["columns"][1]["sum"], result["columns"][0]["name"]) == (15, 45, "region")
        ),
        hostile=(({"table": '"' * 60_000}, WRONG), ({"table": "", "path": "/dev/zero"}, REFUSED), ({"table": "," * 60_000}, WRONG)),
    ),
    "list_licences": Entry(
        arguments={"path": "lib"},
        wanted={"count": 3, "complete": True},
        check=lambda result: {"Apache-2.0", "MIT", "BSD-3-Clause"} <= {one["licence"] for one in result["licences"]},
        hostile=(({"path": ".."}, REFUSED), ({"path": "/proc/self"}, REFUSED), ({"path": "link"}, REFUSED)),
    ),
}

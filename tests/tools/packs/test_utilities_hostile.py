"""Utilities in the hands of strangers: bombs, queries that reach out, values that a result cannot hold; and right answers."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from voxbridge.services.tools.core.results import as_result
from voxbridge.services.tools.packs.utilities import (
    addresses,
    colours,
    encodings,
    json_text,
    leaks,
    licences,
    markup,
    patterns,
    probes,
    python_code,
    tables,
    times,
    tokens,
    units,
    words,
    yaml_text,
)
from voxbridge.services.tools.packs.utilities.bounds import GIVEN_LIMIT, given
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.fetch import Fetched
from voxbridge.shared.nesting import DEPTH_LIMIT

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TABLE = "a,b\n1,x\n2,y\n"
TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJBZGEifQ.nF_p0SXlba0wPsiqAkW1MoBRSDqYftWUfrSK86d9sWs"
NOTHING = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJyb290In0."
RS256 = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJBZGEifQ.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    "sql",
    [
        *(
            "copy data to '{out}'",
            "copy (select 1) to '{out}'",
            "export database '{out}'",
            "attach '{out}' as o",
            "install httpfs",
            "load httpfs",
        ),
        *(
            "select 1; select 2",
            "select 1; copy data to '{out}'",
            "set threads = 4",
            "set enable_external_access = true",
            "pragma database_list",
        ),
        *("create table t as select 1", "drop table data", "delete from data", "update data set a = 1", "insert into data values (1, 'x')"),
        *("select * from read_csv('/etc/passwd')", "select * from read_text('/etc/passwd')", "select * from read_blob('/etc/passwd')"),
        *("select * from '/etc/passwd.csv'", "select * from glob('/*')", "select * from read_csv('https://example.org/a.csv')"),
        *(
            "select * from read_json('/proc/self/environ')",
            "select * from read_parquet('s3://bucket/key')",
            "select * from sniff_csv('/etc/passwd')",
        ),
        *(
            "explain analyze select 1",
            "call pragma_version()",
            "select * from query('copy data to ''{out}''')",
            "select getenv('HOME')",
            "",
            ";",
            "--",
        ),
        *(
            "select * from nothing",
            "select a from",
            "with recursive",
            "begin; commit",
            "select " + "(" * 3_000,
            "vacuum",
            "use memory",
            "checkpoint",
        ),
    ],
)
def test_a_query_that_is_more_than_a_select_over_the_table_is_refused(sql: str, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    with pytest.raises(VoxbridgeError) as raised:
        tables.query(sql.replace("{out}", str(out)), TABLE)
    assert raised.value.code in (Code.PERMISSION_DENIED, Code.INVALID_ARGUMENT)
    assert not list(tmp_path.iterdir())


def test_a_query_gives_no_more_than_fits() -> None:
    assert tables.query("select sum(a) from data", TABLE)["rows"] == [[3]]
    assert tables.query("select b, a from data where a > 1", TABLE)["rows"] == [["y", 2]]
    rows = tables.query("select i, repeat('x', 1000) t from range(51) r(i)", TABLE)
    assert (len(rows["rows"]), rows["more"], len(rows["rows"][0][1])) == (tables.ROWS_LIMIT, True, tables.CELL_LIMIT + 1)
    assert tables.query("select i from range(50) r(i)", TABLE)["more"] is False
    wide = tables.query("select 170141183460469231731687303715884105727::hugeint n, 'nan'::double f, null z, date '2026-01-02' d", TABLE)
    assert wide["rows"] == [["170141183460469231731687303715884105727", "nan", None, "2026-01-02"]]
    as_result("query_table", wide)
    with pytest.raises(VoxbridgeError, match="50 columns"):
        tables.query("select " + ",".join(str(one) for one in range(51)), TABLE)
    with pytest.raises(VoxbridgeError) as raised:
        tables.query("select string_agg(repeat(i::varchar, 1000000), '') from range(100000) r(i)", TABLE)
    assert raised.value.code in (Code.TOO_LARGE, Code.INVALID_ARGUMENT)


def test_statistics_of_a_table_are_right() -> None:
    found = tables.statistics_of("name;n\nAda;1\nBob;4\nAda;\nCy;7;9\n")
    name, number = found["columns"]
    assert (found["rows"], found["ragged_rows"], name["common"][0]) == (4, 1, {"value": "Ada", "count": 2})
    assert (number["type"], number["missing"], number["mean"], number["median"], number["sum"], number["deviation"]) == (
        "number",
        1,
        4,
        4,
        12,
        3,
    )
    for bad in ("", "only,names\n", 'a,b\n"open'):
        with pytest.raises(VoxbridgeError):
            tables.statistics_of(bad)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        *(("(a+)+$", "a" * 60_000 + "!"), ("(a|aa)+$", "a" * 60_000 + "!"), ("(.*)*x", "y" * 60_000), ("(a*)*b", "a" * 60_000)),
        *(("(x+x+)+y", "x" * 60_000), ("(?:a?){30}a{30}", "a" * 29), ("([a-z]+)*=", "a" * 60_000), (r"^(\w+\s?)*$", "a " * 30_000 + "!")),
    ],
)
def test_a_pattern_that_would_take_for_ever_elsewhere_takes_a_moment(pattern: str, text: str) -> None:
    began = time.process_time()
    patterns.tested(pattern, text, None, ignore_case=False, multiline=False)
    assert time.process_time() - began < 2


@pytest.mark.parametrize("pattern", ["(", "[", "*", "(?=a)", r"(a)\1", "a{2000}", "((a{100}){100}){100}", "\\"])
def test_a_pattern_that_cannot_be_used_is_said(pattern: str) -> None:
    with pytest.raises(VoxbridgeError, match="The pattern cannot be used"):
        patterns.compile_pattern(pattern)


def test_matches_are_counted_and_shown_within_bounds() -> None:
    many = patterns.tested("a", "a" * 60_000, None, ignore_case=False, multiline=False)
    assert (many["count"], many["more"], len(many["matches"])) == (patterns.MATCHES_LIMIT, True, 50)
    lines = patterns.tested("^B", "a\nb\nb", "-", ignore_case=True, multiline=True)
    assert (lines["count"], lines["replaced"]) == (2, "a\n-\n-")
    with pytest.raises(VoxbridgeError, match="replacement"):
        patterns.tested("a", "a", r"\7", ignore_case=False, multiline=False)
    with pytest.raises(VoxbridgeError) as raised:
        patterns.tested("a", "a" * 60_000, "x" * 1_000, ignore_case=False, multiline=False)
    assert raised.value.code == Code.TOO_LARGE


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(['*' + before] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
MERGES = "a: &a {k0: 1}\n" + "".join(
    f"{name}: &{name} {{<<: [{', '.join(['*' + before] * 9)}]}}\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    "text",
    [
        *(BOMB, MERGES, "&a [*a]", "a: &a {b: *a}", "[" * 5_000, "{a: " * 5_000, "- " * 3_000 + "x"),
        *("!!python/object/apply:os.system [id]", "!!python/name:os.system", "!unknown x", "a: b: c", "\tx: 1", "*nowhere", "a: !!int x"),
        *("? [a, b]\n: c", "%YAML 9.9\n--- x", "\x00", "---\n" * 200, "!!timestamp x", "'open"),
    ],
)
def test_yaml_that_grows_runs_code_or_is_none_is_refused(text: str) -> None:
    began = time.process_time()
    with pytest.raises(VoxbridgeError) as raised:
        yaml_text.load(text)
    assert raised.value.code == Code.INVALID_ARGUMENT
    assert time.process_time() - began < 60  # a bomb that goes off takes hours


def test_yaml_has_the_types_of_its_version_1_2() -> None:
    text = "a: no\nb: 12:30\nc: 0o14\nd: 010\ne: 1e3\nf: ~\ng: on\nh: 2026-01-01\n1: one\ni: &x [1]\nj: *x\nk: {<<: {l: 1}}\n"
    value, documents = yaml_text.load(text)
    plain = {"a": "no", "b": "12:30", "c": 12, "d": 10, "e": 1000.0, "f": None, "g": "on", "h": "2026-01-01", "1": "one"}
    assert value == {**plain, "i": [1], "j": [1], "k": {"l": 1}}
    assert (documents, yaml_text.load("--- 1\n--- 2\n")) == (1, ([1, 2], 2))
    assert yaml_text.load(yaml_text.dump({"a": ["no", "1", None, {"b": 1.5}]}))[0] == {"a": ["no", "1", None, {"b": 1.5}]}


@pytest.mark.parametrize(
    "text",
    [
        "[" * 50_000,
        '{"a":' * 10_000,
        "[" * (DEPTH_LIMIT + 1) + "]" * (DEPTH_LIMIT + 1),
        "[NaN]",
        "[Infinity]",
        "{'a': 1}",
        "[1,]",
        "01",
        "",
    ],
)
def test_json_that_is_too_deep_or_is_none_is_refused(text: str) -> None:
    assert json_text.check(text)["valid"] is False
    with pytest.raises(VoxbridgeError, match="not valid JSON"):
        json_text.value_of(text)


def test_json_is_kept_as_it_was_written() -> None:
    deep = "[" * DEPTH_LIMIT + "]" * DEPTH_LIMIT
    assert json_text.check(deep)["valid"]
    assert json_text.formatted('{"b": 1.10, "a": 12345678901234567890123}', 0, sort_keys=False) == '{"b":1.10,"a":12345678901234567890123}'
    assert json_text.formatted('{"b": 1, "a": 2}', 0, sort_keys=True) == '{"a":2,"b":1}'
    assert json_text.check('{"a": 1, "a": 2}')["repeated_keys"] == ["a"]
    found = json_text.query('{"n": [12345678901234567890123, "\\ud800", 1e999]}', "n")
    assert as_result("query_json", found)["value"] == ["12345678901234567890123", "?", "inf"]
    assert json_text.check("9" * 10_000)["valid"]


@pytest.mark.parametrize("path", ["a[", "a..b", "[" * 2_000, "abs(@)", "`", "nothing(@)", "a[?b", "@@"])
def test_a_path_that_cannot_be_used_is_said(path: str) -> None:
    with pytest.raises(VoxbridgeError, match="The path"):
        json_text.query('{"a": "b"}', path)


def test_a_result_is_whole_or_refused() -> None:
    assert len(msgspec.json.encode(given("x" * (GIVEN_LIMIT - 2)))) == GIVEN_LIMIT
    with pytest.raises(VoxbridgeError) as raised:
        given("x" * (GIVEN_LIMIT - 1))
    assert (raised.value.code, raised.value.limit) == (Code.TOO_LARGE, GIVEN_LIMIT)


@pytest.mark.parametrize(
    ("token", "key", "signature"),
    [
        *(
            (TOKEN, "", "not checked"),
            (TOKEN, "secret", "valid"),
            (TOKEN, "wrong", "wrong"),
            (NOTHING, "", "none"),
            (NOTHING, "secret", "none"),
        ),
        *(
            (NOTHING + "c2ln", "secret", "none"),
            (TOKEN[:-4] + "AAAA", "secret", "wrong"),
            (TOKEN.rpartition(".")[0] + ".", "secret", "none"),
        ),
        *((TOKEN.rpartition(".")[0] + ".!!", "secret", "wrong"), (f"Bearer {TOKEN}", "secret", "valid"), (RS256, "", "not checked")),
    ],
)
def test_a_token_is_verified_by_its_key_alone(token: str, key: str, signature: str) -> None:
    found = tokens.read(token, key, now=0)
    assert (found["signature"], found["verified"]) == (signature, signature == "valid")


@pytest.mark.parametrize("token", ["", "a.b", "a.b.c", "..", "W10.W10.x", "e30.e30", "\u2603.e30.x"])
def test_what_is_no_token_is_said(token: str) -> None:
    with pytest.raises(VoxbridgeError):
        tokens.read(token, "", now=0)
    with pytest.raises(VoxbridgeError, match="HS256"):
        tokens.read(RS256, "key", now=0)


@pytest.mark.parametrize(
    "unit", ["9**9**9**9", "m^9^9^9", "m**9**9**9", "(m^9)^9", "__import__('os')", "m; n", "10", "", "m\nn", "foo", "'m'"]
)
def test_what_is_no_unit_is_refused_at_once(unit: str) -> None:
    began = time.process_time()
    with pytest.raises(VoxbridgeError, match="no unit"):
        units.converted(1, unit, "m")
    assert time.process_time() - began < 5


def test_times_of_cron_and_of_zones_are_right() -> None:
    weekdays = times.cron("30 9 * * MON-FRI", 2, "Europe/Lisbon", now=NOW)
    assert weekdays["next_runs"] == ["2026-03-02T09:30+00:00", "2026-03-03T09:30+00:00"]
    assert times.cron("@daily", 1, "UTC", now=NOW)["next_runs"] == ["2026-03-02T00:00+00:00"]
    leap = times.cron("0 0 29 2 *", 1, "UTC", now=NOW)
    assert leap["next_runs"] == ["2028-02-29T00:00+00:00"]
    for bad in ("* * * *", "60 * * * *", "* * * * * *", "*/0 * * * *", "a b c d e", "0 0 31 2 *", "1-0 * * * *"):
        with pytest.raises(VoxbridgeError):
            times.cron(bad, 1, "UTC", now=NOW)
    summer = times.converted("3pm", "london", "tokyo", "2026-07-01", now=NOW)
    assert (summer["to"]["time"], summer["spoken"]) == ("2026-07-01T23:00+09:00", "3:00 PM in London is 11:00 PM in Tokyo.")
    assert times.converted("20:00", "New York", "Sydney", "2026-01-01", now=NOW)["day_difference"] == 1
    assert times.converted("now", "UTC", "+05:30", "", now=NOW)["to"]["time"] == "2026-03-01T17:30+05:30"
    assert "forward" in times.converted("02:30", "Berlin", "UTC", "2026-03-29", now=NOW)["note"]
    assert "twice" in times.converted("02:30", "Berlin", "UTC", "2026-10-25", now=NOW)["note"]
    for clock, zone, date in (
        ("25:00", "UTC", ""),
        ("13 pm", "UTC", ""),
        ("1", "Nowhere", ""),
        ("1", "../etc/passwd", ""),
        ("1", "UTC", "2026-13-01"),
    ):
        with pytest.raises(VoxbridgeError):
            times.converted(clock, zone, "UTC", date, now=NOW)


def test_colours_are_right() -> None:
    assert colours.described("hsl(32, 100%, 50%)")["hex"] == "#ff8800"
    assert colours.described("#F80")["rgb"] == [255, 136, 0]
    assert colours.described("rgb(100%, 0%, 50%)")["hex"] == "#ff0080"
    grey = colours.compared("#777", "white")
    assert (grey["ratio"], grey["aa"], grey["aa_large_text"], grey["aaa"]) == (4.47, False, True, False)
    assert (grey["foreground"], grey["background"]) == ("#777777", "#ffffff")
    for bad in ("#12345", "rgb(256,0,0)", "hsl(0,101%,0%)", "no colour", "", "#ggg", "rgb(1,2)"):
        with pytest.raises(VoxbridgeError, match="not a colour"):
            colours.read(bad)


def test_encodings_are_right_and_what_is_none_is_said() -> None:
    for encoding in ("base64", "base64url", "hex", "url", "html"):
        assert encodings.decoded(encodings.encode("<ü & ?>", encoding), encoding)["text"] == "<ü & ?>"
    assert encodings.decoded("/w==", "base64")["hex"] == "ff"
    for text, encoding in (("a", "base64"), ("!!", "base64url"), ("0x1", "hex"), ("zz", "hex"), ("é", "base64")):
        with pytest.raises(VoxbridgeError):
            encodings.decode(text, encoding)  # type: ignore[arg-type]
    assert encodings.digest("abc", "sha256").startswith("ba7816bf8f01cfea")
    assert encodings.digest("what do ya want for nothing?", "sha256", "Jefe").startswith("5bdcc146bf60754e")
    assert encodings.digest("123456789", "crc32") == "cbf43926"
    assert encodings.new_uuid(7, now_ms=0x017F22E279B0).startswith("017f22e2-79b0-7")
    for length in (8, 128):
        made, bits = encodings.password(length, symbols=False, similar=False)
        assert len(made) == length
        assert made.isalnum()
        assert not set(made) & encodings.SIMILAR
        assert bits >= length * 5
    url = encodings.parts_of("https://ada:secret@xn--mnchen-3ya.example/a?b=1&b=%20")
    assert (url["host"], url["port"], url["query"][1], url["has_password"]) == ("münchen.example", 443, {"name": "b", "value": " "}, True)
    assert "secret" not in str(url)
    for bad in ("example.org", "http://[::1", "http://a:99999/", "http://a b/", "http://a/?" + "&".join(["a=1"] * 1_001)):
        with pytest.raises(VoxbridgeError):
            encodings.parts_of(bad)


def test_words_are_counted_and_written_right() -> None:
    assert words.counted("Don't stop.\n\nWell-known, isn't it?")["words"] == 5
    cases = {
        "snake": "parse_http_url_2",
        "camel": "parseHttpUrl2",
        "pascal": "ParseHttpUrl2",
        "kebab": "parse-http-url-2",
        "constant": "PARSE_HTTP_URL_2",
    }
    assert {case: words.cased("parseHTTPUrl 2", case) for case in cases} == cases  # type: ignore[arg-type]
    assert words.cased("it's the END. of it", "title") == "It's The End. Of It"
    assert words.cased("it's the END. of it", "sentence") == "It's the end. Of it"
    assert words.slug("Crème Brûlée — 北京!", 80) == "creme-brulee-beijing"
    assert words.slug("one two three", 8) == "one-two"
    for text in ("!!!", "   "):
        with pytest.raises(VoxbridgeError):
            words.slug(text, 80)
    assert words.compared("a\nb\n", "a\nb\n")["same"]
    assert len(words.compared("\n".join(map(str, range(5_000))), "\n".join(map(str, range(5_000, 10_000))))["diff"]) == words.SHOWN_LIMIT
    with pytest.raises(VoxbridgeError, match="5,000"):
        words.compared("\n" * 5_001, "")


def test_html_in_markdown_stays_text_and_links_stay_harmless() -> None:
    made = markup.to_html(
        "<script>alert(1)</script> [a](javascript:alert(1)) [b](https://b.example) <img src=x onerror=y>\n\n| a |\n|-|\n| 1 |"
    )
    assert "<script" not in made
    assert "<img" not in made
    assert 'href="javascript' not in made
    assert 'href="https://b.example"' in made
    assert "<td>1</td>" in made


def test_markdown_has_a_bound_of_brackets() -> None:
    assert markup.to_html("[" * markup.BRACKETS_LIMIT) == f"<p>{'[' * markup.BRACKETS_LIMIT}</p>\n"
    with pytest.raises(VoxbridgeError, match="10,001 opening brackets and may have 10,000"):
        markup.to_html("[" * (markup.BRACKETS_LIMIT + 1))


@pytest.mark.parametrize("code", ["def (", "x = (" * 2_000, "\x00", "é = = 1", "if x:\npass", "(" * 10_000])
def test_what_is_no_python_is_said(code: str) -> None:
    with pytest.raises(VoxbridgeError):
        python_code.formatted(code)


@pytest.mark.parametrize("look", [python_code.formatted, python_code.checked])
def test_python_that_ends_its_parser_is_refused(look: Callable[[str], object]) -> None:
    with pytest.raises(VoxbridgeError) as caught:
        look("x = " + "-" * 60_000 + "1")
    assert (caught.value.code, caught.value.field) == (Code.INVALID_ARGUMENT, "code")


def test_python_is_checked_whatever_its_comments_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ruff.toml").write_text("line-length = 20\n[lint]\nignore = ['ALL']\n")
    monkeypatch.chdir(tmp_path)
    found = python_code.checked("# ruff: noqa\nimport os  # noqa\nprint(undefined)\n")
    assert [(one["rule"], one["line"]) for one in found["problems"]] == [("F401", 2), ("F821", 3)]
    line = "value = function(argument_one, argument_two)\n"
    assert python_code.formatted(line) == line
    assert python_code.checked("x = 1\n")["problems"] == []


def test_facts_about_addresses_are_right() -> None:
    kinds = {"127.0.0.1": "loopback", "8.8.8.8": "public", "10.1.1.1": "private", "fe80::1": "link-local", "224.0.0.1": "multicast"}
    assert {text: addresses.described(text)["kind"] for text in kinds} == kinds
    assert addresses.described("::ffff:10.0.0.1")["holds_ipv4"] == {"mapped": "10.0.0.1"}
    assert (addresses.described("192.0.2.77/26")["first"], addresses.described("10.0.0.0/31")["usable"]) == ("192.0.2.65", "2")
    for bad in ("256.1.1.1", "1.2.3", "10.0.0.0/33", "::g", "", "10.0.0.0/x"):
        with pytest.raises(VoxbridgeError, match="not an IP address"):
            addresses.described(bad)


def test_secrets_are_found_and_never_shown_whole() -> None:
    secrets = ["AKIAABCDEFGHIJKLMNOP", "ghp_" + "a1B2" * 9, "sk-ant-" + "x1Y2" * 8, "xoxb-123456789012-abcdef", "Zx9!kQ2@mP7#", TOKEN]
    text = "\n".join(
        [*secrets[:4], f"password = '{secrets[4]}'", f"jwt {secrets[5]}", "-----BEGIN RSA PRIVATE KEY-----", "db://ada:hunter22@host/x"]
    )
    found = leaks.found(text)
    assert [one["line"] for one in found["secrets"]] == list(range(1, 9))
    assert not any(secret in str(found) for secret in secrets)
    harmless = leaks.found("password = your_password_here\ntoken: ${TOKEN}\napi_key = os.environ['KEY']\nthe secret of life: unknown\n")
    assert harmless["count"] == 0
    began = time.process_time()
    leaks.found("token" * 13_000)
    leaks.found("eyJ" * 20_000)
    leaks.found("a-" * 30_000)
    assert time.process_time() - began < 4


def test_licences_are_told_apart() -> None:
    texts = {
        "LICENSE": ("MIT", "Permission is hereby granted, free of charge, to any person"),
        "COPYING": ("GPL-3.0", "GNU GENERAL PUBLIC LICENSE\n Version 3, 29 June 2007"),
        "LICENSE-APACHE": ("Apache-2.0", "Apache License\n   Version 2.0"),
        "licence.txt": ("unknown", "All rights reserved"),
        "pyproject.toml": ("ISC", '[project]\nlicense = "ISC"'),
        "Cargo.toml": ("MIT OR Apache-2.0", '[package]\nlicense = "MIT OR Apache-2.0"'),
        "a.c": ("MIT", "/* SPDX-License-Identifier: MIT */"),
    }
    assert {name: licences.declared(name, text) for name, (_, text) in texts.items()} == {
        name: [wanted] for name, (wanted, _) in texts.items()
    }
    assert licences.declared("package.json", "[" * 100_000) == []
    assert licences.declared("main.py", "print()") == []


def test_a_probe_tells_what_came() -> None:
    page = Fetched(
        url="https://a.example/",
        status=404,
        headers={"server": "x" * 500},
        body=b"<TITLE>Not &amp;\n found</TITLE>" + b"<title" * 9_000,
        cut=False,
        redirects=("http://a.example/",),
        address="192.0.2.1",
        elapsed_ms=1500,
    )
    told = probes.told(page)
    assert (told["ok"], told["title"], len(told["headers"]["server"])) == (False, "Not & found", 200)
    assert told["spoken"] == "It answers with 404, Not Found, in 1.5 seconds, after 1 redirect."

"""Secrets in requests: the value goes where its rule says and nowhere else, and comes back in no form."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import os
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.eventually import eventually
from tests.tools.sandbox.conftest import Room
from tests.tools.sandbox.servers import Seen, Server, answer, serving
from voxbridge.services.tools.sandbox.masking import MASK, Masks
from voxbridge.shared.platform.secrets import Opened, Rule

VALUE = 's3cr3t+/="\\<&> value'
SEEN = "async ({ url }, ctx) => (await ctx.fetch(url)).text()"


def secret(web: Server, **rule: object) -> dict[str, Opened]:
    whole = {"hosts": (f"http://127.0.0.1:{web.port}",), **rule}
    return {"KEY": Opened(name="KEY", value=VALUE, rule=Rule(**whole))}  # type: ignore[arg-type]


async def test_a_header_gets_the_value_and_the_handler_never_has_it(room: Room, web: Server) -> None:
    source = """async ({ url }, ctx) => {
      const response = await ctx.fetch(url, { method: "POST", headers: { Authorization: `Bearer ${ctx.secrets.KEY}` }, body: "{}" });
      return [ctx.secrets.KEY, response.status, await response.json()];
    }"""
    stand_in, status, told = await room.value(source, {"url": f"{web.url}/a"}, secrets=secret(web))
    assert web.seen[0].headers["authorization"] == f"Bearer {VALUE}"
    assert stand_in.startswith("vxs_")
    assert status == 200
    assert told["headers"]["authorization"] == f"Bearer {MASK}"


async def test_basic_authentication_by_btoa_gets_the_value(room: Room, web: Server) -> None:
    source = "async ({ url }, ctx) => { await ctx.fetch(url, { headers: { Authorization: `Basic ${btoa(`me:${ctx.secrets.KEY}`)}` } }); }"
    await room.value(source, {"url": web.url}, secrets=secret(web))
    scheme, _, text = web.seen[0].headers["authorization"].partition(" ")
    assert (scheme, base64.b64decode(text).decode()) == ("Basic", f"me:{VALUE}")


async def test_the_query_and_the_body_get_the_value_where_the_rule_says_so(room: Room, web: Server) -> None:
    source = """async ({ url }, ctx) => {
      const key = ctx.secrets.KEY;
      await ctx.fetch(`${url}/q?key=${encodeURIComponent(key)}&b=2`);
      await ctx.fetch(`${url}/j`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ key }) });
      await ctx.fetch(`${url}/f`, { method: "POST", body: new URLSearchParams({ key }) });
      await ctx.fetch(`${url}/t`, { method: "POST", body: `<${key}>` });
    }"""
    await room.value(source, {"url": web.url}, secrets=secret(web, query=True, body=True))
    query, as_json, form, text = web.seen
    assert query.query == {"key": [VALUE], "b": ["2"]}
    assert json.loads(as_json.body) == {"key": VALUE}
    assert Seen("", f"/?{form.body.decode()}", {}, b"").query == {"key": [VALUE]}
    assert text.body.decode() == f"<{VALUE}>"


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        ("ctx.fetch(`${url}/?k=${ctx.secrets.KEY}`)", "may not go in the query"),
        ("ctx.fetch(url, { method: 'POST', body: ctx.secrets.KEY })", "may not go in the body"),
        ("ctx.fetch(url, { headers: { 'x-other': ctx.secrets.KEY } })", "may not go in the header `x-other`"),
        ("ctx.fetch(`${url}/${ctx.secrets.KEY}`)", "not in the path"),
        ("ctx.fetch(`${url}/${ctx.secrets.KEY}?a=1`)", "not in the path"),
        (
            "ctx.fetch(url.replace('127.0.0.1', 'localhost'), { headers: { authorization: ctx.secrets.KEY } })",
            "may not go to http://localhost",
        ),
        ("ctx.fetch(url, { headers: { host: 'evil.example' } })", "platform's own"),
        ("ctx.fetch(url, { headers: { 'content-length': '0' } })", "platform's own"),
        ("ctx.fetch(url, { headers: { 'transfer-encoding': 'chunked' } })", "platform's own"),
        ("ctx.fetch(url, { headers: { a: 'b\\r\\nc: d' } })", "line break"),
        ("ctx.fetch(`http://${ctx.secrets.KEY}@${url.slice(7)}`)", "user or a password"),
        ("ctx.hmac('KEY', 'x')", "does not sign"),
        ("ctx.hmac('OTHER', 'x')", "no secret 'OTHER'"),
        ("ctx.fetch(url, { method: 'CONNECT' })", "has no method"),
        ("ctx.fetch(url, { method: 'POST', body: {} })", "JSON.stringify"),
    ],
)
async def test_a_value_goes_nowhere_else(room: Room, web: Server, request_: str, why: str) -> None:
    message = await room.failure(f"async ({{ url }}, ctx) => {request_}", {"url": web.url}, secrets=secret(web))
    assert why in message
    assert VALUE not in message
    assert not web.seen


async def test_a_redirect_to_another_host_gets_no_secret(room: Room, web: Server) -> None:
    async with serving() as other:
        room.fetcher._hosts |= {f"127.0.0.1:{other.port}"}
        web.replies["/away"] = answer("", status="302 Found", location=f"{other.url}/there")
        web.replies["/near"] = answer("", status="307 Temporary Redirect", location="/here")
        fetch = (
            "async ({ url }, ctx) => (await ctx.fetch(url, { headers: { authorization: ctx.secrets.KEY, cookie: 'a=1', 'x-b': '2' } })).url"
        )
        assert await room.value(fetch, {"url": f"{web.url}/away"}, secrets=secret(web)) == f"{other.url}/there"
        assert web.seen[0].headers["authorization"] == VALUE
        assert "authorization" not in other.seen[0].headers
        assert "cookie" not in other.seen[0].headers
        assert other.seen[0].headers["x-b"] == "2"
        await room.value(fetch, {"url": f"{web.url}/near"}, secrets=secret(web))
        assert web.seen[-1].headers["authorization"] == VALUE


@pytest.mark.parametrize("encode", [str, lambda v: quote(v, safe=""), lambda v: base64.b64encode(v.encode()).decode()])
async def test_a_redirect_that_would_carry_the_value_away_is_not_followed(room: Room, web: Server, encode: Callable[[str], str]) -> None:
    async with serving() as other:
        room.fetcher._hosts |= {f"127.0.0.1:{other.port}"}
        web.replies["/away"] = lambda seen: answer(
            "", status="302 Found", location=f"{other.url}/?k={quote(encode(seen.headers['authorization']))}"
        )
        fetch = "async ({ url }, ctx) => (await ctx.fetch(url, { headers: { authorization: ctx.secrets.KEY } })).url"
        message = await room.failure(fetch, {"url": f"{web.url}/away"}, secrets=secret(web))
        assert "with a secret in the URL" in message
        assert not other.connections


async def test_a_body_with_a_secret_is_not_sent_to_another_host(room: Room, web: Server) -> None:
    async with serving() as other:
        room.fetcher._hosts |= {f"127.0.0.1:{other.port}"}
        web.replies["/away"] = answer("", status="308 Permanent Redirect", location=other.url)
        fetch = "async ({ url }, ctx) => ctx.fetch(url, { method: 'POST', body: ctx.secrets.KEY })"
        assert "in its body to another host" in await room.failure(fetch, {"url": f"{web.url}/away"}, secrets=secret(web, body=True))
        assert not other.connections


FORMS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "percent-encoded": lambda v: quote(v, safe=""),
    "percent-encoded in lower case": lambda v: quote(v, safe="").lower(),
    "percent-encoded twice": lambda v: quote(quote(v, safe=""), safe=""),
    "percent-encoded whole": lambda v: "".join(f"%{ord(one):02X}" for one in v),
    "as a form": lambda v: quote(v, safe="").replace("%20", "+"),
    "base64": lambda v: base64.b64encode(v.encode()).decode(),
    "base64 behind one byte": lambda v: base64.b64encode(b"x" + v.encode()).decode(),
    "base64 behind two bytes": lambda v: base64.b64encode(b"xy" + v.encode() + b"z").decode(),
    "base64 for URLs": lambda v: base64.urlsafe_b64encode(v.encode()).decode().rstrip("="),
    "hexadecimal": lambda v: v.encode().hex(),
    "hexadecimal in capitals": lambda v: v.encode().hex().upper(),
    "JSON": json.dumps,
    "JSON with escapes": lambda v: "".join(f"\\u{ord(one):04x}" for one in v),
    "HTML": lambda v: v.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;"),
    "HTML by numbers": lambda v: "".join(f"&#{ord(one)};" for one in v),
    "HTML by hexadecimal numbers": lambda v: "".join(f"&#x{ord(one):X};" for one in v),
}


@pytest.mark.parametrize("form", FORMS)
async def test_a_value_that_comes_back_is_struck_out_in_every_form(room: Room, web: Server, form: str) -> None:
    encoded = FORMS[form](VALUE)
    web.replies["/back"] = answer(f"<{encoded}>", status="200 Fine", x_echo=encoded)
    told = await room.value(
        "async ({ url }, ctx) => { const r = await ctx.fetch(url); return [await r.text(), r.headers.get('x-echo')]; }",
        {"url": f"{web.url}/back"},
        secrets=secret(web),
    )
    assert MASK in told[0]
    assert MASK in told[1]
    for one in told:
        assert encoded[4:-4] not in one


def test_what_is_no_value_is_left_alone() -> None:
    masks = Masks([VALUE, "another-value"])
    for text in ("", "plain", "s3cr3t", "another value", base64.b64encode(b"something else").decode()):
        assert masks.text(text) == text
    assert masks.text("an another-value!") == f"an {MASK}!"
    assert masks.data(b"\xff\x00another-value\xfe") == b"\xff\x00***\xfe"
    assert Masks([]).text(VALUE) == VALUE


def test_as_many_secrets_as_there_may_be_are_struck_out_at_once() -> None:
    values = [f"{number:04d}" + "ab/+" * 255 for number in range(32)]
    assert Masks(values).text(f"a {values[7]} b {base64.b64encode(values[31].encode()).decode()}").count(MASK) == 2


async def test_hmac_signs_with_the_value_outside(room: Room, web: Server) -> None:
    signed = secret(web, signs=True)
    assert (
        await room.value("(a, ctx) => ctx.hmac('KEY', 'text')", secrets=signed) == hmac.new(VALUE.encode(), b"text", "sha256").hexdigest()
    )
    told = await room.value(
        "(a, ctx) => ctx.hmac('KEY', new Uint8Array([1, 2]), { algorithm: 'SHA-512', encoding: 'base64' })", secrets=signed
    )
    assert base64.b64decode(told) == hmac.new(VALUE.encode(), b"\x01\x02", hashlib.sha512).digest()


async def test_stand_ins_are_others_in_each_call_and_worth_nothing_in_the_next(room: Room, web: Server) -> None:
    first = await room.value("(a, ctx) => ctx.secrets.KEY", secrets=secret(web))
    second = await room.value("(a, ctx) => ctx.secrets.KEY", secrets=secret(web))
    assert first != second
    fetch = "async ({ url, old }, ctx) => { await ctx.fetch(url, { headers: { authorization: old } }); }"
    await room.value(fetch, {"url": web.url, "old": first}, secrets=secret(web))
    assert web.seen[0].headers["authorization"] == first


async def test_a_value_is_in_no_memory_of_a_sandbox(room: Room, web: Server) -> None:
    source = """async ({ url }, ctx) => {
      const told = await (await ctx.fetch(url, { headers: { authorization: ctx.secrets.KEY } })).text();
      globalThis.kept = told;
      return new Promise((done) => setTimeout(() => done(told.length), 500));
    }"""

    def held(wanted: bytes) -> bool:
        return any(_remembers(Path(f"/proc/{pid}"), wanted) for pid in room.sandboxes.pids)

    calling = asyncio.create_task(room.value(source, {"url": web.url}, secrets=secret(web)))
    await eventually(lambda: bool(web.seen))
    assert os.getuid() or await asyncio.to_thread(held, b"vxs_")  # to others than root it cannot be read at all
    assert not await asyncio.to_thread(held, VALUE.encode())
    await calling


def _remembers(folder: Path, wanted: bytes) -> bool:
    """Look for bytes in all that a process may write to."""
    try:
        with (folder / "maps").open() as maps, (folder / "mem").open("rb") as memory:
            for line in maps:
                span, rights, *_ = line.split()
                if rights.startswith("rw"):
                    start, end = (int(one, 16) for one in span.split("-"))
                    memory.seek(start)
                    if wanted in memory.read(end - start):
                        return True
    except PermissionError:
        pass
    return False

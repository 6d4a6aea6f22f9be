"""The files for a browser, their caching, and the page in their place when they are not built."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha384
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from tests.gateway.conftest import Running
from voxbridge.services.gateway.rest import pages


@pytest.fixture
def built(tmp_path: Path) -> TestClient:
    """The pages of a small build."""
    studio, client = tmp_path / "studio", tmp_path / "client"
    (studio / "assets").mkdir(parents=True)
    client.mkdir()
    (studio / "index.html").write_text("<title>Studio</title>")
    (studio / "assets" / "app-1a2b.js").write_text("studio()")
    (client / "client.js").write_text("client()")
    (client / "client.js.map").write_text("{}")
    (client / "voxbridge.tgz").write_bytes(b"packed")
    app = FastAPI()
    pages.mount(app, studio=studio, client=client)
    return TestClient(app)


@pytest.mark.parametrize("path", ["/", "/agents", "/keys", "/tools", "/tools/calculate", "/sessions", f"/sessions/{'0' * 32}"])
def test_every_page_of_the_studio_is_its_one_document(built: TestClient, path: str) -> None:
    answer = built.get(path)
    assert answer.text == "<title>Studio</title>"
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"
    assert built.head(path).status_code == 200


def test_assets_are_kept_for_ever(built: TestClient) -> None:
    answer = built.get("/assets/app-1a2b.js")
    assert answer.text == "studio()"
    assert "immutable" in answer.headers["cache-control"]
    assert built.get("/assets/../../client/client.js").status_code == 404
    assert built.get("/assets/%2e%2e/index.html").status_code == 404


def test_the_document_is_sent_once_and_then_only_when_it_changed(built: TestClient) -> None:
    first = built.get("/")
    again = built.get("/", headers={"If-None-Match": f'W/{first.headers["etag"]}, "other"'})
    assert (again.status_code, again.content) == (304, b"")
    assert built.get("/", headers={"If-None-Match": '"other"'}).text == "<title>Studio</title>"


def test_a_bundle_has_its_digest_in_its_name_and_may_be_loaded_from_anywhere(built: TestClient) -> None:
    bare = built.get("/client.js", follow_redirects=False)
    assert (bare.status_code, bare.headers["cache-control"], bare.headers["access-control-allow-origin"]) == (302, "no-cache", "*")
    named = bare.headers["location"]
    assert re.fullmatch(r"/client\.[0-9a-f]{16}\.js", named)
    answer = built.get(named)
    assert (answer.status_code, answer.text) == (200, "client()")
    assert answer.headers["content-type"] == "text/javascript; charset=utf-8"
    assert "immutable" in answer.headers["cache-control"]
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.headers["cross-origin-resource-policy"] == "cross-origin"
    before = built.get("/client.0123456789abcdef.js", follow_redirects=False)
    assert (before.status_code, before.headers["location"]) == (302, named), "a version of before leads to the one there is"
    assert built.get("/other.js").status_code == 404


def test_the_map_of_a_bundle_is_beside_it(built: TestClient) -> None:
    answer = built.get("/client.js.map")
    assert (answer.json(), answer.headers["access-control-allow-origin"], answer.headers["cache-control"]) == ({}, "*", "no-cache")
    for path in ("/react.js.map", "/secret.js.map", "/voxbridge.tgz.js.map"):
        assert built.get(path).status_code == 404


def test_the_integrity_of_each_bundle_is_that_of_its_bytes(built: TestClient) -> None:
    answer = built.get("/integrity.json")
    assert (answer.headers["access-control-allow-origin"], answer.headers["cache-control"]) == ("*", "no-cache")
    [(path, integrity)] = answer.json().items()
    content = built.get(path, follow_redirects=False)
    assert content.status_code == 200, "it is the name of the version that there is"
    assert integrity == f"sha384-{b64encode(sha384(content.content).digest()).decode()}"


def test_the_package_for_npm_is_one_file(built: TestClient) -> None:
    answer = built.get("/voxbridge.tgz")
    assert (answer.content, answer.headers["content-type"], answer.headers["cache-control"]) == (b"packed", "application/gzip", "no-cache")
    assert built.head("/voxbridge.tgz").status_code == 200


def test_what_is_not_built_says_how_to_build_it(tmp_path: Path) -> None:
    app = FastAPI()
    pages.mount(app, studio=tmp_path, client=tmp_path)
    client = TestClient(app)
    for path in ("/", "/react.js", "/voxbridge.tgz", "/integrity.json"):
        answer = client.get(path)
        assert answer.status_code == 503
        assert "make up" in answer.text
    assert client.get("/assets/app.js").status_code == 404
    (tmp_path / "index.html").write_text("now")
    assert client.get("/").text == "now"


async def test_the_reference_lists_every_operation_and_loads_nothing(running: Running) -> None:
    page = (await running.get("/docs")).text
    document = (await running.get("/openapi.json")).json()
    for path, methods in document["paths"].items():
        for method in methods:
            assert f"{method.upper()} {path}" in page
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", page)
    assert "<script" not in page


async def test_every_answer_carries_the_security_headers(running: Running) -> None:
    for path in ("/", "/docs", "/healthz", "/api/sessions", "/nothing", "/api/sessions?limit=0"):
        headers = (await running.get(path)).headers
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "no-referrer")
    refused = await running.get("/", headers={"Host": "evil.example"})
    assert "default-src 'none'" in refused.headers["content-security-policy"]


async def test_a_page_reaches_its_own_gateway_and_nothing_else(running: Running) -> None:
    host = f"127.0.0.1:{running.port}"
    policy = (await running.get("/")).headers["content-security-policy"]
    directives = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert directives["connect-src"] == f"'self' ws://{host} wss://{host}"
    assert (directives["base-uri"], directives["form-action"], directives["object-src"]) == ("'none'", "'none'", "'none'")


async def test_what_tells_of_calls_is_kept_by_no_cache(running: Running) -> None:
    for path in ("/api/sessions", f"/api/sessions/{'0' * 32}", "/api/vox/status", "/metrics", "/readyz"):
        assert (await running.get(path)).headers["cache-control"] == "no-store"

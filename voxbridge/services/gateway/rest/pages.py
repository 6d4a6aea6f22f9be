"""The files that a browser loads: the Studio, the client bundles, and the page of the REST interface.

Owns their paths and how long they may be cached. Does not own their build: `studio/` and `client/` do. Nothing is lost in a crash here.
"""

from __future__ import annotations

import html
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256, sha384
from pathlib import Path
from typing import Any, Final

from fastapi import APIRouter, FastAPI, Request, Response
from starlette.responses import HTMLResponse, JSONResponse
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

_PACKAGE: Final = Path(__file__).resolve().parents[3]
_BUNDLED: Final = _PACKAGE / "web"
"""The bundles of an installed wheel (`hatch_build.py`); a checkout has them where they are built."""

STUDIO: Final = _BUNDLED / "studio" if _BUNDLED.is_dir() else _PACKAGE.parent / "studio" / "dist"
CLIENT: Final = _BUNDLED / "client" if _BUNDLED.is_dir() else _PACKAGE.parent / "client" / "dist"
BUNDLES: Final = ("client", "react", "page", "ui", "socket", "capture", "playback")
"""Scripts that pages of any origin load, by name; each is served below a name with its digest, to which the bare name redirects."""

PACKAGE: Final = "voxbridge.tgz"
"""The same scripts with their types, as a package that npm installs."""

DIGEST: Final = 16
"""Hexadecimal digits of a file's SHA-256 in its name."""

_ANYWHERE: Final = {"Access-Control-Allow-Origin": "*", "Cross-Origin-Resource-Policy": "cross-origin"}
_REVALIDATE: Final = "no-cache"
_IMMUTABLE: Final = "public, max-age=31536000, immutable"
_STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}"
    "code,pre{font-family:ui-monospace,monospace}section{border-top:1px solid #8884;padding:.5rem 0}"
)


def mount(app: FastAPI, *, studio: Path = STUDIO, client: Path = CLIENT) -> None:
    """Add the pages. Files that are built later are found without a restart."""
    router = APIRouter(include_in_schema=False)

    @router.api_route("/", methods=["GET", "HEAD"])
    @router.api_route("/agents", methods=["GET", "HEAD"])
    @router.api_route("/awareness", methods=["GET", "HEAD"])
    @router.api_route("/bridge", methods=["GET", "HEAD"])
    @router.api_route("/keys", methods=["GET", "HEAD"])
    @router.api_route("/tools", methods=["GET", "HEAD"])
    @router.api_route("/tools/{name}", methods=["GET", "HEAD"])
    @router.api_route("/tools/runs/{run_id}", methods=["GET", "HEAD"])
    @router.api_route("/sessions", methods=["GET", "HEAD"])
    @router.api_route("/sessions/{session_id}", methods=["GET", "HEAD"])
    def page(request: Request) -> Response:
        index = studio / "index.html"
        return _file(request, index, "text/html; charset=utf-8") if index.is_file() else HTMLResponse(_NOT_BUILT, status_code=503)

    @router.api_route("/{name}.js", methods=["GET", "HEAD"])
    def bundle(name: str) -> Response:
        stem, _, digest = name.partition(".")
        if stem not in BUNDLES:
            return missing(f"/{name}.js")
        path = client / f"{stem}.js"
        if not path.is_file():
            return _unbuilt(path.name)
        content = path.read_bytes()
        named = _named(stem, content)
        if digest != named.split(".")[1]:  # a page that names no version, or one of before, gets the one there is
            headers = {"Location": named, "Cache-Control": _REVALIDATE, **_ANYWHERE}
            return Response(status_code=302, headers=headers)
        headers = {"Cache-Control": _IMMUTABLE, **_ANYWHERE}
        return Response(content, headers=headers, media_type="text/javascript; charset=utf-8")

    @router.api_route("/{name}.js.map", methods=["GET", "HEAD"])
    def source_map(request: Request, name: str) -> Response:
        path = client / f"{name}.js.map"
        return _file(request, path, "application/json", _ANYWHERE) if name in BUNDLES and path.is_file() else missing(f"/{name}.js.map")

    @router.api_route("/integrity.json", methods=["GET", "HEAD"])
    def integrity() -> Response:
        scripts = {stem: (client / f"{stem}.js").read_bytes() for stem in BUNDLES if (client / f"{stem}.js").is_file()}
        told = {_named(stem, content): f"sha384-{b64encode(sha384(content).digest()).decode()}" for stem, content in scripts.items()}
        return JSONResponse(told, headers={"Cache-Control": _REVALIDATE, **_ANYWHERE}) if told else _unbuilt("client.js")

    @router.api_route(f"/{PACKAGE}", methods=["GET", "HEAD"])
    def package(request: Request) -> Response:
        path = client / PACKAGE
        return _file(request, path, "application/gzip") if path.is_file() else _unbuilt(PACKAGE)

    @router.get("/docs")
    def docs() -> HTMLResponse:
        return HTMLResponse(reference(app.openapi()))

    app.include_router(router)
    app.mount("/assets", _Assets(directory=studio / "assets", check_dir=False))


class _Assets(StaticFiles):
    """Files whose names contain their digest; each is 404 until it is built."""

    async def check_config(self) -> None:
        """Skip the check for the folder: it exists only after the Studio is built."""

    def file_response(self, full_path: Any, stat_result: Any, scope: Scope, status_code: int = 200) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers["Cache-Control"] = _IMMUTABLE
        return response


def _named(stem: str, content: bytes) -> str:
    """Return the path of a script with its digest."""
    return f"/{stem}.{sha256(content).hexdigest()[:DIGEST]}.js"


def _unbuilt(name: str) -> Response:
    return Response(f"{name} is not built. Run `make up`.\n", status_code=503, media_type="text/plain", headers=_ANYWHERE)


def _file(request: Request, path: Path, media_type: str, more: Mapping[str, str] = {}) -> Response:
    content = path.read_bytes()
    etag = f'"{sha256(content).hexdigest()[:32]}"'
    headers = {"ETag": etag, "Cache-Control": _REVALIDATE, **more}
    if etag in (tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")):
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=media_type)


def reference(document: dict[str, Any]) -> str:
    """Render the OpenAPI document as a page that loads nothing else."""
    parts = [f"<h1>{html.escape(document['info']['title'])}</h1><p>{html.escape(document['info'].get('description', ''))}</p>"]
    parts.append('<p>The same as a document: <a href="/openapi.json">openapi.json</a>. The socket: <code>docs/protocol.md</code>.</p>')
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            parts.append(_operation(path, method, operation))
    return _page("Voxbridge REST", "".join(parts))


def _operation(path: str, method: str, operation: dict[str, Any]) -> str:
    rows = "".join(
        f"<li><code>{html.escape(one['name'])}</code> ({html.escape(one['in'])}): <code>{html.escape(_shape(one['schema']))}</code></li>"
        for one in operation.get("parameters", [])
    )
    answers = "".join(
        f"<li><code>{status}</code> {html.escape(answer['description'])}"
        + "".join(f" <code>{html.escape(_shape(body.get('schema', {})))}</code>" for body in answer.get("content", {}).values())
        + "</li>"
        for status, answer in operation["responses"].items()
    )
    about = html.escape(operation.get("description", ""))
    return f"<section><h2><code>{method.upper()} {html.escape(path)}</code></h2><p>{about}</p><ul>{rows}</ul><ul>{answers}</ul></section>"


def _shape(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(_shape(one) for one in schema["anyOf"])
    limits = [f"{word} {schema[key]}" for key, word in (("minimum", "from"), ("maximum", "to"), ("pattern", "like")) if key in schema]
    return " ".join([str(schema.get("type", "any")), *limits])


def missing(path: str) -> Response:
    """Return the 404 page."""
    places = (
        "There are <a href=/>Talk</a>, <a href=/tools>Tools</a>, <a href=/agents>Agents</a>, <a href=/bridge>Bridge</a>, "
        "<a href=/sessions>Sessions</a>, <a href=/awareness>Awareness</a> and <a href=/keys>Keys</a>, "
        "and the <a href=/docs>REST interface</a>."
    )
    body = f"<h1>There is no such page</h1><p>Nothing is at <code>{html.escape(path)}</code>. {places}</p>"
    return HTMLResponse(_page("Voxbridge", body), status_code=404)


def _page(title: str, body: str) -> str:
    return f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title><style>{_STYLE}</style><body>{body}"


_NOT_BUILT: Final = _page(
    "Voxbridge",
    "<h1>The Studio is not built yet</h1><p>The gateway runs. Its web page is made by <code>make up</code>; "
    "in a checkout run <code>npm ci &amp;&amp; npm run build</code> and load this page again.</p>"
    '<p>The REST interface is at <a href="/docs">/docs</a>, the state of the services at <a href="/readyz">/readyz</a>.</p>',
)

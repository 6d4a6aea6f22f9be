"""Generated code is used: components are bundled, checked and rendered, endpoints are started and asked, tests are collected and run."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from tests.eventually import BOUND_S, eventually, opens
from tests.ports import free_port
from tests.tools.conftest import Caller, Executors
from tests.tools.packs.asking import asking
from voxbridge.services.tools.packs.codegen import endpoint, names, outline, react
from voxbridge.services.tools.packs.codegen.skeletons import skeletons
from voxbridge.shared import projects
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.workspace import Workspace

pytestmark = pytest.mark.timeout(180)
ROOT: Final = Path(__file__).parents[3]
BIN: Final = ROOT / "node_modules" / ".bin"
NODE: Final = Path(sys.executable).with_name("node")
PROPS: Final = [
    "title",
    "price: number",
    "stock count",
    "is new",
    "due: date",
    "tags: list",
    "on save",
    "on close?: action",
    "children",
    "note?",
    "links?: list",
    "until?: date",
]
RENDER: Final = """
import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { PriceTag } from "./components/PriceTag";
import { LoginButton } from "./components/LoginButton";
const saved: string[] = [];
const first = { title: "<b>Tea</b>", price: 2.5, stockCount: 3, isNew: true, due: new Date(0) };
const all = { ...first, tags: ["a", "a"], onSave: () => saved.push("x") };
console.log(renderToStaticMarkup(createElement(PriceTag, { ...all, children: "inside" })));
console.log(renderToStaticMarkup(createElement(LoginButton, {})));
"""
STRICT: Final = {
    "compilerOptions": {
        "strict": True, "noEmit": True, "target": "es2022", "module": "esnext", "moduleResolution": "bundler", "jsx": "react-jsx",
        "exactOptionalPropertyTypes": True, "noUncheckedIndexedAccess": True, "noUnusedLocals": True, "noUnusedParameters": True,
        "noImplicitReturns": True, "skipLibCheck": True, "types": ["node"],
    },
    "include": ["**/*.ts", "**/*.tsx"],
}  # fmt: skip
HOSTILE_NAMES: Final = [
    'Card"; process.exit(1); //', "Card`${1}`", "<script>", "Card\nimport os", "class Card", "1Card", "", " ", "Ünïcode", "カード",
    "a" * 49,
    "../Card",
    "Card/Other", "Card\0", "Card\u202e", "{Card}", "Card;", "Card()", "__proto__", "React", "fragment", "react node",
]  # fmt: skip
HOSTILE_FIELDS: Final = [
    "class", "import", "title: string; evil()", "a: {}", "a: __import__('os')", 'a"b', "a'b", "a\nb", "a: text = 1", "", ":", "a:", "a:b:c",
    "1a", "ä", "x" * 49, "x: " + "y" * 80, "__class__", "return", "lambda", "await",
]  # fmt: skip
HOSTILE_PATHS: Final = [
    "", "/", "//", "/a//b", "/../etc", '/a"b', "/a'b", "/a b", "/{a", "/a}", "/{a}/{a}", "/{a:path}", "/{class}", "/{a.b}", "/{__x}",
    "/{A}",
    "/a\nb", "/a\0", "/ä", "/" + "a" * 49, "/a" * 9, "/a?b=1", "/a#b", "/%2e%2e", "/{body}", "/{int}", "http://evil/a:b", "/a;b",
    "/-a", "/{0}",
    "/.git",
]  # fmt: skip
SOURCE: Final = '''"""Sums."""

import dataclasses
from functools import cache


def add(a: int, b: int = 0) -> int:
    """Add.

    >>> add(1, 2)
    3
    """
    return a + b


async def fetch(url: str, /, *, deep: bool = False) -> str:
    return url


def many(*args: int, **named: int) -> int:
    return len(args)


@cache
def cached(x: int) -> int:
    return x


def _hidden() -> None: ...


@dataclasses.dataclass
class Basket:
    """A basket.

    >>> Basket(2).count
    2
    """

    count: int

    def empty(self) -> None:
        self.count = 0

    @property
    def full(self) -> bool:
        return self.count > 9


raise_nothing = True
'''


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False, timeout=BOUND_S)
    assert done.returncode == 0, done.stdout[-3_000:] + done.stderr[-3_000:]
    return done.stdout


async def test_components_bundle_pass_the_strict_compiler_and_render(executors: Executors, caller: Caller, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    projects.create(Workspace([folder], make=True), projects.Project(name="My Shop"))
    async with asking(executors, caller, folder, "codegen") as ask:
        made = await ask.answer("generate_react_component", name="price tag", props=PROPS, project="my shop")
        assert (made["file"], made["spoken"]) == ("my-shop/components/PriceTag.tsx", "I wrote the component PriceTag into My Shop.")
        await ask.answer("generate_react_component", name="LoginButton", project="My Shop")
        again = await ask.refusal("generate_react_component", name="Price Tag", project="My Shop")
        assert again.code == Code.CONFLICT
        shown = await ask.answer("generate_react_component", name="price tag", props=PROPS)
        assert shown["code"] == (folder / made["file"]).read_text()
        missing = await ask.refusal("generate_react_component", name="Card", project="Other")
        assert (missing.code, "There are: My Shop." in missing.message) == (Code.NOT_FOUND, True)
    shop = folder / "my-shop"
    (shop / "node_modules").symlink_to(ROOT / "node_modules")
    (shop / "tsconfig.json").write_text(json.dumps(STRICT))
    (shop / "render.ts").write_text(RENDER)
    await asyncio.to_thread(run, NODE, BIN / "tsc", "-p", ".", cwd=shop)
    await asyncio.to_thread(
        run, BIN / "esbuild", "render.ts", "--bundle", "--platform=node", "--jsx=automatic", "--outfile=out.cjs", cwd=shop
    )
    first, second = (await asyncio.to_thread(run, NODE, "out.cjs", cwd=shop)).splitlines()
    for part in (
        "<h2>&lt;b&gt;Tea&lt;/b&gt;</h2>",
        "Price: 2.5",
        "Stock count: 3",
        "Is new: yes",
        "1970-01-01",
        "<li>a</li><li>a</li>",
        "inside",
    ):
        assert part in first, part
    assert '<button type="button">Save</button>' in first
    assert second == '<section class="login-button" aria-label="Login button"><p>Login button</p></section>'


async def test_endpoints_start_answer_and_refuse(executors: Executors, caller: Caller, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    projects.create(Workspace([folder], make=True), projects.Project(name="shop"))
    body = ["name", "price: number", "count: integer", "gift: boolean", "due?: date", "tags?: list"]
    async with asking(executors, caller, folder, "codegen") as ask:
        made = await ask.answer("generate_fastapi_endpoint", path="/orders/{order_id}", method="post", fields=body, project="shop")
        assert made["file"] == "shop/api/post_orders_order_id.py"
        await ask.answer("generate_fastapi_endpoint", path="health", project="shop")
        await ask.answer("generate_fastapi_endpoint", path="search", fields=["query text", "page: integer", "day?: date"], project="shop")
        assert (await ask.refusal("generate_fastapi_endpoint", path="/a", method="steal")).code == Code.INVALID_ARGUMENT
        assert (await ask.refusal("generate_fastapi_endpoint", path="/a", fields=["x"] * 13)).code == Code.INVALID_ARGUMENT
    api = folder / "shop/api"
    good = {"name": "Tea", "price": 2.5, "count": 1, "gift": True}
    async with served(api, "post_orders_order_id") as client:
        answer = await client.post("/orders/7", json=good | {"due": "2026-01-02", "tags": ["a"]})
        assert (answer.status_code, answer.json()) == (201, good | {"order_id": 7, "due": "2026-01-02", "tags": ["a"]})
        assert (await client.post("/orders/7", json=good)).json()["due"] is None
        wrong: Any
        for wrong in (
            {},
            good | {"price": "dear"},
            good | {"more": 1},
            good | {"name": "x" * 1_001},
            good | {"name": ""},
            [],
            good | {"due": "soon"},
        ):
            assert (await client.post("/orders/7", json=wrong)).status_code == 422, wrong
        assert (await client.post("/orders/seven", json=good)).status_code == 422
        assert (await client.get("/orders/7")).status_code == 405
    async with served(api, "get_health") as client:
        assert (await client.get("/health")).json() == {"ok": True}
    async with served(api, "get_search") as client:
        answer = await client.get("/search", params={"query_text": "tea", "page": 2})
        assert (answer.status_code, answer.json()) == (200, {"query_text": "tea", "page": 2, "day": None})
        assert (await client.get("/search", params={"query_text": "tea"})).status_code == 422
        assert (await client.get("/search", params={"query_text": "tea", "page": "two"})).status_code == 422


@asynccontextmanager
async def served(folder: Path, module: str) -> AsyncIterator[httpx.AsyncClient]:
    """Start a generated module under uvicorn."""
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", f"{module}:app", "--port", str(port), "--log-level", "warning"]
    process = await asyncio.create_subprocess_exec(*command, cwd=folder)
    try:
        await eventually(lambda: opens(port))
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=BOUND_S) as client:
            yield client
    finally:
        process.terminate()
        await process.wait()


async def test_tests_are_collected_run_and_fail_when_the_interface_changes(executors: Executors, caller: Caller, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    (folder / "src").mkdir(parents=True)
    (folder / "src/core.py").write_text(SOURCE)
    (folder / "src/needs.py").write_text("import not_installed_anywhere\n\ndef f(): ...\n")
    (folder / "src/it's odd.py").write_text("def f(x): ...\n")
    touched = tmp_path / "touched"
    (folder / "src/effect.py").write_text(f"open({str(touched)!r}, 'w').close()\n\ndef g(): ...\n")
    async with asking(executors, caller, folder, "codegen") as ask:
        made = await ask.answer("generate_tests", path="core dot py")
        assert (made["file"], made["tests"]) == ("src/tests/test_src_core.py", 12)
        assert made["spoken"] == "I wrote 12 tests for src/core.py into test_src_core.py. Fill in the skipped ones."
        for path in ("needs.py", "src/it's odd.py", "effect.py"):
            await ask.answer("generate_tests", path=path)
        assert not touched.exists(), "nothing is imported to write its tests"
        assert (await ask.refusal("generate_tests", path="core.py")).code == Code.CONFLICT
        assert (await ask.refusal("generate_tests", path="nothing.py")).code == Code.NOT_FOUND
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:asyncio", "-W", "error", "--rootdir", str(folder)]
    command = [sys.executable, "-m", "pytest", *options, str(folder)]
    said = await asyncio.to_thread(run, *command, cwd=folder)
    assert "9 passed, 9 skipped" in said
    assert "error" not in said
    (folder / "src/core.py").write_text(SOURCE.replace("b: int = 0", "c: int = 0").replace("a + b", "a - c"))
    done = await asyncio.to_thread(subprocess.run, command, cwd=folder, capture_output=True, text=True, check=False, timeout=BOUND_S)
    assert "2 failed" in done.stdout, "the argument and the example"


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_a_hostile_name_of_a_component_is_refused(name: str) -> None:
    if name in ("class Card", "__proto__"):
        assert names.component(name.strip("_")) in ("ClassCard", "Proto")
        return
    with pytest.raises(VoxbridgeError) as caught:
        names.component(name)
    assert caught.value.field == "name"


@pytest.mark.parametrize("field", HOSTILE_FIELDS)
@pytest.mark.parametrize("language", ["javascript", "python"])
def test_a_hostile_field_is_refused(field: str, language: Any) -> None:
    if (field, language) == ("lambda", "javascript"):
        assert names.fields_of([field], language=language, field="fields")[0].camel == "lambda"
        return
    with pytest.raises(VoxbridgeError) as caught:
        names.fields_of([field], language=language, field="fields")
    assert caught.value.field == "fields"
    assert caught.value.message.isprintable()


@pytest.mark.parametrize("path", HOSTILE_PATHS)
def test_a_hostile_path_of_an_endpoint_is_refused(path: str) -> None:
    with pytest.raises(VoxbridgeError) as caught:
        endpoint.parts_of(path)
    assert caught.value.field == "path"


def test_names_fields_and_paths_are_taken_up_to_their_limits() -> None:
    assert names.component("a" * names.NAME_LIMIT) == "A" + "a" * (names.NAME_LIMIT - 1)
    assert len(endpoint.parts_of("/a" * endpoint.PARTS_LIMIT)) == endpoint.PARTS_LIMIT
    most = [f"field {number}" for number in range(names.FIELDS_LIMIT)]
    assert len(names.fields_of(most, language="python", field="fields")) == names.FIELDS_LIMIT
    with pytest.raises(VoxbridgeError, match="Leave some out"):
        names.fields_of([*most, "one more"], language="python", field="fields")
    with pytest.raises(VoxbridgeError, match="named twice"):
        names.fields_of(["unit price", "unitPrice"], language="javascript", field="props")
    with pytest.raises(VoxbridgeError, match="in the path already"):
        endpoint.endpoint(["{order_id}"], "get", names.fields_of(["order id"], language="python", field="fields"))


@pytest.mark.parametrize("said", ["str", "int", "date", "model name", "copy", "schema", "body", "dt", "type", "id", "self", "format"])
def test_a_field_that_would_hide_something_is_refused_and_the_others_work(said: str) -> None:
    try:
        fields = names.fields_of([f"{said}: text", "other: text"], language="python", field="fields")
    except VoxbridgeError:
        assert said not in ("date", "type", "id", "format")
    else:
        space: dict[str, Any] = {}
        exec(endpoint.endpoint(["things"], "post", fields), space)
        assert set(space["Body"].model_fields) == {said, "other"}


@pytest.mark.parametrize(
    "text",
    [
        "(" * 100_000,
        "x = " + "-" * 100_000 + "1",
        "def f(:",
        "\0",
        "",
        "x = 1\n",
        "def _a(): ...\n",
        "'''" * 99_999,
    ],
)
def test_a_text_without_an_outline_is_refused(text: str) -> None:
    with pytest.raises(VoxbridgeError) as caught:
        outline.outline(text, "a.py")
    assert caught.value.field == "path"


def test_a_module_of_many_functions_is_cut() -> None:
    found = outline.outline("".join(f"def f{number}(): ...\n" for number in range(outline.NAMES_LIMIT + 1)), "a.py")
    assert (len(found["functions"]), found["total"]) == (outline.NAMES_LIMIT, outline.NAMES_LIMIT + 1)
    compile(skeletons("under_test_a", 'a"\n\\".py', found), "test_a.py", "exec")


def test_a_component_without_properties_has_none() -> None:
    assert "Props" not in react.component("Empty", [], "Empty")

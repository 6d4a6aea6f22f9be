"""Declarations of the functions that generate code. The model gives names, kinds and small lists; the text is made here."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Annotated, Any, Final

from msgspec import Meta

from voxbridge.services.tools.context import Context
from voxbridge.services.tools.core.inputs import Reversible
from voxbridge.services.tools.packs.codegen import endpoint, names, outline, react, skeletons
from voxbridge.services.tools.registry import function, worker
from voxbridge.shared import projects
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.spoken_paths import PATH_LIMIT
from voxbridge.shared.workspace import Place, Workspace

CHILD_S: Final = 10.0
_Field = Annotated[str, Meta(min_length=1, max_length=names.FIELD_LIMIT)]
_Fields = Annotated[list[_Field], Meta(max_length=names.FIELDS_LIMIT)]
_ProjectName = Annotated[str, Meta(max_length=projects.NAME_LIMIT)]


@worker(timeout_s=CHILD_S)
def read_outline(text: str, name: str) -> dict[str, Any]:
    """Read the outline of a module."""
    return outline.outline(text, name)


async def _remove(given: Mapping[str, Any], ctx: Context) -> str:
    """Delete a file that was written, unless somebody changed it since."""
    root = next((root for root in ctx.workspace.roots if str(root) == given["root"]), None)
    if root is None:
        raise VoxbridgeError(Code.NOT_FOUND, f"{given['file']} is in no folder of the workspace any more.", field="call")
    place = Place(root, tuple(given["file"].split("/")), "file")
    await asyncio.to_thread(ctx.workspace.remove, place, given["sha256"])
    return f"I removed the file {place.parts[-1]}."


@function(effect="write", timeout_s=10, undo=_remove)
async def generate_react_component(
    name: Annotated[str, Meta(min_length=1, max_length=names.NAME_LIMIT, examples=["UserCard"])],
    ctx: Context,
    props: _Fields | None = None,
    project: _ProjectName = "",
) -> dict[str, Any] | Reversible:
    """Generate a React component in TypeScript.

    Args:
        name: Name of the component.
        props: Its properties, each a name or a name and kind such as `count: number`.
        project: Project that gets the file; without it the code is shown.

    Examples:
        make a react component called user card
        generate a component named price tag with a title and a price
        create a tsx component for a login button
        I need a new react card with a title and an on save action
        scaffold a frontend component profile header
        write me a component todo list with items
        add a react widget called weather badge to my project
        build the user interface piece for the shopping cart
        code a component for a nav bar
        build me a react button
        write the front end piece for comments
    """
    component = names.component(name)
    fields = names.fields_of(props or [], language="javascript", field="props")
    label = " ".join(names.words_of(name, what="A component's name", field="name")).capitalize()
    code = react.component(component, fields, label)
    return await _result(ctx, code, "component " + component, project, f"components/{component}.tsx")


@function(effect="write", timeout_s=10, undo=_remove)
async def generate_fastapi_endpoint(
    path: Annotated[str, Meta(min_length=1, max_length=256, examples=["/orders/{order_id}"])],
    ctx: Context,
    method: endpoint.Method = "get",
    fields: _Fields | None = None,
    project: _ProjectName = "",
) -> dict[str, Any] | Reversible:
    """Generate an HTTP endpoint in Python with FastAPI.

    Args:
        path: Path of the endpoint.
        method: HTTP method.
        fields: What a request sends, each a name or a name and kind such as `price: number`.
        project: Project that gets the file; without it the code is shown.

    Examples:
        generate a fastapi endpoint for orders
        create a post endpoint slash users with name and email
        make an api route that takes a price and a quantity
        I need a python endpoint to delete a customer
        scaffold a rest endpoint for invoices in the shop project
        write a get route for products
        add a backend endpoint slash health
        build me a web service method to update an address
        I need a route at slash payments
        write a put endpoint for profiles
        make the api for bookings
        code the backend route slash login
    """
    parts = endpoint.parts_of(path)
    named = names.fields_of(fields or [], language="python", field="fields")
    code = endpoint.endpoint(parts, method, named)
    told = f"endpoint {method.upper()} /{'/'.join(parts)}"
    return await _result(ctx, code, told, project, f"api/{endpoint.module_name(parts, method)}.py")


@function(effect="write", timeout_s=20, undo=_remove)
async def generate_tests(path: Annotated[str, Meta(min_length=1, max_length=PATH_LIMIT, examples=["core.py"])], ctx: Context) -> Reversible:
    """Generate skeletons of pytest tests for a Python file, in a folder `tests` beside it.

    Args:
        path: Python file of the workspace, as said.

    Examples:
        write tests for core dot py
        generate unit tests for the parser module
        build a test module covering the mailer
        create pytest skeletons for user service dot py
        I need tests for the billing code
        scaffold some tests for the orders file
        add pytest cases to strings dot py
        begin testing the calculator module
        cover orders dot py with tests
        billing dot py needs tests
        draft tests for the client module
        put some pytest tests beside auth dot py
        write test cases for models dot py
    """
    place = await asyncio.to_thread(_python_file, ctx.workspace, path)
    text = await asyncio.to_thread(ctx.workspace.read_text, place)
    found = await ctx.in_child(read_outline, text=text, name=place.name)
    stem = re.sub(r"[^a-z0-9]+", "_", "_".join(place.parts).lower().removesuffix(".py")).strip("_") or "module"
    code = skeletons.skeletons(f"under_test_{stem}"[:120], place.parts[-1], found)
    target = "/".join((*place.parts[:-1], "tests", f"test_{stem[-100:]}.py"))
    written = await asyncio.to_thread(_write_beside, place, target, code)
    count = code.count("\ndef test_")
    shown = len(found["functions"]) + len(found["classes"])
    result = {
        "file": written.name,
        "path": str(written.path),
        "tests": count,
        **({"left_out": found["total"] - shown} if found["total"] > shown else {}),
        "spoken": f"I wrote {count} test{'s' if count != 1 else ''} for {place.name} into {written.parts[-1]}. Fill in the skipped ones.",
    }
    return _reversible(result, written, code)


async def _result(ctx: Context, code: str, what: str, project: str, file: str) -> dict[str, Any] | Reversible:
    if not project.strip():
        return {"code": code, "spoken": f"Here is the {what}."}
    found = await asyncio.to_thread(projects.find, ctx.workspace, project)
    place = await asyncio.to_thread(_write_beside, found.folder, f"{found.folder.name}/{file}", code)
    result = {"file": place.name, "path": str(place.path), "spoken": f"I wrote the {what} into {found.project.name}."}
    return _reversible(result, place, code)


def _reversible(result: dict[str, Any], place: Place, text: str) -> Reversible:
    given = {"file": place.name, "root": str(place.root), "sha256": sha256(text.encode()).hexdigest()}
    return Reversible(result=result, undo=given)


def _python_file(workspace: Workspace, path: str) -> Place:
    place = workspace.find(path, kind="file")
    if not place.name.endswith(".py"):
        raise VoxbridgeError(Code.INVALID_ARGUMENT, f"{place.name} is not Python. Name a Python file.", field="path")
    return place


def _write_beside(beside: Place, name: str, text: str) -> Place:
    """Write into the root that the place is in."""
    return Workspace([beside.root]).write(name, text)

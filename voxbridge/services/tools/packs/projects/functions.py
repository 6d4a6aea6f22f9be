"""Declarations of the functions about projects."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any, Final

from msgspec import Meta

from voxbridge.services.tools.context import Context
from voxbridge.services.tools.core.inputs import Reversible
from voxbridge.services.tools.registry import function
from voxbridge.shared import projects
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.workspace import Place

DESCRIPTION_LIMIT: Final = 500
SHOWN: Final = 20
"""Projects in a result; the others are counted."""

SPOKEN: Final = 5


async def _remove(given: Mapping[str, Any], ctx: Context) -> str:
    project = projects.Project(name=given["name"], description=given["description"], created=given["created"])
    folder = Place(ctx.workspace.roots[0], (given["folder"],), "folder")
    await asyncio.to_thread(projects.remove, ctx.workspace, project, folder)
    return f"I removed the project {project.name}."


@function(effect="write", timeout_s=10, undo=_remove)
async def create_project(
    name: Annotated[str, Meta(min_length=1, max_length=projects.NAME_LIMIT, examples=["My Shop"])],
    ctx: Context,
    description: Annotated[str, Meta(max_length=DESCRIPTION_LIMIT)] = "",
) -> Reversible:
    """Create a project: a folder in the workspace.

    Args:
        name: Name of the project.
        description: The purpose of the project, in a sentence.

    Examples:
        create a project called my shop
        start a new project named weather station
        make me a project for the garden
        set up a fresh project blue harbor
        I want to begin a new project
        open up a new workspace folder for invoices
        new project please call it alpha
        let us kick off a project about recipes
        I need a new project called compass
        set me up a project folder for the wedding
        make another project with the name sparrow
        add a project orchard
        begin the project winter sale
        open a project named garden
        set up a folder for the project orion
    """
    if not description.replace("\n", " ").isprintable():
        message = "The description has characters that cannot be shown. Say it in plain words."
        raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field="description")
    project = projects.Project(name=name.strip(), description=" ".join(description.split()), created=ctx.now)
    made = await asyncio.to_thread(projects.create, ctx.workspace, project)
    result = {
        "name": project.name,
        "folder": made.folder.name,
        "path": str(made.folder.path),
        "spoken": f"The project {project.name} is created.",
    }
    given = {"folder": made.folder.name, "name": project.name, "description": project.description, "created": project.created}
    return Reversible(result=result, undo=given)


@function(effect="read", timeout_s=10)
async def list_projects(ctx: Context) -> dict[str, Any]:
    """List the projects of the workspace.

    Examples:
        which projects do I have
        list my projects
        what projects are there
        show me all projects
        how many projects exist by now
        what am I working on
        tell me the names of my projects
        what projects have I got
        which projects are in the workspace
        list everything that I have started
        which projects are in my workspace
        give me the names of my projects
        how many projects do we have
    """
    found = await asyncio.to_thread(projects.every, ctx.workspace)
    shown = [{"name": one.project.name, "folder": one.folder.name, "description": one.project.description[:120]} for one in found[:SHOWN]]
    names = ", ".join(one.project.name for one in found[:SPOKEN])
    more = f" and {len(found) - SPOKEN} more" if len(found) > SPOKEN else ""
    spoken = f"You have {len(found)} project{'s' if len(found) != 1 else ''}: {names}{more}." if found else "There are no projects yet."
    return {"projects": shown, "count": len(found), "spoken": spoken}

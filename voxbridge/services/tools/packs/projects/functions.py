"""Declarations of the functions about projects."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Final

from msgspec import Meta

from voxbridge.services.tools.context import Context
from voxbridge.services.tools.registry import function
from voxbridge.shared import projects
from voxbridge.shared.errors import Code, VoxbridgeError

DESCRIPTION_LIMIT: Final = 500
SHOWN: Final = 20
"""Projects in a result; the others are counted."""

SPOKEN: Final = 5


@function(effect="write", timeout_s=10)
async def create_project(
    name: Annotated[str, Meta(min_length=1, max_length=projects.NAME_LIMIT, examples=["My Shop"])],
    ctx: Context,
    description: Annotated[str, Meta(max_length=DESCRIPTION_LIMIT)] = "",
) -> dict[str, Any]:
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
    """
    if not description.replace("\n", " ").isprintable():
        message = "The description has characters that cannot be shown. Say it in plain words."
        raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field="description")
    project = projects.Project(name=name.strip(), description=" ".join(description.split()), created=ctx.now)
    made = await asyncio.to_thread(projects.create, ctx.workspace, project)
    return {
        "name": project.name,
        "folder": made.folder.name,
        "path": str(made.folder.path),
        "spoken": f"The project {project.name} is created.",
    }


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
    """
    found = await asyncio.to_thread(projects.every, ctx.workspace)
    shown = [{"name": one.project.name, "folder": one.folder.name, "description": one.project.description[:120]} for one in found[:SHOWN]]
    names = ", ".join(one.project.name for one in found[:SPOKEN])
    more = f" and {len(found) - SPOKEN} more" if len(found) > SPOKEN else ""
    spoken = f"You have {len(found)} project{'s' if len(found) != 1 else ''}: {names}{more}." if found else "There are no projects yet."
    return {"projects": shown, "count": len(found), "spoken": spoken}

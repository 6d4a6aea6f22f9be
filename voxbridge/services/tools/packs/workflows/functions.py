"""List and run workflows: documents of steps in the installation's files (docs/macros.md)."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from voxbridge.services.tools.context import Context
from voxbridge.services.tools.registry import Local, function
from voxbridge.services.tools.runs import dry_run as dry
from voxbridge.services.tools.runs import spoken
from voxbridge.services.tools.runs.document import Document, macro_id
from voxbridge.shared.errors import Code, VoxbridgeError

SHOWN_LIMIT: Final = 40
"""Workflows in one answer, and steps in that of a dry run."""


@function(effect="read", listed=False)
async def list_workflows(ctx: Context) -> dict[str, Any]:
    """List the workflows of this installation.

    Examples:
        which workflows are there
        list the workflows
        what processes can you run for me
        show me the available workflows
        do we have a workflow for that
        what automations are set up
        what workflows exist
        are there any workflows
        which workflow could I run
    """
    workflows = await ctx.documents("workflow")
    shown = [_view(one) for one in workflows.values()]
    said = f"There are {len(shown)} workflows: {', '.join(list(workflows)[:6])}." if shown else "There are no workflows."
    return {"count": len(shown), "workflows": shown[:SHOWN_LIMIT], "spoken": said}


@function(kind="async", timeout_s=60, outlives=True)
async def run_workflow(
    ctx: Context,
    name: Annotated[str, Meta(min_length=1, max_length=64, examples=["focus block"])],
    inputs: Annotated[dict[str, Any], Local(None)] = {},  # noqa: B006 - never changed
    dry_run: bool = False,
) -> dict[str, Any]:
    """Run a workflow of this installation.

    Args:
        name: Name of the workflow.
        inputs: Values that it needs, by name.
        dry_run: Only say what it would do.

    Examples:
        run the focus block workflow
        start the daily briefing
        kick off the onboarding workflow
        execute the release process
        launch the nightly workflow
        go through the checklist workflow
        run the weekly report workflow
        start the workflow called cleanup
        get the nightly backup process going
        please launch onboarding
        begin the month end workflow
        trigger the release
        start the workflow called release
        please run the report workflow
        let the cleanup workflow go
        set the backup workflow off
    """
    # A run is begun by the executor and steps through its own calls (`core/runs.py`); only a dry run reaches this.
    workflows = await ctx.documents("workflow")
    document = next((one for one in workflows.values() if macro_id(one.name) == macro_id(name)), None)
    if not dry_run or document is None:
        raise VoxbridgeError(Code.NOT_FOUND, f"There is no workflow {name!r}. There is: {', '.join(list(workflows)[:6])}.", field="name")
    planned = dry.plan(document, workflows, inputs)
    steps = [msgspec.to_builtins(one) for one in planned[:SHOWN_LIMIT]]
    return {"dry_run": True, "count": len(planned), "steps": steps, "spoken": f"{document.name} would {spoken.steps(document)}."}


def _view(document: Document) -> dict[str, Any]:
    return {
        "name": document.name,
        "description": document.description,
        "inputs": list(document.inputs),
        "steps": len(document.steps),
    }

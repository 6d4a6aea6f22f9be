"""Declaration of the function that searches playbooks."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Final

from msgspec import Meta

from voxbridge.services.tools.context import Context
from voxbridge.services.tools.packs.playbooks.library import library
from voxbridge.services.tools.registry import function
from voxbridge.shared.errors import Code, VoxbridgeError

SECTIONS: Final = 5
"""Sections in a result."""

TEXT_LIMIT: Final = 600
"""Characters of a section's text in a result."""

QUERY_LIMIT: Final = 300


@function(effect="read", timeout_s=10)
async def search_playbooks(
    query: Annotated[str, Meta(min_length=1, max_length=QUERY_LIMIT, examples=["restore a backup"])], ctx: Context
) -> dict[str, Any]:
    """Search the playbooks, the written procedures of this installation.

    Args:
        query: Words of the procedure or problem.

    Examples:
        what does the playbook say about backups
        find the procedure for an outage
        how do we handle a refund according to our playbooks
        look up the runbook for a failed deployment
        is there a playbook for onboarding
        what are the steps when the disk is full
        search the playbooks for incident response
        what is our process for a new release
        is there a written procedure for a data leak
        what should we do by the book when a customer complains
        any playbook on hiring
        which steps do we follow for a rollback
        how are we supposed to restore the database
        check the runbooks for certificate renewal
    """
    found = await asyncio.to_thread(library(ctx.playbooks_dir).search, query, SECTIONS)
    if not found:
        raise VoxbridgeError(Code.NOT_FOUND, "No playbook has any of these words. Say it in other words.", field="query")
    best = found[0][0]
    return {
        "sections": [
            {
                "file": section.file,
                "heading": " > ".join(section.headings)[:300],
                "line": section.line,
                "text": section.text if len(section.text) <= TEXT_LIMIT else section.text[: TEXT_LIMIT - 1] + "…",
                "score": round(score, 2),
            }
            for section, score in found
        ],
        "count": len(found),
        "spoken": f"The best match is {', '.join(reversed(best.headings[-2:]))}.",
    }

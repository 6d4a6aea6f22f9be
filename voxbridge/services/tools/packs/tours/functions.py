"""Guided tours: `start_guided_tour` has the user's page begin one, `get_available_tours` lists them. The page shows and steers it."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Final

from msgspec import Meta

from voxbridge.services.tools.context import Context
from voxbridge.services.tools.packs.catalogue.spoken import listed
from voxbridge.services.tools.registry import function
from voxbridge.shared.events.tools import TourStarted
from voxbridge.shared.tours import library

USUAL: Final = "talk"
"""Page of the tour that starts where none is named and the user's page has none."""


@function(effect="read")
async def start_guided_tour(ctx: Context, page: Annotated[str, Meta(max_length=64, examples=["sessions"])] = "") -> dict[str, Any]:
    """Start the guided tour of a page of this app, which is shown there and spoken step by step.

    Args:
        page: Page of the tour; empty for the one that the user is on.

    Examples:
        show me around
        give me a tour
        start the guided tour
        take me on a tour of this app
        I am new here how does this app work
        begin the tour of the sessions page
        walk me through the tools room
        guide me through this screen
        show me around the agents page
        I'd like an introduction to this app
        start the tour for keys
        can I get a walkthrough
    """
    known = await asyncio.to_thread(library.load, ctx.tours_dir)
    tour = library.find(known, page or (USUAL if USUAL in known else next(iter(known), USUAL)))
    await ctx.emit(TourStarted(page=tour.page, tour=library.as_data(tour), named=bool(page)))
    count = len(tour.steps)
    told = library.as_data(tour) if page else {}
    about = f"{tour.description} " if page else "Here is the tour. "
    return {"action": "start_tour", **told, "step_count": count, "spoken": f"{about}Say next to begin, and stop when you have seen enough."}


@function(effect="read")
async def get_available_tours(ctx: Context) -> dict[str, Any]:
    """List the guided tours that there are.

    Examples:
        which tours are there
        what tours do you have
        list the guided tours
        is there a tour I could take
        for which pages do you have an introduction
        what can you show me around in
        tell me which walkthroughs exist
        do you offer a guided tour
        name the tours of this app
        list every walkthrough you have
        how many tours can I choose from
        is there an introduction to any of the pages
        tell me the tours I could take
    """
    known = await asyncio.to_thread(library.load, ctx.tours_dir)
    names = [tour.name for tour in known.values()]
    return {
        "tours": [library.summary(tour) for tour in known.values()],
        "count": len(known),
        "spoken": f"There are tours of {listed(names, most=8)}." if names else "There are no tours here.",
    }

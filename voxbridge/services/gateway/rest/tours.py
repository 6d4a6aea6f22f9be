"""`/api/vox/tours`: the guided tours of this installation (docs/tours.md), read anew from their folder. Nothing is lost in a crash here."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Path
from pydantic import BaseModel

from voxbridge.services.gateway.rest.errors import TOKEN, refused
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.tours import library

if TYPE_CHECKING:
    from voxbridge.services.gateway.rest.context import Context

_NO_TOUR: dict[int | str, dict[str, Any]] = {404: refused("There is no tour of that page")}
_MENDED: dict[int | str, dict[str, Any]] = {422: refused("A file of the folder is not a tour")}


class TourSummary(BaseModel):
    """A tour without its steps."""

    page: str
    name: str
    description: str
    step_count: int


class Tours(BaseModel):
    """The tours that there are."""

    tours: list[TourSummary]
    count: int


class StepView(BaseModel):
    """A step: the element that it shows (a CSS selector, empty for the whole page), its words, and those of an explanation."""

    title: str
    text: str
    target: str
    spoken: str
    more: str


class TourView(BaseModel):
    """A tour; its page is opened at `path`."""

    page: str
    name: str
    description: str
    path: str
    steps: list[StepView]


def router(gateway: Context) -> APIRouter:
    """Build the routes of a gateway."""
    made = APIRouter(prefix="/api/vox", tags=["installed"], dependencies=[Depends(gateway.access.caller)], responses=TOKEN | _MENDED)
    folder = gateway.resources.config.tours_dir

    @made.get("/tours", response_model=Tours)
    async def list_tours() -> Any:
        """The guided tours, each with the number of its steps."""
        known = await asyncio.to_thread(library.load, folder)
        return {"tours": [library.summary(tour) for tour in known.values()], "count": len(known)}

    @made.get("/tours/{page}", response_model=TourView, responses=_NO_TOUR)
    async def read_tour(page: Annotated[str, Path(min_length=1, max_length=64)]) -> Any:
        """The steps of the tour of one page."""
        known = await asyncio.to_thread(library.load, folder)
        if page not in known:
            raise VoxbridgeError(
                Code.NOT_FOUND, f"There is no tour of {page!r}. GET /api/vox/tours lists those that there are.", field="page"
            )
        return library.as_data(known[page])

    return made

"""Guided tours: what a tour is, and the folder from which an installation has its own.

A tour is a JSON file for a page (docs/tours.md): `name`, `description` and steps, each with the element that it shows and its words. Does
not own how a step is shown (Studio's `tour` folder) or spoken. A crash loses nothing: the files are the truth, read anew each time.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from voxbridge.shared.errors import Code, VoxbridgeError

FILES_LIMIT: Final = 100
"""Tours of a folder; further files are left out, in the order of their names."""

FILE_LIMIT: Final = 64 * 1024
"""Bytes of a tour."""

STEPS_LIMIT: Final = 30

_Page = Annotated[str, Meta(min_length=1, max_length=64, pattern="^[a-z0-9][a-z0-9-]*$")]
_Title = Annotated[str, Meta(min_length=1, max_length=80)]
_Text = Annotated[str, Meta(min_length=1, max_length=400)]


class Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A step of a tour. `target` is a CSS selector, or empty for words about the whole page."""

    title: _Title
    text: _Text
    target: Annotated[str, Meta(max_length=200)] = ""
    spoken: Annotated[str, Meta(max_length=400)] = ""
    """Words that are said, where they are not `text`."""

    more: Annotated[str, Meta(max_length=800)] = ""
    """Words for who asks to have the step explained."""


class Tour(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tour of one page. `path` is the path at which the page is opened."""

    page: _Page
    name: _Title
    description: _Text
    path: Annotated[str, Meta(min_length=1, max_length=256, pattern="^/")]
    steps: Annotated[tuple[Step, ...], Meta(min_length=1, max_length=STEPS_LIMIT)]


_decoder: Final = msgspec.json.Decoder(Tour)
"""Made once, before there are threads: two that describe a type to msgspec at the same time crash the process."""


def load(folder: Path) -> dict[str, Tour]:
    """Return the tours of a folder by their pages; none where there is no such folder. Blocks.

    Raises `INVALID_ARGUMENT` that names the file, and the field or limit, where one is not a tour or two are of one page.
    """
    found: dict[str, Tour] = {}
    for path in sorted(folder.glob("*.json"))[:FILES_LIMIT]:
        tour = _read(path)
        if tour.page in found:
            raise _refused(path, f"there is another tour of the page {tour.page!r}", "page")
        found[tour.page] = tour
    return found


def find(tours: Mapping[str, Tour], wanted: str) -> Tour:
    """Return the tour of a page that is named by its id, its path or in words. Raises `NOT_FOUND` with the pages that have one."""
    words = " ".join(wanted.lower().strip("/ ").replace("_", " ").replace("-", " ").split())
    for tour in tours.values():
        if words in (tour.page.replace("-", " "), tour.path.lower().strip("/"), tour.name.lower()):
            return tour
    if not tours:
        raise VoxbridgeError(Code.NOT_FOUND, "There are no tours here. Put them into the folder of VOXBRIDGE_TOURS_DIR.", field="page")
    pages = ", ".join(sorted(tours))
    raise VoxbridgeError(Code.NOT_FOUND, f"There is no tour of {wanted[:64]!r}. There are tours of: {pages}.", field="page")


def as_data(tour: Tour) -> dict[str, Any]:
    """Return a tour as JSON values."""
    steps = [msgspec.to_builtins(step) for step in tour.steps]
    return {"page": tour.page, "name": tour.name, "description": tour.description, "path": tour.path, "steps": steps}


def summary(tour: Tour) -> dict[str, Any]:
    """Return a tour as JSON values, with the number of its steps in place of them."""
    return {"page": tour.page, "name": tour.name, "description": tour.description, "step_count": len(tour.steps)}


def _read(path: Path) -> Tour:
    try:
        with path.open("rb") as file:
            text = file.read(FILE_LIMIT + 1)
    except OSError as error:
        raise _refused(path, f"it cannot be read: {error.strerror}") from error
    if len(text) > FILE_LIMIT:
        raise _refused(path, f"it is longer than {FILE_LIMIT} bytes", limit=FILE_LIMIT)
    try:
        return _decoder.decode(text)
    except msgspec.MsgspecError as error:
        raise _refused(path, str(error)) from error


def _refused(path: Path, why: str, field: str = "tour", limit: int | None = None) -> VoxbridgeError:
    return VoxbridgeError(Code.INVALID_ARGUMENT, f"{path.name} is not a tour: {why}. Mend the file.", field=field, limit=limit)

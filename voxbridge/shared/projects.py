"""Projects: folders of the workspace with a `project.json`. The folder is the truth, so a project outlives the event log.

Owns the file's form and the name of a folder. All functions block; call them in a thread.
"""

from __future__ import annotations

import re
import unicodedata
from contextlib import suppress
from hashlib import sha256
from typing import Final

import msgspec

from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.workspace import Place, Workspace

FILE: Final = "project.json"
FILE_LIMIT: Final = 16_384
"""Bytes of a `project.json`."""

PROJECTS_LIMIT: Final = 500
"""Projects that are listed."""

NAME_LIMIT: Final = 64
_SLUG: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_RESERVED: Final = frozenset({"con", "prn", "aux", "nul", "node-modules", "pycache", "venv", "site-packages"})


class Project(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The content of a `project.json`. `created` is the time in µs (Unix clock)."""

    name: str
    description: str = ""
    created: int = 0


_decoder: Final = msgspec.json.Decoder(Project)
"""Made once, before there are threads: two that describe a type to msgspec at the same time crash the process."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A project and its folder."""

    project: Project
    folder: Place


def folder_name(name: str) -> str:
    """Return the name of a project's folder, such as `my-shop` for "My Shop". Raises `INVALID_ARGUMENT` for a name without letters."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    slug = re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")
    if not name.isprintable() or len(name) > NAME_LIMIT or not _SLUG.fullmatch(slug) or slug in _RESERVED:
        message = f"A project's name has letters or digits and at most {NAME_LIMIT} characters, such as My Shop. Choose another name."
        raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field="name", limit=NAME_LIMIT)
    return slug


def create(workspace: Workspace, project: Project) -> Found:
    """Make a project in the first root. Of several that make it at once, one succeeds and the others get `CONFLICT`.

    Writing `project.json` is what makes the project, so a crash leaves an empty folder at most, which the next attempt takes.
    """
    slug = folder_name(project.name)
    with suppress(VoxbridgeError):
        workspace.make_folder(slug)
    folder = Place(workspace.roots[0], (slug,), "folder")
    inside = [place.parts[-1] for place in workspace.listing(folder, kind=None, depth=0).places]
    if inside and FILE not in inside:
        message = f"A folder {slug} with other files is there already. Choose another name."
        raise VoxbridgeError(Code.CONFLICT, message, field="name")
    try:
        workspace.write(f"{slug}/{FILE}", _content(project))
    except VoxbridgeError as error:
        if error.code != Code.CONFLICT:
            raise
        raise VoxbridgeError(Code.CONFLICT, f"There is a project {slug} already. Choose another name.", field="name") from error
    return Found(project=project, folder=folder)


def remove(workspace: Workspace, project: Project, folder: Place) -> None:
    """Delete a project in which nothing is but its `project.json`, as it was made. Raises `CONFLICT` for one that has more by now."""
    try:
        inside = [place.parts[-1] for place in workspace.listing(folder, kind=None, depth=0).places]
    except VoxbridgeError as error:
        if error.code == Code.NOT_FOUND:
            return
        raise
    if [name for name in inside if name != FILE]:
        raise VoxbridgeError(Code.CONFLICT, f"The project {project.name} has other files by now, so it stays.", field="project")
    workspace.remove(Place(folder.root, (*folder.parts, FILE), "file"), sha256(_content(project).encode()).hexdigest())
    workspace.remove_folder(folder)


def _content(project: Project) -> str:
    return msgspec.json.format(msgspec.json.encode(project), indent=2).decode() + "\n"


def every(workspace: Workspace) -> list[Found]:
    """Return the projects of all roots by name. A `project.json` that cannot be read counts as one without a description."""
    found = []
    for place in workspace.listing(kind="folder", depth=0).places:
        project = _read(workspace, place)
        if project is not None:
            found.append(Found(project=project, folder=place))
        if len(found) == PROJECTS_LIMIT:
            break
    return sorted(found, key=lambda one: one.project.name.casefold())


def find(workspace: Workspace, said: str) -> Found:
    """Return the project of this name. Raises `NOT_FOUND` that names those there are."""
    slug = folder_name(said)
    projects = every(workspace)
    for one in projects:
        names = [one.folder.parts[-1].casefold()]
        with suppress(VoxbridgeError):
            names.append(folder_name(one.project.name))
        if slug in names:
            return one
    told = ", ".join(one.project.name for one in projects[:5])
    do = f"There are: {told}." if projects else "Create it first."
    raise VoxbridgeError(Code.NOT_FOUND, f"There is no project {slug}. {do}", field="project")


def _read(workspace: Workspace, folder: Place) -> Project | None:
    try:
        content = workspace.read_bytes(Place(folder.root, (*folder.parts, FILE), "file"), limit=FILE_LIMIT)
    except VoxbridgeError as error:
        return None if error.code in (Code.NOT_FOUND, Code.PERMISSION_DENIED) else Project(name=folder.parts[-1])
    try:
        project = _decoder.decode(content)
        folder_name(project.name)
    except (msgspec.MsgspecError, UnicodeDecodeError, VoxbridgeError):
        return Project(name=folder.parts[-1])
    return project

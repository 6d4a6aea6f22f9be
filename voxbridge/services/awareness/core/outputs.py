"""Outputs of the awareness core besides appending events."""

from __future__ import annotations

import msgspec

from voxbridge.shared.step.fold import Append


class Erase(msgspec.Struct, frozen=True, tag="erase"):
    """Overwrite what clients reported of these sources up to a position, and all that this service wrote of it, then answer with `Erased`.
    The shell finds it again in `State.erasing` after a crash."""

    sources: tuple[str, ...]
    up_to: int


Output = Append | Erase

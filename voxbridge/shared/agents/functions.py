"""Functions in the catalogue: their form for the services that offer and call them, kept in `voxbridge.shared.store.store`."""

from __future__ import annotations

from typing import Any, Literal

import msgspec


class Function(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A function as the catalogue shows it. `parameters` is a JSON Schema of an object."""

    name: str
    description: str
    parameters: dict[str, Any]
    kind: Literal["server", "browser", "async"] = "server"
    timeout_s: float = 30.0


def failed_result(code: str, message: str) -> dict[str, Any]:
    """Return the result of a call that failed, as models and clients receive it: `success` is false, `error` says why in words."""
    return {"success": False, "error": message, "code": code}

"""Functions in the catalogue: their form for the services that offer and call them, kept in `voxbridge.shared.store.store`."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

Effect = Literal["read", "write", "destructive"]
"""Effect of a function on the world: none (`read`), one that can be made good (`write`), or one that cannot (`destructive`)."""

Approval = Literal["never", "first", "always"]
"""When a person must approve a call: not at all, once for each account, or each time."""

BROWSER_FUNCTIONS: Final = (
    "navigate_page",
    "get_current_page",
    "get_workspace_state",
    "read_page_content",
    "switch_model",
    "switch_theme",
)
"""Functions of the catalogue that a page answers. A plain VOX client that names none is taken to answer all of them."""


class Function(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A function as the catalogue shows it. `parameters` is a JSON Schema of an object."""

    name: str
    description: str
    parameters: dict[str, Any]
    kind: Literal["server", "browser", "async"] = "server"
    timeout_s: float = 30.0
    effect: Effect = "write"
    approval: Approval = "never"
    category: str = ""
    """Subject by which `list_tools` groups it; empty for a function of a page."""

    listed: bool = True
    """False for a function that models reach through `list_tools` and `run_tool` only, unless an agent's file names it."""

    utterances: tuple[str, ...] = ()
    """Things that people say when they want it, for choosing it among many (`voxbridge.services.models.choice`)."""


def told_result(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result as clients get it: `success` is true unless the function says otherwise."""
    return {"success": True, **result}


def failed_result(code: str, message: str) -> dict[str, Any]:
    """Return the result of a call that failed, as models and clients receive it: `success` is false, `error` says why in words."""
    return {"success": False, "error": message, "code": code}

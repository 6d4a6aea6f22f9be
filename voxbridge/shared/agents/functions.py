"""Functions in the catalogue: their form for the services that offer and call them, kept in `voxbridge.shared.store.store`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

Effect = Literal["read", "write", "destructive"]
"""Effect of a function on the world: none (`read`), one that can be made good (`write`), or one that cannot (`destructive`)."""

Approval = Literal["never", "first", "always"]
"""Need for a person's approval of a call: not at all, once for each account, or each time."""

BROWSER_FUNCTIONS: Final = (
    "navigate_page",
    "get_current_page",
    "get_workspace_state",
    "read_page_content",
    "switch_model",
    "switch_theme",
)
"""Functions of the catalogue that a page answers. A plain VOX client that names none is taken to answer all of them."""

BROWSER_NAMES: Final[Mapping[str, str]] = {"navigate_page": "path", "switch_model": "model"}
"""Arguments of these that name something, of which a page may say what there is."""

PACKS_FIGURE: Final = "packs_checksum"
"""Name of the figure by which it is seen that two executors were given different packs."""

MCP_FIGURE: Final = "mcp_checksum"
"""Name of the figure by which it is seen that two executors were given different MCP servers."""


def without_page(name: str) -> str:
    """Return what is told of a call of a page's function that no page can answer."""
    return f"{name} is answered by the user's page, and no page that can answer it is connected. Call it in a session of such a page."


class Function(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A function as the catalogue shows it. `parameters` is a JSON Schema of an object."""

    name: str
    description: str
    parameters: dict[str, Any]
    kind: Literal["server", "browser", "async", "customer"] = "server"
    """Place where it runs: in an executor, in the page, as a task, or, for a handler that a page brought along, in a sandbox."""

    timeout_s: float = 30.0
    effect: Effect = "write"
    approval: Approval = "never"
    category: str = ""
    """Subject by which `list_tools` groups it; empty for a function of a page."""

    listed: bool = True
    """False for a function that models reach through `list_tools` and `run_tool` only, unless an agent's file names it."""

    utterances: tuple[str, ...] = ()
    """Things that people say when they want it, for choosing it among many (`voxbridge.services.models.choice`)."""

    orders: tuple[str, ...] = ()
    """Templates of requests that are calls of it as they stand (`voxbridge.services.models.choice.orders`)."""

    undo: bool = False
    """True if what a call did can be taken back with `undo_last`."""

    local: dict[str, Any] | None = None
    """JSON Schema of the arguments that the installation's own model may write, where they are not all."""


GROWING: Final = frozenset({"terminal", "source"})
"""Arguments that name things of which there may be more during a session, and that people name in other ways too: "the left one"."""


def is_names(function: Function) -> bool:
    """Check whether a page's declaration only says what an argument of a function of the catalogue may name."""
    properties = function.parameters.get("properties", {})
    argument = BROWSER_NAMES.get(function.name)
    return not function.description and set(properties) == {argument} and bool(properties[argument].get("enum"))


def with_names(function: Function, names: Mapping[str, Sequence[str]]) -> Function:
    """Return a function whose arguments may have these values alone, by argument: the things that exist. Of `GROWING` arguments they are
    examples, since others may come. Arguments that it does not have, and those of which there is nothing, are left as they are."""
    properties: dict[str, Any] = function.parameters.get("properties", {})
    named = {
        name: {**properties[name], "examples" if name in GROWING else "enum": list(values)}
        for name, values in names.items()
        if name in properties and values
    }
    if not named:
        return function
    return msgspec.structs.replace(function, parameters={**function.parameters, "properties": {**properties, **named}})


def told_result(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result as clients get it: `success` is true unless the function says otherwise."""
    return {"success": True, **result}


def failed_result(code: str, message: str) -> dict[str, Any]:
    """Return the result of a call that failed, as models and clients receive it: `success` is false, `error` says why in words."""
    return {"success": False, "error": message, "code": code}

"""Errors of a page's configuration: each names the tool, the field, and the limit or the remedy. Pure."""

from __future__ import annotations

from voxbridge.shared.errors import Code, VoxbridgeError


class Problem(VoxbridgeError):
    """Error of a configuration that is refused. `tool` is the tool it is about, empty for one that is about none; `identifier` is the name
    in a handler's source that it is about, if there is one."""

    def __init__(
        self, code: Code, message: str, *, field: str, tool: str = "", identifier: str = "", limit: float | str | None = None
    ) -> None:
        super().__init__(code, message, field=field, limit=limit, retryable=False)
        self.tool = tool
        self.identifier = identifier


def invalid(tool: str, field: str, why: str, *, identifier: str = "") -> Problem:
    """Return the error of a value that cannot be used."""
    whose = f"The tool {tool!r} cannot be used" if tool else "The configuration cannot be used"
    return Problem(Code.INVALID_ARGUMENT, f"{whose}: {why} (`{field}`).", field=field, tool=tool, identifier=identifier)


def too_large(tool: str, field: str, why: str, limit: float) -> Problem:
    """Return the error of what is beyond a limit."""
    whose = f"The tool {tool!r} cannot be used" if tool else "The configuration cannot be used"
    return Problem(Code.TOO_LARGE, f"{whose}: {why}, and {limit} is the limit (`{field}`).", field=field, tool=tool, limit=limit)

"""The file that names the MCP servers (`VOXBRIDGE_MCP_FILE`): how each is reached, and what its tools may do.

Owns the form of the file and the rules that follow from it for a tool. Does not own the servers. The file is the operator's and is trusted;
what a server says of itself is not, and can only make a rule stricter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import yaml
from msgspec import Meta

from voxbridge.shared.agents.functions import Approval, Effect
from voxbridge.shared.errors import Code, VoxbridgeError

SETTING: Final = "VOXBRIDGE_MCP_FILE"
FILE_LIMIT: Final = 256 * 1024
"""Bytes of the file."""

SERVERS_LIMIT: Final = 32
EXAMPLES_LIMIT: Final = 24
"""Requests that a rule gives as examples."""

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,23}")
_VARIABLE: Final = re.compile(r"\$\{(\w+)\}")
_EFFECTS: Final[tuple[Effect, ...]] = ("read", "write", "destructive")
_APPROVALS: Final[tuple[Approval, ...]] = ("never", "first", "always")
_Seconds = Annotated[float, Meta(gt=0, le=3_600)]
_Text = Annotated[str, Meta(max_length=2_048)]
_Example = Annotated[str, Meta(min_length=1, max_length=200)]


class Hints(msgspec.Struct, frozen=True, kw_only=True):
    """A server's own annotations of a tool; None where it says nothing."""

    read_only: bool | None = None
    destructive: bool | None = None


class Trust(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rules of approval: when a person must approve a call, by its effect."""

    read: Approval = "never"
    write: Approval = "first"
    destructive: Approval = "always"


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Rules of the tools whose name is `match`, or fits it as a pattern with `*` and `?`.

    `examples` are what people say when they want one: the router learns more of them than of a description, which is for other models."""

    match: Annotated[str, Meta(min_length=1, max_length=128)]
    effect: Effect | None = None
    approval: Approval | None = None
    timeout_s: _Seconds | None = None
    listed: bool | None = None
    idempotent: bool | None = None
    task: bool | None = None
    examples: Annotated[tuple[_Example, ...], Meta(max_length=EXAMPLES_LIMIT)] | None = None


class Server(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A server: a program (`command`, `args`, `env`, `cwd`) or an address (`url`, `headers`), and the rules of its tools."""

    command: _Text = ""
    args: tuple[_Text, ...] = ()
    env: dict[str, _Text] = {}
    cwd: _Text = ""
    url: _Text = ""
    headers: dict[str, _Text] = {}
    start_s: _Seconds = 60.0
    timeout_s: _Seconds = 30.0
    effect: Effect = "write"
    trust: Trust = Trust()
    listed: bool = False
    only: tuple[_Text, ...] = ("*",)
    tools: tuple[Rule, ...] = ()
    memory_mb: Annotated[int, Meta(ge=32, le=65_536)] = 1_024
    processes: Annotated[int, Meta(ge=1, le=1_024)] = 64

    @property
    def origin(self) -> str:
        """Command or address of the server, without its secrets: a part of what a person approves."""
        return self.url or " ".join((self.command, *self.args))


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of one tool."""

    effect: Effect
    approval: Approval
    timeout_s: float
    listed: bool
    idempotent: bool
    task: bool
    examples: tuple[str, ...] = ()


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    servers: dict[str, Server] = {}


def read(path: Path) -> Mapping[str, Server]:
    """Return the servers that a file names. Blocks. Raises `INVALID_ARGUMENT` saying what is wrong and where."""
    try:
        with path.open("rb") as file:
            text = file.read(FILE_LIMIT + 1)
    except OSError as error:
        raise _wrong(f"{path} cannot be read: {error.strerror or error}") from error
    if len(text) > FILE_LIMIT:
        raise _wrong(f"{path} has more than {FILE_LIMIT} bytes")
    return parse(text, str(path))


def parse(text: bytes, where: str = "the file") -> Mapping[str, Server]:
    """Return the servers of a file's text. Raises `INVALID_ARGUMENT`."""
    try:
        # The pure loader: the compiled one dies with the process on text that is nested deeply.
        servers = msgspec.convert(yaml.load(text, Loader=yaml.SafeLoader), type=_File | None)
    except (msgspec.MsgspecError, yaml.YAMLError, RecursionError) as error:
        raise _wrong(f"{where}: {error}") from error
    found = servers.servers if servers is not None else {}
    if len(found) > SERVERS_LIMIT:
        raise _wrong(f"{where} names more than {SERVERS_LIMIT} servers")
    for name, server in found.items():
        if not _NAME.fullmatch(name):
            raise _wrong(f"{where}: the name of a server is 1 to 24 of a-z, 0-9 and `-`, not {name[:64]!r}")
        if bool(server.command) == bool(server.url):
            raise _wrong(f"{where}: {name} has either a `command` or a `url`")
        if server.url and not server.url.startswith(("http://", "https://")):
            raise _wrong(f"{where}: the `url` of {name} begins with http:// or https://")
        for key in (*server.env, *server.headers):
            if not key or any(mark in key for mark in "=\0\r\n"):
                raise _wrong(f"{where}: {name} has a variable or header of the name {key[:64]!r}")
    return found


def with_variables(name: str, server: Server, environment: Mapping[str, str]) -> Server:
    """Return the server with the values of the variables that its `env` and `headers` name as `${NAME}`.

    Raises `INVALID_ARGUMENT` for a variable that is not set, and for a setting of Voxbridge, which no server is given.
    """

    def value(found: re.Match[str]) -> str:
        variable = found.group(1)
        if variable.startswith("VOXBRIDGE_"):
            raise _wrong(f"{name} names ${{{variable}}}, and settings of Voxbridge are given to no server")
        if variable not in environment:
            raise _wrong(f"{name} names ${{{variable}}}, which the tool executor does not have; set it, and name it in VOXBRIDGE_TOOL_KEYS")
        return environment[variable]

    def expanded(values: Mapping[str, str]) -> dict[str, str]:
        return {key: _VARIABLE.sub(value, text) for key, text in values.items()}

    return msgspec.structs.replace(server, env=expanded(server.env), headers=expanded(server.headers))


def wants(server: Server, tool: str) -> bool:
    """Tell whether the configuration takes this tool of the server."""
    return any(fnmatchcase(tool, pattern) for pattern in server.only)


def policy(server: Server, tool: str, hints: Hints) -> Policy:
    """Return the rules of a tool. Of several that fit the later one counts; hints make them stricter, but for a rule that names the tool
    itself: whoever wrote it has looked at this tool."""
    rules: dict[str, Any] = {}
    named: set[str] = set()
    for rule in server.tools:
        if fnmatchcase(tool, rule.match):
            given = {key: value for key, value in msgspec.structs.asdict(rule).items() if value is not None and key != "match"}
            rules |= given
            if rule.match == tool:
                named |= given.keys()
    effect: Effect = rules.get("effect", server.effect)
    hinted = _hinted(hints)
    stricter = _EFFECTS.index(hinted) > _EFFECTS.index(effect) and "effect" not in named
    if stricter:
        effect = hinted
    asked: Approval = getattr(server.trust, effect)
    approval: Approval = rules.get("approval", asked)
    if stricter and "approval" not in named:
        approval = max(approval, asked, key=_APPROVALS.index)
    return Policy(
        effect=effect,
        approval=approval,
        timeout_s=rules.get("timeout_s", server.timeout_s),
        listed=rules.get("listed", server.listed),
        idempotent=rules.get("idempotent", effect == "read"),
        task=rules.get("task", False),
        examples=rules.get("examples", ()),
    )


def _hinted(hints: Hints) -> Effect:
    if hints.destructive and not hints.read_only:
        return "destructive"
    return "write" if hints.read_only is False else "read"


def _wrong(what: str) -> VoxbridgeError:
    return VoxbridgeError(Code.INVALID_ARGUMENT, f"The MCP servers cannot be read: {what}.", field=SETTING)

"""Functions and their catalogue: a typed callable with a docstring becomes a name, a description and a JSON Schema.

Owns the `@function` declaration, the derivation of schemas, the check of arguments, and the loading of packs. Does not own the running. A
pack is a module; loading one keeps no global state, so two registries can differ.
"""

from __future__ import annotations

import importlib
import inspect
import math
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib.metadata import entry_points
from typing import Annotated, Any, Final, TypedDict, TypeVar, Unpack, cast, get_type_hints

import msgspec
from docstring_parser import parse

from voxbridge.services.tools.context import Context
from voxbridge.services.tools.core.inputs import Alarm, Mode
from voxbridge.shared.agents.functions import Approval, Effect, Function, without_page
from voxbridge.shared.errors import Code, VoxbridgeError

BUILT_IN: Final = (
    "voxbridge.services.tools.packs.everyday.time",
    "voxbridge.services.tools.packs.everyday.dates",
    "voxbridge.services.tools.packs.everyday.calculator",
    "voxbridge.services.tools.packs.everyday.timer",
    "voxbridge.services.tools.packs.everyday.notes",
    "voxbridge.services.tools.packs.catalogue.functions",
    "voxbridge.services.tools.packs.browser.functions",
    "voxbridge.services.tools.packs.macros.functions",
    "voxbridge.services.tools.packs.workflows.functions",
    "voxbridge.services.tools.packs.code.functions",
    "voxbridge.services.tools.packs.codegen.functions",
    "voxbridge.services.tools.packs.device.functions",
    "voxbridge.services.tools.packs.playbooks.functions",
    "voxbridge.services.tools.packs.knowledge.functions",
    "voxbridge.services.tools.packs.agents.functions",
    "voxbridge.services.tools.packs.projects.functions",
    "voxbridge.services.tools.packs.tours.functions",
    "voxbridge.services.tools.packs.terminals.functions",
    "voxbridge.services.tools.packs.terminals.modes",
    "voxbridge.services.tools.packs.utilities.functions.documents",
    "voxbridge.services.tools.packs.utilities.functions.encoded",
    "voxbridge.services.tools.packs.utilities.functions.files",
    "voxbridge.services.tools.packs.utilities.functions.measures",
    "voxbridge.services.tools.packs.utilities.functions.network",
    "voxbridge.services.tools.packs.utilities.functions.texts",
)
BUILT_IN_NAME: Final = "built-in"
ENTRY_POINTS: Final = "voxbridge.packs"
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
_AT: Final = re.compile(r" - at `\$\.?(?P<path>[^`]*)`$")
_QUOTED: Final = re.compile(r"field `(?P<name>[^`]*)`")
_F = TypeVar("_F", bound=Callable[..., Any])
Undo = Callable[[Mapping[str, Any], Context], Awaitable[str]]
"""Takes back what a call did, by what that left for it (`Reversible.undo`); returns what to tell the user."""

MEMORY_MB: Final = 256
"""Default memory of an isolated function, in MiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolation:
    """The limits of an isolated function: MiB of memory beyond what the process holds at rest, and whole seconds of processor time; 0
    stands for the function's timeout."""

    memory_mb: int = MEMORY_MB
    cpu_s: int = 0


@dataclass(frozen=True, slots=True)
class Local:
    """Marks an argument that may be left out, in its `Annotated`: the installation's own model, which is small, may write a value of this
    type for it, or none at all (`Local(None)`). A model that is not able to write an argument makes one up. All other callers are told
    the argument as it is."""

    type: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """The arguments of `@function`."""

    task: bool
    timeout_s: float | None
    idempotent: bool
    isolation: Isolation | None = None
    effect: Effect = "write"
    approval: Approval | None = None
    listed: bool = True
    worker: bool = False
    browser: bool = False
    outlives: bool = False
    undo: Undo | None = None
    orders: tuple[str, ...] = ()
    begins: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A function that can be called."""

    name: str
    description: str
    parameters: dict[str, Any]
    mode: Mode
    timeout_s: float
    idempotent: bool
    arguments: type[msgspec.Struct]
    context_parameter: str
    run: Callable[..., Any]
    isolation: Isolation | None = None
    effect: Effect = "write"
    approval: Approval = "never"
    category: str = ""
    listed: bool = True
    utterances: tuple[str, ...] = ()
    orders: tuple[str, ...] = ()
    begins: str = ""
    local: dict[str, Any] | None = None
    browser: bool = False
    outlives: bool = False
    undo: Undo | None = None

    @property
    def definition(self) -> str:
        """Digest of what a person approves: name, description, arguments and effect."""
        told = msgspec.json.encode([self.name, self.description, self.parameters, self.effect], order="deterministic")
        return sha256(told).hexdigest()[:32]

    def check(self, arguments: dict[str, Any]) -> msgspec.Struct:
        """Return the arguments, typed; numbers in strings are converted. Raises `INVALID_ARGUMENT` naming the field."""
        try:
            return msgspec.convert(arguments, self.arguments, strict=False)
        except msgspec.ValidationError as error:
            text = str(error)
            found = _AT.search(text) or _QUOTED.search(text)
            field = next(iter(found.groups()), "") if found else ""
            what = _AT.sub("", text)
            known = ", ".join(self.arguments.__struct_fields__) or "none"
            message = f"{self.name}: {what}" + (f" for `{field}`" if field and f"`{field}`" not in what else "")
            raise VoxbridgeError(Code.INVALID_ARGUMENT, f"{message}. Its arguments are: {known}.", field=field or None) from error

    def card(self) -> Function:
        """Return the function's entry in the catalogue."""
        return Function(
            name=self.name,
            description=self.description,
            parameters=self.parameters,
            kind="browser" if self.browser else "server" if self.mode == "call" else "async",
            timeout_s=self.timeout_s,
            effect=self.effect,
            approval=self.approval,
            category=self.category,
            listed=self.listed,
            utterances=self.utterances,
            orders=self.orders,
            undo=self.undo is not None,
            local=self.local,
        )


class More(TypedDict, total=False):
    """The rarer arguments of `@function`: is it `listed` for models, does its task outlive the session, and how is it taken back."""

    listed: bool
    outlives: bool
    undo: Undo
    orders: tuple[str, ...]
    begins: str


def function(
    *,
    kind: str = "server",
    timeout_s: float | None = None,
    idempotent: bool | None = None,
    isolated: bool | Isolation = False,
    effect: Effect = "write",
    approval: Approval | None = None,
    **more: Unpack[More],
) -> Callable[[_F], _F]:
    """Declare a function of a pack.

    `kind="async"` answers the call at once: a function that returns an `Alarm` speaks when it is due, and survives a crash; any other
    runs on as a task. `kind="browser"` declares a function that the page of a session answers; it has no body, and an executor answers a
    call of it with `UNAVAILABLE`. `idempotent` says that running it twice does no harm, so it is repeated after a crash; the default is
    True for a function that only reads. `outlives` says that the end of the session does not end the task: how it ended is told in the
    account's next session, if it was not told before. `isolated` runs a plain function in a process that is killed at its timeout, on
    cancellation, and beyond its limits of memory and processor time. `undo` takes back what a call did that returned a `Reversible`, or
    that set an alarm: it may be begun again after a crash, and raises where that is not possible any more.

    `effect` says what a call does to the world; a function that declares none is taken to write. `approval` says when a person must approve
    a call: by default each time for a destructive function, else never. One that is not `listed` is offered only to agents whose file
    names it; the others reach it through `run_tool`.

    `begins` is the sentence with which a task answers its call. `orders` are templates of requests that are calls of it as they stand, for
    which the installation's own model is not asked (`voxbridge.services.models.choice.orders`).

    The docstring says what the function does, each argument's meaning (`Args`), and things that people say when they want it (`Examples`, a
    line each), by which a small model chooses it among many.
    """
    if kind not in ("server", "async", "browser"):
        raise ValueError(f"kind is 'server', 'async' or 'browser', not {kind!r}")
    outlives, undo = more.get("outlives", False), more.get("undo")
    if outlives and kind != "async":
        raise ValueError("only an async function outlives its session")
    if undo is not None and effect == "read":
        raise ValueError("a function that only reads has nothing to take back")
    isolation = isolated if isinstance(isolated, Isolation) else Isolation() if isolated else None
    if isolation is not None and (isolation.memory_mb < 1 or isolation.cpu_s < 0):
        raise ValueError("an isolated function may have 1 MiB of memory or more, and 0 s of processor time or more")
    declaration = Declaration(
        task=kind == "async",
        timeout_s=timeout_s,
        idempotent=effect == "read" if idempotent is None else idempotent,
        isolation=isolation,
        effect=effect,
        approval=approval,
        listed=more.get("listed", True),
        browser=kind == "browser",
        outlives=outlives,
        undo=undo,
        orders=more.get("orders", ()),
        begins=more.get("begins", ""),
    )

    def declare(function: _F) -> _F:
        function.__voxbridge__ = declaration  # type: ignore[attr-defined]
        return function

    return declare


def worker(*, timeout_s: float, memory_mb: int = MEMORY_MB) -> Callable[[_F], _F]:
    """Declare a plain function that other functions run in a child process, by `Context.in_child`; models are not offered it.

    For work that reads foreign text or may not end: the process is killed at the timeout and beyond its limits.
    """

    def declare(function: _F) -> _F:
        isolation = Isolation(memory_mb=memory_mb)
        declared = Declaration(task=False, timeout_s=timeout_s, idempotent=True, isolation=isolation, effect="read", worker=True)
        function.__voxbridge__ = declared  # type: ignore[attr-defined]
        return function

    return declare


def named(setting: str) -> list[str]:
    """Return the modules of the packs that a setting names: modules, names under which installed packages offer a pack (entry points of
    the group `voxbridge.packs`), and `built-in` for those of Voxbridge. An empty setting stands for `built-in`."""
    offered = {entry.name: entry.module for entry in entry_points(group=ENTRY_POINTS)}
    found: list[str] = []
    for name in (part.strip() for part in (setting or BUILT_IN_NAME).split(",")):
        found += BUILT_IN if name == BUILT_IN_NAME else [offered.get(name, name)] if name else []
    return list(dict.fromkeys(found))


def load(packs: Iterable[str], *, timeout_s: float) -> Mapping[str, Tool]:
    """Return the functions of the packs by name. Raises `INVALID_ARGUMENT` naming a pack that cannot be used."""
    tools: dict[str, Tool] = {}
    for pack in packs:
        for tool in of_pack(pack, timeout_s=timeout_s):
            if tool.name in tools:
                raise unusable(pack, f"{tool.name} is declared by another pack too")
            tools[tool.name] = tool
    return tools


def of_pack(pack: str, *, timeout_s: float) -> list[Tool]:
    """Import a pack, and return its functions. Raises `INVALID_ARGUMENT` naming a pack that cannot be used."""
    try:
        module = importlib.import_module(pack)
    except (Exception, SystemExit) as error:
        raise unusable(pack, f"it cannot be imported: {type(error).__name__}: {error}") from error
    found = [
        value
        for value in vars(module).values()
        if isinstance(declaration := getattr(value, "__voxbridge__", None), Declaration)
        and not declaration.worker
        and value.__module__ == module.__name__
    ]
    if not found:
        raise unusable(pack, "it declares no function with @function")
    try:
        return [describe(one, timeout_s=timeout_s) for one in found]
    except VoxbridgeError:
        raise
    except Exception as error:
        raise unusable(pack, f"a function of it cannot be described: {type(error).__name__}: {error}") from error


def describe(function: Callable[..., Any], *, timeout_s: float) -> Tool:
    """Derive the catalogue entry of a declared callable. Raises `INVALID_ARGUMENT` when the declaration is incomplete."""
    name = function.__name__
    declaration: Declaration = vars(function)["__voxbridge__"]
    doc = parse(function.__doc__ or "")
    if not _NAME.fullmatch(name) or not doc.short_description:
        raise unusable(name, "a function has a lower-case name of at most 64 characters and a docstring")
    told = {parameter.arg_name: " ".join((parameter.description or "").split()) for parameter in doc.params}
    hints = get_type_hints(function, include_extras=True)
    fields: list[Any] = []
    local: list[Any] = []
    context_parameter = ""
    for parameter in inspect.signature(function).parameters.values():
        hint = hints.get(parameter.name)
        if hint is Context:
            context_parameter = parameter.name
            continue
        if hint is None or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise unusable(name, f"the parameter {parameter.name} has no type")
        field = _field(parameter, hint, told.get(parameter.name, ""))
        fields.append(field)
        marked = next((one for one in getattr(hint, "__metadata__", ()) if isinstance(one, Local)), None)
        if marked is not None and parameter.default is parameter.empty:
            raise unusable(name, f"the parameter {parameter.name} cannot be left out, so the local model is told of it as it is")
        if marked is None or marked.type is not None:
            local.append(field if marked is None else _field(parameter, marked.type, told.get(parameter.name, "")))
    arguments = msgspec.defstruct(name, fields, forbid_unknown_fields=True, kw_only=True, frozen=True)
    description = " ".join(part.strip() for part in (doc.short_description, doc.long_description) if part)
    mode: Mode = "call" if not declaration.task else "alarm" if hints.get("return") is Alarm else "task"
    timeout_s = declaration.timeout_s or timeout_s
    isolation = declaration.isolation
    if declaration.browser and (isolation is not None or context_parameter):
        raise unusable(name, "a function of the page has no Context and is not isolated")
    if isolation is not None:
        if context_parameter or mode == "alarm" or inspect.iscoroutinefunction(function):
            raise unusable(name, "an isolated function is a plain `def` without a Context that returns no Alarm")
        isolation = replace(isolation, cpu_s=isolation.cpu_s or math.ceil(timeout_s))
    return Tool(
        name=name,
        description=" ".join(description.split()),
        parameters=_schema(arguments),
        mode=mode,
        timeout_s=timeout_s,
        idempotent=declaration.idempotent,
        arguments=arguments,
        context_parameter=context_parameter,
        run=_without_page(name) if declaration.browser else function,
        isolation=isolation,
        effect=declaration.effect,
        approval=declaration.approval or ("always" if declaration.effect == "destructive" else "never"),
        category=_folder(function.__module__),
        listed=declaration.listed,
        local=None if local == fields else _schema(msgspec.defstruct(name, local, forbid_unknown_fields=True, kw_only=True)),
        utterances=tuple(line.strip() for example in doc.examples for line in (example.description or "").splitlines() if line.strip()),
        browser=declaration.browser,
        outlives=declaration.outlives,
        undo=declaration.undo,
        orders=declaration.orders,
        begins=declaration.begins,
    )


def _field(parameter: inspect.Parameter, hint: Any, description: str) -> tuple[Any, ...]:
    """Return an argument as a field of a struct."""
    typed = Annotated[hint, msgspec.Meta(description=description)] if description else hint
    return (parameter.name, typed) if parameter.default is parameter.empty else (parameter.name, typed, parameter.default)


def _without_page(name: str) -> Callable[..., Any]:
    """Return what an executor runs for a function of the page: a call that comes to it has no page to answer it."""

    async def refuse(**_arguments: Any) -> None:
        raise VoxbridgeError(Code.UNAVAILABLE, without_page(name))

    return refuse


def _folder(module: str) -> str:
    """Return the category of a module's functions: the folder of a built-in pack, else the name of the module or of its package."""
    parts = module.split(".")
    if "packs" in parts[:-1]:
        return parts[parts.index("packs") + 1]
    return (parts[-2] if parts[-1] == "functions" and len(parts) > 1 else parts[-1]).removeprefix("voxbridge_")


def _schema(arguments: type[msgspec.Struct]) -> dict[str, Any]:
    (reference,), components = msgspec.json.schema_components([arguments], ref_template="#/$defs/{name}")
    schema = cast("dict[str, Any]", components.pop(reference["$ref"].rpartition("/")[2]))
    schema.pop("title", None)
    if components:
        schema["$defs"] = components
    return schema


def unusable(pack: str, why: str) -> VoxbridgeError:
    """Return the error of a pack that cannot be used."""
    return VoxbridgeError(Code.INVALID_ARGUMENT, f"The function pack {pack} cannot be used: {why}.", field="VOXBRIDGE_TOOL_PACKS")

"""Looking up the function of a call: whether it can run, and by which rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from hashlib import sha256
from typing import Any, Final

import msgspec

from voxbridge.services.tools.catalogue import Catalogue
from voxbridge.services.tools.core.inputs import Accepted, Rejected, Target
from voxbridge.services.tools.core.outputs import Resolve, StartEffect
from voxbridge.services.tools.core.results import as_failure
from voxbridge.services.tools.registry import Tool
from voxbridge.services.tools.runs.checks import bundled, check_rights
from voxbridge.services.tools.runs.document import Document
from voxbridge.services.tools.runs.inputs import Kind, Start
from voxbridge.services.tools.runs.values import given
from voxbridge.services.tools.session.library import called
from voxbridge.services.tools.session.nulls import without_nulls
from voxbridge.services.tools.session.standing import Standing
from voxbridge.shared.agents.functions import Approval
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events.voice import Failure

RUN_TOOL: Final = "run_tool"
"""The function that runs another one, by that one's rules."""


RUNS: Final[Mapping[str, Kind]] = {"run_macro": "macro", "run_workflow": "workflow"}
"""Functions whose calls are runs of documents."""

DELETES: Final = "delete_macro"
"""Function whose macro must be there before a person is asked about it."""

_STRICTNESS: Final[tuple[Approval, ...]] = ("never", "first", "always")
"""Needs for approval, the strictest last: a run needs the strictest of what it runs."""

Documents = Mapping[Kind, Mapping[str, Document]]


def look_up(
    tools: Mapping[str, Tool], wanted: Resolve, standing: Standing, documents: Documents, *, full: bool = False
) -> Accepted | Rejected:
    """Decide on a call of an account with these standing approvals and documents; `full`: this executor has all the calls it can hold."""
    if full:
        error = Failure(code=Code.OVERLOADED, message="Too many functions are open; try again in a moment.", retryable=True)
        return Rejected(call_id=wanted.call_id, error=error)
    try:
        _check_allowed(wanted.name, wanted.allowed)
        target = _target(tools, Target(wanted.name, wanted.arguments))
        _check_allowed(target.name, wanted.allowed)
        tool = tools[target.name]
        target = Target(target.name, without_nulls(tool.parameters, target.arguments))
        arguments = tool.check(target.arguments)
        if target.name == DELETES:
            named_document("macro", getattr(arguments, "name", ""), documents.get("macro", {}))
        stepwise = _goes_stepwise(arguments)
        if target.name in RUNS and not getattr(arguments, "dry_run", False):
            run = _run(wanted, target, arguments, documents, standing)
            if wanted.unattended and (run.approval != "never" or stepwise):
                return Rejected(call_id=wanted.call_id, error=_unattended(tool.name))
            return msgspec.structs.replace(run, outlives=tool.outlives)
    except VoxbridgeError as wrong:
        error = as_failure(wrong)
        return Rejected(call_id=wanted.call_id, error=error)
    approval = tool.approval
    if approval != "never" and standing.approves(tool.name, target.arguments, tool.definition):
        approval = "never"
    if approval != "never" and wanted.unattended:
        return Rejected(call_id=wanted.call_id, error=_unattended(tool.name))
    return Accepted(
        call_id=wanted.call_id,
        mode=tool.mode,
        timeout_ms=round(tool.timeout_s * 1_000),
        idempotent=tool.idempotent,
        effect=tool.effect,
        approval=approval,
        outlives=tool.outlives,
        begins=tool.begins,
        by_turn=True,
        target=target if target != Target(wanted.name, wanted.arguments) else None,
        definition=tool.definition if approval != "never" else "",
    )


def _check_allowed(name: str, allowed: Sequence[str] | None) -> None:
    """Check that whoever calls may call this function: a model that is offered some may name any. Raises `PERMISSION_DENIED`."""
    if allowed is not None and name not in allowed:
        message = f"{name[:64]!r} is not among the functions that may be called here, so it was not run."
        raise VoxbridgeError(Code.PERMISSION_DENIED, message)


def _unattended(name: str) -> Failure:
    message = f"{name} needs a person's approval, and an agent in the background has nobody to ask. Ask the user to have it done."
    return Failure(code=Code.PERMISSION_DENIED, message=message)


def runnable(tools: Mapping[str, Tool], effect: StartEffect) -> Tool | Failure:
    """Return the function of an effect; an error if this executor does not have it, or if it has changed since a person approved it."""
    tool = tools.get(effect.name)
    if tool is None:  # begun by an executor that had this function
        return unknown(effect.name)
    if effect.definition and effect.definition != tool.definition:
        message = f"{effect.name} has changed since it was approved, and was not run; ask for it again."
        return Failure(code=Code.CONFLICT, message=message)
    return tool


def _goes_stepwise(arguments: Any) -> bool:
    """Tell whether a run is to go step by step. Raises `INVALID_ARGUMENT` where it is only to be told."""
    stepwise = bool(getattr(arguments, "step_by_step", False))
    if stepwise and arguments.dry_run:
        message = "A macro is run step by step, or only told by a dry run: choose one."
        raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field="step_by_step")
    return stepwise


def _run(wanted: Resolve, target: Target, arguments: Any, documents: Documents, standing: Standing) -> Accepted:
    """Accept a call that runs a document. Raises `NOT_FOUND`, `PERMISSION_DENIED`, and what its inputs raise."""
    kind = RUNS[target.name]
    known = documents.get(kind, {})
    document = named_document(kind, arguments.name, known)
    given(document, arguments.inputs)
    macros = bundled(document, {one.name: one for one in known.values()})
    if kind == "macro":  # a workflow is the installation's own
        check_rights((document, *macros.values()), wanted.allowed)
    confirm = max((document.confirm, *(one.confirm for one in macros.values())), key=_STRICTNESS.index)
    definition = _digest(document, macros)
    approved = confirm == "first" and standing.approves(target.name, target.arguments, definition)
    start = Start(
        run_id=wanted.call_id,
        document=msgspec.structs.replace(document, confirm="never"),  # the call is approved as it and what it runs want it
        kind=kind,
        macros=macros,
        inputs=arguments.inputs,
        stepwise=getattr(arguments, "step_by_step", False),
    )
    return Accepted(
        call_id=wanted.call_id,
        mode="run",
        timeout_ms=0,
        idempotent=False,
        effect="write",
        approval="never" if approved else confirm,
        target=target if target != Target(wanted.name, wanted.arguments) else None,
        definition=definition,
        start=start,
    )


def _digest(document: Document, macros: Mapping[str, Document]) -> str:
    """Return the digest of all that a run does: its document, and the macros that it runs, as they are now."""
    parts = (document, *(macros[name] for name in sorted(macros)))
    return sha256(b"\0".join(msgspec.json.encode(one, order="deterministic") for one in parts)).hexdigest()[:32]


def named_document(kind: Kind, name: str, known: Mapping[str, Document]) -> Document:
    """Return the document of this name. Raises `NOT_FOUND`."""
    document = called(name, known)
    if document is None:
        near = get_close_matches(name.casefold(), [one.name for one in known.values()], n=2)
        hint = f" Did you mean {' or '.join(near)}?" if near else f" list_{kind}s says which there are."
        raise VoxbridgeError(Code.NOT_FOUND, f"There is no {kind} {name[:64]!r}.{hint}", field="name")
    return document


def kinds_of(name: str, arguments: Mapping[str, Any]) -> list[Kind]:
    """Return the kinds of documents that the decision about a call depends on: those that it may run, or delete."""
    said = arguments.get("tool_id") if name == RUN_TOOL else name
    wanted = "_".join(said.casefold().split()) if isinstance(said, str) else ""
    return ["macro"] if wanted == DELETES else [RUNS[wanted]] if wanted in RUNS else []


def _target(tools: Mapping[str, Tool], wanted: Target) -> Target:
    """Return what runs: the function itself, or the one that `run_tool` names. Raises `NOT_FOUND` and `INVALID_ARGUMENT`."""
    tool = tools.get(wanted.name)
    if tool is None:
        raise _lost(tools, wanted.name)
    if wanted.name != RUN_TOOL:
        return wanted
    arguments: Any = tool.check(wanted.arguments)
    inner = Target(_named(tools, arguments.tool_id), arguments.params)
    if inner.name == RUN_TOOL:
        raise VoxbridgeError(Code.INVALID_ARGUMENT, f"{RUN_TOOL} runs another tool, not itself.", field="tool_id")
    return inner


def needs_approval(tools: Mapping[str, Tool], name: str, arguments: Mapping[str, Any]) -> bool:
    """Tell whether standing approvals matter for a call: whether the function, or the tool that it runs, asks for approval."""
    said = arguments.get("tool_id") if name == RUN_TOOL else name
    found = [tool for known, tool in tools.items() if isinstance(said, str) and known.casefold() == "_".join(said.casefold().split())]
    return any(tool.approval != "never" for tool in found)


def _named(tools: Mapping[str, Tool], said: str) -> str:
    name = "_".join(said.strip().casefold().split())
    found = next((known for known in tools if known.casefold() == name), None)
    if found is None and isinstance(tools, Catalogue) and tools.why_not(name):
        raise _lost(tools, name)
    if found is None:
        near = get_close_matches(name, list(tools), n=3)
        hint = f" Did you mean {' or '.join(near)}?" if near else " list_tools says which there are."
        raise VoxbridgeError(Code.NOT_FOUND, f"There is no tool {said[:64]!r}.{hint}", field="tool_id")
    return found


def _lost(tools: Mapping[str, Tool], name: str) -> VoxbridgeError:
    """Return the error for a function that is not there, which says why where that is known."""
    if isinstance(tools, Catalogue) and (why := tools.why_not(name)):
        return VoxbridgeError(Code.UNAVAILABLE, why)
    return VoxbridgeError(Code.NOT_FOUND, unknown(name).message)


def unknown(name: str) -> Failure:
    """Return the error for a function that this executor does not have."""
    return Failure(code=Code.NOT_FOUND, message=f"There is no function {name[:64]!r}.")

"""Make, list, run and delete macros: the account's own lists of steps (docs/macros.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from voxbridge.services.tools.context import Context
from voxbridge.services.tools.registry import function
from voxbridge.services.tools.runs import checks, dry_run, spoken, triggers
from voxbridge.services.tools.runs.document import STEPS_LIMIT, Document, as_data, macro_id, parse
from voxbridge.services.tools.runs.draft import draft
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events.tools import MacroDeleted, MacroSaved

MACROS_LIMIT: Final = 200
"""Macros of one account."""

SHOWN_LIMIT: Final = 40
"""Macros in one answer of `list_macros`, and steps in that of a dry run."""

Name = Annotated[str, Meta(min_length=1, max_length=64, examples=["good night"])]


@function(idempotent=True)
async def create_macro(
    ctx: Context,
    name: Name,
    steps: Annotated[list[Any], Meta(max_length=STEPS_LIMIT, examples=[["current_time"]])] = [],  # noqa: B006 - never changed
    trigger: Annotated[str, Meta(max_length=120)] = "",
    policy: str | dict[str, Any] = "",
    inputs: dict[str, Any] = {},  # noqa: B006 - never changed
    confirmed: bool = False,
) -> dict[str, Any]:
    """Save a macro: steps that are run one after the other when the user says its trigger.

    Args:
        name: Name of the macro.
        steps: Functions to call, by name or as objects; none: what was just done.
        trigger: Words that start it; a part in braces is filled in.
        policy: What a failed step leads to: stop, continue, retry or ask.
        inputs: Values that it is given, by name, with their types.
        confirmed: True once the user heard what was just done, and wants it saved.

    Examples:
        save what I just did as a macro
        make a macro called good night
        save these steps as my morning routine
        create a shortcut that checks the time and the weather
        when I say lunch set a timer and take a note
        record a macro for deploying
        build a routine out of these steps
        put that together as a macro
    """
    drafted = [] if steps else as_data(draft(name, await ctx.done()))["steps"]
    document = parse({"name": name, "steps": steps or drafted, "trigger": trigger, "policy": policy, "inputs": inputs})
    known = await ctx.documents("macro")
    key = macro_id(document.name)
    if key in known and known[key] != document:
        message = f"There is a macro {known[key].name!r} already. Delete it first, or choose another name."
        raise VoxbridgeError(Code.CONFLICT, message, field="name")
    if key not in known and len(known) >= MACROS_LIMIT:
        raise VoxbridgeError(Code.OVERLOADED, f"There are {MACROS_LIMIT} macros already; delete one first.", limit=MACROS_LIMIT)
    others = {one.name: one for other, one in known.items() if other != key}
    checks.check(document, {card.name: card for card in ctx.catalogue()}, others)
    triggers.check(document, others.values())
    if drafted and not confirmed:
        said = f"{document.name} would {spoken.steps(document)}. Shall I save it?"
        return {"status": "draft", "saved": False, "steps": drafted, "spoken": said}
    if key not in known:
        await ctx.keep(MacroSaved(macro_id=key, account=ctx.account, document=as_data(document)))
    said = f"I saved {document.name}: {spoken.steps(document)}. {spoken.trigger(document)}"
    return {"macro_id": key, "name": document.name, "steps": len(document.steps), "triggers": document.triggers, "spoken": said}


@function(effect="read")
async def list_macros(ctx: Context) -> dict[str, Any]:
    """List the user's macros.

    Examples:
        which macros do I have
        list my macros
        what routines have I saved
        show me my shortcuts
        what custom commands are there
        are there macros already
    """
    macros = await ctx.documents("macro")
    shown = [_view(key, one) for key, one in list(macros.items())[:SHOWN_LIMIT]]
    names = [one.name for one in macros.values()]
    said = "You have no macros." if not names else f"You have {len(names)}: {', '.join(names[:6])}{' and more' if names[6:] else ''}."
    return {"count": len(macros), "macros": shown, "spoken": said}


@function(kind="async", timeout_s=60)
async def run_macro(
    ctx: Context,
    name: Name,
    inputs: dict[str, Any] = {},  # noqa: B006 - never changed
    dry_run: bool = False,
) -> dict[str, Any]:
    """Run one of the user's macros.

    Args:
        name: Name of the macro.
        inputs: Values that it needs, by name.
        dry_run: Only say what it would do.

    Examples:
        run my morning routine
        start the macro good night
        do the deploy macro
        execute my lunch shortcut
        play the macro called cleanup
        go through my evening steps
        what would the deploy macro do
    """
    # A run is begun by the executor and steps through its own calls (`core/runs.py`); only a dry run reaches this.
    if not dry_run:
        raise VoxbridgeError(Code.INTERNAL, f"{name} was not looked up.", field="name")
    return _planned(_named(name, await ctx.documents("macro")), await ctx.documents("macro"), inputs)


@function(effect="destructive", idempotent=True)
async def delete_macro(ctx: Context, name: Name) -> dict[str, Any]:
    """Delete one of the user's macros.

    Args:
        name: Name of the macro.

    Examples:
        delete the macro good night
        remove my morning routine
        forget the deploy shortcut
        get rid of that macro
        throw away the lunch macro
        I don't need the cleanup macro any more
    """
    document = _named(name, await ctx.documents("macro"))
    key = macro_id(document.name)
    await ctx.keep(MacroDeleted(macro_id=key, account=ctx.account, name=document.name))
    return {"macro_id": key, "deleted": True, "spoken": f"I deleted {document.name}."}


def _named(name: str, macros: Mapping[str, Document]) -> Document:
    found = macros.get(macro_id(name))
    if found is None:
        known = ", ".join(one.name for one in list(macros.values())[:6]) or "none yet"
        raise VoxbridgeError(Code.NOT_FOUND, f"There is no macro {name!r}. There is: {known}.", field="name")
    return found


def _planned(document: Document, macros: Mapping[str, Document], inputs: Mapping[str, Any]) -> dict[str, Any]:
    planned = dry_run.plan(document, {one.name: one for one in macros.values()}, inputs)
    steps = [msgspec.to_builtins(one) for one in planned[:SHOWN_LIMIT]]
    return {"dry_run": True, "count": len(planned), "steps": steps, "spoken": f"{document.name} would {spoken.steps(document)}."}


def _view(key: str, document: Document) -> dict[str, Any]:
    view: dict[str, Any] = {"macro_id": key, "name": document.name, "triggers": list(document.triggers), "steps": len(document.steps)}
    if document.inputs:
        view["inputs"] = list(document.inputs)
    return view

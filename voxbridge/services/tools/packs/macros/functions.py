"""Make, list, run, change and delete macros: the account's own lists of steps (docs/macros.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from voxbridge.services.tools.context import Context
from voxbridge.services.tools.core.inputs import Proposal, Reversible
from voxbridge.services.tools.registry import Local, function
from voxbridge.services.tools.runs import checks, dry_run, spoken, triggers
from voxbridge.services.tools.runs.document import STEPS_LIMIT, Document, as_data, macro_id, parse
from voxbridge.services.tools.runs.draft import draft
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events.tools import MacroDeleted, MacroSaved

MACROS_LIMIT: Final = 200
"""Macros of one account."""

SHOWN_LIMIT: Final = 40
"""Macros in one answer of `list_macros`, and steps in that of a dry run."""

Policy = Literal["", "stop", "continue", "retry", "ask", "single", "restart", "queued", "parallel"]
"""Policies that have a name: what a failed step leads to, or what a second start does while the macro runs."""

Name = Annotated[str, Meta(min_length=1, max_length=64, examples=["good night"])]


async def _uncreate(given: Mapping[str, Any], ctx: Context) -> str:
    found = (await ctx.documents("macro")).get(given["macro_id"])
    if found is None:
        return f"{given['document']['name']} is gone already."
    _unchanged(found, given["document"])
    await ctx.keep(MacroDeleted(macro_id=given["macro_id"], account=ctx.account, name=found.name))
    return f"I took the macro {found.name} away again."


async def _undelete(given: Mapping[str, Any], ctx: Context) -> str:
    macros, document = await ctx.documents("macro"), parse(given["before"])
    key = macro_id(document.name)
    if macros.get(key) == document:
        return f"{document.name} is there again."
    if key in macros:
        raise VoxbridgeError(Code.CONFLICT, f"There is another macro {document.name!r} by now. Delete it first.", field="call")
    if len(macros) >= MACROS_LIMIT:
        raise VoxbridgeError(Code.OVERLOADED, f"There are {MACROS_LIMIT} macros already; delete one first.", limit=MACROS_LIMIT)
    triggers.check(document, macros.values())
    await ctx.keep(MacroSaved(macro_id=key, account=ctx.account, document=as_data(document)))
    return f"{document.name} is there again."


async def _change_back(given: Mapping[str, Any], ctx: Context) -> str:
    macros, before, after = await ctx.documents("macro"), parse(given["before"]), parse(given["after"])
    key, now = macro_id(before.name), macro_id(after.name)
    if macros.get(key) == before and (now == key or now not in macros):
        return f"{before.name} is as it was."
    if now not in macros:
        raise VoxbridgeError(Code.NOT_FOUND, f"The macro {after.name!r} is not there any more.", field="call")
    _unchanged(macros[now], given["after"])
    if now != key and macros.get(key, before) != before:
        raise VoxbridgeError(Code.CONFLICT, f"There is another macro {before.name!r} by now. Delete it first.", field="call")
    triggers.check(before, [one for other, one in macros.items() if other not in (key, now)])
    await ctx.keep(MacroSaved(macro_id=key, account=ctx.account, document=as_data(before)))
    if now != key:
        await ctx.keep(MacroDeleted(macro_id=now, account=ctx.account, name=after.name))
    return f"{before.name} is as it was."


def _unchanged(found: Document, document: Mapping[str, Any]) -> None:
    if found != parse(dict(document)):
        raise VoxbridgeError(
            Code.CONFLICT,
            f"The macro {found.name!r} was changed after this call, so undoing the call would lose the change. The macro stays as it is.",
            field="call",
        )


@function(idempotent=True, undo=_uncreate)
async def create_macro(
    ctx: Context,
    name: Name,
    steps: Annotated[list[Any], Meta(max_length=STEPS_LIMIT, examples=[["current_time"]]), Local(None)] = [],  # noqa: B006 - never changed
    trigger: Annotated[str, Meta(max_length=120)] = "",
    policy: Annotated[Policy | dict[str, Any], Local(Policy)] = "",
    inputs: Annotated[dict[str, Any], Local(None)] = {},  # noqa: B006 - never changed
) -> dict[str, Any] | Proposal | Reversible:
    """Save a macro: steps that are run one after the other when the user says its trigger.

    Args:
        name: Name of the macro.
        steps: Functions to call, by name or as objects; none: what was just done.
        trigger: Words that start it; a part in braces is filled in.
        policy: What a failed step leads to (stop, continue, retry, ask), or a second start.
        inputs: Values that it is given, by name, with their types.

    Examples:
        save what I just did as a macro
        make a macro called good night
        save these steps as my morning routine
        create a shortcut that checks the time and the weather
        when I say lunch set a timer and take a note
        record a macro for deploying
        build a routine out of these steps
        put that together as a macro
        I want a macro that starts a timer
        define a macro named tea time
        turn what we did into a shortcut
        new macro called wake up
        teach you a routine that reads the page
        make it so that saying tidy up runs these steps
    """
    given = {"name": name, "steps": steps, "trigger": trigger, "policy": policy, "inputs": inputs}
    if not steps:
        given["steps"] = as_data(draft(name, await ctx.done()))["steps"]
    document = parse(given)
    known = await ctx.documents("macro")
    key = macro_id(document.name)
    _same(known.get(key), document)
    if key not in known and len(known) >= MACROS_LIMIT:
        raise VoxbridgeError(Code.OVERLOADED, f"There are {MACROS_LIMIT} macros already; delete one first.", limit=MACROS_LIMIT)
    others = {one.name: one for other, one in known.items() if other != key}
    checks.check(document, {card.name: card for card in ctx.catalogue()}, others, allowed=ctx.allowed)
    triggers.check(document, others.values())
    if key not in known and not steps:
        question = f"{document.name} would {spoken.steps(document)}. Shall I save it? Please say yes or no."
        return Proposal(arguments={field: value for field, value in given.items() if value}, question=question)
    made = key not in known or ctx.attempt > 1
    if key not in known:
        await ctx.keep(MacroSaved(macro_id=key, account=ctx.account, document=as_data(document), fresh=True))
        _same((await ctx.documents("macro")).get(key), document)  # another one may have been made meanwhile
    said = f"I saved {document.name}: {spoken.steps(document)}. {spoken.trigger(document)}"
    result = {"macro_id": key, "name": document.name, "steps": len(document.steps), "triggers": document.triggers, "spoken": said}
    return Reversible(result=result, undo={"macro_id": key, "document": as_data(document)}) if made else result


def _same(found: Document | None, document: Document) -> None:
    if found is not None and found != document:
        message = f"There is a macro {found.name!r} already. Delete it first, or choose another name."
        raise VoxbridgeError(Code.CONFLICT, message, field="name")


@function(effect="read")
async def list_macros(
    ctx: Context,
    skip: Annotated[int, Meta(ge=0, le=MACROS_LIMIT), Local(None)] = 0,
    name: Annotated[str, Meta(max_length=64), Local(None)] = "",
) -> dict[str, Any]:
    """List the user's macros.

    Args:
        skip: Macros to leave out at the front, of more than are shown at once.
        name: This one alone, with its steps.

    Examples:
        which macros do I have
        list my macros
        what routines have I saved
        show me my shortcuts
        what custom commands are there
        are there macros already
        what macros are saved
        tell me my routines
        name every macro of mine
        how many macros have I made
        what macros are saved
        tell me about my shortcuts
        how many macros have I got
        are there any macros
        read out my macros to me
        the names of my routines please
    """
    macros = await ctx.documents("macro")
    if name:
        document = _named(name, macros)
        view = {**_view(macro_id(document.name), document), "document": as_data(document)}
        return {"count": 1, "macros": [view], "spoken": f"{document.name} would {spoken.steps(document)}."}
    shown = [_view(key, one) for key, one in list(macros.items())[skip : skip + SHOWN_LIMIT]]
    names = [one.name for one in macros.values()]
    said = "You have no macros." if not names else f"You have {len(names)}: {', '.join(names[:6])}{' and more' if names[6:] else ''}."
    more = max(0, len(macros) - skip - len(shown))
    return {"count": len(macros), "macros": shown, **({"more": more} if more else {}), "spoken": said}


@function(kind="async", timeout_s=60)
async def run_macro(
    ctx: Context,
    name: Name,
    inputs: Annotated[dict[str, Any], Local(None)] = {},  # noqa: B006 - never changed
    dry_run: bool = False,
    step_by_step: Annotated[bool, Local(None)] = False,
) -> dict[str, Any]:
    """Run one of the user's macros.

    Args:
        name: Name of the macro.
        inputs: Values that it needs, by name.
        dry_run: Only say what it would do.
        step_by_step: Ask the user before each step.

    Examples:
        run my morning routine
        start the macro good night
        do the deploy macro
        execute my lunch shortcut
        play the macro called cleanup
        go through my evening steps
        what would the deploy macro do
        launch my lunch shortcut
        please do good night
        run tea time
        start the lunch routine
        fire up my evening macro
        trigger the wake up macro
        get the cleanup macro going
        set off the tea time macro now
        do my morning steps now
        I'd like the evening macro to run
        kick the deploy routine off
    """
    # A run is begun by the executor and steps through its own calls (`core/runs.py`); only a dry run reaches this.
    if not dry_run or step_by_step:
        raise VoxbridgeError(Code.INTERNAL, f"{name} was not looked up.", field="name")
    return _planned(_named(name, await ctx.documents("macro")), await ctx.documents("macro"), inputs)


@function(idempotent=True, undo=_change_back)
async def change_macro(
    ctx: Context,
    name: Name,
    new_name: Annotated[str, Meta(max_length=64)] = "",
    trigger: Annotated[str, Meta(max_length=120)] = "",
    policy: Annotated[Policy | dict[str, Any], Local(Policy)] = "",
) -> dict[str, Any] | Reversible:
    """Change one of the user's macros: its name, the words that start it, or its policy.

    Args:
        name: Name that the macro has now.
        new_name: Another name for it.
        trigger: Words that start it from now on.
        policy: What a failed step leads to (stop, continue, retry, ask), or a second start.

    Examples:
        rename the macro good night to late
        give the macro morning the name sunrise
        call the deploy shortcut release from now on
        the cleanup routine should be called tidy up
        change the trigger of the lunch macro
        the cleanup macro starts when I say tidy up
        let the backup macro continue when a step fails
        give the deploy macro the name release
        make the lunch macro start when I say food
        make the deploy macro queued
        have the lunch routine run in parallel
    """
    if not (new_name or trigger or policy):
        raise VoxbridgeError(Code.INVALID_ARGUMENT, f"Say what is to be another for {name}: name, trigger or policy.", field="new_name")
    macros = await ctx.documents("macro")
    if ctx.attempt > 1 and macro_id(name) not in macros:  # a process died when it had renamed it
        return _changed(name, _named(new_name, macros), trigger=trigger, policy=policy)
    found = _named(name, macros)
    old, data = macro_id(found.name), as_data(found)
    document = parse({**data, "name": new_name or found.name, "policy": policy, **({"triggers": [trigger]} if trigger else {})})
    key = macro_id(document.name)
    if key != old and macros.get(key, document) != document:
        message = f"There is a macro {macros[key].name!r} already. Delete it first, or choose another name."
        raise VoxbridgeError(Code.CONFLICT, message, field="new_name")
    others = {one.name: one for other, one in macros.items() if other not in (key, old)}
    users = [one.name for one in others.values() if found.name in checks.bundled(one, {**others, found.name: found})]
    if users and document.name != found.name:
        raise VoxbridgeError(Code.CONFLICT, f"{users[0]} runs {found.name} by its name; delete {users[0]} first.", field="new_name")
    checks.bundled(document, others)
    triggers.check(document, others.values())
    await ctx.keep(MacroSaved(macro_id=key, account=ctx.account, document=as_data(document)))
    if key != old:
        await ctx.keep(MacroDeleted(macro_id=old, account=ctx.account, name=found.name))
    result = _changed(found.name, document, trigger=trigger, policy=policy)
    return Reversible(result=result, undo={"before": data, "after": as_data(document)})


@function(effect="destructive", idempotent=True, undo=_undelete)
async def delete_macro(ctx: Context, name: Name) -> dict[str, Any] | Reversible:
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
        erase the tea time macro
        the wake up macro is not needed any more
        drop the macro called deploy
        I want the good night macro gone
        kill my lunch routine for good
        the evening macro can be thrown out
        the cleanup routine can go now
        wipe out the tea time shortcut
        clear away the morning macro
        take the deploy macro off the list
        I want my tea time routine deleted
    """
    macros = await ctx.documents("macro")
    if ctx.attempt > 1 and macro_id(name) not in macros:  # a process died when it had deleted it
        return {"macro_id": macro_id(name), "deleted": True, "spoken": f"I deleted {name}."}
    document = _named(name, macros)
    key = macro_id(document.name)
    await ctx.keep(MacroDeleted(macro_id=key, account=ctx.account, name=document.name))
    result = {"macro_id": key, "deleted": True, "spoken": f"I deleted {document.name}."}
    return Reversible(result=result, undo={"before": as_data(document)})


def _changed(before: str, document: Document, *, trigger: str, policy: Any) -> dict[str, Any]:
    told = [f"{before} is called {document.name} now."] if document.name != before else []
    told += [spoken.trigger(document)] if trigger else []
    told += [spoken.policy(document)] if policy else []
    view = _view(macro_id(document.name), document)
    return {**view, "name": document.name, "mode": document.mode, "spoken": " ".join(told) or f"{document.name} is as it was."}


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

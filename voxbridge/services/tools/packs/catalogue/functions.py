"""List the functions of the installation, run any of them, take back what they did, and list and cancel tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any, Final

from msgspec import Meta

from voxbridge.services.tools.context import Context
from voxbridge.services.tools.packs.catalogue.spoken import listed, match
from voxbridge.services.tools.packs.catalogue.which_task import chosen, means_all, names
from voxbridge.services.tools.registry import Local, function
from voxbridge.shared.agents.functions import Function
from voxbridge.shared.agents.tasks import OpenTask
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events.tools import ApprovalStanding
from voxbridge.shared.spoken_durations import about

TOOLS_SHOWN: Final = 40
"""Functions of one category in one answer of `list_tools`."""

OVERVIEW_SHOWN: Final = 24
"""Functions of all categories in one answer: a local model has room for little more."""

DESCRIPTION_CHARACTERS: Final = 80

UNREAD: Final = "I could not look into every other call, so there may be more."


@function(effect="read")
async def list_tools(ctx: Context, category: Annotated[str, Meta(max_length=64)] = "") -> dict[str, Any]:
    """List the tools that you can run with run_tool, by category.

    Args:
        category: Only this category; empty for an overview.

    Examples:
        which tools do you have
        what can you do for me
        show me your functions
        what tools are there for code
        list everything you are able to run
        which utilities can I use
        what kinds of tools are available
        do you have something for dates
        what tools could you offer me
        name your tools
        are there any tools for text
        I'd like an overview of the tools
        tell me which functions are installed
        what else have you got in the way of tools
        which categories of tools are there
        tell me about your abilities
        do you have any tools that deal with pictures
        give me the list of functions
    """
    tools = sorted(ctx.catalogue(), key=lambda tool: (tool.category, tool.name))
    counts = Counter(tool.category or "page" for tool in tools)
    if not category.strip():
        return {
            "count": len(tools),
            "categories": dict(counts),
            **_shown(_some_of_each(tools), OVERVIEW_SHOWN),
            "spoken": f"I have {len(tools)} tools, for {listed(list(counts))}. Which kind would you like to hear about?",
        }
    name = match(category, list(counts))
    if name is None:
        message = f"There is no category {category.strip()[:40]!r}. There is {listed(list(counts))}."
        raise VoxbridgeError(Code.NOT_FOUND, message, field="category")
    chosen = [tool for tool in tools if (tool.category or "page") == name]
    return {
        "category": name,
        "count": len(chosen),
        **_shown([_described(tool) for tool in chosen], TOOLS_SHOWN),
        "spoken": f"For {name} I have {listed([tool.name.replace('_', ' ') for tool in chosen], most=6)}.",
    }


@function(timeout_s=30)
async def run_tool(
    tool_id: Annotated[str, Meta(min_length=1, max_length=64, examples=["text_diff"])], params: dict[str, Any]
) -> dict[str, Any]:
    """Run one of the tools that list_tools names.

    Args:
        tool_id: Name of the tool.
        params: Arguments of the tool.

    Examples:
        run the tool called word count on this
        use the json formatter
        start the tool slugify
        execute the hash tool for hello
        run the regex tester
        call the tool named cron explained
        have the json to yaml tool convert this
        with the tool convert case put it in capitals
        use run tool for the url parser
        apply the base64 encoder to it
        let the echo tool say good day
        run describe color for teal
        I want the tool that makes a slug run on that
        please execute the tool list directory
        take the sum tool for three and four
        the linter tool should have a go at this
    """
    # The executor runs the tool that is named, by that tool's own rules (`voxbridge.services.tools.service`); this is never reached.
    raise VoxbridgeError(Code.INTERNAL, f"{tool_id} with {len(params)} arguments was not looked up.", field="tool_id")


@function(effect="read")
async def list_tasks(ctx: Context) -> dict[str, Any]:
    """List what is under way, of earlier calls too: tasks, timers, and what waits for approval.

    Examples:
        what are you working on
        which tasks are running
        is anything still going on
        how far is the import
        what timers do I have
        are you waiting for me
        show me the running jobs
        what's still open
        is something running in the background
        how is the job coming along
        is my timer still going
        what is left to do in the background
        have you finished that task
    """
    found = await ctx.tasks()
    told = {"count": len(found.tasks), "tasks": [_view(task, ctx.now) for task in found.tasks], "spoken": _said(found.tasks, ctx.now)}
    if not found.incomplete:
        return told
    return told | {"incomplete": True, "spoken": f"{told['spoken']} {UNREAD}"}


@function(idempotent=True)
async def cancel_task(ctx: Context, task: Annotated[str, Meta(max_length=80, examples=["tea timer"])] = "") -> dict[str, Any]:
    """Cancel a task or a timer that is under way.

    Args:
        task: Which one, in the user's words, or all; empty if there is only one.

    Examples:
        cancel the timer
        stop the import
        never mind the workflow
        abort what you are doing in the background
        kill that task
        turn off the pasta timer
        I don't need the search any more
        call off the reminder
        end the timer for the eggs
        drop the import job
        you can stop that task now
        forget the timer
        switch the alarm off
        halt the running job
    """
    listed_tasks = await ctx.tasks()
    tasks = listed_tasks.tasks
    if not tasks and listed_tasks.incomplete:
        raise VoxbridgeError(Code.UNAVAILABLE, UNREAD)
    if not tasks:
        return {"cancelled": 0, "spoken": "Nothing is under way."}
    fitting = chosen(task, tasks)
    if not fitting:
        raise VoxbridgeError(Code.NOT_FOUND, f"Nothing like that is under way. There is {listed(names(tasks))}.", field="task")
    if len(fitting) > 1 and not means_all(task):
        raise VoxbridgeError(Code.NOT_FOUND, f"Which one? There is {listed(names(fitting))}.", field="task")
    for one in fitting:
        await ctx.cancel_task(one.task_id, one.sid)
    told = {"cancelled": len(fitting), "spoken": f"I cancelled {listed(names(fitting))}."}
    return told | ({"task_id": fitting[0].task_id} if len(fitting) == 1 else {"task_ids": [one.task_id for one in fitting]})


@function(idempotent=True)
async def undo_last(ctx: Context, call: Annotated[str, Meta(max_length=128), Local(None)] = "") -> dict[str, Any]:
    """Take back the last thing that you did for the user: a note, a macro, a project, a file, a timer.

    Args:
        call: Id of the call to take back; empty for the last one.

    Examples:
        undo that
        take that back
        undo the last thing you did
        no that was wrong revert it
        please reverse what you just did
        scratch that I did not want it
        put it back the way it was
        that was a mistake undo it
        I didn't mean that take it back
        roll back your last change
        oops undo
        revert the last action
    """
    if call and not call.strip():
        raise VoxbridgeError(Code.INVALID_ARGUMENT, "undo_last: `call` names no call; leave it out for the last one.", field="call")
    undone = await ctx.undo(call.strip())
    if undone.error is not None and not undone.calls:
        raise undone.error
    if not undone.calls:
        message = "That cannot be taken back, or was already." if call.strip() else "There is nothing that I can take back."
        return {"undone": [], "spoken": message}
    said = " ".join(undone.spoken) or "That is taken back."
    if undone.error is not None:
        return {"undone": list(undone.calls), "success": False, "spoken": f"{said} The rest stands: {undone.error.message}"}
    return {"undone": list(undone.calls), "spoken": said}


@function(effect="read")
async def list_approvals(ctx: Context) -> dict[str, Any]:
    """List what the user has approved for good.

    Examples:
        what have I approved
        which approvals are standing
        what may you do without asking me
        list my permissions for you
        what did I allow for good
        show the standing approvals
        what permissions have I given you
        tell me what I have agreed to
        which things may you do on your own
        did I give you any lasting approval
    """
    standing = list(await ctx.approvals())
    names = list(dict.fromkeys(event.name.replace("_", " ") for event in standing))
    told = [{"function": event.name, **({"arguments": event.arguments} if event.arguments is not None else {})} for event in standing]
    return {
        "count": len(told),
        "approvals": told[:TOOLS_SHOWN],
        "spoken": f"Without asking, I may use {listed(names)}." if names else "You have approved nothing for good.",
    }


@function(idempotent=True)
async def revoke_approval(
    ctx: Context, approval: Annotated[str, Meta(min_length=1, max_length=80, examples=["delete_macro"])]
) -> dict[str, Any]:
    """Take back what the user approved for good: you will ask again.

    Args:
        approval: Function, in the user's words.

    Examples:
        ask me again before you delete a macro
        take back the approval for payments
        revoke my permission to write files
        I no longer allow that
        don't delete macros without asking any more
        withdraw what I approved
        cancel my approval for deleting
        from now on check with me before you do that
        you are no longer allowed to send files by yourself
        undo my permission
    """
    standing = list(await ctx.approvals())
    names = list(dict.fromkeys(event.name.replace("_", " ") for event in standing))
    found = match(approval, names)
    if found is None:
        message = f"There is no standing approval for that; there is one for {listed(names)}." if names else "Nothing is approved for good."
        raise VoxbridgeError(Code.NOT_FOUND, message, field="approval")
    revoked = [event for event in standing if event.name.replace("_", " ") == found]
    for event in revoked:
        await ctx.keep(ApprovalStanding(name=event.name, arguments=event.arguments, granted=False))
    return {"revoked": len(revoked), "spoken": f"I will ask again before I {found}."}


def _summary(tool: Function) -> dict[str, str]:
    return {"id": tool.name, "name": tool.name.replace("_", " "), "category": tool.category or "page"}


def _described(tool: Function) -> dict[str, str]:
    return {**_summary(tool), "description": tool.description[:DESCRIPTION_CHARACTERS]}


def _some_of_each(tools: Sequence[Function]) -> list[dict[str, str]]:
    """Return the functions so that the first few are of each category, as many of one as of another."""
    place = Counter[str]()
    ranked: list[tuple[int, int]] = []
    for index, tool in enumerate(tools):
        ranked.append((place[tool.category], index))
        place[tool.category] += 1
    return [_summary(tools[index]) for _, index in sorted(ranked)]


def _shown(tools: Sequence[dict[str, str]], most: int) -> dict[str, Any]:
    return {"tools": list(tools[:most]), **({"more": len(tools) - most} if len(tools) > most else {})}


def _view(task: OpenTask, now: int) -> dict[str, Any]:
    view: dict[str, Any] = {"task_id": task.task_id, "function": task.function, "state": task.state}
    if task.label:
        view["label"] = task.label
    if task.due_at is not None:
        view["seconds_left"] = max(0, (task.due_at - now) // 1_000_000)
    if task.done:
        view["percent"] = round(task.done * 100)
    if task.message:
        view["progress"] = task.message
    return view


def _said(tasks: Sequence[OpenTask], now: int) -> str:
    if not tasks:
        return "Nothing is under way."
    told = []
    for name, task in zip(names(tasks), tasks, strict=True):
        if task.due_at is not None:
            told.append(f"{name} with {about(max(0, (task.due_at - now) // 1_000_000))} left")
        elif task.done:
            told.append(f"{name} at {round(task.done * 100)} percent")
        else:
            told.append(f"{name}, {task.state}")
    return f"There is {listed(told, most=5)}."

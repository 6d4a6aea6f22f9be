"""Declarations of the functions about agents."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Annotated, Any, Final

from msgspec import Meta

from voxbridge.services.tools.context import Context
from voxbridge.services.tools.packs.agents import sources
from voxbridge.services.tools.registry import function
from voxbridge.shared.bus import subjects
from voxbridge.shared.child_sessions import RUN_SECONDS, TEXT_LIMIT, THREADS_LIMIT, Card, Kind, Put, child_of
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events.tools import ChildOpened
from voxbridge.shared.knowledge import QUERY_LIMIT, Found, Search

MESSAGE_LIMIT: Final = 4_000
"""Characters of a question to an expert; with the passages it stays below `TEXT_LIMIT`."""

SPOKEN: Final = 280
NAMED: Final = 5
"""Agents that are named aloud; the others are counted."""

Name = Annotated[str, Meta(min_length=1, max_length=64, examples=["researcher"])]


@function(kind="async", effect="write", idempotent=True, timeout_s=RUN_SECONDS + 20, outlives=True)
async def run_agent(
    name: Name,
    input: Annotated[str, Meta(min_length=1, max_length=TEXT_LIMIT, examples=["compare the two offers"])],
    ctx: Context,
) -> dict[str, Any]:
    """Give another agent a job that it does in the background, as a task.

    Args:
        name: Name of the agent.
        input: The job, with all that the agent has to know.

    Examples:
        have the researcher compare the weights of three laptops
        ask the writer agent to draft a welcome mail
        have an agent work on the summary in the background
        run the planner for my trip to Porto
        give that job to the research agent
        start the assistant on cleaning up the list
        get the analyst to look through the numbers of last month
        send the researcher off to find a hotel near the fair
        delegate the translation to the translator
        tell the scout agent to look for cheaper flights
        let another agent take care of the invoices
        pass this task on to the planner agent
        let the coder fix the build while we talk
        get the translator to work on the leaflet
        make the analyst study the survey
        the editor ought to go over my draft
        have the writer prepare a press release
        I want the editor agent to shorten the article
    """
    card = _card(await ctx.children.cards(), name, "name")
    child = child_of(ctx.sid, "run", ctx.call_id)
    await ctx.progress(0.05, f"{card.name} begins")
    answer = await _asked(ctx, _put(ctx, child, card.name, "run", input))
    result = {"agent": card.name, "answer": answer, "session": child}
    return {**result, "announce": _brief(f"{card.name} is done: {answer}"), "spoken": _brief(answer)}


@function(effect="read", timeout_s=10)
async def list_agents(ctx: Context) -> dict[str, Any]:
    """List the agents and pipelines of the installation, and what each one lacks.

    Examples:
        which agents are there
        list the agents
        who can I talk to here
        what agents do you know
        show me the agents that could do a job
        which agents lack a key
        what can the other agents do
        is there an agent for invoices
        name the agents
        give me an overview of the agents
        are there any agents besides you
        what agents can I hand work to
    """
    cards = await ctx.children.cards()
    ready = [one.name for one in cards if not one.missing]
    lacking = len(cards) - len(ready)
    said = f"{_are(ready, 'agent')} ready: {_listed(ready)}." if ready else "No agent is ready."
    said += f" {lacking} more {'lacks' if lacking == 1 else 'lack'} a key." if lacking else ""
    return {"agents": [_shown(one) for one in cards], "count": len(cards), "spoken": said[:SPOKEN]}


@function(effect="read", timeout_s=10)
async def list_experts(ctx: Context) -> dict[str, Any]:
    """List the experts: agents that answer questions from documents of their own.

    Examples:
        which experts do we have
        list the experts
        whom can I ask about the documents
        is there an expert for contracts
        show me who knows something about what
        what do the experts know
        who are the experts
        name the experts I can talk to
        which specialists do we have
        is anybody here an expert on taxes
        what kinds of experts are there
    """
    experts = [one for one in await ctx.children.cards() if one.expert]
    names = [one.name for one in experts]
    said = f"{_are(names, 'expert')}: {_listed(names)}." if names else "There are no experts yet."
    return {"experts": [_shown(one) for one in experts], "count": len(experts), "spoken": said[:SPOKEN]}


@function(effect="read", timeout_s=180)
async def chat_with_expert(
    expert: Annotated[str, Meta(min_length=1, max_length=64, examples=["librarian"])],
    message: Annotated[str, Meta(min_length=1, max_length=MESSAGE_LIMIT, examples=["how many holidays do I have"])],
    ctx: Context,
) -> dict[str, Any]:
    """Ask an expert, who answers from documents of its own with their names, and remembers this talk.

    Args:
        expert: Name of the expert.
        message: The question.

    Examples:
        ask the librarian how long the loan period is
        what does the expert on safety say about ladders
        check with the contracts expert whether we may cancel
        let me chat with the librarian
        put that question to the expert
        and what does the expert think about the second point
        ask the tax expert if the train ticket counts
        consult the legal expert about the lease
        let the expert explain the guarantee to me
        find out from the safety expert if the door may stay open
        the travel expert should tell me which form I need
        talk to the nutrition expert about salt
        what is the view of the pension expert on this
        have the legal expert look at whether the logo may be used
        what's the database expert's opinion on indexes
        hear what the wine expert has to say about cork
        get the privacy expert's view on cookies
    """
    card = _card(await ctx.children.cards(), expert, "expert")
    if not card.expert:
        raise VoxbridgeError(Code.INVALID_ARGUMENT, f"{card.name} is an agent and no expert; list_experts says who is.", field="expert")
    found = await _found(ctx, card, message)
    text = sources.question(message, found.passages, searched=bool(card.knowledge))
    child, answer = await _in_thread(ctx, card.name, text)
    checked = sources.checked(answer, found.passages)
    said = checked.text or "The documents do not say."
    named = ", ".join(sources.plain(one, 80) for one in checked.sources)
    result: dict[str, Any] = {
        "expert": card.name,
        "answer": said,
        "sources": list(checked.sources),
        "searched_by": found.by,
        "session": child,
    }
    if checked.rejected:
        result["sources_rejected"] = checked.rejected
    ending = f" Source: {named}." if named else ""
    return {**result, "spoken": (_brief(said, SPOKEN - len(ending)) + ending) if len(ending) < SPOKEN - 40 else _brief(said)}


async def _found(ctx: Context, card: Card, message: str) -> Found:
    """Search the graphs of an expert. One that the account does not have holds nothing."""
    if not card.knowledge:
        return Found(passages=(), by="")
    asked = Search(account=ctx.account, query=message[:QUERY_LIMIT], graphs=card.knowledge, count=sources.PASSAGES)
    try:
        return await ctx.knowledge(asked)
    except VoxbridgeError as error:
        if error.code != Code.NOT_FOUND:
            raise
        return Found(passages=(), by="")


async def _in_thread(ctx: Context, expert: str, text: str) -> tuple[str, str]:
    """Ask in the session's thread with an expert, and return thread and answer. A thread that reached a limit is followed by another."""
    if subjects.account_of(ctx.sid):  # outside a session there is nothing to remember it by
        child = child_of(ctx.sid, "run", ctx.call_id)
        return child, await _asked(ctx, _put(ctx, child, expert, "run", text))
    for number in range(THREADS_LIMIT):
        child = child_of(ctx.sid, "expert", expert, str(number))
        try:
            return child, await _asked(ctx, _put(ctx, child, expert, "expert", text))
        except VoxbridgeError as error:
            if error.code != Code.CONFLICT:
                raise
    message = f"{THREADS_LIMIT} conversations with {expert} reached their limit in this session already."
    raise VoxbridgeError(Code.OVERLOADED, message, field="expert", limit=THREADS_LIMIT, retryable=False)


async def _asked(ctx: Context, put: Put) -> str:
    """Open the session, or go on with it, and return the answer."""
    await ctx.emit(ChildOpened(call_id=ctx.call_id, child=put.child, agent=put.agent, kind=put.kind))

    async def calls(name: str, number: int) -> None:
        if put.kind == "run":
            await ctx.progress(min(0.9, 0.1 + 0.1 * number), f"{put.agent} calls {name}")

    return await ctx.children.answer(put, calls)


def _put(ctx: Context, child: str, agent: str, kind: Kind, text: str) -> Put:
    # The text is named after the call, so that an attempt after a crash puts the same text in.
    text_id = child_of(ctx.sid, "text", ctx.call_id)
    return Put(parent=ctx.sid, call_id=ctx.call_id, child=child, agent=agent, kind=kind, text=text, text_id=text_id)


def _card(cards: Sequence[Card], said: str, field: str) -> Card:
    """Return the agent of this name that can work. Raises `NOT_FOUND`, `INVALID_ARGUMENT` and `PROVIDER_UNAVAILABLE`."""
    name = "-".join(said.casefold().replace("_", " ").split())
    card = next((one for one in cards if one.name == name), None)
    if card is None:
        near = get_close_matches(name, [one.name for one in cards], n=2)
        hint = f" Did you mean {' or '.join(near)}?" if near else " list_agents says which there are."
        raise VoxbridgeError(Code.NOT_FOUND, f"There is no agent {sources.plain(said, 64)!r}.{hint}", field=field)
    if card.speaks:
        message = f"{card.name} only speaks, by a speech-to-speech model, and cannot work in the background."
        raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field=field)
    if card.missing:
        message = f"{card.name} cannot work here: there is no key for {' and '.join(card.missing)}. Set one in Keys."
        raise VoxbridgeError(Code.PROVIDER_UNAVAILABLE, message, field=field, retryable=False)
    return card


def _shown(card: Card) -> dict[str, Any]:
    shown: dict[str, Any] = {"name": card.name, "description": card.description or card.role, "missing": list(card.missing)}
    shown["in_background"] = not card.speaks and not card.missing
    if card.pipeline:
        shown["pipeline"] = True
    if card.expert:
        shown["knowledge"] = list(card.knowledge)
    return shown


def _brief(text: str, limit: int = SPOKEN) -> str:
    """Return a text for the ear: whole sentences up to `limit` characters, or the beginning of the first one."""
    text = " ".join(text.split())
    if len(text) <= limit:
        return text
    cut = max(text.rfind(end, 0, limit) for end in (". ", "! ", "? "))
    return text[: cut + 1] if cut > 0 else f"{text[: limit - 1].rstrip()}…"


def _listed(names: Sequence[str]) -> str:
    more = f", and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _are(names: Sequence[str], noun: str) -> str:
    return f"There is one {noun}" if len(names) == 1 else f"There are {len(names)} {noun}s"

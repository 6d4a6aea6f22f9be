"""Declarations of the functions about terminals.

They are offered to agents whose file names them. Terminals run programs with the rights of whoever started Voxbridge, so only calls of the
installation's own account reach them. A line for a shell is a command: a person approves it each time, unless they let it stand by a click.
"""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any, Final, Literal, get_args

from msgspec import Meta

from voxbridge.services.tools.context import Context
from voxbridge.services.tools.core.inputs import Proposal
from voxbridge.services.tools.packs.terminals import crew, named, orders, reach
from voxbridge.services.tools.registry import Local, function
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.terminals import questions as asked
from voxbridge.shared.terminals.model import Card

SPOKEN: Final = 4
"""Terminals that are told, those that need somebody first; the others are counted."""

SPOKEN_WORDS: Final = 40
"""Characters that are told of what one does."""

SPOKEN_WORDS_ASKED: Final = 150
"""Characters of a question that are told before it is answered."""

CLAUSE_WORDS: Final = 100
"""Characters of a part of an order that are told as not understood."""

REFUSALS: Final = ("escape", "ctrl-c", "n")
"""Keys that give no permission, whatever is asked."""

WATCH_LIMIT_S: Final = 12 * 3_600
"""Seconds that terminals are watched at most."""

WATCHED_S: Final = 15.0
"""Seconds after which a watch asks again, so that it notices within these that the terminals service was restarted."""

AWAY_S: Final = 2.0
"""Seconds after which a terminals service that did not answer is asked again."""

Terminal = Annotated[str, Meta(max_length=64, examples=["build"])]
Text = Annotated[str, Meta(min_length=1, max_length=4_000, examples=["write tests for the parser"])]
Key = Literal[
    "enter", "escape", "tab", "shift-tab", "space", "backspace", "up", "down", "left", "right", "page-up", "page-down", "ctrl-c", "ctrl-d",
    "ctrl-l", "ctrl-z", "y", "n", "1", "2", "3", "4",
]  # fmt: skip


@function(effect="read", timeout_s=15, listed=False, orders=orders.LIST)
async def list_terminals(ctx: Context) -> dict[str, Any]:
    """List the terminals and what their programs do.

    Examples:
        which terminals are there
        what is running
        list the terminals
        who needs me
        is anybody waiting for me
        what are my agents doing
        how is the crew
        what does everybody do
        show me all terminals
        which programs are open
        is claude done
        status of the terminals please
        who is still working
        are there any terminals
    """
    cards = await reach.cards_of(ctx)
    shown = [reach.shown(card) for card in cards]
    if not cards:
        return {"terminals": [], "count": 0, "spoken": "There is no terminal. Shall I start one?"}
    first = sorted(cards, key=lambda card: not card.needs_you)[:SPOKEN]
    said = ", ".join(f"{card.name} {crew.doing(card)[:SPOKEN_WORDS]}" for card in first)
    more = f", and {len(cards) - SPOKEN} more" if len(cards) > SPOKEN else ""
    return {"terminals": shown, "count": len(cards), "spoken": f"{said}{more}."}


@function(effect="read", timeout_s=15, listed=False, orders=orders.READ)
async def read_terminal(ctx: Context, terminal: Terminal = "", lines: Annotated[int, Meta(ge=1, le=200)] = 20) -> dict[str, Any]:
    """Read what a terminal shows.

    Args:
        terminal: Name of the terminal; none: the active one.
        lines: Lines from the end.

    Examples:
        what does it say
        read the build terminal
        what is on the terminal's screen
        what did claude answer
        read me its last lines
        what does codex say
        what came out
        show what the left one says
        is there an error in the build terminal
        read that terminal to me
        what did the command print
        what does the second terminal show
        tell me what it wrote
        look at the tests
    """
    card = named.find(await reach.cards_of(ctx), terminal)
    seen = await ctx.terminals(asked.Read(by=reach.decided_by(ctx), terminal=card.id, lines=lines))
    await ctx.terminals(asked.See(by=reach.decided_by(ctx), terminal=card.id))
    said = reach.end_of(seen.text)
    return {
        **reach.shown(card),
        "text": seen.text,
        "dropped": seen.dropped,
        "spoken": f"{card.name} says: {said}" if said else f"{card.name} shows nothing.",
    }


@function(timeout_s=30, listed=False, orders=orders.START)
async def start_terminal(
    ctx: Context, program: Annotated[str, Meta(max_length=32, examples=["bash"])] = "bash", name: Annotated[str, Meta(max_length=64)] = ""
) -> dict[str, Any]:
    """Start a program in a new terminal: a shell, or a coding agent such as claude or codex.

    Args:
        program: The program.
        name: Name for the terminal.

    Examples:
        start a terminal
        open a shell
        start claude
        launch codex
        open another terminal called build
        I need a new shell
        start python in a terminal
        fire up the gemini cli
        open a terminal for the tests
        get me a bash
        start a second terminal
        open a terminal named server
    """
    offers = (await ctx.terminals(asked.ListDefinitions(by=reach.owned(ctx)))).offers
    wanted = program.casefold().strip()
    chosen = next((one for one in offers if wanted in (one.definition.id, one.definition.title.casefold())), None)
    if chosen is None:
        message = f"There is no program {program[:32]!r}. There are {', '.join(one.definition.id for one in offers)}."
        raise VoxbridgeError(Code.NOT_FOUND, message, field="program")
    card = await ctx.terminals(asked.Start(by=reach.decided_by(ctx), definition=chosen.definition.id, name=name))
    await ctx.terminals(asked.Activate(by=reach.decided_by(ctx), terminal=card.id))
    return {**reach.shown(card), "spoken": f"{card.name} is started."}


@function(timeout_s=60, listed=False, orders=orders.SEND)
async def send_to_terminal(text: Text, ctx: Context, terminal: Terminal = "") -> dict[str, Any]:
    """Tell a coding agent in a terminal something, in the user's own words.

    Args:
        text: The user's words for it.
        terminal: Name of the terminal; none: the active one.

    Examples:
        tell claude to refactor the auth module
        tell codex to write the tests
        ask claude what the parser does
        say to the agent that it should go on
        have gemini review the last change
        tell it to stop using globals
        let claude fix the failing test
        ask codex to explain the error
        give claude the task to document the api
        tell the first one to try again
        ask the agent for a plan
        tell aider to undo that
    """
    cards = await reach.cards_of(ctx)
    card = named.find(cards, terminal)
    if card.kind != "agent":
        message = f"{card.name} runs {card.definition}, where a line is a command. Use run_in_terminal, which asks first."
        raise VoxbridgeError(Code.PERMISSION_DENIED, message, field="terminal")
    if clause := named.condition(cards, card, text):
        message = f'I did not understand "{clause[:CLAUSE_WORDS]}", so {card.name} was told nothing. Please say that again.'
        raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field="text")
    return await reach.send(ctx, card, text)


@function(timeout_s=60, listed=False, approval="always", orders=orders.RUN)
async def run_in_terminal(
    command: Annotated[str, Meta(min_length=1, max_length=4_000, examples=["ls -l"])], ctx: Context, terminal: Terminal = ""
) -> dict[str, Any]:
    """Run a command in a shell, after the user has approved it.

    Args:
        command: The command line.
        terminal: Name of the terminal; none: the active one.

    Examples:
        run the tests in the build terminal
        in the left one make a file called notes
        list the files in the shell
        run make
        type git status
        show the disk space in the terminal
        run pip install in the second terminal
        go to the source folder in the build terminal
        delete the build folder in the shell
        start the server in the last terminal
        run ls in bash
        print the current directory
    """
    card = named.find(await reach.cards_of(ctx), terminal)
    if card.kind == "agent":
        raise VoxbridgeError(
            Code.INVALID_ARGUMENT, f"{card.name} is not a shell. Use send_to_terminal to tell it something.", field="terminal"
        )
    if "\n" in command.strip() or "\r" in command.strip():
        raise VoxbridgeError(Code.INVALID_ARGUMENT, "A command is one line. Give one at a time.", field="command")
    return await reach.send(ctx, card, command)


@function(timeout_s=15, listed=False, orders=orders.KEY, idempotent=False)
async def send_key(
    key: Key,
    ctx: Context,
    terminal: Terminal = "",
    times: Annotated[int, Meta(ge=1, le=20)] = 1,
    about: Annotated[str, Meta(max_length=300), Local(None)] = "",
    since: Annotated[int, Meta(ge=0, le=2**53), Local(None)] = 0,
) -> dict[str, Any] | Proposal:
    """Press a key in a terminal: to stop a program, to choose, or to answer its question.

    Args:
        key: The key; ctrl-c stops a program.
        terminal: Name of the terminal; none: the active one.
        times: How often.
        about: Question of the program that the key answers.
        since: Time at which the program began to ask it, µs.

    Examples:
        press escape in codex
        stop the program
        press control c
        stop it
        cancel what runs in the build terminal
        press enter
        answer yes to claude
        choose the second option
        press the down key three times
        say no to it
        interrupt the server
        hit tab
    """
    card = named.find(await reach.cards_of(ctx), terminal)
    asks = card.state.phase == "blocked"
    if (since or ctx.attempt > 1) and not (asks and (about, since) == (card.state.words, card.state.since)):
        raise VoxbridgeError(Code.CONFLICT, f"{card.name} asks that no more, so nothing was pressed.", field="terminal")
    # Begun again only after a yes: this function is not idempotent, so a crash does not begin it again.
    if ctx.attempt == 1 and asks and key not in REFUSALS:
        shall = "say yes" if key == await reach.approves(ctx, card) else f"press {key}"
        question = f"{card.name} {crew.doing(card)[:SPOKEN_WORDS_ASKED]}. Shall I {shall}? Please say yes or no."
        given = {"key": key, "terminal": card.id, "times": times, "about": card.state.words, "since": card.state.since}
        return Proposal(arguments=given, question=question, topic=card.id)
    done = await ctx.terminals(asked.SendKey(by=reach.decided_by(ctx), terminal=card.id, key=key, times=times))
    if done.outcome == "not_submitted":
        raise VoxbridgeError(Code.CONFLICT, f"The key was not pressed in {card.name}. {done.reason}", field="terminal")
    return {**reach.shown(card), "key": key, "times": times, "spoken": f"I pressed {key.replace('-', ' ')} in {card.name}."}


@function(kind="async", effect="read", timeout_s=reach.WAIT_LIMIT_S + 60, begins="I will tell you.", listed=False, orders=orders.WAIT)
async def wait_for_terminal(
    ctx: Context,
    terminal: Terminal = "",
    until: Literal["done", "question", "end"] = "done",
    seconds: Annotated[int, Meta(ge=1, le=reach.WAIT_LIMIT_S)] = reach.WAIT_LIMIT_S,
) -> dict[str, Any]:
    """Wait until a terminal's program is done, asks something, or has ended, and say so.

    Args:
        terminal: Name of the terminal; none: the active one.
        until: What to wait for.
        seconds: Seconds to wait at most.

    Examples:
        wait until it is done
        tell me when claude is finished
        let me know when the tests are through
        wait for codex
        say when the build is done
        wait until the program ends
        tell me as soon as claude asks something
        notify me when the server stops
        wait for the left one
        tell me when it's ready
        watch the build and tell me when it ends
        wait till that's finished
    """
    card = named.find(await reach.cards_of(ctx), terminal)
    condition: asked.Until = {"done": "turn_end", "question": "blocked", "end": "exit"}[until]  # type: ignore[assignment]
    ends = time.monotonic() + seconds
    while True:
        timeout_s = max(0.1, min(asked.WAIT_LIMIT_S, ends - time.monotonic()))
        waited = await ctx.terminals(asked.Wait(by=reach.decided_by(ctx), terminal=card.id, until=condition, timeout_s=timeout_s))
        if waited.met or waited.state.phase in ("blocked", "dead") or time.monotonic() >= ends:
            break
    card = await ctx.terminals(asked.See(by=reach.decided_by(ctx), terminal=card.id))  # it is told here, so a watch need not
    said = f"{card.name} {crew.doing(card)}."
    return {**reach.shown(card), "met": waited.met, "announce": said, "spoken": said}


@function(kind="async", effect="read", timeout_s=WATCH_LIMIT_S + 60, begins="I keep watch.", listed=False)
async def watch_terminals(ctx: Context, seconds: Annotated[int, Meta(ge=1, le=WATCH_LIMIT_S)] = WATCH_LIMIT_S) -> dict[str, Any]:
    """Watch all terminals, and say when a program asks something, is done with its work, or has ended.

    Args:
        seconds: Seconds to watch at most.

    Examples:
        watch the terminals
        keep an eye on everybody
        tell me when anybody needs me
        watch my agents
        speak up when somebody asks something
        let me know when any of them is done
        watch the crew
        say so if a program needs me
        keep me posted on the terminals
        tell me whenever one of them finishes
        look after the terminals
        warn me when one ends
    """
    by, ends = reach.owned(ctx), time.monotonic() + seconds
    known: dict[str, Card] = {}
    reminders = crew.Reminders()
    answers = ctx.allowed is None or "send_key" in ctx.allowed
    while (left_s := ends - time.monotonic()) > 0:
        try:
            cards = await reach.cards_of(ctx)
            known |= {card.id: crew.unasked(card) for card in reminders.due(cards, time.monotonic())}
            asking = {card.id: await reach.approves(ctx, card) for card in crew.asking(known, cards)} if answers else {}
            asking = {terminal: key for terminal, key in asking.items() if key in get_args(Key)}  # another is told of, and answered by hand
            states = {card.id: card.state for card in cards}
            for terminal, key in asking.items():
                given = {"key": key, "terminal": terminal, "about": states[terminal].words, "since": states[terminal].since}
                await ctx.begin("send_key", given)  # which presses nothing if the question is gone by then
            if news := crew.report(known, cards, asking, since=ctx.now):
                await ctx.tell(news)
            known = {card.id: card for card in cards}
            since = {card.id: card.changed_at for card in cards}
            await ctx.terminals(asked.Watch(by=by, known=since, timeout_s=min(WATCHED_S, left_s)))
            await asyncio.sleep(reach.SETTLED_S)  # what somebody answers or looks at at once needs no words
        except VoxbridgeError as error:
            if error.code != Code.UNAVAILABLE:
                raise
            await asyncio.sleep(AWAY_S)
    return {"seconds": seconds, "spoken": "I no longer watch the terminals."}


@function(kind="async", timeout_s=reach.WAIT_LIMIT_S + 120, begins="I will pass it on.", listed=False, orders=orders.FORWARD)
async def forward_output(
    source: Annotated[str, Meta(min_length=1, max_length=64, examples=["claude"])],
    ctx: Context,
    terminal: Terminal = "",
    text: Annotated[str, Meta(max_length=4_000)] = "",
    when: Literal["now", "done"] = "now",
    lines: Annotated[int, Meta(ge=1, le=500)] = 200,
) -> dict[str, Any]:
    """Give what one terminal shows to the coding agent in another: its answer, diff, error or output.

    Args:
        source: Name of the terminal it is taken from.
        terminal: Name of the coding agent's terminal that gets it; none: the active one.
        text: The user's words that stand before it.
        when: At once, or when the source is done.
        lines: Lines from the end.

    Examples:
        when claude finishes, paste its diff into codex
        paste claude's answer into codex
        give codex what the build terminal says
        send the error from the build terminal to claude
        forward the test output to claude
        copy what codex wrote into claude
        show claude the output of the tests
        when the build is done, send its output to claude
        hand codex's plan to claude
        pass the last lines of the server on to codex
        let claude see what codex answered
        when codex is through, give its result to gemini
    """
    cards = await reach.cards_of(ctx)
    giver, taker = named.find(cards, source), named.find(cards, terminal)
    if taker.kind != "agent":
        message = f"{taker.name} runs {taker.definition}, where each line would be a command. Output goes to coding agents alone."
        raise VoxbridgeError(Code.PERMISSION_DENIED, message, field="terminal")
    if giver.id == taker.id:
        raise VoxbridgeError(Code.INVALID_ARGUMENT, f"{giver.name} cannot be given its own output. Name two terminals.", field="source")
    if when == "done":
        await reach.until_done(ctx, giver)
    seen = await reach.output_of(ctx, giver, lines)
    if not seen.text.strip():
        raise VoxbridgeError(Code.NOT_FOUND, f"{giver.name} shows nothing that could be passed on.", field="source")
    sent = await reach.send(ctx, taker, f"{text.strip()}\n\n{seen.text}".strip())
    count = len(seen.text.splitlines())
    said = f"{taker.name} has {count} {'line' if count == 1 else 'lines'} from {giver.name}."
    return {**sent, "text": text, "source": giver.id, "lines": count, "dropped": seen.dropped, "announce": said, "spoken": said}


@function(effect="destructive", timeout_s=45, listed=False, orders=orders.CLOSE)
async def close_terminal(ctx: Context, terminal: Terminal = "") -> dict[str, Any]:
    """Close a terminal, and end everything that it started.

    Args:
        terminal: Name of the terminal; none: the active one.

    Examples:
        close the build terminal
        end codex
        close that terminal
        quit claude
        shut the left one
        close the shell
        get rid of the second terminal
        end the program and close it
        close the last one
        I don't need the server terminal any more
        shut down the python terminal
        close it
    """
    card = named.find(await reach.cards_of(ctx), terminal)
    closed = await ctx.terminals(asked.Close(by=reach.decided_by(ctx), terminal=card.id))
    left = f" {len(closed.left)} of its programs could not be ended." if closed.left else ""
    return {"terminal": card.id, "name": card.name, "left": list(closed.left), "spoken": f"{card.name} is closed.{left}"}

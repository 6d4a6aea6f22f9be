"""Declarations of the functions about terminals.

They are offered to agents whose file names them. Terminals run programs with the rights of whoever started Voxbridge, so only calls of the
installation's own account reach them. A line for a shell is a command: a person approves it each time, unless they let it stand by a click.
"""

from __future__ import annotations

import time
from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from voxbridge.services.tools.context import Context
from voxbridge.services.tools.core.inputs import Proposal
from voxbridge.services.tools.packs.terminals import named
from voxbridge.services.tools.registry import Local, function
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.secrets.access_tokens import LOCAL
from voxbridge.shared.terminals import questions as asked
from voxbridge.shared.terminals.model import Card

OWNER: Final = LOCAL
"""Account of the installation itself; those of tokens are others."""

SPOKEN: Final = 4
"""Terminals that are told, those that need somebody first; the others are counted."""

SPOKEN_WORDS: Final = 40
"""Characters that are told of what one does."""

SPOKEN_WORDS_ASKED: Final = 150
"""Characters of a question that are told before it is answered."""

REFUSALS: Final = ("escape", "ctrl-c", "n")
"""Keys that give no permission, whatever is asked."""

SPOKEN_LINES: Final = 3
SPOKEN_CHARACTERS: Final = 220
WAIT_LIMIT_S: Final = 1_800
"""Seconds that a wait lasts at most."""

_PHASES: Final = {
    "starting": "is starting", "idle": "is idle", "working": "is working", "done": "is done", "dead": "has ended", "unknown": "is unknown",
}  # fmt: skip
_ASKS: Final = {"permission": "asks for permission", "auth": "wants a password"}

Terminal = Annotated[str, Meta(max_length=64, examples=["build"])]
Text = Annotated[str, Meta(min_length=1, max_length=4_000, examples=["write tests for the parser"])]
Key = Literal[
    "enter", "escape", "tab", "shift-tab", "space", "backspace", "up", "down", "left", "right", "page-up", "page-down", "ctrl-c", "ctrl-d",
    "ctrl-l", "ctrl-z", "y", "n", "1", "2", "3", "4",
]  # fmt: skip


@function(effect="read", timeout_s=15, listed=False)
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
    cards = await _cards(ctx)
    shown = [_shown(card) for card in cards]
    if not cards:
        return {"terminals": [], "count": 0, "spoken": "There is no terminal. Shall I start one?"}
    first = sorted(cards, key=lambda card: not card.needs_you)[:SPOKEN]
    said = ", ".join(f"{card.name} {_doing(card)[:SPOKEN_WORDS]}" for card in first)
    more = f", and {len(cards) - SPOKEN} more" if len(cards) > SPOKEN else ""
    return {"terminals": shown, "count": len(cards), "spoken": f"{said}{more}."}


@function(effect="read", timeout_s=15, listed=False)
async def read_terminal(ctx: Context, terminal: Terminal = "", lines: Annotated[int, Meta(ge=1, le=200)] = 20) -> dict[str, Any]:
    """Read what a terminal shows.

    Args:
        terminal: Name of the terminal; none: the active one.
        lines: Lines from the end.

    Examples:
        what does it say
        read the build terminal
        what is on the screen
        what did claude answer
        read me the last lines
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
    card = named.find(await _cards(ctx), terminal)
    seen = await ctx.terminals(asked.Read(by=_by(ctx), terminal=card.id, lines=lines))
    await ctx.terminals(asked.See(by=_by(ctx), terminal=card.id))
    said = end_of(seen.text)
    return {
        **_shown(card),
        "text": seen.text,
        "dropped": seen.dropped,
        "spoken": f"{card.name} says: {said}" if said else f"{card.name} shows nothing.",
    }


@function(timeout_s=30, listed=False)
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
    offers = (await ctx.terminals(asked.ListDefinitions(by=_owned(ctx)))).offers
    wanted = program.casefold().strip()
    chosen = next((one for one in offers if wanted in (one.definition.id, one.definition.title.casefold())), None)
    if chosen is None:
        message = f"There is no program {program[:32]!r}. There are {', '.join(one.definition.id for one in offers)}."
        raise VoxbridgeError(Code.NOT_FOUND, message, field="program")
    card = await ctx.terminals(asked.Start(by=_by(ctx), definition=chosen.definition.id, name=name))
    await ctx.terminals(asked.Activate(by=_by(ctx), terminal=card.id))
    return {**_shown(card), "spoken": f"{card.name} is started."}


@function(timeout_s=60, listed=False)
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
    card = named.find(await _cards(ctx), terminal)
    if card.kind != "agent":
        message = f"{card.name} runs {card.definition}, where a line is a command. Use run_in_terminal, which asks first."
        raise VoxbridgeError(Code.PERMISSION_DENIED, message, field="terminal")
    return await _sent(ctx, card, text)


@function(timeout_s=60, listed=False, approval="always")
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
    card = named.find(await _cards(ctx), terminal)
    if card.kind == "agent":
        raise VoxbridgeError(
            Code.INVALID_ARGUMENT, f"{card.name} is no shell. Use send_to_terminal to tell it something.", field="terminal"
        )
    if "\n" in command.strip() or "\r" in command.strip():
        raise VoxbridgeError(Code.INVALID_ARGUMENT, "A command is one line. Give one at a time.", field="command")
    return await _sent(ctx, card, command)


@function(timeout_s=15, listed=False, idempotent=False)
async def send_key(
    key: Key,
    ctx: Context,
    terminal: Terminal = "",
    times: Annotated[int, Meta(ge=1, le=20)] = 1,
    about: Annotated[str, Meta(max_length=300), Local(None)] = "",
) -> dict[str, Any] | Proposal:
    """Press a key in a terminal: to stop a program, to choose, or to answer its question.

    Args:
        key: The key; ctrl-c stops a program.
        terminal: Name of the terminal; none: the active one.
        times: How often.
        about: Question of the program that the key answers.

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
    card = named.find(await _cards(ctx), terminal)
    if card.state.phase == "blocked" and key not in REFUSALS:
        # Begun again only after a yes: this function is not idempotent, so a crash does not begin it again.
        if ctx.attempt == 1:
            question = f"{card.name} {_doing(card)[:SPOKEN_WORDS_ASKED]}. Shall I press {key}? Please say yes or no."
            given = {"key": key, "terminal": card.id, "times": times, "about": card.state.words}
            return Proposal(arguments=given, question=question)
        if about != card.state.words:
            raise VoxbridgeError(Code.CONFLICT, f"{card.name} asks something else by now, so nothing was pressed.", field="terminal")
    done = await ctx.terminals(asked.SendKey(by=_by(ctx), terminal=card.id, key=key, times=times))
    if done.outcome == "not_submitted":
        raise VoxbridgeError(Code.CONFLICT, f"The key was not pressed in {card.name}. {done.reason}", field="terminal")
    return {**_shown(card), "key": key, "times": times, "spoken": f"I pressed {key.replace('-', ' ')} in {card.name}."}


@function(kind="async", effect="read", timeout_s=WAIT_LIMIT_S + 60, listed=False)
async def wait_for_terminal(
    ctx: Context,
    terminal: Terminal = "",
    until: Literal["done", "question", "end"] = "done",
    seconds: Annotated[int, Meta(ge=1, le=WAIT_LIMIT_S)] = WAIT_LIMIT_S,
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
    card = named.find(await _cards(ctx), terminal)
    condition: asked.Until = {"done": "turn_end", "question": "blocked", "end": "exit"}[until]  # type: ignore[assignment]
    ends = time.monotonic() + seconds
    while True:
        timeout_s = max(0.1, min(asked.WAIT_LIMIT_S, ends - time.monotonic()))
        waited = await ctx.terminals(asked.Wait(by=_by(ctx), terminal=card.id, until=condition, timeout_s=timeout_s))
        if waited.met or waited.state.phase in ("blocked", "dead") or time.monotonic() >= ends:
            break
    card = named.find(await _cards(ctx), card.id)
    said = f"{card.name} {_doing(card)}."
    return {**_shown(card), "met": waited.met, "announce": said, "spoken": said}


@function(effect="destructive", timeout_s=45, listed=False)
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
    card = named.find(await _cards(ctx), terminal)
    closed = await ctx.terminals(asked.Close(by=_by(ctx), terminal=card.id))
    left = f" {len(closed.left)} of its programs could not be ended." if closed.left else ""
    return {"terminal": card.id, "name": card.name, "left": list(closed.left), "spoken": f"{card.name} is closed.{left}"}


def end_of(text: str) -> str:
    """Return what is told of a screen: its last lines, in one."""
    last = [line for line in text.splitlines() if line.strip()][-SPOKEN_LINES:]
    return " ".join(" ".join(last).split())[-SPOKEN_CHARACTERS:]


def _owned(ctx: Context) -> str:
    if ctx.account != OWNER:
        message = "Terminals run with the rights of whoever started Voxbridge, so only the installation's own account reaches them."
        raise VoxbridgeError(Code.PERMISSION_DENIED, message, field="account")
    return _by(ctx)


def _by(ctx: Context) -> str:
    """Return by whose decision a terminal is asked: the call, in its session."""
    return f"{ctx.sid or OWNER}/{ctx.call_id}"[:128]


async def _cards(ctx: Context) -> tuple[Card, ...]:
    return (await ctx.terminals(asked.ListTerminals(by=_owned(ctx)))).terminals


async def _sent(ctx: Context, card: Card, text: str) -> dict[str, Any]:
    sent = await ctx.terminals(asked.Send(by=_by(ctx), terminal=card.id, text=text))
    if sent.outcome == "not_submitted":
        raise VoxbridgeError(Code.CONFLICT, f"{card.name} did not take it. {sent.reason}", field="terminal")
    await ctx.terminals(asked.Activate(by=_by(ctx), terminal=card.id))
    return {**_shown(card), "text": text, "proof": sent.proof, "removed": sent.removed, "spoken": f"{card.name} has it."}


def _doing(card: Card) -> str:
    if card.state.phase == "blocked":
        question = f": {card.state.words}" if card.state.words and card.state.reason != "auth" else ""
        return f"{_ASKS.get(card.state.reason, 'asks something')}{question}"
    if card.state.phase == "done" and card.state.reason == "error":
        return "is done, with an error"
    return _PHASES[card.state.phase]


def _shown(card: Card) -> dict[str, Any]:
    return {
        "terminal": card.id,
        "name": card.name,
        "program": card.definition,
        "state": card.state.phase,
        "words": card.state.words,
        "needs_you": card.needs_you,
    }

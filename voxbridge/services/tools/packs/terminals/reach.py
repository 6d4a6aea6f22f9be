"""Reaching a terminal for a call: who may and by whose decision, what is read and typed there, and what is told of it."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any, Final

from voxbridge.services.tools.context import Context
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.secrets.access_tokens import LOCAL
from voxbridge.shared.terminals import questions as asked
from voxbridge.shared.terminals.model import APPROVE, Card

OWNER: Final = LOCAL
"""Account of the installation itself; those of tokens are others."""

SPOKEN_LINES: Final = 3
SPOKEN_CHARACTERS: Final = 220
WAIT_LIMIT_S: Final = 1_800
"""Seconds that a wait lasts at most."""

SETTLED_S: Final = 1.0
"""Seconds that a state must last to be told."""


def end_of(text: str) -> str:
    """Return what is told of a screen: its last lines, in one."""
    last = [line for line in text.splitlines() if line.strip()][-SPOKEN_LINES:]
    return " ".join(" ".join(last).split())[-SPOKEN_CHARACTERS:]


def owned(ctx: Context) -> str:
    """Return by whose decision a terminal is asked. Raises `PERMISSION_DENIED` for another account than the installation's own."""
    if ctx.account != OWNER:
        message = "Terminals run with the rights of whoever started Voxbridge, so only the installation's own account reaches them."
        raise VoxbridgeError(Code.PERMISSION_DENIED, message, field="account")
    return decided_by(ctx)


def decided_by(ctx: Context) -> str:
    """Return by whose decision a terminal is asked: the call, in its session."""
    return f"{ctx.sid or OWNER}/{ctx.call_id}"[:128]


async def cards_of(ctx: Context) -> tuple[Card, ...]:
    """Return the terminals. Raises as `owned` does."""
    return (await ctx.terminals(asked.ListTerminals(by=owned(ctx)))).terminals


async def send(ctx: Context, card: Card, text: str) -> dict[str, Any]:
    """Type a text into a program, and return what is told of it. Raises `CONFLICT` if the program did not take it."""
    sent = await ctx.terminals(asked.Send(by=decided_by(ctx), terminal=card.id, text=text))
    if sent.outcome == "not_submitted":
        raise VoxbridgeError(Code.CONFLICT, f"{card.name} did not take it. {sent.reason}", field="terminal")
    await ctx.terminals(asked.Activate(by=decided_by(ctx), terminal=card.id))
    return {**shown(card), "text": text, "proof": sent.proof, "removed": sent.removed, "spoken": f"{card.name} has it."}


async def approves(ctx: Context, card: Card) -> str:
    """Return the key that says yes to a program."""
    offers = (await ctx.terminals(asked.ListDefinitions(by=owned(ctx)))).offers
    return next((one.definition.approve for one in offers if one.definition.id == card.definition), APPROVE)


async def until_done(ctx: Context, card: Card) -> None:
    """Wait until a program is done. One that asks something meanwhile is waited for: a watch tells that it does."""
    ends = time.monotonic() + WAIT_LIMIT_S
    await asyncio.sleep(SETTLED_S)  # what it was told a moment ago may not have begun
    while True:
        waited = await ctx.terminals(asked.Wait(by=decided_by(ctx), terminal=card.id, until="idle", timeout_s=asked.WAIT_LIMIT_S))
        if waited.met:
            return
        if waited.state.phase == "dead":
            raise VoxbridgeError(Code.CONFLICT, f"{card.name} has ended before it was done.", field="source")
        if time.monotonic() >= ends:
            message = f"{card.name} was not done within {WAIT_LIMIT_S // 60} minutes."
            raise VoxbridgeError(Code.TIMED_OUT, message, field="source", limit=WAIT_LIMIT_S)


async def output_of(ctx: Context, card: Card, lines: int) -> asked.Seen:
    """Return what a shell's last command wrote, what another program wrote since it was last told something, or the last lines."""
    view: asked.View = "command" if card.kind == "shell" else "turn"
    with suppress(VoxbridgeError):  # its shell may mark no commands
        seen = await ctx.terminals(asked.Read(by=decided_by(ctx), terminal=card.id, view=view, lines=lines))
        if seen.text.strip():
            return seen
    return await ctx.terminals(asked.Read(by=decided_by(ctx), terminal=card.id, view="scrollback", lines=lines))


def shown(card: Card) -> dict[str, Any]:
    """Return what a result says of a terminal."""
    return {
        "terminal": card.id,
        "name": card.name,
        "program": card.definition,
        "state": card.state.phase,
        "words": card.state.words,
        "needs_you": card.needs_you,
    }

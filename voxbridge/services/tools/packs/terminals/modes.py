"""Declarations of the functions of a bridge's modes: where the captain's words go, and typing them as they are.

The mode itself is the session's (`voice/core/turns/spoken_modes.py`), which calls these without a model.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from voxbridge.services.tools.context import Context
from voxbridge.services.tools.core.inputs import Proposal
from voxbridge.services.tools.packs.terminals import named, reach
from voxbridge.services.tools.packs.terminals.functions import Terminal, Text
from voxbridge.services.tools.registry import Local, function
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.spoken_modes import Mode

QUESTION_WORDS: Final = 150
"""Characters of a command that are read back before it runs."""


@function(effect="read", timeout_s=15, listed=False)
async def switch_mode(mode: Mode, ctx: Context, auto: Annotated[bool, Local(None)] = True) -> dict[str, Any]:
    """Say where the user's words go: to you (ai), as text into the active terminal (chat), or as the name of a key (key).

    Args:
        mode: The mode.
        auto: False for words that are shown as a draft, which the user sends by hand.

    Examples:
        type everything I say into the terminal
        from now on my words are for claude
        my words go straight to the program
        I want to press keys by voice
        listen to my orders again
        stop typing what I say
    """
    cards = await reach.cards_of(ctx)
    active = next((card for card in cards if card.active), cards[0] if len(cards) == 1 else None)
    into = active.name if active is not None else "the terminal that is active"
    spoken = {
        "ai": "I take your orders.",
        "chat": f"What you say goes to {into}.",
        "key": f"Name a key, and I press it in {into}.",
    }[mode]
    if not auto:
        spoken = f"{spoken} It waits in the text box until you send it."
    return {"mode": mode, "auto": auto, "terminal": active.name if active is not None else "", "spoken": spoken}


@function(timeout_s=60, listed=False)
async def type_into_terminal(text: Text, ctx: Context, terminal: Terminal = "") -> dict[str, Any] | Proposal:
    """Type a text into a terminal word for word: to a coding agent at once, to a shell after the user has approved the command.

    Args:
        text: The words.
        terminal: Name of the terminal; none: the active one.

    Examples:
        type hello into the terminal
        type what I said
        write exactly this into codex
        put these words into the shell
        enter this text in claude
        type it word for word
    """
    card = named.find(await reach.cards_of(ctx), terminal)
    command = card.kind != "agent"
    if command and ("\n" in text.strip() or "\r" in text.strip()):
        raise VoxbridgeError(Code.INVALID_ARGUMENT, "A command is one line. Give one at a time.", field="text")
    if command and ctx.attempt == 1:
        question = f"Shall I run {text[:QUESTION_WORDS]} in {card.name}? Please say yes or no."
        return Proposal(arguments={"text": text, "terminal": card.id}, question=question, topic=card.id)
    return await reach.send(ctx, card, text)

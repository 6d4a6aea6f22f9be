"""Text and keys that are sent into a program, with proof that it took them, or the reason that it did not.

A refusal comes before anything is typed: into a program that ended, that asks something, that reads a password, that another person types
into, or that is another one than was read before. A text of several lines is pasted in brackets, where the program has them; where not, it
is refused, since each line would be submitted by itself.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from voxbridge.services.terminals.core import keys, text
from voxbridge.services.terminals.core import state as states
from voxbridge.services.terminals.terminal import Terminal
from voxbridge.shared.terminals.model import Submit
from voxbridge.shared.terminals.questions import Sent

TYPING_US: Final = 2_000_000
"""Time after a person's last key in which nothing else is typed."""

LOOK_S: Final = 0.1
"""Seconds between two looks whether an agent has started: no event tells of it."""

_PASTE: Final = (b"\x1b[200~", b"\x1b[201~")


def refused(terminal: Terminal, now: int, *, key: bool) -> str:
    """Return the reason that nothing may be sent now; empty if it may. A key may answer a question, a text may not."""
    if not terminal.alive:
        return f"The program is not running. {terminal.meta.ended or 'It has ended.'} Restart it."
    if terminal.held_by and now - terminal.typed_at < TYPING_US:
        return f"{terminal.held_by} is typing there. Wait until they are done."
    if terminal.stale:
        return "The program does not read what is typed. Look at it, or restart it."
    if key:
        return ""
    if terminal.echo_off():
        return "The program reads a password, which only a person may type."
    terminal.look()
    state = states.state(terminal.known)
    if state.phase == "blocked":
        return f"The program asks something first: {state.words or state.reason or 'see its screen'}. Answer it by a key."
    return ""


async def send(terminal: Terminal, said: str, how: Submit, now: int, *, submit: bool) -> Sent:
    """Type a text, and submit it; return whether the program took it, and how that is known. Waits for an agent that is starting up."""
    while terminal.alive and not terminal.has_started():
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_S):
                await terminal.news.wait()
    if reason := refused(terminal, now, key=False):
        return Sent(outcome="not_submitted", reason=reason)
    clean, removed = text.typed(said)
    if not clean.strip():
        return Sent(outcome="not_submitted", reason="Nothing is left of the text that can be seen.", removed=removed)
    brackets = terminal.screen.mode("bracketed_paste")
    if "\n" in clean.rstrip("\n") and not brackets:
        reason = "The program takes one line at a time, and each line of this text would be submitted by itself. Send one line."
        return Sent(outcome="not_submitted", reason=reason, removed=removed)
    body = clean.rstrip("\n").encode()
    if not terminal.typed(_PASTE[0] + body + _PASTE[1] if brackets else body):
        return Sent(outcome="not_submitted", reason="The program does not read what is typed.", removed=removed)
    if not submit:
        return Sent(outcome="typed", removed=removed)
    await asyncio.sleep(how.gap_ms / 1_000)  # a program that takes a paste apart takes an Enter behind it at once as part of it
    for _ in range(1 + how.again):
        before, offset = states.state(terminal.known), terminal.ring.count
        started = terminal.commands.begun
        terminal.typed(keys.encode("enter"))
        if proof := await _proof(terminal, before.since, offset, started, how.proof_ms / 1_000):
            terminal.meta.submitted = offset
            return Sent(outcome="submitted", proof=proof, removed=removed)
    reason = "The text was typed, and nothing shows that the program took it. Look at its screen."
    return Sent(outcome="not_submitted", reason=reason, removed=removed)


async def press(terminal: Terminal, name: str, times: int, now: int) -> Sent:
    """Press a key; raises `INVALID_ARGUMENT` for one that is not known."""
    code = keys.encode(name, application_cursor=terminal.screen.mode("application_cursor"))
    if reason := refused(terminal, now, key=True):
        return Sent(outcome="not_submitted", reason=reason)
    if not terminal.typed(code * times):
        return Sent(outcome="not_submitted", reason="The program does not read what is typed.")
    return Sent(outcome="typed")


async def _proof(terminal: Terminal, since: int, offset: int, started: int | None, wait_s: float) -> str:
    """Wait for a sign that the program took a line; empty if none came."""
    deadline = asyncio.get_running_loop().time() + wait_s
    marks = bool(terminal.meta.integration) or terminal.known.words.get("program") is not None
    while True:
        news = terminal.news
        state = states.state(terminal.known)
        if terminal.commands.begun != started:
            return "The shell says that a command began."
        if not terminal.alive:
            return "The program ended on it."
        if state.source == "program" and state.since > since and state.phase in ("working", "blocked", "done"):
            return f"The program says that it is {state.phase}."
        if not marks and terminal.ring.count > offset:
            return "The program wrote something after Enter."
        left = deadline - asyncio.get_running_loop().time()
        if left <= 0:
            # A shell that shows a new prompt without a command took an empty line, or goes on reading one.
            return "The program wrote something after Enter." if terminal.ring.count > offset else ""
        try:
            async with asyncio.timeout(left):
                await news.wait()
        except TimeoutError:
            continue

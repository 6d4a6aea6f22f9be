"""Answers about one terminal that change neither it nor the list: its screen, views, what is sent into it, waits, and its state.

Owns the choice of the answer. Does not own how it is found (`reading`, `sending`, `core.state`).
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

import msgspec

from voxbridge.services.terminals import reading, sending
from voxbridge.services.terminals.core import state as states
from voxbridge.services.terminals.terminal import Terminal
from voxbridge.shared.clock import Clock
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.terminals import questions as asked
from voxbridge.shared.terminals.model import Submit

_MET: dict[asked.Until, tuple[str, ...]] = {
    "turn_end": ("idle", "done", "blocked", "dead"),
    "idle": ("idle", "done"),
    "blocked": ("blocked",),
    "exit": ("dead",),
}


async def answer(terminal: Terminal, question: msgspec.Struct, how: Submit, clock: Clock) -> msgspec.Struct | None:
    """Answer a question about a terminal; None for one that changes something. Raises what it is refused for."""
    if isinstance(question, asked.Attach):
        last = terminal.last
        columns, rows = terminal.screen.size
        return asked.Attached(run=last.run, offset=last.offset, columns=columns, rows=rows, snapshot=bytes(last.data))
    if isinstance(question, asked.Read):
        return reading.read(terminal, question)
    if isinstance(question, asked.Send):
        if question.seq is not None and (changed := terminal.changed_since(question.seq)):
            return asked.Sent(outcome="not_submitted", reason=changed)
        return await sending.send(terminal, question.text, how, clock.now_us(), submit=question.submit)
    if isinstance(question, asked.SendKey):
        return await sending.press(terminal, question.key, question.times, clock.now_us())
    if isinstance(question, asked.Wait):
        return await _waited(terminal, question, clock)
    if isinstance(question, asked.Explain):
        return asked.Explained(state=states.state(terminal.known), rungs=states.explain(terminal.known))
    return None


async def _waited(terminal: Terminal, question: asked.Wait, clock: Clock) -> asked.Waited:
    """Wait until something is so, it can be so no more, or the time is over."""
    if question.until == "text" and not question.text:
        raise VoxbridgeError(Code.INVALID_ARGUMENT, "To wait for a text, say which.", field="text")
    limit = min(question.timeout_s, asked.WAIT_LIMIT_S)
    begun = clock.now_us()
    met = False
    with suppress(TimeoutError):
        async with asyncio.timeout(limit):
            while not (met := _is_so(terminal, question)) and terminal.alive:
                await terminal.news.wait()
    return asked.Waited(
        met=met, state=states.state(terminal.known), text=question.text if met and question.until == "text" else "",
        ms=(clock.now_us() - begun) // 1_000, clamped=question.timeout_s > limit,
    )  # fmt: skip


def _is_so(terminal: Terminal, question: asked.Wait) -> bool:
    if question.until == "text":
        return any(question.text in line for line in terminal.screen.rows())
    return states.state(terminal.known).phase in _MET[question.until]

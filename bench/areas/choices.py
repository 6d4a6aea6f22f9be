"""Share of spoken requests for which the local language model chooses the right function (requests: `bench.tool_choice`).

python -m bench --only choices
"""

from __future__ import annotations

import asyncio
import statistics
from typing import Final

import httpx
import msgspec

from bench import machine, tool_choice
from bench.areas.audio import Found, Say
from bench.areas.local_model import running
from bench.report import Figure

ANSWER_S: Final = 120.0
FIRST_TRIES: Final = 3
"""Tries of the first request: it also reads the prompt, which can exceed `ANSWER_S` on a busy machine."""


class Choice(msgspec.Struct, frozen=True):
    """Request, and the function that the model called."""

    asked: str
    expected: str
    called: str
    right: bool
    seconds: float


async def choices(quick: bool, say: Say) -> Found:
    """Ask every request once."""
    cases = tool_choice.CASES[:6] if quick else tool_choice.CASES
    taken: list[Choice] = []
    before = machine.load_average()
    async with running() as service:
        with httpx.Client(base_url=f"{service.url}/v1", timeout=ANSWER_S, trust_env=False) as client:
            for attempt in range(FIRST_TRIES):
                try:
                    await asyncio.to_thread(tool_choice.ask, client, cases[0])
                except httpx.TimeoutException:
                    if attempt + 1 == FIRST_TRIES:
                        raise
                else:
                    break
            for case in cases:
                asked = next(str(one["content"]) for one in reversed(case.messages) if one["role"] == "user")
                say(f"choices: {asked}")
                called, arguments, words, seconds = await asyncio.to_thread(tool_choice.ask, client, case)
                right = tool_choice.judge(case, called, arguments, words)
                taken.append(Choice(asked, case.tool, called, right, round(seconds, 2)))
    count = sum(one.right for one in taken)
    figure = Figure(
        area="choices",
        what="spoken requests that the local model takes the right function for, or none",
        key="choices.right",
        unit="%",
        value=round(100 * count / len(taken), 1),
        needs="a warm prompt",
        note=f"{count} of {len(taken)}; median answer {statistics.median(one.seconds for one in taken):.2f} s, load {before:.1f}",
    )
    return [figure], {"choices": taken, "load": before}, []

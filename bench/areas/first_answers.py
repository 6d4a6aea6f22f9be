"""The first answers of a fresh installation, with the local models: quiet, and beside four busy loops.

    python -m bench --only first_answers

`voxbridge up` starts in a folder of its own, so that nothing was read before. A question is typed the moment it says that it is ready, and
a second one five seconds after the answer. Each time is from the message to the first words of the answer, as its reader gets them;
the note has the whole of it. In a second installation the loops start at that moment too. An answer that is not right, and a turn that ends
without one and without a word why, fails the run. Without an answer there is no figure, and the target is missed.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import nullcontext
from typing import Any, Final

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

from bench.areas.audio import Found, Say
from bench.installed import busy, installed
from bench.report import Figure
from bench.stack import StackError

QUESTIONS: Final = (("What is the capital of France?", "paris"), ("Who wrote Romeo and Juliet?", "shakespeare"))
LOOPS: Final = 4
PAUSE_S: Final = 5.0
ANSWER_S: Final = 120.0
SECOND_MS: Final = 700
BUSY_MS: Final = 15_000


class Answer(msgspec.Struct, frozen=True):
    """An answer: its first words and its end in ms after the question, its text, and what the session said while it waited, with its ms."""

    first_ms: float | None
    whole_ms: float
    text: str
    told: str = ""
    told_ms: float = 0.0


async def first_answers(_quick: bool, say: Say) -> Found:
    """Ask two questions of each of two installations; a quick run asks the same."""
    answers: dict[str, list[Answer]] = {}
    for loops in (0, LOOPS):
        say(f"first_answers: a fresh installation beside {loops} busy loops")
        async with installed({}) as product:
            with busy(loops) if loops else nullcontext():
                answers[str(loops)] = await _asked(product.url)
    quiet, beside = answers["0"], answers[str(LOOPS)]
    what = "typed question to a fresh installation → first words, local models"
    found = [
        _row(f"first {what}", "first", quiet[0]),
        _row(f"second {what}", "second", quiet[1], SECOND_MS),
        _row(f"first {what}, beside {LOOPS} busy loops", "busy.first", beside[0], BUSY_MS),
        _row(f"second {what}, beside {LOOPS} busy loops", "busy.second", beside[1]),
    ]
    return found, {"answers": answers}, []


async def _asked(url: str) -> list[Answer]:
    async with connect(url, subprotocols=[Subprotocol("voxbridge.v1")], max_size=None) as socket:
        await socket.send('{"type": "start", "mode": "local", "output": "text"}')
        await _next(socket, "setup_complete")
        answers = []
        for question, right in QUESTIONS:
            answer = await _answered(socket, question)
            if right not in answer.text.casefold() and (answer.text or not answer.told):
                raise StackError(f"{question!r} was answered with {answer.text[:80]!r}.")
            answers.append(answer)
            await asyncio.sleep(PAUSE_S)
        await socket.send('{"type": "end"}')
    return answers


async def _answered(socket: ClientConnection, question: str) -> Answer:
    began = time.perf_counter()
    await socket.send(msgspec.json.encode({"type": "text", "text": question}).decode())
    text = ""
    told, told_ms, first_ms = "", 0.0, None
    while True:
        message = await _next(socket)
        now = (time.perf_counter() - began) * 1_000
        if message.get("turn", 0) > 0 and (message["type"] == "text" or message.get("role") == "assistant"):  # turn 0 is the greeting
            first_ms = now if first_ms is None and message["text"] else first_ms
            text = str(message["text"])
        elif message["type"] == "state" and message.get("reason") and not told:
            told, told_ms = str(message["reason"]), now
        elif message["type"] == "turn_complete" and message["turn"] > 0:
            return Answer(first_ms, now, text, told, told_ms)


async def _next(socket: ClientConnection, kind: str = "") -> dict[str, Any]:
    while True:
        message = await asyncio.wait_for(socket.recv(), ANSWER_S)
        if isinstance(message, str):
            said: dict[str, Any] = msgspec.json.decode(message)
            if not kind or said["type"] == kind:
                return said


def _row(what: str, key: str, answer: Answer, target: float | None = None) -> Figure:
    note = f"all of it after {answer.whole_ms / 1_000:.1f} s"
    if answer.told:
        note += f"; after {answer.told_ms / 1_000:.1f} s it said: {answer.told}"
    return Figure(area="first_answers", what=what, key=f"first_answers.{key}", unit="ms", value=answer.first_ms, target=target, note=note)

"""The stand-in for Gemini Live of the handoffs, as a separate process: a first agent that answers once and then hands over, and a second
one whose audio carries the time of the handoff and whether it knows the history.

    python -m bench.peers.handoff_google FOLDER

Answers at once, so that only the framework is measured. Every other handoff comes with the notice that the session cannot be resumed for
now, which the API's reference allows while functions run. Writes its URL as `tests.fakes.gemini.process` does.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from pathlib import Path
from typing import Any, Final

from bench.peers.adapters.wire import SECOND
from bench.peers.echo import Sent, payload
from tests.fakes.gemini.server import Call, GeminiServer, Options, Session, Turn

NAME: Final = "Ann"
UNRESUMABLE: Final = 1
KNOWS: Final = 2
SILENCE_MS: Final = 100
_FRAMES: Final = 3
"""Frames in one message: together 40 ms at 24 kHz."""


class Script:
    """The replies of both agents.

    The second agent's audio carries the time of the tool call, in place of a session the µs of CPU that this process has spent since, and
    as its number the flags `UNRESUMABLE` and `KNOWS`."""

    def __init__(self) -> None:
        self._called_ns = 0
        self._called_cpu_ns = 0
        self._handoffs = 0

    def reply(self, session: Session) -> Turn | None:
        """Return the next turn of a session's model."""
        if SECOND in session.instruction:
            knows = KNOWS if any(NAME in line.text for line in session.history) else 0
            news = UNRESUMABLE if self._handoffs % 2 == 0 else 0
            spent_us = (time.process_time_ns() - self._called_cpu_ns) // 1_000
            frame = payload(Sent(spent_us, knows | news, self._called_ns))
            return Turn(says="Second.", pcm=frame * _FRAMES)
        if session.model.turns == 0:
            return Turn(hears=f"I am {NAME}.", says="First.")
        (tool,) = declared(session.setup)
        self._handoffs += 1
        self._called_ns = time.perf_counter_ns()
        self._called_cpu_ns = time.process_time_ns()
        return Turn(calls=[Call(tool["name"], arguments(tool))], unresumable=self._handoffs % 2 == 0)


def declared(setup: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the handoff functions of a setup."""
    found = [one for tool in setup.get("tools", []) for one in tool.get("functionDeclarations", [])]
    return [one for one in found if one["name"] in ("hand_over", "handoff_conversation")]


def arguments(tool: dict[str, Any]) -> dict[str, Any]:
    """Return arguments for a function: the first value of an enum, a fixed word for a text."""
    schema = tool.get("parametersJsonSchema") or tool.get("parameters") or {}
    wanted = set(schema.get("required", ()))
    return {name: (one.get("enum") or ["advice"])[0] for name, one in schema.get("properties", {}).items() if name in wanted}


async def serve(folder: Path) -> None:
    """Run until SIGTERM."""
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    async with GeminiServer(folder, Options(keep_audio=False, silence_ms=SILENCE_MS)) as server:
        server.reply = Script().reply
        partial = folder / "url.new"
        partial.write_text(f"{server.url}\n{server.ca_file}\n")
        partial.rename(folder / "url")
        await over.wait()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))

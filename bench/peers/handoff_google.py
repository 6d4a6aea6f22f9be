"""The stand-in for Gemini Live of the handoffs, a process of its own: a first agent that answers once and then hands over, and a second
one that says when it was asked to and how much it knows.

    python -m bench.peers.handoff_google FOLDER

Answers at once, so that what is measured is the framework's. Every other handoff comes with the news that the session cannot be resumed
for now, as the API's reference says may happen while functions run. Writes its URL as `tests.fakes.gemini.process` does.
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
"""40 ms at 24 kHz, one message."""


class Script:
    """Who says what. The second agent's audio carries when its call was made, the µs of CPU that this process spent since in place of a
    session, and in its number what `UNRESUMABLE` and `KNOWS` say."""

    def __init__(self) -> None:
        self._called_ns = 0
        self._called_cpu_ns = 0
        self._handoffs = 0

    def reply(self, session: Session) -> Turn | None:
        """What a session's model says next."""
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
    """The functions of a setup that hand over."""
    found = [one for tool in setup.get("tools", []) for one in tool.get("functionDeclarations", [])]
    return [one for one in found if one["name"] in ("hand_over", "handoff_conversation")]


def arguments(tool: dict[str, Any]) -> dict[str, Any]:
    """What a model would say to a function: the first of what may be chosen, a word where words are asked for."""
    schema = tool.get("parametersJsonSchema") or tool.get("parameters") or {}
    wanted = set(schema.get("required", ()))
    return {name: (one.get("enum") or ["advice"])[0] for name, one in schema.get("properties", {}).items() if name in wanted}


async def serve(folder: Path) -> None:
    """Run until a signal."""
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

"""The stand-in for Gemini Live as a process of its own, for loads: echoes audio and remembers none of it.

    python -m tests.fakes.gemini_process FOLDER

Writes its URL to FOLDER/url once it listens, and its CA beside it; ends with its standard input, or when it is told to.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

from tests.fakes.gemini import GeminiServer
from tests.fakes.gemini_rules import Options


async def serve(folder: Path) -> None:
    """Run until a signal."""
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    async with GeminiServer(folder, Options(echo=True, keep_audio=False)) as server:
        partial = folder / "url.new"
        partial.write_text(f"{server.url}\n{server.ca_file}\n")
        partial.rename(folder / "url")
        await over.wait()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))

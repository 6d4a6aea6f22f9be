"""The process of llama.cpp: loads the weights, then serves its HTTP API on a loopback port until it is ended.

Its constructor holds Python's interpreter lock for seconds, and a fault in it ends its process: both stay out of the service
this way. The settings come as one line of JSON on standard input, so that the key is in no process list. A crash here loses the
answers in work and the warm prompts.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any, Final

import msgspec

# Threads that wait for each other spin for some ten microseconds and then sleep. They would spin for milliseconds: beside other work the
# processor is then lost to a thread that waits for one that may not run, and a token takes several times as long.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")
import xllamacpp

BATCH_TOKENS: Final = 64


class Settings(msgspec.Struct, frozen=True):
    """What the process needs; `context` is in tokens of one slot, `prompts` the folder that slots are saved to, if any."""

    weights: str
    key: str
    port: int
    threads: int
    slots: int
    context: int
    prompts: str = ""


def parameters(settings: Settings) -> Any:
    """The settings in llama.cpp's terms."""
    params = xllamacpp.CommonParams()
    params.model.path = settings.weights
    params.n_ctx, params.n_parallel = settings.context * settings.slots, settings.slots
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings.threads
    # A batch is not interrupted: a small one lets a cancelled prompt go within a second, and other slots speak meanwhile.
    params.n_batch = params.n_ubatch = BATCH_TOKENS
    params.port, params.api_keys = settings.port, [settings.key]
    if settings.prompts:
        params.slot_save_path = f"{settings.prompts}/"
    params.ui, params.endpoint_slots, params.offline = False, True, True
    # Slots are chosen by the service, so the engine's own store of idle prompts would only take memory.
    params.cache_ram_mib, params.cache_idle_slots = 0, False
    params.verbosity = -1
    return params


def main() -> None:
    """Serve until the process is ended."""
    settings = msgspec.json.decode(sys.stdin.buffer.readline(), type=Settings)
    try:
        _server = xllamacpp.Server(parameters(settings))
    except RuntimeError as error:
        sys.exit(f"it cannot load {settings.weights}: {error}")
    threading.Event().wait()


if __name__ == "__main__":
    main()

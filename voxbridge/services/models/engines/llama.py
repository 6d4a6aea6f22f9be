"""The llama.cpp process: loads the weights, then serves its HTTP API on a loopback port until it is ended.

llama.cpp's constructor holds Python's interpreter lock for seconds, and a fault in it ends its process; a process of its own keeps both out
of the service. The settings come as one line of JSON on standard input, so that the key appears in no process list. A crash here loses the
answers in progress and the warm prompts.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any, Final

import msgspec

# Waiting threads spin for some ten microseconds and then sleep. The default is milliseconds: beside other work, a thread then spins while
# the thread it waits for gets no processor, and a token takes several times as long.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")
import xllamacpp

BATCH_TOKENS: Final = 32
"""Tokens that are read at once. A batch cannot be interrupted, so what is asked meanwhile waits for its end: half a second. Reading in
batches of 64 is no faster, of 16 it is slower."""


class Settings(msgspec.Struct, frozen=True):
    """Settings of the process; `context` is in tokens of one slot, `prompts` the folder that slots are saved to, if any."""

    weights: str
    key: str
    port: int
    threads: int
    slots: int
    context: int
    prompts: str = ""


def parameters(settings: Settings) -> Any:
    """Convert the settings to llama.cpp's parameters."""
    params = xllamacpp.CommonParams()
    params.model.path = settings.weights
    params.n_ctx, params.n_parallel = settings.context * settings.slots, settings.slots
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings.threads
    params.n_batch = params.n_ubatch = BATCH_TOKENS
    params.port, params.api_keys = settings.port, [settings.key]
    if settings.prompts:
        params.slot_save_path = f"{settings.prompts}/"
    params.ui, params.endpoint_slots, params.offline = False, True, True
    # The service chooses the slots, so the engine's own cache of idle prompts would only take memory.
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

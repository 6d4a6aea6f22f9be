"""The process of llama.cpp: loads the weights, serves its HTTP API on a free loopback port, ends when its parent does.

Its constructor holds Python's interpreter lock for seconds, and a fault in it ends its process: both stay out of the service
this way. The settings come as one line of JSON on standard input, so that the key is in no process list; the address goes
out as one line of JSON. A crash here loses the answers in work and the warm prompts.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Final

import msgspec
import xllamacpp

BATCH_TOKENS: Final = 64


class Settings(msgspec.Struct, frozen=True):
    """What the process needs; `context` is in tokens of one slot."""

    weights: str
    key: str
    threads: int
    slots: int
    context: int


class Started(msgspec.Struct, frozen=True):
    """Where it listens, or why it does not."""

    address: str = ""
    error: str = ""


def parameters(settings: Settings) -> Any:
    """The settings in llama.cpp's terms."""
    params = xllamacpp.CommonParams()
    params.model.path = settings.weights
    params.n_ctx, params.n_parallel = settings.context * settings.slots, settings.slots
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings.threads
    # A batch is not interrupted: a small one lets a cancelled prompt go within a second, and other slots speak meanwhile.
    params.n_batch = params.n_ubatch = BATCH_TOKENS
    params.api_keys = [settings.key]
    params.ui, params.endpoint_slots, params.offline = False, True, True
    # Slots are chosen by the service, so the engine's own store of idle prompts would only take memory.
    params.cache_ram_mib, params.cache_idle_slots = 0, False
    params.verbosity = -1
    return params


def main() -> None:
    """Serve until standard input ends."""
    settings = msgspec.json.decode(sys.stdin.buffer.readline(), type=Settings)
    try:
        server = xllamacpp.Server(parameters(settings))
    except RuntimeError as error:
        sys.stdout.buffer.write(msgspec.json.encode(Started(error=str(error))) + b"\n")
        sys.exit(1)
    sys.stdout.buffer.write(msgspec.json.encode(Started(address=server.listening_address)) + b"\n")
    sys.stdout.flush()
    sys.stdin.buffer.read()
    # Its threads may be in the middle of a token; there is nothing to save.
    os._exit(0)


if __name__ == "__main__":
    main()

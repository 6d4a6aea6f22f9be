"""Structures that msgspec has read before threads do.

msgspec reads the fields of a structure when it is first decoded, and keeps what it found while it still looks for the rest. Two threads
that decode it for the first time at once end the process: the second one takes a field that is not there yet, which is a null pointer
(msgspec 0.22). A thread that opens a file while a message arrives is enough. So each process reads all its structures at its start.
"""

from __future__ import annotations

import msgspec


def read_all(prefix: str = "voxbridge.") -> list[type[msgspec.Struct]]:
    """Have msgspec read every structure that is loaded and whose module's name begins so. Return those that cannot be decoded at all."""
    undecodable: list[type[msgspec.Struct]] = []
    seen: set[type[msgspec.Struct]] = set()
    waiting: list[type[msgspec.Struct]] = [msgspec.Struct]
    while waiting:
        for structure in waiting.pop().__subclasses__():
            if structure in seen:
                continue
            seen.add(structure)
            waiting.append(structure)
            if structure.__module__.startswith(prefix):
                try:
                    msgspec.json.Decoder(structure)
                except (TypeError, NameError):  # a type for no message: of names that are known to type checkers alone, or two of one shape
                    undecodable.append(structure)
    return undecodable

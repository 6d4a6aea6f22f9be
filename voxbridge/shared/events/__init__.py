"""Every event of the system, one module per writer. Reading this folder teaches the system.

| module | writer |
|---|---|
| `gateway` | what clients asked for, said and reported |
| `voice` | the life of a session and of its turns |
| `tools` | the life of calls and tasks |
| `keys` | keys of accounts, and configurations that their owners approved |
| `awareness` | what is known of a user's screen |
| `terminals` | the life of a terminal |
| `operator` | what was done to a whole session from outside |
| `journal` | the inputs each service took, in order |
| `envelope` | the wire form and the registry that all events share |
"""

from voxbridge.shared.events import awareness, gateway, journal, keys, operator, terminals, tools, voice
from voxbridge.shared.events.envelope import (
    KINDS,
    UNREADABLE,
    Event,
    Recorded,
    Unknown,
    Unreadable,
    decode,
    encode,
    event,
    kind_of,
    read,
    type_in,
    upcaster,
)

__all__ = [
    "KINDS",
    "UNREADABLE",
    "Event",
    "Recorded",
    "Unknown",
    "Unreadable",
    "awareness",
    "decode",
    "encode",
    "event",
    "gateway",
    "journal",
    "keys",
    "kind_of",
    "operator",
    "read",
    "terminals",
    "tools",
    "type_in",
    "upcaster",
    "voice",
]

"""Check at the start of a process that NATS lets it write its own events.

A publish that NATS refuses looks like one that got no answer: the reason arrives separately. So a process publishes one message that no
stream takes to its own branch of the log, and reports the result plainly. Nothing is stored; a crash here loses nothing.
"""

from __future__ import annotations

from typing import Final

from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.errors import NoRespondersError

from voxbridge.shared.bus.accounts import WRITERS
from voxbridge.shared.bus.connection import denied
from voxbridge.shared.errors import Code, VoxbridgeError

ANSWER_S: Final = 2.0
_NO_SESSION: Final = "0" * 32
_NO_STREAM: Final = {"Nats-Expected-Stream": "none"}
"""Header of a message that JetStream answers and stores nowhere."""


async def check_rights(nc: Client, name: str) -> None:
    """Raise `PERMISSION_DENIED` when NATS refuses the branch of the service `name`; any other lack of an answer is waited out elsewhere. A
    service that writes no events has none."""
    if name not in WRITERS:
        return
    subject = f"vx.s.{_NO_SESSION}.ev.{name}.i.rights.checked"
    try:
        await nc.request(subject, b"", timeout=ANSWER_S, headers=dict(_NO_STREAM))
    except (NoRespondersError, TimeoutError, NatsError):
        if refused := denied(nc):
            raise VoxbridgeError(
                Code.PERMISSION_DENIED,
                f"NATS lets the service {name} not write its own events ({refused[-1]}). Is VOXBRIDGE_NATS_SEED_FILE that of {name}?",
                field="VOXBRIDGE_NATS_SEED_FILE",
                retryable=False,
            ) from None

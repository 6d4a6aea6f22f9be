"""A look, as a process starts, at whether NATS lets it write what it is there to write.

A publish that NATS refuses looks like one that got no answer: the reason comes beside it. So a process publishes one message that
no stream takes to its own branch of the log, and says plainly what came of it. Nothing is stored; a crash here loses nothing.
"""

from __future__ import annotations

from typing import Final

from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.errors import NoRespondersError

from voxbridge.shared.bus.connection import denied
from voxbridge.shared.bus.permissions import RIGHTS
from voxbridge.shared.errors import Code, VoxbridgeError

ANSWER_S: Final = 2.0
_NO_SESSION: Final = "0" * 32
_NO_STREAM: Final = {"Nats-Expected-Stream": "none"}
"""JetStream answers a message with this header, and stores it nowhere."""


async def check_rights(nc: Client, name: str) -> None:
    """Raise `PERMISSION_DENIED` when NATS refuses the branch of the service `name`; silence for another reason is waited out elsewhere."""
    if name not in RIGHTS:
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

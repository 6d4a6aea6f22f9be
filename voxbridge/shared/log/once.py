"""Publishing an event whose id says that it is the same one again, such as that of a request with an idempotency key.

Such an id can be foretold, and the server takes an id once, whoever sends it. So an event that is acknowledged as one that is there already
is looked at: under another subject it is another service's, and the event is published with an id that nobody can foretell. It may then be
stored again by a retry; readers know it by the ids in it.
"""

from __future__ import annotations

import secrets

from nats.js.api import Header

from voxbridge.shared.log.reader import Log


async def publish_once(log: Log, sid: str, subject: str, payload: bytes, event_id: str, *, timeout_s: float) -> int:
    """Publish an event of a log once for its id, and return its position, or that of the first one.

    Raises `TimeoutError` and what the client raises, when it is not known whether the log has it.
    """
    for message_id in (event_id, f"{event_id}.{secrets.token_hex(8)}"):
        acked = await log.js.publish(subject, payload, timeout=timeout_s, headers={Header.MSG_ID.value: message_id})
        if not acked.duplicate or await log.subject_at(sid, acked.seq) in ("", subject):
            break
    return acked.seq

"""The things that there are now for an account, by the function and the argument that names them: the question of a session, and
the form of its answer. Owns no facts; executors know them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

import msgspec
from nats.aio.client import Client
from nats.errors import Error as NatsError

SUBJECT: Final = "vx.svc.tools.names"
ANSWER_S: Final = 0.25
"""Seconds for which a session waits."""

NAMES_LIMIT: Final = 64
"""Names of one kind that are told: the first ones."""

Things = Mapping[str, Mapping[str, tuple[str, ...]]]
_ANSWER: Final = msgspec.json.Decoder(dict[str, dict[str, tuple[str, ...]]])
_log = logging.getLogger(__name__)


class Asked(msgspec.Struct, frozen=True):
    """The question."""

    account: str


async def ask(nc: Client, account: str) -> Things | None:
    """Return what there is for an account; None when no executor answers within `ANSWER_S`: arguments are then as people say them."""
    try:
        answer = await nc.request(SUBJECT, msgspec.json.encode(Asked(account)), timeout=ANSWER_S)
        return _ANSWER.decode(answer.data)
    except (NatsError, OSError, TimeoutError, msgspec.DecodeError) as error:
        _log.warning("the names of things are not known: %s", str(error) or type(error).__name__)
        return None

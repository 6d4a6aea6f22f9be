"""The question whether a configuration's handlers can run: asked by a gateway when a page configures, answered by the tools service.

Owns the subject and the messages. The answer also has the tools service make a sandbox ahead for the session. Does not own the parsing
(`voxbridge.services.tools.sandbox`). A crash here loses a question, which may be asked again.
"""

from __future__ import annotations

from typing import Final

import msgspec
from nats.aio.client import Client
from nats.errors import Error as NatsError

from voxbridge.shared.errors import Code, Unavailable
from voxbridge.shared.platform.handlers import HandlerTool
from voxbridge.shared.platform.problems import Problem

SUBJECT: Final = "vx.svc.tools.handlers"
TIMEOUT_S: Final = 5.0


class HandlersWanted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The handlers to check, and the session that they are for; an empty one has no sandbox made."""

    tools: tuple[HandlerTool, ...]
    account: str = ""
    sid: str = ""


class HandlersChecked(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer: empty where every handler can run, else the first problem."""

    code: str = ""
    message: str = ""
    field: str = ""
    tool: str = ""
    identifier: str = ""


async def check(nc: Client, wanted: HandlersWanted) -> None:
    """Have the tools service check handlers. Raises `Problem` with tool, identifier and remedy, and `UNAVAILABLE`."""
    try:
        answer = await nc.request(SUBJECT, msgspec.json.encode(wanted), timeout=TIMEOUT_S)
        told = msgspec.json.decode(answer.data, type=HandlersChecked)
    except (NatsError, TimeoutError, msgspec.MsgspecError) as error:
        raise Unavailable(f"The handlers cannot be checked now ({type(error).__name__}).", retry_after_ms=1_000) from error
    if told.code:
        raise Problem(Code(told.code), told.message, field=told.field, tool=told.tool, identifier=told.identifier)

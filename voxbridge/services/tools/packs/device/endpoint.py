"""The answer to `vx.svc.tools.thermal`: the values of the sensors as JSON, or a typed error."""

from __future__ import annotations

from typing import Final

import msgspec
from nats.micro.request import Request

from voxbridge.services.tools.packs.device import sensors
from voxbridge.services.tools.packs.device.functions import told
from voxbridge.shared.errors import VoxbridgeError

SUBJECT: Final = "vx.svc.tools.thermal"


async def answer(request: Request) -> None:
    """Answer one request."""
    try:
        payload = msgspec.json.encode(told(await sensors.read()))
    except VoxbridgeError as error:
        await request.respond_error(error.code, error.message, data=msgspec.json.encode(error.as_dict()))
    else:
        await request.respond(payload)

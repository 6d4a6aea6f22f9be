"""REST route of the machine's sensors, which the tools service reads: the gateway may be on another machine, or see none of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from fastapi import APIRouter, Depends
from nats.errors import Error as NatsError
from nats.errors import NoRespondersError
from nats.micro.request import ERROR_CODE_HEADER as SERVICE_ERROR
from pydantic import BaseModel

from voxbridge.services.gateway.rest.errors import AWAY, TOKEN, refused
from voxbridge.services.gateway.rest.sessions import told
from voxbridge.shared.errors import Unavailable

if TYPE_CHECKING:
    from voxbridge.services.gateway.rest.context import Context

SUBJECT: Final = "vx.svc.tools.thermal"
ANSWER_S: Final = 6.0
"""Seconds that the tools service may take; longer than it waits for Termux."""


class ZoneView(BaseModel):
    """A place where a temperature is measured."""

    name: str
    celsius: float


class BatteryView(BaseModel):
    """A battery: percent, and `charging`, `discharging`, `full` or another state."""

    percent: int
    state: str


class Thermal(BaseModel):
    """The temperatures, the hottest first, and the battery. `source` is `termux` or `kernel`; `spoken` is what an agent says."""

    source: str
    temperature_c: float | None
    zones: list[ZoneView]
    battery: BatteryView | None
    spoken: str


def router(gateway: Context) -> APIRouter:
    """Build the route of a gateway."""
    made = APIRouter(prefix="/api/vox", tags=["installed"], dependencies=[Depends(gateway.access.caller)], responses=TOKEN)
    without: dict[int | str, dict[str, Any]] = {404: refused("The device has no sensors")}

    @made.get("/thermal", response_model=Thermal, responses=AWAY | without)
    async def thermal() -> Any:
        """The temperature of the device that functions run on, and its battery; 404 on one that has no sensors."""
        try:
            reply = await gateway.log.nc.request(SUBJECT, b"", timeout=ANSWER_S)
        except NoRespondersError as error:
            raise Unavailable("No tool executor is there to read the sensors.", retry_after_ms=1_000) from error
        except (TimeoutError, NatsError) as error:
            raise Unavailable("The tools service did not read the sensors in time.", retry_after_ms=1_000) from error
        if (reply.headers or {}).get(SERVICE_ERROR):
            raise told(reply.data)
        return msgspec.json.decode(reply.data)

    return made

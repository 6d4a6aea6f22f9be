"""REST routes of an installation: what is installed, health, figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from fastapi import APIRouter, Depends, Request, Response

from voxbridge.services.gateway import service_metrics
from voxbridge.services.gateway.rest import schemas
from voxbridge.services.gateway.rest.errors import ALL, AWAY, TOKEN
from voxbridge.shared.agents import voices as known_voices
from voxbridge.shared.condition import Condition
from voxbridge.shared.errors import Unavailable, VoxbridgeError

if TYPE_CHECKING:
    from voxbridge.services.gateway.rest.context import Context


def installed(gateway: Context) -> APIRouter:
    """Return the routes of what is installed."""
    router = APIRouter(prefix="/api/vox", tags=["installed"], dependencies=[Depends(gateway.access.caller)], responses=TOKEN)

    @router.get("/voices", response_model=schemas.Voices)
    async def voices() -> Any:
        """The voices that an agent can have: those of Gemini Live, and the local ones."""
        try:
            local = await gateway.readiness.voices()
        except Unavailable:
            local = None
        return {"voices": [msgspec.to_builtins(one) for one in known_voices.GEMINI], "local": local}

    @router.get("/status", response_model=schemas.Status, responses=AWAY)
    async def status() -> Any:
        """The modes that can be started, the number of sessions that have not ended, and whether their audio is kept."""
        found = await gateway.readiness.ask()
        keys = await gateway.keys.usable()
        return {
            "local_available": all(found[name].ok for name in ("voice", "models")),
            "gemini_available": keys["gemini"],
            "claude_available": keys["anthropic"],
            "openai_available": keys["openai"],
            "active_sessions": await gateway.sessions.live(),
            "recording": gateway.resources.config.recording,
        }

    @router.get("/functions", response_model=schemas.Functions, responses=AWAY)
    async def functions() -> Any:
        """The functions an agent can call, with their JSON Schemas."""
        found = await gateway.store.functions()
        return {"functions": [{name: getattr(one, name) for name in one.__struct_fields__} for one in found], "count": len(found)}

    return router


def operations(gateway: Context) -> APIRouter:
    """Return the routes for operators."""
    router = APIRouter(tags=["operations"])

    @router.get("/healthz", response_model=schemas.Alive)
    async def alive() -> Any:
        """The process runs."""
        return {"ok": True}

    @router.get("/readyz", response_model=schemas.Ready, responses={503: {"model": schemas.Ready, "description": "Something is missing"}})
    async def ready(request: Request, response: Response) -> Any:
        """Each dependency by name; who is not an administrator is told no more than whether all are there."""
        found = await gateway.readiness.ask()
        is_ready = all(one.ok for one in found.values())
        response.status_code = 200 if is_ready else 503
        try:
            await gateway.access.administrator(request)
        except VoxbridgeError:
            return {"ready": is_ready, "dependencies": {}}
        return {"ready": is_ready, "dependencies": {name: _stands(one) for name, one in found.items()}}

    @router.get(
        "/metrics",
        response_class=Response,
        responses={200: {"content": {"text/plain": {}}, "description": "Prometheus text"}} | TOKEN | ALL,
        dependencies=[Depends(gateway.access.administrator)],
    )
    async def metrics() -> Response:
        """Figures for Prometheus."""
        found = await service_metrics.ask(gateway.resources.events_nc)
        return Response(gateway.metrics.text(service_metrics.families(found)), media_type="text/plain; version=0.0.4; charset=utf-8")

    return router


def _stands(condition: Condition) -> dict[str, Any]:
    return {"ok": condition.ok, "state": condition.state, "detail": condition.detail}

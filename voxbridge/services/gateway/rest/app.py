"""The REST interface (docs/protocol.md, section 7): its routers, and how an error is answered. Nothing is lost in a crash here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from voxbridge.services.gateway.rest import (
    agents,
    awareness,
    config,
    device,
    errors,
    functions,
    macros,
    operations,
    pages,
    runs,
    schemas,
    session_routes,
    terminals,
    tokens,
    tours,
)
from voxbridge.services.gateway.rest.owners import chat, handshakes, secrets
from voxbridge.services.gateway.rest.owners import routes as owners
from voxbridge.shared.errors import VoxbridgeError

if TYPE_CHECKING:
    from voxbridge.services.gateway.rest.context import Context


def application(gateway: Context) -> FastAPI:
    """Build the HTTP application of a gateway."""
    app = FastAPI(
        title="Voxbridge",
        version="0.1.0",
        description="Reading the event log of voice sessions over HTTP. Sessions themselves are held on the socket `/ws/vox`.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
        redirect_slashes=False,
    )
    routers = (
        session_routes.router(gateway),
        operations.installed(gateway),
        operations.operations(gateway),
        functions.router(gateway),
        macros.router(gateway),
        runs.router(gateway),
        config.router(gateway),
        agents.router(gateway),
        tokens.router(gateway),
        owners.router(gateway),
        owners.approvals(gateway),
        secrets.router(gateway),
        handshakes.router(gateway),
        chat.router(gateway),
        awareness.router(gateway),
        device.router(gateway),
        tours.router(gateway),
        terminals.router(gateway),
    )
    for router in routers:
        app.router.routes += router.routes  # including a router would build each of its routes once more
    pages.mount(app)
    app.add_exception_handler(VoxbridgeError, errors.on_voxbridge)
    app.add_exception_handler(RequestValidationError, errors.on_validation)
    app.add_exception_handler(HTTPException, errors.on_http)
    described = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            described()["components"]["schemas"]["Problem"] = schemas.Problem.model_json_schema()
        return described()

    app.openapi = openapi  # type: ignore[method-assign]  # as the framework's documentation has it
    return app

"""The REST interface: sessions, what is installed, health, figures (docs/protocol.md, section 7). More routes are in `config`, `agents` and
`tokens`.

Owns the routes, their limits, and how an error is answered. Nothing is lost in a crash here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from fastapi import APIRouter, Depends, FastAPI, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from voxbridge.services.gateway import service_metrics
from voxbridge.services.gateway.door.access import owns
from voxbridge.services.gateway.rest import agents, config, pages, schemas, tokens
from voxbridge.services.gateway.rest.sessions import EVENTS_LIMIT, LIST_LIMIT, no_session
from voxbridge.shared.agents import voices as known_voices
from voxbridge.shared.audio.recordings import BINS_LIMIT, LONGEST_MS, Waveform
from voxbridge.shared.condition import Condition
from voxbridge.shared.errors import Code, Unavailable, VoxbridgeError
from voxbridge.shared.secrets.access_tokens import Terms

if TYPE_CHECKING:
    from voxbridge.services.gateway.rest.context import Context

_POSITION_LIMIT: Final = 2**63 - 2
_TIME_LIMIT_MS: Final = 2**43
_STATUS: Final = {
    Code.INVALID_MESSAGE: 400,
    Code.INVALID_ARGUMENT: 422,
    Code.UNAUTHENTICATED: 401,
    Code.PERMISSION_DENIED: 403,
    Code.TOO_LARGE: 422,
    Code.NOT_FOUND: 404,
    Code.CONFLICT: 409,
    Code.RATE_LIMITED: 429,
    Code.OVERLOADED: 503,
    Code.UNAVAILABLE: 503,
    Code.PROVIDER_UNAVAILABLE: 503,
    Code.TIMED_OUT: 504,
}
_BAD: Final[dict[int | str, dict[str, Any]]] = {422: {"model": schemas.Problem, "description": "An argument is out of its range"}}
_NONE: Final[dict[int | str, dict[str, Any]]] = {404: {"model": schemas.Problem, "description": "There is no such session"}}
_TOKEN: Final[dict[int | str, dict[str, Any]]] = {401: {"model": schemas.Problem, "description": "A token is needed"}}
_ALL: Final[dict[int | str, dict[str, Any]]] = {403: {"model": schemas.Problem, "description": "The administrators' token is needed"}}
_JOURNALS: Final[dict[int | str, dict[str, Any]]] = {403: {"model": schemas.Problem, "description": "Journals are for administrators"}}
_AWAY: Final[dict[int | str, dict[str, Any]]] = {503: {"model": schemas.Problem, "description": "Something the answer needs is away"}}
SessionId = Annotated[str, Path(pattern="^[0-9a-f]{32}$", description="32 lower-case hexadecimal digits.")]


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
    app.include_router(_sessions(gateway))
    app.include_router(_installed(gateway))
    app.include_router(_operations(gateway))
    app.include_router(config.router(gateway))
    app.include_router(agents.router(gateway))
    app.include_router(tokens.router(gateway))
    pages.mount(app)
    app.add_exception_handler(VoxbridgeError, _voxbridge_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(HTTPException, _http_error)
    return app


def _sessions(gateway: Context) -> APIRouter:
    caller = Depends(gateway.access.caller)
    router = APIRouter(prefix="/api/sessions", tags=["sessions"], responses=_TOKEN)

    async def readable(session_id: SessionId, terms: Terms | None = caller) -> None:
        """Raise the same error for a session of another account as for an unknown one, so that its existence is not revealed."""
        if terms is not None and not owns(terms, await gateway.sessions.account(session_id)):
            raise no_session()

    # Routes added here are open to everyone who may read the session.
    one = APIRouter(prefix="/{session_id}", dependencies=[Depends(readable)], responses=_BAD | _NONE | _AWAY)

    @router.get("", response_model=schemas.SessionPage, response_model_exclude_none=True, responses=_BAD | _AWAY)
    async def list_sessions(
        limit: Annotated[int, Query(ge=1, le=LIST_LIMIT)] = 50,
        before: Annotated[int | None, Query(ge=0, le=_TIME_LIMIT_MS)] = None,
        terms: Terms | None = caller,
    ) -> Any:
        """Sessions, newest first, of those that started before `before` (ms of the Unix clock). Who shows an access token is told of
        those of its account alone, so that a page may hold fewer than `limit`."""
        page = await gateway.sessions.page(limit=limit, before_ms=before)
        page["sessions"] = [session for session in page["sessions"] if owns(terms, session.get("account"))]
        return page

    @one.get("", response_model=schemas.SessionDetail, response_model_exclude_none=True)
    async def session(session_id: SessionId) -> Any:
        """A session and its transcript, folded from the log."""
        return await gateway.sessions.detail(session_id)

    @one.get("/events", response_model=schemas.EventPage, responses=_JOURNALS)
    async def session_events(
        session_id: SessionId,
        after: Annotated[int, Query(ge=0, le=_POSITION_LIMIT)] = 0,
        limit: Annotated[int, Query(ge=1, le=EVENTS_LIMIT)] = 256,
        journals: bool | None = None,
        terms: Terms | None = caller,
    ) -> Response:
        """Events of a session that follow position `after`, in log order; `limit` counts the journals even where they are left out.
        Journals are there for administrators alone, who get them unless they say `journals=false`."""
        if journals and terms is not None:
            # Journals hold the configuration of the session: prompts of its agents, endpoints, prices.
            message = "This access token cannot read journals: ask with journals=false, or with the administrators' token."
            raise VoxbridgeError(Code.PERMISSION_DENIED, message, field="journals")
        page = await gateway.sessions.events(session_id, after=after, limit=limit, journals=terms is None and journals is not False)
        return Response(page, media_type="application/json")

    @one.get("/silences", response_model=schemas.Silences)
    async def session_silences(session_id: SessionId) -> Any:
        """The silences of a session: each stretch of more than 2.5 s in which the user waited, with its cause and what to do."""
        return await gateway.sessions.silences(session_id)

    @one.get("/state", response_model=schemas.StateView)
    async def session_state(
        session_id: SessionId,
        at: Annotated[int | None, Query(ge=0, le=_POSITION_LIMIT, description="µs of the Unix clock, as in `ts` of an event.")] = None,
        seq: Annotated[int | None, Query(ge=0, le=_POSITION_LIMIT, description="A position of the log, instead of a time.")] = None,
    ) -> Response:
        """The state of a session as it was at a time or at a position, which counts where both are given; without either, as it is now."""
        return Response(await gateway.sessions.state(session_id, at=at, seq=seq), media_type="application/json")

    @one.get("/waveform", response_model=schemas.Waveform)
    async def session_waveform(
        session_id: SessionId,
        channel: Literal["in", "out"],
        bins: Annotated[int, Query(ge=1, le=BINS_LIMIT)] = 1_000,
        from_ms: Annotated[int, Query(ge=0, le=LONGEST_MS)] = 0,
        to_ms: Annotated[int | None, Query(ge=0, le=LONGEST_MS)] = None,
    ) -> Any:
        """Peaks of the caller's voice (`in`) or the agent's (`out`) on the clock of the session, in ms since it was requested."""
        began_ms = await gateway.sessions.began_us(session_id) // 1_000
        live = await gateway.sessions.is_live(session_id)
        asked = Waveform(sid=session_id, channel=channel, began_ms=began_ms, live=live, bins=bins, from_ms=from_ms, to_ms=to_ms)
        return Response(await gateway.sessions.waveform(asked), media_type="application/json")

    router.include_router(one)
    return router


def _installed(gateway: Context) -> APIRouter:
    router = APIRouter(prefix="/api/vox", tags=["installed"], dependencies=[Depends(gateway.access.caller)], responses=_TOKEN)

    @router.get("/voices", response_model=schemas.Voices)
    async def voices() -> Any:
        """The voices that an agent can have: those of Gemini Live, and the local ones."""
        try:
            local = await gateway.readiness.voices()
        except Unavailable:
            local = None
        return {"voices": [msgspec.to_builtins(one) for one in known_voices.GEMINI], "local": local}

    @router.get("/status", response_model=schemas.Status, responses=_AWAY)
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

    @router.get("/functions", response_model=schemas.Functions, responses=_AWAY)
    async def functions() -> Any:
        """The functions an agent can call, with their JSON Schemas."""
        found = await gateway.store.functions()
        return {"functions": [{name: getattr(one, name) for name in one.__struct_fields__} for one in found], "count": len(found)}

    return router


def _operations(gateway: Context) -> APIRouter:
    router = APIRouter(tags=["operations"])

    @router.get("/healthz", response_model=schemas.Alive)
    async def alive() -> Any:
        """The process runs."""
        return {"ok": True}

    @router.get("/readyz", response_model=schemas.Ready, responses={503: {"model": schemas.Ready, "description": "Something is missing"}})
    async def ready(request: Request, response: Response) -> Any:
        """Each dependency by name; who is no administrator is told no more than whether all are there."""
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
        responses={200: {"content": {"text/plain": {}}, "description": "Prometheus text"}} | _TOKEN | _ALL,
        dependencies=[Depends(gateway.access.administrator)],
    )
    async def metrics() -> Response:
        """Figures for Prometheus."""
        found = await service_metrics.ask(gateway.resources.events_nc)
        return Response(gateway.metrics.text(service_metrics.families(found)), media_type="text/plain; version=0.0.4; charset=utf-8")

    return router


def _stands(condition: Condition) -> dict[str, Any]:
    return {"ok": condition.ok, "state": condition.state, "detail": condition.detail}


async def _voxbridge_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, VoxbridgeError)  # noqa: S101 - registered for this class only
    headers = {"WWW-Authenticate": "Bearer"} if error.code is Code.UNAUTHENTICATED else None
    return _problem(error, _STATUS.get(error.code, 500), headers)


async def _validation_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for this class only
    first = error.errors()[0]
    field = str(first["loc"][-1])
    limits = first.get("ctx", {})
    limit = next((limits[name] for name in ("le", "ge", "pattern") if name in limits), None)
    problem = VoxbridgeError(Code.INVALID_ARGUMENT, f"`{field}`: {_sentence(first['msg'])}", field=field, limit=limit)
    return _problem(problem, 422)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for this class only
    path = request.url.path
    if error.status_code == 404 and not path.startswith("/api/") and "text/html" in request.headers.get("accept", ""):
        return pages.missing(path)
    code = Code.NOT_FOUND if error.status_code == 404 else Code.INVALID_MESSAGE
    return _problem(VoxbridgeError(code, _sentence(error.detail)), error.status_code, error.headers)


def _problem(error: VoxbridgeError, status: int, headers: Any = None) -> Response:
    headers = dict(headers or {})
    if error.retry_after_ms is not None:
        headers["Retry-After"] = str(max(1, error.retry_after_ms // 1_000))
    return JSONResponse(error.as_dict(), status_code=status, headers=headers)


def _sentence(text: str) -> str:
    return re.sub(r"\.?$", ".", text, count=1)

"""REST routes of sessions: the list, one session, its events, its state at a time, its silences and its waveform.

Owns the routes and who may read what. Does not own the reading of the log (`sessions`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from fastapi import APIRouter, Depends, Path, Query, Response

from voxbridge.services.gateway.door.access import owns
from voxbridge.services.gateway.rest import schemas
from voxbridge.services.gateway.rest.errors import AWAY, BAD, JOURNALS, NONE, TOKEN
from voxbridge.services.gateway.rest.sessions import EVENTS_LIMIT, LIST_LIMIT, no_session
from voxbridge.shared.audio.recordings import BINS_LIMIT, LONGEST_MS, Waveform
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.secrets.access_tokens import Terms

if TYPE_CHECKING:
    from voxbridge.services.gateway.rest.context import Context

_POSITION_LIMIT: Final = 2**63 - 2
_TIME_LIMIT_MS: Final = 2**43
SessionId = Annotated[str, Path(pattern="^[0-9a-f]{32}$", description="32 lower-case hexadecimal digits.")]


def router(gateway: Context) -> APIRouter:
    """Return the routes of sessions."""
    caller = Depends(gateway.access.caller)
    made = APIRouter(prefix="/api/sessions", tags=["sessions"], responses=TOKEN)

    async def readable(session_id: SessionId, terms: Terms | None = caller) -> None:
        """Raise the same error for a session of another account as for an unknown one, so that its existence is not revealed."""
        if terms is not None and not owns(terms, await gateway.sessions.account(session_id)):
            raise no_session()

    # Routes added here are open to everyone who may read the session.
    one = APIRouter(prefix="/{session_id}", dependencies=[Depends(readable)], responses=BAD | NONE | AWAY)

    @made.get("", response_model=schemas.SessionPage, response_model_exclude_none=True, responses=BAD | AWAY)
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

    @one.get("/events", response_model=schemas.EventPage, responses=JOURNALS)
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

    _add_insight(gateway, one)
    made.include_router(one)
    return made


def _add_insight(gateway: Context, one: APIRouter) -> None:
    """Add what explains a session: silences, states, sound."""

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

"""`/api/vox/awareness`: reports of pages, errors and facts, what agents are told of them, and the switches (docs/protocol.md, section 7).

Owns the routes. Does not own what is kept (`voxbridge.services.awareness`) nor how it is recorded. Nothing is lost in a crash here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
from fastapi import APIRouter, Depends, Path, Query, Request, Response
from pydantic import BaseModel

from voxbridge.services.gateway.core import reports
from voxbridge.services.gateway.rest.errors import ALL, AWAY, BAD, TOKEN, refused
from voxbridge.services.gateway.rest.functions import body_of, decoded
from voxbridge.shared.awareness import prompt
from voxbridge.shared.awareness.view import ERRORS, FACTS, PAGES, SOURCES
from voxbridge.shared.awareness_client import AskView, ask
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.secrets.access_tokens import LOCAL, Terms

if TYPE_CHECKING:
    from voxbridge.services.gateway.rest.context import Context

STATS_LIMIT: Final = 20
"""Pages of which visits are told, the most visited first."""

_SESSION: Final = "^[0-9a-f]{32}$"
_TEXT: Final = {"type": "string", "maxLength": reports.TEXT_LIMIT}
_OPTIONAL: Final = {
    **dict.fromkeys(reports.FIELDS, _TEXT),
    "metadata": {"type": "object", "properties": {"title": _TEXT}, "description": "`title` is kept, anything else is not."},
    "session": {"type": "string", "pattern": _SESSION, "description": "The session that the page has open."},
}


def _kind(event_type: str, needed: tuple[str, ...]) -> dict[str, Any]:
    filled = {field: {**_TEXT, "minLength": 1} for field in needed}
    named = {"event_type": {"type": "string", "enum": [event_type]}}
    return {
        "type": "object",
        "required": ["event_type", *needed],
        "additionalProperties": False,
        "properties": {**_OPTIONAL, **filled, **named},
    }


_REPORT: Final = {
    "anyOf": [_kind(event_type, needed) for event_type, needed in reports.NEEDED.items()],
    "example": {"event_type": "page_visit", "page": "/tools", "title": "Tools"},
}
_SWITCH: Final = {"type": "object", "required": ["on"], "additionalProperties": False, "properties": {"on": {"type": "boolean"}}}


class PageView(BaseModel):
    """A page that the user came to."""

    visit_id: str
    page: str
    title: str | None = None
    at_ms: int
    session: str | None = None


class ErrorView(BaseModel):
    """An open error; `function` is that of the agent that failed, if it was one."""

    error_id: str
    error_type: str
    message: str
    page: str | None = None
    count: int
    at_ms: int
    session: str | None = None
    function: str | None = None


class FactView(BaseModel):
    """A statement of a page."""

    key: str
    value: str
    at_ms: int


class AwarenessView(BaseModel):
    """Everything that agents are told of the user's screen: `prompt` word for word, the entries in it, and the sources that are on."""

    prompt: str
    recent_pages: list[PageView]
    unresolved_errors: list[ErrorView]
    page_stats: dict[str, int]
    context: list[FactView]
    sources: dict[str, bool]


class Reported(BaseModel):
    """A report that was taken. `recorded` is false, and there is no id, where the user has switched the source off."""

    success: bool
    recorded: bool
    visit_id: str | None = None
    error_id: str | None = None


class Sources(BaseModel):
    """The sources that are on."""

    sources: dict[str, bool]


class _Report(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    event_type: str
    page: str | None = None
    title: str | None = None
    error_type: str | None = None
    message: str | None = None
    key: str | None = None
    value: str | None = None
    metadata: dict[str, Any] | None = None
    session: str | None = None


class _Switch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    on: bool


def router(gateway: Context) -> APIRouter:
    """Build the routes of a gateway."""
    caller, owner = Depends(gateway.access.caller), Depends(gateway.access.administrator)
    limited: dict[int | str, dict[str, Any]] = {429: refused("The client reports too often")}
    made = APIRouter(prefix="/api/vox/awareness", tags=["awareness"], responses=TOKEN | ALL | BAD | AWAY | limited)

    @made.post("", response_model=Reported, response_model_exclude_none=True, openapi_extra=body_of(_REPORT, required=True))
    async def report(request: Request, terms: Terms | None = caller) -> Any:
        """Report a page, an error or a fact. Secret-looking parameters are taken out of addresses before anything is kept."""
        given = await decoded(request, _Report)
        fields = {field: getattr(given, field) or "" for field in reports.FIELDS}
        title = (given.metadata or {}).get("title")
        fields["title"] = fields["title"] or (title if isinstance(title, str) else "")
        reports.check(given.event_type, fields)
        account = _account(terms)
        event = reports.event(given.event_type, fields, session=_session(given.session or ""))
        report_id = await gateway.reports.report(account, event, client=f"rest {account}")
        name = {"page_visit": "visit_id", "error": "error_id"}.get(given.event_type)
        return {"success": True, "recorded": bool(report_id)} | ({name: report_id} if report_id and name else {})

    @made.get("", response_model=AwarenessView, response_model_exclude_none=True)
    async def show(terms: Terms | None = caller, session: str = Query("", pattern=f"{_SESSION}|^$")) -> Any:
        """Everything that agents are told now; with `session`, what came from that one alone. An access token needs it."""
        if terms is not None and not session:
            raise VoxbridgeError(Code.INVALID_ARGUMENT, "With an access token, `session` names the session that is meant.", field="session")
        known = await ask(gateway.log.nc, AskView(account=_account(terms), session=session))
        return _shown(known.view, known.off, known.counts if terms is None else {}, gateway.resources.clock.now_us())

    @made.put("/sources/{source}", response_model=Sources, openapi_extra=body_of(_SWITCH, required=True))
    async def switch(request: Request, source: Literal["pages", "errors", "context"], _: None = owner) -> Any:
        """Switch a source on or off. Of one that is off nothing is recorded any more, and what was is erased."""
        wanted = await decoded(request, _Switch)
        return {"sources": _on(await gateway.reports.switch(LOCAL, source, on=wanted.on))}

    @made.delete("/errors/{error_id}", status_code=204)
    async def resolve(error_id: str = Path(pattern="^[@0-9a-z_=-]{1,100}$"), _: None = owner) -> Response:
        """Take an error from those that are open."""
        await gateway.reports.resolve(LOCAL, error_id)
        return Response(status_code=204)

    return made


def _account(terms: Terms | None) -> str:
    return LOCAL if terms is None else terms.account


def _session(given: str) -> str:
    if given and (len(given) != 32 or not all(one in "0123456789abcdef" for one in given)):
        raise VoxbridgeError(Code.INVALID_ARGUMENT, "`session` is 32 characters of 0-9 and a-f.", field="session", limit=_SESSION)
    return given


def _on(off: Any) -> dict[str, bool]:
    return {source: source not in off for source in SOURCES}


def _shown(view: Any, off: Any, counts: dict[str, int], now: int) -> dict[str, Any]:
    pages = [
        {"visit_id": one.id, "page": one.page, "title": one.title or None, "at_ms": one.at // 1_000, "session": one.session or None}
        for one in view.pages[:PAGES]
    ]
    errors = [
        {
            "error_id": one.id,
            "error_type": one.kind,
            "message": one.message,
            "page": one.page or None,
            "count": one.count,
            "at_ms": one.at // 1_000,
            "session": one.session or None,
            "function": one.function or None,
        }
        for one in view.errors[:ERRORS]
    ]
    most = sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:STATS_LIMIT]
    return {
        "prompt": prompt.part(view, now),
        "recent_pages": pages,
        "unresolved_errors": errors,
        "page_stats": dict(most),
        "context": [{"key": one.key, "value": one.value, "at_ms": one.at // 1_000} for one in view.context[:FACTS]],
        "sources": _on(off),
    }

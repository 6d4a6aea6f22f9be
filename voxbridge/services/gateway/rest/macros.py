"""`/api/vox/macros`: an account's macros, listed, saved, deleted and run (docs/protocol.md, section 7).

Owns the routes alone: each is a call of a function, by the path and the rules of `POST /api/vox/function/{name}`. Nothing is lost in a
crash here: a request that was taken is in the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Depends, Path, Query, Request, Response
from pydantic import BaseModel
from starlette.responses import JSONResponse

from voxbridge.services.gateway.rest.functions import ANSWERS, KEY_HEADER, answer, body_of, decoded, key_of
from voxbridge.shared import events
from voxbridge.shared.agents.functions import told_result
from voxbridge.shared.events.gateway import ApprovalClicked
from voxbridge.shared.events.tools import ToolCompleted
from voxbridge.shared.secrets.access_tokens import LOCAL

if TYPE_CHECKING:
    from voxbridge.services.gateway.rest.context import Context

MACRO_BYTES: Final = 64 * 1024
"""Bytes of the body of a macro, with its spaces."""

_ID: Final = Path(min_length=1, max_length=64)
_VALUE: Final = {
    "anyOf": [
        {"type": "string", "maxLength": 2_000},
        {"type": "boolean"},
        {"type": "number", "minimum": -1e9, "maximum": 1e9},
    ]
}
_VALUES: Final = {"type": "object", "additionalProperties": _VALUE, "maxProperties": 16}
_STEP: Final = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "id": {"type": "string", "maxLength": 32},
        "call": {"type": "string", "maxLength": 64},
        "arguments": _VALUES,
        "say": {"type": "string", "maxLength": 2_000},
        "when": {"type": "string", "maxLength": 500},
        "on_error": {"type": "string", "enum": ["stop", "continue", "retry", "ask"]},
    },
}
_MACRO: Final = {
    "type": "object",
    "additionalProperties": False,
    "required": ["name", "steps"],
    "description": "Steps and policies in their usual forms; docs/macros.md has all of them.",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 64},
        "steps": {"type": "array", "minItems": 1, "maxItems": 50, "items": {"anyOf": [{"type": "string", "maxLength": 64}, _STEP]}},
        "trigger": {"type": "string", "maxLength": 120},
        "policy": {"type": "string", "enum": ["stop", "continue", "retry", "ask", "single", "restart", "queued", "parallel"]},
        "inputs": {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": _VALUE}, "maxProperties": 16},
    },
    "example": {"name": "time check", "steps": ["current_time"], "trigger": "time check"},
}
_RUN: Final = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"inputs": _VALUES, "dry_run": {"type": "boolean"}, "step_by_step": {"type": "boolean"}},
    "example": {"inputs": {}},
}


class Done(BaseModel):
    """The result; `success` is true. With status 202 it goes on as the task `task_id`."""

    success: bool

    model_config = {"extra": "allow"}


class _Macro(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    name: str
    steps: list[Any]
    trigger: str = ""
    policy: str | dict[str, Any] = ""
    inputs: dict[str, Any] = {}


class _Run(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    inputs: dict[str, Any] = {}
    dry_run: bool = False
    step_by_step: bool = False


def router(gateway: Context) -> APIRouter:
    """Build the routes of a gateway."""
    made = APIRouter(prefix="/api/vox/macros", tags=["macros"], dependencies=[Depends(gateway.access.administrator)], responses=ANSWERS)
    later: Any = {202: {"model": Done, "description": "It goes on as a task"}}

    @made.get("", response_model=Done)
    async def list_macros(skip: Annotated[int, Query(ge=0, le=200)] = 0) -> Response:
        """List the account's macros, oldest first, 40 at a time: `more` counts those behind them, which are asked for by `skip`."""
        return _told("list_macros", await gateway.calls.run(LOCAL, "list_macros", {"skip": skip} if skip else {}, key=""))

    @made.get("/{macro_id}", response_model=Done)
    async def show_macro(macro_id: str = _ID) -> Response:
        """Show one macro as a list of one, with what it was saved as in `document`."""
        return _told("list_macros", await gateway.calls.run(LOCAL, "list_macros", {"name": macro_id}, key=""))

    @made.post("", response_model=Done, openapi_extra=body_of(_MACRO, required=True) | {"parameters": [KEY_HEADER]})
    async def create_macro(request: Request) -> Response:
        """Check a macro and save it."""
        key = key_of(request)
        macro = msgspec.to_builtins(await decoded(request, _Macro, limit=MACRO_BYTES))
        return _told("create_macro", await gateway.calls.run(LOCAL, "create_macro", macro, key=key))

    @made.delete("/{macro_id}", response_model=Done, status_code=202)
    async def delete_macro(macro_id: str = _ID) -> Response:
        """Delete a macro. The request is a person's approval."""
        recorded = await gateway.calls.run(LOCAL, "delete_macro", {"name": macro_id}, key="")
        if not isinstance(recorded.event, ToolCompleted) or recorded.event.goes_on != "approval":
            return _told("delete_macro", recorded)
        asked = recorded.event.result
        await gateway.calls.approve(LOCAL, ApprovalClicked(approval_id=asked["approval_id"], answer="approved", scope="once"))
        task = {"task_id": asked["task_id"]} if "task_id" in asked else {}
        return JSONResponse(told_result({"macro_id": macro_id, "status": "started", **task}), status_code=202)

    @made.post(
        "/{macro_id}/run",
        response_model=Done,
        responses=later,
        openapi_extra=body_of(_RUN, required=False) | {"parameters": [KEY_HEADER]},
    )
    async def run_macro(request: Request, macro_id: str = _ID) -> Response:
        """Run a macro's steps, one after the other."""
        key = key_of(request)
        wanted = msgspec.to_builtins(await decoded(request, _Run))
        return _told("run_macro", await gateway.calls.run(LOCAL, "run_macro", {"name": macro_id, **wanted}, key=key))

    return made


def _told(name: str, recorded: events.Recorded) -> Response:
    """Return the answer that an event is: the result itself, or the error of its function."""
    if not isinstance(recorded.event, ToolCompleted):
        return answer(name, recorded)
    return JSONResponse(told_result(recorded.event.result), status_code=202 if recorded.event.goes_on else 200)

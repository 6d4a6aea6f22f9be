"""`POST /api/vox/function/{name}` and the tasks that come of it (docs/protocol.md, section 7).

Owns the routes, their limits and the form of their answers. Does not own the calls (`voxbridge.services.gateway.calls`). Nothing is lost
in a crash here: a request that was taken is in the log.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Depends, Path, Query, Request, Response
from pydantic import BaseModel
from starlette.responses import JSONResponse

from voxbridge.services.gateway.calls.ledger import Task
from voxbridge.services.gateway.rest import bodies
from voxbridge.services.gateway.rest.errors import refused
from voxbridge.shared import events
from voxbridge.shared.agents.functions import failed_result, told_result
from voxbridge.shared.errors import HTTP_STATUS, Code, VoxbridgeError
from voxbridge.shared.events import tools
from voxbridge.shared.events.gateway import ApprovalClicked
from voxbridge.shared.events.voice import Failure
from voxbridge.shared.nesting import DEPTH_LIMIT, is_deep_json
from voxbridge.shared.secrets.access_tokens import LOCAL

if TYPE_CHECKING:
    from voxbridge.services.gateway.rest.context import Context

ARGUMENTS_LIMIT: Final = 256 * 1024
"""Bytes of the body of a call."""

ASKED_BYTES: Final = 8 * 1024
"""Bytes of the arguments of a request for approval, up to which they are listed with it."""

KEY_LIMIT: Final = 255
_KEY: Final = re.compile(r"[!-~]{1,255}")
_NAME: Final = "^[A-Za-z0-9_-]{1,64}$"
_SESSION: Final = "^[0-9a-f]{32}$"
_TASK: Final = "^[A-Za-z0-9_.:-]{1,128}$"


ANSWERS: Final[dict[int | str, dict[str, Any]]] = {
    401: refused("An administrator's token is needed"),
    403: refused("This Host or Origin is not allowed, or an access token was shown"),
    404: refused("There is no such function, task or approval"),
    422: refused("An argument, the key or the body is not as it should be; `field` names it"),
    429: refused("The account has too many calls open, or asks too fast"),
    499: refused("The call was cancelled"),
    500: refused("The function failed by a fault of its own"),
    502: refused("It is not known how far the function came (`INTERRUPTED`), or what it asked refused (`PROVIDER_REFUSED`)"),
    503: refused("Executor, log or page is away, or they have too much to do"),
    504: refused("The function, or the body, did not come in time"),
}
_CALL: Final = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"args": {"type": "object", "description": "The arguments, as `parameters` of `GET /api/vox/functions` has them."}},
    "example": {"args": {"expression": "17 times 23"}},
}
_APPROVAL: Final = {
    "type": "object",
    "additionalProperties": False,
    "required": ["answer"],
    "properties": {
        "answer": {"type": "string", "enum": ["approved", "denied"]},
        "scope": {"type": "string", "enum": ["once", "arguments", "function"], "default": "once"},
    },
    "example": {"answer": "approved"},
}
KEY_HEADER: Final = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "Any name for this request. For 24 hours the same key is the same call: it runs once.",
    "schema": {"type": "string", "pattern": f"^{_KEY.pattern}$"},
    "example": "order-4711",
}


class Ran(BaseModel):
    """The result of a function; `success` in it is true unless the function says otherwise. With status 202 it has a `task_id`."""

    name: str
    result: dict[str, Any]

    model_config = {
        "json_schema_extra": {
            "example": {"name": "calculate", "result": {"success": True, "value": 391, "spoken": "17 times 23 is 391."}},
        }
    }


class TaskView(BaseModel):
    """A task of the account; `session` is the one in which it was begun, `result` is there once it is over."""

    id: str
    function: str
    state: str
    session: str | None = None
    started_at_ms: int
    due_at_ms: int | None = None
    label: str | None = None
    done: float | None = None
    message: str | None = None
    approval_id: str | None = None
    ended_at_ms: int | None = None
    result: dict[str, Any] | None = None


class Tasks(BaseModel):
    """The open tasks of the account, oldest first, or those that ended, the latest first. `incomplete`: the log of a session could not be
    read, or nobody answered for the sessions, so that open tasks may be missing."""

    tasks: list[TaskView]
    count: int
    incomplete: bool


class ApprovalView(BaseModel):
    """A call that waits for a person's approval; without `arguments` where they are too long to be listed."""

    id: str
    function: str
    effect: str
    question: str
    expires_at_ms: int
    scopes: list[str]
    """Ways in which a yes can stand for later calls."""

    arguments: dict[str, Any] | None = None


class Approvals(BaseModel):
    """The open requests for approval of the account, oldest first."""

    approvals: list[ApprovalView]
    count: int


class _Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    args: dict[str, Any] = {}


class _Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    answer: str
    scope: str = "once"


def router(gateway: Context) -> APIRouter:
    """Build the routes of a gateway."""
    made = APIRouter(prefix="/api/vox", tags=["functions"], dependencies=[Depends(gateway.access.administrator)], responses=ANSWERS)

    @made.post(
        "/function/{name}",
        response_model=Ran,
        responses={202: {"model": Ran, "description": "It goes on as a task, or a person must approve it first (`needs_approval`)"}},
        openapi_extra=body_of(_CALL, required=False) | {"parameters": [KEY_HEADER]},
    )
    async def run_function(request: Request, name: str = Path(pattern=_NAME)) -> Response:
        """Run a function and answer with its result; the body is `{"args": {…}}`. A function that takes long is answered at once,
        with 202 and the id of its task."""
        key = key_of(request)
        call = await decoded(request, _Call, limit=ARGUMENTS_LIMIT)
        return answer(name, await gateway.calls.run(LOCAL, name, call.args, key=key))

    _add_tasks(gateway, made)
    return made


def _add_tasks(gateway: Context, made: APIRouter) -> None:
    @made.get("/tasks", response_model=Tasks, response_model_exclude_none=True)
    async def list_tasks(ended: bool = False) -> Any:
        """The tasks that are not over, oldest first: outside sessions, and in them (`session`). With `ended=true`, those outside sessions
        that ended, the latest first."""
        found, incomplete = (await gateway.calls.ended(LOCAL), False) if ended else await gateway.calls.tasks(LOCAL)
        return {"tasks": [_shown(task) for task in found], "count": len(found), "incomplete": incomplete}

    @made.get("/tasks/{task_id}", response_model=TaskView, response_model_exclude_none=True)
    async def one_task(task_id: str = Path(pattern=_TASK)) -> Any:
        """A task that is open, or one outside sessions that ended lately, with its result."""
        task, end = await gateway.calls.task(LOCAL, task_id)
        return _shown(task) | ({} if end is None else {"result": _ended(end)})

    @made.delete(
        "/tasks/{task_id}",
        response_model=TaskView,
        response_model_exclude_none=True,
        responses={
            202: {"model": TaskView, "description": "It is being stopped"},
            409: refused("The task is over, or several sessions have one with this id"),
        },
    )
    async def cancel_task(
        response: Response, task_id: str = Path(pattern=_TASK), session: Annotated[str, Query(pattern=_SESSION)] = ""
    ) -> Any:
        """Cancel a task, in a session (`session` says in which, where several have one with this id) or outside. It may still end with a
        result, which is then kept."""
        task = await gateway.calls.cancel(LOCAL, task_id, session)
        response.status_code = 200 if task.end else 202
        return _shown(task)

    @made.get("/approvals", response_model=Approvals, response_model_exclude_none=True)
    async def open_approvals() -> Any:
        """The calls outside sessions that wait for a person's approval, oldest first."""
        found = await gateway.calls.approvals(LOCAL)
        return {"approvals": [_asked(event) for event in found], "count": len(found)}

    @made.post("/approvals/{approval_id}", status_code=202, openapi_extra=body_of(_APPROVAL, required=True))
    async def answer_approval(request: Request, approval_id: str = Path(pattern=_TASK)) -> Response:
        """Give a person's answer to a call that needs approval; what comes of it is told by its task."""
        given = await decoded(request, _Answer)
        try:
            clicked = msgspec.convert({"approval_id": approval_id, "answer": given.answer, "scope": given.scope}, ApprovalClicked)
        except msgspec.ValidationError as error:
            raise VoxbridgeError(Code.INVALID_ARGUMENT, f"The answer does not fit: {str(error)[:200]}.", field="answer") from None
        await gateway.calls.approve(LOCAL, clicked)
        return Response(status_code=202)


def key_of(request: Request) -> str:
    """Return the idempotency key of a request; empty without one. Raises `INVALID_ARGUMENT`."""
    given = request.headers.getlist("idempotency-key")
    if not given:
        return ""
    if len(given) > 1 or _KEY.fullmatch(given[0]) is None:
        message = f"`Idempotency-Key` is one header of 1 to {KEY_LIMIT} visible ASCII characters."
        raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field="Idempotency-Key", limit=KEY_LIMIT)
    return given[0]


async def decoded(request: Request, kind: Any, *, limit: int = bodies.BODY_LIMIT) -> Any:
    """Return the JSON body of a request as `kind`. Raises `INVALID_ARGUMENT` and `TOO_LARGE`."""
    body = await bodies.read(request, limit=limit) or b"{}"
    if is_deep_json(body):
        message = f"The body nests more than {DEPTH_LIMIT} objects and arrays within one another."
        raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field="body", limit=DEPTH_LIMIT)
    try:
        found = msgspec.json.decode(body, type=kind)
        msgspec.msgpack.encode(found)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise VoxbridgeError(Code.INVALID_ARGUMENT, f"The body is not the expected JSON: {str(error)[:200]}.", field="body") from None
    except OverflowError:
        raise VoxbridgeError(Code.INVALID_ARGUMENT, "Whole numbers have at most 64 bits.", field="args", limit="64 bits") from None
    return found


def answer(name: str, recorded: events.Recorded) -> Response:
    """Return the answer that an event of the log is."""
    event = recorded.event
    if isinstance(event, tools.ToolCompleted):
        return JSONResponse({"name": name, "result": told_result(event.result)}, status_code=202 if event.goes_on else 200)
    if isinstance(event, tools.ToolFailed):
        error = event.error
    else:
        message = f"The executor stopped while {name} ran: it is not known how far it came, and it is not run again."
        error = Failure(code=Code.INTERRUPTED, message=message)
    problem = {"code": error.code, "message": error.message, "retryable": error.retryable}
    if error.field:
        problem["field"] = error.field
    status = next((status for code, status in HTTP_STATUS.items() if code == error.code), 500)
    return JSONResponse({**problem, "name": name, "result": failed_result(error.code, error.message)}, status_code=status)


def _ended(recorded: events.Recorded) -> dict[str, Any]:
    event = recorded.event
    match event:
        case tools.TaskCompleted(result=result):
            return told_result(result)
        case tools.TaskFailed(error=error):
            return failed_result(error.code, error.message)
        case tools.TaskCancelled(reason=reason):
            return failed_result(Code.CANCELLED, f"Cancelled: {reason}.")
        case tools.TaskInterrupted():
            return failed_result(Code.INTERRUPTED, "The executor stopped while it ran: it is not known how far it came.")
        case _:
            return failed_result(Code.PERMISSION_DENIED, "Nobody approved it.")


def _shown(task: Task) -> dict[str, Any]:
    return {
        "id": task.id,
        "function": task.function,
        "state": task.state,
        "session": task.session or None,
        "started_at_ms": task.started_at_ms,
        "due_at_ms": task.due_at_ms,
        "label": task.label or None,
        "done": task.done or None,
        "message": task.message or None,
        "approval_id": task.approval_id or None,
        "ended_at_ms": task.ended_at_ms,
    }


def _asked(event: tools.ApprovalRequested) -> dict[str, Any]:
    told = {
        "id": event.approval_id,
        "function": event.name,
        "effect": event.effect,
        "question": event.question,
        "expires_at_ms": event.expires_ts // 1_000,
        "scopes": list(event.scopes),
    }
    return told | ({"arguments": event.arguments} if len(msgspec.json.encode(event.arguments)) <= ASKED_BYTES else {})


def body_of(schema: dict[str, Any], *, required: bool) -> dict[str, Any]:
    """Return a body's schema for OpenAPI. The body is not read by FastAPI, so that its size is limited."""
    return {"requestBody": {"required": required, "content": {"application/json": {"schema": schema}}}}

"""`/api/runs`: runs of macros and workflows, how each goes, and what a person says to one (docs/protocol.md, section 7).

Owns the routes. Does not own what is known of runs (`voxbridge.services.gateway.calls.runs`). Nothing is lost in a crash here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Depends, Path, Query, Request, Response
from pydantic import BaseModel

from voxbridge.services.gateway.calls.runs import Known
from voxbridge.services.gateway.core.messages import ANSWER_LIMIT, NAME_LIMIT
from voxbridge.services.gateway.rest.functions import ANSWERS, body_of, decoded
from voxbridge.shared.agents.functions import told_result
from voxbridge.shared.bus import subjects
from voxbridge.shared.events.voice import Failure
from voxbridge.shared.macros.trace import Attempt

if TYPE_CHECKING:
    from voxbridge.services.gateway.rest.context import Context

SHOWN_LIMIT: Final = 200
"""Runs in one answer."""

_ID: Final = Path(min_length=1, max_length=NAME_LIMIT)
_ANSWER: Final = {
    "type": "object",
    "additionalProperties": False,
    "required": ["text"],
    "properties": {
        "text": {"type": "string", "minLength": 1, "maxLength": ANSWER_LIMIT},
        "step": {"type": "string", "maxLength": NAME_LIMIT},
    },
    "example": {"text": "again"},
}


class FailureView(BaseModel):
    """Reason of a failure."""

    code: str
    message: str


class StepView(BaseModel):
    """One attempt of a step; `args` and `result` are the beginning of their JSON."""

    step: str
    attempt: int
    action: str
    target: str
    state: str
    started_at_ms: int
    ended_at_ms: int | None = None
    args: str | None = None
    result: str | None = None
    error: FailureView | None = None


class RunView(BaseModel):
    """A run. `session` is the session in which it was started, if it was in one; `waits_for` says what it waits for."""

    id: str
    name: str
    kind: str
    state: str
    session: str | None = None
    started_at_ms: int | None = None
    ended_at_ms: int | None = None
    steps: int
    waits_for: str | None = None
    step: str | None = None
    question: str | None = None
    expires_at_ms: int | None = None
    inputs: dict[str, Any] | None = None
    attempts: list[StepView] | None = None
    result: dict[str, Any] | None = None
    error: FailureView | None = None
    reason: str | None = None


class RunsView(BaseModel):
    """Runs, newest first."""

    runs: list[RunView]
    count: int


class _Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    text: Annotated[str, msgspec.Meta(min_length=1, max_length=ANSWER_LIMIT)]
    step: Annotated[str, msgspec.Meta(max_length=NAME_LIMIT)] = ""


def router(gateway: Context) -> APIRouter:
    """Build the routes of a gateway."""
    made = APIRouter(prefix="/api/runs", tags=["macros"], dependencies=[Depends(gateway.access.administrator)], responses=ANSWERS)

    @made.get("", response_model=RunsView, response_model_exclude_none=True)
    async def list_runs(
        state: Annotated[str | None, Query(pattern="^(queued|waiting|running|completed|failed|cancelled)$")] = None,
        limit: Annotated[int, Query(ge=1, le=SHOWN_LIMIT)] = 50,
    ) -> Any:
        """The runs of the last day, in sessions and outside, newest first."""
        found = [known for known in await gateway.runs.lately() if state is None or known.trace.state == state]
        return {"runs": [_shown(known) for known in found[:limit]], "count": len(found)}

    @made.get("/{run_id}", response_model=RunView, response_model_exclude_none=True)
    async def one_run(run_id: str = _ID) -> Any:
        """A run with each attempt of its steps: times, arguments, result or error."""
        known = await gateway.runs.one(run_id)
        about: dict[str, Any] = {"inputs": dict(known.trace.inputs), "attempts": [_step(one) for one in known.trace.attempts]}
        if known.trace.result is not None:
            about["result"] = told_result(known.trace.result)
        return _shown(known) | about

    @made.post("/{run_id}/cancel", status_code=202)
    async def cancel_run(run_id: str = _ID) -> Response:
        """Cancel a run. The call that it makes is stopped first."""
        await gateway.runs.cancel(run_id)
        return Response(status_code=202)

    @made.post("/{run_id}/answer", status_code=202, openapi_extra=body_of(_ANSWER, required=True))
    async def answer_run(request: Request, run_id: str = _ID) -> Response:
        """Answer the question of a run; after a failed step by `again`, `go_on` or `stop`."""
        given = await decoded(request, _Answer)
        await gateway.runs.answer(run_id, given.text, given.step)
        return Response(status_code=202)

    return made


def _shown(known: Known) -> dict[str, Any]:
    run = known.trace
    return {
        "id": run.run_id,
        "name": run.name,
        "kind": run.kind,
        "state": run.state,
        "session": None if subjects.account_of(known.sid) else known.sid,
        "started_at_ms": run.started_at // 1_000 or None,
        "ended_at_ms": run.ended_at // 1_000 or None,
        "steps": run.steps,
        "waits_for": run.waits_for or None,
        "step": run.step or None,
        "question": run.question or None,
        "expires_at_ms": run.expires_at // 1_000 or None,
        "error": _problem(run.error),
        "reason": run.reason or None,
    }


def _step(one: Attempt) -> dict[str, Any]:
    return {
        "step": one.step,
        "attempt": one.attempt,
        "action": one.action,
        "target": one.target,
        "state": one.state,
        "started_at_ms": one.started_at // 1_000,
        "ended_at_ms": one.ended_at // 1_000 or None,
        "args": one.given or None,
        "result": one.result or None,
        "error": _problem(one.error),
    }


def _problem(error: Failure | None) -> dict[str, str] | None:
    return None if error is None else {"code": str(error.code), "message": error.message}

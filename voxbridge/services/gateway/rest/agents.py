"""`/api/agents`: the agents and pipelines; and `/api/sessions/{id}/handoff`: hand a session over to another agent (docs/protocol.md,
section 9).

Owns the routes and what is shown of an agent, which is never its prompt. Does not own the files (`voxbridge.shared.agents.reading`), the
right to hand over (`voxbridge.services.gateway.door.access`), nor the handoff itself: the voice service does it. Nothing is lost in a crash
here.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from fastapi import APIRouter, Depends, Path, Request
from pydantic import BaseModel

from voxbridge.services.gateway.core import resume_rules
from voxbridge.services.gateway.core.messages import AGENT_LIMIT
from voxbridge.services.gateway.rest import bodies
from voxbridge.services.gateway.rest.errors import TOKEN, refused
from voxbridge.services.gateway.vox import resume_reader
from voxbridge.shared import events
from voxbridge.shared.agents import model
from voxbridge.shared.agents.files import Agents
from voxbridge.shared.agents.providers import PROVIDERS
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.log.writer import Policy, SessionWriter

if TYPE_CHECKING:
    from voxbridge.services.gateway.rest.context import Context

APPEND_S: Final = 5.0
"""Seconds that the log may take to accept a handoff request."""

_HANDOFF: Final[dict[int | str, dict[str, Any]]] = {
    401: refused("An administrator's token is needed"),
    403: refused("This Host or Origin is not allowed"),
    404: refused("There is no such session, or it has ended"),
    409: refused("The session cannot be handed over now"),
    422: refused("An argument is out of its range"),
    503: refused("Something the answer needs is away"),
    504: refused("The body did not come in time"),
}
_BODY: Final = {
    "type": "object",
    "required": ["to"],
    "properties": {
        "to": {"type": "string", "minLength": 1, "maxLength": AGENT_LIMIT},
        "reason": {"type": "string", "maxLength": model.REASON_LIMIT},
    },
}


class AgentView(BaseModel):
    """An agent. `kind` is `realtime` when one model hears and speaks, `cascade` when several in a row do; `missing` are the providers that
    it needs and that have no key."""

    name: str
    role: str
    description: str
    scope: str
    voice: str
    language: str
    kind: Literal["realtime", "cascade"]
    models: dict[str, str]
    """Models by part, as `provider` or `provider:model`: `realtime`, or `stt`, `llm` and `tts`."""

    output: Literal["audio", "text"]
    tools: list[str] | None
    handoffs: list[str]
    missing: list[str]
    expert: bool
    knowledge: list[str]
    """Knowledge graphs that an expert answers from."""


class StageView(BaseModel):
    """A phase of a pipeline."""

    phase: str
    agent: str
    next: list[str]


class PipelineView(BaseModel):
    """A pipeline of agents; a session begins with its first stage."""

    name: str
    description: str
    hand_back: bool
    stages: list[StageView]
    missing: list[str]


class FileProblem(BaseModel):
    """A problem in a file. `line` counts from 1, and is 0 where no line is to blame."""

    path: str
    line: int
    field: str
    message: str


class AgentsView(BaseModel):
    """Agents and pipelines of the last valid files; `problems` says what is wrong with the current files."""

    agents: list[AgentView]
    pipelines: list[PipelineView]
    problems: list[FileProblem]


class Accepted(BaseModel):
    """Position of the accepted request in the log. `handoff.started` follows in the log when the voice service begins the handoff."""

    seq: int


class _Handoff(msgspec.Struct, frozen=True):
    to: Annotated[str, msgspec.Meta(min_length=1, max_length=AGENT_LIMIT)]
    reason: Annotated[str, msgspec.Meta(max_length=model.REASON_LIMIT)] = ""


def router(gateway: Context) -> APIRouter:
    """Build the routes of a gateway."""
    files = Agents(gateway.resources.config.agents_dir)
    reading = asyncio.Lock()
    made = APIRouter(prefix="/api", tags=["agents"])

    @made.get("/agents", response_model=AgentsView, responses=TOKEN, dependencies=[Depends(gateway.access.caller)])
    async def known() -> Any:
        """The agents and pipelines, and the problems in their files."""
        async with reading:
            roster = await asyncio.to_thread(files.current)
            problems = files.problems
        keys = await gateway.keys.usable()
        missing = {agent.name: [name for name in needs(agent) if name in PROVIDERS and not keys[name]] for agent in roster.agents}
        return {
            "agents": [_agent(one, missing[one.name]) for one in roster.agents],
            "pipelines": [_pipeline(one, missing) for one in roster.pipelines],
            "problems": [msgspec.to_builtins(one) for one in problems],
        }

    async def reachable(name: str) -> None:
        """Raise unless there are keys for all providers that this agent needs. The session decides in the end: it may have begun with other
        files."""
        async with reading:
            roster = await asyncio.to_thread(files.current)
        keys = await gateway.keys.usable()
        for agent in roster.agents:
            missing = [one for one in needs(agent) if one in PROVIDERS and not keys[one]] if agent.name == name else []
            if missing:
                message = f"{name} cannot be reached: there is no key for {' and '.join(missing)}. Set one in Keys."
                raise VoxbridgeError(Code.PROVIDER_UNAVAILABLE, message, field="to", retryable=False)

    @made.post(
        "/sessions/{session_id}/handoff",
        status_code=202,
        response_model=Accepted,
        responses=_HANDOFF,
        dependencies=[Depends(gateway.access.administrator)],
        openapi_extra={"requestBody": {"required": True, "content": {"application/json": {"schema": _BODY}}}},
    )
    async def hand_over(session_id: Annotated[str, Path(pattern="^[0-9a-f]{32}$")], request: Request) -> Any:
        """Ask that another agent of the session goes on; the body is `{"to", "reason"?}`."""
        asked = _asked(await bodies.read(request))
        await _check(gateway, session_id, asked.to)
        await reachable(asked.to)
        stem = f"{gateway.resources.process_id}-{secrets.token_hex(4)}"
        writer = SessionWriter(gateway.log, session_id, "gateway", stem=stem, fenced=False, policy=Policy(give_up_s=APPEND_S))
        event = events.gateway.HandoffRequested(target=asked.to, reason=asked.reason)
        return {"seq": await writer.append(event, ts=gateway.resources.clock.now_us(), cause=None)}

    return made


def _asked(body: bytes) -> _Handoff:
    try:
        return msgspec.json.decode(body, type=_Handoff)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        message = f'The body must be JSON: `{{"to": "…", "reason": "…"}}`. {str(error)[:200]}.'
        raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field="body") from None


async def _check(gateway: Context, sid: str, target: str) -> None:
    """Raise unless this session is live and can be handed over to this agent."""
    by_type = {one.type: one for one in await resume_reader.facts(gateway.log, sid)}
    if not by_type or "session.ended" in by_type:
        raise VoxbridgeError(Code.NOT_FOUND, "There is no session with this id, or it has ended.", field="session_id")
    speaker = resume_rules.speaker(by_type)
    if not speaker.agents:
        raise VoxbridgeError(Code.CONFLICT, "This session has no agents to hand over to.", field="session_id")
    if target not in speaker.agents:
        known = ", ".join(speaker.agents)
        message = f"There is no agent {target!r} in this session; there is {known}.{model.nearest(target, speaker.agents)}"
        raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field="to", limit=known)
    begun, done = by_type.get("handoff.started"), by_type.get("handoff.completed")
    if begun is not None and (done is None or done.seq < begun.seq) and isinstance(begun.event, events.voice.HandoffStarted):
        message = f"A handoff to {begun.event.target} is under way. Ask again when it is done."
        raise VoxbridgeError(Code.CONFLICT, message, field="session_id", retryable=True)
    if target == speaker.agent:
        raise VoxbridgeError(Code.CONFLICT, f"{target} speaks already.", field="to")


def _agent(agent: model.Agent, missing: list[str]) -> dict[str, Any]:
    return {
        **{name: getattr(agent, name) for name in ("name", "role", "description", "scope", "voice", "language", "output")},
        "kind": "cascade" if agent.realtime is None else "realtime",
        "models": {part: ":".join(filter(None, (one.provider or "local", one.model))) for part, one in _parts(agent).items()},
        "tools": None if agent.tools is None else list(agent.tools),
        "handoffs": list(agent.handoffs),
        "missing": missing,
        "expert": agent.expert,
        "knowledge": list(agent.knowledge),
    }


def _pipeline(pipeline: model.Pipeline, missing: dict[str, list[str]]) -> dict[str, Any]:
    needed = dict.fromkeys(name for stage in pipeline.stages for name in missing[stage.agent])
    stages = [{"phase": one.phase, "agent": one.agent, "next": list(one.next)} for one in pipeline.stages]
    about = {"name": pipeline.name, "description": pipeline.description, "hand_back": pipeline.hand_back}
    return {**about, "stages": stages, "missing": list(needed)}


def _parts(agent: model.Agent) -> dict[str, model.ModelName]:
    if agent.realtime is not None:
        return {"realtime": agent.realtime}
    return {"stt": agent.stt, "llm": agent.llm, "tts": agent.tts}


def needs(agent: model.Agent) -> list[str]:
    """Return the providers of an agent, without duplicates."""
    return list(dict.fromkeys(one.provider for one in _parts(agent).values() if one.provider not in ("", "local")))

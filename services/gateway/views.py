"""The answers of the REST interface, as OpenAPI shows them. Pure data."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

MODES = Literal["local", "echo", "gemini", "claude"]


class Problem(BaseModel):
    """What went wrong: `code` for programs, `message` for people, and whether a retry helps."""

    code: str
    message: str
    retryable: bool
    field: str | None = None
    limit: int | float | str | None = None
    retry_after_ms: int | None = None


class Session(BaseModel):
    """A session, from the last events of its log."""

    id: str
    mode: MODES
    started_at_ms: int
    state: Literal["connecting", "live", "ended"]
    turns: int
    ended_at_ms: int | None = None
    ended_reason: str | None = None


class SessionPage(BaseModel):
    """Sessions, newest first. `next_before` asks for the ones before them."""

    sessions: list[Session]
    next_before: int | None = None


class Said(BaseModel):
    """Something that was said and heard. `unheard` is what the agent had made and nobody heard."""

    seq: int
    at_ms: int
    role: Literal["user", "assistant"]
    turn: int
    text: str
    unheard: str | None = None
    interrupted: bool | None = None


class SessionDetail(Session):
    """A session with its transcript; `truncated` when it is longer than is shown."""

    transcript: list[Said]
    truncated: bool | None = None


class EventView(BaseModel):
    """An event of the log. `ts` is in microseconds of the Unix clock; `visibility` is `c` when the client sees it."""

    seq: int
    id: str
    type: str
    v: int
    writer: str
    visibility: Literal["c", "i"]
    ts: int
    cause: int | str | None
    data: dict[str, Any]


class EventPage(BaseModel):
    """Events in log order."""

    events: list[EventView]
    more: bool


class Voice(BaseModel):
    """A voice that can speak."""

    id: str
    name: str
    gender: str
    style: str


class Voices(BaseModel):
    """The voices of this installation."""

    voices: list[Voice]


class Status(BaseModel):
    """Which modes can be started, and how many sessions have not ended."""

    local_available: bool
    gemini_available: bool
    claude_available: bool
    active_sessions: int


class FunctionView(BaseModel):
    """A function the agent can call; `parameters` is a JSON Schema of an object."""

    name: str
    description: str
    parameters: dict[str, Any]
    kind: Literal["server", "browser", "async"]
    timeout_s: float


class Functions(BaseModel):
    """The function catalogue."""

    functions: list[FunctionView]
    count: int


class DependencyView(BaseModel):
    """One thing the product needs."""

    ok: bool
    detail: str


class Ready(BaseModel):
    """Whether a session can be held now, and what is missing if not."""

    ready: bool
    dependencies: dict[str, DependencyView]


class Alive(BaseModel):
    """The process runs."""

    ok: bool = Field(default=True)

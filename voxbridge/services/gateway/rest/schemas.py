"""The answers of the REST interface, as shown in OpenAPI. Pure data."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

MODES = Literal["local", "echo", "gemini", "openai", "claude"]


class Problem(BaseModel):
    """An error: `code` for programs, `message` for people, and whether a retry helps."""

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
    agent: str | None = None
    """The requested agent or pipeline, if any."""

    account: str | None = None
    """The account that the session belongs to; null for an erased session."""

    started_at_ms: int
    state: Literal["connecting", "live", "ended"]
    turns: int
    ended_at_ms: int | None = None
    ended_reason: str | None = None
    parent: str | None = None
    """The session, or the account's log (`@…`), whose function asked for this one; null for a session of a client."""


class SessionPage(BaseModel):
    """Sessions, newest first. `next_before` is the `before` of the next page."""

    sessions: list[Session]
    next_before: int | None = None


class Said(BaseModel):
    """Words that were said and heard. `unheard` are words of the agent that were made and not played."""

    seq: int
    at_ms: int
    role: Literal["user", "assistant"]
    turn: int
    text: str
    unheard: str | None = None
    interrupted: bool | None = None
    agent: str | None = None
    voice: str | None = None


class SessionDetail(Session):
    """A session with its transcript; `truncated` when the transcript is cut."""

    transcript: list[Said]
    truncated: bool | None = None
    children: list[Session] | None = None
    """Sessions of agents that its functions asked for, in that order."""


class SilenceView(BaseModel):
    """A stretch in which the user waited and nothing was heard, in ms since the session was requested. `seq` is the position of the event
    that explains it, 0 where there is none; `open` when it still lasts."""

    from_ms: int
    to_ms: int
    cause: str
    why: str
    todo: str
    turn: int
    seq: int
    open: bool


class Silences(BaseModel):
    """The silences of a session, the newest hundred; `live` while the session has not ended."""

    silences: list[SilenceView]
    live: bool


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
    next_after: int | None = None
    """With `more`: the `after` of the next page."""


class Waveform(BaseModel):
    """Peaks of one voice: the smallest and the largest sample, scaled to 127, in equal parts of `from_ms` to `to_ms` of the session.

    `null` where there was no audio. `source` is `record`, `live` (the last seconds of a live session, which is not recorded) or `none`.
    While `complete` is false, a long recording is still being read: ask again.
    """

    recorded: bool
    source: Literal["record", "live", "none"]
    channel: Literal["in", "out"]
    from_ms: int
    to_ms: int
    complete: bool
    low: list[int | None]
    high: list[int | None]


class Line(BaseModel):
    """A message of the conversation given to the model; `calls` are the functions that the agent called with it."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    calls: list[str]


class CallView(BaseModel):
    """An open call."""

    call_id: str
    name: str
    browser: bool


class SpeechView(BaseModel):
    """The user's current utterance: its start and end in ms of microphone audio, and its text once that is final."""

    from_ms: int
    to_ms: int | None
    text: str | None
    complete: bool


class ReplyView(BaseModel):
    """The agent's current reply. `made_ms` of audio exist, of which `played_ms` were played according to the client's last report."""

    generation: int
    turn: int
    text: str
    unsplit: str
    closed: bool
    playing: bool
    made_ms: int
    played_ms: int
    calls: list[CallView]


class TimerView(BaseModel):
    """A timer that is set; `due` in µs of the Unix clock."""

    name: str
    due: int


class EffectView(BaseModel):
    """An operation outside the session that has begun and not ended: a model's answer, a transcription, a voice."""

    id: int
    kind: str
    since: int


class StateView(BaseModel):
    """The state of a session, folded from the inputs that the voice service had taken at `at` (µs of the Unix clock)."""

    sid: str
    at: int
    inputs: int
    state: Literal["connecting", "listening", "user_speaking", "thinking", "calling_tool", "speaking", "restoring", "ended"]
    phase: str
    worker: str
    term: int
    turns: int
    model: str
    voice: str
    client_away_since: int | None
    history: list[Line]
    history_count: int
    speech: SpeechView | None
    reply: ReplyView | None
    cut: ReplyView | None
    notices: list[str]
    timers: list[TimerView]
    effects: list[EffectView]


class Voice(BaseModel):
    """A voice of the agent."""

    id: str
    name: str
    gender: str
    style: str


class Voices(BaseModel):
    """The voices of Gemini Live and the local voices; `local` is null while voxbridge/services/models does not list them."""

    voices: list[Voice]
    local: list[Voice] | None


class Status(BaseModel):
    """The modes that can be started, the number of sessions that have not ended, and whether their audio is kept.

    A provider is available while there is a key for it.
    """

    local_available: bool
    gemini_available: bool
    claude_available: bool
    openai_available: bool
    active_sessions: int
    recording: Literal["off", "allow", "on"]
    """Sessions whose audio is kept: none (`off`), those that ask for it (`allow`), all that do not refuse (`on`)."""


class FunctionView(BaseModel):
    """A function the agent can call; `parameters` is a JSON Schema of an object."""

    name: str
    description: str
    parameters: dict[str, Any]
    kind: Literal["server", "browser", "async"]
    timeout_s: float
    effect: Literal["read", "write", "destructive"]
    approval: Literal["never", "first", "always"]
    """Need for a person's approval of a call: not at all, once for each account, or each time."""
    category: str
    listed: bool
    """False: models reach it through `list_tools` and `run_tool` only, unless an agent's file names it."""


class Functions(BaseModel):
    """The function catalogue."""

    functions: list[FunctionView]
    count: int


class DependencyView(BaseModel):
    """The condition of a dependency, and one sentence that says what to do. A `degraded` dependency still serves."""

    ok: bool
    state: Literal["ok", "degraded", "down"]
    detail: str


class Ready(BaseModel):
    """Readiness for sessions, and what is missing if there is any."""

    ready: bool
    dependencies: dict[str, DependencyView]


class Alive(BaseModel):
    """The process runs."""

    ok: bool = Field(default=True)

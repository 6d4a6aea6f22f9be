"""The answers of the REST interface, as OpenAPI shows them. Pure data."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

MODES = Literal["local", "echo", "gemini", "openai", "claude"]


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
    agent: str | None = None
    """The agent or pipeline that was asked for, if one was."""

    account: str | None = None
    """Whose it is; nothing for an erased one."""

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
    agent: str | None = None
    voice: str | None = None


class SessionDetail(Session):
    """A session with its transcript; `truncated` when it is longer than is shown."""

    transcript: list[Said]
    truncated: bool | None = None


class SilenceView(BaseModel):
    """A stretch in which somebody waited and nothing was heard, in ms since the session was requested. `seq` is the position of the event
    that explains it, 0 where none does; `open`: it goes on."""

    from_ms: int
    to_ms: int
    cause: str
    why: str
    todo: str
    turn: int
    seq: int
    open: bool


class Silences(BaseModel):
    """Why a session was silent, the newest hundred stretches; `live` while it has not ended."""

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
    """With `more`: what the next page is asked to begin after."""


class Waveform(BaseModel):
    """Peaks of one voice: the least and the greatest sample, of 127, in each of equal parts of `from_ms` to `to_ms` of the session.

    `null` where there was no audio. `source` is `record`, `live` (the last seconds of a live session, which is not recorded) or
    `none`. While `complete` is false a long recording is still being read: ask again.
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
    """A message of the conversation that the model is given; `calls` are the functions that the agent called with it."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    calls: list[str]


class CallView(BaseModel):
    """A call that is open."""

    call_id: str
    name: str
    browser: bool


class SpeechView(BaseModel):
    """What the user is saying: when it began and ended, in ms of microphone audio, and the text once it is final."""

    from_ms: int
    to_ms: int | None
    text: str | None
    complete: bool


class ReplyView(BaseModel):
    """What the agent is saying. `made_ms` of audio exist, of which `played_ms` were heard by the client's last report."""

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
    """Something that was begun outside and has not ended: a model's answer, a transcription, a voice."""

    id: int
    kind: str
    since: int


class StateView(BaseModel):
    """The state of a session as folded from the inputs that the voice service had taken at `at` (µs of the Unix clock)."""

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
    """A voice that can speak."""

    id: str
    name: str
    gender: str
    style: str


class Voices(BaseModel):
    """The voices of Gemini Live, and beside them the local ones; `local` is null while voxbridge/services/models does not list them."""

    voices: list[Voice]
    local: list[Voice] | None


class Status(BaseModel):
    """Which modes can be started, how many sessions have not ended, and whether their audio is kept.

    A provider is available while there is a key for it."""

    local_available: bool
    gemini_available: bool
    claude_available: bool
    openai_available: bool
    active_sessions: int
    recording: Literal["off", "allow", "on"]
    """Whether the audio of sessions is kept: of none, of those that ask for it, of all that do not refuse."""


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
    """One thing the product needs: how it stands, and one sentence that says what to do. What is `degraded` still serves."""

    ok: bool
    state: Literal["ok", "degraded", "down"]
    detail: str


class Ready(BaseModel):
    """Whether a session can be held now, and what is missing if not."""

    ready: bool
    dependencies: dict[str, DependencyView]


class Alive(BaseModel):
    """The process runs."""

    ok: bool = Field(default=True)

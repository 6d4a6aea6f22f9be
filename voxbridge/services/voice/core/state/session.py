"""The whole state of a session, and its smaller groups."""

from __future__ import annotations

import copy
from typing import Any, Literal, Self

import msgspec

from voxbridge.services.voice.core.state.client import Client
from voxbridge.services.voice.core.state.conversation import Conversation
from voxbridge.services.voice.core.state.realtime import RealtimeState
from voxbridge.services.voice.core.state.speech import Speech, Utterance
from voxbridge.services.voice.core.state.team import Team
from voxbridge.shared.events.gateway import SessionOptions, SessionRequested
from voxbridge.shared.events.voice import Failure, ToolCalled
from voxbridge.shared.macros.triggers import Match
from voxbridge.shared.spoken_modes import Mode


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the session, fixed when it is opened."""

    idle_timeout_s: int = 600
    turn_timeout_s: int = 30
    tool_rounds: int = 0
    reopens: int = 0
    """Maximum number of times in a row that a turn may be reopened."""

    speak_results: bool = False
    tells_ends: bool = False
    """True if every end of a task is told. False in journals that are older: only announcements and failures are."""

    rules: int = 0
    """Rules that the session goes by: see `inputs.Opened`."""

    filler: bool | None = None
    """True if waits are covered with a few words, unless the session or the agent says otherwise. None in journals that are older than
    fillers: the installation's own voice then does not apologise for a realtime model either."""

    language: str = ""
    prices: dict[str, tuple[float, float]] = {}
    resume_window_s: int = 10
    model_patience_s: int = 0
    stt_patience_s: int = 0
    recorded: bool = False
    """True if its audio is recorded."""

    options: SessionOptions = SessionOptions()
    """Choices of the client."""

    @property
    def owns_up(self) -> bool:
        """True if the installation's own voice apologises for a realtime model."""
        return self.filler is not None


class Ownership(msgspec.Struct, kw_only=True):
    """The worker's hold on the session."""

    term: int = 0
    released: bool = False
    """True if its worker released it and no worker has taken it since."""


class Counters(msgspec.Struct, kw_only=True):
    """Newest number of each kind that was given out, from 1."""

    turns: int = 0
    generation: int = 0
    effects: int = 0
    calls: int = 0
    tokens: int = 0
    """Tokens that models took so far, read and written. Journals of the first releases count those of cascades alone."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A question that the user has to answer; see `consent`."""

    id: str
    """Id of the approval, or of the run that asks."""

    text: str
    kind: Literal["approval", "answer", "choice", "step", "macro"] = "approval"
    """Approval of a call, text for a step of a run, choice how a run goes on, whether its next step may begin, or whether `macro` was
    meant."""

    step: str = ""
    macro: Match | None = None
    heard_at: int = 0
    """Time at which it was heard to its end, µs; 0 while it was not, or when the agent has said something else since."""

    asked: int = 1
    again: bool = False
    """True if it is to be asked once more."""

    alone: bool = False
    """True while nothing else is announced after it, so that the user can answer."""


class Notice(msgspec.Struct, frozen=True):
    """Text that the agent is to say when no one is speaking; `task`: the task that outlives the session and whose end it tells. `greeting`:
    it begins the session."""

    text: str
    task: str = ""
    greeting: bool = False


class Steered(msgspec.Struct, frozen=True, kw_only=True):
    """Destination of plain words of the user, which no model hears."""

    touring: bool = False
    """True while the client's page shows a guided tour, which they steer."""

    mode: Mode = "ai"
    """Destination of what is said to an agent over terminals; see `spoken_modes`."""

    auto: bool = True
    """False while what is said is a draft, which the user sends by hand."""


class Pending(msgspec.Struct, kw_only=True):
    """Open work of the session, and names that it must recognise when they come again."""

    open: tuple[int, ...] = ()
    """Turns that are not over."""

    notices: tuple[Notice, ...] = ()
    """Notices that the agent is to say when no one is speaking."""

    unheard: tuple[str, ...] = ()
    """Tasks of the account that ended and whose end no session has told, as last heard of."""

    wanted: tuple[str, ...] = ()
    """Tasks of them that this session asked to tell."""

    told: tuple[Notice, ...] = ()
    """Notices, said here, of tasks that outlive the session; the newest 64."""

    results: tuple[tuple[str, dict[str, Any]], ...] = ()
    """Results of calls of the current round, by call id."""

    more: bool = False
    """True if the user's words hold another wish than that of the current round's call: the model is asked for it next."""

    held: tuple[ToolCalled, ...] = ()
    """Calls that begin when the user has been quiet for a moment; see `open_calls`."""

    dropped: tuple[str, ...] = ()
    """Ids of cancelled calls whose result may still come; the newest 64."""

    started: tuple[str, ...] = ()
    """Functions that were called because an agent starts with them (`Agent.starts`): each once in a session."""

    texts: tuple[str, ...] = ()
    """Ids of the newest typed texts, to recognise one that is sent again."""

    questions: tuple[Question, ...] = ()
    """Requests for approval, questions of runs and of this session that are open."""

    ending: Failure | None = None
    """Error that lost the realtime model for good: the session ends after the apology."""

    steered: Steered = Steered()

    watched: bool = False
    """True while the timer for an answer of the realtime model runs."""


class Late(msgspec.Struct, frozen=True, kw_only=True):
    """A model that has produced nothing for a while, and the cause once it is known."""

    effect: int
    part: Literal["stt", "llm", "tts"]
    cause: str = ""


class Display(msgspec.Struct, kw_only=True):
    """State shown to the client, and the words that cover its waits."""

    shown: tuple[str, str] = ("", "")
    """State last sent to the client, and its reason."""

    trouble: str = ""
    """Reason, as a sentence for the user, why a due answer is not heard; cleared with the next reply, speech or question."""

    waits: bool = False
    """True while the user waits for a model or a function; see `filler`."""

    overdue: bool = False
    """True if that wait is long."""

    filled: tuple[int, int] = (0, 0)
    """`(turn, count)`: fillers said in this turn."""

    late: Late | None = None
    """Newest model that was late; ignored once its effect has produced something. See `slow_model`."""

    written: tuple[int, str] = (0, "")
    """`(turn, text)` of the last reply whose text was told as a whole; see `written`."""

    called: tuple[int, tuple[str, ...]] = (0, ())
    """`(turn, names)`: functions called in the newest turn that called any."""


class State(msgspec.Struct, kw_only=True):
    """State of a session. `step` changes a copy; the values it holds are never changed in place, except the groups that `copied` copies."""

    sid: str
    phase: Literal["new", "open", "ended"] = "new"
    request: SessionRequested | None = None
    requested_at: int = 0
    settings: Settings = Settings()
    ownership: Ownership = msgspec.field(default_factory=Ownership)
    counters: Counters = msgspec.field(default_factory=Counters)
    team: Team = msgspec.field(default_factory=Team)
    client: Client = msgspec.field(default_factory=Client)
    conversation: Conversation = msgspec.field(default_factory=Conversation)
    utterance: Utterance | None = None
    """The user's speech to a cascade agent, until the end of the turn is decided."""

    speech: Speech = msgspec.field(default_factory=Speech)
    realtime: RealtimeState | None = None
    """State of the agent's realtime model; None for a cascade agent."""

    pending: Pending = msgspec.field(default_factory=Pending)
    display: Display = msgspec.field(default_factory=Display)

    def copied(self) -> Self:
        """Return a copy whose fields, and those of its groups, may be assigned."""
        made = copy.copy(self)
        made.ownership, made.counters, made.team = copy.copy(self.ownership), copy.copy(self.counters), copy.copy(self.team)
        made.client, made.conversation, made.speech = copy.copy(self.client), copy.copy(self.conversation), copy.copy(self.speech)
        made.pending, made.display = copy.copy(self.pending), copy.copy(self.display)
        return made

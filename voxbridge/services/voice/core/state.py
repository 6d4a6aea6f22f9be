"""The state of one voice session, folded from its inputs. All of it is plain data; none of it is audio."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from voxbridge.services.voice.core.outputs import Message, ToolUse
from voxbridge.services.voice.core.prompt.prompt import NOTHING, Earlier
from voxbridge.services.voice.core.state_parts import Handoff as Handoff
from voxbridge.services.voice.core.state_parts import Late as Late
from voxbridge.services.voice.core.state_parts import Mark as Mark
from voxbridge.services.voice.core.state_parts import Note as Note
from voxbridge.shared.agents.functions import Function
from voxbridge.shared.agents.model import Agent
from voxbridge.shared.events.gateway import SessionRequested
from voxbridge.shared.events.voice import Failure, Usage


class Stamps(msgspec.Struct, frozen=True, kw_only=True):
    """When the stages of a turn were reached, µs of the Unix clock."""

    speech_ended: int | None = None
    end_of_turn: int | None = None
    stt_final: int | None = None
    llm_first_token: int | None = None
    first_sentence: int | None = None
    tts_first_audio: int | None = None
    first_audio_sent: int | None = None
    first_audio_heard: int | None = None


class Utterance(msgspec.Struct, frozen=True, kw_only=True):
    """What the user is saying, until the end of the turn is decided."""

    from_ms: int
    to_ms: int | None = None
    """Where the last stretch of voice ended; nothing while the user speaks."""

    complete: bool = False
    """The end of the turn is decided."""

    text: str | None = None
    """The final transcript, once it is there."""

    language: str = ""
    confidence: float | None = None
    final_effect: int | None = None
    turn_effect: int | None = None
    partial_effect: int | None = None
    stt_away: int = 0
    """Since when its transcription fails, µs; see `outages`."""

    stamps: Stamps = Stamps()


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of a reply that is spoken as one. `ms` is the audio made of it so far."""

    text: str
    effect: int | None = None
    ms: int = 0
    done: bool = False
    filler: str = ""
    """Said to cover a wait; then there is no `text`. No history has it."""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A function call that is open."""

    call_id: str
    name: str
    browser: bool = False


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent is saying: one generation."""

    generation: int
    turn: int
    """0 for what answers nobody: the greeting, a notice."""

    pieces: tuple[Piece, ...] = ()
    unsplit: str = ""
    """Text that is not yet a piece."""

    effect: int | None = None
    """The running completion."""

    rounds: int = 0
    plain: bool = False
    """The model was asked once more, without functions."""

    calls: tuple[Call, ...] = ()
    first_piece: int = 0
    """Where the pieces of the current round begin."""

    uses: tuple[ToolUse, ...] = ()
    """What the current round called."""

    closed: bool = False
    """No more text will come."""

    sent: int | None = None
    """When the first frame left, µs."""

    playing: bool = False
    played_ms: int = 0
    played_at: int | None = None
    """When `played_ms` was reported, µs."""

    failed: bool = False
    apology: bool = False
    """It ends in an apology for what there is not."""

    usage: Usage = Usage()
    stamps: Stamps = Stamps()

    written: str = ""
    """What the model wrote in this round, as it wrote it."""

    known: str = ""
    """What a completion that died had written; of the one in its place only what goes beyond it counts."""

    again: str = ""
    """What the completion in its place has written, until it goes beyond `known`."""

    before: str = ""
    """Whole sentences of this round that were heard under an earlier generation."""

    part: str = ""
    """Words that were heard of the sentence that is said again."""

    held: bool = False
    """Nothing of it is spoken until it is known what was heard of its earlier generation."""

    left_ms: int | None = None
    """Of a paused reply whose worker died: the audio that had left for the client, where that is known."""

    llm_away: int = 0
    """Since when its completion fails, µs; see `outages`."""

    tts_away: int = 0
    """Since when its synthesis fails, µs."""

    halved: int = 0
    """How often its model was given half of the conversation, since it found it too long."""

    retrying: bool = False
    """Its synthesis failed and is tried again when the timer fires, not before."""

    blind: bool = False
    """Of a paused reply: its client may not have been there to hear what it did not report."""

    line: int = 0
    """The connection of the realtime model that speaks it; 0 for a reply of the cascade."""

    quiet: bool = False
    """All that there is of it was heard, and more is waited for."""

    goes_on: bool = False
    """Of a reply that was stopped: its turn goes on with another one."""

    remembered: bool = False
    """The history has its words: another one follows it."""

    agent: str = ""
    voice: str = ""
    filler: bool = False
    """It has only words that cover the wait for a realtime model, whose answer takes its place."""

    reopens: int = 0
    """How often its turn may still be reopened, as long as nothing of it was sent; see `reopening`."""


class OpenCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that a realtime model asked for and that is open, whatever became of the response that it stood in."""

    call_id: str
    name: str
    arguments: dict[str, Any]
    ref: str
    """The provider's id, good on the connection `effect` only."""

    effect: int
    browser: bool = False


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """The connection to a realtime model, and what is known of it. `live` keeps it open, `dialogue` talks over it."""

    provider: str
    model: str
    effect: int = 0
    """The running `Connect`."""

    ready: bool = False
    resumes: Literal["", "handle", "seed", "summary"] = ""
    """How the conversation comes to the model over the running connection."""

    shortened: bool = False
    """Of its beginning that connection is told a summary only."""

    handle: str = ""
    """Reference of the last good handle, kept through news that there is none for the moment."""

    handle_at: int = 0
    """When it was issued, µs."""

    handle_knows: int = 0
    """Messages of the user that the model knew when it was issued (`State.asked`)."""

    resumable: bool = False
    """Whether the provider would take the conversation up now as it is."""

    deaths: int = 0
    """Connections that died with this handle and brought no turn."""

    tries: int = 0
    """Connections in a row that brought no turn."""

    lost_at: int = 0
    """Since when the conversation waits for a connection, µs; 0 while it has one, and before the first."""

    restoring: bool = False
    """`session.restored` is due when there is a connection."""

    worker: str = ""
    """Who took the session over, for that event."""

    lost: tuple[str, ...] = ()
    """What it will say was lost."""

    leaving_at: int = 0
    """When the provider closes the connection, µs; 0 while nothing was said of it."""

    from_ms: int = 0
    """Microphone audio from here on has not been answered."""

    audio_ms: int = 0
    """Microphone audio that had been heard when the connection last said something."""

    words: tuple[tuple[str, str], ...] = ()
    """What the user said and is not an event yet, by the provider's item."""

    final: tuple[str, ...] = ()
    """The provider's items that are events, the newest: what comes of them later is late."""

    turn: int = 0
    """The turn that these words belong to, once the model has begun to answer them."""

    asked_at: int = 0
    """How much had been remembered of the conversation when that turn began (`State.remembered`)."""

    ended_at: int = 0
    """When the last of it came, µs."""

    answered_at: int = 0
    """When the model's last turn was over, µs."""

    active: bool = False
    """By the installation's own detector the user speaks, and the model was told so."""

    pause_ms: int = 0
    """Where that speech ended, if it has."""

    asking: bool = False
    """The user said something that the model has not begun to answer."""

    speaking: bool = False
    """By the provider's detector the user speaks."""

    awaited: bool = False
    """The user waits for its words, whatever they depend on."""

    asked: str = ""
    """The last that the user is known to have asked and was not answered to the end."""

    asked_again: bool = False
    """The model stayed silent and was asked again."""

    notice: bool = False
    """The next response answers nobody: a greeting, a notice."""

    announced: str = ""
    """What that one is to say."""

    cut: bool = False
    """The provider said that its response was interrupted: the end of that turn is no answer."""

    muted: bool = False
    """What is left of the response is not wanted."""

    rounds: tuple[int, int] = (0, 0)
    """Rounds of calls that the turn with this number has had: a round ends with its first result."""

    answered: bool = True
    """A result was given since the last call."""

    called: bool = False
    """In the turn that it is in, the model asked for a call: that is an answer too."""

    over: bool = True
    """The model is in no turn."""

    counted_ms: int = 0
    """Of the audio that the connection counts in the model's turn, what is of a reply that is closed."""

    written: str = ""
    """Text of the response that was not spoken."""

    notes: tuple[Note, ...] = ()
    calls: tuple[OpenCall, ...] = ()
    go_on: bool = False
    """A fault cut a response off, or kept a question from being answered: the model is to go on when it can be told so."""

    said: str = ""
    """What was heard of that response."""

    going_on: int = 0
    """The turn that is not over: it is to be answered, or its answer goes on."""


class State(msgspec.Struct, kw_only=True):
    """A session. `step` copies it before it changes anything; what it holds is never changed in place."""

    sid: str
    phase: Literal["new", "open", "ended"] = "new"
    request: SessionRequested | None = None
    requested_at: int = 0
    term: int = 0
    model: str = ""
    voice: str = ""
    output: Literal["audio", "text"] = "audio"
    reports_playback: bool = False
    """The client's protocol has it tell what it has played."""

    reported: bool = False
    """It has told so. One that never does is taken to play by the clock."""

    functions: tuple[Function, ...] = ()
    speak_results: bool = False
    idle_timeout_s: int = 600
    turn_timeout_s: int = 30
    tool_rounds: int = 0
    fills: bool = False
    """Waits are covered, where nobody wishes otherwise."""

    language: str = ""
    waits: bool = False
    """Somebody waits for a model or a function; see `filler`."""

    overdue: bool = False
    """They have waited for long."""

    filled: tuple[int, int] = (0, 0)
    """The turn with this number has had so many fillers."""

    owns_up: bool = False
    """The installation's own voice apologises for a realtime model; not in journals from before it did (`Opened.filler`)."""

    prices: dict[str, tuple[float, float]] = {}
    turns: int = 0
    open: tuple[int, ...] = ()
    """The turns that are not over."""

    generation: int = 0
    effects: int = 0
    calls: int = 0
    shown: tuple[str, str] = ("", "")
    """The state that the client was told, and its reason."""

    instructions: str = ""
    history: tuple[Message, ...] = ()
    earlier: Earlier = NOTHING
    """What was said before `history` begins."""

    utterance: Utterance | None = None
    reply: Reply | None = None
    cut: Reply | None = None
    """A reply that was stopped and whose heard part is not yet known."""

    cut_by_speech: bool = False
    withdrawn: Reply | None = None
    """The answer to a turn that was reopened, until it is known whether the speech that did so has words; see `reopening`."""

    reopens: int = 0
    """How often in a row a turn may be reopened."""

    trailing: tuple[Reply, ...] = ()
    """Replies that are still being heard while another one follows."""

    paused: Reply | None = None
    """What the current reply was before it was stopped to be gone on with, until it is known what was heard of it."""

    trouble: str = ""
    """Why nothing is heard where an answer was due, in a sentence for the person; until something is heard or asked again."""

    ending: Failure | None = None
    """The realtime model is lost for good: the session ends when it was said so."""

    late: Late | None = None
    """The newest model that was late. It is no more as soon as something came of its effect; see `lateness`."""

    unplayed: Reply | None = None
    """The last reply, when its end came by the clock while its client had fallen silent: a client that resumes hears the rest."""

    resume: str = ""
    """What was not heard of a reply that speech cut off; said after all if the speech had no words."""

    broken: tuple[str, bool] | None = None
    """What was heard of a realtime model's response that a voice cut off, until it is known whether that had words; and whether it is
    waited for."""

    redo: int = 0
    """The turn whose reply speech cut off before it had any words; answered after all if the speech had none."""

    results: tuple[tuple[str, dict[str, Any]], ...] = ()
    """Answers to calls of the current round, by call id."""

    dropped: tuple[str, ...] = ()
    """Calls that were cancelled and whose result may still come; the newest 64."""

    notices: tuple[str, ...] = ()
    """What the agent wants to say when nobody speaks."""

    gateway: str = ""
    connection: str = ""
    """Where the client's socket is attached; empty before the first `client.connected`."""

    away_since: int = 0
    """When the client was lost, µs; 0 while it is there. To a client that is away nothing is said."""

    presumed: bool = False
    """That it was lost was only concluded from its gateway's silence: a word of it is proof to the contrary."""

    resume_window_s: int = 10
    model_patience_s: int = 0
    stt_patience_s: int = 0
    recorded: bool = False
    """Its audio is kept."""

    released: bool = False
    """Its worker gave it up, and nobody has taken it since."""

    microphone: Mark | None = None
    """The newest microphone frame whose place is known."""

    sequence: int = 0
    """Number of the first frame of the newest generation that was sent."""

    agents: tuple[Agent, ...] = ()
    """Who may take part."""

    providers: tuple[str, ...] = ()
    """Who could be asked when the session began; nothing where that is not known."""

    agent: Agent = Agent(name="")
    """Who speaks. The name is empty where the session's options make one."""

    catalogue: tuple[Function, ...] = ()
    """All functions there are; `functions` are those of the agent."""

    line: Line | None = None
    """The connection of an agent that is a realtime model; nothing for one of the cascade."""

    watched: bool = False
    """The timer for an answer of the realtime model runs."""

    usual: str = ""
    """The name of the installation's own language model."""

    handoff: Handoff | None = None
    handed: tuple[str, int] = ("", -1)
    """Who handed over to the agent that speaks, and in which turn: in that turn it answers, and does not hand back."""

    returned: int = -1
    """The turn in which it got the conversation back, since the one it had handed over to could not be reached."""

    uncounted: Usage = Usage()
    """Tokens of a realtime model that no completed turn has counted yet."""

    remembered: int = 0
    """Messages that ever came into the history."""

    asked: int = 0
    """Messages of the user that ever came into the history."""

"""State of a voice session, folded from its inputs. Plain data without audio."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from voxbridge.services.voice.core.outputs import Message, ToolUse
from voxbridge.services.voice.core.state_parts import NOTHING, Earlier
from voxbridge.services.voice.core.state_parts import Handoff as Handoff
from voxbridge.services.voice.core.state_parts import Late as Late
from voxbridge.services.voice.core.state_parts import Mark as Mark
from voxbridge.services.voice.core.state_parts import Note as Note
from voxbridge.shared.agents.functions import Function
from voxbridge.shared.agents.model import Agent
from voxbridge.shared.events.gateway import SessionRequested
from voxbridge.shared.events.voice import Failure, Usage


class Stamps(msgspec.Struct, frozen=True, kw_only=True):
    """Times at which the stages of a turn were reached, µs of the Unix clock."""

    speech_ended: int | None = None
    end_of_turn: int | None = None
    stt_final: int | None = None
    llm_first_token: int | None = None
    first_sentence: int | None = None
    tts_first_audio: int | None = None
    first_audio_sent: int | None = None
    first_audio_heard: int | None = None


class Utterance(msgspec.Struct, frozen=True, kw_only=True):
    """Speech of the user, until the end of the turn is decided."""

    from_ms: int
    to_ms: int | None = None
    """End of the last stretch of voice, ms of microphone audio; None while the user speaks."""

    complete: bool = False
    """True once the end of the turn is decided."""

    text: str | None = None
    """Final transcript; None until it is available."""

    language: str = ""
    confidence: float | None = None
    final_effect: int | None = None
    turn_effect: int | None = None
    partial_effect: int | None = None
    stt_away: int = 0
    """Time since which its transcription fails, µs; 0 if it does not. See `model_retry`."""

    stamps: Stamps = Stamps()


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """Part of a reply that is synthesised in one request. `ms` is the audio made of it so far."""

    text: str
    effect: int | None = None
    ms: int = 0
    done: bool = False
    filler: str = ""
    """Words that cover a wait; `text` is then empty. They never enter the history."""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """An open function call of a cascade reply."""

    call_id: str
    name: str
    browser: bool = False


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """Reply of the agent: one generation."""

    generation: int
    turn: int
    """Turn that it answers; 0 for a reply that answers no turn: a greeting or a notice."""

    pieces: tuple[Piece, ...] = ()
    unsplit: str = ""
    """Text not yet cut into pieces."""

    effect: int | None = None
    """Id of the running completion."""

    rounds: int = 0
    plain: bool = False
    """True if the model was asked once more, without functions."""

    calls: tuple[Call, ...] = ()
    first_piece: int = 0
    """Index of the first piece of the current round."""

    uses: tuple[ToolUse, ...] = ()
    """Calls made in the current round."""

    closed: bool = False
    """True if no more text will come."""

    sent: int | None = None
    """Time the first frame was sent, µs."""

    playing: bool = False
    played_ms: int = 0
    played_at: int | None = None
    """Time `played_ms` was reported, µs."""

    failed: bool = False
    apology: bool = False
    """True if it ends in an apology for a missing answer."""

    usage: Usage = Usage()
    stamps: Stamps = Stamps()

    written: str = ""
    """Unchanged text that the model wrote in this round."""

    known: str = ""
    """Text of a completion that was lost; of the completion that replaces it, only text beyond this is used."""

    again: str = ""
    """Text of the replacing completion, until it goes beyond `known`."""

    before: str = ""
    """Whole sentences of this round that were heard under an earlier generation."""

    part: str = ""
    """Words heard of the sentence that is being said again."""

    held: bool = False
    """True while it must not be spoken, because it is not known yet what was heard of its earlier generation."""

    left_ms: int | None = None
    """Milliseconds of audio that had left for the client, for a stopped reply whose worker died; None if unknown."""

    llm_away: int = 0
    """Time since which its completion fails, µs; 0 if it does not. See `model_retry`."""

    tts_away: int = 0
    """Time since which its synthesis fails, µs; 0 if it does not."""

    halved: int = 0
    """Number of times the conversation sent to its model was halved, because the model rejected it as too long."""

    retrying: bool = False
    """True if its synthesis failed and must not be retried before the timer fires."""

    blind: bool = False
    """True for a paused reply whose client may have been away: audio that it did not report does not count as heard."""

    line: int = 0
    """Effect id of the realtime connection whose model speaks it; 0 for a reply of the cascade."""

    quiet: bool = False
    """True if all audio made so far was heard and more is expected."""

    goes_on: bool = False
    """True if its turn continues with another reply."""

    remembered: bool = False
    """True if its words are in the history already, because another reply follows it."""

    agent: str = ""
    voice: str = ""
    filler: bool = False
    """True if it holds only words that cover the wait for a realtime model, whose answer takes its place."""

    reopens: int = 0
    """Number of times its turn may still be reopened, as long as none of its audio was sent; see `reopening`."""


class OpenCall(msgspec.Struct, frozen=True, kw_only=True):
    """An open call of a realtime model. It outlives the response that requested it."""

    call_id: str
    name: str
    arguments: dict[str, Any]
    ref: str
    """Id given by the provider, valid on the connection `effect` only."""

    effect: int
    browser: bool = False


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """State of the connection to a realtime model. `connection` keeps it open, `responses` holds the conversation over it."""

    provider: str
    model: str
    effect: int = 0
    """Id of the running `Connect` effect."""

    ready: bool = False
    resumes: Literal["", "handle", "seed", "summary"] = ""
    """Way in which the model learns the conversation so far over the running connection."""

    shortened: bool = False
    """True if that connection gives the model only a summary of the conversation's beginning."""

    handle: str = ""
    """Reference of the last good handle. It is kept while the provider reports that the session cannot be resumed at the moment."""

    handle_at: int = 0
    """Time the handle was issued, µs."""

    handle_knows: int = 0
    """Number of user messages (`State.asked`) that the model knew when the handle was issued."""

    resumable: bool = False
    """True if the provider would resume the conversation as it is now."""

    deaths: int = 0
    """Connections lost while this handle was held, since it was issued or the last turn was completed."""

    tries: int = 0
    """Consecutive connections that completed no turn."""

    lost_at: int = 0
    """Time since which the conversation waits for a connection, µs; 0 while it has one, and before the first."""

    restoring: bool = False
    """True if `session.restored` is to be written when a connection is ready."""

    worker: str = ""
    """Worker that took the session over, for that event."""

    lost: tuple[str, ...] = ()
    """Descriptions of what was lost, for that event."""

    leaving_at: int = 0
    """Time at which the provider will close the connection, µs; 0 until it announces that."""

    from_ms: int = 0
    """Position in the microphone audio, ms, from which on nothing was answered."""

    audio_ms: int = 0
    """Milliseconds of microphone audio heard at the connection's last report."""

    words: tuple[tuple[str, str], ...] = ()
    """Words of the user that are in no event yet, as `(provider's item, text)`."""

    final: tuple[str, ...] = ()
    """Newest items of the provider that are in events; later words of these items are ignored."""

    turn: int = 0
    """Turn that `words` belong to; 0 until the model begins to answer them."""

    asked_at: int = 0
    """Value of `State.remembered` when that turn began."""

    ended_at: int = 0
    """Time of the user's last words or end of speech, µs."""

    answered_at: int = 0
    """End of the model's last turn, µs."""

    active: bool = False
    """True while the installation's own detector hears the user speak; the model was told so."""

    pause_ms: int = 0
    """Position in the microphone audio, ms, at which that speech last paused."""

    asking: bool = False
    """True if the user said something that the model has not begun to answer."""

    speaking: bool = False
    """True while the provider's detector hears the user speak."""

    awaited: bool = False
    """True while the user waits for the model to speak, whatever the answer depends on."""

    asked: str = ""
    """Last known question of the user that was not answered completely."""

    asked_again: bool = False
    """True if the model stayed silent and was asked again."""

    notice: bool = False
    """True if the next response answers no turn: a greeting or a notice."""

    announced: str = ""
    """Text that this response is to say."""

    cut: bool = False
    """True if the model's response was interrupted: the end of its turn then counts as no answer."""

    muted: bool = False
    """True if the rest of the response is to be ignored."""

    rounds: tuple[int, int] = (0, 0)
    """`(turn, count)`: rounds of calls in this turn. A round ends with its first result."""

    answered: bool = True
    """True if a result was given since the last call."""

    called: bool = False
    """True if the model requested a call in its current turn, which counts as an answer."""

    over: bool = True
    """True if the model is in no turn."""

    counted_ms: int = 0
    """Milliseconds of audio in the model's current turn, as the connection counts it, that belong to a reply that is closed."""

    written: str = ""
    """Text of the response that the model wrote and did not speak."""

    notes: tuple[Note, ...] = ()
    calls: tuple[OpenCall, ...] = ()
    go_on: bool = False
    """True if a fault cut a response off or left a question unanswered: the model is told to go on as soon as it can be told."""

    said: str = ""
    """Words heard of that response."""

    going_on: int = 0
    """Turn that is still to be answered, or whose answer is still to be continued; 0 if there is none."""


class State(msgspec.Struct, kw_only=True):
    """State of a session. `step` changes a copy; the values it holds are never changed in place."""

    sid: str
    phase: Literal["new", "open", "ended"] = "new"
    request: SessionRequested | None = None
    requested_at: int = 0
    term: int = 0
    model: str = ""
    voice: str = ""
    output: Literal["audio", "text"] = "audio"
    reports_playback: bool = False
    """True if the client's protocol includes playback reports."""

    reported: bool = False
    """True once it has reported playback. A client that never does is assumed to play in real time."""

    functions: tuple[Function, ...] = ()
    speak_results: bool = False
    idle_timeout_s: int = 600
    turn_timeout_s: int = 30
    tool_rounds: int = 0
    fills: bool = False
    """True if waits are covered with a few words, unless the session or the agent says otherwise."""

    language: str = ""
    waits: bool = False
    """True while the user waits for a model or a function; see `filler`."""

    overdue: bool = False
    """True if that wait is long."""

    filled: tuple[int, int] = (0, 0)
    """`(turn, count)`: fillers said in this turn."""

    owns_up: bool = False
    """True if the installation's own voice apologises for a realtime model; false in journals older than that (`Opened.filler`)."""

    prices: dict[str, tuple[float, float]] = {}
    turns: int = 0
    open: tuple[int, ...] = ()
    """Turns that are not over."""

    texts: tuple[str, ...] = ()
    """Names of the newest typed texts, to recognise one that is sent again."""

    generation: int = 0
    effects: int = 0
    calls: int = 0
    shown: tuple[str, str] = ("", "")
    """State last sent to the client, and its reason."""

    instructions: str = ""
    history: tuple[Message, ...] = ()
    earlier: Earlier = NOTHING
    """Summary of what was said before `history` begins."""

    utterance: Utterance | None = None
    reply: Reply | None = None
    cut: Reply | None = None
    """Stopped reply whose heard part is not known yet."""

    cut_by_speech: bool = False
    withdrawn: Reply | None = None
    """Answer to a reopened turn, until it is known whether the speech that reopened it has words; see `reopening`."""

    reopens: int = 0
    """Maximum number of times in a row that a turn may be reopened."""

    trailing: tuple[Reply, ...] = ()
    """Replies that are still being heard while a later reply follows."""

    paused: Reply | None = None
    """Earlier generation of the current reply, which was stopped to be continued; kept until it is known what was heard of it."""

    trouble: str = ""
    """Reason, as a sentence for the user, why a due answer is not heard; cleared with the next reply, speech or question."""

    ending: Failure | None = None
    """Error that lost the realtime model for good: the session ends after the apology."""

    late: Late | None = None
    """Newest model that was late; ignored once its effect has produced something. See `slow_model`."""

    unplayed: Reply | None = None
    """Last reply, if it was ended by the clock after its client had stopped reporting; a client that resumes hears the rest."""

    resume: str = ""
    """Unheard text of a reply that speech cut off; said after all if the speech had no words."""

    broken: tuple[str, bool] | None = None
    """`(heard, waiting)`: words heard of a realtime model's response that a voice cut off, and whether the timer for the words of that
    voice runs; None once it is known whether there are any."""

    redo: int = 0
    """Turn whose reply was cut off by speech before it had any words; answered after all if the speech had none."""

    results: tuple[tuple[str, dict[str, Any]], ...] = ()
    """Results of calls of the current round, by call id."""

    dropped: tuple[str, ...] = ()
    """Ids of cancelled calls whose result may still come; the newest 64."""

    notices: tuple[str, ...] = ()
    """Texts that the agent is to say when no one is speaking."""

    gateway: str = ""
    connection: str = ""
    """Connection of the client's socket at `gateway`; both are empty before the first `client.connected`."""

    away_since: int = 0
    """Time the client was lost, µs; 0 while it is connected. No reply is spoken while the client is away."""

    presumed: bool = False
    """True if the loss was inferred from missed gateway heartbeats; any message from the client clears it."""

    resume_window_s: int = 10
    model_patience_s: int = 0
    stt_patience_s: int = 0
    recorded: bool = False
    """True if its audio is recorded."""

    released: bool = False
    """True if its worker released it and no worker has taken it since."""

    microphone: Mark | None = None
    """Newest microphone frame whose position is known."""

    sequence: int = 0
    """Sequence number of the first frame of the newest generation that was sent."""

    agents: tuple[Agent, ...] = ()
    """Agents that may take part; empty if the session's options define the agent."""

    providers: tuple[str, ...] = ()
    """Providers that were available when the session began; empty if unknown."""

    agent: Agent = Agent(name="")
    """Agent that speaks. Its name is empty if the session's options define it."""

    catalogue: tuple[Function, ...] = ()
    """All functions of the session; `functions` are those of the agent."""

    line: Line | None = None
    """Connection of an agent with a realtime model; None for a cascade agent."""

    watched: bool = False
    """True while the timer for an answer of the realtime model runs."""

    usual: str = ""
    """Name of the installation's own language model."""

    handoff: Handoff | None = None
    handed: tuple[str, int] = ("", -1)
    """Agent that handed over to the one that speaks, and the turn of the handoff. In that turn, it must answer and cannot hand back."""

    returned: int = -1
    """Turn in which the agent got the conversation back because the target of its handoff could not be reached; -1 if there is none."""

    uncounted: Usage = Usage()
    """Tokens of a realtime model that no completed turn has counted yet."""

    remembered: int = 0
    """Number of messages ever put into the history."""

    asked: int = 0
    """Number of user messages ever put into the history."""

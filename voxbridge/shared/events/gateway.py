"""Events that the gateway writes: what clients asked for, said and reported."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from voxbridge.shared.agents.functions import Function
from voxbridge.shared.events.envelope import Event, event
from voxbridge.shared.platform.handlers import Configuration

Mode = Literal["local", "echo", "gemini", "openai", "claude"]
PlaybackState = Literal["playing", "finished", "flushed"]


class ClientCapabilities(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Abilities of the client, from its handshake."""

    protocol: Literal["vox", "voxbridge.v1"] = "vox"
    browser: tuple[str, ...] = ()
    """Names of functions of the catalogue that the page answers."""

    chat: bool = False
    """True if it is told the greeting, and the whole text of a reply, as soon as they are known."""


class SessionOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Choices of a client about how its session speaks and listens."""

    greeting: str | None = None
    """Words that begin the session, empty for none; None: as the agent and the installation say."""

    language: str = ""
    """Language that is spoken, an ISO 639-1 code with or without a region; empty: as the agent says."""

    speed: float = 1.0
    """Factor by which speech is faster than usual."""

    barge_in_words: int = 0
    """Words that the user must have said to stop the agent; 0: any voice does."""

    push_to_talk: bool = False
    """True if the user's turn ends when the microphone is released, and by no silence."""

    interim: bool = True
    """True if the user's words are told while they are said."""

    cleaner: bool = True
    """True if figures, dates and markup are made speakable before they are synthesised."""

    output: Literal["", "audio", "text"] = ""
    """Way in which replies come; empty: as the agent says."""

    time_zone: str = ""
    """Time zone of the person, by its IANA name; empty: the installation's."""


class PublicKey(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Publishable key that a session was opened with, and the limits that it set."""

    id: str
    live: bool
    digest: str = ""
    """SHA-256, in hex, of what the page configured."""

    functions: tuple[str, ...] = ()
    """Functions of the installation that the key offers; a stranger may read the key, so all others are left out."""

    seconds: int = 0
    """Time that the session may last; 0: as the installation says."""

    tokens: int = 0
    """Tokens, read and written, that its models may take together; 0 for any number."""


class Child(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Origin and limits of a session that a function of another session asked for: it has no client, and nobody is there to approve
    anything."""

    parent: str
    """Id of the session, or of the account's log, in which the function was called."""

    call_id: str
    kind: Literal["run", "expert"]
    """`run`: one text, answered once, then the session ends. `expert`: a thread of questions, which ends with its parent."""

    seconds: int
    """Time that the session may last."""

    tokens: int
    """Tokens, read and written, that its models may take together."""


@event("session.requested", writer="gateway")
class SessionRequested(Event, frozen=True, kw_only=True):
    """A client asked for a session. Empty strings stand for the installation's defaults."""

    mode: Mode
    model: str = ""
    voice: str = ""
    system_prompt: str = ""
    agent: str = ""
    """Name of an agent or a pipeline of the installation; its files then replace what the mode would set."""

    output: Literal["", "audio", "text"] = ""
    """Form of the replies; empty: as the mode or the agent says."""

    record: bool | None = None
    """True if the client wants its audio recorded, False if it refuses that; None: as the agent and the installation say."""

    filler: bool | None = None
    """True if a few words cover a wait; None: as the agent and the installation say."""

    functions: tuple[Function, ...] = ()
    """Functions that the page answers itself, as it declared them."""

    options: SessionOptions = SessionOptions()
    account: str = "local"
    key: PublicKey | None = None
    """Set for a session that was opened with a publishable key."""

    child: Child | None = None
    """Set for a session that was asked for by a function of another one."""

    client: ClientCapabilities = ClientCapabilities()
    resume_hash: str = ""
    """SHA-256, in hex, of the token with which a client resumes the session; empty only in old logs, where plain clients could not
    resume."""


@event("session.configured", writer="gateway")
class SessionConfigured(Event, frozen=True, kw_only=True):
    """A page configured the session: executors find the sources of its handlers here. It stands in the log before any call can."""

    account: str
    environment: Literal["live", "test"]
    """Kind of the page's key: handlers have the secrets of this kind alone."""

    configuration: Configuration
    digest: str
    """`voxbridge.shared.platform.handlers.digest_of` of it."""

    hosts: tuple[str, ...] = ()
    """Hosts (`api.example.com`, `*.example.com`) that the account's handlers may ask; none stands for any public one."""


@event("client.connected", writer="gateway")
class ClientConnected(Event, frozen=True, kw_only=True):
    """A socket was attached to the session. `last_seq` is the last log position that a resuming client had seen; the socket attached before
    it, if it is still open, is closed."""

    gateway: str
    connection: str
    resumed: bool = False
    last_seq: int = 0


@event("client.disconnected", writer="gateway")
class ClientDisconnected(Event, frozen=True, kw_only=True):
    """The socket is gone. `last_seq` is the last log position that was written to it."""

    gateway: str
    connection: str
    reason: str
    last_seq: int


@event("text.received", writer="gateway")
class TextReceived(Event, frozen=True, kw_only=True):
    """The user typed."""

    text: str
    text_id: str = ""
    """The client's name for the text. A client that does not know whether a text arrived sends it again under the same name."""


@event("playback.reported", writer="gateway")
class PlaybackReported(Event, frozen=True, kw_only=True):
    """The client reported how much of a generation it has played, in ms of audio."""

    generation: int
    played_ms: int
    state: PlaybackState


@event("audio.ended", writer="gateway")
class AudioEnded(Event, frozen=True, kw_only=True):
    """The microphone was paused or released."""


@event("interrupt.requested", writer="gateway")
class InterruptRequested(Event, frozen=True, kw_only=True):
    """The user asked the agent to stop speaking."""


@event("output.requested", writer="gateway")
class OutputRequested(Event, frozen=True, kw_only=True):
    """The user goes on by voice, or in text: from here on replies are spoken, or only written."""

    output: Literal["audio", "text"]


@event("reset.requested", writer="gateway")
class ResetRequested(Event, frozen=True, kw_only=True):
    """The user wants to begin the conversation anew, in the same session."""


@event("browser_call.answered", writer="gateway")
class BrowserCallAnswered(Event, frozen=True, kw_only=True):
    """The page answered a call of one of its own functions."""

    call_id: str
    name: str
    result: dict[str, Any]


@event("approval.clicked", writer="gateway")
class ApprovalClicked(Event, frozen=True, kw_only=True):
    """The user answered a request for approval in the client; `scope` makes it stand for later calls too."""

    approval_id: str
    answer: Literal["approved", "denied"]
    scope: Literal["once", "arguments", "function"] = "once"


@event("tool.requested", writer="gateway")
class ToolRequested(Event, frozen=True, kw_only=True):
    """A client asked for a function outside any session; stands in the log of its account. `key` is a digest of the client's idempotency
    key, if it gave one: the same key is the same call. `request` is a digest of name and arguments, by which a key that comes with another
    request is refused."""

    call_id: str
    name: str
    arguments: dict[str, Any]
    deadline_ms: int
    account: str = "local"
    key: str = ""
    request: str = ""
    by: Literal["rest"] = "rest"


@event("run.answer_received", writer="gateway")
class RunAnswerReceived(Event, frozen=True, kw_only=True):
    """The user answered the question of a run in a client. `step` names the step that asked, so that a late answer counts for no other
    one; empty: whichever asks now."""

    run_id: str
    text: str
    step: str = ""


@event("task.cancel_requested", writer="gateway")
class TaskCancelRequested(Event, frozen=True, kw_only=True):
    """The user, or a client of the account, wants a task to be cancelled."""

    task_id: str


@event("page.visited", writer="gateway")
class PageVisited(Event, frozen=True, kw_only=True):
    """The user came to a page of a client; stands in the log of what is known of the account's screen, as the next four do. `session` is
    the one that the client had open; empty where it had none. Texts are as the page sent them, without what looks secret."""

    visit_id: str
    page: str
    title: str = ""
    session: str = ""


@event("error.reported", writer="gateway")
class ErrorReported(Event, frozen=True, kw_only=True):
    """A client met an error, such as one that its page did not catch."""

    error_id: str
    error_type: str
    message: str
    page: str = ""
    session: str = ""


@event("error.resolved", writer="gateway")
class ErrorResolved(Event, frozen=True, kw_only=True):
    """An error is no longer of interest: the user, or the page, says so."""

    error_id: str


@event("context.set", writer="gateway")
class ContextSet(Event, frozen=True, kw_only=True):
    """A client stated something about what the user works on; an empty `value` takes it back."""

    key: str
    value: str
    session: str = ""


@event("awareness.switched", writer="gateway")
class AwarenessSwitched(Event, frozen=True, kw_only=True):
    """The user chose the sources that nothing is kept of from now on; all others are on. What was kept of them is erased."""

    off: tuple[str, ...]


@event("handoff.requested", writer="gateway")
class HandoffRequested(Event, frozen=True, kw_only=True):
    """An operator wants another agent to continue the conversation."""

    target: str
    reason: str = ""


@event("session.end_requested", writer="gateway")
class SessionEndRequested(Event, frozen=True, kw_only=True):
    """A client, the gateway or an operator asked for the end of the session."""

    by: Literal["client", "gateway", "operator"]
    reason: str

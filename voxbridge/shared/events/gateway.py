"""Events that the gateway writes: what clients asked for, said and reported."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from voxbridge.shared.agents.functions import Function
from voxbridge.shared.events.envelope import Event, event

Mode = Literal["local", "echo", "gemini", "openai", "claude"]
PlaybackState = Literal["playing", "finished", "flushed"]


class ClientCapabilities(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Abilities of the client, from its handshake."""

    protocol: Literal["vox", "voxbridge.v1"] = "vox"
    browser: tuple[str, ...] = ()
    """Names of functions of the catalogue that the page answers."""


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

    account: str = "local"
    client: ClientCapabilities = ClientCapabilities()
    resume_hash: str = ""
    """SHA-256, in hex, of the token with which a client resumes the session; empty only in old logs, where plain clients could not
    resume."""


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


@event("task.cancel_requested", writer="gateway")
class TaskCancelRequested(Event, frozen=True, kw_only=True):
    """The user, or a client of the account, wants a task to be cancelled."""

    task_id: str


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

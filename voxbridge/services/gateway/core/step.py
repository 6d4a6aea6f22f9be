"""A VOX connection as a pure state machine: inputs in, outputs out (docs/protocol.md).

Owns every rule of the protocol: which message is allowed when, how a wrong message is answered, when the socket is closed. Does not own the
socket, the bus or the clock: each call takes one input and returns the outputs, in order, for the shell to perform. Audio frames bypass it
(`takes_audio` says whether they may pass). A crash loses nothing that the log does not have.
"""

from __future__ import annotations

from collections import deque
from enum import Enum, auto
from typing import Any, Final

import msgspec

from voxbridge.services.gateway.core import messages, outbound, page_functions, resume_rules, session_token
from voxbridge.services.gateway.core.browser_calls import Calls
from voxbridge.services.gateway.core.messages import ClientMessage
from voxbridge.services.gateway.core.outputs import (
    FAULT,
    NORMAL,
    NOT_ALLOWED,
    NOT_THERE,
    RESTARTING,
    TAKEN_OVER,
    TOO_MANY_WRONG,
    TOO_SLOW,
    TRY_LATER,
    Append,
    Attach,
    Close,
    Ended,
    Open,
    Output,
    Outputs,
    PublishMic,
    Resume,
    Send,
)
from voxbridge.services.gateway.core.session_token import SessionToken
from voxbridge.shared import events
from voxbridge.shared.audio import frames
from voxbridge.shared.bus import moments
from voxbridge.shared.errors import Code, Unavailable, VoxbridgeError

FIRST_WORD_MS: Final = 60_000
"""Milliseconds that a socket may be open without a `start` or a `resume`: it takes one of the gateway's limited places."""
START_TIMEOUT_MS: Final = 10_000
"""Milliseconds that a session may wait for a voice worker, and a resume for the log."""
END_TIMEOUT_MS: Final = 5_000
"""Milliseconds that the end of a session may wait for the voice worker."""
OWNER_TIMEOUT_MS: Final = 30_000
WRONG_LIMIT: Final = 100
WRONG_WINDOW_MS: Final = 10_000
WAITING_LIMIT: Final = 64
"""Events that may be queued while the session is opened or resumed."""


_MODEL_AWAY: Final = moments.StateChanged(state="restoring", reason="the connection to the model was lost and is opened again")
_WAITING_FOR_MODEL: Final = ("listening", "thinking", "calling_tool")


class Phase(Enum):
    """The phase of a connection."""

    FRESH = auto()
    OPENING = auto()
    RESUMING = auto()
    REQUESTED = auto()
    LIVE = auto()
    ENDING = auto()
    CLOSED = auto()


class Connection:
    """The state of one connection. `sid` is the id of the session if this connection starts one; `v1` says whether it speaks
    `voxbridge.v1`. The client resumes that session with `resume_token`, and the log keeps `resume_hash` of it."""

    def __init__(self, *, sid: str, v1: bool, gateway: str, name: str, resume_token: str = "", resume_hash: str = "") -> None:
        self.phase = Phase.FRESH
        self.last_seq = 0
        self._reader = outbound.Reader(sid, v1, resume_token)
        self._resume_hash = resume_hash
        self._otherwise: tuple[outbound.Reader, Open] | None = None
        """The new session that a plain client gets when its session cannot be resumed."""
        self._gateway = gateway
        self._name = name
        self._asked_ms = 0
        self._lost_since: int | None = None
        self._restoring = False
        self._model_away = False
        self._told_to = 0
        self._state: moments.StateChanged | None = None
        self._calls = Calls()
        self._set_up = False
        self._waiting: list[events.Event] | None = None
        self._answers: list[messages.BrowserFunctionResult] = []
        self._wrong: deque[int] | None = None

    @property
    def takes_audio(self) -> bool:
        """True when microphone frames may be published now."""
        return self.phase in (Phase.REQUESTED, Phase.LIVE)

    @property
    def attached(self) -> bool:
        """True when the connection holds a session that has not ended."""
        return self.phase in (Phase.REQUESTED, Phase.LIVE, Phase.ENDING)

    def receive_text(self, payload: bytes, now_ms: int) -> Outputs:
        """Take a text message, as its bytes."""
        if self.phase is Phase.CLOSED:
            return ()
        try:
            return self._take(messages.read(payload), now_ms)
        except VoxbridgeError as error:
            return self._wrong_message(error, now_ms)

    def receive_binary(self, payload: bytes, now_ms: int) -> Outputs:
        """Take a binary message that the audio path refused, and answer with the reason. Frames that come while a session is opened or ends
        are dropped."""
        if self.phase is Phase.CLOSED:
            return ()
        try:
            self._check_binary(payload)
        except VoxbridgeError as error:
            return self._wrong_message(error, now_ms)
        return ()

    def opened(self) -> Outputs:
        """Take the completion of `Open`: the session is in the log and its feeds run. If the client left meanwhile, end the session."""
        if self.phase is not Phase.OPENING:
            return (Append(events.gateway.SessionEndRequested(by="gateway", reason="client_left")),)
        self.phase = Phase.REQUESTED
        return self._attach(events.gateway.ClientConnected(gateway=self._gateway, connection=self._name))

    def resumed(self, known: resume_rules.Known, snapshot: dict[str, Any] | None, now_ms: int) -> Outputs:
        """Take the result of `Resume`: the session was found. Next come the events after the client's position, or those after `known.top`
        where a snapshot replaces what was missed. `calls_known` is called when the past was read."""
        if self.phase is not Phase.RESUMING:
            return ()
        asked, self.last_seq = self.last_seq, known.top if snapshot is not None else self.last_seq
        self._asked_ms = now_ms
        self.phase = Phase.LIVE if known.started else Phase.REQUESTED
        self._model_away, self._told_to = known.model_away, known.top
        if self._state is not None:  # reported by the worker since the log was read
            known = msgspec.structs.replace(known, state=self._shown(self._state).state)
        self._restoring = known.state == "restoring" and not self._model_away
        if known.state != "restoring":
            self._state = moments.StateChanged(state=known.state)
        attached = self._attach(events.gateway.ClientConnected(gateway=self._gateway, connection=self._name, resumed=True, last_seq=asked))
        if self._reader.v1:
            return (Send(outbound.resumed(self._reader.sid, known, last_seq=asked, snapshot=snapshot)), *attached)
        self._otherwise = None
        if not known.started:  # `setup_complete` follows
            self._reader = msgspec.structs.replace(self._reader, resumed=True)
            return attached
        self._set_up = True
        return (Send(outbound.gone_on(self._reader.sid, known)), *attached)

    def calls_known(self, past: Calls, now_ms: int) -> Outputs:
        """Take the calls that the past left open, and handle the page's answers that waited for them."""
        self._calls.complete(past)
        return self._answer_kept(now_ms) if self.attached else ()

    def refused(self, now_ms: int) -> Outputs:
        """Take the refusal of `Resume`: there is no session that this client may resume. A plain client gets a new session, as with any
        other `start`."""
        if self.phase is not Phase.RESUMING:
            return ()
        if self._otherwise is not None:
            (self._reader, opens), self._otherwise = self._otherwise, None
            self._calls, self.last_seq = Calls(), 0
            self.phase, self._asked_ms = Phase.OPENING, now_ms
            told = self._answer_kept(now_ms)
            return (*told, opens) if self.phase is Phase.OPENING else told
        error = VoxbridgeError(Code.NOT_FOUND, "There is no session to resume with this id and token.")
        return (Send(outbound.of_error(error)), *self._close(NOT_THERE, "no such session"))

    def taken_over(self) -> Outputs:
        """Close: another socket was attached to the session after this one. No `client.disconnected` is written, because the session still
        has a client."""
        if not self.attached:
            return ()
        error = VoxbridgeError(Code.CONFLICT, "Another client has resumed this session and goes on with it.")
        return (Send(outbound.of_error(error)), *self._close(TAKEN_OVER, "taken over"))

    def receive_event(self, recorded: events.Recorded) -> Outputs:
        """Take an event of the log that the client may see."""
        if self.phase is Phase.CLOSED or recorded.seq <= self.last_seq:
            return ()
        self.last_seq = recorded.seq
        event = recorded.event
        if isinstance(event, events.voice.SessionEnded):
            return self._session_ended(recorded, event)
        if isinstance(event, events.voice.SessionStarted) and self.phase is Phase.REQUESTED:
            self.phase = Phase.LIVE
        self._calls.take(event)
        if isinstance(event, events.voice.SessionStarted) and self._set_up:
            return ()
        message = outbound.of_event(recorded, self._reader)
        if isinstance(event, events.voice.ProviderGoAway) and not self._reader.v1 and recorded.seq > self._told_to:
            message = outbound.model_leaves(self._session_token(), recorded.seq)
        told = () if message is None else (Send(message),)
        return (*told, *self._model_line(event)) if recorded.seq > self._told_to else told

    def receive_moment(self, moment: moments.Moment) -> Outputs:
        """Take a moment from the voice service."""
        if isinstance(moment, moments.StateChanged):
            self._state = moment
            self._restoring = False
            moment = self._shown(moment)
        if not self.attached:
            return ()
        message = outbound.of_moment(moment, self._reader)
        return () if message is None else (Send(message),)

    def tick(self, now_ms: int, *, owned: bool | None) -> Outputs:
        """Check the timeouts. `owned` says whether a voice worker renews the session's lease; None when that is not known."""
        if self.phase in (Phase.OPENING, Phase.REQUESTED) and now_ms - self._asked_ms >= START_TIMEOUT_MS:
            error = VoxbridgeError(
                Code.OVERLOADED,
                f"No voice worker took the session within {START_TIMEOUT_MS // 1000} s. Try again later.",
                limit=START_TIMEOUT_MS,
            )
            return self._give_up(error, "no_worker")
        if self.phase is Phase.RESUMING and now_ms - self._asked_ms >= START_TIMEOUT_MS:
            return self.failed(Unavailable("The event log does not answer. Try again.", retry_after_ms=2_000))
        if self.phase is Phase.FRESH:
            self._asked_ms = self._asked_ms or now_ms
            if now_ms - self._asked_ms >= FIRST_WORD_MS:
                message = f"The first message comes within {FIRST_WORD_MS // 1_000} s: `start` or `resume`."
                return self.failed(VoxbridgeError(Code.TIMED_OUT, message, limit=FIRST_WORD_MS, retryable=True))
        if self.phase is Phase.ENDING and now_ms - self._asked_ms >= END_TIMEOUT_MS:
            return self._close(NORMAL, "the session ended")
        if self.phase is not Phase.LIVE or owned is None:
            return ()
        return self._found() if owned else self._lost(now_ms)

    def failed(self, error: VoxbridgeError) -> Outputs:
        """Close because the log, or the opening, failed for good."""
        if self.phase is Phase.CLOSED:
            return ()
        outputs: list[Output] = [Send(outbound.of_error(error))]
        if error.code in (Code.UNAUTHENTICATED, Code.PERMISSION_DENIED):
            outputs.extend(self._close(NOT_ALLOWED, "this session is not allowed"))
        else:
            outputs.extend(self._close(TRY_LATER if error.retryable else FAULT, "the gateway cannot go on with this session"))
        return outputs

    def disconnected(self, reason: str) -> Outputs:
        """Take the loss of the socket."""
        outputs = self._detached(reason)
        self.phase = Phase.CLOSED
        return outputs

    def shut_down(self) -> Outputs:
        """Close because the gateway is stopping."""
        if self.phase is Phase.CLOSED:
            return ()
        outputs: list[Output] = [Send(outbound.go_away(self._session_token()))]
        outputs.extend(self._detached("the gateway is restarting"))
        outputs.extend(self._close(RESTARTING, "the gateway is restarting"))
        return outputs

    def too_slow(self) -> Outputs:
        """Close because the client did not read and its queue was full."""
        if self.phase is Phase.CLOSED:
            return ()
        outputs = [*self._detached("the client reads too slowly")]
        outputs.extend(self._close(TOO_SLOW, "reconnect"))
        return outputs

    def _check_binary(self, payload: bytes) -> None:
        if not self._reader.v1:
            raise VoxbridgeError(Code.INVALID_MESSAGE, "Binary messages need the sub-protocol `voxbridge.v1`; send `audio` as JSON.")
        if len(payload) > messages.MESSAGE_LIMIT:
            raise messages.too_large(len(payload))
        frames.check(payload)
        if self.phase is Phase.FRESH:
            raise _before_start("An audio frame")

    def _take(self, message: ClientMessage, now_ms: int) -> Outputs:
        if isinstance(message, messages.V1_ONLY) and not self._reader.v1:
            name = message.__struct_config__.tag
            raise VoxbridgeError(Code.INVALID_MESSAGE, f"`{name}` needs the sub-protocol `voxbridge.v1`.", field="type")
        if isinstance(message, messages.Start):
            return self._start(message, now_ms)
        if isinstance(message, messages.Resume):
            return self._resume(message, now_ms)
        if self.phase is Phase.FRESH:
            raise _before_start(f"`{message.__struct_config__.tag}`")
        if isinstance(message, messages.Audio):
            pcm = messages.pcm_of(message)
            return (PublishMic(pcm),) if self.takes_audio else ()
        if self.phase is Phase.ENDING:
            if isinstance(message, messages.Playback | messages.End | messages.AudioEnd):
                return ()
            raise VoxbridgeError(Code.CONFLICT, "The session is ending; nothing more is taken.")
        opening = self.phase in (Phase.OPENING, Phase.RESUMING)
        if isinstance(message, messages.End) and not opening:
            self.phase = Phase.ENDING
            self._asked_ms = now_ms
        if isinstance(message, messages.BrowserFunctionResult) and not self._calls.whole:
            _check_room(len(self._answers))
            self._answers.append(message)
            return ()
        event = self._event(message)
        if not opening:
            return (Append(event),)
        self._waiting = self._waiting or []
        _check_room(len(self._waiting))
        self._waiting.append(event)
        return ()

    def _start(self, message: messages.Start, now_ms: int) -> Outputs:
        before = session_token.read(message.session_token or "") if not self._reader.v1 else None
        self._leave_fresh(Phase.OPENING if before is None else Phase.RESUMING, now_ms)
        request = events.gateway.SessionRequested(
            mode=message.mode,  # type: ignore[arg-type]  # checked against MODES
            model=message.model or "",
            voice=message.voice or "",
            system_prompt=message.system_prompt or "",
            agent=message.agent or "",
            output=message.output or "",  # type: ignore[arg-type]  # checked against OUTPUTS
            record=message.record,
            filler=message.filler,
            functions=page_functions.check(message.tools),
            client=events.gateway.ClientCapabilities(protocol="voxbridge.v1" if self._reader.v1 else "vox"),
            resume_hash=self._resume_hash,
        )
        opens = Open(request, message.token or "")
        if before is None:
            return (opens,)
        self._otherwise = self._reader, opens
        return self._look_for(before, unrecorded=message.record is False)

    def _resume(self, message: messages.Resume, now_ms: int) -> Outputs:
        self._leave_fresh(Phase.RESUMING, now_ms)
        return self._look_for(SessionToken(message.session_id, message.resume_token, message.last_seq))

    def _look_for(self, wanted: SessionToken, *, unrecorded: bool = False) -> Outputs:
        self._reader = outbound.Reader(wanted.sid, self._reader.v1, wanted.token)
        self._calls = Calls(whole=False)
        self.last_seq = wanted.last_seq
        return (Resume(wanted.sid, wanted.token, wanted.last_seq, unrecorded),)

    def _leave_fresh(self, phase: Phase, now_ms: int) -> None:
        if self.phase is not Phase.FRESH:
            raise VoxbridgeError(Code.CONFLICT, "This socket has its session; open another socket for another one.", field="type")
        self.phase = phase
        self._asked_ms = now_ms

    def _attach(self, event: events.gateway.ClientConnected) -> Outputs:
        waiting, self._waiting = self._waiting or [], None
        outputs: list[Output] = [Attach(event)]
        for kept in waiting:
            outputs.append(Append(kept))
            if isinstance(kept, events.gateway.SessionEndRequested):
                self.phase = Phase.ENDING
        return outputs

    def _event(self, message: ClientMessage) -> events.Event:
        match message:
            case messages.Text():
                return events.gateway.TextReceived(text=message.text, text_id=message.text_id)
            case messages.Playback():
                return events.gateway.PlaybackReported(
                    generation=message.generation,
                    played_ms=message.played_ms,
                    state=message.state,  # type: ignore[arg-type]  # checked against PLAYBACK_STATES
                )
            case messages.Interrupt():
                return events.gateway.InterruptRequested()
            case messages.AudioEnd():
                return events.gateway.AudioEnded()
            case messages.BrowserFunctionResult():
                return self._answer(message)
            case _:
                return events.gateway.SessionEndRequested(by="client", reason="client_ended")

    def _answer_kept(self, now_ms: int) -> Outputs:
        outputs: list[Output] = []
        answers, self._answers = self._answers, []
        for answer in answers:
            try:
                outputs.append(Append(self._answer(answer)))
            except VoxbridgeError as error:
                outputs.extend(self._wrong_message(error, now_ms))
        return outputs

    def _answer(self, message: messages.BrowserFunctionResult) -> events.Event:
        call_id = self._calls.answered(message.name, message.fn_call_id)
        return events.gateway.BrowserCallAnswered(call_id=call_id, name=message.name, result=message.result)

    def _session_ended(self, recorded: events.Recorded, event: events.voice.SessionEnded) -> Outputs:
        outputs: list[Output] = [Ended()]
        if event.error is not None:
            outputs.append(Send({"type": "error", **outbound.failure(event.error), "seq": recorded.seq}))
        message = outbound.of_event(recorded, self._reader)
        if message is not None:
            outputs.append(Send(message))
        refused = event.error is not None and event.error.code == Code.OVERLOADED
        outputs.extend(self._close(TRY_LATER if refused else NORMAL, "no worker is free" if refused else "the session ended"))
        return outputs

    def _lost(self, now_ms: int) -> Outputs:
        if self._lost_since is None:
            self._lost_since = now_ms
        gone = now_ms - self._lost_since
        if gone >= OWNER_TIMEOUT_MS:
            error = VoxbridgeError(
                Code.UNAVAILABLE,
                f"The session's worker was lost and none took over within {OWNER_TIMEOUT_MS // 1000} s.",
                limit=OWNER_TIMEOUT_MS,
            )
            return self._give_up(error, "worker_lost")
        if self._restoring:
            return ()
        self._restoring = True
        return self._say_state(moments.StateChanged(state="restoring", reason="the session's worker was lost; waiting for another"))

    def _found(self) -> Outputs:
        self._lost_since = None
        if not self._restoring:
            return ()
        self._restoring = False
        return () if self._state is None else self._say_state(self._shown(self._state))

    def _model_line(self, event: events.Event) -> Outputs:
        """Return the change of state when the connection to a realtime model is lost, restored, or no longer needed."""
        if isinstance(event, events.voice.ProviderLost):
            away = True
        elif resume_rules.brings_model_back(event):
            away = False
        else:
            return ()
        if away == self._model_away:
            return ()
        self._model_away = away
        return self._say_state(self._shown(self._state or moments.StateChanged(state="listening")))

    def _shown(self, moment: moments.StateChanged) -> moments.StateChanged:
        """Return the state to show to the client: while the model is not connected, `listening`, `thinking` and `calling_tool` become
        `restoring`."""
        return _MODEL_AWAY if self._model_away and moment.state in _WAITING_FOR_MODEL else moment

    def _say_state(self, moment: moments.StateChanged) -> Outputs:
        message = outbound.of_moment(moment, self._reader)
        return () if message is None else (Send(message),)

    def _give_up(self, error: VoxbridgeError, reason: str) -> Outputs:
        outputs: list[Output] = [Send(outbound.of_error(error))]
        if self.attached:
            outputs.append(Append(events.gateway.SessionEndRequested(by="gateway", reason=reason)))
        outputs.extend(self._close(TRY_LATER, reason.replace("_", " ")))
        return outputs

    def _wrong_message(self, error: VoxbridgeError, now_ms: int) -> Outputs:
        if self._wrong is None:
            self._wrong = deque(maxlen=WRONG_LIMIT)
        self._wrong.append(now_ms)
        outputs: list[Output] = [Send(outbound.of_error(error))]
        if len(self._wrong) == WRONG_LIMIT and now_ms - self._wrong[0] <= WRONG_WINDOW_MS:
            outputs.extend(self._detached("too many wrong messages"))
            outputs.extend(self._close(TOO_MANY_WRONG, f"{WRONG_LIMIT} wrong messages within {WRONG_WINDOW_MS // 1000} s"))
        return outputs

    def _session_token(self) -> str:
        """Return the token that a plain client resumes with on another socket, after the last event it was told; empty before it has a
        session. A `voxbridge.v1` client already has its resume token and gets the session id."""
        reader = self._reader
        if reader.v1:
            return reader.sid
        if not self.attached and self.phase is not Phase.RESUMING:
            return ""
        return str(SessionToken(reader.sid, reader.resume_token, self.last_seq))

    def _detached(self, reason: str) -> Outputs:
        if not self.attached:
            return ()
        return (
            Append(events.gateway.ClientDisconnected(gateway=self._gateway, connection=self._name, reason=reason, last_seq=self.last_seq)),
        )

    def _close(self, code: int, reason: str) -> Outputs:
        self.phase = Phase.CLOSED
        return (Close(code, reason),)


def _check_room(waiting: int) -> None:
    if waiting >= WAITING_LIMIT:
        message = f"{WAITING_LIMIT} messages wait for the session to open. Wait for `setup_complete` or `resumed`."
        raise VoxbridgeError(Code.OVERLOADED, message, limit=WAITING_LIMIT)


def _before_start(what: str) -> VoxbridgeError:
    return VoxbridgeError(Code.CONFLICT, f"{what} came before `start`. Send `start` or `resume` first.", field="type")

"""A connection to the fake Gemini: reads messages, refuses what the service refuses, and records all of it.

Audio in echo mode bypasses this module: `Wire` answers it on receipt.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from websockets.exceptions import ConnectionClosed
from websockets.protocol import State

from tests.fakes.gemini.handles import Handles
from tests.fakes.gemini.model import Model
from tests.fakes.gemini.rules import (
    Options,
    Refused,
    audio,
    camel,
    check_answers,
    check_fields,
    check_setup,
    check_tools,
    declares_history,
    forgets_what_is_pending,
    functions,
    invalid,
)
from tests.fakes.gemini.turns import INPUT_RATE, Call, Ear, Line, Turn, audio_content
from tests.fakes.gemini.wire import Wire, echo_of

_REASON_LIMIT: Final = 123
_KINDS: Final = ("setup", "clientContent", "realtimeInput", "toolResponse", "contextUpdate")


@dataclass
class Shared:
    """State shared by all connections of a server."""

    options: Options
    handles: Handles
    script: list[Turn]
    reply: Callable[[Session], Turn | None]
    """Returns the next turn when the script is used up; with None the model stays silent."""

    changed: Callable[[], None]
    errors: list[BaseException] = field(default_factory=list)
    """Errors of the fake itself; raised when the server stops."""


@dataclass(eq=False, repr=False)
class Session:
    """A connection and everything sent over it. Positions are ms of its audio; times are the event loop's, in s."""

    shared: Shared
    wire: Wire
    number: int
    key: str
    api_version: str
    opened_at: float
    closed_at: float | None = None
    close_code: int | None = None
    """Code with which this server closed it."""

    ready: bool = False
    resumed: bool = False
    setup: dict[str, Any] = field(default_factory=dict)
    """As it was sent, but with fields in camel case, like all other messages here."""

    instruction: str = ""
    """Instruction under which the model speaks."""

    first_instruction: str = ""
    audio: bytearray = field(default_factory=bytearray)
    audio_bytes: int = 0
    contents: list[dict[str, Any]] = field(default_factory=list)
    declared: list[dict[str, Any]] = field(default_factory=list)
    """Part of `contents` that was the declared history."""

    awaits_history: bool = False
    """The declared history is not complete; other input waits."""

    pending: list[Line] = field(default_factory=list)
    """Content for which no turn was requested; the model may ignore it when it is spoken to."""

    texts: list[str] = field(default_factory=list)
    answers: list[dict[str, Any]] = field(default_factory=list)
    ignored: list[dict[str, Any]] = field(default_factory=list)
    """Function responses for calls that this connection does not wait for."""

    activity: list[tuple[str, int]] = field(default_factory=list)
    """`start`, `end`, `stream_end` as sent, `speech` and `silence` as detected, each with its position."""

    updates: list[dict[str, Any]] = field(default_factory=list)
    order: list[str] = field(default_factory=list)
    """Kinds of message in the order of arrival; consecutive audio messages are counted once."""

    calls: list[Call] = field(default_factory=list)
    handles: list[str] = field(default_factory=list)
    history: list[Line] = field(default_factory=list)
    mute: bool = False
    """Nothing more is sent."""

    broken: bool = False
    """Half a frame was sent."""

    def __post_init__(self) -> None:
        self.model = Model(self)
        self._ear: Ear | None = None
        self._detects = self._interrupts = True
        self._poisoned = False
        self._nonblocking: dict[str, bool] = {}
        self.offered: list[str] = []
        self._held: list[dict[str, Any]] = []

    @property
    def options(self) -> Options:
        return self.shared.options

    @property
    def open(self) -> bool:
        """True while the server's side of the socket is open."""
        return self.wire.protocol.state is State.OPEN

    @property
    def model_name(self) -> str:
        return str(self.setup.get("model", "")).removeprefix("models/")

    @property
    def voice(self) -> str:
        """Requested voice; empty: none."""
        config = self.setup.get("generationConfig", {}).get("speechConfig", {}).get("voiceConfig", {})
        return str(config.get("prebuiltVoiceConfig", {}).get("voiceName", ""))

    @property
    def audio_ms(self) -> int:
        return self.audio_bytes * 1_000 // (INPUT_RATE * 2)

    @property
    def resumption(self) -> bool:
        return "sessionResumption" in self.setup

    @property
    def transcribes_user(self) -> bool:
        return "inputAudioTranscription" in self.setup

    @property
    def transcribes_model(self) -> bool:
        return "outputAudioTranscription" in self.setup

    @property
    def writes(self) -> bool:
        """True when answers are text."""
        return bool(self.setup.get("generationConfig", {}).get("responseModalities") == ["TEXT"])

    def blocks(self, name: str) -> bool:
        """Return whether the model waits for a function."""
        return not self._nonblocking.get(name, self.model_name.startswith("gemini-3.8"))

    def next_turn(self) -> Turn | None:
        """Return the model's next turn."""
        return self.shared.script.pop(0) if self.shared.script else self.shared.reply(self)

    def changed(self) -> None:
        """Make waiters check their conditions again."""
        self.shared.changed()

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message of the service, as JSON in a binary frame. It is dropped when the connection is closed."""
        await self.send_raw(json.dumps(message, separators=(",", ":")).encode())

    async def send_raw(self, payload: bytes) -> None:
        """Send any bytes, as a binary frame."""
        if not self.mute:
            with suppress(ConnectionClosed):
                await self.wire.send(payload)

    async def issue_handle(self) -> None:
        """Issue a handle for the conversation up to here, if the setup asked for resumption."""
        if self.resumption:
            self.handles.append(self.shared.handles.issue(self))
            await self.send({"sessionResumptionUpdate": {"newHandle": self.handles[-1], "resumable": True}})

    async def serve(self) -> None:
        """Read until the connection is closed."""
        speaking: asyncio.Task[None] | None = None
        try:
            await self._begin()
            speaking = asyncio.create_task(self.model.run())
            speaking.add_done_callback(self._stopped)
            while True:
                await self._take(await self.wire.recv(decode=False))
                self.changed()
        except Refused as refused:
            code, usual = self.options.close_codes[refused.kind]
            await self.close(code, refused.reason or usual)
        except ConnectionClosed:
            pass
        except Exception as error:
            self.shared.errors.append(error)
            raise
        finally:
            if speaking is not None:
                speaking.cancel()
                await asyncio.wait({speaking})

    def _stopped(self, speaking: asyncio.Task[None]) -> None:
        error = None if speaking.cancelled() else speaking.exception()
        if error is not None:
            self.shared.errors.append(error)
            self.wire.transport.abort()

    async def refuse(self, code: int, reason: str) -> None:
        """Answer the setup with a close; with code 0, never answer."""
        with suppress(ConnectionClosed):
            self.setup = _read(await self.wire.recv(decode=False))[1]
            self.changed()
            if code:
                await self.close(code, reason)
            await self.wire.wait_closed()

    async def close(self, code: int, reason: str = "") -> None:
        """Close the connection with a code; a reason too long for the frame is truncated, as by the real service."""
        self.close_code = code
        await self.wire.close(code, reason.encode()[:_REASON_LIMIT].decode(errors="ignore"))

    async def _begin(self) -> None:
        kind, fields = _read(await self.wire.recv(decode=False))
        if kind != "setup":
            raise invalid("setup must be the first message and only the first")
        if not self.key:
            raise Refused("no_key")
        if self.options.keys is not None and self.key not in self.options.keys:
            raise Refused("key")
        check_setup(fields, self.options)
        self.setup = fields
        self.instruction = self.first_instruction = _text(fields.get("systemInstruction", {}))
        self._declare(fields.get("tools", []))
        handle = fields.get("sessionResumption", {}).get("handle")
        if handle:
            kept = self.shared.handles.take(handle, self.model_name)
            self.history, self.resumed, self.first_instruction = list(kept.history), True, kept.instruction
            self._poisoned = kept.poisoned
            if self.model_name in self.options.sticky_instruction:
                self.instruction = kept.instruction
        elif self.resumption and self.model_name in self.options.reject_empty_resumption:
            raise Refused("unknown_handle")
        self.awaits_history = declares_history(fields)
        config = fields.get("realtimeInputConfig", {})
        detection = config.get("automaticActivityDetection", {})
        self._interrupts = config.get("activityHandling") != "NO_INTERRUPTION"
        self._detects = not detection.get("disabled")
        if self._detects and not self.options.echo:
            silence_ms = int(detection.get("silenceDurationMs", self.options.silence_ms))
            self._ear = Ear(silence_ms=silence_ms, rms=self.options.speech_rms)
        if self.options.echo:
            self.wire.echo = self._echo
        await self.send({"setupComplete": {}})
        if self.options.handle_at_setup:
            await self.issue_handle()
        self.ready = True
        self.changed()

    def _declare(self, tools: list[dict[str, Any]]) -> None:
        self.offered = [str(one["name"]) for one in functions(tools)]
        self._nonblocking = {one["name"]: one["behavior"] == "NON_BLOCKING" for one in functions(tools) if "behavior" in one}

    def _echo(self, message: bytes) -> bytes | None:
        if self.mute:
            return None
        answer, length = echo_of(message)
        self.audio_bytes += length
        return answer

    async def _take(self, message: bytes) -> None:
        kind, fields = _read(message)
        if self._poisoned:
            raise Refused("poisoned")
        if kind == "realtimeInput":
            if self.awaits_history:
                self._held.append(fields)
            else:
                await self._input(fields)
            return
        self._noted(kind)
        check_fields(kind, fields)
        match kind:
            case "setup":
                raise invalid("setup must be the first message and only the first")
            case "clientContent":
                self._content(fields)
                while self._held and not self.awaits_history:
                    await self._input(self._held.pop(0))
            case "toolResponse":
                for answer in check_answers(fields.get("functionResponses")):
                    self._answer(answer)
            case _:
                self._update(fields)

    async def _input(self, fields: dict[str, Any]) -> None:
        if "audio" not in fields:
            self._noted("realtimeInput")
            check_fields("realtimeInput", fields)
            self._realtime(fields)
            return
        self._noted("audio")
        pcm = audio(fields["audio"])
        self._hear(pcm)
        if self.options.echo:
            await self.send(audio_content(pcm))

    def _noted(self, kind: str) -> None:
        if kind != "audio" or self.order[-1:] != ["audio"]:
            self.order.append(kind)

    def _content(self, fields: dict[str, Any]) -> None:
        if not self.awaits_history and self.model_name in self.options.history_only:
            raise Refused("content")
        for turn in fields.get("turns", []):
            if turn.get("role") not in {"user", "model"}:
                raise invalid("Please use a valid role: user, model.")
            self.pending.append(Line(turn["role"], _text(turn)))
        self.contents.append(fields)
        ends = bool(fields.get("turnComplete"))
        if ends or not forgets_what_is_pending(self.model_name):
            self._take_up()
        if self.awaits_history:
            self.declared.append(fields)
            self.awaits_history = not ends
        elif ends:
            self.model.trigger()

    def _take_up(self) -> None:
        """Make the pending content part of the conversation."""
        self.history += self.pending
        self.pending = []

    def _realtime(self, fields: dict[str, Any]) -> None:
        (kind, value), *others = list(fields.items()) or [("", "")]
        if others:
            raise invalid("realtime_input takes one kind of input")
        match kind:
            case "text":
                self._take_up()
                self.texts.append(str(value))
                self.history.append(Line("user", str(value)))
                self.model.trigger()
            case "activityStart" | "activityEnd":
                if self._detects:
                    raise invalid("Explicit activity control is not supported when automatic activity detection is enabled.")
                self._voice(kind == "activityStart", "start" if kind == "activityStart" else "end")
            case "audioStreamEnd":
                self.activity.append(("stream_end", self.audio_ms))
                if self._ear is not None and self._ear.close():
                    self._voice(False, "silence")
            case "mediaChunks":
                raise invalid("realtime_input.media_chunks is deprecated. Use audio, video, or text instead.")
            case _:
                pass

    def _hear(self, pcm: bytes) -> None:
        self.audio_bytes += len(pcm)
        if self.options.keep_audio:
            self.audio += pcm
        if self._ear is not None:
            for speaking in self._ear.hear(pcm):
                self._voice(speaking, "speech" if speaking else "silence")

    def _voice(self, speaking: bool, name: str) -> None:
        self.activity.append((name, self.audio_ms))
        if not speaking:
            if self.pending and self.pending[-1].role == "user":
                self._take_up()
            self.model.trigger(interrupts=False)
        elif self._interrupts:
            self.model.interrupt()

    def _answer(self, answer: dict[str, Any]) -> None:
        if self.model.answer(answer):
            self.answers.append(answer)
            self.history.append(Line("function", json.dumps(answer.get("response", {}))))
        else:
            self.ignored.append(answer)

    def _update(self, fields: dict[str, Any]) -> None:
        self.updates.append(fields)
        if "systemInstruction" in fields:
            self.instruction = _text(fields["systemInstruction"])
        if "tools" in fields:
            check_tools(fields["tools"].get("tools", []))
            self._declare(fields["tools"].get("tools", []))


def _read(message: bytes) -> tuple[str, dict[str, Any]]:
    """Return the kind of a message and its fields."""
    try:
        fields = camel(json.loads(message))
    except ValueError:
        raise invalid("Invalid JSON payload received.") from None
    if not isinstance(fields, dict) or len(fields) != 1:
        raise invalid("A message has exactly one field.")
    ((kind, inner),) = fields.items()
    if kind not in _KINDS:
        raise invalid(f'Invalid JSON payload received. Unknown name "{kind}": Cannot find field.')
    if not isinstance(inner, dict):
        raise invalid(f"Invalid value at '{kind}'")
    return kind, inner


def _text(content: dict[str, Any]) -> str:
    return "\n".join(part["text"] for part in content.get("parts", []) if "text" in part)

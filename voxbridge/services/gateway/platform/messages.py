"""Messages of `/session` in both directions, as types: the schemas and the TypeScript types of pages are generated from them.

Owns the shapes and the parsing of a client's messages. Does not own what they cause (`manner`), nor the limits of tools
(`voxbridge.shared.platform.handlers`). Pure; nothing is lost in a crash here.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from voxbridge.services.gateway.core.messages import NAME_LIMIT, time_zone
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.nesting import DEPTH_LIMIT, is_deep_json
from voxbridge.shared.platform.handlers import GivenTool

CONFIGURE_LIMIT: Final = 256 * 1024
"""Bytes of `configure`."""

SPEED: Final = (0.5, 2.0)
WORDS_LIMIT: Final = 10
"""Words that may be wanted before the agent stops."""

_LANGUAGE: Final = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}")

_Speed = Annotated[float, Meta(ge=SPEED[0], le=SPEED[1])]
_Words = Annotated[int, Meta(ge=0, le=WORDS_LIMIT)]


class Configure(msgspec.Struct, frozen=True, kw_only=True, tag="configure", rename="camel", omit_defaults=True):
    """Open the session: what the agent is, what it can do, and how it speaks and listens."""

    instructions: str = ""
    greeting: str | None = None
    """Words that begin the session; none without it."""

    voice: str = ""
    tools: list[GivenTool] = []
    language: str = ""
    time_zone: str = ""
    """Time zone of the person, by its IANA name; empty: the installation's."""

    speed: _Speed = 1.0
    barge_in_words: _Words = 0
    """Words that stop the agent; 0: any voice does."""

    filler: bool | None = None
    """True: a few words cover the wait for a tool or a slow model."""

    push_to_talk: bool = False
    """True: `audio_end` ends the user's turn, and no silence does."""

    interim: bool = True
    """False: no `transcript` before `turn`."""

    voice_cleaner: bool = True
    """False: text is synthesised as the model wrote it."""

    output: Literal["audio", "text"] = "audio"
    """`text`: the conversation begins in text, which a language model of its provider writes in place of a model that speaks itself."""

    modes: bool = False
    """True: the page goes from text to voice and back; models get `start_voice_session` and `end_voice_session`, which it answers. Only
    with `voxbridge.v1`."""


class Cancel(msgspec.Struct, frozen=True, tag="cancel"):
    """Stop the agent."""


class ResetConversation(msgspec.Struct, frozen=True, tag="reset"):
    """Begin the conversation anew."""


class MicrophoneReleased(msgspec.Struct, frozen=True, tag="audio_end"):
    """The microphone was paused or released: with `pushToTalk`, the user's turn is over."""


ClientMessage = Configure | Cancel | ResetConversation | MicrophoneReleased


class Ready(msgspec.Struct, frozen=True, kw_only=True, tag="ready", rename="camel"):
    """The session is open. Rates are samples a second of PCM16, little-endian, mono: the microphone's and the speech's."""

    sample_rate: int
    tts_sample_rate: int


class Greeting(msgspec.Struct, frozen=True, tag="greeting"):
    """The agent begins to say its greeting."""

    text: str


class Transcript(msgspec.Struct, frozen=True, tag="transcript"):
    """Words of the user so far; each replaces the one before it. An empty text takes them back."""

    text: str
    final: bool


class Turn(msgspec.Struct, frozen=True, tag="turn"):
    """All that the user said: the agent answers it."""

    text: str


class Thinking(msgspec.Struct, frozen=True, tag="thinking"):
    """The answer is being made."""


class Chat(msgspec.Struct, frozen=True, tag="chat"):
    """The whole text of a reply, before its sound ends. `steps` has `Using NAME` for each tool that was called for it."""

    text: str
    steps: list[str]


class TtsDone(msgspec.Struct, frozen=True, tag="tts_done"):
    """All sound of the reply was sent."""


class Cancelled(msgspec.Struct, frozen=True, tag="cancelled"):
    """The reply was stopped: drop the sound that was not played. No more of it follows."""


class Reset(msgspec.Struct, frozen=True, tag="reset"):
    """The history is empty from here on."""


class Notice(msgspec.Struct, frozen=True, tag="notice"):
    """Something that the page's author may want to know, such as a voice that does not exist."""

    message: str


class Error(msgspec.Struct, frozen=True, kw_only=True, tag="error", omit_defaults=True):
    """Something went wrong. `field` and `limit` name the invalid part of a message; `retryable`: the same may work later."""

    message: str
    code: str
    retryable: bool
    field: str | None = None
    limit: float | str | None = None
    retry_after_ms: int | None = None


ServerMessage = Ready | Greeting | Transcript | Turn | Thinking | Chat | TtsDone | Cancelled | Reset | Notice | Error

Direction = Literal["client", "server"]
_TYPES: Final = tuple(str(kind.__struct_config__.tag) for kind in (Configure, Cancel, ResetConversation, MicrophoneReleased))
_decoder: Final[msgspec.json.Decoder[ClientMessage]] = msgspec.json.Decoder(ClientMessage)
_PATH: Final = re.compile(r"\$\.([A-Za-z_][\w.\[\]]*)")


class _Typed(msgspec.Struct, frozen=True):
    type: Any = None


def type_of(payload: bytes) -> str:
    """Return the type that a message names. Raises `INVALID_MESSAGE` for what is not a JSON object with a type."""
    try:
        named = msgspec.json.decode(payload, type=_Typed).type
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise VoxbridgeError(Code.INVALID_MESSAGE, "A message is one JSON object in UTF-8 with a `type`.") from None
    if not isinstance(named, str):
        raise VoxbridgeError(Code.INVALID_MESSAGE, f"A message has a `type`: one of {', '.join(_TYPES)}.", field="type")
    return named


def is_ours(name: str) -> bool:
    """Tell whether a type is one of this door's."""
    return name in _TYPES


def unknown(name: str) -> VoxbridgeError:
    """Return the error of a type that is not known."""
    return VoxbridgeError(Code.INVALID_MESSAGE, f"There is no message `{name[:64]}` here; there is {', '.join(_TYPES)}.", field="type")


def read(payload: bytes) -> ClientMessage:
    """Parse a message of this door. Raises `INVALID_MESSAGE`, `INVALID_ARGUMENT` or `TOO_LARGE` naming the field and the limit."""
    if len(payload) > CONFIGURE_LIMIT:
        message = f"A message has at most {CONFIGURE_LIMIT} bytes; this one has {len(payload)}."
        raise VoxbridgeError(Code.TOO_LARGE, message, field="message", limit=CONFIGURE_LIMIT)
    if is_deep_json(payload):
        message = f"A message has at most {DEPTH_LIMIT} objects and arrays within one another."
        raise VoxbridgeError(Code.INVALID_MESSAGE, message, field="message", limit=DEPTH_LIMIT)
    try:
        found = _decoder.decode(payload)
    except msgspec.ValidationError as error:
        reason = str(error)
        path = _PATH.search(reason)
        field = path.group(1) if path else "message"
        message = f"The field `{field}` is wrong: {reason[:1].lower()}{reason[1:]}."
        raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field=field) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise VoxbridgeError(Code.INVALID_MESSAGE, "This message is not JSON in UTF-8.") from None
    if isinstance(found, Configure):
        _check(found)
    return found


def _check(message: Configure) -> None:
    if len(message.voice) > NAME_LIMIT:
        raise VoxbridgeError(Code.INVALID_ARGUMENT, f"`voice` has at most {NAME_LIMIT} characters.", field="voice", limit=NAME_LIMIT)
    time_zone("timeZone", message.time_zone)
    if message.language and _LANGUAGE.fullmatch(message.language) is None:
        raise VoxbridgeError(
            Code.INVALID_ARGUMENT, "`language` is a code such as `en` or `pt-BR`.", field="language", limit=_LANGUAGE.pattern
        )

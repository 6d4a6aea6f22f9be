"""The subjects of the system and its live traffic on core NATS: audio, and what is only true for a moment.

Owns the names of subjects. Nothing here is kept: what must not be lost goes through `shared.log`. A moment published while the server is
away is dropped; audio waits where it is made (`services.gateway.microphones`, `services.voice.outlet`).
"""

from __future__ import annotations

import logging
from typing import Final

import msgspec
from nats.aio.client import Client
from nats.errors import Error as NatsError

EVENT_STREAM: Final = "EV"
AUDIO_STREAM: Final = "AUDIO"
EVENT_SUBJECTS: Final = "vx.s.*.ev.>"
AUDIO_SUBJECTS: Final = "vx.s.*.audio.>"
RECORD_STREAM: Final = "RECORD"
RECORD_SUBJECTS: Final = "vxr.*.*"
MICROPHONE: Final = "vx.svc.voice.microphone"
"""Asked with a session's id, its worker answers with the prefix of the microphone frame that it heard last, or with nothing when it
heard none. All workers hear the question on the connection that their audio comes on: who answers is listening."""
GONE: Final = "vx.svc.voice.gone"
"""Says that a voice worker died, or may have, so that the others ask at once; the payload is its name, or empty where that is not known."""
IMPORTED: Final = "Voxbridge-Imported"
"""Header of an event that was recorded elsewhere: whoever takes work off the log passes it over."""

_log = logging.getLogger(__name__)
_encoder = msgspec.msgpack.Encoder()


def event_subject(sid: str, writer: str, visible: bool, type: str) -> str:
    """Where an event is stored."""
    return f"vx.s.{sid}.ev.{writer}.{'c' if visible else 'i'}.{type}"


def stored_subject(sid: str, writer: str = "*", visibility: str = "*", type: str = ">") -> str:
    """Filter for the stored events of a session; a type has dots, so `tool.>` is all of its kind."""
    return f"vx.s.{sid}.ev.{writer}.{visibility}.{type}"


def live_subject(sid: str, writer: str = "*", visibility: str = "*", type: str = ">") -> str:
    """Filter for the live copies of stored events."""
    return f"vxc.{sid}.{writer}.{visibility}.{type}"


def parse_event_subject(subject: str) -> tuple[str, str, bool]:
    """`(sid, writer, visible)` of a stored event's subject."""
    _, _, sid, _, writer, visibility, _ = subject.split(".", 6)
    return sid, writer, visibility == "c"


def event_type(subject: str) -> str:
    """The type that a stored event's subject names."""
    return subject.split(".", 6)[6]


def audio_in(sid: str) -> str:
    """Microphone frames, gateway to voice."""
    return f"vx.s.{sid}.audio.in"


def audio_out(sid: str) -> str:
    """Reply frames and flushes, voice to gateway."""
    return f"vx.s.{sid}.audio.out"


def audio(sid: str) -> str:
    """Filter for the frames of both directions."""
    return f"vx.s.{sid}.audio.*"


def recorded(sid: str) -> str:
    """Where the sealed blocks of a recording are stored."""
    return f"vxr.{sid}.audio"


def moments(sid: str) -> str:
    """What is only true for a moment: partial transcripts, states. Voice to gateway."""
    return f"vx.s.{sid}.ctl.voice"


async def publish_moment(nc: Client, sid: str, moment: msgspec.Struct) -> None:
    """Tell the gateway something about the moment; dropped while the bus is away."""
    await publish(nc, moments(sid), _encoder.encode(moment))


async def publish(nc: Client, subject: str, payload: bytes) -> None:
    """Publish on core NATS if the server is there now."""
    if nc.is_connected:
        try:
            await nc.publish(subject, payload)
        except NatsError as error:
            _log.warning("dropped %d bytes for %s: %s", len(payload), subject, error)

"""The subjects of the system and its live traffic on core NATS: audio, and moments (messages that are never stored).

Owns the names of subjects. Nothing here is kept: what must not be lost goes through `voxbridge.shared.log.reader`. A moment published while
the server is away is dropped; audio waits at its source (`voxbridge.services.gateway.vox.microphones`,
`voxbridge.services.voice.session.outbound`).
"""

from __future__ import annotations

import logging
from typing import Final

import msgspec
from nats.aio.client import Client
from nats.errors import Error as NatsError

EVENT_STREAM: Final = "EV"
VOICE_CONSUMER: Final = "voice"
TOOLS_CONSUMER: Final = "tools"
"""Durable consumers on it: requests for sessions, and calls of functions."""

MICROPHONE_STREAM: Final = "MICROPHONE"
REPLY_STREAM: Final = "REPLY"
EVENT_SUBJECTS: Final = "vx.s.*.ev.>"
MICROPHONE_SUBJECTS: Final = "vx.s.*.audio.in"
REPLY_SUBJECTS: Final = "vx.s.*.audio.out"
RECORD_STREAM: Final = "RECORD"
RECORD_SUBJECTS: Final = "vxr.*.*"
MAIN: Final = "main"
"""Topic of a writer's events that no reader looks up by type."""

SESSION: Final = "session"
"""Topic of a session's state, from the voice service: who speaks, calls of functions, its end. Few events per session; the tool executor
takes its work from here."""

REQUEST: Final = "request"
"""Topic of what a client asks of the tool executor: answers to requests for approval, and the end of a task."""

SAID: Final = "said"
"""Topic of what was said, and of the ends of turns."""

_WORDS: Final = frozenset({"user.said", "agent.said", "turn.completed"})
_REQUESTS: Final = frozenset({"approval.clicked", "task.cancel_requested"})
_APART: Final = frozenset({"session.requested", "session.erased", "note.remembered"})
MICROPHONE: Final = "vx.svc.voice.microphone"
"""Request with a session's id: its worker answers with the prefix of the microphone frame that it heard last, or with an empty payload when
it heard none. Workers receive it on the connection that brings their audio, so a worker that answers also receives frames."""
WAVEFORM: Final = "vx.svc.voice.waveform"
"""Request for the peaks of a session's audio (`voxbridge.shared.audio.recordings.Waveform`): a voice worker answers, since only it may open
recordings."""
GONE: Final = "vx.svc.voice.gone"
"""News that a voice worker died, or may have, so that the others check at once; the payload is its name, or empty when that is not
known."""
IMPORTED: Final = "Voxbridge-Imported"
"""Header of an event that was recorded elsewhere: consumers that take work from the log skip it."""

_log = logging.getLogger(__name__)
_encoder = msgspec.msgpack.Encoder()


def event_subject(sid: str, writer: str, visible: bool, event_type: str) -> str:
    """Return the subject under which an event is stored."""
    return f"vx.s.{sid}.ev.{writer}.{'c' if visible else 'i'}.{topic(writer, visible, event_type)}"


def topic(writer: str, visible: bool, event_type: str) -> str:
    """Return the last part of an event's subject. A server keeps each subject in memory for as long as it keeps the call, so a call has
    few. The events of a writer share one, except those that are looked up in all sessions, and the voice service's visible ones: what was
    said is apart from what other services look up or act upon."""
    if event_type in _APART:
        return event_type
    if event_type in _REQUESTS:
        return REQUEST
    if writer == "voice" and visible:
        return SAID if event_type in _WORDS else SESSION
    return MAIN


def stored_subject(sid: str, writer: str = "*", visibility: str = "*", topic: str = ">") -> str:
    """Return the filter for the stored events of a session."""
    return f"vx.s.{sid}.ev.{writer}.{visibility}.{topic}"


def live_subject(sid: str, writer: str = "*", visibility: str = "*", topic: str = ">") -> str:
    """Return the filter for the live copies of stored events."""
    return f"vxc.{sid}.{writer}.{visibility}.{topic}"


def parse_event_subject(subject: str) -> tuple[str, str, bool]:
    """Return `(sid, writer, visible)` of a stored event's subject."""
    _, _, sid, _, writer, visibility, _ = subject.split(".", 6)
    return sid, writer, visibility == "c"


def named_type(subject: str) -> str:
    """Return the type that a stored event's subject names; empty where types share it. Logs of the first release have a subject for each
    type."""
    end = subject.split(".", 6)[6]
    return end if "." in end else ""


def audio_in(sid: str) -> str:
    """Return the subject of microphone frames, gateway to voice."""
    return f"vx.s.{sid}.audio.in"


def audio_out(sid: str) -> str:
    """Return the subject of reply frames and flushes, voice to gateway."""
    return f"vx.s.{sid}.audio.out"


def kept_audio(sid: str) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return stream and subject of the microphone, and of the reply, where the last seconds of each are kept."""
    return (MICROPHONE_STREAM, audio_in(sid)), (REPLY_STREAM, audio_out(sid))


def recorded(sid: str) -> str:
    """Return the subject under which the sealed blocks of a recording are stored."""
    return f"vxr.{sid}.audio"


def moments(sid: str) -> str:
    """Return the subject of moments: partial transcripts and states, voice to gateway."""
    return f"vx.s.{sid}.ctl.voice"


async def publish_moment(nc: Client, sid: str, moment: msgspec.Struct) -> None:
    """Publish a moment to the gateway; it is dropped while the bus is away."""
    await publish(nc, moments(sid), _encoder.encode(moment))


async def publish(nc: Client, subject: str, payload: bytes) -> None:
    """Publish on core NATS if the server is connected now; otherwise drop the payload."""
    if nc.is_connected:
        try:
            await nc.publish(subject, payload)
        except NatsError as error:
            _log.warning("dropped %d bytes for %s: %s", len(payload), subject, error)

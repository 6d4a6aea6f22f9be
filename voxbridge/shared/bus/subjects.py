"""The subjects of the system and its live traffic on core NATS: audio, and moments (messages that are never stored).

Owns the names of subjects. Nothing here is kept: what must not be lost goes through `voxbridge.shared.log.reader`. A moment published while
the server is away is dropped; audio waits at its source (`voxbridge.services.gateway.vox.microphones`,
`voxbridge.services.voice.session.outbound`).
"""

from __future__ import annotations

import logging
import re
from typing import Final

import msgspec
from nats.aio.client import Client
from nats.errors import Error as NatsError

from voxbridge.shared.errors import Code, VoxbridgeError

EVENT_STREAM: Final = "EV"
ACCOUNT_STREAM: Final = "ACCOUNT"
"""Stream of the accounts' own logs: what belongs to a person or a company and to no session. It has no age."""

AWARENESS_STREAM: Final = "AWARENESS"
"""Stream of what the awareness service knows of accounts. It is apart, so that the service may erase there, and nowhere else."""

TERMINALS_STREAM: Final = "TERMINALS"
"""Stream of the logs of terminals. It is apart, so that the terminals service reads nothing that was said in calls."""

LOG_STREAMS: Final = (EVENT_STREAM, ACCOUNT_STREAM, AWARENESS_STREAM, TERMINALS_STREAM)
VOICE_CONSUMER: Final = "voice"
TOOLS_CONSUMER: Final = "tools"
AWARENESS_CONSUMER: Final = "awareness"
"""Durable consumers: requests for sessions, calls of functions, and how these ended. The latter two are one on each of the streams of
sessions and accounts."""

MICROPHONE_STREAM: Final = "MICROPHONE"
REPLY_STREAM: Final = "REPLY"
EVENT_SUBJECTS: Final = "vx.s.*.ev.>"
ACCOUNT_SUBJECTS: Final = "vx.a.*.ev.>"
AWARENESS_SUBJECTS: Final = "vx.w.*.ev.>"
TERMINALS_SUBJECTS: Final = "vx.l.*.ev.>"
EVENT_COPIES: Final = "vxc"
ACCOUNT_COPIES: Final = "vxa"
AWARENESS_COPIES: Final = "vxw"
TERMINALS_COPIES: Final = "vxl"
"""Beginnings of the subjects of live copies, which the server makes of each event that is stored."""

ACCOUNTS: Final = "@*"
"""Id that stands for the logs of all accounts, as `*` does for those of all sessions."""

AWARENESS_OF_ALL: Final = "~*"
"""The same for what is known of the screens of all accounts."""

TERMINALS_OF_ALL: Final = ":*"
"""The same for the logs of all terminals."""

FACTS: Final = "facts"
"""Branch of an account's log beside those of the services, written by the tool executor without a journal: what people may want erased by
itself, such as a note. Erasing it leaves no hole in anything that is folded."""

_ACCOUNT: Final = re.compile(r"[a-z0-9][a-z0-9_.@-]{0,63}")
_ACCOUNT_LOG: Final = re.compile(r"@[a-z0-9][a-z0-9_=@-]{0,63}")
_LIFE: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_SESSIONS: Final = "vx.s."
_OF_ACCOUNTS: Final = "vx.a."
_OF_AWARENESS: Final = "vx.w."
_OF_TERMINALS: Final = "vx.l."
_OTHERS: Final = {
    "@": (ACCOUNT_STREAM, _OF_ACCOUNTS, ACCOUNT_COPIES),
    "~": (AWARENESS_STREAM, _OF_AWARENESS, AWARENESS_COPIES),
    ":": (TERMINALS_STREAM, _OF_TERMINALS, TERMINALS_COPIES),
}
"""Logs that are of no session, by the mark that their ids begin with: stream, beginning of the subjects, and of the live copies'."""

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
"""Topic of what a client asks of the tool executor: calls outside sessions, answers to requests for approval, and the end of a task."""

RUN: Final = "run"
"""Topic of runs of macros and workflows, from the tool executor: who lists them reads it alone."""

SAID: Final = "said"
"""Topic of what was said, and of the ends of turns."""

KEYS: Final = "keys"
"""Topic of an account's keys and of what its owner approved: every gateway follows it, for all accounts."""

_WORDS: Final = frozenset({"user.said", "agent.said", "turn.completed"})
_REQUESTS: Final = frozenset({"tool.requested", "approval.clicked", "run.answer_received", "task.cancel_requested"})
_KEYS: Final = frozenset({"key.made", "key.rotated", "key.revoked", "configuration.approved", "configuration.withdrawn"})
_APART: Final = frozenset(
    {
        "session.requested",
        "session.configured",
        "session.erased",
        "note.remembered",
        "note.forgotten",
        "tool.undoable",
        "child.opened",
        "tools.checkpoint",
        "approval.standing",
        "macro.saved",
        "macro.deleted",
        "tasks.unheard",
        "page.visited",
        "error.reported",
        "context.set",
        "awareness.switched",
        "awareness.changed",
        "awareness.checkpoint",
        "terminal.started",
        "terminal.closed",
    }
)
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


def account_log(account: str) -> str:
    """Return the id of an account's own log, which is used where a session's id is: `@` and the name, with `=` for a dot, since a dot ends
    a part of a subject. Raises `INVALID_ARGUMENT` for what is not a name of an account."""
    if _ACCOUNT.fullmatch(account) is None:
        message = "The name of an account has 1 to 64 characters of a-z, 0-9, `_`, `.`, `@` and `-`, and begins with a letter or a digit."
        raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field="account", limit=_ACCOUNT.pattern)
    return f"@{account.replace('.', '=')}"


def account_of(log_id: str) -> str:
    """Return the account whose own log has this id; empty for a session."""
    return log_id[1:].replace("=", ".") if _ACCOUNT_LOG.fullmatch(log_id) else ""


def awareness_log(account: str) -> str:
    """Return the id of the log of what is known of an account's screen: as that of its own log, with `~`. Raises `INVALID_ARGUMENT`."""
    return f"~{account_log(account)[1:]}"


def watched_account(log_id: str) -> str:
    """Return the account that an `awareness_log` is of; empty for any other log."""
    return account_of(f"@{log_id[1:]}") if log_id.startswith("~") else ""


def terminal_log(life: str) -> str:
    """Return the id of the log of a terminal's life: `:` and the life's name (`voxbridge.shared.terminals.names.life_of`). Raises
    `INVALID_ARGUMENT`."""
    if _LIFE.fullmatch(life) is None:
        raise VoxbridgeError(Code.INVALID_ARGUMENT, "The life of a terminal is named by a-z, 0-9 and `-`.", field="life")
    return f":{life}"


def life_of(log_id: str) -> str:
    """Return the name of the terminal's life that a log is of; empty for any other log."""
    return log_id[1:] if log_id.startswith(":") and _LIFE.fullmatch(log_id[1:]) else ""


def stream_of(log_id: str) -> str:
    """Return the stream that holds a log: of a session, of an account, of what is known of its screen, or of a terminal."""
    return _OTHERS[log_id[0]][0] if log_id[:1] in _OTHERS else EVENT_STREAM


def stream_holding(subject: str) -> str:
    """Return the stream that holds the events of a subject."""
    return next((stream for stream, root, _ in _OTHERS.values() if subject.startswith(root)), EVENT_STREAM)


def _root(log_id: str) -> str:
    return f"{_OTHERS[log_id[0]][1]}{log_id[1:]}" if log_id[:1] in _OTHERS else f"{_SESSIONS}{log_id}"


def event_subject(sid: str, writer: str, visible: bool, event_type: str) -> str:
    """Return the subject under which an event is stored. `sid` is the id of a session or of an account's log, here and below."""
    return f"{_root(sid)}.ev.{writer}.{'c' if visible else 'i'}.{topic(writer, visible, event_type)}"


def topic(writer: str, visible: bool, event_type: str) -> str:
    """Return the last part of an event's subject. A server keeps each subject in memory for as long as it keeps the call, so a call has
    few. The events of a writer share one, except those that are looked up in all sessions, and the voice service's visible ones: what was
    said is apart from what other services look up or act upon."""
    if event_type in _APART:
        return event_type
    if event_type in _REQUESTS:
        return REQUEST
    if event_type in _KEYS:
        return KEYS
    if writer == "tools" and event_type.startswith("run."):
        return RUN
    if writer == "voice" and visible:
        return SAID if event_type in _WORDS else SESSION
    return MAIN


def stored_subject(sid: str, writer: str = "*", visibility: str = "*", topic: str = ">") -> str:
    """Return the filter for the stored events of a session or of an account."""
    return f"{_root(sid)}.ev.{writer}.{visibility}.{topic}"


def live_subject(sid: str, writer: str = "*", visibility: str = "*", topic: str = ">") -> str:
    """Return the filter for the live copies of stored events."""
    root, log = (_OTHERS[sid[0]][2], sid[1:]) if sid[:1] in _OTHERS else (EVENT_COPIES, sid)
    return f"{root}.{log}.{writer}.{visibility}.{topic}"


def parse_event_subject(subject: str) -> tuple[str, str, bool]:
    """Return `(sid, writer, visible)` of a stored event's subject."""
    _, _, sid, _, writer, visibility, _ = subject.split(".", 6)
    mark = next((mark for mark, (_, root, _) in _OTHERS.items() if subject.startswith(root)), "")
    return f"{mark}{sid}", writer, visibility == "c"


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

"""Streams and durable consumers of JetStream, their settings, and how they are created.

A service that finds one missing or different creates or updates it, if the server lets it: with `make up` every service may. Where each
service has a user of its own, only `voxbridge admin streams` may, and the services find everything in place. Owns no reading and no writing
(`voxbridge.shared.log.reader`, `voxbridge.shared.log.writer`). A crash here leaves the streams as they are.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import fields
from typing import Any, Final

from nats.errors import Error as NatsError
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, PersistMode, RePublish, StorageType, StreamConfig
from nats.js.client import JetStreamContext
from nats.js.errors import BadRequestError, NotFoundError, ServerError

from voxbridge.shared.bus import subjects as bus_subjects
from voxbridge.shared.bus.stream_admin import ask, may_make
from voxbridge.shared.config import Recording
from voxbridge.shared.errors import Code, Unavailable, VoxbridgeError

VOICE_ACK_WAIT_S: Final = 4
"""Seconds that a taken request may lack an owner in the log before another worker gets it."""

TOOLS_ACK_WAIT_S: Final = 2.0
"""Seconds that an open call may go unrenewed before another executor gets it."""

AWARENESS_ACK_WAIT_S: Final = 5.0
AWARENESS_PENDING: Final = 64
"""Ends of calls that may be delivered and not acknowledged; fewer than the awareness service remembers for each account."""

RETENTION_DAYS: Final = 30
"""Days that a new log keeps events unless a setting says otherwise."""

_DUPLICATE_WINDOW_S: Final = 120
MICROPHONE_S: Final = 10
"""Seconds that the bus keeps microphone audio: a takeover, and the utterance in progress when the worker died. Nine seconds of that
utterance remain when the death was reported, six when the lease had to expire."""

REPLY_S: Final = 4
"""Seconds that the bus keeps reply audio. Covers the lease of a worker whose death was not noticed (3 s), its successor's next look
(0.3 s), and what the recorder had not read since its predecessor's last look (0.5 s). A takeover itself needs only the last frame sent."""

MICROPHONE_FRAMES: Final = 1_280
"""Frames of one session's microphone that are kept at most: `MICROPHONE_S` in frames of 10 ms, and other messages. Keeps a session from
taking the room of others."""

REPLY_FRAMES: Final = 512
"""Frames of one session's reply that are kept at most."""

MICROPHONE_BYTES: Final = 688 * 1024 * 1024
"""Bytes of all microphones: `MICROPHONE_S` of 2,000 sessions that send frames of 20 ms all the time, 718 bytes each."""

REPLY_BYTES: Final = 400 * 1024 * 1024
"""Bytes of all replies: `REPLY_S` of 2,000 sessions that receive frames of 20 ms all the time, 1,039 bytes each."""

AUDIO_MEMORY: Final = "1200MB"
"""`max_memory_store` that a server needs: it reserves the full size of these streams."""

_ONE_AUDIO_STREAM: Final = "AUDIO"
"""Stream of an earlier release, which kept both directions for the same time. It holds the subjects of both streams of today."""

_MESSAGE_LIMIT: Final = 1024 * 1024
_LOOK_S: Final = 0.05
_API_S: Final = 5.0
_NAME_IN_USE: Final = 10058
_NO_MEMORY: Final = 10028
_MADE_S: Final = 1.0
_TOOLS_TYPES: Final = ("tool.called", "tool.cancelled", "session.ended")
"""Subjects of the first release, whose calls may still be open."""


_log = logging.getLogger(__name__)


def streams(retention_days: int = 0, recording: Recording | None = None, *, replicas: int = 0) -> tuple[StreamConfig, ...]:
    """Return every stream with its settings; a retention or a number of replicas that is 0 is left as it is.

    With `recording` there is a stream on disk for the sealed blocks of recorded sessions. A single server does not sync each block, so the
    newest may be lost with the machine; three servers hold three copies. Live audio is in the memory of one server in any case: it is kept
    for a few seconds, and three copies of every frame would cost more than the call itself.
    """
    record = StreamConfig(
        name=bus_subjects.RECORD_STREAM,
        subjects=[bus_subjects.RECORD_SUBJECTS],
        storage=StorageType.FILE,
        num_replicas=replicas or None,
        persist_mode=PersistMode.ASYNC if replicas <= 1 else None,
        allow_direct=True,
        no_ack=False,
        duplicate_window=_DUPLICATE_WINDOW_S,
        max_age=recording.hours * 3_600 if recording is not None else None,
        max_bytes=recording.max_bytes if recording is not None else None,
    )
    return (
        _events(bus_subjects.EVENT_STREAM, bus_subjects.EVENT_SUBJECTS, bus_subjects.EVENT_COPIES, replicas, days=retention_days),
        _events(bus_subjects.ACCOUNT_STREAM, bus_subjects.ACCOUNT_SUBJECTS, bus_subjects.ACCOUNT_COPIES, replicas),
        _events(bus_subjects.AWARENESS_STREAM, bus_subjects.AWARENESS_SUBJECTS, bus_subjects.AWARENESS_COPIES, replicas),
        _events(
            bus_subjects.TERMINALS_STREAM, bus_subjects.TERMINALS_SUBJECTS, bus_subjects.TERMINALS_COPIES, replicas, days=retention_days
        ),
        _live(bus_subjects.MICROPHONE_STREAM, bus_subjects.MICROPHONE_SUBJECTS, MICROPHONE_S, MICROPHONE_FRAMES, MICROPHONE_BYTES),
        _live(bus_subjects.REPLY_STREAM, bus_subjects.REPLY_SUBJECTS, REPLY_S, REPLY_FRAMES, REPLY_BYTES),
        *((record,) if recording is not None else ()),
    )


def _events(name: str, subjects: str, copies: str, replicas: int, *, days: int = 0) -> StreamConfig:
    """Return a stream of the events of `subjects`, whose live copies are below `copies`."""
    return StreamConfig(
        name=name,
        subjects=[subjects],
        storage=StorageType.FILE,
        num_replicas=replicas or None,
        allow_direct=True,
        max_age=days * 86_400 or None,
        max_msg_size=_MESSAGE_LIMIT,
        duplicate_window=_DUPLICATE_WINDOW_S,
        republish=RePublish(src=f"{subjects[:-1]}*.*.>", dest=f"{copies}.{{{{wildcard(1)}}}}.{{{{wildcard(2)}}}}.{{{{wildcard(3)}}}}.>"),
    )


def _live(name: str, subjects: str, seconds: int, frames: int, size: int) -> StreamConfig:
    return StreamConfig(
        name=name,
        subjects=[subjects],
        storage=StorageType.MEMORY,
        allow_direct=True,
        no_ack=True,
        max_age=seconds,
        max_bytes=size,
        max_msgs_per_subject=frames,
        duplicate_window=seconds,
    )


def _ends(root: str) -> ConsumerConfig:
    """Return the consumer of how calls ended: from now on, since a failure of last week is no news."""
    return ConsumerConfig(
        durable_name=bus_subjects.AWARENESS_CONSUMER,
        filter_subject=f"{root}.*.ev.tools.c.{bus_subjects.MAIN}",
        ack_policy=AckPolicy.EXPLICIT,
        deliver_policy=DeliverPolicy.NEW,
        ack_wait=AWARENESS_ACK_WAIT_S,
        max_ack_pending=AWARENESS_PENDING,
    )


CONSUMERS: Final[Mapping[str, ConsumerConfig]] = {
    bus_subjects.VOICE_CONSUMER: ConsumerConfig(
        durable_name=bus_subjects.VOICE_CONSUMER,
        filter_subject="vx.s.*.ev.gateway.i.session.requested",
        ack_policy=AckPolicy.EXPLICIT,
        deliver_policy=DeliverPolicy.ALL,
        ack_wait=VOICE_ACK_WAIT_S,
        max_ack_pending=1_024,
    ),
    bus_subjects.TOOLS_CONSUMER: ConsumerConfig(
        durable_name=bus_subjects.TOOLS_CONSUMER,
        filter_subjects=[
            *(f"vx.s.*.ev.voice.c.{end}" for end in (bus_subjects.SESSION, *_TOOLS_TYPES)),
            f"vx.s.*.ev.gateway.i.{bus_subjects.REQUEST}",
        ],
        ack_policy=AckPolicy.EXPLICIT,
        ack_wait=TOOLS_ACK_WAIT_S,
        max_ack_pending=10_000,
    ),
    bus_subjects.AWARENESS_CONSUMER: _ends("vx.s"),
}
"""The durable consumers on the stream of sessions, by the service that reads them."""

ACCOUNT_CONSUMERS: Final[Mapping[str, ConsumerConfig]] = {
    bus_subjects.TOOLS_CONSUMER: ConsumerConfig(
        durable_name=bus_subjects.TOOLS_CONSUMER,
        filter_subjects=[f"vx.a.*.ev.gateway.i.{bus_subjects.REQUEST}"],
        ack_policy=AckPolicy.EXPLICIT,
        ack_wait=TOOLS_ACK_WAIT_S,
        max_ack_pending=10_000,
    ),
    bus_subjects.AWARENESS_CONSUMER: _ends("vx.a"),
}
"""The durable consumers on the stream of accounts, by the service that reads them."""

DURABLES: Final = (
    *((bus_subjects.EVENT_STREAM, consumer) for consumer in CONSUMERS.values()),
    *((bus_subjects.ACCOUNT_STREAM, consumer) for consumer in ACCOUNT_CONSUMERS.values()),
)
"""Every durable consumer, with its stream."""


async def ensure_streams(
    js: JetStreamContext,
    *,
    retention_days: int = 0,
    recording: Recording | None = None,
    replicas: int = 0,
    only: Collection[str] = (),
) -> None:
    """Create the streams, or those that are named in `only`, or bring the ones that exist to these settings. Raises `UNAVAILABLE`, and
    `INTERNAL` for a refusal.

    Settings that are not given stay as they are: the replicas, the retention, and every setting that an operator made by hand. Without
    `recording`, existing recordings stay until they expire.
    """
    try:
        for wanted in streams(retention_days, recording, replicas=replicas):
            if only and wanted.name not in only:
                continue
            try:
                found = (await js.stream_info(str(wanted.name))).config
            except NotFoundError:
                if not may_make(js):
                    raise _not_made(f"stream {wanted.name}") from None
                await _make(js, wanted)
            else:
                if may_make(js) and (differs(wanted, found) or _is_older(wanted, found)):
                    await _update(js, wanted)
    except BadRequestError as error:
        raise VoxbridgeError(Code.INTERNAL, f"NATS refused a stream: {error.description}.", retryable=False) from error
    except (TimeoutError, NatsError) as error:
        raise _unavailable(error) from error


async def _make(js: JetStreamContext, wanted: StreamConfig) -> None:
    """Create a stream. If another service created it meanwhile, bring that one to these settings: the server may not take the two for
    identical."""
    new = wanted
    if wanted.name in (bus_subjects.EVENT_STREAM, bus_subjects.TERMINALS_STREAM):
        new = wanted.evolve(max_age=wanted.max_age or RETENTION_DAYS * 86_400)
    if wanted.name in bus_subjects.LOG_STREAMS and wanted.name != bus_subjects.EVENT_STREAM and not wanted.num_replicas:
        # An installation of an earlier release may have been given replicas by hand.
        with suppress(NotFoundError):  # the terminals service may come before all others
            new = new.evolve(num_replicas=(await js.stream_info(bus_subjects.EVENT_STREAM)).config.num_replicas)
    if wanted.name in (bus_subjects.MICROPHONE_STREAM, bus_subjects.REPLY_STREAM):
        with suppress(NotFoundError):
            await js.delete_stream(_ONE_AUDIO_STREAM)
    try:
        await js.add_stream(new)
    except BadRequestError as error:
        if error.err_code != _NAME_IN_USE:
            raise
        await _update(js, wanted)
    except ServerError as error:
        # While another service creates the stream, the server counts its reservation twice and refuses the second.
        if error.err_code != _NO_MEMORY or not await until_there(js, str(wanted.name), _MADE_S):
            raise
        await _update(js, wanted)


async def _update(js: JetStreamContext, wanted: StreamConfig) -> None:
    """Change the wanted settings and keep all others. A setting that an update leaves out goes back to the server's default, which for
    replicas is one. So the update starts from the server's own answer, including fields that the client does not know."""
    info = await ask(js, f"STREAM.INFO.{wanted.name}", timeout_s=_API_S)
    there: dict[str, Any] = info["config"]
    older = _is_older(wanted, StreamConfig.from_response(dict(there)))
    there |= _asked(wanted, there)
    if older:
        there.pop("republish", None)
        there["no_ack"] = bool(wanted.no_ack)
    await ask(js, f"STREAM.UPDATE.{wanted.name}", json.dumps(there).encode(), timeout_s=_API_S)


async def make_again(
    js: JetStreamContext, *, retention_days: int, recording: Recording | None, replicas: int = 0, only: Collection[str] = ()
) -> None:
    """Create the streams again after a cut: a restarted server has lost its streams in memory. A failure is logged."""
    try:
        await ensure_streams(js, retention_days=retention_days, recording=recording, replicas=replicas, only=only)
    except VoxbridgeError as error:
        _log.warning("The streams were not looked at after a cut: %s", error.message)


async def until_there(js: JetStreamContext, name: str, within_s: float) -> bool:
    """Wait until a stream of this name exists; return whether it did within `within_s`."""
    try:
        async with asyncio.timeout(within_s):
            while True:
                try:
                    await js.stream_info(name)
                except NatsError:  # not created again yet, or JetStream does not answer yet
                    await asyncio.sleep(_LOOK_S)
                else:
                    return True
    except TimeoutError:
        return False


async def ensure_consumer(js: JetStreamContext, wanted: ConsumerConfig, stream: str = bus_subjects.EVENT_STREAM) -> None:
    """Create a durable consumer on a stream of the log, or bring it to these settings. Raises as `ensure_streams` does."""
    name = str(wanted.durable_name)
    try:
        try:
            found = (await js.consumer_info(stream, name)).config
        except NotFoundError:
            if not may_make(js):
                raise _not_made(f"consumer {name}{'' if stream == bus_subjects.EVENT_STREAM else f' of {stream}'}") from None
            await js.add_consumer(stream, wanted)
        else:
            if may_make(js) and (found is None or differs(wanted, found)):
                await js.add_consumer(stream, wanted if found is None else found.evolve(**_set_in(wanted)))
    except BadRequestError as error:
        raise VoxbridgeError(Code.INTERNAL, f"NATS refused the consumer {name}: {error.description}.", retryable=False) from error
    except (TimeoutError, NatsError) as error:
        raise _unavailable(error) from error


def differs(wanted: StreamConfig | ConsumerConfig, found: StreamConfig | ConsumerConfig) -> bool:
    """Return whether any setting in `wanted` has another value in `found`; settings left to the server are ignored."""
    there = _plain(found)
    return any(there.get(name) != value for name, value in _asked(wanted, there).items())


def _asked(wanted: StreamConfig | ConsumerConfig, there: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that are given here and can be changed there, in the server's form; the others are the client's defaults."""
    usual = _plain(type(wanted)())
    asked = {name: value for name, value in _plain(wanted).items() if value != usual.get(name)}
    # A stream's persist mode is fixed when it is created, and a stream that does not sync each message keeps one replica for good.
    asked.pop("persist_mode", None)
    if there.get("persist_mode") == PersistMode.ASYNC:
        asked.pop("num_replicas", None)
    return asked


def _set_in(wanted: ConsumerConfig) -> dict[str, Any]:
    return {one.name: getattr(wanted, one.name) for one in fields(wanted) if getattr(wanted, one.name) != one.default}


def _is_older(wanted: StreamConfig, found: StreamConfig) -> bool:
    """Return whether an earlier release created the stream: it republished every audio frame to the record, and the record gave no
    acknowledgements."""
    return (found.republish is not None and wanted.republish is None) or (found.no_ack is True and wanted.no_ack is False)


def _plain(config: StreamConfig | ConsumerConfig) -> dict[str, Any]:
    return {name: value.as_dict() if hasattr(value, "as_dict") else value for name, value in config.as_dict().items()}


def _not_made(what: str) -> Unavailable:
    return Unavailable(f"The {what} is not there yet; `voxbridge admin streams` makes it.", retry_after_ms=1_000)


def _unavailable(error: Exception) -> Unavailable:
    # A refusal for lack of permission looks the same here: its reason is in the log of the process (`voxbridge.shared.bus.connection`).
    reason = str(error) or "no answer"
    return Unavailable(f"JetStream does not answer: {reason}.", retry_after_ms=1_000)

"""The manner of a socket at `/session`: its words, and what has to be true before its session is opened.

Owns the order in which a configuration is judged: the key still counts, the day has room, the owner approved it if the key is live, its
handlers can run. Does not own those facts. A crash here loses a socket.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace
from nats.aio.client import Client

from voxbridge.services.gateway.core import inputs
from voxbridge.services.gateway.core import messages as vox_messages
from voxbridge.services.gateway.core.outbound import Message
from voxbridge.services.gateway.core.outputs import Open
from voxbridge.services.gateway.door.admission import Admission
from voxbridge.services.gateway.door.transport import Outlet
from voxbridge.services.gateway.platform import messages
from voxbridge.services.gateway.platform.admittance import Admittance, Pass, reached
from voxbridge.services.gateway.platform.calls import KeyCalls
from voxbridge.services.gateway.platform.dialect import Dialect, encoded
from voxbridge.services.gateway.platform.registry import Registry
from voxbridge.services.gateway.platform.voices import Voices
from voxbridge.services.gateway.vox.manner import Admitted
from voxbridge.shared.agents import talking
from voxbridge.shared.audio import frames
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events.gateway import ClientCapabilities, PublicKey, SessionConfigured, SessionOptions, SessionRequested
from voxbridge.shared.platform import checking
from voxbridge.shared.platform.checking import HandlersWanted
from voxbridge.shared.platform.handlers import Configuration, configuration_of, digest_of
from voxbridge.shared.platform.keys import Key
from voxbridge.shared.store.usage import Pending, UsageStore

EARLY_LIMIT: Final = 256
"""Frames, and the greeting, that may wait for the session: five seconds of sound."""

_READY: Final = ("setup_complete", "resumed")
_encode = msgspec.json.Encoder().encode
_log = logging.getLogger(__name__)


class Desk(NamedTuple):
    """Parts that judge configurations, shared by all sockets of a gateway."""

    registry: Registry
    usage: UsageStore
    admittance: Admittance
    admission: Admission
    calls: KeyCalls
    voices: Voices
    nc: Client
    now_ms: Callable[[], int]
    check: Callable[[Client, HandlersWanted], Awaitable[None]] = checking.check


class SessionManner:
    """The manner of one socket, whose key has a `given` pass and the `place`."""

    first: Final = "configure"

    def __init__(self, desk: Desk, given: Pass, place: str, *, v1: bool) -> None:
        self.v1 = True
        self.framed = v1
        self.bare = not v1
        self._desk = desk
        self._pass = given
        self._place = place
        self._dialect = Dialect(framed=v1, hears=given.key.mode in ("gemini", "openai"))
        self._ready = False
        self._early: list[Message | bytes] = []
        """Greeting and reply frames that came before the session was known to be open."""

        self._notices: tuple[messages.Notice, ...] = ()

    def read(self, payload: bytes, now_ms: int) -> inputs.Input:
        """Return the input that a message of this door, or one of `voxbridge.v1`, is."""
        try:
            name = messages.type_of(payload)
            if messages.is_ours(name):
                return self._input(messages.read(payload), now_ms)
            if not self.framed or name in ("start", "audio"):
                return inputs.Wrong(messages.unknown(name), now_ms)
            return inputs.TextMessage(payload, now_ms)
        except VoxbridgeError as error:
            return inputs.Wrong(error, now_ms)

    def _input(self, message: messages.ClientMessage, now_ms: int) -> inputs.Input:
        match message:
            case messages.Cancel():
                return inputs.MessageRead(vox_messages.Interrupt(), now_ms)
            case messages.ResetConversation():
                return inputs.MessageRead(vox_messages.Reset(), now_ms)
            case messages.MicrophoneReleased():
                return inputs.MessageRead(vox_messages.AudioEnd(), now_ms)
        if message.modes and not self.framed:
            why = "`modes` needs the sub-protocol voxbridge.v1, in which a page answers calls."
            raise VoxbridgeError(Code.INVALID_ARGUMENT, why, field="modes")
        key = self._pass.key
        configuration = configuration_of(instructions=message.instructions, greeting=message.greeting or "", tools=message.tools)
        return inputs.Asked(Open(_request(message, configuration, key, framed=self.framed), configuration=configuration), now_ms)

    def told(self, message: Message) -> Sequence[Message | bytes]:
        """Return the messages in the words of this door, and in those of `voxbridge.v1` where the client asked for it."""
        if message["type"] == "greeting" and not self._ready:
            self._early.append(message)
            return ()
        told: Sequence[Message | bytes] = self._dialect.told(message)
        if message["type"] not in _READY or self._ready:
            return told
        self._ready, early, self._early = True, self._early, []
        after = [self._sounding(one) if isinstance(one, bytes) else self._dialect.told(one) for one in early]
        return [*told, *map(encoded, self._notices), *(one for all_of_it in after for one in all_of_it)]

    def sounds(self, socket: Outlet, frame: bytes) -> bool:
        """Send the sound of a frame, and say where a reply ended or was stopped. What comes before the session is open waits."""
        if not self._ready:
            self._early.append(frame)
            del self._early[:-EARLY_LIMIT]
            return True
        for said in self._sounding(frame):
            if isinstance(said, bytes):
                socket.send_binary(said)
            else:
                socket.send_text(_encode(said))
        return True

    def _sounding(self, frame: bytes) -> Sequence[Message | bytes]:
        silent = len(frame) <= frames.PREFIX_SIZE or frame[1] == frames.FLUSH
        sound = (frame,) if self.framed else () if silent else (frame[frames.PREFIX_SIZE :],)
        return [*sound, *self._dialect.ended(frame)]

    async def admit(self, sid: str, opens: Open) -> Admitted:
        """Judge the configuration. Raises the error that refuses it."""
        # Nothing of the socket is read here: the page may have sent another configuration meanwhile, which the core refuses.
        desk, given, event, configuration = self._desk, self._pass, opens.event, opens.configuration or Configuration()
        key = given.key
        if given.full:
            raise reached(given.full, key.limits)
        if desk.registry.find(key.id) is None:
            raise VoxbridgeError(Code.PERMISSION_DENIED, "This key was revoked.", field="key")
        digest = digest_of(configuration)
        if key.kind == "public" and key.environment == "live" and digest not in desk.registry.approved(key.account):
            await self._put_pending(digest, configuration)
            raise unapproved(key, digest)
        desk.admission.start()
        full = await desk.usage.begin(key.id, key.limits)
        if full:
            raise reached(full, key.limits)
        voice, known = await desk.voices.find(event.voice or key.voice, event.mode if not event.agent else "")
        if not known:
            message = f"There is no voice {(event.voice or key.voice)[:64]!r} here; the default voice speaks."
            self._notices = (messages.Notice(message),)
        before: tuple[SessionConfigured, ...] = ()
        if configuration.tools:
            wanted = HandlersWanted(tools=configuration.tools, account=key.account, sid=sid)
            await desk.check(desk.nc, wanted)
            before = (SessionConfigured(account=key.account, environment=key.environment, configuration=configuration, digest=digest),)
        limits = key.limits
        public = PublicKey(
            id=key.id,
            live=key.environment == "live",
            digest=digest,
            functions=key.functions,
            seconds=limits.seconds_a_call,
            tokens=limits.tokens_a_call,
        )
        return Admitted(replace(event, account=key.account, voice=voice, key=public), before)

    def may_resume(self, account: str) -> bool:
        """Allow sessions of the key's own account."""
        return account == self._pass.key.account

    def opened(self, sid: str, position: int) -> None:
        """Count the session that was opened, which has a place of its own from now on."""
        self._desk.calls.opened(self._pass.key, sid, position)
        self._desk.calls.left(self._place)

    async def resumed(self, sid: str, position: int) -> None:
        """Go on counting the session that was resumed."""
        await self._desk.calls.resumed(self._pass.key, sid, position)
        self._desk.calls.left(self._place)

    def left(self) -> None:
        """Leave the place of a socket that is gone."""
        self._desk.calls.left(self._place)

    async def _put_pending(self, digest: str, configuration: Configuration) -> None:
        given = self._pass
        pending = Pending(
            digest=digest,
            key_id=given.key.id,
            origin=given.origin,
            asked_ms=self._desk.now_ms(),
            configuration=configuration,
        )
        try:
            await self._desk.usage.put_pending(given.key.account, pending)
        except VoxbridgeError as error:
            _log.warning("%s A configuration is not listed for approval.", error.message)


def unapproved(key: Key, digest: str) -> VoxbridgeError:
    """Return the error of a configuration that nobody has approved."""
    message = (
        f"The owner of {key.account!r} has not approved what this page configures. Its digest is {digest}. Approve it with "
        f"`voxbridge platform approve {digest} --account {key.account}`, in Studio's Keys room, or with POST /api/approvals; "
        "a test key runs it without."
    )
    return VoxbridgeError(Code.PERMISSION_DENIED, message, field="configure", limit=digest)


def _request(message: messages.Configure, configuration: Configuration, key: Key, *, framed: bool) -> SessionRequested:
    named = key.agent != ""
    return SessionRequested(
        mode=key.mode,
        model=key.model,
        voice=message.voice,
        agent=key.agent,
        system_prompt=configuration.instructions,
        output="" if named else "audio",
        filler=message.filler,
        record=None if named else False,
        functions=(*configuration.functions(), *((talking.START, talking.END) if message.modes else ())),
        options=SessionOptions(
            greeting=None if named and message.greeting is None else configuration.greeting,
            language=message.language,
            time_zone=message.time_zone,
            speed=message.speed,
            barge_in_words=message.barge_in_words,
            push_to_talk=message.push_to_talk,
            interim=message.interim,
            cleaner=message.voice_cleaner,
            output="text" if message.output == "text" else "",
        ),
        client=ClientCapabilities(protocol="voxbridge.v1" if framed else "vox", chat=True),
    )

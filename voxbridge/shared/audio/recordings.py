"""Recorded audio: sealed blocks of frames in the stream `RECORD`, and the key of each session that opens them.

Owns which sessions are recorded, the form of a block, and `vx:datakey:<sid>` in Valkey: the session's own key, sealed by the vault, and
stored only there. Deleting it makes every copy of the recording unreadable. Does not own the recording itself
(`voxbridge.services.voice.audio.recorder`) nor how a file is made of it (`voxbridge.sessions.wav`). A Valkey that forgets everything loses
the keys, and the recordings with them; a crash here loses nothing.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

import msgspec
from nats.aio.msg import Msg
from redis.asyncio import Redis
from redis.exceptions import NoPermissionError, RedisError

from voxbridge.shared.bus import subjects
from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code, Unavailable, VoxbridgeError
from voxbridge.shared.log.reader import Log, position
from voxbridge.shared.secrets import vault
from voxbridge.shared.secrets.secret_file import vault_key_file
from voxbridge.shared.secrets.vault import Vault, WrongKey

BLOCK_BYTES: Final = 512 * 1024
"""Bytes of frames in one block at most, unless a single frame is larger."""

KEY_SLACK_S: Final = 86_400
"""Seconds that a key is kept longer than the audio; the recorder extends it while a session lasts."""

CHANNELS: Final = ("in", "out")

INDEX: Final = "Vx-Block"
"""Header of a stored block that holds its index."""

_SUBJECT: Final = "Nats-Subject"
_TIME: Final = "Nats-Time-Stamp"


BINS_LIMIT: Final = 4_000
LONGEST_MS: Final = 6 * 3_600_000
"""Milliseconds of a session that are drawn at most: the first six hours."""


class Waveform(msgspec.Struct, frozen=True, kw_only=True):
    """Request for peaks (`voxbridge.shared.bus.subjects.WAVEFORM`): `bins` of a channel from `from_ms` to `to_ms`, or to the end of its
    audio."""

    sid: str
    channel: Literal["in", "out"]
    began_ms: int
    live: bool
    bins: int
    from_ms: int = 0
    to_ms: int | None = None


class Frame(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A frame as the bus had it: channel (0 the microphone, 1 the reply), position in that channel's stream, and when the stream took it,
    µs."""

    channel: int
    seq: int
    at: int
    data: bytes


class Passed:
    """Positions up to which the frames of a session were passed, per channel, so that none is taken twice: after a takeover or a cut some
    come again, and a restarted server counts from 1."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[int, int]] = {}

    def fresh(self, frame: Frame) -> bool:
        """Return whether the frame is new by its position and time, and mark it as passed."""
        seq, at = self._last.get(frame.channel, (0, 0))
        if frame.seq <= seq and frame.at <= at:
            return False
        self._last[frame.channel] = frame.seq, frame.at
        return True


class Read(NamedTuple):
    """Frames of a recording, the position to continue after, and whether there are more. `sealed` counts blocks that cannot be opened."""

    frames: list[Frame]
    after: int
    more: bool
    sealed: int
    missing: int = 0
    """Blocks that are missing between those that were read."""


_blocks: Final = msgspec.msgpack.Decoder(list[Frame])
_encoder: Final = msgspec.msgpack.Encoder()


def wanted(setting: str, agents: Iterable[bool | None], asked: bool | None) -> bool:
    """Return whether a session is recorded, by `VOXBRIDGE_RECORDING`, by the settings of its agents (the one that begins comes first), and
    by what its client asked for. A refusal of the client, or of any agent that may take part, takes precedence over everything else."""
    said = list(agents)
    if setting == "off" or asked is False or False in said:
        return False
    return setting == "on" or asked is True or said[:1] == [True]


def frame_of(message: Msg) -> Frame:
    """Return the frame in a message of `MICROPHONE` or `REPLY`."""
    headers = message.headers or {}
    return Frame(int(headers[_SUBJECT].endswith(".out")), position(message), _us(headers[_TIME]), message.data)


def blocks(frames: Iterable[Frame]) -> Iterator[list[Frame]]:
    """Yield the frames in order, in blocks that are cut where they are full."""
    block: list[Frame] = []
    size = 0
    for frame in frames:
        if block and size + len(frame.data) > BLOCK_BYTES:
            yield block
            block, size = [], 0
        block.append(frame)
        size += len(frame.data)
    if block:
        yield block


def seal(key: bytes, sid: str, block: list[Frame], index: str = "") -> bytes:
    """Return a block as it is stored. `index` is the recorder's own number for it, `<recorder>.<n>`, and is authenticated with it, so that
    a block cannot replace another one. It is stored beside the block, in the header `INDEX`."""
    return vault.seal(key, _encoder.encode(block), name=_sealed_name(sid, index))


def unseal(key: bytes, sid: str, stored: bytes, index: str = "") -> list[Frame]:
    """Return the frames of a stored block; blocks of older releases have no index. Raises `WrongKey`."""
    return _blocks.decode(vault.unseal(key, stored, name=_sealed_name(sid, index)))


def _sealed_name(sid: str, index: str) -> str:
    return f"recording:{sid}:{index}" if index else f"recording:{sid}"


class Order:
    """Last block read of each recorder, to count the blocks that are missing between them."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}

    def missing(self, index: str) -> int:
        """Return how many blocks of the same recorder are missing between its last one and this one, which opened."""
        recorder, _, number = index.rpartition(".")
        if not number.isdecimal():
            return 0
        before = self._last.get(recorder)
        self._last[recorder] = max(int(number), before or 0)
        return max(0, int(number) - before - 1) if before is not None else 0


async def read(log: Log, sid: str, key: bytes, *, after: int, limit: int, order: Order | None = None) -> Read:
    """Return the frames of up to `limit` blocks that follow position `after` of `RECORD`; `order` knows the blocks before. Raises
    `UNAVAILABLE`."""
    order = order or Order()
    page = await log.frames(subjects.RECORD_STREAM, subjects.recorded(sid), after=after, limit=limit)
    found: list[Frame] = []
    sealed = missing = 0
    for message in page.messages:
        index = (message.headers or {}).get(INDEX, "")
        try:
            found += unseal(key, sid, message.data, index)
        except WrongKey:
            sealed += 1
        else:
            missing += order.missing(index)
    return Read(found, position(page.messages[-1]) if page.messages else after, page.more and bool(page.messages), sealed, missing)


class DataKeys:
    """The keys of recorded sessions."""

    def __init__(self, redis: Redis, vault: Vault, *, kept_s: int) -> None:
        self._redis = redis
        self._vault = vault
        self._kept_s = kept_s + KEY_SLACK_S

    @classmethod
    def of(cls, config: Config, redis: Redis) -> DataKeys:
        """Build the keys of the installation that this process belongs to."""
        return cls(redis, Vault(vault_key_file(config)), kept_s=config.recording_hours * 3_600)

    async def find(self, sid: str) -> bytes | None:
        """Return the key of a session; None for one that is not recorded, or was erased. Raises `UNAVAILABLE`, `WrongKey`, and
        `PERMISSION_DENIED` where this user of Valkey may not read such keys."""
        kept = await _answered(self._redis.get(name(sid)))
        return None if kept is None else self._vault.unseal(base64.b64decode(kept), name=name(sid))

    async def make(self, sid: str) -> bytes:
        """Return the key of a session that is recorded, created if it has none yet. Raises `UNAVAILABLE` and `WrongKey`."""
        sealed = base64.b64encode(self._vault.seal(vault.new_key(), name=name(sid))).decode()
        await _answered(self._redis.set(name(sid), sealed, nx=True, ex=self._kept_s))
        key = await self.find(sid)
        if key is None:
            raise Unavailable("Valkey did not keep the key of a recording.", retry_after_ms=1_000)
        return key

    async def prolong(self, sid: str) -> None:
        """Keep the key for its full lifetime from now on; a deleted key stays deleted."""
        await _answered(self._redis.expire(name(sid), self._kept_s))


def name(sid: str) -> str:
    """Return the name of a session's key in Valkey."""
    return f"vx:datakey:{{{sid}}}"


def _us(stored_at: str) -> int:
    return round(datetime.fromisoformat(stored_at).timestamp() * 1_000_000)


async def _answered(command: Any) -> Any:
    try:
        return await command
    except NoPermissionError as error:
        message = "This user of Valkey may not read the keys of recordings. In containers `docker compose run --rm -T recordings` may."
        raise VoxbridgeError(Code.PERMISSION_DENIED, message, retryable=False) from error
    except RedisError as error:
        raise Unavailable(f"Valkey does not serve the keys of recordings ({type(error).__name__}).", retry_after_ms=1_000) from error

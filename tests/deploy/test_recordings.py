"""`export --wav` as the user `recordings`, on both servers as in the compose stack: it writes the sound; all other users are refused."""

from __future__ import annotations

import asyncio
import io
import os
import stat
import sys
import wave
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from tests.deploy.conftest import Guarded
from tests.deploy.test_credentials import running
from tests.ports import free_port
from tests.voxbridge.sessions.test_wav import LENGTH_MS, Recorded, heard
from voxbridge.installation import credentials, streams
from voxbridge.shared.audio.recordings import DataKeys
from voxbridge.shared.bus.accounts import ADMIN, RECORDINGS
from voxbridge.shared.bus.connection import EVENTS_PENDING, close_nats, connect_nats
from voxbridge.shared.config import Config
from voxbridge.shared.embedded.valkey_server import ValkeyServer
from voxbridge.shared.log.reader import Log
from voxbridge.shared.store.connection import connect_redis

COMMAND_S = 60.0


@dataclass(frozen=True)
class Recorder:
    """A session with a recording; `config(user)` has the settings of that user's container."""

    sid: str
    guarded: Guarded
    valkey_port: int
    data: Path

    def config(self, user: str) -> Config:
        own = self.guarded.folder / user
        return self.guarded.config(
            user,
            recording="on",
            recording_mb=64,
            data_dir=self.data,
            redis_url=f"redis://{user}@127.0.0.1:{self.valkey_port}/0",
            redis_password_file=str(own / credentials.PASSWORD_FILE),
            vault_key_file=str(own / credentials.VAULT_FILE),
        )

    async def exported(self, user: str, *, file: str = "-") -> tuple[int, bytes, str]:
        """Run `voxbridge export SID --wav FILE` in a separate process. Return its exit status, its output and its error output."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("VOXBRIDGE_")}
        command = ("-m", "voxbridge", "export", self.sid, "--wav", file)
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *command,
            env={**kept, **self.config(user).as_env(), "TMPDIR": str(self.data)},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(COMMAND_S):
                wrote, said = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return process.returncode or 0, wrote, said.decode()


@pytest.fixture
async def recorder(guarded: Guarded, tmp_path: Path) -> AsyncIterator[Recorder]:
    """A session with half a second of audio, recorded by the voice service's user."""
    port, file, data = free_port(), tmp_path / "valkey.conf", tmp_path / "data"
    data.mkdir()
    configuration = credentials.VALKEY_CONFIGURATION.replace("/etc/voxbridge", str(guarded.folder / "valkey")).replace("/store", str(data))
    file.write_text(configuration.replace("bind * -::*", "bind 127.0.0.1").replace("port 6379", f"port {port}"))
    async with running(ValkeyServer(tmp_path / "unused").command()[0], file):
        found = Recorder("", guarded, port, tmp_path / "command")
        found.data.mkdir()
        await streams.make_streams(found.config(ADMIN))
        voice = found.config("voice")
        client = await connect_nats(guarded.url, "test", pending=EVENTS_PENDING, user="voice", seed_file=voice.nats_seed_file)
        redis = await connect_redis(voice.redis_url, password_file=voice.redis_password_file)
        try:
            session = Recorded(Log(client), DataKeys.of(voice, redis))
            await session.lives()
            for at in range(20, 520, 20):
                session.hears(1_000 + at, 8_000)
            await session.stored()
        finally:
            await redis.aclose()
            await close_nats(client)
        yield replace(found, sid=session.sid)


async def test_the_user_recordings_writes_a_recording_to_standard_output_and_leaves_nothing(recorder: Recorder) -> None:
    status, wrote, said = await recorder.exported(RECORDINGS)
    assert (status, said) == (0, f"3.0 s of {recorder.sid} are in standard output\n")
    with wave.open(io.BytesIO(wrote), "rb") as file:
        assert (file.getnchannels(), file.getframerate(), file.getnframes()) == (2, 24_000, LENGTH_MS * 24)
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2").reshape(-1, 2)
    assert heard(samples, 0) == [(1_000, 1_500, 8_000)]
    assert list(recorder.data.iterdir()) == []


async def test_the_user_recordings_writes_a_file_too_for_its_owner_alone(recorder: Recorder, tmp_path: Path) -> None:
    path = tmp_path / "call.wav"
    status, wrote, said = await recorder.exported(RECORDINGS, file=str(path))
    assert (status, wrote, said) == (0, b"", f"3.0 s of {recorder.sid} are in {path}\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("user", "why"),
    [
        (ADMIN, "may not read the keys of recordings. In containers `docker compose run --rm -T recordings` may."),
        ("tools", "The event log does not answer"),
    ],
)
async def test_no_other_users_command_opens_a_recording(user: str, why: str, recorder: Recorder) -> None:
    status, wrote, said = await recorder.exported(user)
    assert (status, wrote) == (1, b"")
    (line,) = said.splitlines()
    assert why in line

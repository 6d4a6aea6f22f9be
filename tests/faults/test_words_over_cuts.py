"""Microphone audio sent while nats-server is dead reaches the model: every sample, once and in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from itertools import count

import numpy as np
import pytest
import pytest_asyncio

from tests.fakes.gemini.turns import Turn
from tests.faults.caller import FRAME, Caller
from tests.faults.guarded import Guarded
from tests.faults.installation import Installation, installed
from voxbridge.services.voice.audio import catch_up
from voxbridge.shared.audio import frames
from voxbridge.shared.audio.frames import INPUT_RATE

pytestmark = [pytest.mark.timeout(120), pytest.mark.asyncio(loop_scope="module")]
FRAME_S = FRAME / (2 * INPUT_RATE)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def installation(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Installation]:
    """An installation in which each service has only the permissions that it needs."""
    folder = tmp_path_factory.mktemp("installation")
    async with installed(folder, Guarded(folder)) as found:
        yield found


def numbered(number: int) -> bytes:
    """Return a unique frame."""
    return np.full(FRAME // 2, number + 1, "<i2").tobytes()


async def test_a_sentence_goes_on_over_the_death_of_the_bus(installation: Installation) -> None:
    caller = Caller(installation.config.port)
    said = bytearray()
    numbers = count()

    async def speak(until: Callable[[], bool]) -> None:
        while not until():
            pcm = numbered(next(numbers))
            said.extend(pcm)
            await caller.speaks(pcm)
            await asyncio.sleep(FRAME_S)  # real time, as from a microphone

    try:
        installation.google.says(Turn(says="Hello."))
        await caller.start(mode="gemini", agent="triage")
        await caller.until("provider", status="connected")
        model = installation.google.sessions[-1]
        await speak(lambda: len(model.audio) >= 5 * FRAME)
        for _ in range(3):
            installation.nats.kill()
            ends = len(said) + 15 * FRAME
            await speak(lambda ends=ends: len(said) >= ends)  # type: ignore[misc]
            installation.nats.start()
            restarted = len(said) + 5 * FRAME
            await speak(lambda restarted=restarted: len(said) >= restarted)  # type: ignore[misc]
            await installation.servers.prepare()  # the bus keeps audio again from here on
            await speak(lambda ends=ends: len(model.audio) > ends)  # type: ignore[misc]
            async with installation.log() as log:
                kept = [frames.parse(frame).sequence for frame in (await catch_up.read(log, caller.sid)).microphone]
            assert kept == list(range(kept[0], kept[-1] + 1))
            assert kept[0] * FRAME < ends, "a successor and a recording find what was said while it was away"
        await installation.google.until(lambda: len(model.audio) >= len(said))
        assert model.audio == said
        assert installation.google.sessions[-1] is model, "the model's connection was not lost"
        await caller.ends()
    finally:
        await caller.stop()

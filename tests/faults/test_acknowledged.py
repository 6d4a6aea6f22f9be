"""Every acknowledged event is in the log, exactly once, across any number of kills of nats-server: counted from outside."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import nats
import pytest

from tests import draws
from tests.eventually import BOUND_S, eventually
from tests.faults.stack import stack, talker
from tests.ports import free_port
from tests.voice.model_server import ModelServer
from tests.voice.replaying import causes_come_first, replay, stored
from voxbridge.shared.config import Config
from voxbridge.shared.embedded.nats_server import NatsServer
from voxbridge.shared.events.gateway import TextReceived
from voxbridge.shared.events.voice import TurnCompleted
from voxbridge.shared.log.reader import Log

KILLS = 5
WRITERS = 12


async def lines(path: Path, count: int) -> None:
    """Wait until the file has more than so many lines."""
    await eventually(lambda: path.exists() and path.read_bytes().count(b"\n") > count)


@pytest.mark.parametrize("how", ["plain", "fenced"])
async def test_no_acknowledged_event_is_lost_or_there_twice(own_nats: Callable[[], NatsServer], tmp_path: Path, how: str) -> None:
    server, acked, chance = own_nats(), tmp_path / "acked", draws.dice(how)
    command = [sys.executable, "-m", "tests.faults.writers", how, server.url, str(acked), str(WRITERS)]
    writing = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.DEVNULL)
    try:
        aim = 0
        for _ in range(KILLS):
            aim += chance.randint(50, 600)
            await lines(acked, aim)
            server.kill()
            server.start()
            aim = acked.read_bytes().count(b"\n")
        await lines(acked, aim + 200)
        writing.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(writing.wait(), BOUND_S) == 0
    finally:
        if writing.returncode is None:
            writing.kill()
            await writing.wait()

    told: dict[str, list[tuple[int, int]]] = {}
    for line in acked.read_text().splitlines():
        sid, seq, number = line.split()
        told.setdefault(sid, []).append((int(seq), int(number)))
    assert len(told) == WRITERS
    outside = await nats.connect(server.url)
    try:
        log = Log(outside)
        for sid, events in told.items():
            assert [(one.seq, one.ts) async for one in log.read_all(sid)] == events
        assert (await outside.jetstream().stream_info("EV")).state.messages == sum(map(len, told.values()))
    finally:
        await outside.close()


async def test_a_conversation_over_kills_of_nats_loses_and_repeats_nothing(
    own_nats: Callable[[], NatsServer], redis_url: str, model_server: ModelServer, config: Config
) -> None:
    server, chance = own_nats(), draws.dice("conversation")
    port = free_port()
    whole = Config(
        nats_url=server.url,
        redis_url=redis_url,
        models_url=model_server.url,
        stt_url=model_server.url,
        llm_url=model_server.url,
        tts_url=model_server.url,
        greeting="",
        models_dir=config.models_dir,
        data_dir=Path("/nowhere"),
        port=port,
        models_port=free_port(),
        tool_packs="tests.tools.pack",
    )
    texts = [f"Text number {n}." for n in range(10)]
    async with stack(whole), talker(whole) as person:
        await person.start()
        for number, text in enumerate(texts):
            await person.say(text)
            if number % 3 == 0:
                await asyncio.sleep(chance.uniform(0, 0.15))  # a random moment of the turn
                server.kill()
                server.start()
            await person.until("transcript", role="user", text=text, final=True)
            await person.until("turn_complete", number + 1)
        outside = await nats.connect(server.url)
        try:
            log = [one async for one in Log(outside).read_all(person.sid)]
        finally:
            await outside.close()

    assert [one.event.text for one in log if isinstance(one.event, TextReceived)] == texts
    turns = [one.event.number for one in log if isinstance(one.event, TurnCompleted)]
    assert turns == list(range(1, len(texts) + 1))
    seqs = {one.seq for one in log if one.visible}
    heard = [message["seq"] for message in person.told if "seq" in message]
    assert heard == sorted(set(heard)), "told in order, nothing twice"
    assert set(heard) <= seqs, "nothing was told that is not in the log"
    said = [one.seq for one in log if one.type in ("user.said", "agent.said")]
    assert [seq for seq in said if seq not in heard] == []
    assert replay(person.sid, log)[1] == stored(log)
    assert causes_come_first(log)

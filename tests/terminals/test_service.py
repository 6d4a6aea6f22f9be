"""The service on the bus: its questions, refusals, live output and cards, and its order when it is stopped."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import psutil
import pytest

from tests.eventually import BOUND_S, eventually
from tests.terminals.serving import BY, Process, Viewer, process, viewing
from voxbridge.services.terminals import folder as folders
from voxbridge.services.terminals.holder import holder
from voxbridge.shared.embedded.child import die_with_parent
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.terminals import live
from voxbridge.shared.terminals import questions as asked
from voxbridge.shared.terminals.client import ask
from voxbridge.shared.terminals.model import LOCAL_HOST, Card


@pytest.fixture
async def service(nats_url: str, redis_url: str) -> AsyncIterator[Process]:
    with process(nats_url, redis_url) as service:
        yield service


@pytest.fixture
async def viewer(nats_url: str, service: Process) -> AsyncIterator[Viewer]:
    async with viewing(nats_url) as viewer:
        yield viewer


async def test_keys_come_back_as_output_and_cards_tell_the_state(viewer: Viewer) -> None:
    cards: list[Card | None] = []
    outputs: list[bytes] = []

    async def card(message: object) -> None:
        data = message.data  # type: ignore[attr-defined]
        cards.append(msgspec.json.decode(data, type=Card) if data else None)

    async def output(message: object) -> None:
        outputs.append(bytes(live.decode_output(message.data).data))  # type: ignore[attr-defined]

    await viewer.nc.subscribe(live.card_subject(), cb=card)
    bash = (await viewer.start()).id
    await viewer.nc.subscribe(live.output_subject(LOCAL_HOST, bash), cb=output)
    assert (await viewer.ask(asked.Wait(by=BY, terminal=bash, until="idle", timeout_s=20))).met
    for data, phase in ((b"read x; echo $((40+2))\r", "working"), (b"\r", "done")):
        typed = live.Typed(by="Ada", connection="c1", data=data)
        await viewer.nc.publish(live.typed_subject(LOCAL_HOST, bash), msgspec.msgpack.encode(typed))
        await eventually(lambda: phase in {one.state.phase for one in cards if one is not None})  # noqa: B023 - called in this round
    await eventually(lambda: b"42\r\n" in b"".join(outputs))
    await viewer.ask(asked.Close(by=BY, terminal=bash))
    await eventually(lambda: cards[-1] is None)


@pytest.mark.parametrize("data", [b"", b"{", b'{"by": ""}', b'{"by":"x","terminal":"../etc"}', b'{"by":"x","terminal":"a","lines":100000}'])
async def test_a_question_that_cannot_be_read_is_refused(viewer: Viewer, data: bytes) -> None:
    await viewer.ask(asked.ListTerminals(by=BY))
    reply = await viewer.nc.request(asked.question_subject(LOCAL_HOST, "read"), data, timeout=10)
    assert VoxbridgeError.from_dict(msgspec.json.decode(reply.data)).code == Code.INVALID_ARGUMENT


async def test_keys_that_cannot_be_read_break_nothing(viewer: Viewer) -> None:
    bash = (await viewer.start("sh")).id
    for data in (b"", b"\xff", msgspec.msgpack.encode(("", "", b"")), msgspec.msgpack.encode(("a", "b", b"x" * (live.TYPED_LIMIT + 1)))):
        await viewer.nc.publish(live.typed_subject(LOCAL_HOST, bash), data)
    await viewer.nc.publish(live.typed_subject(LOCAL_HOST, "nobody"), msgspec.msgpack.encode(("a", "b", b"x")))
    assert (await viewer.send(bash, "echo alive")).outcome == "submitted"


async def test_a_wait_is_bounded_and_holds_up_nobody(viewer: Viewer) -> None:
    bash = (await viewer.start("sh")).id
    waits = [asyncio.create_task(viewer.ask(asked.Wait(by=BY, terminal=bash, until="exit", timeout_s=600))) for _ in range(20)]
    await asyncio.sleep(0)
    assert (await viewer.send(bash, "exit")).outcome == "submitted"
    for waited in await asyncio.gather(*waits):
        assert (waited.met, waited.clamped) == (True, True)


async def test_stopped_in_order_it_leaves_its_programs_to_the_next(service: Process, viewer: Viewer) -> None:
    bash = (await viewer.start()).id
    assert (await viewer.ask(asked.Wait(by=BY, terminal=bash, until="idle", timeout_s=20))).met
    await viewer.send(bash, "echo before")
    pid = (await viewer.ask(asked.ListTerminals(by=BY))).terminals[0].pid
    await asyncio.to_thread(service.stop, signal.SIGTERM)
    with pytest.raises(VoxbridgeError, match="does not answer"):
        await ask(viewer.nc, LOCAL_HOST, asked.ListTerminals(by=BY))
    service.start()
    card = (await viewer.ask(asked.ListTerminals(by=BY))).terminals[0]
    assert (card.pid, card.ended) == (pid, "")
    assert "before" in await viewer.text(bash)


@pytest.mark.parametrize("definition", ["sh", "bash"])
async def test_programs_inherit_nothing_of_the_service(
    nats_url: str, redis_url: str, monkeypatch: pytest.MonkeyPatch, definition: str
) -> None:
    """Neither a variable that says where our servers are or lets one in, nor an open file, socket or lock."""
    for name in ("ANTHROPIC_API_KEY", "MY_TOKEN", "DB_SECRET", "VOXBRIDGE_SECRET_KEY_FILE"):
        monkeypatch.setenv(name, "planted-2317")
    with process(nats_url, redis_url):
        async with viewing(nats_url) as viewer:
            pid = (await viewer.start(definition)).pid
            given = Path(f"/proc/{pid}/environ").read_bytes()  # noqa: ASYNC240 - a moment, in a test
            assert not [one for one in ("planted-2317", nats_url, redis_url) if one.encode() in given]
            opened = {os.readlink(f"/proc/{pid}/fd/{number}") for number in os.listdir(f"/proc/{pid}/fd")}  # noqa: PTH115, PTH208
            assert opened
            assert [one for one in opened if not one.startswith(("/dev/pts/", "/dev/tty"))] == []


async def test_it_joins_a_holder_that_was_started_by_itself_as_compose_does(nats_url: str, redis_url: str) -> None:
    with process(nats_url, redis_url, start=False) as service:
        folders.private(service.folder)
        command = [sys.executable, "-m", "voxbridge.services.terminals.holder", str(service.folder)]
        held = subprocess.Popen(command, stderr=subprocess.DEVNULL, preexec_fn=die_with_parent())  # noqa: PLW1509, ASYNC220 - as the product's own children
        await eventually((service.folder / "holder.sock").exists)
        service.start()
        async with viewing(nats_url) as viewer:
            pid = (await viewer.start("sh")).pid
            keepers = {one.pid for one in psutil.Process(held.pid).children(recursive=True)}
            assert pid in keepers, "its programs are the holder's"
            service.stop()
            service.start()
            (card,) = (await viewer.ask(asked.ListTerminals(by=BY))).terminals
            assert (card.pid, held.poll()) == (pid, None)
        service.stop()
        assert holder.stop(service.folder) == 0
        held.wait(BOUND_S)


async def test_its_folder_is_its_users_alone(tmp_path: object) -> None:
    from pathlib import Path

    folder = Path(str(tmp_path)) / "terminals"
    assert folders.private(folder).stat().st_mode & 0o777 == 0o700
    folders.private(folder).chmod(0o755)
    with pytest.raises(VoxbridgeError, match="chmod 700"):
        folders.private(folder)
    deep = folder / ("x" * 200)
    assert len(str(folders.place(deep))) < folders.PATH_LIMIT

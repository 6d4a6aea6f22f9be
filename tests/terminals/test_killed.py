"""The service killed, NATS killed, Valkey killed: programs run on, no byte is lost or doubled, and the screens are back."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.draws import dice
from tests.eventually import eventually
from tests.terminals.serving import BY, Process, Viewer, process, viewing
from voxbridge.services.terminals.ring import Ring
from voxbridge.services.terminals.screen import Screen
from voxbridge.shared.embedded.nats_server import NatsServer
from voxbridge.shared.embedded.valkey_server import ValkeyServer
from voxbridge.shared.terminals import questions as asked

pytestmark = pytest.mark.timeout(240)
KILLS: Final = 10
NUMBERS: Final = 2_000_000
KEPT: Final = 1_500_000
"""Bytes that are compared: those that are surely still in the ring."""

SESSION: Final = """
import sys, time
frames = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
out = sys.stdout
out.write("\\x1b[?2004h\\x1b[?25l\\x1b]0;coding\\x07\\x1b]7501;state=working\\x07")
for turn in range(60):
    for step in range(40):
        out.write(f"\\r\\x1b[2K\\x1b[38;5;{step % 200}m{frames[step % 10]}\\x1b[0m Thinking {turn}.{step} ")
        out.write(f"\\x1b[1m✻\\x1b[22m 你好 {'=' * (step * 2 % 60)}")
        out.flush()
        time.sleep(0.002)
    out.write(f"\\r\\n\\x1b[32m+ line {turn}\\x1b[0m\\r\\n\\x1b[31m- gone {turn}\\x1b[0m\\r\\n")
out.write("\\x1b[?25h\\x1b]7501;state=done\\x07\\r\\nfinished\\r\\n")
out.flush()
"""
"""A session as coding agents write one: spinners, colours, wide characters, titles and reports, drawn in place."""


async def kill_while(service: Process, viewer: Viewer, terminal: str, done: Callable[[str], bool], turn: int) -> str:
    """Kill the service again and again, each time after output came from it, until the screen shows the end; return the screen."""
    chance = dice(f"kills of the terminals service {turn}")
    await viewer.follow(terminal)
    while service.kills < KILLS:
        frames = viewer.frames

        async def goes_on(frames: int = frames) -> bool:
            return viewer.frames > frames or done(await viewer.text(terminal))

        await eventually(goes_on)
        await asyncio.sleep(chance.random() * 0.1)  # no wait for anything: the moment of the kill is drawn
        service.stop()
        service.start()
        card = await viewer.ask(asked.ListTerminals(by=BY))
        assert [one.ended for one in card.terminals] == [""]
        if done(await viewer.text(terminal)):
            break

    async def shows_the_end() -> str:
        text = await viewer.text(terminal)
        return text if done(text) else ""

    return await eventually(shows_the_end, within_s=120)


async def shows(viewer: Viewer, terminal: str, text: str) -> bool:
    """Return whether a terminal shows a text."""
    return text in await viewer.text(terminal)


def kept(service: Process, terminal: str, run: int = 1) -> tuple[int, bytes]:
    """Return how many bytes a terminal wrote, and the last of them."""
    service.stop()
    ring = Ring(service.folder / f"{terminal}.ring", run)
    try:
        found = ring.since(max(0, ring.count - KEPT))
        assert found is not None
        return ring.count, found
    finally:
        ring.close()


async def test_killed_under_a_flood_it_loses_and_doubles_nothing(nats_url: str, redis_url: str) -> None:
    assert await killed_under_a_flood(nats_url, redis_url) >= 3, "the kills came too late"


async def killed_under_a_flood(nats_url: str, redis_url: str, turn: int = 0) -> int:
    """Kill the service under a flood, and check that each number is there once; return how often it was killed."""
    with process(nats_url, redis_url) as service:
        async with viewing(nats_url) as viewer:
            bash = (await viewer.start("sh")).id
            prompt = await eventually(lambda: viewer.text(bash))
            await viewer.send(bash, f"seq 1 {NUMBERS}; echo the-end")
            text = await kill_while(service, viewer, bash, lambda text: "\nthe-end" in text, turn)
            kills = service.kills
            assert text.splitlines()[-4:] == [str(NUMBERS - 1), str(NUMBERS), "the-end", prompt.splitlines()[-1]]
        _, written = kept(service, bash)
        # The shell's prompt at the end is its own; before it every number stands once, in order.
        numbers = written[written.index(b"\n") + 1 : written.rindex(b"the-end")].split(b"\r\n")
        first = int(numbers[0])
        assert numbers == [*(str(number).encode() for number in range(first, NUMBERS + 1)), b""]
    return kills


async def test_killed_in_a_coding_session_the_screen_is_exact(nats_url: str, redis_url: str, tmp_path: Path) -> None:
    await killed_in_a_coding_session(nats_url, redis_url, tmp_path)


async def killed_in_a_coding_session(nats_url: str, redis_url: str, tmp_path: Path, turn: int = 0) -> int:
    """Kill the service while a program draws in place, and check its screen; return how often it was killed."""
    script = tmp_path / "session.py"
    script.write_text(SESSION)
    with process(nats_url, redis_url) as service:
        async with viewing(nats_url) as viewer:
            bash = (await viewer.start()).id
            waits = asked.Wait(by=BY, terminal=bash, until="idle", timeout_s=30)
            assert (await viewer.ask(waits)).met
            await viewer.send(bash, f"cd {tmp_path}")  # a line of its own: of a line that wraps a keyframe forgets that it is one
            assert (await viewer.ask(waits)).met
            await viewer.send(bash, f"{sys.executable} {script.name}")
            text = await kill_while(service, viewer, bash, lambda text: "\nfinished" in text, turn)
            kills = service.kills
            assert (await viewer.ask(waits)).met
            card = (await viewer.ask(asked.ListTerminals(by=BY))).terminals[0]
            assert (card.title, card.state.phase) == ("coding", "done")
            attached = await viewer.ask(asked.Attach(by=BY, terminal=bash))
        count, written = kept(service, bash)
        assert len(written) == count, "all of it is still there"
        assert written.count(b"Thinking") == 60 * 40
        whole, other = Screen(120, 40, lambda _: None), Screen(120, 40, lambda _: None)
        whole.feed(written)
        other.feed(attached.snapshot)
        assert (other.lines(), other.cursor, other.modes) == (whole.lines(), whole.cursor, whole.modes)
        assert "\n".join(whole.rows()).startswith(text[:200])
        whole.close()
        other.close()
    return kills


async def test_killed_while_answers_wait_for_a_program_it_leaves_the_shell_usable(nats_url: str, redis_url: str) -> None:
    with process(nats_url, redis_url) as service:
        async with viewing(nats_url) as viewer:
            bash = (await viewer.start()).id
            waits = asked.Wait(by=BY, terminal=bash, until="idle", timeout_s=30)
            assert (await viewer.ask(waits)).met
            prompt = (await viewer.text(bash)).splitlines()[-1]
            asking = r"stty -icanon -echo; for i in $(seq 20000); do printf '\e[6n'; done; printf '\r\nall asked'; sleep 1000"
            await viewer.send(bash, f"bash -c {shlex.quote(asking)}; stty sane; echo")
            await eventually(lambda: shows(viewer, bash, "\nall asked"))
            service.stop()
            service.start()
            await viewer.ask(asked.SendSignal(by=BY, terminal=bash, signal="TERM"))
            assert (await viewer.ask(waits)).met

            async def clear() -> bool:  # what the kernel held for the program was read as a line
                await viewer.ask(asked.SendKey(by=BY, terminal=bash, key="ctrl-c"))
                return (await viewer.text(bash)).splitlines()[-1] == prompt

            await eventually(clear)
            answered = asked.Wait(by=BY, terminal=bash, until="text", text="it is 42", timeout_s=2)

            async def answers() -> bool:  # the shell may still drop a line for the last Ctrl-C
                await viewer.send(bash, "echo it is $((6 * 7))")
                return (await viewer.ask(answered)).met

            await eventually(answers)


async def test_without_nats_and_without_valkey_programs_run_on(
    own_nats: Callable[[], NatsServer], own_valkey: Callable[[], ValkeyServer]
) -> None:
    bus, store = own_nats(), own_valkey()
    with process(bus.url, store.url) as service:
        async with viewing(bus.url) as viewer:
            bash = (await viewer.start("sh")).id
            await viewer.send(bash, "for i in 1 2 3 4 5 6 7 8; do echo line-$i; sleep 0.2; done")
            store.kill()
            bus.kill()
            bus.start()

            async def shows_all() -> bool:
                return "\nline-8" in await viewer.text(bash)

            await eventually(shows_all)
            store.start()
            pid = (await viewer.ask(asked.ListTerminals(by=BY))).terminals[0].pid
            service.stop()
            service.start()
            assert await shows_all()
            assert (await viewer.ask(asked.ListTerminals(by=BY))).terminals[0].pid == pid

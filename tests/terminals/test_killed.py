"""The service killed, NATS killed, Valkey killed: programs run on, no byte is lost or doubled, and the screens are back."""

from __future__ import annotations

import asyncio
import re
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
COUNTING: Final = "n=0; until [ -e {stop} -a $n -ge {numbers} ]; do seq $((n+1)) $((n+100000)); n=$((n+100000)); done; echo the-end"
"""Counts on until it is stopped, so that all kills come while it writes."""

KEPT: Final = 1_500_000
"""Bytes that are compared: those that are surely still in the ring."""

SESSION: Final = """
import itertools, os, sys, time
frames = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
out = sys.stdout
out.write("\\x1b[?2004h\\x1b[?25l\\x1b]0;coding\\x07\\x1b]7501;state=working\\x07")
for turn in itertools.count():
    if turn >= 60 and os.path.exists("stop"):
        break
    for step in range(40):
        out.write(f"\\r\\x1b[2K\\x1b[38;5;{step % 200}m{frames[step % 10]}\\x1b[0m Thinking {turn}.{step} ")
        out.write(f"\\x1b[1m✻\\x1b[22m 你好 {'=' * (step * 2 % 60)}")
        out.flush()
        time.sleep(0.002)
    out.write(f"\\r\\n\\x1b[32m+ line {turn}\\x1b[0m\\r\\n\\x1b[31m- gone {turn}\\x1b[0m\\r\\n")
out.write(f"\\x1b[?25h\\x1b]7501;state=done\\x07\\r\\nfinished {turn}\\r\\n")
out.flush()
"""
"""A session as coding agents write one: spinners, colours, wide characters, titles and reports, drawn in place."""


async def kill_while(service: Process, viewer: Viewer, terminal: str, end: str, stop: Path, turn: int) -> str:
    """Kill the service ten times, each time after output came from it; stop the program then, and return the screen with its end."""
    chance = dice(f"kills of the terminals service {turn}")
    await viewer.follow(terminal)
    while service.kills < KILLS:
        frames = viewer.frames

        def goes_on(frames: int = frames) -> bool:
            return viewer.frames > frames

        await eventually(goes_on)
        await asyncio.sleep(chance.random() * 0.1)  # no wait for anything: the moment of the kill is drawn
        service.stop()
        service.start()
        card = await viewer.ask(asked.ListTerminals(by=BY))
        assert [one.ended for one in card.terminals] == [""]
        assert end not in await viewer.text(terminal), "it writes on"
    stop.touch()  # noqa: ASYNC240 - a moment, in a test

    async def shows_the_end() -> str:
        text = await viewer.text(terminal)
        return text if end in text else ""

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


async def test_killed_under_a_flood_it_loses_and_doubles_nothing(nats_url: str, redis_url: str, tmp_path: Path) -> None:
    await killed_under_a_flood(nats_url, redis_url, tmp_path)


async def killed_under_a_flood(nats_url: str, redis_url: str, folder: Path, turn: int = 0) -> int:
    """Kill the service under a flood, and check that each number is there once; return how often it was killed."""
    stop = folder / f"stop-{turn}"
    command = COUNTING.format(stop=stop, numbers=NUMBERS)
    with process(nats_url, redis_url) as service:
        async with viewing(nats_url) as viewer:
            sh = (await viewer.start("sh")).id
            prompt = await eventually(lambda: viewer.text(sh))
            begun = (await viewer.ask(asked.Attach(by=BY, terminal=sh))).offset + len(command) + len("\r\n")
            await viewer.send(sh, command)
            text = await kill_while(service, viewer, sh, "\nthe-end", stop, turn)
            *_, last, end, after = text.splitlines()
            assert (int(last) >= NUMBERS, end, after) == (True, "the-end", prompt.splitlines()[-1])
        check_numbers(service, sh, begun, int(last))
        return service.kills


def check_numbers(service: Process, terminal: str, begun: int, last: int) -> None:
    """Check that a terminal wrote each number up to the last one once, from byte `begun` on. Kills the service."""
    count, written = kept(service, terminal)
    at = written.index(b"\n") + 1
    numbers = written[at : written.rindex(b"the-end")].split(b"\r\n")
    first = int(numbers[0])
    assert numbers == [*(str(number).encode() for number in range(first, last + 1)), b""]
    before = sum(len(str(number)) + len("\r\n") for number in range(1, first))
    assert count - len(written) + at == begun + before, "what is no longer kept was as long as it must be"


async def test_killed_in_a_coding_session_the_screen_is_exact(nats_url: str, redis_url: str, tmp_path: Path) -> None:
    await killed_in_a_coding_session(nats_url, redis_url, tmp_path)


async def killed_in_a_coding_session(nats_url: str, redis_url: str, folder: Path, turn: int = 0) -> int:
    """Kill the service while a program draws in place, and check its screen; return how often it was killed."""
    script, stop = folder / "session.py", folder / "stop"
    script.write_text(SESSION)
    stop.unlink(missing_ok=True)
    with process(nats_url, redis_url) as service:
        async with viewing(nats_url) as viewer:
            bash = (await viewer.start()).id
            waits = asked.Wait(by=BY, terminal=bash, until="idle", timeout_s=30)
            assert (await viewer.ask(waits)).met
            await viewer.send(bash, f"cd {folder}")  # a line of its own: of a line that wraps a keyframe forgets that it is one
            assert (await viewer.ask(waits)).met
            await viewer.send(bash, f"{sys.executable} {script.name}")
            text = await kill_while(service, viewer, bash, "\nfinished", stop, turn)
            turns = int(text[text.index("\nfinished") :].split()[1])
            assert (await viewer.ask(waits)).met
            card = (await viewer.ask(asked.ListTerminals(by=BY))).terminals[0]
            assert (card.title, card.state.phase) == ("coding", "done")
            attached = await viewer.ask(asked.Attach(by=BY, terminal=bash))
        count, written = kept(service, bash)
        assert len(written) == count, "all of it is still there"
        steps = [f" Thinking {number}.{step} ".encode() for number in range(turns) for step in range(40)]
        assert re.findall(rb" Thinking \d+\.\d+ ", written) == steps
        whole, other = Screen(120, 40, lambda _: None), Screen(120, 40, lambda _: None)
        whole.feed(written)
        other.feed(attached.snapshot)
        assert (other.lines(), other.cursor, other.modes) == (whole.lines(), whole.cursor, whole.modes)
        assert "\n".join(whole.rows()).startswith(text[:200])
        whole.close()
        other.close()
        return service.kills


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
    own_nats: Callable[[], NatsServer], own_valkey: Callable[[], ValkeyServer], tmp_path: Path
) -> None:
    bus, store, stop = own_nats(), own_valkey(), tmp_path / "stop"
    with process(bus.url, store.url) as service:
        async with viewing(bus.url) as viewer:
            sh = (await viewer.start("sh")).id
            prompt = await eventually(lambda: viewer.text(sh))
            command = COUNTING.format(stop=stop, numbers=NUMBERS)
            begun = (await viewer.ask(asked.Attach(by=BY, terminal=sh))).offset + len(command) + len("\r\n")
            await viewer.send(sh, command)
            for _ in range(3):
                store.kill()
                bus.kill()
                bus.start()
                shown = await viewer.text(sh)

                async def goes_on(shown: str = shown) -> bool:
                    return await viewer.text(sh) != shown

                await eventually(goes_on)
                store.start()
            pid = (await viewer.ask(asked.ListTerminals(by=BY))).terminals[0].pid
            service.stop()
            service.start()
            assert (await viewer.ask(asked.ListTerminals(by=BY))).terminals[0].pid == pid
            stop.touch()

            async def has_ended() -> bool:
                return "\nthe-end\n" in await viewer.text(sh)

            await eventually(has_ended)
            *_, last, _, after = (await viewer.text(sh)).splitlines()
            assert after == prompt.splitlines()[-1]
        check_numbers(service, sh, begun, int(last))

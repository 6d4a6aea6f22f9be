"""Past screens of terminals: the screen of any moment is drawn exactly, within bounds of time and size, also after kills and a close."""

from __future__ import annotations

import os
import random
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.draws import dice
from tests.eventually import eventually
from tests.terminals.fleets import BY, fleet, held_folder
from tests.terminals.serving import process, viewing
from voxbridge.services.terminals import tape as tapes
from voxbridge.services.terminals.screen import Screen
from voxbridge.services.terminals.tape import Limits, Tape, Tapes
from voxbridge.sessions import terminal_screens
from voxbridge.shared.config import Config
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.terminals import questions as asked
from voxbridge.shared.terminals.asciicast import Joined

LIFE = "work-1f2e3d-0"
HOUR_US = 3_600_000_000
KEPT = Limits(hours=24, size=100_000_000)
PIECES = ("$ ", "make\r\n", "é", "漢字", "\x1b[31mred\x1b[0m", "\x1b[2J\x1b[H", "", "\r\n" * 9, "\x1b[3;5H", "x" * 70)
"""Pieces of output; the empty one stands for a switch to the alternate screen, or back from it."""


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.us = 1_000 * HOUR_US

    def now_us(self) -> int:
        return self.us

    def pass_ms(self, ms: int) -> int:
        """Let time pass; return the time in ms."""
        self.us += ms * 1_000
        return self.us // 1_000


class Shows:
    """A terminal's screen, and what keeps it."""

    def __init__(self, folder: Path, limits: Limits = KEPT) -> None:
        self.clock = Clock()
        self.tapes = Tapes(folder, self.clock, limits)
        self.screen = Screen(60, 12, lambda _: None)
        self.opened = self.tapes.open(LIFE, lambda: self.screen)
        self.folder = folder / "screens" / LIFE

    @property
    def tape(self) -> Tape:
        assert self.opened is not None
        return self.opened

    def write(self, data: str | bytes) -> None:
        data = data.encode() if isinstance(data, str) else data
        self.screen.feed(data)
        self.tape.wrote(data)

    def pieces(self) -> list[Path]:
        return sorted(self.folder.iterdir()) if self.folder.is_dir() else []

    async def at(self, at_ms: int) -> list[str]:
        return (await self.tapes.shown(LIFE, at_ms)).text.split("\n")


@contextmanager
def shows(folder: Path, limits: Limits = KEPT) -> Iterator[Shows]:
    made = Shows(folder, limits)
    try:
        yield made
    finally:
        made.tapes.close(LIFE)
        made.screen.close()


def drawn(draws: random.Random, in_front: list[bool]) -> str:
    """Draw a piece of output."""
    piece = draws.choice(PIECES)
    if piece:
        return piece
    in_front[0] = not in_front[0]
    return "\x1b[?1049h" if in_front[0] else "\x1b[?1049l"


async def test_the_screen_of_any_moment_is_the_one_that_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tapes, "PIECE_BYTES", 4_000)
    draws = dice("the screen of any moment")
    with shows(tmp_path) as one:
        moments: list[tuple[int, list[str]]] = []
        in_front = [False]
        for _ in range(400):
            data = "".join(drawn(draws, in_front) for _ in range(draws.randrange(1, 6))).encode()
            cut = draws.randrange(len(data) + 1)  # also within a character, and within a sequence
            for part in (data[:cut], data[cut:]):
                if part:
                    one.write(part)
                    one.clock.pass_ms(draws.randrange(1, 50))
            if draws.random() < 0.05:
                columns, rows = draws.randrange(20, 90), draws.randrange(4, 20)
                one.screen.resize(columns, rows)
                one.tape.resized(columns, rows)
            moments.append((one.clock.pass_ms(5), one.screen.rows() or [""]))
            one.clock.pass_ms(1)
        assert len(one.pieces()) > 3
        for at_ms, rows_ in draws.sample(moments, 60):
            assert await one.at(at_ms) == rows_
        for path in one.pieces():
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
            first, *_, last = path.read_bytes().split(b"\n")
            header = msgspec.json.decode(first)
            assert (header["version"], last) == (3, b""), "it is an asciicast"


async def test_before_the_first_and_after_the_last_moment(tmp_path: Path) -> None:
    with shows(tmp_path) as one:
        begun = one.clock.pass_ms(0)
        one.clock.pass_ms(10)
        one.write("hello")
        shown = await one.tapes.shown(LIFE, one.clock.pass_ms(10_000))
        assert shown == asked.Shown(life=LIFE, at_ms=begun + 10, columns=60, rows=12, title="", text="hello")
        assert await one.at(begun + 9) == [""]
        with pytest.raises(VoxbridgeError, match="Nothing is kept of that time, only of later ones") as caught:
            await one.at(begun - 1)
        assert caught.value.field == "at_ms"
        with pytest.raises(VoxbridgeError, match=r"Nothing of it is kept\. What terminals show is kept for 24 h") as caught:
            await one.tapes.shown("other-1f2e3d-0", begun)
        assert caught.value.field == "life"


async def test_of_a_flood_the_screen_of_each_second_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tapes, "_SECOND_US", 50_000)
    with shows(tmp_path) as one:
        for number in range(2_000):
            one.write(f"line {number} {'x' * 300}\r\n")
            one.clock.us += 10

        async def shown() -> Any:
            one.clock.pass_ms(1)
            found = await one.at(one.clock.us // 1_000)
            return found if found == one.screen.rows() else None

        assert await eventually(shown)
        assert sum(path.stat().st_size for path in one.pieces()) < 2 * tapes.RATE
        one.clock.pass_ms(60)
        one.write("\r\nafter it")
        assert (await one.at(one.clock.us // 1_000))[-1] == "after it"


async def test_what_is_too_old_or_too_much_goes_and_the_piece_that_is_written_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tapes, "PIECE_BYTES", 2_000)
    with shows(tmp_path, Limits(hours=1, size=9_000)) as one:
        for number in range(40):
            one.write(f"line {number} {'x' * 200}\r\n")
            one.clock.pass_ms(1_000)
        one.tape.flush()
        before = one.pieces()
        size = sum(path.stat().st_size for path in before)
        one.tapes.sweep()
        left = one.pieces()
        assert left == before[-len(left) :]
        assert sum(path.stat().st_size for path in left[:-1]) <= 9_000 < size
        one.clock.us += 2 * HOUR_US
        one.tapes.sweep()
        assert one.pieces() == left[-1:]
        one.tapes.close(LIFE)
        os.utime(left[-1], (one.clock.us / 1e6, one.clock.us / 1e6))
        one.tapes.sweep()
        assert one.pieces() == left[-1:], "its last hour begins with its end"
        one.clock.us += 2 * HOUR_US
        one.tapes.sweep()
        assert not one.folder.exists()


async def test_with_no_hours_nothing_is_kept_and_what_was_kept_goes(tmp_path: Path) -> None:
    with shows(tmp_path) as one:
        one.write("hello")
    with shows(tmp_path, Limits(hours=0, size=1)) as one:
        assert one.opened is None
        one.clock.us = time.time_ns() // 1_000 + 1_000_000
        one.tapes.sweep()
        assert not one.folder.exists()
        with pytest.raises(VoxbridgeError, match="VOXBRIDGE_TERMINAL_SCREENS_HOURS is 0"):
            await one.at(one.clock.us // 1_000)


async def test_a_full_disk_ends_a_piece_and_another_one_is_tried_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with shows(tmp_path) as one:
        one.tape.flush()

        def full(*_: Any, **__: Any) -> Any:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(Path, "open", full)
            one.tape.begin()
            one.write("lost")
            one.clock.pass_ms(int(tapes.AGAIN_S * 1_000) - 1)
            one.write("lost")
        said = "what terminals show is not kept for 60 s: [Errno 28] No space left on device"
        assert [record.message for record in caplog.records] == [said]
        one.clock.pass_ms(1)
        one.write(" and found")
        assert await one.at(one.clock.us // 1_000) == ["lostlost and found"]


async def test_a_piece_that_the_disk_takes_in_part_is_ended_and_what_comes_later_is_in_another_one(tmp_path: Path) -> None:
    with shows(tmp_path) as one:
        one.clock.pass_ms(10)
        one.write("hello")
        one.tape.flush()
        file = one.tape._file

        class Full:
            def write(self, data: bytes) -> int:
                assert file is not None
                return file.write(bytes(data)[: len(data) // 2])

            def close(self) -> None:
                assert file is not None
                file.close()

        one.tape._file = Full()  # type: ignore[assignment]
        one.clock.pass_ms(10)
        one.write(" lost")
        one.tape.flush()
        assert await one.at(one.clock.us // 1_000) == ["hello"]
        one.write(" too")
        one.clock.pass_ms(int(tapes.AGAIN_S * 1_000))
        one.write("!")
        assert await one.at(one.clock.us // 1_000) == ["hello lost too!"]


async def test_pieces_that_begin_in_one_moment_have_names_of_their_own(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with shows(tmp_path) as one:
        for _ in range(3):
            one.tape.begin()
        assert (len(one.pieces()), caplog.records) == (4, [])


async def test_a_line_that_was_not_written_to_its_end_is_left_out(tmp_path: Path) -> None:
    with shows(tmp_path) as one:
        one.clock.pass_ms(10)
        one.write("hello")
        one.tape.flush()
        (path,) = one.pieces()
        whole = path.read_bytes()
        path.write_bytes(whole + b'[0.1,"o","wor')
        assert await one.at(one.clock.us // 1_000 + 500) == ["hello"]
        path.write_bytes(b"no asciicast\n")
        with pytest.raises(VoxbridgeError, match="What is kept of that time cannot be read"):
            await one.at(one.clock.us // 1_000)


async def recording(one: Shows) -> list[Any]:
    """Return the lines of all that is kept, read in parts and put together."""
    whole, made = Joined(), b""
    part = await one.tapes.read(LIFE, 0, 0)
    begun = 0
    while True:
        if part.begun_ms != begun:
            begun = part.begun_ms
            whole.begin(begun)
        made += whole.feed(part.data)
        if not part.more:
            return [msgspec.json.decode(line) for line in made.splitlines()]
        part = await one.tapes.read(LIFE, part.next_ms, part.next_offset)


async def test_a_recording_of_several_pieces_ends_with_the_screen_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tapes, "PIECE_BYTES", 4_000)
    monkeypatch.setattr(tapes, "PART_BYTES", 1_000)
    draws = dice("a recording of several pieces")
    with shows(tmp_path) as one:
        begun_ms, in_front = one.clock.us // 1_000, [False]
        for number in range(300):
            one.write("".join(drawn(draws, in_front) for _ in range(draws.randrange(1, 6))))
            ends_ms = one.clock.us // 1_000
            one.clock.pass_ms(draws.randrange(1, 50))
            if number % 60 == 59:
                one.screen.resize(50 + draws.randrange(40), 10 + draws.randrange(10))
                one.tape.resized(*one.screen.size)
        one.write("the end")
        ends_ms = one.clock.us // 1_000
        assert len(one.pieces()) > 3
        header, *events = await recording(one)
        again = Screen(header["term"]["cols"], header["term"]["rows"], lambda _: None)
        for _, kind, text in events:
            if kind == "r":
                columns, _, rows = text.partition("x")
                again.resize(int(columns), int(rows))
            else:
                again.feed(text.encode())
        assert (again.size, again.rows()) == (one.screen.size, one.screen.rows())
        assert round(1_000 * sum(interval for interval, _, _ in events)) == ends_ms - begun_ms
        again.close()


async def test_a_piece_that_was_removed_while_it_is_read_is_passed_over(tmp_path: Path) -> None:
    with shows(tmp_path) as one:
        one.clock.pass_ms(10)
        one.tape.begin()
        first, second = one.pieces()
        first.unlink()
        part = await one.tapes.read(LIFE, int(first.stem), 100)
        assert (part.begun_ms, part.data, part.more) == (int(second.stem), second.read_bytes(), False)
        with pytest.raises(VoxbridgeError, match="Nothing of it is kept"):
            await one.tapes.read("another-life", 0, 0)


async def test_a_terminal_that_lives_is_not_forgotten_and_a_closed_one_is() -> None:
    with held_folder() as folder:
        async with fleet(folder) as here:
            bash = await here.start()
            life = (await here.card(bash)).life
            with pytest.raises(VoxbridgeError, match="The terminal lives"):
                await here.ask(asked.Forget(by=BY, life=life))
            await here.ask(asked.Close(by=BY, terminal=bash))
            now = time.time_ns() // 1_000_000
            assert (await here.ask(asked.Past(by=BY, life=life, at_ms=now))).text
            await here.ask(asked.Forget(by=BY, life=life))
            with pytest.raises(VoxbridgeError, match="Nothing of it is kept"):
                await here.ask(asked.Past(by=BY, life=life, at_ms=now))


async def test_over_kills_of_the_service_each_moment_is_there_until_it_is_erased(nats_url: str, redis_url: str) -> None:
    with process(nats_url, redis_url) as service:
        async with viewing(nats_url) as viewer:
            card = await viewer.start()
            idle = asked.Wait(by=BY, terminal=card.id, until="idle", timeout_s=15)
            moments: list[tuple[int, str]] = []
            for number in range(4):
                assert (await viewer.ask(idle)).met
                await viewer.send(card.id, f"clear; echo number {number}")
                shown = asked.Wait(by=BY, terminal=card.id, until="text", text=f"number {number}")
                assert (await viewer.ask(shown)).met
                assert (await viewer.ask(idle)).met
                moments.append((time.time_ns() // 1_000_000, f"number {number}"))
                await viewer.ask(asked.Past(by=BY, life=card.life, at_ms=moments[-1][0]))  # so that nothing of it waits to be written
                if number < 3:
                    service.stop()
                    service.start()
            await viewer.ask(asked.Close(by=BY, terminal=card.id))
            for at_ms, text in moments:
                assert text in (await viewer.ask(asked.Past(by=BY, life=card.life, at_ms=at_ms))).text.split("\n")
            folder = service.folder / "screens" / card.life
            assert folder.is_dir()
            assert await terminal_screens.forget(viewer.nc, Config(), card.life, by=BY) == ""
            assert not folder.exists()

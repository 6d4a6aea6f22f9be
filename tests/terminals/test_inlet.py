"""The way into a program: order, the bound, and answers that nobody waits for any more."""

from __future__ import annotations

import asyncio
import os
import termios
import tty
from collections.abc import AsyncIterator
from typing import Final

import pytest

from tests.eventually import eventually
from voxbridge.services.terminals.inlet import QUEUE_LIMIT, Inlet

ANSWER: Final = b"\x1b[40;61R"
MANY: Final = 25_000
"""Answers that are more than the kernel holds."""


class Program:
    """The program's end of a terminal, raw, which reads when the test says so, and the inlet at the other."""

    def __init__(self) -> None:
        self.master, self.slave = os.openpty()
        tty.setraw(self.slave)
        os.set_blocking(self.master, False)
        os.set_blocking(self.slave, False)
        self.inlet = Inlet()
        self.inlet.open(self.master)
        self.read = bytearray()

    async def reads(self, until: bytes) -> None:
        """Read until this came last."""

        async def came() -> bool:
            try:
                self.read += os.read(self.slave, 65_536)
            except BlockingIOError:
                await asyncio.sleep(0)
            return self.read.endswith(until)

        await eventually(came)


@pytest.fixture
async def program() -> AsyncIterator[Program]:
    program = Program()
    yield program
    program.inlet.close()
    os.close(program.master)
    os.close(program.slave)


async def test_what_does_not_fit_waits_and_comes_in_order(program: Program) -> None:
    assert program.inlet.write(ANSWER * MANY, answer=True)
    assert program.inlet.write(b"typed")
    await program.reads(b"typed")
    assert bytes(program.read) == ANSWER * MANY + b"typed"


async def test_answers_that_were_not_read_are_dropped_with_those_that_the_kernel_holds(program: Program) -> None:
    assert program.inlet.write(ANSWER * MANY, answer=True)
    assert program.inlet.write(b"typed")
    assert program.inlet.write(ANSWER, answer=True)
    program.inlet.drop_answers()
    assert program.inlet.write(b" more")
    await program.reads(b"typed more")
    assert bytes(program.read) == b"typed more"


async def test_a_typed_text_that_was_written_in_part_is_not_cut(program: Program) -> None:
    text = b"x" * 100_000  # more than the kernel holds
    assert program.inlet.write(text)
    assert program.inlet.write(ANSWER, answer=True)
    program.inlet.drop_answers()
    assert program.inlet.write(b"!")
    await program.reads(b"!")
    assert bytes(program.read) == text + b"!"


async def test_where_the_kernel_keeps_what_it_holds_no_answer_is_cut(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise termios.error

    monkeypatch.setattr(termios, "tcflush", refuse)
    assert program.inlet.write(ANSWER * MANY, answer=True)
    assert program.inlet.write(b"typed")
    program.inlet.drop_answers()
    await program.reads(b"typed")
    answers = bytes(program.read).removesuffix(b"typed")
    assert 0 < len(answers) < len(ANSWER) * MANY
    assert answers == ANSWER * (len(answers) // len(ANSWER))


@pytest.mark.parametrize(("more", "taken"), [(0, True), (1, False)])
async def test_so_many_bytes_wait_and_no_more(program: Program, more: int, taken: bool) -> None:
    assert program.inlet.write(b"x" * (QUEUE_LIMIT + more)) is taken


async def test_without_a_descriptor_nothing_is_taken(program: Program) -> None:
    program.inlet.close()
    assert not program.inlet.write(b"x")

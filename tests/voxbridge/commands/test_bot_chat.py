"""`voxbridge bot-chat`: its refusals, and where it writes."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from voxbridge.services.terminals.core.marks import of_sequence
from voxbridge.shared.terminals.peers import NAME_LIMIT, SECRET, TEXT_LIMIT, Message


def run(*arguments: str, secret: str = "secret") -> subprocess.CompletedProcess[str]:
    env = {**os.environ, SECRET: secret}
    return subprocess.run(
        [sys.executable, "-m", "voxbridge", "bot-chat", *arguments], env=env, capture_output=True, text=True, check=False,
        stdin=subprocess.DEVNULL, start_new_session=True, timeout=60,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "secret", "said"),
    [
        (("hello",), "", "This is not a terminal of Voxbridge"),
        (("",), "secret", "There is no message"),
        (("x" * (TEXT_LIMIT + 1),), "secret", f"{TEXT_LIMIT} are the most"),
        (("hello", "--from", "n" * (NAME_LIMIT + 1)), "secret", f"{NAME_LIMIT} are the most"),
        (("a\x1bb",), "secret", "characters that cannot be shown"),
    ],
)
def test_a_message_that_cannot_be_sent_is_refused_with_what_to_do(arguments: tuple[str, ...], secret: str, said: str) -> None:
    done = run(*arguments, secret=secret)
    assert done.returncode != 0
    assert said in done.stderr


def test_a_program_without_a_terminal_writes_into_that_of_a_parent() -> None:
    ours, theirs = pty.openpty()
    command = f"{sys.executable} -m voxbridge bot-chat 'The review is done.' --from reviewer > /dev/null"
    try:
        shell = subprocess.run(
            ["bash", "-c", f"setsid --wait {command} < /dev/null; true"], stdin=theirs, env={**os.environ, SECRET: "secret"},
            stderr=subprocess.PIPE, text=True, check=False, start_new_session=True, timeout=60,
        )  # fmt: skip
        assert shell.returncode == 0, shell.stderr
        sequence = os.read(ours, 4_096)
    finally:
        os.close(theirs)
        os.close(ours)
    found = of_sequence(sequence.removeprefix(b"\x1b]").removesuffix(b"\x1b\\"), "", "secret")
    assert isinstance(found, Message)
    assert (found.name, found.text) == ("reviewer", "The review is done.")

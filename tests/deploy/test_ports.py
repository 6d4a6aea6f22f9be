"""The ports that tests give to their servers."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

from tests import ports

REPOSITORY = Path(__file__).parents[2]
SAME = "import os; os.getpid = lambda: {pid}; from tests.ports import free_port; print(*(free_port() for _ in range(40))); input()"


def test_two_processes_are_never_given_the_same_port() -> None:
    command = [sys.executable, "-c", SAME.format(pid=7)]
    with (
        subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first,
        subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as second,
    ):
        assert first.stdout is not None
        assert second.stdout is not None
        given = [*first.stdout.readline().split(), *second.stdout.readline().split()]
        first.communicate("\n")
        second.communicate("\n")
    assert len(given) == len(set(given)) == 80


def test_a_port_that_something_listens_on_is_passed_over() -> None:
    port = ports.free_port()
    following = ports._FIRST + (port - ports._FIRST + 1) % (ports._LAST - ports._FIRST)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", following))
        assert ports.free_port() not in (port, following)

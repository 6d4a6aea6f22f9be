"""Monitoring requests to a nats-server over a plain socket."""

from __future__ import annotations

import socket
import time

import pytest

from voxbridge.shared.embedded import nats_monitor
from voxbridge.shared.embedded.nats_server import SYSTEM_USER, NatsServer
from voxbridge.shared.embedded.servers import LOOPBACK


def test_a_healthy_server_says_so_and_what_its_store_holds(nats_server: NatsServer) -> None:
    password = nats_server.system_password()
    health = nats_monitor.ask(LOOPBACK, nats_server.port, SYSTEM_USER, password, nats_monitor.HEALTH, timeout_s=5)
    assert (health["status"], health["status_code"]) == ("ok", 200)
    store = nats_monitor.ask(LOOPBACK, nats_server.port, SYSTEM_USER, password, nats_monitor.JETSTREAM, timeout_s=5)
    assert store["config"]["store_dir"].startswith(str(nats_server.folder))
    assert nats_server.ailment() == ""


def test_who_has_the_wrong_password_is_told_so(nats_server: NatsServer) -> None:
    with pytest.raises(ConnectionError, match="Authorization Violation"):
        nats_monitor.ask(LOOPBACK, nats_server.port, SYSTEM_USER, "wrong", nats_monitor.HEALTH, timeout_s=5)


def test_a_server_that_says_nothing_costs_its_time_out() -> None:
    with socket.socket() as silent:
        silent.bind((LOOPBACK, 0))
        silent.listen()
        begun = time.monotonic()
        with pytest.raises(TimeoutError):
            nats_monitor.ask(LOOPBACK, silent.getsockname()[1], SYSTEM_USER, "any", nats_monitor.HEALTH, timeout_s=0.2)
        assert time.monotonic() - begun < 5


def test_an_answer_may_come_in_pieces_and_must_be_json() -> None:
    whole = b'INFO {}\r\nMSG _INBOX.health 1 24\r\n{"data":{"status":"ok"}}\r\n'
    assert all(nats_monitor._payload(whole[:size]) is None for size in range(len(whole) - 2))
    assert nats_monitor._payload(whole) == {"status": "ok"}
    with pytest.raises(ConnectionError, match="cannot be read"):
        nats_monitor._payload(b"INFO {}\r\nMSG _INBOX.health 1 3\r\n{{{\r\n")

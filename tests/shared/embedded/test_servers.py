from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import nats
import psutil
import pytest
import redis

from tests.ports import free_port
from voxbridge.shared.bus import subjects
from voxbridge.shared.bus.accounts import ADMIN
from voxbridge.shared.bus.connection import close_nats, connect_nats, denied
from voxbridge.shared.bus.permissions import VALKEY_KEYS
from voxbridge.shared.bus.stream_admin import may_make
from voxbridge.shared.embedded import nats_monitor
from voxbridge.shared.embedded.nats_configuration import adopt_store
from voxbridge.shared.embedded.nats_server import GOGC, GOMEMLIMIT, SYSTEM_USER, NatsServer
from voxbridge.shared.embedded.servers import LOOPBACK, StartError
from voxbridge.shared.embedded.valkey_server import ValkeyServer
from voxbridge.shared.ids import new_session_id
from voxbridge.shared.log import streams


async def test_an_acknowledged_message_is_there_after_a_kill_and_a_start_on_the_same_store(own_nats: Callable[[], NatsServer]) -> None:
    server = own_nats()
    port = server.port
    connection = await nats.connect(server.url)
    await connection.jetstream().add_stream(name="S", subjects=["s.>"])
    await connection.jetstream().publish("s.1", b"kept")
    await connection.close()
    server.kill()
    assert not server.answers()
    server.start()
    assert server.port == port
    connection = await nats.connect(server.url)
    assert (await connection.jetstream().get_msg("S", 1)).data == b"kept"
    await connection.close()


def test_nats_refuses_a_client_without_the_password(nats_server: NatsServer) -> None:
    with socket.create_connection(("127.0.0.1", nats_server.port), 5) as stranger, stranger.makefile("rb") as said:
        assert said.readline().startswith(b"INFO ")
        stranger.sendall(b"CONNECT {}\r\nPING\r\n")
        assert said.readline() == b"-ERR 'Authorization Violation'\r\n"
        assert said.read() == b""


def test_valkey_keeps_its_keys_over_a_kill_and_asks_for_a_password(own_valkey: Callable[[], ValkeyServer]) -> None:
    server = own_valkey()
    with redis.Redis.from_url(server.url) as client:
        client.set("key", "kept")
    server.kill()
    server.start()
    with redis.Redis.from_url(server.url) as client:
        assert client.get("key") == b"kept"
    with redis.Redis(unix_socket_path=str(server.socket)) as stranger, pytest.raises(redis.AuthenticationError):
        stranger.ping()


@pytest.mark.parametrize("kind", [NatsServer, ValkeyServer])
def test_files_with_the_password_are_for_their_owner_only(kind: type[NatsServer | ValkeyServer], tmp_path: Path) -> None:
    with kind(tmp_path / "data") as server:
        assert (tmp_path / "data" / "password").stat().st_mode & 0o077 == 0
        assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "data").glob("*.conf"))
        assert (tmp_path / "data").stat().st_mode & 0o077 == 0
        assert (tmp_path / "data" / "password").read_text() in server.url


@pytest.mark.parametrize("kind", [NatsServer, ValkeyServer])
def test_stop_is_quick_and_leaves_no_process(kind: type[NatsServer | ValkeyServer], tmp_path: Path) -> None:
    server = kind(tmp_path / "data").start()
    pid = server.pid
    assert pid is not None
    server.stop()
    assert not psutil.pid_exists(pid)
    assert server.pid is None
    server.stop()


@pytest.mark.parametrize("kind", [NatsServer, ValkeyServer])
def test_one_folder_takes_one_server_until_that_one_is_gone(kind: type[NatsServer | ValkeyServer], tmp_path: Path) -> None:
    first = kind(tmp_path / "data").start()
    url = first.url
    with pytest.raises(StartError, match=f"Another {first.name} uses {tmp_path / 'data'}"):
        kind(tmp_path / "data").start()
    assert first.answers()
    assert first.url == url
    first.kill()
    with kind(tmp_path / "data") as second:
        assert second.answers()


def test_a_taken_port_is_said_in_one_line(tmp_path: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        with pytest.raises(StartError) as caught:
            NatsServer(tmp_path / "nats", port=port).start()
    assert f"Port {port} is taken" in caught.value.message
    assert "\n" not in caught.value.message


@pytest.mark.parametrize("kind", [NatsServer, ValkeyServer])
def test_a_folder_that_cannot_be_made_is_said_in_one_line(kind: type[NatsServer | ValkeyServer], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StartError) as caught:
        kind(tmp_path / "file" / "data").start()
    assert "cannot be written: not a directory" in caught.value.message
    assert caught.value.field == "VOXBRIDGE_DATA_DIR"
    assert "\n" not in caught.value.message


@pytest.mark.parametrize("kind", [NatsServer, ValkeyServer])
def test_a_disk_without_room_is_said_before_anything_is_started(kind: type[NatsServer | ValkeyServer], tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"is full: .* MiB are free") as caught:
        kind(tmp_path / "data", min_free_bytes=1 << 60).start()
    assert caught.value.limit == 1 << 60


def test_a_missing_program_is_said_with_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sysconfig; sysconfig.get_path = lambda name: '/nowhere'\n"
        "from pathlib import Path; from voxbridge.shared.embedded.nats_server import NatsServer\n"
        "from voxbridge.shared.embedded.servers import StartError\n"
        f"try: NatsServer(Path({str(tmp_path)!r})).start()\n"
        "except StartError as error: print(error.message)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={"PATH": "/nowhere"}, check=True)
    assert done.stdout == "nats-server is not installed. Run `make setup` in a checkout, or pip install 'voxbridge[all]'.\n"


def test_a_server_that_does_not_start_is_quoted(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"nats-server ended with code 1 as it started: .*sync_interval") as caught:
        NatsServer(tmp_path / "nats", sync_interval="sometimes").start()
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(("said", "seconds"), [("2m", 120), ("1m", 60), ("30s", 30), ("250ms", 0.25)])
def test_a_server_syncs_as_often_as_was_said(tmp_path: Path, said: str, seconds: float) -> None:
    with NatsServer(tmp_path / "nats", sync_interval=said, min_free_bytes=0) as server:
        answer = nats_monitor.ask(LOOPBACK, server.port, SYSTEM_USER, server.system_password(), nats_monitor.JETSTREAM, timeout_s=5)
    assert answer["config"]["sync_interval"] == seconds * 1e9


def test_a_server_bounds_its_garbage_unless_told_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GOGC", "GOMEMLIMIT"):
        monkeypatch.delenv(name, raising=False)
    with NatsServer(tmp_path / "nats", min_free_bytes=0) as server:
        told = psutil.Process(server.pid).environ()
    assert (told["GOGC"], told["GOMEMLIMIT"]) == (GOGC, GOMEMLIMIT)
    monkeypatch.setenv("GOMEMLIMIT", "8GiB")
    with server:
        assert psutil.Process(server.pid).environ()["GOMEMLIMIT"] == "8GiB"


def test_a_long_folder_gets_a_short_socket(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    with ValkeyServer(deep) as server, redis.Redis.from_url(server.url) as client:
        assert client.ping()
        assert len(str(server.socket)) < 108


def test_a_folder_with_quotes_and_blanks_works(tmp_path: Path) -> None:
    odd = tmp_path / 'a "b" \\ ü'
    with NatsServer(odd / "n") as bus, ValkeyServer(odd / "v") as store:
        assert bus.answers()
        assert store.answers()


def test_servers_die_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; import sys, time\n"
        "from voxbridge.shared.embedded.nats_server import NatsServer\n"
        "from voxbridge.shared.embedded.valkey_server import ValkeyServer\n"
        f"n = NatsServer(Path({str(tmp_path / 'n')!r})).start(); v = ValkeyServer(Path({str(tmp_path / 'v')!r})).start()\n"
        "print(n.pid, v.pid, flush=True); sys.stdin.read()"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    children = [psutil.Process(int(pid)) for pid in parent.stdout.readline().split()]
    assert len(children) == 2
    os.kill(parent.pid, signal.SIGKILL)
    parent.communicate()
    _, alive = psutil.wait_procs(children, timeout=5)
    assert not alive


async def test_a_server_can_be_used_from_a_coroutine(tmp_path: Path) -> None:
    async with NatsServer(tmp_path / "nats") as server:
        connection = await nats.connect(server.url)
        assert connection.is_connected
        await connection.close()


async def test_each_service_signs_in_as_itself_and_may_not_do_what_the_owner_may(tmp_path: Path) -> None:
    with NatsServer(tmp_path / "nats") as server:
        owner = await connect_nats(server.url, "owner", pending=1_024)
        await streams.ensure_streams(owner.jetstream(), retention_days=1)
        voice = await connect_nats(server.url_of("voice"), "voice-1", pending=1_024, user="voice")
        sid = new_session_id()
        assert (await voice.jetstream().publish(f"vx.s.{sid}.ev.voice.i.test.done", b"x")).seq == 1
        assert not may_make(voice.jetstream())
        assert may_make(owner.jetstream())
        assert denied(voice) == ()
        with pytest.raises(nats.errors.TimeoutError):
            await voice.jetstream(timeout=0.2).purge_stream(subjects.EVENT_STREAM)
        await voice.flush()  # by now the server has reported its refusals
        assert "purge.ev" in denied(voice)[-1]
        with pytest.raises(KeyError):
            server.url_of("models")
        await close_nats(voice)
        await close_nats(owner)


async def test_what_an_earlier_release_stored_without_accounts_is_still_the_log(tmp_path: Path) -> None:
    folder, port = tmp_path / "nats", free_port()
    folder.mkdir()
    earlier = folder / "earlier.conf"
    earlier.write_text(f'listen: "127.0.0.1:{port}"\njetstream {{ store_dir: "{folder / "store"}" }}\n')
    server = NatsServer(folder)
    sid = new_session_id()
    old = await asyncio.create_subprocess_exec(server.command()[0], "-c", str(earlier), stderr=subprocess.DEVNULL)
    try:
        owner = await connect_nats(f"nats://127.0.0.1:{port}", "owner", pending=1_024)
        await streams.ensure_streams(owner.jetstream(), retention_days=1)
        await streams.ensure_consumer(owner.jetstream(), streams.CONSUMERS["voice"])
        await owner.jetstream().publish(subjects.event_subject(sid, "gateway", visible=False, event_type="session.requested"), b"kept")
        await close_nats(owner)
    finally:
        old.terminate()
        await old.wait()
    with server:
        owner = await connect_nats(server.url, "owner", pending=1_024)
        assert (await owner.jetstream().get_msg(subjects.EVENT_STREAM, 1)).data == b"kept"
        assert (await owner.jetstream().consumer_info(subjects.EVENT_STREAM, "voice")).num_pending == 1
        await close_nats(owner)
    assert not adopt_store(folder / "store"), "once is enough"


async def test_each_service_signs_in_to_valkey_as_itself_and_reaches_its_own_keys_alone(tmp_path: Path) -> None:
    with ValkeyServer(tmp_path / "v") as server:
        with redis.Redis.from_url(server.url) as owner:
            owner.set("vx:handle:{a}", "secret")
        for name in VALKEY_KEYS:
            if name == ADMIN:
                continue
            with redis.Redis.from_url(server.url_of(name)) as service:
                assert service.execute_command("ACL", "WHOAMI") == name.encode()
                assert service.ping()
                for command in (("SCAN", "0"), ("FUNCTION", "FLUSH"), ("FLUSHALL",), ("CONFIG", "GET", "requirepass")):
                    with pytest.raises(redis.exceptions.NoPermissionError):
                        service.execute_command(*command)
                if name != "voice":
                    for own in (("GET", "vx:handle:{a}"), ("DEL", "vx:handle:{a}")):
                        with pytest.raises(redis.exceptions.NoPermissionError):
                            service.execute_command(*own)
        with pytest.raises(KeyError):
            server.url_of("models")

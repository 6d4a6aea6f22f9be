from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from voxbridge.installation.preflight import FolderLock, check_folder, check_port, check_secrets, port_holder
from voxbridge.shared.config import Config
from voxbridge.shared.embedded.servers import StartError
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.secrets.secret_file import new_secret


def test_a_folder_is_made_and_left_empty(tmp_path: Path) -> None:
    check_folder(tmp_path / "a" / "b")
    assert list((tmp_path / "a" / "b").iterdir()) == []


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StartError) as caught:
        check_folder(tmp_path / "file")
    assert caught.value.message == (
        f"The data folder {tmp_path / 'file'} cannot be written: file exists. Make it writable, or set VOXBRIDGE_DATA_DIR to another."
    )


def test_a_full_disk_is_one_line_with_the_numbers(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"is full: \d+ MiB are free and 1099511627776 MiB are needed"):
        check_folder(tmp_path, min_free_bytes=1 << 60)


def test_a_device_that_refuses_every_byte_is_a_full_disk() -> None:
    with pytest.raises(StartError, match="The data folder /dev/full cannot be written"):
        check_folder(Path("/dev/full"))


def test_a_taken_port_is_one_line_that_names_who_has_it() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        assert f"(process {os.getpid()})" in (port_holder(port) or "")
        with pytest.raises(StartError) as caught:
            check_port("127.0.0.1", port, "VOXBRIDGE_PORT")
    assert f"Port {port} is taken by " in caught.value.message
    assert f"VOXBRIDGE_PORT={port + 10} make up" in caught.value.message
    assert "\n" not in caught.value.message
    check_port("127.0.0.1", port, "VOXBRIDGE_PORT")


def test_an_address_of_another_machine_is_one_line() -> None:
    with pytest.raises(StartError, match=r"192\.0\.2\.1:8420 cannot be listened on: cannot assign requested address"):
        check_port("192.0.2.1", 8420, "VOXBRIDGE_HOST")


def test_the_lock_of_a_folder_names_its_holder_and_can_be_taken_again(tmp_path: Path) -> None:
    lock = FolderLock.take(tmp_path, "http://127.0.0.1:8420")
    with pytest.raises(StartError) as caught:
        FolderLock.take(tmp_path, "http://127.0.0.1:9000")
    assert f"(process {os.getpid()}, http://127.0.0.1:8420)" in caught.value.message
    lock.release()
    FolderLock.take(tmp_path, "http://127.0.0.1:9000").release()


@pytest.mark.parametrize("name", ["vault.key", "admin.token"])
def test_a_secret_that_others_may_read_is_one_line_before_anything_is_started(tmp_path: Path, name: str) -> None:
    config = Config(data_dir=tmp_path)
    check_secrets(config)
    assert list(tmp_path.iterdir()) == [], "nothing is made before it is needed"
    (tmp_path / name).write_text(new_secret())
    (tmp_path / name).chmod(0o600)
    check_secrets(config)
    (tmp_path / name).chmod(0o644)
    with pytest.raises(VoxbridgeError, match=r"may be read by others \(mode 0644\): run `chmod 600") as refused:
        check_secrets(config)
    assert "\n" not in refused.value.message

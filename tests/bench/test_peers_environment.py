"""The peers' environments: the locked packages, the choice of Python, and the messages when there is none."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import msgspec
import pytest

from bench.peers import environment
from bench.peers.catalogue import LOCKS, PEERS, SDK, Peer, pinned
from bench.peers.environment import Uninstallable, install, installed, python_of, pythons, release_of
from bench.peers.measure import installed as those_installed

UV = """#!/bin/sh
echo "$@" >> {log}
case "$1" in
venv)
    for folder in "$@"; do :; done
    {venv}
    mkdir -p "$folder/bin" && touch "$folder/bin/python" && echo "version_info = 3.12.9" > "$folder/pyvenv.cfg" ;;
pip) {sync} ;;
esac
"""


class Uv:
    """A stand-in for uv that records its calls."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "uv.log"
        self.path = folder / "uv"

    def does(self, *, venv: str = ":", sync: str = ":") -> None:
        self.path.write_text(UV.format(log=self.log, venv=venv, sync=sync))
        self.path.chmod(0o755)

    @property
    def calls(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Uv:
    found = Uv(tmp_path)
    found.does()
    monkeypatch.setattr("deploy.bootstrap.uv", lambda: str(found.path))
    monkeypatch.setattr(environment, "HOME", tmp_path / "peers")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    return found


def silent(_: str) -> None:
    """Ignore the text."""


@pytest.mark.parametrize("peer", PEERS.values(), ids=lambda peer: peer.name)
def test_every_package_of_a_peer_is_locked_with_its_release_and_digests(peer: Peer) -> None:
    text = peer.lock.read_text()
    packages = [block for block in text.split("\n") if block and not block.startswith(" ")]
    assert len(packages) > 20
    assert all("==" in line for line in packages)
    assert text.count("--hash=sha256:") >= len(packages)
    assert peer.version
    assert peer.sdk


@pytest.mark.parametrize("peer", PEERS.values(), ids=lambda peer: peer.name)
def test_a_peer_has_an_adapter_and_one_for_handoffs_when_it_hands_over(peer: Peer) -> None:
    assert find_spec(f"bench.peers.adapters.{peer.name}") is not None
    assert (find_spec(f"bench.peers.adapters.{peer.name}_handoff") is not None) == bool(peer.handoff)
    assert bool(peer.handoff) != bool(peer.no_handoff)


def test_a_package_that_is_not_locked_is_missed() -> None:
    with pytest.raises(ValueError, match=r"roomkit\.txt has no pipecat-ai"):
        pinned(LOCKS / "roomkit.txt", "pipecat-ai")
    assert pinned(LOCKS / "roomkit.txt", SDK).startswith("3.")


def test_a_peer_that_runs_on_this_python_is_given_it(uv: Uv) -> None:
    assert pythons(PEERS["pipecat"]) == [sys.executable]


def test_a_peer_that_needs_a_later_python_is_given_pyenvs_newest_and_then_what_uv_finds(uv: Uv, tmp_path: Path) -> None:
    for release in ("3.99.2", "3.99.10", "3.98.30"):
        folder = tmp_path / "pyenv" / "versions" / release / "bin"
        folder.mkdir(parents=True)
        (folder / f"python{release.rpartition('.')[0]}").touch()
    peer = msgspec.structs.replace(PEERS["roomkit"], python=(3, 99))
    assert [Path(python).parts[-3:][0] for python in pythons(peer)[:-1]] == ["3.99.10", "3.99.2"]
    assert pythons(peer)[-1] == "3.99"


def test_what_is_installed_is_kept(uv: Uv) -> None:
    peer = PEERS["livekit"]
    install(peer, silent)
    assert installed(peer)
    assert release_of(peer) == "3.12.9"
    assert ["venv" in call for call in uv.calls] == [True, False]
    assert f"--require-hashes --python {python_of(peer)} {peer.lock}" in uv.calls[1]
    install(peer, silent)
    assert len(uv.calls) == 2


def test_an_environment_of_another_lock_is_made_anew(uv: Uv) -> None:
    peer = PEERS["livekit"]
    install(peer, silent)
    (python_of(peer).parents[1] / "peer.stamp").write_text("another")
    assert not installed(peer)
    install(peer, silent)
    assert installed(peer)
    assert len(uv.calls) == 4


def test_without_its_python_a_peer_is_left_out_and_it_is_said(uv: Uv) -> None:
    uv.does(venv="echo 'no interpreter found' >&2; exit 2")
    peer = msgspec.structs.replace(PEERS["roomkit"], python=(3, 99))
    with pytest.raises(Uninstallable, match=r"needs Python 3\.99 or later, and none can be had here: no interpreter found"):
        install(peer, silent)


def test_an_installation_that_fails_is_named_with_what_uv_said_and_tried_again(uv: Uv) -> None:
    uv.does(sync="echo 'hash mismatch' >&2; exit 1")
    said: list[str] = []
    there, absent = those_installed(["livekit"], said.append)
    assert there == []
    assert [(one.name, one.error) for one in absent] == [("livekit", "hash mismatch")]
    assert said[-1] == "LiveKit AgentSession is left out: hash mismatch"
    uv.does()
    there, absent = those_installed(["livekit"], said.append)
    assert [one.name for one in there] == ["livekit"]
    assert absent == []

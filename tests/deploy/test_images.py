"""Each image has the packages that its containers' programs import: they run here with all other packages unavailable."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.compose import ROOT, Compose, load

RUN_S = 120.0
RECORDED = ROOT / "tests" / "recorded"

COMMANDS = ROOT / "voxbridge" / "commands"
PROGRAMS: Mapping[str, tuple[str, ...]] = {
    "credentials": ("voxbridge.commands.admin",),
    "weights": ("voxbridge.commands.models",),
    "admin": ("voxbridge.commands.admin",),
    "models": ("voxbridge.services.models.service", "voxbridge.commands.health"),
    "tools": ("voxbridge.services.tools.service", "voxbridge.commands.health"),
    "awareness": ("voxbridge.services.awareness.service", "voxbridge.commands.health"),
    "programs": ("voxbridge.services.terminals.holder.holder", "voxbridge.services.terminals.holder.keeper"),
    "terminals": ("voxbridge.services.terminals.service", "voxbridge.commands.health"),
    "knowledge": ("voxbridge.services.knowledge.service", "voxbridge.commands.health"),
    "voice": ("voxbridge.services.voice.service", "voxbridge.commands.health"),
    "gateway": ("voxbridge.services.gateway.service", "voxbridge.commands.health", "voxbridge.commands.keys"),
    "cli": ("voxbridge.doctor.command", *sorted(f"voxbridge.commands.{path.stem}" for path in COMMANDS.glob("[a-z]*.py"))),
    "recordings": ("voxbridge.commands.export", "voxbridge.sessions.wav"),
    "vault": ("voxbridge.commands.keys", "voxbridge.installation.rotation"),
}
"""Modules that run in each container."""

WITHOUT = """
import importlib, sys
out_of_reach = set(sys.argv[1].split(","))
class Refuses:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in out_of_reach:
            raise ModuleNotFoundError(f"No module named {name!r} in this image", name=name)
sys.meta_path.insert(0, Refuses())
"""


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def packages(extras: Iterable[str]) -> set[str]:
    """Return the distributions that `uv sync` installs with these extras and without developer dependencies, on any machine."""
    locked: dict[str, dict[str, Any]] = {one["name"]: one for one in tomllib.loads((ROOT / "uv.lock").read_text())["package"]}
    found: set[tuple[str, str]] = set()
    waiting = [("voxbridge", extra) for extra in ("", *extras)]
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in found:
            continue
        found.add((name, extra))
        package = locked[name]
        needs = package.get("optional-dependencies", {}).get(extra, []) if extra else package.get("dependencies", [])
        waiting += [(need["name"], also) for need in needs for also in ("", *need.get("extra", []))]
    return {_plain(name) for name, _ in found}


def image(compose: Compose, container: str) -> str:
    """Return the argument SERVICE with which the image of a container is built."""
    found = re.fullmatch(r"voxbridge/(\w+):.*", compose.services[container].image)
    assert found is not None, container
    return found[1]


def out_of_reach(service: str) -> str:
    """Return the top-level modules that the image of a service lacks, separated by commas."""
    cases = re.findall(r'^ +([\w|]+)\) extras="(.*)" ;;', (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    (extras,) = [words for names, words in cases if service in names.split("|")]
    there = packages(re.findall(r"--extra (\S+)", extras.replace("$SERVICE", service)))
    absent = {module for module, names in packages_distributions().items() if not {_plain(name) for name in names} & there}
    assert "pytest" in absent
    assert not {"click", "nats", "redis"} & absent
    return ",".join(sorted(absent))


def ran(service: str, program: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a piece of Python as in the image of a service."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("VOXBRIDGE_")}
    return subprocess.run(
        [sys.executable, "-c", WITHOUT + program, out_of_reach(service), *arguments],
        env={**kept, "VOXBRIDGE_DATA_DIR": str(folder), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=RUN_S,
        check=False,
    )


@pytest.fixture(scope="module")
def compose() -> Compose:
    return load()


def test_every_container_of_ours_is_looked_at(compose: Compose) -> None:
    assert set(PROGRAMS) == {name for name, service in compose.services.items() if service.image.startswith("voxbridge/")}


@pytest.mark.parametrize("container", sorted(PROGRAMS))
def test_an_image_has_what_its_programs_import(container: str, compose: Compose, tmp_path: Path) -> None:
    program = "for module in sys.argv[2:]: importlib.import_module(module)"
    done = ran(image(compose, container), program, *PROGRAMS[container], folder=tmp_path)
    assert done.returncode == 0, done.stderr[-2_000:]


@pytest.mark.parametrize("service", ["voice", "tools"])
def test_the_operators_container_replays_both_services(service: str, compose: Compose, tmp_path: Path) -> None:
    (recorded,) = RECORDED.glob("*.jsonl")
    program = "sys.argv[1:] = sys.argv[2:]\nfrom voxbridge.cli import main\nmain()"
    done = ran(image(compose, "cli"), program, "replay", str(recorded), "--service", service, folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{service}: no difference" in done.stdout

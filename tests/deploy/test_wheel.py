"""The built wheel in a clean environment: one package at the top, a command that runs, the browser bundles inside."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from deploy import bootstrap
from voxbridge.services.gateway.rest.pages import BUNDLES, PACKAGE

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    # The set-up has brought what builds it.
    subprocess.run([bootstrap.uv(), "build", "--offline", "--wheel", "-q", "-o", str(folder), str(ROOT)], check=True, timeout=120)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def scripts(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the commands of an environment that has the wheel and what it needs, and nothing else."""
    place = tmp_path_factory.mktemp("environment") / "venv"
    subprocess.run([bootstrap.uv(), "venv", "-q", "--python", sys.executable, str(place)], check=True, timeout=60)
    install = [bootstrap.uv(), "pip", "install", "-q", "--python", str(place / "bin" / "python"), str(wheel)]
    subprocess.run(install, check=True, timeout=300, env=bootstrap.trusting(os.environ))
    return place / "bin"


def ran(scripts: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(scripts / "voxbridge"), *arguments], check=False, capture_output=True, text=True, timeout=60, cwd=scripts, env={"PATH": ""}
    )


def test_one_package_is_at_the_top_and_the_bundles_are_in_it(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {"voxbridge", "voxbridge-0.1.0.dist-info"}
    scripts = {f"voxbridge/web/client/{name}.js" for name in BUNDLES}
    assert {*scripts, f"voxbridge/web/client/{PACKAGE}", "voxbridge/web/studio/index.html"} <= set(names)
    assert not [name for name in names if "/tests/" in name]


def test_the_package_for_npm_has_the_scripts_and_what_it_says_that_it_exports(wheel: Path) -> None:
    packed = zipfile.ZipFile(wheel).read(f"voxbridge/web/client/{PACKAGE}")
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        names = {name.removeprefix("package/") for name in archive.getnames()}
        told = archive.extractfile("package/package.json")
        assert told is not None
        exports = json.load(told)["exports"]
    assert set(exports) == {".", "./react", "./page"}
    assert {path.removeprefix("./") for entry in exports.values() for path in entry.values()} <= names
    assert {f"{name}.js" for name in BUNDLES} <= names


def test_the_command_runs_in_an_environment_of_its_own(scripts: Path) -> None:
    assert ran(scripts, "--version").stdout == "voxbridge 0.1.0\n"
    told = ran(scripts, "--help")
    assert told.returncode == 0
    assert "voxbridge up" in told.stdout
    assert ran(scripts, "config").returncode == 0


def test_a_command_whose_libraries_are_missing_says_what_to_install(scripts: Path) -> None:
    for arguments in (("agents", "ls"), ("erase", "--session", "x")):
        done = ran(scripts, *arguments)
        assert done.returncode == 1
        assert done.stderr.startswith(f"`voxbridge {arguments[0]}` needs ")
        assert done.stderr.endswith("Run: pip install 'voxbridge[all]'\n")
        assert "Traceback" not in done.stderr

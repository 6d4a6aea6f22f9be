"""The contracts on imports hold, and each fails where an import breaks it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from deploy.gates import ROOT, imports

PLANTED = {
    "voxbridge/shared/clock.py": ("import voxbridge.services.voice.core.state", "the command starts services"),
    "voxbridge/services/voice/core/state/session.py": ("import voxbridge.services.gateway.core.messages", "no service imports another"),
    "voxbridge/shared/errors.py": ("import voxbridge.shared.log.reader", "rooms of shared"),
    "voxbridge/services/gateway/door/access.py": ("import voxbridge.services.gateway.rest.app", "rooms of the gateway"),
    "voxbridge/services/voice/core/inputs.py": ("import voxbridge.services.voice.session.session", "rooms of the voice service"),
    "voxbridge/services/tools/core/step.py": ("import voxbridge.services.tools.registry", "rooms of the tools service"),
    "voxbridge/services/models/engines/stt.py": ("import voxbridge.services.models.api.chat", "rooms of the models service"),
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the product's modules and of the contracts."""
    shutil.copytree(ROOT / "voxbridge", tmp_path / "voxbridge", ignore=lambda _, names: {one for one in names if one == "__pycache__"})
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_contracts_hold() -> None:
    assert imports.problems() == []


@pytest.mark.parametrize("module", PLANTED)
def test_an_import_that_breaks_a_contract_is_named(checkout: Path, module: str) -> None:
    planted, contract = PLANTED[module]
    path = checkout / module
    path.write_text(f"{path.read_text()}\n{planted}\n")
    found = imports.problems(checkout)
    assert any(one.startswith(contract) for one in found), found
    assert any(path.stem in one and planted.rpartition(".")[2] in one for one in found), found


def test_a_room_without_a_place_in_the_contracts_is_refused(checkout: Path) -> None:
    (checkout / "voxbridge" / "services" / "voice" / "attic.py").touch()
    assert any("attic" in one for one in imports.problems(checkout))

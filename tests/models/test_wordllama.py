"""The table that is used only where its licence is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from voxbridge.services.models.embedding import static, wordllama
from voxbridge.shared.errors import Code, VoxbridgeError


class Installed:
    """A package whose files are in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def locate_file(self, member: str) -> Path:
        """Return the path of a file."""
        return self._folder / member


def test_without_the_setting_it_is_the_installations_own_table() -> None:
    assert wordllama.chosen("") is static.table()


@pytest.mark.parametrize("setting", ["wordllama", "wordllama:mit", "/some/folder"])
def test_a_value_that_does_not_name_the_licence_is_refused(setting: str) -> None:
    with pytest.raises(VoxbridgeError, match="by which you accept the licence") as refused:
        wordllama.chosen(setting)
    assert (refused.value.code, refused.value.field) == (Code.INVALID_ARGUMENT, "VOXBRIDGE_EMBEDDINGS_TABLE")


def test_without_the_package_one_sentence_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wordllama, "distribution", lambda _: Installed(tmp_path))
    with pytest.raises(VoxbridgeError, match=r"not installed here: pip install wordllama==0\.4\.0\.post1"):
        wordllama.chosen(wordllama.CHOSEN)


def test_other_bytes_than_those_that_are_named_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wordllama, "distribution", lambda _: Installed(tmp_path))
    path = tmp_path / wordllama.VECTORS[0]
    path.parent.mkdir(parents=True)
    path.write_bytes(b"other bytes")
    with pytest.raises(VoxbridgeError, match="has SHA-256") as refused:
        wordllama.chosen(wordllama.CHOSEN)
    assert refused.value.code == Code.UNAVAILABLE

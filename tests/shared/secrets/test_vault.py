"""Sealed data opens only with the right key under the right name; only the owner can read the key's file."""

from __future__ import annotations

import base64
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.secrets import vault
from voxbridge.shared.secrets.sealed_box import Sealer
from voxbridge.shared.secrets.secret_file import LENGTH, SecretFile, admin_token_file, vault_key_file
from voxbridge.shared.secrets.vault import Vault, WrongKey

KEY = bytes(range(32))


@given(data=st.binary(max_size=2_000), name=st.text(min_size=1, max_size=40))
def test_what_is_sealed_opens_again_and_shows_nothing(data: bytes, name: str) -> None:
    sealed = vault.seal(KEY, data, name=name)
    assert len(sealed) == len(data) + vault.OVERHEAD
    assert sealed[0] == vault.VERSION
    assert len(data) < 4 or data not in sealed
    assert vault.unseal(KEY, sealed, name=name) == data


def test_the_same_is_never_sealed_alike() -> None:
    assert len({vault.seal(KEY, b"same", name="n") for _ in range(100)}) == 100


def test_another_key_another_name_and_any_changed_byte_are_refused_as_such() -> None:
    sealed = vault.seal(KEY, b"secret", name="vx:key:gemini")
    for key, name in ((vault.new_key(), "vx:key:gemini"), (KEY, "vx:key:openai"), (KEY, "")):
        with pytest.raises(WrongKey) as refused:
            vault.unseal(key, sealed, name=name)
        assert (refused.value.code, refused.value.retryable) == (Code.INTERNAL, False)
        assert "secret" not in str(refused.value)
    for at in range(len(sealed)):
        changed = sealed[:at] + bytes((sealed[at] ^ 1,)) + sealed[at + 1 :]
        with pytest.raises(WrongKey):
            vault.unseal(KEY, changed, name="vx:key:gemini")


@pytest.mark.parametrize("length", [0, 1, vault.OVERHEAD - 1])
def test_what_is_too_short_to_be_sealed_is_refused(length: int) -> None:
    with pytest.raises(WrongKey, match="n cannot be opened: it is damaged, or was sealed by a newer release"):
        vault.unseal(KEY, vault.seal(KEY, b"", name="n")[:length], name="n")


def test_another_version_is_said() -> None:
    sealed = vault.seal(KEY, b"x", name="n")
    with pytest.raises(WrongKey, match="newer release"):
        vault.unseal(KEY, bytes((vault.VERSION + 1,)) + sealed[1:], name="n")


def test_a_key_for_a_session_is_32_bytes_and_new_each_time() -> None:
    made = {vault.new_key() for _ in range(100)}
    assert len(made) == 100
    assert {len(key) for key in made} == {vault.KEY_BYTES}


def file_in(folder: Path) -> SecretFile:
    return vault_key_file(Config(data_dir=folder))


def test_the_vaults_key_is_made_when_something_is_first_sealed_and_kept(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with pytest.raises(WrongKey, match="there is no vault key at"):
        Vault(file_in(folder)).unseal(b"x" * 40, name="n")
    assert not folder.exists()
    sealed = Vault(file_in(folder)).seal(b"secret", name="n")
    assert [path.name for path in folder.iterdir()] == ["vault.key"]
    assert stat.S_IMODE((folder / "vault.key").stat().st_mode) == 0o600
    assert Vault(file_in(folder)).unseal(sealed, name="n") == b"secret"


def test_a_key_that_was_changed_for_another_does_not_open_what_was_sealed(tmp_path: Path) -> None:
    sealed = Vault(file_in(tmp_path)).seal(b"secret", name="n")
    (tmp_path / "vault.key").unlink()
    Vault(file_in(tmp_path)).seal(b"other", name="n")
    with pytest.raises(WrongKey, match="sealed with another key"):
        Vault(file_in(tmp_path)).unseal(sealed, name="n")


def test_of_many_that_make_the_key_at_once_all_have_the_same(tmp_path: Path) -> None:
    found: list[str] = []
    start = threading.Barrier(8)

    def make() -> None:
        start.wait()
        found.append(file_in(tmp_path).ensure())

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert set(found) == {(tmp_path / "vault.key").read_text()}
    assert [path.name for path in tmp_path.iterdir()] == ["vault.key"], "nothing is left of those that came second"


FIXED = base64.urlsafe_b64encode(b"k" * 32).decode().rstrip("=")


@pytest.mark.parametrize(
    ("text", "mode", "words"),
    [
        ("", 0o600, "is too short or is not text: 43 characters are the least"),
        ("a" * (LENGTH - 1), 0o600, "is too short or is not text"),
        ("é" * LENGTH, 0o600, "is too short or is not text"),
        ("a" * 20 + "\n" + "a" * 30, 0o600, "is too short or is not text"),
        ("a" * (LENGTH + 1), 0o600, "does not hold 32 bytes in base64"),
        ("!" * LENGTH, 0o600, "does not hold 32 bytes in base64"),
        (FIXED, 0o640, "may be read by others (mode 0640): run `chmod 600"),
        (FIXED, 0o604, "may be read by others (mode 0604)"),
        (FIXED, 0o610, "may be read by others (mode 0610)"),
    ],
)
def test_a_key_file_that_cannot_be_used_is_one_line_that_says_what_to_do(tmp_path: Path, text: str, mode: int, words: str) -> None:
    path = tmp_path / "vault.key"
    path.write_text(text)
    path.chmod(mode)
    opened = Vault(file_in(tmp_path))
    for use in (opened.seal, opened.unseal):
        with pytest.raises(VoxbridgeError) as refused:
            use(b"x" * 40, name="n")
        error = refused.value
        assert (error.code, error.field, error.retryable) == (Code.UNAVAILABLE, "VOXBRIDGE_VAULT_KEY_FILE", False)
        assert words in error.message
        assert str(path) in error.message
        assert "\n" not in error.message
        assert not text or text not in error.message


def test_a_key_of_any_length_over_the_least_is_good_for_a_token(tmp_path: Path) -> None:
    path = tmp_path / "admin.token"
    path.write_text(f"{'t' * LENGTH}\n")
    path.chmod(0o400)
    assert admin_token_file(Config(data_dir=tmp_path)).read() == "t" * LENGTH


def test_a_file_that_cannot_be_read_or_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "vault.key").mkdir()
    with pytest.raises(VoxbridgeError, match=r"vault\.key cannot be read: is a directory"):
        file_in(tmp_path).read()
    (tmp_path / "file").touch()
    with pytest.raises(VoxbridgeError, match=r"cannot be (read|written): not a directory"):
        file_in(tmp_path / "file" / "below").ensure()


def test_neither_a_vault_nor_a_file_shows_what_it_holds(tmp_path: Path) -> None:
    opened = Vault(file_in(tmp_path))
    opened.seal(b"x", name="n")
    text = (tmp_path / "vault.key").read_text()
    assert text not in repr(opened) + repr(file_in(tmp_path)) + str(vars(file_in(tmp_path)))


def test_who_has_the_public_half_seals_and_cannot_open(tmp_path: Path) -> None:
    file = vault_key_file(Config(data_dir=tmp_path))
    holder = Vault(file)
    holder.publish(tmp_path / "vault.pub")
    sealer = Sealer(tmp_path / "vault.pub", variable="V")
    first, second = sealer.seal(b"secret", name="one"), sealer.seal(b"secret", name="one")
    assert first != second
    assert holder.unseal(first, name="one") == holder.unseal(second, name="one") == b"secret"
    assert not [name for name in dir(sealer) if "open" in name]
    assert base64.b64decode((tmp_path / "vault.pub").read_text()) not in file.ensure().encode()
    for damaged in (first[:-1], first[:40] + bytes([first[40] ^ 1]) + first[41:], b"", b"\x02", b"\x03" + first[1:]):
        with pytest.raises(WrongKey, match="one cannot be opened"):
            holder.unseal(damaged, name="one")
    with pytest.raises(WrongKey, match="two cannot be opened"):
        holder.unseal(first, name="two")


def test_what_earlier_releases_sealed_with_the_key_itself_still_opens(tmp_path: Path) -> None:
    file = vault_key_file(Config(data_dir=tmp_path))
    key = base64.b64decode(file.ensure() + "=", altchars=b"-_")
    assert Vault(file).unseal(vault.seal(key, b"secret", name="one"), name="one") == b"secret"

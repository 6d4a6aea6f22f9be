"""Access tokens: only signed terms are accepted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.secrets.access_tokens import (
    ACCOUNT,
    CALLS_LIMIT,
    LENGTH_LIMIT,
    LONGEST_S,
    NAME_LIMIT,
    NAMES_LIMIT,
    SHORTEST_S,
    Terms,
    Wishes,
    is_one,
    read,
    sign,
    terms,
)
from voxbridge.shared.secrets.secret_file import new_secret

SECRET = new_secret()
MODES = ("local", "echo")
NOW = 1_800_000_000


def made(**wishes: object) -> Terms:
    return terms(Wishes(**wishes), now_s=NOW, modes=MODES)  # type: ignore[arg-type]


def refused(token: str, *, secret: str = SECRET, now_s: int = NOW) -> str:
    with pytest.raises(VoxbridgeError) as caught:
        read(token, secret, now_s=now_s)
    assert caught.value.code is Code.UNAUTHENTICATED
    return caught.value.message


def test_a_token_says_what_was_signed_until_it_expires() -> None:
    whole = made(account="ada", agents=("triage",), modes=("echo",), models=("m",), prompt=True, calls=3, seconds=SHORTEST_S)
    token = sign(whole, SECRET)
    assert is_one(token)
    assert read(token, SECRET, now_s=NOW + SHORTEST_S - 1) == whole
    assert "expired" in refused(token, now_s=NOW + SHORTEST_S)
    assert "not made here" in refused(token, secret=new_secret())


def test_a_token_that_names_no_account_has_one_of_its_own() -> None:
    first, second = made(), made()
    assert first.account != second.account
    assert ACCOUNT.fullmatch(first.account)
    assert first.account != "local"


@given(st.integers(0, 10_000), st.integers(1, 127))
def test_a_token_that_was_changed_in_one_place_is_refused(place: int, by: int) -> None:
    token = sign(made(account="ada"), SECRET)
    at = place % len(token)
    refused(token[:at] + chr((ord(token[at]) + by) % 128) + token[at + 1 :])


@given(st.text(max_size=200))
def test_whatever_else_is_said_is_no_token(text: str) -> None:
    refused(text)


def test_an_administrators_token_is_never_one_and_neither_is_what_is_too_long() -> None:
    assert not is_one(new_secret())
    assert not is_one("vxt1." + "a" * LENGTH_LIMIT + "." + "a" * 43)
    refused("vxt1." + "a" * LENGTH_LIMIT + "." + "a" * 43)


@pytest.mark.parametrize(
    ("field", "at", "beyond"),
    [
        ("seconds", SHORTEST_S, SHORTEST_S - 1),
        ("seconds", LONGEST_S, LONGEST_S + 1),
        ("calls", CALLS_LIMIT, CALLS_LIMIT + 1),
        ("calls", 0, -1),
        ("agents", ("a",) * NAMES_LIMIT, ("a",) * (NAMES_LIMIT + 1)),
        ("models", ("a" * NAME_LIMIT,), ("a" * (NAME_LIMIT + 1),)),
        ("agents", ("a",), ("",)),
        ("modes", ("local",), ("locl",)),
        ("account", "a" * 64, "a" * 65),
        ("account", "ada@example.com", "{vx}"),
    ],
)
def test_terms_have_bounds_that_are_named(field: str, at: object, beyond: object) -> None:
    made(**{field: at})
    with pytest.raises(VoxbridgeError) as caught:
        made(**{field: beyond})
    assert (caught.value.code, caught.value.field) == (Code.INVALID_ARGUMENT, field)
    assert caught.value.limit is not None


def test_a_token_with_all_that_it_may_name_is_not_too_long() -> None:
    names = tuple(f"{n:02}" + "x" * (NAME_LIMIT - 2) for n in range(NAMES_LIMIT))
    assert is_one(sign(made(agents=names, models=names, account="a" * 64), SECRET))

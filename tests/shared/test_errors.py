"""Codes of errors, and the HTTP statuses that go with them."""

from __future__ import annotations

from voxbridge.services.models.api.errors import STATUS
from voxbridge.shared.errors import HTTP_STATUS, Code


def test_every_code_has_a_status() -> None:
    assert set(HTTP_STATUS) == set(Code)
    assert set(STATUS) == set(Code)
    assert all(400 <= status < 600 for status in (*HTTP_STATUS.values(), *STATUS.values()))


def test_only_a_fault_of_our_own_is_500() -> None:
    assert [code for code, status in HTTP_STATUS.items() if status == 500] == [Code.INTERNAL]

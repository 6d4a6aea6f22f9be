"""Choice of endpoints: names, a vendor's retry-after, and the clients of a changing key."""

from __future__ import annotations

import asyncio
import threading

import pytest

from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.language import base, endpoints


def test_an_environment_variable_that_is_empty_leaves_the_vendors_own_url(monkeypatch: pytest.MonkeyPatch) -> None:
    for vendor in endpoints.VENDORS.values():
        monkeypatch.setenv(vendor.url_variable, "")
        assert vendor.base_url == vendor.url


def test_endpoints_are_parsed_by_name() -> None:
    assert endpoints.parse("") == {}
    assert endpoints.parse(" groq=https://api.groq.com/openai/v1/ , b-2=http://10.0.0.2:8000/v1,") == {
        "groq": "https://api.groq.com/openai/v1",
        "b-2": "http://10.0.0.2:8000/v1",
    }
    many = ",".join(f"e{index}=http://host/{index}" for index in range(endpoints.ENDPOINTS_LIMIT))
    assert len(endpoints.parse(many)) == endpoints.ENDPOINTS_LIMIT
    with pytest.raises(VoxbridgeError, match="at most 32"):
        endpoints.parse(f"{many},one-more=http://host/more")


@pytest.mark.parametrize(
    "text",
    [
        "groq",
        "groq=",
        "=http://a",
        "Groq=http://a",
        "a_b=http://a",
        "openai=http://a",
        "local=http://a",
        "a=http://a,a=http://b",
        "a=ftp://b",
    ],
)
def test_endpoints_that_make_no_sense_are_refused_by_the_settings_name(text: str) -> None:
    with pytest.raises(VoxbridgeError) as caught:
        endpoints.parse(text)
    assert (caught.value.code, caught.value.field) == (Code.INVALID_ARGUMENT, "VOXBRIDGE_ENDPOINTS")


def test_a_url_with_a_password_is_refused_without_being_said() -> None:
    with pytest.raises(VoxbridgeError) as caught:
        endpoints.parse("a=https://me:secret@host/v1")
    assert "secret" not in caught.value.message


class Made:
    """Clients that a `KeyedClient` made, by their keys, and the closed ones."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.closed: list[str] = []
        self.key = "one"
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    async def get(self, _: str) -> str:
        return self.key

    def build(self, key: str) -> str:
        self.may_go_on.wait(10)
        self.keys.append(key)
        return f"client of {key}"

    async def close(self, client: str) -> None:
        self.closed.append(client)


async def test_one_client_is_kept_and_an_old_one_is_closed_when_its_last_request_ended() -> None:
    made = Made()
    keyed = endpoints.KeyedClient("x", made.get, made.build, made.close)
    async with keyed.use() as first:
        async with keyed.use() as again:
            assert (first.client, again.client, made.keys) == ("client of one", "client of one", ["one"])
            made.key = "two"
            async with keyed.use() as second:
                assert (second.key, second.client) == ("two", "client of two")
        assert made.closed == [], "the first still runs"
    assert made.closed == ["client of one"]
    made.key = "three"
    async with keyed.use():
        assert made.closed == ["client of one", "client of two"], "nobody used the second"
        await keyed.close()
        assert made.closed == ["client of one", "client of two"]
    assert made.closed == ["client of one", "client of two", "client of three"]
    await keyed.close()


async def test_a_client_that_nobody_waits_for_any_more_is_there_for_the_next() -> None:
    made = Made()
    made.may_go_on.clear()
    keyed = endpoints.KeyedClient("x", made.get, made.build, made.close)

    async def use() -> str:
        async with keyed.use() as held:
            return held.client

    gone, waiting = asyncio.create_task(use()), asyncio.create_task(use())
    await asyncio.sleep(0)
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    made.may_go_on.set()
    assert await waiting == "client of one"
    assert made.keys == ["one"]
    await keyed.close()
    assert made.closed == ["client of one"]


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after-ms": "20", "retry-after": "3"}, 0.02),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
    ],
)
def test_the_wait_that_a_vendor_asks_for_is_read_in_all_its_forms(headers: dict[str, str], wait: float | None) -> None:
    assert base.retry_after_s(headers) == wait

"""Keys at the door: who gets a socket, and which status refuses the others before the upgrade."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from redis.asyncio import Redis

from tests.eventually import eventually
from tests.gateway.conftest import Running, Serve
from tests.gateway.platform.conftest import CONFIGURE, SHOP, make_key, page, refused
from tests.gateway.stand_in import StandIn
from voxbridge.shared.embedded.valkey_server import ValkeyServer
from voxbridge.shared.events import voice as ev
from voxbridge.shared.platform import keys
from voxbridge.shared.platform.keys import Wishes
from voxbridge.shared.store.usage import Took


def ahead(running: Running, seconds: int) -> None:
    """Set the clock of a gateway's door ahead."""
    running.gateway.platform.admittance._now_s = lambda: running.gateway.resources.clock.now_us() // 1_000_000 + seconds


async def test_no_key_an_unknown_one_and_one_that_was_changed_are_401(running: Running) -> None:
    _, text = await make_key(running, origins=(SHOP,))
    for wrong in (
        "",
        "pk_",
        "x" * 2_000,
        text[:-1] + ("A" if text[-1] != "A" else "B"),
        text.replace("_test_", "_live_"),
        f"{text}&key={text}",
    ):
        status, error = await refused(running, wrong)
        assert (status, error["field"]) == (401, "key"), wrong
    assert (await refused(running, "&".join("abcdefghijklmnopqrst")))[0] == 401


async def test_an_expired_key_is_401_from_its_second_on(running: Running) -> None:
    key, text = await make_key(running, origins=(SHOP,), seconds=3_600)
    ahead(running, 3_590)
    async with page(running, text):
        pass
    ahead(running, 3_601)
    status, error = await refused(running, text)
    assert (status, error["field"]) == (401, "key")
    assert key.id in error["message"]


async def test_a_rotated_key_counts_with_both_texts_for_the_overlap_and_a_revoked_one_with_none(running: Running) -> None:
    key, before = await make_key(running, origins=(SHOP,))
    accounts = running.gateway.platform.accounts
    _, after = await accounts.rotate(key.id, overlap_s=60)
    for text in (before, after):
        async with page(running, text):
            pass
    ahead(running, 61)
    assert (await refused(running, before))[0] == 401
    async with page(running, after):
        pass
    await accounts.revoke(key.id)
    assert (await refused(running, after))[0] == 401


@pytest.mark.parametrize(
    ("environment", "origin", "status"),
    [
        ("live", SHOP, 101),
        ("live", "https://SHOP.example", 101),
        ("live", "https://shop.example.evil.example", 403),
        ("live", "https://shop.example:8443", 403),
        ("live", "http://shop.example", 403),
        ("live", "null", 403),
        ("live", "http://127.0.0.1:8420", 403),
        ("live", None, 403),
        ("test", SHOP, 101),
        ("test", "null", 101),
        ("test", "http://localhost:5173", 101),
        ("test", "http://[::1]:3000", 101),
        ("test", "https://other.example", 403),
        ("test", "http://localhost.evil.example", 403),
        ("test", None, 403),
    ],
)
async def test_an_origin_is_judged_by_the_key_and_not_by_the_installation(
    running: Running, environment: Any, origin: str | None, status: int
) -> None:
    _, text = await make_key(running, environment=environment, origins=(SHOP,))
    if status == 101:
        async with page(running, text, origin=origin):
            return
    found, error = await refused(running, text, origin=origin)
    assert (found, error["field"]) == (status, "Origin")


async def test_a_key_opens_no_other_door_and_the_host_is_the_installations(running: Running) -> None:
    _, text = await make_key(running, origins=(SHOP,))
    assert (await refused(running, text, Host="evil.example"))[0] == 403
    answer = await running.get(f"/api/keys?key={text}", headers={"Origin": SHOP, "Authorization": f"Bearer {text}"})
    assert answer.status_code == 200, "the machine's owner needs no key"
    assert text not in answer.text


async def test_a_secret_key_is_for_the_header_of_a_server(running: Running, voice: StandIn) -> None:
    _, text = await make_key(running, kind="secret", environment="live")
    assert (await refused(running, text, origin=None))[0] == 401
    assert (await refused(running, "", Authorization=f"Bearer {text}"))[0] == 403
    async with page(running, "", origin=None, Authorization=f"Bearer {text}") as client:
        await client.say(CONFIGURE)
        await client.until("ready")


async def test_calls_at_a_time_are_counted_over_two_gateways(serve: Serve, nats_url: str, redis_url: str) -> None:
    first, second = await serve(nats_url, redis_url), await serve(nats_url, redis_url)
    key, text = await make_key(first, origins=(SHOP,), limits={"concurrent": 2})
    await eventually(lambda: key.id in second.gateway.platform.registry.keys)
    async with AsyncExitStack() as open_sockets:
        await open_sockets.enter_async_context(page(first, text))
        await open_sockets.enter_async_context(page(second, text))
        for gateway in (first, second):
            status, error = await refused(gateway, text)
            assert (status, error["field"], error["limit"]) == (429, "concurrent", 2)

    async def free() -> bool:
        return (await first.gateway.platform.usage.today(key.id))["concurrent"] == 0

    await eventually(free)
    async with page(second, text):
        pass


@pytest.mark.parametrize("what", ["seconds", "tokens"])
async def test_what_a_day_allows_is_refused_with_429_and_begins_anew_with_no_gateways_clock(running: Running, what: str) -> None:
    key, text = await make_key(running, origins=(SHOP,), limits={f"{what}_a_day": 100})
    usage = running.gateway.platform.usage
    took = {"seconds": 0, "tokens": 0}
    await usage.keep([Took(key.id, "x", **took | {what: 99}, leaves=True)])
    async with page(running, text):
        pass
    await usage.keep([Took(key.id, "x", **took | {what: 1}, leaves=True)])
    status, error = await refused(running, text)
    assert (status, error["field"], error["limit"]) == (429, f"{what}_a_day", 100)
    ahead(running, 86_400)
    assert (await refused(running, text))[0] == 429, "the day is that of Valkey's clock"


async def test_an_admitted_call_goes_on_and_is_resumed_when_the_day_is_used_up(running: Running, voice: StandIn) -> None:
    key, text = await make_key(running, origins=(SHOP,), limits={"concurrent": 1, "seconds_a_day": 50})
    async with page(running, text, v1=True) as client:
        await client.say(CONFIGURE)
        session = await voice.session()
        opened = await client.until("setup_complete")
        await running.gateway.platform.usage.keep([Took(key.id, session.sid, 50, 0)])
        await session.says(ev.UserSaid(text="hello", turn=1, source="text"))
        last = await client.until("transcript")
    async with page(running, text, v1=True) as client:
        assert (await client.resume(opened, last["seq"]))["recovered"]
        async with page(running, text, v1=True) as another:
            await another.say(CONFIGURE)
            assert (await another.until("error"))["code"] == "RATE_LIMITED"
    assert (await refused(running, text))[0] == 429


async def test_what_a_call_took_is_counted_and_recorded_though_its_client_left(running: Running, voice: StandIn) -> None:
    key, text = await make_key(running, origins=(SHOP,))
    async with page(running, text) as client:
        await client.say(CONFIGURE)
        session = await voice.session()
        await client.until("ready")
    usage = ev.Usage(input_tokens=30, output_tokens=12)
    await session.says(ev.TurnCompleted(number=1, reason="interrupted", usage=usage))
    await session.says(ev.SessionEnded(reason="client_gone", usage=usage))

    async def recorded() -> bool:
        await running.gateway.platform.calls.count_now()
        log = await voice.log.read("@shop", writer="gateway")
        return [(one.event.tokens, one.event.session) for one in log if one.type == "key.used"] == [(84, session.sid)]  # type: ignore[attr-defined]

    await eventually(recorded)
    today = await running.gateway.platform.usage.today(key.id)
    assert (today["calls"], today["tokens"], today["concurrent"]) == (1, 84, 0)


async def test_what_valkey_did_not_take_is_counted_the_next_time(
    serve: Serve, voice: StandIn, nats_url: str, own_valkey: Callable[[], ValkeyServer]
) -> None:
    valkey = own_valkey()
    running = await serve(nats_url, valkey.url)
    key, text = await make_key(running, origins=(SHOP,))
    async with page(running, text) as client:
        await client.say(CONFIGURE)
        session = await voice.session()
        await client.until("ready")
        counts = running.gateway.platform.calls
        valkey.kill()
        await session.says(ev.TurnCompleted(number=1, reason="completed", usage=ev.Usage(input_tokens=30, output_tokens=12)))
        await eventually(lambda: counts._calls[session.sid].tokens == 42)
        await counts.count_now()
        valkey.start()

        async def counted() -> int:
            await counts.count_now()
            return (await running.gateway.platform.usage.today(key.id))["tokens"]

        assert await eventually(counted) == 42


async def test_losing_valkey_loses_no_key(running: Running, redis_url: str) -> None:
    key, text = await make_key(running, origins=(SHOP,))
    async with Redis.from_url(redis_url) as redis:
        await redis.flushdb()
    async with page(running, text):
        pass
    assert key.id in running.gateway.platform.registry.keys


async def test_a_gateway_that_begins_knows_keys_and_approvals_of_before(
    running: Running, serve: Serve, nats_url: str, redis_url: str
) -> None:
    key, text = await make_key(running, origins=(SHOP,))
    gone, _ = await make_key(running, origins=(SHOP,))
    await running.gateway.platform.accounts.revoke(gone.id)
    later = await serve(nats_url, redis_url)
    await eventually(lambda: later.gateway.platform.registry.whole)
    assert set(later.gateway.platform.registry.keys) & {key.id, gone.id} == {key.id}
    async with page(later, text):
        pass


async def test_an_account_has_a_limited_number_of_keys(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voxbridge.services.gateway.platform.accounts.KEYS_LIMIT", 2)
    for _ in range(2):
        await make_key(running, account="crowded")
    with pytest.raises(Exception, match="at most 2 keys"):
        await make_key(running, account="crowded")


@pytest.mark.parametrize(
    ("wishes", "field"),
    [
        ({"account": "No Account"}, "account"),
        ({"environment": "live"}, "origins"),
        ({"environment": "live", "origins": ("null",)}, "origins"),
        ({"origins": ("https://*.example",)}, "origins"),
        ({"origins": ("https://shop.example/cart",)}, "origins"),
        ({"origins": ("shop.example",)}, "origins"),
        ({"origins": tuple(f"https://{n}.example" for n in range(33))}, "origins"),
        ({"limits": {"concurrent": 0}}, "limits.concurrent"),
        ({"limits": {"concurrent": 1_001}}, "limits.concurrent"),
        ({"limits": {"fame": 1}}, "limits.fame"),
        ({"name": "n" * 65}, "name"),
        ({"functions": ("f",) * 33}, "functions"),
        ({"seconds": -1}, "seconds"),
    ],
)
def test_terms_that_make_no_sense_name_the_field(wishes: dict[str, Any], field: str) -> None:
    with pytest.raises(Exception, match=field) as refusal:
        keys.terms(Wishes(**wishes), now_s=0, key_id="0" * 12)
    assert refusal.value.field == field  # type: ignore[attr-defined]


def test_an_origin_is_kept_as_browsers_send_it() -> None:
    assert [keys.origin_of(one) for one in ("https://Shop.example:443/", "http://shop.example:80", "http://[::1]:3000")] == [
        "https://shop.example",
        "http://shop.example",
        "http://[::1]:3000",
    ]


async def test_a_place_of_a_gateway_that_died_is_free_again(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voxbridge.shared.store.usage.PLACE_MS", 200)
    key, text = await make_key(running, origins=(SHOP,), limits={"concurrent": 1})
    usage = running.gateway.platform.usage
    assert await usage.enter(key.id, "of a dead gateway", key.limits) == ""
    assert (await refused(running, text))[0] == 429

    async def free() -> bool:
        return (await usage.today(key.id))["concurrent"] == 0

    await eventually(free)
    async with page(running, text):
        await asyncio.sleep(0)

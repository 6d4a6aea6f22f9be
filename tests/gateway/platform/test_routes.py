"""`/api/keys` and `/api/approvals`, for administrators and for the servers of an account."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.eventually import eventually
from tests.gateway.conftest import Running, Serve
from tests.gateway.platform.conftest import CONFIGURE, SHOP, make_key, page
from voxbridge.shared.secrets.secret_file import admin_token_file


def client_of(running: Running, token: str = "", **headers: str) -> httpx.AsyncClient:
    given = {"Authorization": f"Bearer {token}", **headers} if token else headers
    return httpx.AsyncClient(base_url=running.base, trust_env=False, headers=given, timeout=30)


async def test_a_key_is_made_listed_used_rotated_and_revoked(running: Running) -> None:
    await eventually(lambda: running.gateway.platform.registry.whole)
    async with client_of(running) as rest:
        made = (await rest.post("/api/keys", json={"account": "rest", "environment": "live", "origins": [SHOP]})).json()
        key_id, text = made["key"]["id"], made["text"]
        assert text.startswith(f"pk_live_{key_id}_")
        listed = await rest.get("/api/keys", params={"account": "rest"})
        assert [one["id"] for one in listed.json()["keys"]] == [key_id]
        assert text not in listed.text
        async with page(running, text):
            today = (await rest.get(f"/api/keys/{key_id}")).json()["today"]
            assert today == {"calls": 0, "seconds": 0, "tokens": 0, "concurrent": 1}
        rotated = (await rest.post(f"/api/keys/{key_id}/rotate", json={"overlap": 0})).json()["text"]
        assert rotated != text
        assert (await rest.delete(f"/api/keys/{key_id}")).status_code == 204
        assert (await rest.delete(f"/api/keys/{key_id}")).status_code == 404
        assert (await rest.post("/api/keys", json={"environment": "live"})).status_code == 422


@pytest.fixture
async def beyond(serve: Serve, nats_url: str, redis_url: str) -> Running:
    """A gateway that others than this machine reach."""
    return await serve(nats_url, redis_url, allowed_origins="https://studio.example")


async def test_keys_are_made_by_administrators_alone(beyond: Running) -> None:
    _, secret = await make_key(beyond, kind="secret")
    for token in ("", secret, "wrong"):
        async with client_of(beyond, token) as rest:
            for answer in (await rest.get("/api/keys"), await rest.post("/api/keys", json={}), await rest.get("/api/keys/0123456789ab")):
                assert answer.status_code == 401
    async with client_of(beyond, admin_token_file(beyond.gateway.resources.config).ensure()) as rest:
        assert (await rest.get("/api/keys")).status_code == 200


async def test_a_secret_key_approves_for_its_own_account_alone(beyond: Running) -> None:
    _, secret = await make_key(beyond, account="deploys", kind="secret")
    _, public = await make_key(beyond, account="deploys")
    body: dict[str, Any] = {"configuration": {name: CONFIGURE[name] for name in ("instructions", "greeting")}}
    async with client_of(beyond, secret) as rest:
        made = await rest.post("/api/approvals", json=body)
        assert made.status_code == 201
        digest = made.json()["digest"]
        assert [one["digest"] for one in (await rest.get("/api/approvals")).json()["approved"]] == [digest]
        assert (await rest.post("/api/approvals", json=body | {"account": "others"})).status_code == 403
        assert (await rest.get("/api/approvals", params={"account": "others"})).status_code == 403
        assert (await rest.get("/api/approvals", headers={"Origin": "https://studio.example"})).status_code == 403
        assert (await rest.delete(f"/api/approvals/{digest}")).status_code == 204
        assert (await rest.delete(f"/api/approvals/{digest}")).status_code == 404
    for token in ("", public):
        async with client_of(beyond, token) as rest:
            assert (await rest.post("/api/approvals", json=body)).status_code == 401


async def test_a_digest_is_approved_after_its_page_was_opened_once(running: Running) -> None:
    _, text = await make_key(running, account="clicks", environment="live", origins=(SHOP,))
    async with client_of(running) as rest:
        unknown = await rest.post("/api/approvals", json={"account": "clicks", "digest": "0" * 64})
        assert unknown.status_code == 404
        async with page(running, text) as client:
            await client.say(CONFIGURE)
            digest = (await client.until("error"))["limit"]
        made = await rest.post("/api/approvals", json={"account": "clicks", "digest": digest})
        assert made.json() == {"digest": digest}
        found = (await rest.get("/api/approvals", params={"account": "clicks"})).json()
        assert ([one["digest"] for one in found["approved"]], found["pending"]) == ([digest], [])

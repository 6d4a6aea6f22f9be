"""Secrets of accounts by `voxbridge secrets` and REST: sealed by the gateway, opened by the tool executor alone, shown to nobody."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from click.testing import CliRunner, Result

from tests.gateway.conftest import Running
from voxbridge.cli import cli
from voxbridge.services.gateway.rest.owners.secrets import BODY_LIMIT
from voxbridge.shared.platform.secrets import VALUE_LIMIT, Secrets, secrets_key_file
from voxbridge.shared.secrets import access_tokens
from voxbridge.shared.secrets.access_tokens import Wishes
from voxbridge.shared.secrets.vault import Vault

VALUE = "a-value-that-nobody-sees"


@pytest.fixture
def secrets(running: Running, monkeypatch: pytest.MonkeyPatch) -> Secrets:
    """The secrets as the tool executor of the same installation has them."""
    resources = running.gateway.resources
    Vault(secrets_key_file(resources.config)).publish(resources.config.secrets_public_key_path)
    monkeypatch.setenv("VOXBRIDGE_PORT", str(running.port))
    monkeypatch.setenv("VOXBRIDGE_DATA_DIR", str(resources.config.data_dir))
    return Secrets.of(resources.config, resources.redis)


async def run(*arguments: str, value: str = "") -> Result:
    return await asyncio.to_thread(CliRunner().invoke, cli, ["secrets", *arguments], input=value)


async def asks(running: Running, method: str, path: str, headers: dict[str, str] | None = None, **body: Any) -> httpx.Response:
    async with httpx.AsyncClient(base_url=running.base, trust_env=False, timeout=30, headers=headers) as client:
        return await client.request(method, f"/api/secrets{path}", json=body or None)


async def test_a_secret_is_set_listed_without_its_value_opened_by_the_executor_and_erased(secrets: Secrets) -> None:
    done = await run("set", "WEATHER", "--account", "shop", "--host", "api.weather.example", "--query", value=f"{VALUE}\n")
    assert (done.exit_code, VALUE in done.output) == (0, False), done.output
    opened = (await secrets.opened("shop", "test"))["WEATHER"]
    assert (opened.value, opened.rule.hosts, opened.rule.query) == (VALUE, ("api.weather.example",), True)
    assert await secrets.opened("shop", "live") == {}
    listed = await run("ls", "--account", "shop")
    assert "WEATHER" in listed.output
    assert "api.weather.example" in listed.output
    assert VALUE not in listed.output
    assert (await run("forget", "WEATHER", "--account", "shop")).exit_code == 0
    assert "has no secret" in (await run("ls", "--account", "shop")).output
    assert "There is no test secret WEATHER" in str((await run("forget", "WEATHER", "--account", "shop")).exception)


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/test/weather", {"value": VALUE, "rule": {"hosts": ["a.example"]}}, "name"),
        ("/test/WEATHER", {"value": VALUE}, "hosts"),
        ("/test/WEATHER", {"value": "x" * (VALUE_LIMIT + 1), "rule": {"hosts": ["a.example"]}}, "value"),
        ("/test/WEATHER", {"value": VALUE, "rule": {"hosts": ["not a host"]}}, "hosts"),
        ("/other/WEATHER", {"value": VALUE}, "environment"),
        ("/test/WEATHER", {"value": "x" * BODY_LIMIT}, "body"),
    ],
)
async def test_what_is_wrong_is_refused_with_its_field(
    running: Running, secrets: Secrets, path: str, body: dict[str, Any], field: str
) -> None:
    refused = await asks(running, "PUT", path, **body)
    assert (refused.status_code, refused.json()["field"]) == (422, field)
    assert VALUE not in refused.text
    assert await secrets.known("local") == []


async def test_an_access_token_neither_sees_nor_sets_secrets(running: Running, secrets: Secrets) -> None:
    terms = access_tokens.terms(Wishes(), now_s=running.gateway.access._now_s(), modes=())
    headers = {"authorization": f"Bearer {access_tokens.sign(terms, running.gateway.access.secret())}"}
    assert (await asks(running, "GET", "", headers)).status_code == 403
    assert (await asks(running, "PUT", "/test/WEATHER", headers, value=VALUE, rule={"hosts": ["a.example"]})).status_code == 403
    assert await secrets.known("local") == []

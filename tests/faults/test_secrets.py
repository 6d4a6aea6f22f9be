"""No key, token or secret is in any output of a whole installation: log lines of every process at debug level, every message on the bus,
the event log, every answer to clients and over HTTP. The searched call goes through every fault."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
import time
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from nats.aio.msg import Msg

from tests.eventually import BOUND_S
from tests.fakes.gemini.turns import Call, Turn
from tests.faults import orders
from tests.faults.caller import Caller
from tests.faults.guarded import Guarded
from tests.faults.installation import KEY, ROOT, Installation, installed
from tests.gateway.conftest import Address
from tests.voice.realtime_calls import UTTERANCE
from voxbridge.shared.bus import subjects
from voxbridge.shared.secrets import access_tokens
from voxbridge.shared.secrets.access_tokens import Wishes

pytestmark = pytest.mark.timeout(400)
SESSION_TOKEN = "session-token-of-a-client-0123456789"
STORED = "AIza-stored-by-an-administrator-0123456789"
REFUSED = "AIza-that-google-refuses-0123456789"
WRONG = "sk-with a space-0123456789"
STRANGER = "not-the-token-of-anybody-0123456789abcdefghi"
ENVIRONMENT = {
    "GEMINI_API_KEY": KEY,
    "ANTHROPIC_API_KEY": "sk-ant-of-the-installation-0123456789",
    "OPENAI_API_KEY": "sk-proj-of-the-installation-0123456789",
    "VOXBRIDGE_KEY_GROQ": "gsk-of-the-installation-0123456789",
    "VOXBRIDGE_STT_KEY": "stt-of-the-installation-0123456789",
    "VOXBRIDGE_LLM_KEY": "llm-of-the-installation-0123456789",
    "VOXBRIDGE_TTS_KEY": "tts-of-the-installation-0123456789",
}
Said = dict[str, bytes]
"""Captured output, by its source."""


def forms(secret: str) -> Iterator[bytes]:
    """Yield a secret in plain and encoded forms."""
    raw = secret.encode()
    yield from {raw, quote(secret).encode(), raw.hex().encode(), json.dumps(secret)[1:-1].encode()}
    for shift in range(3):  # base64 of a text that contains the secret at any offset
        inner = base64.b64encode(bytes(shift) + raw)[4 * (shift > 0) : -4]
        yield from {inner, inner.replace(b"+", b"-").replace(b"/", b"_")}


def found(said: Said, secrets: dict[str, str]) -> list[str]:
    """Return which secret appears where."""
    return [
        f"{name} in {where}" for name, secret in secrets.items() for where, data in said.items() if any(f in data for f in forms(secret))
    ]


class Listener:
    """A subscriber to everything on the bus."""

    def __init__(self, installation: Installation) -> None:
        self.heard: list[bytes] = []
        self._installation = installation

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        connection = await self._installation.servers.connect()
        await connection.subscribe(">", cb=self._hear)
        await connection.flush()
        try:
            yield
        finally:
            await connection.close()

    async def _hear(self, message: Msg) -> None:
        self.heard.append(_bytes(message))


def _bytes(message: Msg) -> bytes:
    return message.subject.encode() + json.dumps(dict(message.headers or {})).encode() + message.data


class Owner:
    """An administrator of the installation over HTTP, with all answers."""

    def __init__(self, installation: Installation, token: str) -> None:
        self.answers: list[bytes] = []
        self._base = f"http://127.0.0.1:{installation.config.port}"
        self._token = token
        terms = access_tokens.terms(Wishes(account="ada"), now_s=int(time.time()), modes=())
        self.access_token = access_tokens.sign(terms, token)

    async def asks(self, method: str, path: str, *, token: str = "", **options: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token or self._token}"}
        async with httpx.AsyncClient(base_url=self._base, trust_env=False, timeout=30, headers=headers) as client:
            answer = await client.request(method, path, **options)
        self.answers.append(str(answer.headers).encode() + answer.content)
        return answer

    async def until_whole(self) -> None:
        """Wait until everything is connected again; output during an outage would be lost."""
        async with asyncio.timeout(BOUND_S):
            while True:
                found = (await self.asks("GET", "/readyz")).json()["dependencies"]
                if all(found[name]["ok"] for name in ("nats", "valkey", "voice", "tools")):
                    return

    async def looks_everywhere(self, sid: str) -> None:
        """Read everything that a gateway reports about a session and about itself."""
        of_it = [f"/api/sessions/{sid}{rest}" for rest in ("", "/events?limit=1000", "/state")]
        of_all = [
            "/healthz",
            "/readyz",
            "/metrics",
            "/api/sessions",
            "/api/agents",
            "/api/vox/status",
            "/api/vox/functions",
            "/api/config/keys",
        ]
        for path in [*of_it, *of_all]:
            await self.asks("GET", path)


async def eventful_call(there: Installation, caller: Caller, owner: Owner, folder: Path) -> None:
    """Have a call in which everything dies once, a key changes, one is refused, and strangers try to get access."""
    google = there.google
    google.says(Turn(says="Hello."))
    await caller.start(mode="gemini", agent="triage", session_token=SESSION_TOKEN, token=owner.access_token)
    await caller.types("Hello?")
    await caller.until("turn_complete", turn=1)

    for key, token in ((WRONG, ""), (STORED, STRANGER)):
        assert (await owner.asks("POST", "/api/config/keys", token=token, json={"provider": "gemini", "key": key})).is_client_error
    assert (await owner.asks("POST", "/api/config/keys", json={"provider": "gemini", "key": REFUSED})).status_code == 204
    google.options.keys = {KEY, STORED}
    google.options.close_codes["key"] = (1007, f"API key not valid: {REFUSED}. Please pass a valid API key.")
    google.kill()
    await caller.until("provider", status="lost", count=2)
    assert (await owner.asks("POST", "/api/config/keys", json={"provider": "gemini", "key": STORED})).status_code == 204
    await spoken(there, caller, folder / "1")
    assert {one.key for one in google.sessions} == {KEY, REFUSED, STORED}

    async with Address(there.config.port).client() as stranger:
        refused = await stranger.resume({"sessionId": caller.sid, "resumeToken": STRANGER}, 0, answer="error")
        assert refused["code"] == "NOT_FOUND"
    await there.kill("gateway")
    await there.start("gateway")
    await caller.resumed()
    await spoken(there, caller, folder / "2")

    await there.kill(await there.owner(caller.sid))
    await caller.until("restored")
    await spoken(there, caller, folder / "3", dies="tools")
    there.nats.kill()
    there.nats.start()
    await there.servers.prepare()
    there.valkey.kill()
    there.valkey.start()
    await owner.until_whole()
    await spoken(there, caller, folder / "4")
    await owner.looks_everywhere(caller.sid)
    await caller.ends()


async def spoken(there: Installation, caller: Caller, folder: Path, *, dies: str = "") -> None:
    """Have a spoken turn with a function in it; the process `dies` is killed while the function runs."""
    folder.mkdir()  # noqa: ASYNC240 - a folder of the test
    number = len(caller.facts("turn_complete")) + 1
    call = Call("book", {"folder": str(folder)})
    there.google.says(Turn(hears="A table, please.", calls=(call,), after="It is yours.", blocking=True), Turn(says="It is yours."))
    await caller.speaks(UTTERANCE)
    await there.begun(folder, 1)
    if dies:
        await there.kill(dies)
        await there.start(dies)
    orders.release(folder)
    await caller.until("turn_complete", number)


async def stored(there: Installation) -> bytes:
    """Return the whole event log; messages of the audio stream were captured on the bus."""
    kept: list[bytes] = []
    async with there.log() as log:
        last = (await log.js.stream_info(subjects.EVENT_STREAM)).state.last_seq
        for seq in range(1, last + 1):
            message = await log.js.get_msg(subjects.EVENT_STREAM, seq, direct=True)
            kept.append(str(message.subject).encode() + json.dumps(dict(message.headers or {})).encode() + (message.data or b""))
    return b"\n".join(kept)


async def test_no_secret_is_in_anything_that_an_installation_writes_or_says(tmp_path: Path) -> None:
    servers = Guarded(tmp_path)
    # With a host other than loopback, an administrator needs the token.
    settings = {"log_level": "debug", "allowed_hosts": "voice.example", "endpoints": "groq=http://127.0.0.1:9/v1"}
    async with installed(tmp_path, servers, env=ENVIRONMENT, **settings) as there:
        owner, caller, listener = Owner(there, servers.secrets()["gateway/admin.token"]), Caller(there.config.port), Listener(there)
        try:
            async with listener.listening():
                await eventful_call(there, caller, owner, tmp_path)
        finally:
            await caller.stop()
        streams = await stored(there)
        handles = {f"handle {one}": one for one in there.google.handles.issued}
        await there.stop()
    own = [one for one in caller.told if one["type"] != "setup_complete"]  # `setup_complete` legitimately contains the owner's token
    said: Said = {
        "the log of the services": "".join(there.written()).encode(),
        "the log of nats-server": b"".join(path.read_bytes() for path in servers.nats.folder.glob("*.log")),
        "the log of Valkey": b"".join(path.read_bytes() for path in servers.valkey.folder.glob("*.log")),
        "the bus": b"\n".join(listener.heard),
        "the event log": streams,
        "what the client was told": json.dumps(own).encode(),
        "the answers over HTTP": b"\n".join(owner.answers),
    }
    _was_searched(said, caller.sid)
    secrets = {
        **ENVIRONMENT, **servers.secrets(), **handles,
        "session_token": SESSION_TOKEN, "resume token": caller.token, "stored key": STORED, "refused key": REFUSED, "wrong key": WRONG,
        "stranger's token": STRANGER, "access token": owner.access_token,
    }  # fmt: skip
    assert len(handles) >= 5
    assert len(secrets) >= 25
    assert found(said, secrets) == []
    for where, data in said.items():  # the search must find a planted secret
        planted = {**said, where: data + b" " + base64.b64encode(b"key=" + STORED.encode())}
        assert found(planted, secrets) == [f"stored key in {where}"]


def _was_searched(said: Said, sid: str) -> None:
    """Check that the captured output is complete: of this call, and at debug level."""
    of_it = ("the log of the services", "the bus", "the event log", "what the client was told", "the answers over HTTP")
    assert [where for where in of_it if sid.encode() not in said[where]] == []
    for service in ("gateway", "voice", "tools"):
        assert f" {service}-".encode() in said["the log of the services"]
    for word in (b" debug ", b" warning ", b"voice serves", b"lost its worker"):
        assert word in said["the log of the services"], word
    for kind in (b"session.requested", b"voice.journal", b"tools.journal", b"provider.lost", b"resumption.updated"):
        assert kind in said["the bus"], kind
        assert kind in said["the event log"], kind
    assert subjects.audio_in(sid).encode() in said["the bus"]
    assert said["the log of Valkey"]
    assert said["the log of nats-server"]


@pytest.mark.parametrize("form", ["plain", "hex", "quoted", "json", *(f"base64 at {shift}" for shift in range(4))])
def test_the_search_finds_a_planted_secret(form: str) -> None:
    secret = 'sk-"planted"/+ 0123456789?'
    planted = {
        "plain": secret.encode(),
        "hex": secret.encode().hex().encode(),
        "quoted": quote(secret).encode(),
        "json": json.dumps({"key": secret}).encode(),
        **{f"base64 at {shift}": base64.b64encode(b"x" * shift + secret.encode() + b"tail") for shift in range(4)},
    }
    said = {"here": b"before " + planted[form] + b" after", "there": b"nothing"}
    assert found(said, {"a": secret, "b": "another-secret-0123456789"}) == ["a in here"]


@pytest.mark.parametrize("service", ["gateway", "voice", "tools"])
async def test_a_service_that_cannot_start_does_not_say_its_secrets(nats_url: str, tmp_path: Path, service: str) -> None:
    seed, password = "SUAMISTYPEDSEEDOFASERVICE0123456789ABCDEFGHIJKLMNOPQRSTUVW", "password-of-valkey-0123456789"
    (tmp_path / "seed").write_text(seed)
    mistyped = {"VOXBRIDGE_REDIS_URL": f"valkey://:{password}@127.0.0.1:1/0"}
    unusable = {"VOXBRIDGE_REDIS_URL": f"redis://:{password}@127.0.0.1:1/0", "VOXBRIDGE_NATS_SEED_FILE": str(tmp_path / "seed")}
    for settings in (mistyped, unusable):
        env = {"PATH": os.environ["PATH"], **ENVIRONMENT, "VOXBRIDGE_LOG_LEVEL": "debug", "VOXBRIDGE_NATS_URL": nats_url, **settings}
        failing = await asyncio.create_subprocess_exec(
            sys.executable, "-m", f"voxbridge.services.{service}", cwd=ROOT, env=env, stdout=PIPE, stderr=STDOUT
        )
        output, _ = await asyncio.wait_for(failing.communicate(), BOUND_S)
        assert failing.returncode, "it did not start"
        assert output, "it said why"
        assert found({"its output": output}, {**ENVIRONMENT, "seed": seed, "password": password, "NATS": nats_url}) == []

"""The outside of one call: what its handler asks for is done here, by the tools service, and the values of secrets stay here.

Owns the stand-ins of a call, which are random and worth nothing after it, and the answers to `ctx.fetch` and `ctx.hmac`. Does not own the
sending (`voxbridge.services.tools.sandbox.fetching`). Nothing lasts here.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import secrets as chance
from collections.abc import Mapping
from typing import Final

from voxbridge.services.tools.sandbox.fetching import Answer, Request, Requests
from voxbridge.services.tools.sandbox.frames import AnswerFrame, AskFrame
from voxbridge.services.tools.sandbox.masking import Masks
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.fetch import Fetcher
from voxbridge.shared.platform.secrets import Opened

FETCH_S: Final = 10.0
"""Seconds that a request may take, unless the handler says otherwise."""

FETCH_LIMIT_S: Final = 29.0
_ALGORITHMS: Final = {"SHA-1": hashlib.sha1, "SHA-256": hashlib.sha256, "SHA-384": hashlib.sha384, "SHA-512": hashlib.sha512}


class Outside:
    """The outside of one call of an account with these secrets."""

    def __init__(self, fetcher: Fetcher, secrets: Mapping[str, Opened], hosts: tuple[str, ...] = ()) -> None:
        self.stand_ins: Final = {name: f"vxs_{chance.token_hex(16)}" for name in secrets}
        self._secrets = secrets
        self.masks: Final = Masks([one.value for one in secrets.values()])
        by_stand_in = {self.stand_ins[name]: one for name, one in secrets.items()}
        self._requests = Requests(fetcher, by_stand_in, self.masks, hosts)

    async def answer(self, ask: AskFrame) -> AnswerFrame:
        """Do what a handler asks, and return the answer; an error is one too, without the value of a secret."""
        try:
            if ask.what == "hmac":
                return AnswerFrame(id=ask.id, ok=True, text=self._signed(ask))
            return await self._fetched(ask)
        except VoxbridgeError as error:
            return AnswerFrame(id=ask.id, ok=False, message=self.masks.text(error.message))
        except TimeoutError:
            return AnswerFrame(id=ask.id, ok=False, message="The request was not answered in time.")

    async def _fetched(self, ask: AskFrame) -> AnswerFrame:
        request = Request(
            url=ask.url,
            method=ask.method,
            headers=tuple(ask.headers),
            body=None if ask.body is None else _unpacked(ask.body),
            redirect=ask.redirect,
        )
        wanted = (ask.timeout or 0) / 1_000
        async with asyncio.timeout(min(wanted, FETCH_LIMIT_S) if wanted > 0 else FETCH_S):
            return self._told(ask.id, await self._requests.send(request))

    def _told(self, number: int, answer: Answer) -> AnswerFrame:
        reply = answer.reply
        headers = [(name.lower(), value) for name, value in reply.headers]
        try:
            text, data = reply.body.decode().removeprefix("\ufeff"), None
        except UnicodeDecodeError:
            text, data = None, base64.b64encode(reply.body).decode()
        return AnswerFrame(
            id=number,
            ok=True,
            status=reply.status,
            status_text=reply.reason,
            url=self.masks.text(answer.url),
            redirected=answer.redirected,
            headers=headers,
            text=text,
            bytes=data,
        )

    def _signed(self, ask: AskFrame) -> str:
        secret = self._secrets.get(ask.name)
        if secret is None:
            raise VoxbridgeError(Code.NOT_FOUND, f"There is no secret {ask.name[:64]!r} to sign with.", field="name")
        if not secret.rule.signs:
            message = f"The secret {secret.name} does not sign; `voxbridge secrets set {secret.name} --signs` lets it."
            raise VoxbridgeError(Code.PERMISSION_DENIED, message, field="name")
        algorithm = _ALGORITHMS.get(ask.algorithm.upper())
        if algorithm is None or ask.encoding not in ("hex", "base64", "base64url"):
            known = ", ".join(_ALGORITHMS)
            message = f"ctx.hmac has the algorithms {known} and the encodings hex, base64 and base64url."
            raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field="algorithm")
        made = hmac.new(secret.value.encode(), _unpacked(ask.data), algorithm).digest()
        if ask.encoding == "hex":
            return made.hex()
        text = base64.b64encode(made).decode()
        return text if ask.encoding == "base64" else text.replace("+", "-").replace("/", "_").rstrip("=")


def _unpacked(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise VoxbridgeError(Code.INVALID_ARGUMENT, "The body of a request could not be read.", field="body") from error

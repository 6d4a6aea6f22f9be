"""`/api/keys` and `/api/approvals`: keys of accounts, and the configurations that live keys may run (docs/platform.md).

Owns the routes. Does not own keys and approvals (`voxbridge.services.gateway.platform`), which are events in the accounts' logs. Nothing is
lost in a crash here: what was answered is in the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import msgspec
from fastapi import APIRouter, Depends, Path, Query, Request, Response
from pydantic import BaseModel

from voxbridge.services.gateway.platform.registry import KnownKey
from voxbridge.services.gateway.rest import bodies
from voxbridge.services.gateway.rest.errors import refused
from voxbridge.services.gateway.rest.owners.bodies import APPROVAL, KEY, ROTATION
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.platform import keys
from voxbridge.shared.platform.handlers import Configuration, GivenTool, changes, configuration_of
from voxbridge.shared.platform.keys import Key, Wishes
from voxbridge.shared.secrets.access_tokens import ACCOUNT, LOCAL

if TYPE_CHECKING:
    from voxbridge.services.gateway.rest.context import Context

_T = TypeVar("_T")
APPROVAL_LIMIT: Final = 512 * 1024
"""Bytes of a configuration that is approved by its text."""

OVERLAP_S: Final = 86_400
"""Seconds for which the former text of a rotated key counts, unless told otherwise."""

_Account = Annotated[str, Query(pattern=f"^{ACCOUNT.pattern}$")]
_KeyId = Annotated[str, Path(pattern="^[0-9a-f]{12}$")]
_Digest = Annotated[str, Path(pattern="^[0-9a-f]{64}$")]
_ANSWERS: Final[dict[int | str, dict[str, Any]]] = {
    401: refused("An administrator's token, or a secret key of the account, is needed"),
    403: refused("This Host or Origin is not allowed, or an access token was shown"),
    404: refused("There is no such key or configuration"),
    422: refused("An argument is out of its range"),
    429: refused("The account has as many as it may have"),
    503: refused("The log or Valkey is away"),
    504: refused("The body did not come in time"),
}


class KeyShown(BaseModel):
    """A key without its text, which nobody can be shown again."""

    id: str
    account: str
    kind: str
    environment: str
    name: str
    origins: list[str]
    mode: str
    model: str
    voice: str
    agent: str
    functions: list[str]
    expires_s: int
    expired: bool
    limits: dict[str, int]


class KeyList(BaseModel):
    """Keys, oldest first."""

    keys: list[KeyShown]


class KeyMade(BaseModel):
    """A key and its text."""

    text: str
    key: KeyShown


class KeyUse(BaseModel):
    """A key and what of its limits is used today (UTC)."""

    key: KeyShown
    today: dict[str, int]


class ConfigurationShown(BaseModel):
    """A configuration: `changes` are those since the newest approved one, by path."""

    digest: str
    configuration: dict[str, Any]
    changes: dict[str, str]
    by: str = ""
    key: str = ""
    origin: str = ""
    asked_ms: int = 0


class Approvals(BaseModel):
    """Configurations that are approved, and those that pages with a live key asked for and nobody approved; the newest first."""

    approved: list[ConfigurationShown]
    pending: list[ConfigurationShown]


class Approved(BaseModel):
    """The digest of what is approved now."""

    digest: str


class _Rotation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    overlap: int = OVERLAP_S


class _Tool(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    handler: str
    description: str = ""
    parameters: dict[str, Any] | None = None


class _Given(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    instructions: str = ""
    greeting: str = ""
    tools: dict[str, _Tool] = {}


class _Approval(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    account: str = ""
    digest: str = ""
    configuration: _Given | None = None


def router(gateway: Context) -> APIRouter:
    """Build the routes of a gateway."""
    platform = gateway.platform

    def now_s() -> int:
        return gateway.resources.clock.now_us() // 1_000_000

    made = APIRouter(prefix="/api/keys", tags=["keys"], dependencies=[Depends(gateway.access.administrator)], responses=_ANSWERS)

    @made.get("", response_model=KeyList)
    async def listed(account: Annotated[str, Query(pattern=f"^({ACCOUNT.pattern})?$")] = "") -> Any:
        """List the keys of an account, or of all accounts."""
        platform.registry.find("")
        return {"keys": [_shown(one, now_s()) for one in platform.registry.of(account)]}

    @made.post("", response_model=KeyMade, status_code=201, openapi_extra=_body(KEY))
    async def make(request: Request) -> Any:
        """Make a key. Its text is shown once, here."""
        key, text = await platform.accounts.make(await _read(request, Wishes))
        return {"text": text, "key": _shown(KnownKey(key, ()), now_s())}

    @made.get("/{key_id}", response_model=KeyUse)
    async def used(key_id: _KeyId) -> Any:
        """Show a key, and what of its limits is used today."""
        known = platform.accounts.known(key_id)
        return {"key": _shown(known, now_s()), "today": await platform.usage.today(key_id)}

    @made.post("/{key_id}/rotate", response_model=KeyMade, openapi_extra=_body(ROTATION))
    async def rotate(key_id: _KeyId, request: Request) -> Any:
        """Give a key another text; the former one counts for `overlap` seconds more."""
        key, text = await platform.accounts.rotate(key_id, overlap_s=(await _read(request, _Rotation)).overlap)
        return {"text": text, "key": _shown(KnownKey(key, ()), now_s())}

    @made.delete("/{key_id}", status_code=204)
    async def revoke(key_id: _KeyId) -> Response:
        """Make a key count no more. Calls that it opened go on to their limits."""
        await platform.accounts.revoke(key_id)
        return Response(status_code=204)

    return made


def approvals(gateway: Context) -> APIRouter:
    """Build the routes of approvals, for administrators and for the owner's servers."""
    platform = gateway.platform

    async def owner(request: Request) -> None:
        """Let administrators and secret keys in, before anything of the request is read."""
        text = _bearer(request)
        request.state.key = None
        if not keys.is_secret(text):
            await gateway.access.administrator(request)
            return
        request.state.key = platform.admittance.key_of(text)
        if "origin" in request.headers:
            raise VoxbridgeError(Code.PERMISSION_DENIED, "A secret key is for servers, and a page sent this.", field="Origin")

    made = APIRouter(prefix="/api/approvals", tags=["keys"], dependencies=[Depends(owner)], responses=_ANSWERS)

    @made.get("", response_model=Approvals)
    async def listed(request: Request, account: _Account = LOCAL) -> Any:
        """List what is approved, and what waits for it."""
        account, _ = _acting(request, account if "account" in request.query_params else "")
        platform.registry.find("")
        newest = platform.registry.newest(account) or Configuration()
        approved = [
            {"digest": one.digest, "configuration": msgspec.to_builtins(one.configuration), "changes": {}, "by": one.by}
            for one in reversed(list(platform.registry.approved(account).values()))
        ]
        pending = [
            {
                "digest": one.digest,
                "configuration": msgspec.to_builtins(one.configuration),
                "changes": dict(changes(newest, one.configuration)),
                "key": one.key_id,
                "origin": one.origin,
                "asked_ms": one.asked_ms,
            }
            for one in await platform.usage.pending(account)
        ]
        return {"approved": approved, "pending": pending}

    @made.post("", response_model=Approved, status_code=201, openapi_extra=_body(APPROVAL))
    async def approve(request: Request) -> Any:
        """Approve a configuration: by its digest, if a page asked for it, or by its text."""
        asked = await _read(request, _Approval, limit=APPROVAL_LIMIT)
        account, by = _acting(request, asked.account)
        configuration = await _configuration(gateway, account, asked)
        digest = await platform.accounts.approve(account, configuration, by=by)
        await platform.usage.drop_pending(account, digest)
        return {"digest": digest}

    @made.delete("/{digest}", status_code=204)
    async def withdraw(request: Request, digest: _Digest, account: _Account = LOCAL) -> Response:
        """Withdraw an approval. Calls that run go on."""
        account, _ = _acting(request, account if "account" in request.query_params else "")
        await platform.accounts.withdraw(account, digest)
        return Response(status_code=204)

    return made


def _acting(request: Request, account: str) -> tuple[str, str]:
    """Return the account that a request acts for, and who acts. Raises `PERMISSION_DENIED`."""
    key: Key | None = request.state.key
    if key is None:
        return account or LOCAL, "admin"
    if account not in ("", key.account):
        raise VoxbridgeError(Code.PERMISSION_DENIED, f"This key is of {key.account!r}.", field="account")
    return key.account, key.id


async def _configuration(gateway: Context, account: str, asked: _Approval) -> Configuration:
    given = asked.configuration
    if given is not None:
        tools = [
            GivenTool(name=name, description=one.description, parameters=one.parameters, handler=one.handler)
            for name, one in given.tools.items()
        ]
        return configuration_of(instructions=given.instructions, greeting=given.greeting, tools=tools)
    for one in await gateway.platform.usage.pending(account):
        if one.digest == asked.digest:
            return one.configuration
    message = (
        f"No page with a live key of {account!r} asked for {asked.digest[:64]!r} in the last day. Open the page once, "
        "or give `configuration` instead."
    )
    raise VoxbridgeError(Code.NOT_FOUND, message, field="digest")


def _shown(known: KnownKey, now_s: int) -> dict[str, Any]:
    key = known.key
    shown = {name: getattr(key, name) for name in key.__struct_fields__}
    shown |= {"origins": list(key.origins), "functions": list(key.functions), "limits": msgspec.structs.asdict(key.limits)}
    return {**shown, "expired": bool(key.expires_s) and now_s >= key.expires_s}


def _bearer(request: Request) -> str:
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    return given.strip() if scheme.lower() == "bearer" else ""


def _body(schema: dict[str, Any]) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


async def _read(request: Request, kind: type[_T], *, limit: int = bodies.BODY_LIMIT) -> _T:
    try:
        return msgspec.convert(_whole(msgspec.json.decode(await bodies.read(request, limit=limit))), type=kind)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise VoxbridgeError(Code.INVALID_ARGUMENT, f"The body is not the expected JSON: {str(error)[:200]}.", field="body") from None


def _whole(value: Any) -> Any:
    """Return a value of JSON with whole numbers as such: `60.0` is an integer in JSON Schema."""
    if isinstance(value, dict):
        return {name: _whole(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_whole(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value

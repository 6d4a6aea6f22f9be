"""Sessions that functions ask for, and who may have one: the messages on `vx.svc.gateway.<verb>`, and the client that asks.

Owns their shapes and limits. Does not own the sessions: the gateway writes the request, a voice worker takes it like any other. Each
question may be asked again without another effect, so an asker that was killed asks again; one that is not answered is `UNAVAILABLE`.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Annotated, Final, Literal, TypeVar

import msgspec
from msgspec import Meta
from nats.aio.client import Client
from nats.errors import Error as NatsError

from voxbridge.shared.bus.accounts import gateway_subject
from voxbridge.shared.errors import Code, VoxbridgeError

TEXT_LIMIT: Final = 8_192
"""Characters of what a child session is asked."""

RUN_SECONDS: Final = 600
EXPERT_SECONDS: Final = 4 * 3_600
RUN_TOKENS: Final = 100_000
EXPERT_TOKENS: Final = 400_000
"""Limits of a child session, for one that answers once (`RUN`) and for a thread of questions (`EXPERT`)."""

OPEN_LIMIT: Final = 8
"""Child sessions that an account may have open."""

DEPTH_LIMIT: Final = 1
"""Depth of child sessions: one that a function asked for may not ask for another one."""

THREADS_LIMIT: Final = 8
"""Threads with one expert that a session may have one after the other, when earlier ones reached a limit."""

ANSWER_S: Final = 5.0
"""Seconds that the gateway may take to answer."""

Kind = Literal["run", "expert"]
Text = Annotated[str, Meta(min_length=1, max_length=TEXT_LIMIT)]
Sid = Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]


class Put(msgspec.Struct, frozen=True, kw_only=True):
    """Put a text into the session `child`, which is opened with the agent if it is not there yet. `text_id` names the text: the same text
    sent again is one text. `call_id` is the call in the log `parent` for which this is done."""

    parent: Annotated[str, Meta(min_length=1, max_length=65)]
    call_id: Annotated[str, Meta(min_length=1, max_length=128)]
    child: Sid
    agent: Annotated[str, Meta(min_length=1, max_length=64)]
    kind: Kind
    text: Text
    text_id: Annotated[str, Meta(min_length=1, max_length=64)]


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """The log has the text. `opened` is false where the session was there already."""

    child: str
    opened: bool


class Card(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An agent, or a pipeline, as functions are told of it. `missing` are the providers that it needs and that have no key; `speaks` is
    true for one that only speaks, and so cannot work in the background."""

    name: str
    role: str = ""
    description: str = ""
    pipeline: bool = False
    expert: bool = False
    knowledge: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    speaks: bool = False


class Cards(msgspec.Struct, frozen=True, kw_only=True):
    """The agents and pipelines of the installation, by name."""

    agents: tuple[Card, ...]


_A = TypeVar("_A")


def child_of(parent: str, *what: str) -> str:
    """Return the id of the session that is asked for in the log `parent`; the same for the same words, so that it is opened once."""
    return sha256("\n".join((parent, *what)).encode()).hexdigest()[:32]


async def cards(nc: Client) -> tuple[Card, ...]:
    """Ask for the agents. Raises as `_ask`."""
    return (await _ask(nc, "agents", b"", Cards)).agents


async def put(nc: Client, asked: Put) -> Taken:
    """Put a text into a child session.

    Raises `NOT_FOUND` (the agent, the parent), `PERMISSION_DENIED` beyond `DEPTH_LIMIT`, `OVERLOADED` beyond `OPEN_LIMIT`, `CONFLICT` when
    the session has ended, and as `_ask`.
    """
    return await _ask(nc, "child", msgspec.json.encode(asked), Taken)


async def _ask(nc: Client, verb: str, message: bytes, answer: type[_A]) -> _A:
    try:
        reply = await nc.request(gateway_subject(verb), message, timeout=ANSWER_S)
    except (NatsError, TimeoutError) as error:
        raise VoxbridgeError(Code.UNAVAILABLE, "No gateway answers, and agents are asked through it. Try again.", retryable=True) from error
    if (reply.headers or {}).get("Nats-Service-Error-Code"):
        raise _error(reply.data)
    return msgspec.json.decode(reply.data, type=answer)


def _error(data: bytes) -> VoxbridgeError:
    try:
        return VoxbridgeError.from_dict(msgspec.json.decode(data, type=dict[str, object]))
    except (msgspec.MsgspecError, ValueError, KeyError):
        return VoxbridgeError(Code.INTERNAL, "The gateway answered with an error that it does not explain.")

"""Questions to the awareness service and its answers: the messages on `vx.svc.awareness.<verb>`, and the client that asks.

Owns their shapes. Does not own what is known (`voxbridge.services.awareness`). A question that is not answered in time is `UNAVAILABLE`;
each may be asked again without another effect.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Generic, TypeVar

import msgspec
from msgspec import Meta
from nats.aio.client import Client
from nats.errors import Error as NatsError

from voxbridge.shared.awareness.view import View
from voxbridge.shared.bus.accounts import awareness_subject
from voxbridge.shared.errors import Code, VoxbridgeError

ANSWER_S: Final = 5.0
AWAY: Final = "The awareness service does not answer, so agents know of the screen what they were told last. Start it, or look at its log."

_A = TypeVar("_A")


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """Knowledge of an account's screen: the entries that agents are told, the sources that are off, visits by page, and how many errors
    are open."""

    view: View
    off: tuple[str, ...]
    counts: dict[str, int]
    errors: int


class Rebuilt(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a fold of the whole log: whether it gave what the service had, of how many inputs, and how long it took."""

    equal: bool
    inputs: int
    ms: int


class Forgotten(msgspec.Struct, frozen=True, kw_only=True):
    """All of it is forgotten, and erased."""


class Question(msgspec.Struct, Generic[_A], frozen=True, kw_only=True):
    """A question to the service about an account."""

    verb: ClassVar[str] = ""
    account: Annotated[str, Meta(min_length=1, max_length=64)]


class AskView(Question[Known], frozen=True, kw_only=True):
    """Return what is known, or what is known of one session."""

    verb: ClassVar[str] = "view"
    session: str = ""


class AskRebuild(Question[Rebuilt], frozen=True, kw_only=True):
    """Fold the log again, and compare."""

    verb: ClassVar[str] = "rebuild"


class AskForget(Question[Forgotten], frozen=True, kw_only=True):
    """Forget everything, and erase it; the administrator alone may ask."""

    verb: ClassVar[str] = "forget"


_ANSWERS: Final[dict[str, type[msgspec.Struct]]] = {"view": Known, "rebuild": Rebuilt, "forget": Forgotten}
_encoder = msgspec.json.Encoder()


async def ask(nc: Client, question: Question[_A], *, within_s: float = ANSWER_S) -> _A:
    """Ask the service, and return its answer. Raises what it answers as an error, `UNAVAILABLE` where no service answers in time."""
    try:
        reply = await nc.request(awareness_subject(question.verb), _encoder.encode(question), timeout=within_s)
    except (NatsError, TimeoutError) as error:
        raise VoxbridgeError(Code.UNAVAILABLE, AWAY, retryable=True) from error
    if (reply.headers or {}).get("Nats-Service-Error-Code"):
        raise _error(reply.data)
    return msgspec.json.decode(reply.data, type=_ANSWERS[question.verb])  # type: ignore[return-value]  # as the question declares


def _error(data: bytes) -> VoxbridgeError:
    try:
        return VoxbridgeError.from_dict(msgspec.json.decode(data, type=dict[str, object]))
    except (msgspec.MsgspecError, ValueError, KeyError):
        return VoxbridgeError(Code.INTERNAL, "The awareness service answered with an error that it does not explain.")

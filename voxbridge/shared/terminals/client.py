"""Asking the terminals service of a host."""

from __future__ import annotations

from typing import Final, Protocol, TypeVar

import msgspec
from nats.aio.client import Client
from nats.errors import Error as NatsError

from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.terminals.questions import Question, question_subject

_A = TypeVar("_A", bound=msgspec.Struct)
_encoder: Final = msgspec.json.Encoder()


class Asks(Protocol):
    """A way to ask the service of a host."""

    async def __call__(self, question: Question[_A]) -> _A:
        """Return the answer. Raises as `ask` does."""


def asking(nc: Client, host: str) -> Asks:
    """Return a way to ask over a connection."""

    async def asks(question: Question[_A]) -> _A:
        return await ask(nc, host, question)

    return asks


async def ask(nc: Client, host: str, question: Question[_A]) -> _A:
    """Ask the service of a host, and return its answer.

    Raises what it answers as an error, `UNAVAILABLE` where no service answers in its `answer_s`.
    """
    try:
        reply = await nc.request(question_subject(host, question.verb), _encoder.encode(question), timeout=question.answer_s)
    except (NatsError, TimeoutError) as error:
        message = f"The terminals service of {host} does not answer: start it, or look at its log, and ask again."
        raise VoxbridgeError(Code.UNAVAILABLE, message, retryable=True) from error
    if (reply.headers or {}).get("Nats-Service-Error-Code"):
        raise _error(reply.data)
    return msgspec.json.decode(reply.data, type=question.answer)  # type: ignore[return-value]  # as the question declares


def _error(data: bytes) -> VoxbridgeError:
    try:
        return VoxbridgeError.from_dict(msgspec.json.decode(data, type=dict[str, object]))
    except (msgspec.MsgspecError, ValueError, KeyError):
        return VoxbridgeError(Code.INTERNAL, "The terminals service answered with an error that it does not explain.")

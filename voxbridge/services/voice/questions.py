"""Questions to a voice worker over the bus, each about one session: read, limited in number, answered one at a time.

Owns the form of these questions and of their errors. Does not own the answers (`inspection`, `waveforms`, `migration`). A crash loses
the waiting questions; their senders have a timeout.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Generic, Protocol, TypeVar

import msgspec
from nats.micro.request import Request

from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.ids import check_session_id

WAITING_LIMIT: Final = 16
"""Questions of one kind that are pending at a time, including the one being answered."""

RETRY_MS: Final = 1_000


class AboutSession(Protocol):
    """A question that names its session."""

    @property
    def sid(self) -> str:
        """Session id as the sender gave it."""


Question = TypeVar("Question", bound=AboutSession)


class Questions(Generic[Question]):
    """Questions of one kind. One is answered at a time, so that calls go on meanwhile."""

    def __init__(self, kind: type[Question], about: str, answer: Callable[[Question], Awaitable[bytes]]) -> None:
        """Create the queue. `about` names the requested thing in errors; `answer` returns the payload, and may raise a `VoxbridgeError`."""
        self._kind = kind
        self._about = about
        self._answer = answer
        self._turn = asyncio.Lock()
        self._inside = 0

    async def serve(self, request: Request) -> None:
        """Answer one request; an error is sent as a typed error."""
        try:
            answer = await self._answered(read(request.data, self._kind))
        except VoxbridgeError as error:
            await request.respond_error(error.code, error.message, data=msgspec.json.encode(error.as_dict()))
        else:
            await request.respond(answer)

    async def _answered(self, question: Question) -> bytes:
        if self._inside >= WAITING_LIMIT:
            message = f"{WAITING_LIMIT} questions wait for their {self._about}."
            raise VoxbridgeError(Code.OVERLOADED, message, limit=WAITING_LIMIT, retry_after_ms=RETRY_MS)
        self._inside += 1
        try:
            async with self._turn:
                return await self._answer(question)
        finally:
            self._inside -= 1


def read(payload: bytes, kind: type[Question]) -> Question:
    """Return the question in a payload. Raises `INVALID_ARGUMENT` if it is malformed, and `NOT_FOUND` if its id is not a session id."""
    try:
        question = msgspec.json.decode(payload, type=kind)
    except msgspec.DecodeError as error:
        raise VoxbridgeError(Code.INVALID_ARGUMENT, f"The question cannot be read: {error}.") from error
    check_session_id(question.sid)
    return question

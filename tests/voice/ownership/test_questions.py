"""Questions to a voice worker about a session: parsed, limited, processed one at a time."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from tests.eventually import BOUND_S
from voxbridge.services.voice.inspection import Question
from voxbridge.services.voice.ownership.migration import Ask
from voxbridge.services.voice.questions import RETRY_MS, WAITING_LIMIT, Questions, read
from voxbridge.shared.audio.recordings import Waveform
from voxbridge.shared.errors import Code, VoxbridgeError

SID = "a" * 32


class Asked:
    """A request that keeps its answer."""

    def __init__(self, payload: bytes) -> None:
        self.data = payload
        self.answer: Any = None

    async def respond(self, data: bytes) -> None:
        self.answer = data

    async def respond_error(self, code: str, description: str, data: bytes = b"") -> None:
        told = msgspec.json.decode(data)
        assert (told["code"], told["message"]) == (code, description)
        self.answer = told


class Desk:
    """A handler that waits for the test before it answers; counts concurrent questions."""

    def __init__(self) -> None:
        self.may = asyncio.Event()
        self.at_work: list[str] = []
        self.most = 0
        self.questions = Questions(Question, "state", self._answer)

    async def _answer(self, question: Question) -> bytes:
        self.at_work.append(question.sid)
        self.most = max(self.most, len(self.at_work))
        await self.may.wait()
        self.at_work.remove(question.sid)
        if question.at == 0:
            raise VoxbridgeError(Code.NOT_FOUND, "It was not yet.")
        return b"yes"

    async def ask(self, payload: bytes) -> Any:
        request = Asked(payload)
        await self.questions.serve(request)  # type: ignore[arg-type]  # the used part of a request
        return request.answer


def question(**more: Any) -> bytes:
    return msgspec.json.encode({"sid": SID, **more})


async def test_as_many_wait_as_may_and_each_is_answered_by_itself() -> None:
    desk = Desk()
    async with asyncio.timeout(BOUND_S), asyncio.TaskGroup() as group:
        waiting = [group.create_task(desk.ask(question())) for _ in range(WAITING_LIMIT)]
        refused = group.create_task(desk.ask(question()))
        told = await refused
        assert [task.done() for task in waiting] == [False] * WAITING_LIMIT
        desk.may.set()
    assert (told["code"], told["limit"], told["retry_after_ms"]) == ("OVERLOADED", WAITING_LIMIT, RETRY_MS)
    assert "wait for their state" in told["message"]
    assert [task.result() for task in waiting] == [b"yes"] * WAITING_LIMIT
    assert desk.most == 1


async def test_room_is_given_back_by_answers_errors_and_whoever_leaves() -> None:
    desk = Desk()
    desk.may.set()
    for _ in range(WAITING_LIMIT + 1):
        assert (await desk.ask(question(at=0)))["code"] == "NOT_FOUND"
    desk.may.clear()
    leaving = [asyncio.create_task(desk.ask(question())) for _ in range(WAITING_LIMIT)]
    refused = await asyncio.create_task(desk.ask(question()))
    assert refused["code"] == "OVERLOADED"
    for task in leaving:
        task.cancel()
    await asyncio.gather(*leaving, return_exceptions=True)
    desk.may.set()
    assert await desk.ask(question()) == b"yes"


@pytest.mark.parametrize("kind", [Question, Ask, Waveform])
@pytest.mark.parametrize(
    ("payload", "code"),
    [
        (b"", Code.INVALID_ARGUMENT),
        (b"\xff", Code.INVALID_ARGUMENT),
        (b"{}", Code.INVALID_ARGUMENT),
        (b'{"sid": 1}', Code.INVALID_ARGUMENT),
        (b'{"sid": "x", "channel": "in", "began_ms": 0, "live": false, "bins": 1, "to": ""}', Code.NOT_FOUND),
    ],
)
def test_what_is_no_question_is_refused_in_the_same_way_for_all(kind: type[Question], payload: bytes, code: Code) -> None:
    with pytest.raises(VoxbridgeError) as caught:
        read(payload, kind)
    assert caught.value.code == code

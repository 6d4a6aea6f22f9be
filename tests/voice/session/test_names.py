"""Names of the things that a session may name: told where its agent steers them, and asked anew while the session goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import nats
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from tests.eventually import eventually
from tests.voice.conversation import Conversation
from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.session.names import Names, told
from voxbridge.shared import things
from voxbridge.shared.agents.functions import Function
from voxbridge.shared.events import gateway
from voxbridge.shared.step.effects import Tasks

NAMES: things.Things = {
    "read_terminal": {"terminal": ("Work",)},
    "forward_output": {"terminal": ("Work",), "source": ("Work",)},
    "search_kg": {"database": ("wiki",)},
}
READ = Function(name="read_terminal", description="Read.", parameters={"type": "object", "properties": {"terminal": {"type": "string"}}})
CLOCK = Function(name="current_time", description="Tell the time.", parameters={"type": "object", "properties": {}})


def test_names_of_terminals_are_told_to_who_has_their_functions() -> None:
    assert told(NAMES, (READ,)).keys() == {"read_terminal", "search_kg"}
    assert told(NAMES, ()).keys() == {"search_kg"}, "graphs are searched by name from any session"


class Looks:
    """The looks of a session, and an executor on the bus that answers them."""

    def __init__(self, nc: Client, *functions: Function, **given: Any) -> None:
        self.nc = nc
        self.call = Conversation(installed=functions, functions=(), **given)
        self.tasks = Tasks[int]("test")
        self.asked = self.taken = 0
        self.answer = NAMES
        self.goes_on = asyncio.Event()
        self.names = Names(nc, lambda: self.call.state, self._take, self.tasks.background)

    async def serve(self) -> None:
        async def answer(message: Msg) -> None:
            self.asked += 1
            found = self.answer
            await self.goes_on.wait()
            await message.respond(msgspec.json.encode(found))

        await self.nc.subscribe(things.SUBJECT, cb=answer)

    def _take(self, input: inputs.NamesChanged) -> None:
        self.taken += 1
        self.call.take(input)

    def known(self) -> dict[str, dict[str, tuple[str, ...]]]:
        return self.call.state.team.names


@pytest.fixture
async def nc(nats_url: str) -> AsyncIterator[Client]:
    connection = await nats.connect(nats_url)
    yield connection
    await connection.close()


async def test_what_is_new_is_known_and_what_is_the_same_is_not_told_again(nc: Client) -> None:
    looks = Looks(nc, READ)
    await looks.serve()
    looks.goes_on.set()
    for _ in range(2):
        looks.names.look()
        await looks.tasks.background_idle()
    assert looks.known() == told(NAMES, (READ,))
    assert (looks.asked, looks.taken) == (2, 1)


async def test_a_look_behind_a_question_has_an_answer_of_its_own(nc: Client) -> None:
    looks = Looks(nc, READ)
    await looks.serve()
    looks.names.look()
    await eventually(lambda: looks.asked)
    looks.answer = {"read_terminal": {"terminal": ("Work", "Server")}}
    for _ in range(3):
        looks.names.look()
    looks.goes_on.set()
    await looks.tasks.background_idle()
    assert looks.known() == {"read_terminal": {"terminal": ("Work", "Server")}}
    assert looks.asked == 2


async def test_without_an_answer_the_last_names_stay(nc: Client) -> None:
    looks = Looks(nc, READ)
    looks.call.take(inputs.NamesChanged({"read_terminal": {"terminal": ("Work",)}}))
    looks.names.look()
    await looks.tasks.background_idle()
    assert looks.known() == {"read_terminal": {"terminal": ("Work",)}}
    await looks.serve()
    looks.goes_on.set()
    looks.names.look()
    await looks.tasks.background_idle()
    assert looks.known() == told(NAMES, (READ,)), "and the next one is asked all the same"


async def test_a_session_that_names_no_terminal_asks_nothing(nc: Client) -> None:
    looks = Looks(nc, CLOCK)
    await looks.serve()
    looks.names.look()
    await looks.tasks.background_idle()
    assert looks.asked == 0


async def test_an_agent_in_the_background_asks_nothing_whose_answer_it_would_not_take(nc: Client) -> None:
    child = gateway.Child(parent="f" * 32, call_id="c", kind="run", seconds=60, tokens=1_000)
    looks = Looks(nc, READ, child=child)
    await looks.serve()
    looks.goes_on.set()
    looks.names.look()
    await looks.tasks.background_idle()
    assert (looks.asked, looks.taken) == (0, 0)

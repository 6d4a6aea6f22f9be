"""Reports of a connection on what the server refuses."""

from __future__ import annotations

import asyncio
from pathlib import Path

from nats.aio.msg import Msg

from tests.eventually import BOUND_S, eventually
from voxbridge.shared.bus.connection import EVENTS_PENDING, close_nats, connect_nats, denied
from voxbridge.shared.embedded.nats_server import NatsServer

ASKED = "vx.svc.tools.health"


async def test_an_answer_to_a_question_of_before_the_server_died_is_no_missing_right(tmp_path: Path) -> None:
    server, back, questions = NatsServer(tmp_path), asyncio.Event(), asyncio.Queue[Msg]()
    with server:
        admin = await connect_nats(server.url, "test-admin", pending=EVENTS_PENDING)

        async def again() -> None:
            back.set()

        url = server.url_of("tools")
        tools = await connect_nats(url, "test-tools", pending=EVENTS_PENDING, user="tools", on_reconnected=again)
        try:
            await tools.subscribe(ASKED, cb=questions.put)
            await tools.flush()
            asking = asyncio.create_task(admin.request(ASKED, b"", timeout=BOUND_S))
            question = await asyncio.wait_for(questions.get(), BOUND_S)
            server.kill()
            server.start()
            await asyncio.wait_for(back.wait(), BOUND_S)
            await question.respond(b"late")
            await tools.flush()
            assert denied(tools) == ()
            asking.cancel()

            await tools.publish("vx.s.x.ev.gateway.c.text.received", b"")  # another service's event
            await tools.flush()
            await eventually(lambda: len(denied(tools)) == 1)
        finally:
            await close_nats(tools)
            await close_nats(admin)

"""Child sessions: sessions that functions ask for, and the agents that they may name (`voxbridge.shared.child_sessions`).

Owns who may have one: the account is that of the parent, as the log says, whoever asks; a child has no child, and an account has
`OPEN_LIMIT` of them open. Does not own the sessions: the request is written like that of any client, and a voice worker takes it. A gateway
that dies in between leaves a request that was written or none; who asked asks again, and a session that is there is not requested twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from nats.micro.request import Request
from nats.micro.service import Service as Micro

from voxbridge.services.gateway.rest.agents import needs
from voxbridge.shared.agents.files import Agents
from voxbridge.shared.agents.model import Agent, Roster
from voxbridge.shared.agents.providers import PROVIDERS
from voxbridge.shared.bus import subjects
from voxbridge.shared.bus.accounts import gateway_subject
from voxbridge.shared.child_sessions import (
    DEPTH_LIMIT,
    EXPERT_SECONDS,
    EXPERT_TOKENS,
    OPEN_LIMIT,
    RUN_SECONDS,
    RUN_TOKENS,
    Card,
    Cards,
    Put,
    Taken,
)
from voxbridge.shared.errors import Code, Conflict, VoxbridgeError
from voxbridge.shared.events.gateway import Child, SessionRequested, TextReceived
from voxbridge.shared.events.voice import SessionEnded
from voxbridge.shared.log.writer import Policy, SessionWriter

if TYPE_CHECKING:
    from voxbridge.services.gateway.rest.context import Context

APPEND_S: Final = 4.0
"""Seconds that the log may take to accept a request, fewer than the asker waits."""

OPENING_US: Final = 60_000_000
"""µs after which a session that was counted and never requested counts no more: its gateway died in between."""

WAITING_LIMIT: Final = 64
"""Questions at work in one gateway; further ones are refused with `OVERLOADED`."""

_log = logging.getLogger(__name__)


class _Known(NamedTuple):
    """State of a session by its log: its request, and whether it has ended."""

    request: SessionRequested | None
    ended: bool


class Children:
    """Answers of a gateway about agents and child sessions."""

    def __init__(self, gateway: Context) -> None:
        self._gateway = gateway
        self._files = Agents(gateway.resources.config.agents_dir)
        self._reading = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    async def answer(self, micro: Micro) -> None:
        """Answer on the subjects of this service."""
        answers: dict[str, Callable[[bytes], Awaitable[msgspec.Struct]]] = {"agents": self._cards, "child": self._put}
        for verb, answer in answers.items():
            await micro.add_endpoint(name=verb, subject=gateway_subject(verb), handler=partial(self._handle, answer))

    async def _handle(self, answer: Callable[[bytes], Awaitable[msgspec.Struct]], request: Request) -> None:
        # One message after the other comes here, so the answer is made beside it.
        if len(self._tasks) >= WAITING_LIMIT:
            message = f"The gateway works on {WAITING_LIMIT} requests for agents already. Ask again in a moment."
            await _refuse(request, VoxbridgeError(Code.OVERLOADED, message, limit=WAITING_LIMIT, retry_after_ms=1_000))
            return
        task = asyncio.create_task(self._answered(answer, request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answered(self, answer: Callable[[bytes], Awaitable[msgspec.Struct]], request: Request) -> None:
        try:
            await request.respond(msgspec.json.encode(await answer(request.data)))
        except msgspec.MsgspecError as error:
            await _refuse(request, VoxbridgeError(Code.INVALID_ARGUMENT, f"The question cannot be read: {error}."))
        except VoxbridgeError as error:
            await _refuse(request, error)
        except Exception:  # noqa: BLE001 - whoever asked is answered
            _log.exception("a question about agents failed")
            await _refuse(request, VoxbridgeError(Code.INTERNAL, "The gateway failed; its log says why."))

    async def _roster(self) -> Roster:
        async with self._reading:
            return await asyncio.to_thread(self._files.current)

    async def _cards(self, _: bytes) -> Cards:
        roster, keys = await self._roster(), await self._gateway.keys.usable()
        agents = {agent.name: agent for agent in roster.agents}
        missing = {name: [one for one in needs(agent) if one in PROVIDERS and not keys[one]] for name, agent in agents.items()}
        pipelines = [(one, [stage.agent for stage in one.stages]) for one in roster.pipelines]
        return Cards(
            agents=(
                *(_card(agent, missing[agent.name]) for agent in roster.agents),
                *(
                    Card(
                        name=one.name,
                        description=one.description,
                        pipeline=True,
                        missing=tuple(dict.fromkeys(name for member in members for name in missing[member])),
                        speaks=any(agents[member].realtime is not None for member in members),
                    )
                    for one, members in pipelines
                ),
            )
        )

    async def _put(self, message: bytes) -> Taken:
        """Open the session if it is not there, and put the text into it."""
        asked = msgspec.json.decode(message, type=Put)
        known = await self._known(asked.child)
        opened = known.request is None
        if known.ended:
            raise VoxbridgeError(Code.CONFLICT, "This session has ended.", field="child")
        if known.request is None:
            await self._open(asked)
        elif known.request.child is None or known.request.child.parent != asked.parent:
            raise VoxbridgeError(Code.PERMISSION_DENIED, "This session is not one of that parent.", field="child")
        # The core takes a text of one id once, so a text that is sent again after a crash is one text.
        stem = f"child-{asked.text_id}"
        writer = SessionWriter(self._gateway.log, asked.child, "gateway", stem=stem, fenced=False, policy=Policy(give_up_s=APPEND_S))
        text = TextReceived(text=asked.text, text_id=asked.text_id)
        await writer.append(text, ts=self._gateway.resources.clock.now_us(), cause=None)
        return Taken(child=asked.child, opened=opened)

    async def _open(self, asked: Put) -> None:
        gateway, account = self._gateway, await self._account(asked.parent)
        roster = await self._roster()
        if any(agent.realtime is not None for agent in roster.team(asked.agent).agents):
            message = f"{asked.agent} only speaks, by a speech-to-speech model, and cannot work in the background."
            raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field="agent")
        now = gateway.resources.clock.now_us()
        await self._count(account, asked.child, now)
        seconds, tokens = (RUN_SECONDS, RUN_TOKENS) if asked.kind == "run" else (EXPERT_SECONDS, EXPERT_TOKENS)
        child = Child(parent=asked.parent, call_id=asked.call_id, kind=asked.kind, seconds=seconds, tokens=tokens)
        request = SessionRequested(mode="local", agent=asked.agent, output="text", record=False, filler=False, account=account, child=child)
        await gateway.store.session_opened(asked.child, now)
        try:
            # Fenced: of two gateways that open the session at once, the log refuses one.
            await SessionWriter(gateway.log, asked.child, "gateway", policy=Policy(give_up_s=APPEND_S)).append(request, ts=now, cause=None)
        except Conflict:
            if (await self._known(asked.child)).request is None:
                raise

    async def _account(self, parent: str) -> str:
        """Return the account of a parent. Raises `NOT_FOUND`, and `PERMISSION_DENIED` for one that is a child itself."""
        account = subjects.account_of(parent)
        if account:
            return account
        request = (await self._known(parent)).request
        if request is None:
            raise VoxbridgeError(Code.NOT_FOUND, "There is no session for which an agent could work.", field="parent")
        if request.child is not None:
            message = "An agent that works in the background asks no further agent."
            raise VoxbridgeError(Code.PERMISSION_DENIED, message, field="parent", limit=DEPTH_LIMIT)
        return request.account

    async def _known(self, sid: str) -> _Known:
        log = self._gateway.log
        topics = (("gateway", "i", "session.requested"), ("voice", "c", subjects.SESSION))
        found = [one.event for one in await log.last([subjects.stored_subject(sid, *topic) for topic in topics])]
        request = next((one for one in found if isinstance(one, SessionRequested)), None)
        return _Known(request, any(isinstance(one, SessionEnded) for one in found))

    async def _count(self, account: str, child: str, now: int) -> None:
        """Count a session that is to be opened. Raises `OVERLOADED` beyond `OPEN_LIMIT`: those that ended are not counted."""
        store = self._gateway.store
        left = 0
        for sid, counted_at in await store.count_child(account, child, now):
            known = await self._known(sid)
            if known.ended or (known.request is None and now - counted_at > OPENING_US):
                await store.forget_child(account, sid)
            else:
                left += 1
        if left >= OPEN_LIMIT:
            await store.forget_child(account, child)
            message = f"{OPEN_LIMIT} agents work for this account already, the most that may; wait for one to end, or cancel its task."
            raise VoxbridgeError(Code.OVERLOADED, message, field="agent", limit=OPEN_LIMIT, retryable=True)


def _card(agent: Agent, missing: list[str]) -> Card:
    return Card(
        name=agent.name,
        role=agent.role,
        description=agent.description,
        expert=agent.expert,
        knowledge=agent.knowledge,
        missing=tuple(missing),
        speaks=agent.realtime is not None,
    )


async def _refuse(request: Request, error: VoxbridgeError) -> None:
    await request.respond_error(error.code, error.message, data=msgspec.json.encode(error.as_dict()))

"""The functions that pages brought along: found in the log of their session, checked when they are configured, and run in a sandbox.

Owns how a call of the kind `customer` finds its source, and the check of its arguments. Does not own the sandbox
(`voxbridge.services.tools.sandbox`). Keeps sources for the sessions that call now and then; a crash loses none, since the log has them.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from nats.micro.request import Request
from redis.asyncio import Redis

from voxbridge.services.tools.context import Context
from voxbridge.services.tools.registry import Tool
from voxbridge.services.tools.sandbox.outside import Outside
from voxbridge.services.tools.sandbox.sandboxes import Outcome, Sandboxes, Wanted
from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events.gateway import SessionConfigured
from voxbridge.shared.events.tools import HandlerLine, HandlerLogged
from voxbridge.shared.events.voice import ToolCalled
from voxbridge.shared.fetch import Fetcher
from voxbridge.shared.log.reader import Log
from voxbridge.shared.platform.checking import HandlersChecked, HandlersWanted
from voxbridge.shared.platform.handlers import HandlerTool
from voxbridge.shared.platform.problems import Problem
from voxbridge.shared.platform.secrets import Secrets, secrets_key_file
from voxbridge.shared.secrets.vault import Vault
from voxbridge.shared.step.effects import Tasks

SESSIONS_KEPT: Final = 256
"""Sessions whose configuration is in memory."""

ARGUMENTS_LIMIT: Final = 65_536
"""Bytes of a call's arguments as JSON."""

KIND: Final = "customer"

_log = logging.getLogger(__name__)


class Given(msgspec.Struct, frozen=True):
    """Arguments as they are passed on."""

    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomerTool(Tool):
    """A tool whose handler a page brought along."""

    run: Callable[..., Any] = field(compare=False)

    def check(self, arguments: dict[str, Any]) -> msgspec.Struct:
        """Return the arguments. Raises `INVALID_ARGUMENT` naming the one that is wrong, and `TOO_LARGE`."""
        size = len(msgspec.json.encode(arguments))
        if size > ARGUMENTS_LIMIT:
            message = f"The arguments of {self.name} have {size} bytes; {ARGUMENTS_LIMIT} is the most."
            raise VoxbridgeError(Code.TOO_LARGE, message, limit=ARGUMENTS_LIMIT)
        _arguments().check(self.name, self.parameters, arguments)
        return Given(arguments)


class Customers:
    """The functions of pages, for the sessions of one executor."""

    def __init__(self, log: Log, sandboxes: Sandboxes, secrets: Secrets, fetcher: Fetcher) -> None:
        self._log = log
        self._sandboxes = sandboxes
        self._secrets = secrets
        self._fetcher = fetcher
        self._configured: OrderedDict[str, SessionConfigured] = OrderedDict()
        self._called: dict[str, Mapping[str, Tool]] = {}
        self._checking = Tasks[None]("checks of handlers")

    @classmethod
    def of(cls, config: Config, redis: Redis, log: Log) -> Customers:
        """Build those of the installation that this process belongs to; writes the public half of the key of secrets."""
        try:
            Vault(secrets_key_file(config)).publish(config.secrets_public_key_path)
        except VoxbridgeError as error:  # in containers another process makes it
            _log.info("%s", error.message)
        return cls(log, Sandboxes(), Secrets.of(config, redis), Fetcher(config.fetch_hosts))

    async def learn(self, sid: str, event: events.Event) -> None:
        """Read what the decision about a call depends on, if it is one of a page's own handlers. Raises `UNAVAILABLE`."""
        if isinstance(event, ToolCalled) and event.kind == KIND:
            configured = await self._of(sid)
            tools = {} if configured is None or configured.account != event.account else self._tools(configured)
            self._called[event.call_id] = {event.name: tools[event.name]} if event.name in tools else {}

    def called(self, call_id: str) -> Mapping[str, Tool] | None:
        """Return the one function that a call may be of, by name; None for a call that is not of this kind."""
        return self._called.get(call_id)

    def taken(self, event: events.Event) -> None:
        """Forget a call that was taken."""
        if isinstance(event, ToolCalled):
            self._called.pop(event.call_id, None)

    def ended(self, sid: str) -> None:
        """Forget a session that is over, and end its sandbox."""
        self._configured.pop(sid, None)
        self._sandboxes.release(sid)

    async def answer(self, request: Request) -> None:
        """Answer `vx.svc.tools.handlers`: can these handlers run?"""
        self._checking.background(self._answer(request))

    async def close(self) -> None:
        """End all sandboxes."""
        await self._sandboxes.close()

    async def _answer(self, request: Request) -> None:
        try:
            wanted = msgspec.json.decode(request.data, type=HandlersWanted)
            checks = await asyncio.to_thread(_arguments)
            for tool in wanted.tools:
                checks.check_schema(tool.name, tool.parameters)
            await self._sandboxes.check(wanted.tools)
            told = HandlersChecked()
        except Problem as error:
            told = HandlersChecked(
                code=error.code, message=error.message, field=error.field or "", tool=error.tool, identifier=error.identifier
            )
        except VoxbridgeError as error:
            told = HandlersChecked(code=error.code, message=error.message)
        except msgspec.MsgspecError as error:
            told = HandlersChecked(code=Code.INVALID_ARGUMENT, message=f"The handlers cannot be read: {error}.")
        await request.respond(msgspec.json.encode(told))

    async def _of(self, sid: str) -> SessionConfigured | None:
        known = self._configured.get(sid)
        if known is not None:
            return known
        subject = subjects.event_subject(sid, "gateway", visible=False, event_type="session.configured")
        for recorded in await self._log.last([subject]):
            if isinstance(recorded.event, SessionConfigured):
                self._configured[sid] = known = recorded.event
                while len(self._configured) > SESSIONS_KEPT:
                    self._configured.popitem(last=False)
        return known

    def _tools(self, configured: SessionConfigured) -> Mapping[str, Tool]:
        return {tool.name: self._tool(configured, tool) for tool in configured.configuration.tools}

    def _tool(self, configured: SessionConfigured, tool: HandlerTool) -> Tool:
        async def run(arguments: dict[str, Any], ctx: Context) -> Any:
            secrets = await self._secrets.opened(configured.account, configured.environment)
            outside = Outside(self._fetcher, secrets, configured.hosts)
            wanted = Wanted(
                account=configured.account,
                sid=ctx.sid,
                name=tool.name,
                source=tool.source,
                arguments=msgspec.json.encode(arguments).decode(),
                secrets=outside.stand_ins,
            )
            outcome = await self._sandboxes.call(wanted, outside.answer)
            return await _told(tool.name, ctx, outside, outcome)

        function = tool.function()
        return CustomerTool(
            name=tool.name,
            description=tool.description,
            parameters=tool.parameters,
            mode="call",
            timeout_s=function.timeout_s,
            idempotent=False,
            arguments=Given,
            context_parameter="ctx",
            run=run,
            effect=function.effect,
            approval=function.approval,
        )


async def _told(name: str, ctx: Context, outside: Outside, outcome: Outcome) -> Any:
    """Return the result of a handler, without the value of a secret; record what it wrote on the console."""
    if outcome.lines:
        lines = tuple(HandlerLine(level=level, text=outside.masks.text(text)) for level, text in outcome.console)
        await ctx.emit(HandlerLogged(call_id=ctx.call_id, name=name, lines=lines, dropped=max(0, outcome.lines - len(lines))))
    if outcome.error is not None:
        raise VoxbridgeError(outcome.error.code, outside.masks.text(outcome.error.message), retryable=False)
    try:
        return msgspec.json.decode(outside.masks.text(outcome.value))
    except msgspec.DecodeError:
        raise VoxbridgeError(Code.INTERNAL, f"{name} returned what is not JSON.", retryable=False) from None


def _arguments() -> Any:
    """Return the module that checks arguments; it takes a moment to load, which a start has not."""
    return importlib.import_module("voxbridge.services.tools.session.arguments")

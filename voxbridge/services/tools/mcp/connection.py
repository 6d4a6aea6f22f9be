"""The connection to one MCP server: started, listed, called, listened to, and started again when it ends.

Owns the SDK's client of the server and the calls in it. Does not own the transport of a program (`lines`) nor what its answers become
(`content`). It ends with its host process; the executor then says which calls were interrupted.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import mcp_types as types
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from voxbridge.services.tools.mcp import content, web
from voxbridge.services.tools.mcp.config import Hints, Server, wants
from voxbridge.services.tools.mcp.lines import CUT_CODE, LINE_LIMIT, Process, stdio
from voxbridge.services.tools.mcp.messages import Ask, Condition, Offer, Offered, Progress, State, ToExecutor
from voxbridge.services.tools.mcp.programs import environment, missing
from voxbridge.services.tools.mcp.text import clean, offer
from voxbridge.shared.errors import Code, VoxbridgeError

TOOLS_LIMIT: Final = 256
"""Tools of one server."""

PAGES_LIMIT: Final = 32
BACK_OFF_S: Final = (0.5, 60.0)
"""Seconds before a server is started again: at first, and at most."""

STEADY_S: Final = 60.0
"""Seconds after which a server that ended is taken to have worked, and is started again without a long wait."""

RELIST_S: Final = 1.0
"""Seconds between two readings of the tools, however often a server says that they changed."""

LOOK_S: Final = 60.0
"""Seconds between two readings of the tools of a server over HTTP, whose end nobody says."""

REFUSED_LIMIT: Final = 32
"""Tools that are named as refused; beyond them, none is."""

_HINTS: Final = ("readOnlyHint", "destructiveHint")
_RESULT: Final[TypeAdapter[Any]] = TypeAdapter(types.CallToolResult | types.InputRequiredResult)
_CLIENT: Final = types.Implementation(name="voxbridge", version="1")


class Connection:
    """One server of the configuration, from `run` until that is cancelled."""

    def __init__(self, name: str, server: Server, say: Callable[[ToExecutor], None]) -> None:
        self.name = name
        self._server = server
        self._say = say
        self._client: Client | None = None
        self._process: Process | None = None
        self._lost = asyncio.Event()
        self._changed = asyncio.Event()
        self._questions: dict[int, list[str]] = {}
        self._why = ""

    async def run(self) -> None:
        """Keep the server connected; a time between two attempts grows to a minute."""
        delay = BACK_OFF_S[0]
        while True:
            begun = asyncio.get_running_loop().time()
            self._condition("starting")
            why = await self._connected()
            self._client = None
            self._condition("down", why)
            if asyncio.get_running_loop().time() - begun > STEADY_S:
                delay = BACK_OFF_S[0]
            await asyncio.sleep(delay)
            delay = min(2 * delay, BACK_OFF_S[1])

    async def call(self, ask: Ask) -> dict[str, Any]:
        """Call a tool. Raises `UNAVAILABLE` while there is no connection, `INTERRUPTED` when it ends meanwhile, `TOO_LARGE` for an answer
        that was cut, and `PROVIDER_REFUSED` with the words of the server."""
        client = self._client
        if client is None:
            raise VoxbridgeError(Code.UNAVAILABLE, f"The MCP server {self.name} is not connected; try again in a moment.")
        asked = self._questions[ask.id] = []
        request = types.CallToolRequest(params=types.CallToolRequestParams(name=ask.tool, arguments=ask.arguments))
        heard = self._progress(ask.id) if ask.progress else None
        try:
            answer = await client.session.send_request(request, _RESULT, progress_callback=heard)
        except MCPError as error:
            raise self._failed(ask.tool, error) from error
        except ValidationError as error:
            message = f"{self.name} answered {ask.tool} in a form that MCP does not have."
            raise VoxbridgeError(Code.PROVIDER_REFUSED, message) from error
        finally:
            del self._questions[ask.id]
        if isinstance(answer, types.InputRequiredResult):
            return self._needs(ask.tool, answer)
        if asked:
            return content.question(self.name, asked)
        told = answer.model_dump(mode="json", by_alias=True, exclude_none=True)
        return content.result_of(self.name, ask.tool, told)

    # --- the connection ---

    async def _connected(self) -> str:
        """Connect, and return why it ended."""
        self._lost.clear()
        self._changed.clear()
        self._process, self._why = None, ""
        try:
            with anyio.fail_after(self._server.start_s) as start:
                async with Client(
                    self._transport(),
                    client_info=_CLIENT,
                    message_handler=self._heard,
                    elicitation_callback=self._elicited,
                    cache=None,
                ) as client:
                    await self._list(client)
                    start.deadline = math.inf
                    self._client = client
                    self._condition("ready", protocol=client.protocol_version)
                    await self._look_after(client)
        except TimeoutError:
            return self._reason(f"it did not answer within {self._server.start_s:g} s of its start")
        except FileNotFoundError:
            return missing(self._server.command)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a server makes the SDK raise ends only this connection
            return self._reason(_said(error))
        return self._reason("the connection ended")

    @asynccontextmanager
    async def _transport(self) -> AsyncIterator[tuple[Any, Any]]:
        server = self._server
        if server.url:
            async with (
                web.client(server.headers, limit=LINE_LIMIT) as http,
                streamable_http_client(server.url, http_client=http, max_sse_event_size=LINE_LIMIT) as streams,
            ):
                yield streams
            return
        command = [server.command, *server.args]
        env = environment(server.env)
        async with stdio(
            command, env, server.cwd or None, memory_mb=server.memory_mb, processes=server.processes, started=self._started
        ) as pair:
            yield pair

    def _started(self, process: Process) -> None:
        self._process = process
        self._condition("starting")

    async def _look_after(self, client: Client) -> None:
        """Read the tools again when they changed, until the connection is lost."""
        listening = asyncio.create_task(self._listen(client))
        try:
            while not await self._is_lost(self._changed, None if self._process else LOOK_S):
                self._changed.clear()
                await self._list(client)
                if await self._is_lost(None, RELIST_S):
                    return
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    async def _is_lost(self, event: asyncio.Event | None, timeout_s: float | None) -> bool:
        """Wait for the end of the connection, for an event, or for a time; return whether it is the end."""
        ends = [self._lost, *([self._process.ended] if self._process else [])]
        waits = [asyncio.create_task(one.wait()) for one in (*ends, *([event] if event else []))]
        try:
            await asyncio.wait(waits, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        return any(one.is_set() for one in ends)

    async def _listen(self, client: Client) -> None:
        """Hear of changes from a server of the newer protocol, which says them only to who asked."""
        tools = client.server_capabilities.tools
        if tools is None or not tools.list_changed:
            return
        while True:
            try:
                async with client.listen(tools_list_changed=True) as changes:
                    async for _ in changes:
                        self._changed.set()
            except ListenNotSupportedError:  # the older protocol, whose notifications come by themselves
                return
            except (MCPError, SubscriptionLost, TimeoutError):
                self._changed.set()
            await asyncio.sleep(LOOK_S)

    async def _heard(self, message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            self._changed.set()

    async def _elicited(self, context: Any, params: Any) -> Any:  # noqa: ARG002 - the SDK names its arguments
        """Note the question for the calls that are open, and have the server go on without an answer."""
        for asked in self._questions.values():
            if len(asked) < 4:
                asked.append(clean(params.message, 512))
        return types.ElicitResult(action="cancel")

    # --- the tools ---

    async def _list(self, client: Client) -> None:
        found: list[Offer] = []
        refused: list[str] = []
        cursor: str | None = None
        for _ in range(PAGES_LIMIT):
            tools, cursor = await _page(client, cursor)
            for tool in tools:
                if wants(self._server, str(tool.get("name", ""))):
                    try:
                        found.append(_offer(tool))
                    except VoxbridgeError as error:
                        refused.append(error.message)
            if len(found) > TOOLS_LIMIT or not cursor:
                break
        if len(found) > TOOLS_LIMIT or cursor:
            message = f"it offers more than {TOOLS_LIMIT} tools; name those that are wanted under `only` of {self.name}"
            raise VoxbridgeError(Code.TOO_LARGE, message, field="only", limit=TOOLS_LIMIT)
        self._say(Offered(server=self.name, tools=tuple(found), refused=tuple(refused[:REFUSED_LIMIT])))

    # --- answers ---

    def _progress(self, call: int) -> Any:
        async def report(done: float, total: float | None, message: str | None) -> None:
            share = min(1.0, max(0.0, done / total)) if total else 0.0
            self._say(Progress(id=call, done=share if math.isfinite(share) else 0.0, message=clean(message or "", 200)))

        return report

    def _needs(self, tool: str, answer: types.InputRequiredResult) -> dict[str, Any]:
        wanted = list((answer.input_requests or {}).values())
        asked = [one.params.message for one in wanted if isinstance(one, types.ElicitRequest)]
        if len(asked) < len(wanted) or not asked:
            message = f"{tool} of {self.name} wants to use this installation's model, or its files, and neither is given to MCP servers."
            raise VoxbridgeError(Code.PERMISSION_DENIED, message)
        return content.question(self.name, asked)

    def _failed(self, tool: str, error: MCPError) -> VoxbridgeError:
        if error.code == CUT_CODE:
            return VoxbridgeError(Code.TOO_LARGE, f"{tool} of {self.name} gave {error.message}.", limit=LINE_LIMIT)
        if error.code == types.CONNECTION_CLOSED:
            self._lost.set()
            message = f"The MCP server {self.name} ended while {tool} ran; how far it came is not known."
            return VoxbridgeError(Code.INTERRUPTED, message, retryable=False)
        if self._process is None and error.code in (types.INTERNAL_ERROR, types.INVALID_REQUEST):
            self._changed.set()  # reading the tools shows whether the server is still there
        return VoxbridgeError(Code.PROVIDER_REFUSED, f"{tool} of {self.name} failed: {clean(error.message, 600)}")

    def _reason(self, otherwise: str) -> str:
        return (self._process.why if self._process else "") or otherwise

    def _condition(self, state: State, why: str = "", protocol: str = "") -> None:
        group = self._process.pid if self._process and state != "down" else 0
        self._say(Condition(server=self.name, state=state, why=clean(why, 400), group=group, protocol=clean(protocol, 32)))


class _Listing(BaseModel):
    """A page of tools as the server wrote them."""

    tools: list[dict[str, Any]] = []
    next_cursor: str | None = Field(default=None, alias="nextCursor")


async def _page(client: Client, cursor: str | None) -> tuple[list[dict[str, Any]], str | None]:
    """Return a page of tools, and the cursor of the next one. The SDK refuses a whole page for one tool whose form MCP does not have; it is
    read again then, as it is."""
    params = types.PaginatedRequestParams(cursor=cursor) if cursor else None
    try:
        page = await client.session.list_tools(params=params)
    except ValidationError:
        listing = await _as_written(client.session, params)
        return listing.tools, listing.next_cursor
    return [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in page.tools], page.next_cursor


async def _as_written(session: Any, params: types.PaginatedRequestParams | None) -> _Listing:
    """Ask for a page without the SDK's judgement, which it has no public way to leave out."""
    asked = types.ListToolsRequest(params=params).model_dump(mode="json", by_alias=True, exclude_none=True)
    options: dict[str, Any] = {}
    session._stamp(asked, options)  # noqa: SLF001
    answer = await session._dispatcher.send_raw_request(asked["method"], asked.get("params"), options)  # noqa: SLF001
    return _Listing.model_validate(answer)


def _offer(tool: dict[str, Any]) -> Offer:
    """Return a tool as it may be shown. Raises `INVALID_ARGUMENT`."""
    name, output = tool.get("name"), tool.get("outputSchema")
    if not isinstance(name, str):
        raise VoxbridgeError(Code.INVALID_ARGUMENT, "A tool without a name is not offered.", field="name")
    texts = [text for text in (tool.get("description"), tool.get("title")) if isinstance(text, str) and text]
    said = tool.get("annotations")
    read_only, destructive = (said.get(hint) for hint in _HINTS) if isinstance(said, dict) else (None, None)
    hints = Hints(
        read_only=read_only if isinstance(read_only, bool) else None, destructive=destructive if isinstance(destructive, bool) else None
    )
    return offer(name, texts[0] if texts else "", tool.get("inputSchema", {}), output if isinstance(output, dict) else None, hints)


def _said(error: BaseException) -> str:
    """Return the innermost of an error's words: the SDK's come in groups of groups."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    if isinstance(error, VoxbridgeError | MCPError):
        return error.message
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__

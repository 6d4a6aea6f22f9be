"""`/api/terminals/lives`: what happened in terminals, also in those that were closed.

Owns the routes and what a page of a log shows. Does not own what is in the log (`voxbridge.services.terminals.life`) nor what was shown
(`voxbridge.services.terminals.tape`). Administrators alone. Nothing is lost in a crash here.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import AsyncIterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Path, Query, Response
from fastapi.responses import StreamingResponse
from nats.aio.client import Client

from voxbridge.services.gateway.core.messages import POSITION_LIMIT
from voxbridge.shared import events
from voxbridge.shared.bus import subjects
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events import terminals as told
from voxbridge.shared.log.reader import Log, decode
from voxbridge.shared.secrets.access_tokens import LOCAL
from voxbridge.shared.terminals import asciicast
from voxbridge.shared.terminals import questions as asked
from voxbridge.shared.terminals.client import ask
from voxbridge.shared.terminals.model import LOCAL_HOST
from voxbridge.shared.terminals.story import sentence

if TYPE_CHECKING:
    from voxbridge.services.gateway.rest.context import Context

LIVES_LIMIT: Final = 500
EVENTS_LIMIT: Final = 500
WRITER: Final = "terminals"
CAST: Final = "application/x-asciicast"
_LIFE: Final = "^[a-z0-9][a-z0-9-]{0,63}$"
_CAST: Final[dict[int | str, dict[str, Any]]] = {200: {"description": "The recording", "content": {CAST: {"schema": {"type": "string"}}}}}
_log = logging.getLogger(__name__)


class Lived(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Life of a terminal: what was started, by whom, when, and when the terminal was closed (ms since 1970)."""

    life: str
    terminal: str
    name: str
    workspace: str
    definition: str
    by: str
    started_ms: int
    closed_ms: int | None = None


class ListedLives(msgspec.Struct, frozen=True, kw_only=True):
    """Lives of terminals, the newest first."""

    lives: tuple[Lived, ...]


class Happening(msgspec.Struct, frozen=True, kw_only=True):
    """Event of a life: its position in the log, when it happened (ms since 1970), its type, and what it says."""

    seq: int
    at_ms: int
    type: str
    sentence: str
    data: dict[str, Any]


class Happenings(msgspec.Struct, frozen=True, kw_only=True):
    """Page of a life in the order of the log. With `more` there are others: ask for those after the last `seq`."""

    life: str
    events: tuple[Happening, ...]
    more: bool


async def listed(log: Log, limit: int) -> ListedLives:
    """Return the newest lives that the log has. Raises `UNAVAILABLE`."""
    found: deque[tuple[str, told.TerminalStarted]] = deque(maxlen=limit)
    async for one in log.read_all(subjects.TERMINALS_OF_ALL, writer=WRITER, topic="terminal.started"):
        if isinstance(one.event, told.TerminalStarted) and one.event.run == 1:
            found.append((subjects.life_of(one.sid), one.event))
    ends = log.read_all(subjects.TERMINALS_OF_ALL, writer=WRITER, topic="terminal.closed")
    closed = {subjects.life_of(one.sid): one.event.at async for one in ends if isinstance(one.event, told.TerminalClosed)}
    lives = (
        Lived(
            life=life, terminal=event.terminal, name=event.name, workspace=event.workspace, definition=event.definition, by=event.by,
            started_ms=event.at // 1_000, closed_ms=closed[life] // 1_000 if life in closed else None,
        )
        for life, event in reversed(found)
    )  # fmt: skip
    return ListedLives(lives=tuple(lives))


async def happenings(log: Log, life: str, *, after: int = 0, limit: int, newest: bool = False) -> Happenings:
    """Return a page of a life: the first events behind a position, or with `newest` the last ones.

    `more` says that there are later ones, or with `newest` earlier ones. Raises `NOT_FOUND` where the log has nothing of it, and
    `UNAVAILABLE`.
    """
    found: deque[Happening] = deque()
    more = anything = False
    async for page in log.pages(subjects.terminal_log(life), writer=WRITER, visibility="c", after=after):
        for message in page.messages:
            anything = True
            one = decode(message)
            if isinstance(one.event, told.Happened):
                found.append(_happening(one, one.event))
        if len(found) > limit:
            more = True
            if not newest:
                break
            while len(found) > limit:
                found.popleft()
    if not anything and not after:
        message_ = "The log holds nothing of this life of a terminal: its time is over, it was erased, or there was none of this name."
        raise VoxbridgeError(Code.NOT_FOUND, message_, field="life")
    return Happenings(life=life, events=tuple(islice(found, limit)), more=more)


def _happening(one: events.Recorded, event: told.Happened) -> Happening:
    return Happening(seq=one.seq, at_ms=event.at // 1_000, type=one.type, sentence=sentence(event), data=msgspec.to_builtins(event))


def add(made: APIRouter, gateway: Context, answers: Any) -> None:
    """Add the routes. `answers` describes an answer of a type."""

    @made.get("/lives", responses=answers(ListedLives))
    async def lives(limit: Annotated[int, Query(ge=1, le=LIVES_LIMIT)] = 100) -> Response:
        """List the lives of terminals that the log has, the newest first: also of those that were closed."""
        return _json(await listed(gateway.log, limit))

    @made.get("/lives/{life}", responses=answers(Happenings))
    async def life_of(
        life: Annotated[str, Path(pattern=_LIFE)],
        after: Annotated[int, Query(ge=0, le=POSITION_LIMIT)] = 0,
        limit: Annotated[int, Query(ge=1, le=EVENTS_LIMIT)] = 200,
        newest: bool = False,
    ) -> Response:
        """Read what happened in a terminal: starts, states, who sent what and what came of it, ends. What people type is counted alone."""
        return _json(await happenings(gateway.log, life, after=after, limit=limit, newest=newest))

    @made.get("/lives/{life}/screen", responses=answers(asked.Shown))
    async def screen_at(life: Annotated[str, Path(pattern=_LIFE)], at_ms: Annotated[int, Query(ge=0, le=POSITION_LIMIT)]) -> Response:
        """Read what a terminal showed at a time, ms since 1970, as text without escapes and without what nobody sees."""
        found: asked.Shown = await ask(gateway.log.nc, LOCAL_HOST, asked.Past(by=LOCAL, life=life, at_ms=at_ms))
        return _json(found)

    @made.get("/lives/{life}/cast", responses=_CAST, response_class=StreamingResponse)
    async def cast(life: Annotated[str, Path(pattern=_LIFE)]) -> StreamingResponse:
        """Download all that is kept of what a terminal showed, as an asciicast v3: `asciinema play` plays it."""
        first: asked.Taped = await ask(gateway.log.nc, LOCAL_HOST, asked.ReadTape(by=LOCAL, life=life))
        named = {"Content-Disposition": f'attachment; filename="{life}.cast"', "Cache-Control": "no-store"}
        return StreamingResponse(_cast(gateway.log.nc, life, first), media_type=CAST, headers=named)


async def _cast(nc: Client, life: str, part: asked.Taped) -> AsyncIterator[bytes]:
    """Yield the pieces of a recording as one. Where it cannot be read on, the answer breaks off, so that nobody takes it for the whole."""
    joined, begun_ms = asciicast.Joined(), 0
    while True:
        if part.begun_ms != begun_ms:
            begun_ms = part.begun_ms
            joined.begin(begun_ms)
        try:
            yield joined.feed(part.data)
            if not part.more:
                return
            part = await ask(nc, LOCAL_HOST, asked.ReadTape(by=LOCAL, life=life, from_ms=part.next_ms, offset=part.next_offset))
        except (msgspec.MsgspecError, VoxbridgeError) as error:
            _log.warning("what %s showed is not told to its end: %s", life, error)
            raise


def _json(found: msgspec.Struct) -> Response:
    return Response(msgspec.json.encode(found), media_type="application/json")

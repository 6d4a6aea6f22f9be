"""`/api/terminals`: the fleet of terminals, and tickets for its sockets (docs/terminals.md).

Owns the routes: each asks the terminals service one question, and answers what it answers. Does not own what the questions mean
(`voxbridge.shared.terminals.questions`). Administrators alone; others are given tickets. Nothing is lost in a crash here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from fastapi import APIRouter, Depends, Path, Query, Request, Response

from voxbridge.services.gateway.rest import terminal_lives
from voxbridge.services.gateway.rest.errors import ALL, AWAY, BAD, TOKEN, refused
from voxbridge.services.gateway.rest.functions import body_of, decoded
from voxbridge.services.gateway.terminals import tickets
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.secrets.access_tokens import LOCAL
from voxbridge.shared.terminals import questions as asked
from voxbridge.shared.terminals.client import ask
from voxbridge.shared.terminals.model import LOCAL_HOST, Definition

if TYPE_CHECKING:
    from voxbridge.services.gateway.rest.context import Context

BODY_LIMIT: Final = 4 * asked.TEXT_LIMIT
"""Bytes of a body: a text of which each character takes four."""

_Id = Annotated[str, Path(pattern="^[a-z0-9][a-z0-9-]{0,47}$")]
_DefinitionId = Annotated[str, Path(pattern="^[a-z][a-z0-9-]{0,31}$")]
_Answer = Callable[..., Awaitable[Response]]
_GIVEN: Final = frozenset({"by", "terminal"})
"""Fields of a question that the gateway fills in."""

_OF_ONE: Final[dict[str, type[asked.OfTerminal[Any]]]] = {
    "restart": asked.Restart,
    "rename": asked.Rename,
    "resize": asked.Resize,
    "signal": asked.SendSignal,
    "activate": asked.Activate,
    "see": asked.See,
    "send": asked.Send,
    "key": asked.SendKey,
    "wait": asked.Wait,
}
"""Questions about one terminal that are asked with `POST /api/terminals/{id}/…`."""


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """A ticket, and how many seconds it may be used within."""

    ticket: str
    expires_s: int
    role: tickets.Role


def router(gateway: Context) -> APIRouter:
    """Build the routes of a gateway."""
    there_is_none: dict[int | str, dict[str, Any]] = {
        404: refused("There is no such terminal, definition or program"),
        409: refused("The terminal is not in a state for it"),
    }
    made = APIRouter(
        prefix="/api/terminals", tags=["terminals"], dependencies=[Depends(gateway.access.administrator)],
        responses=TOKEN | ALL | BAD | AWAY | there_is_none,
    )  # fmt: skip

    async def answer(question: asked.Question[Any], status: int = 200) -> Response:
        found = await ask(gateway.log.nc, LOCAL_HOST, question)
        return Response(msgspec.json.encode(found), status_code=status, media_type="application/json")

    @made.get("", responses=_answers(asked.Cards))
    async def listed() -> Response:
        """List the terminals with the states of their programs."""
        return await answer(asked.ListTerminals(by=LOCAL))

    @made.post("", status_code=201, responses=_answers(asked.Start.answer, 201), openapi_extra=_body(asked.Start))
    async def start(request: Request) -> Response:
        """Start a program in a terminal."""
        return await answer(await _question(request, asked.Start), 201)

    _definitions(made, answer)
    terminal_lives.add(made, gateway, _answers)
    _tickets(made, gateway)

    @made.get("/{terminal}", responses=_answers(asked.Seen))
    async def read(
        terminal: _Id, view: asked.View = "screen", lines: Annotated[int, Query(ge=1, le=asked.LINES_LIMIT)] = 40,
        since: Annotated[int, Query(ge=0)] = 0,
    ) -> Response:  # fmt: skip
        """Read what a terminal shows, as text without escapes and without what nobody sees."""
        return await answer(asked.Read(by=LOCAL, terminal=terminal, view=view, lines=lines, since=since))

    @made.delete("/{terminal}", responses=_answers(asked.Close.answer))
    async def close(terminal: _Id) -> Response:
        """End everything that a terminal started, and take it off the list. `left` names what lives on."""
        return await answer(asked.Close(by=LOCAL, terminal=terminal))

    @made.get("/{terminal}/explain", responses=_answers(asked.Explained))
    async def explain(terminal: _Id) -> Response:
        """Say who says what of the state of a terminal's program."""
        return await answer(asked.Explain(by=LOCAL, terminal=terminal))

    for verb, kind in _OF_ONE.items():
        made.add_api_route(
            f"/{{terminal}}/{verb}", _route(answer, kind), methods=["POST"], name=f"{verb}_terminal", description=kind.__doc__,
            responses=_answers(kind.answer), openapi_extra=_body(kind),
        )  # fmt: skip
    return made


def _definitions(made: APIRouter, answer: _Answer) -> None:
    @made.get("/definitions", responses=_answers(asked.Offers))
    async def definitions() -> Response:
        """List the programs that can be started, and how to get those that are missing."""
        return await answer(asked.ListDefinitions(by=LOCAL))

    @made.put("/definitions/{definition_id}", responses=_answers(asked.Offers), openapi_extra=_body(Definition, "id", "built_in"))
    async def define(request: Request, definition_id: _DefinitionId) -> Response:
        """Add the definition of a program, or change one that was added."""
        given = await decoded(request, dict[str, Any], limit=BODY_LIMIT)
        definition = _converted({**given, "id": definition_id, "built_in": False}, Definition)
        return await answer(asked.Define(by=LOCAL, definition=definition))

    @made.delete("/definitions/{definition_id}", responses=_answers(asked.Offers))
    async def undefine(definition_id: _DefinitionId) -> Response:
        """Remove a definition that was added."""
        return await answer(asked.Undefine(by=LOCAL, definition=definition_id))


def _tickets(made: APIRouter, gateway: Context) -> None:
    @made.post("/tickets", status_code=201, responses=_answers(Made, 201), openapi_extra=_body(tickets.Ticket))
    async def ticket(request: Request) -> Response:
        """Make a ticket that opens one socket at `/ws/terminals`, once, within half a minute."""
        wanted = _converted(await decoded(request, dict[str, Any]), tickets.Ticket)
        text = await tickets.make(gateway.resources.redis, wanted)
        ticket_made = Made(ticket=text, expires_s=tickets.TICKET_S, role=wanted.role)
        return Response(msgspec.json.encode(ticket_made), status_code=201, media_type="application/json")


def _route(answer: _Answer, kind: type[asked.OfTerminal[Any]]) -> Any:
    async def route(request: Request, terminal: _Id) -> Response:
        found: Response = await answer(await _question(request, kind, terminal=terminal))
        return found

    return route


async def _question(request: Request, kind: Any, **given: str) -> Any:
    body = await decoded(request, dict[str, Any], limit=BODY_LIMIT)
    return _converted({**body, **given, "by": LOCAL}, kind)


def _converted(body: dict[str, Any], kind: Any) -> Any:
    """Return a body as a question. Raises `INVALID_ARGUMENT` naming the field."""
    unknown = body.keys() - {field.encode_name for field in msgspec.structs.fields(kind)}
    if unknown:
        field = min(unknown)
        raise VoxbridgeError(Code.INVALID_ARGUMENT, f"There is no field {field[:64]!r}.", field=field[:64])
    try:
        return msgspec.convert(_whole(body), kind)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$.")
        field = path.rstrip("`") or what.partition("`")[2].partition("`")[0]
        raise VoxbridgeError(Code.INVALID_ARGUMENT, f"{what}.", field=field or None) from None


def _whole(part: Any) -> Any:
    """Return a body with its whole numbers as such: JSON may write 2 as 2.0."""
    if isinstance(part, dict):
        return {name: _whole(one) for name, one in part.items()}
    if isinstance(part, list):
        return [_whole(one) for one in part]
    return int(part) if isinstance(part, float) and part.is_integer() else part


def _body(kind: Any, *given: str) -> dict[str, Any]:
    """Return the description of a body: the fields of a question without those that the gateway fills in."""
    schema = dict(_schema(kind))
    left = _GIVEN | set(given)
    schema["properties"] = {name: one for name, one in schema["properties"].items() if name not in left}
    schema["required"] = [name for name in schema.get("required", ()) if name not in left]
    return body_of({**schema, "additionalProperties": False}, required=bool(schema["required"]))


def _answers(kind: Any, status: int = 200) -> dict[int | str, dict[str, Any]]:
    return {status: {"description": "Done", "content": {"application/json": {"schema": _schema(kind)}}}}


@cache
def _schema(kind: Any) -> dict[str, Any]:
    """Return the schema of a struct with every reference written out: the structs of terminals refer to nothing that refers back."""
    whole = msgspec.json.schema(kind)
    definitions = whole.pop("$defs")

    def written_out(part: Any) -> Any:
        if isinstance(part, list):
            return [written_out(one) for one in part]
        if not isinstance(part, dict):
            return part
        if "$ref" in part:
            return written_out(definitions[part["$ref"].rpartition("/")[2]])
        return {name: written_out(one) for name, one in part.items()}

    found: dict[str, Any] = written_out(whole)
    return found

"""The tools of `voxbridge mcp`: sessions, their events, states and latencies, replays, and functions, all by REST.

Owns their names and shapes. Does not own what may be read: the gateway decides by the key, so an access token is told of its account alone,
reads no journal and so replays nothing, and calls no function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from voxbridge.assistant import explain
from voxbridge.assistant.rest import Rest, part
from voxbridge.assistant.stdio import Tool
from voxbridge.shared.errors import Code, VoxbridgeError

EVENTS_PAGE: Final = 1_000
TAIL: Final = 1_000
"""Events that are read for one explanation, from the user's last words on."""

EVENTS_LIMIT: Final = 100_000
LIST_LIMIT: Final = 200
SID: Final = 32

_SESSION: Final = {
    "type": "string",
    "description": "The session's id, the beginning of one, or `last` for the newest session.",
    "minLength": 1,
    "maxLength": SID,
}


class Assistant:
    """Actions of the tools, with one key."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    def list_sessions(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Return the newest sessions."""
        page: dict[str, Any] = self._rest.get("/api/sessions", limit=asked.get("limit", 20), before=asked.get("before"))
        return page

    def read_session(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Return a session with its transcript."""
        found: dict[str, Any] = self._rest.get(f"/api/sessions/{self._sid(asked)}")
        return found

    def session_events(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Return a page of a session's events."""
        sid, after, limit = self._sid(asked), asked.get("after", 0), asked.get("limit", 200)
        page: dict[str, Any] = self._rest.get(f"/api/sessions/{sid}/events", after=after, limit=limit, journals=False)
        return {"session": sid, **page}

    def session_state(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Return what the voice service knew at a position of the log, or knows now."""
        found: dict[str, Any] = self._rest.get(f"/api/sessions/{self._sid(asked)}/state", seq=asked.get("seq"))
        return found

    def session_latencies(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Return how long the stages of each turn took."""
        sid = self._sid(asked)
        return {"session": sid, **explain.latencies(self._events(sid, 0))}

    def explain_silence(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Return why a call was silent, and what happened since the user's last words."""
        sid = self._sid(asked)
        detail = self._rest.get(f"/api/sessions/{sid}")
        said = [one["seq"] for one in detail["transcript"] if one["role"] == "user"]
        after = said[-1] - 1 if said else 0
        events = self._events(sid, after, limit=TAIL)
        silences = self._rest.get(f"/api/sessions/{sid}/silences")
        found = explain.findings(events, silences["silences"], live=silences["live"], whole=not said)
        return {
            "session": sid,
            "state": detail["state"],
            "ended_reason": detail.get("ended_reason"),
            "answer": " ".join(one["why"] for one in found[:3]) or "The log shows no silence longer than 2.5 s.",
            "findings": found,
            "silences": silences["silences"],
            "since_the_last_words": explain.after_last_words(events),
        }

    def replay_session(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Take a recorded session again with the code that is installed here, and return the differences."""
        from voxbridge.assistant.replaying import replayed  # the cores of all services: half a second to import

        sid = self._sid(asked)
        return {"session": sid, **replayed(self._events(sid, 0, journals=True))}

    def list_functions(self, _: dict[str, Any]) -> dict[str, Any]:
        """Return the functions and their schemas."""
        found: dict[str, Any] = self._rest.get("/api/vox/functions")
        return found

    def call_function(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Run a function outside any session."""
        key = {"Idempotency-Key": asked["idempotency_key"]} if asked.get("idempotency_key") else {}
        ran: dict[str, Any] = self._rest.post(
            f"/api/vox/function/{part(_text(asked, 'name'))}", {"args": asked.get("arguments", {})}, **key
        )
        return ran

    def _sid(self, asked: dict[str, Any]) -> str:
        said = _text(asked, "session_id").strip().lower()
        if len(said) == SID:
            return part(said)
        listed = self._rest.get("/api/sessions", limit=1 if said == "last" else LIST_LIMIT)["sessions"]
        found = [one["id"] for one in listed if said == "last" or one["id"].startswith(said)]
        if len(found) != 1:
            what = f"{len(found)} sessions begin" if found else "None of the newest sessions begins"
            raise VoxbridgeError(Code.NOT_FOUND, f"{what} with {said!r}; list_sessions says which there are.", field="session_id")
        return str(found[0])

    def _events(self, sid: str, after: int, *, limit: int = EVENTS_LIMIT, journals: bool = False) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        more: int | None = after
        while more is not None and len(found) < limit:
            page = self._rest.get(f"/api/sessions/{sid}/events", after=more, limit=EVENTS_PAGE, journals=journals)
            found += page["events"]
            more = page.get("next_after") if page["more"] else None
        return found[:limit]


def tools(rest: Rest) -> dict[str, Tool]:
    """Return the tools by name."""
    do = Assistant(rest)
    of_session = {"properties": {"session_id": _SESSION}, "required": ["session_id"]}
    limits = {
        "limit": _number(1, LIST_LIMIT, "How many."),
        "before": _number(0, 2**43, "Only those that began before, ms of the Unix clock."),
    }
    page = {"after": _number(0, 2**62, "Position in the log."), "limit": _number(1, EVENTS_PAGE, "How many, journals counted.")}
    call = {
        "name": {"type": "string", "maxLength": 64},
        "arguments": {"type": "object"},
        "idempotency_key": {"type": "string", "maxLength": 255, "description": "The same key is the same call for 24 hours: it runs once."},
    }
    made = (
        _tool(do.list_sessions, "List voice sessions, the newest first.", {"properties": limits}),
        _tool(do.read_session, "Read one session: its state, and the transcript of what was said and heard.", of_session),
        _tool(do.session_events, "Read the events of a session in the order of the log.", _with(of_session, page)),
        _tool(
            do.session_state,
            "Tell what the voice service knew at a position of the log: speech, reply, open calls, timers.",
            _with(of_session, {"seq": _number(0, 2**62, "Position in the log; without it: now.")}),
        ),
        _tool(do.session_latencies, "Tell how long the stages of each turn took, in ms after the user's last word.", of_session),
        _tool(
            do.explain_silence,
            "Explain why a call was silent, or went wrong: the causes that the log shows, and what happened since the user's last words.",
            of_session,
        ),
        _tool(do.replay_session, "Replay a recorded session with the code that is installed here, and tell what differs.", of_session),
        _tool(do.list_functions, "List the functions that agents, and call_function, can call.", {"properties": {}}),
        _tool(do.call_function, "Run a function; it may change something.", {"properties": call, "required": ["name"]}, reads=False),
    )
    return {tool.name: tool for tool in made}


def _tool(run: Callable[[dict[str, Any]], dict[str, Any]], description: str, parameters: dict[str, Any], *, reads: bool = True) -> Tool:
    return Tool(run.__name__, description, parameters, run, reads)


def _with(schema: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    return {**schema, "properties": {**schema["properties"], **more}}


def _number(least: int, most: int, what: str) -> dict[str, Any]:
    return {"type": "integer", "minimum": least, "maximum": most, "description": what}


def _text(asked: dict[str, Any], name: str) -> str:
    value = asked.get(name)
    if not isinstance(value, str) or not value:
        raise VoxbridgeError(Code.INVALID_ARGUMENT, f"`{name}` must be a text.", field=name)
    return value

"""Routers of the sets of functions that callers offer, trained when a set is seen for the first time.

Training takes seconds. A set that is part of one that has a router, as that of a client without a page, is served by that router until its
own is trained, which begins when the answer has had its time.

Owns the few that are kept in memory. A crash here loses them; the next request reads its own from the disk (`router_files`), or trains it.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from voxbridge.services.models.api.router_files import RouterFiles
from voxbridge.services.models.choice import meanings
from voxbridge.services.models.choice.meanings import Meanings
from voxbridge.services.models.choice.moods import is_question, mood
from voxbridge.services.models.choice.router import Before, Decision, Known, Router
from voxbridge.services.models.core.chatml import Call, Message, Tool
from voxbridge.services.models.engines.phrasings import Phrasings
from voxbridge.shared.agents import talking
from voxbridge.shared.agents.notes import without_notes
from voxbridge.shared.awareness.prompt import OPENING

KEPT: Final = 8
"""Routers kept; that of the set used longest ago goes first. One of 80 functions has 4 MB."""

LATER_S: Final = 10.0
"""Seconds after which the router of a set is trained that another one serves meanwhile."""

NAMES_LIMIT: Final = 64
"""Values of a function's arguments that its router knows."""


RUN_TOOL: Final = "run_tool"


class _Run(msgspec.Struct):
    tool_id: str


_Learned = tuple[str, tuple[str, ...]]


class _Kept(NamedTuple):
    """Router of a set of functions, with what it learned of each: its name, and what people say who want it."""

    router: asyncio.Future[Router]
    learned: frozenset[_Learned]

    @property
    def serves(self) -> bool:
        """True once it is trained."""
        return self.router.done() and self.router.exception() is None

    @property
    def failed(self) -> bool:
        """True if it could not be trained."""
        return self.router.done() and self.router.exception() is not None


class Routers:
    """The routers of a process. `files` keep them for the next one; without any they are trained by each. `phrasings` has requests written
    for functions that bring none."""

    def __init__(self, files: RouterFiles | None = None, phrasings: Phrasings | None = None) -> None:
        self._files, self._phrasings = files, phrasings
        self._meanings: Meanings | None = None
        self._kept: OrderedDict[bytes, _Kept] = OrderedDict()
        self._later: dict[bytes, asyncio.TimerHandle] = {}

    async def of(self, tools: Sequence[Tool]) -> Router | None:
        """Return the router of a set of tools, trained in a thread if it is new; None if none of the tools has utterances. One that knows
        more is trained while the one before it serves."""
        if not any(tool.utterances for tool in tools):
            return None
        functions = [known(tool) for tool in tools]
        told = self._phrasings.told(functions) if self._phrasings is not None else functions
        if told == functions:
            return await self._soonest(functions)
        better, plain = self._of(told), self._kept.get(_key(functions))
        return await asyncio.shield(plain.router if plain is not None and plain.serves and not better.done() else better)

    async def _soonest(self, functions: Sequence[Known]) -> Router:
        """Return the router of a set, or one that knows more until that is trained."""
        key = _key(functions)
        own = self._kept.get(key)
        other = None if own is not None and own.serves else self._other(_learned(functions), served=own is not None)
        if other is None or (own is None and await asyncio.to_thread(self._is_on_disk, functions)):
            return await asyncio.shield(self._of(functions))
        if own is None and key not in self._later:
            self._later[key] = asyncio.get_running_loop().call_later(LATER_S, self._train_now, key, functions)
        router = await asyncio.shield(other)
        return router.without(set(router.names) - {known.name for known in functions})

    def _other(self, learned: frozenset[_Learned], *, served: bool) -> asyncio.Future[Router] | None:
        """Return the router that learned as much and more, the smallest that serves; with `served` none that is being trained."""
        wider = [key for key, one in self._kept.items() if learned <= one.learned and (one.serves or not (served or one.failed))]
        if not wider:
            return None
        key = min(wider, key=lambda one: (not self._kept[one].serves, len(self._kept[one].learned)))
        self._kept.move_to_end(key)
        return self._kept[key].router

    def _is_on_disk(self, functions: Sequence[Known]) -> bool:
        return self._files is not None and self._files.has(functions)

    def _train_now(self, key: bytes, functions: Sequence[Known]) -> None:
        del self._later[key]
        self._of(functions)

    def _of(self, functions: Sequence[Known]) -> asyncio.Future[Router]:
        key = _key(functions)
        found = self._kept.get(key)
        if found is None or found.failed:
            training = asyncio.ensure_future(asyncio.to_thread(self._train, functions))
            found = self._kept[key] = _Kept(training, _learned(functions))
        self._kept.move_to_end(key)
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return found.router

    def _train(self, functions: Sequence[Known]) -> Router:
        table = self._meanings = self._meanings or read_meanings()
        found = self._files.read(functions, table) if self._files is not None else None
        if found is not None:
            return found
        router = Router(functions, table)
        if self._files is not None:
            self._files.write(functions, router)
        return router


def _key(functions: Sequence[Known]) -> bytes:
    return hashlib.sha256(msgspec.msgpack.encode(functions)).digest()


def _learned(functions: Sequence[Known]) -> frozenset[_Learned]:
    return frozenset((known.name, known.utterances) for known in functions)


def read_meanings() -> Meanings:
    """Return the table of meanings that is installed beside the router."""
    with np.load(Path(meanings.__file__).with_name("meanings.npz")) as table:
        return Meanings(table["words"].tobytes().decode().split("\n"), table["vectors"])


class Asked(NamedTuple):
    """The last request of the user: its words, how many calls were made for it, and whether it was answered in words already."""

    said: str = ""
    made: int = 0
    answered: bool = False


def _told(messages: Sequence[Message]) -> list[int]:
    """Return the indices of the user's messages."""
    return [index for index, message in enumerate(messages) if message.role == "user" and not message.text.startswith(OPENING)]


def _said(messages: Sequence[Message]) -> dict[int, str]:
    """Return what the user said, by the index of the message; notes are left out."""
    return {index: words for index in _told(messages) if (words := without_notes(messages[index].text))}


def asked(messages: Sequence[Message]) -> Asked:
    """Return what the user said last."""
    said = _said(messages)
    if not said:
        return Asked()
    last = max(said)
    answered = any(message.role == "assistant" and message.text for message in messages[last : _told(messages)[-1]])
    return Asked(said[last], sum(message.call is not None for message in messages[last:]), answered)


def in_parts(messages: Sequence[Message], parts: Sequence[str]) -> list[Message]:
    """Return the messages of a conversation with what the user said last in its parts, each before the call that serves it. A model that
    reads the whole request writes the second wish into the first call: "remember … and tell me the time" would be one long note."""
    last, said = max(_said(messages).items())
    whole = messages[last].text
    found = [*messages[:last], Message("user", whole.replace(said, parts[0], 1) if said in whole else parts[0])]
    left = list(parts[1:])
    for message in messages[last + 1 :]:
        found.append(message)
        if message.role == "tool" and left:
            found.append(Message("user", left.pop(0)))
    return found


def wanted(router: Router, said: str) -> str:
    """Return the function that a text surely wants; empty if none."""
    decision = router.decide(said)
    return decision.shortlist[0] if decision.mode == "call" and mood(said) == "wish" else ""


def decide(router: Router, messages: Sequence[Message], reads: Collection[str] = ()) -> Decision:
    """Return what the last thing that the user said wants, in the light of the turn before. A request that was answered already, or
    that is not a wish of the user's own, is never a sure call; a question about the past may surely want one of the read-only functions."""
    said = _said(messages)
    if not said:
        return Decision("words", 0.0, ())
    *earlier, last = said
    before = None
    if earlier:
        called = [_called(message.call) for message in messages[earlier[-1] : last] if message.call is not None]
        before = Before(said[earlier[-1]], called[-1]) if called else None
    decision = router.decide(said[last], before)
    feeling = mood(said[last])
    if feeling == "denied":
        return msgspec.structs.replace(decision, mode="words", unserved=False)
    if feeling in ("told", "asked"):
        sure = decision.mode == "call" and feeling == "asked" and decision.shortlist[0] in reads
        only = tuple(name for name in decision.shortlist if name in reads)
        mode = decision.mode if sure or not only else "unsure"
        return msgspec.structs.replace(
            decision, mode="words" if decision.mode == "words" or not only else mode, shortlist=only, unserved=False
        )
    again = decision.mode == "call" and asked(messages).answered
    return msgspec.structs.replace(decision, mode="unsure") if again else decision


def on_leash(decision: Decision, said: str, held: AbstractSet[str]) -> Decision:
    """Return a decision for a request that may only ask something: no function of `held` comes of a question, since these take orders and
    do something in programs."""
    if decision.mode == "words" or held.isdisjoint(decision.shortlist) or not is_question(said):
        return decision
    left = tuple(name for name in decision.shortlist if name not in held)
    sure = decision.mode == "call" and decision.shortlist[0] not in held
    mode = decision.mode if sure else "unsure" if left else "words"
    return msgspec.structs.replace(decision, mode=mode, shortlist=left)


def _called(call: Call) -> str:
    """Return what a call ran: `run_tool` runs another function, which it names."""
    if call.name != RUN_TOOL:
        return call.name
    try:
        return msgspec.json.decode(call.arguments, type=_Run).tool_id
    except msgspec.DecodeError:  # the beginning of a long call
        return call.name


def known(tool: Tool) -> Known:
    """Return what a router learns of a tool."""
    about = talking.ABOUT if tool.name in (talking.START.name, talking.END.name) else ()
    return Known(tool.name, tool.description, tool.utterances, tuple(_names(tool.parameters))[:NAMES_LIMIT], about=about)


def _names(parameters: Mapping[str, Any]) -> list[str]:
    """Return the values that arguments can have."""
    properties = parameters.get("properties", {})
    schemas = properties.values() if isinstance(properties, Mapping) else ()
    found = [schema.get("enum") for schema in schemas if isinstance(schema, Mapping)]
    return [value for values in found if isinstance(values, list) for value in values if isinstance(value, str)]

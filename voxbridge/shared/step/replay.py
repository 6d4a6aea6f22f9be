"""Replay: the recorded inputs are taken again in their order and with their time, and the results are compared with the log.

Owns the comparison: every event that the step would append, with its payload, cause, time, order and id, and how the journal groups the
inputs. Does not own where a recording is read from, nor any service's rules. Pure; keeps nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, Final, Literal

import msgspec

from voxbridge.shared import events
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events.journal import JOURNALS, Checkpoint, Journal, Taken
from voxbridge.shared.step.fold import Append, Folded, Step
from voxbridge.shared.step.journal import JournalReader, LogInput

IGNORED: Final[Mapping[tuple[str, str], str]] = {
    ("*", "id.process"): "names the process that wrote, where several may; another one takes over without changing the call",
}
"""Fields that are not compared, by event type (`*`: all) and path, each with the reason."""

_PROCESS: Final = 3
"""Parts of an id that names no process; with one it is `writer.process.number`, after the session."""

_ABSENT: Final = "(absent)"


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """Everything needed to replay a service: its step, the state before the first input, and the union of its own inputs."""

    writer: str
    step: Step[Any, Any, Any]
    initial: Callable[[str], Any]
    inputs: Any
    restored: Callable[[events.Recorded], Folded[Any] | None] = lambda _recorded: None
    """Reads the state in a checkpoint, for a service that erases what its checkpoints stand for."""


class Input(msgspec.Struct, frozen=True, kw_only=True):
    """An input in readable form: its number in the service, when it was taken (µs), and what it was."""

    number: int
    at: int
    cause: int | str
    name: str
    value: Any


class Field(msgspec.Struct, frozen=True):
    """A field that differs; a side that lacks it holds `(absent)`."""

    path: str
    recorded: Any
    replayed: Any


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A difference from the recording. `seq` is the event's position or, where the log has no such event, that of the journal entry.

    changed: an event with other fields. missing: the log has it and the step does not append it. extra: the step appends it and the log
    does not have it. raised: the step failed at an input, which ends the replay. log: the record itself is not in order.
    """

    kind: Literal["changed", "missing", "extra", "raised", "log"]
    seq: int
    type: str
    input: Input | None
    fields: tuple[Field, ...] = ()
    text: str = ""


class Replayed(msgspec.Struct, kw_only=True):
    """Result of a replay. `unfinished` are events after the last journal entry that the log does not have: the call goes on, or its process
    was killed in between. By themselves they are no difference."""

    writer: str
    sid: str
    began: int
    state: Any
    inputs: int = 0
    events: int = 0
    differences: list[Difference] = []
    unfinished: list[Difference] = []


class _Expected(msgspec.Struct, frozen=True):
    event: events.Event
    input: Input
    last: bool
    """True if its input is the last of its journal entry, as it is whenever something was appended, except where inputs were taken
    together."""


def replay(service: Service, log: Sequence[events.Recorded]) -> Replayed:
    """Replay one service's part of a session. `log` holds all events of the session in order.

    Raises `NOT_FOUND` when the service took no input in it, and `INTERNAL` when the record is incomplete: its beginning or an event that
    the journal names is missing, or an input cannot be read.
    """
    own = [recorded for recorded in log if recorded.writer == service.writer]
    if not any(isinstance(recorded.event, JOURNALS[service.writer]) for recorded in own):
        raise VoxbridgeError(Code.NOT_FOUND, f"The {service.writer} service took no input in this session.", field="service")
    base = began_at(service, own)
    return _Replay(service, log, own, base).run()


def began_at(service: Service, own: Sequence[events.Recorded]) -> Folded[Any] | None:
    """Return the state before the first input that is left, where a checkpoint stands for those before it; None where none is needed."""
    first = next((one for one in own if isinstance(one.event, JOURNALS[service.writer])), None)
    if first is None or not isinstance(first.event, Journal) or not first.event.first:
        return None
    found = (service.restored(one) for one in own if one.seq < first.seq)
    return next((one for one in found if one is not None and one.taken == first.event.first), None)


class _Replay:
    def __init__(
        self, service: Service, log: Sequence[events.Recorded], own: Sequence[events.Recorded], base: Folded[Any] | None = None
    ) -> None:
        self._service = service
        self._journal: JournalReader[Any] = JournalReader(service.writer, service.inputs, log)
        self._own = own if base is None else [one for one in own if one.seq > base.last_seq]
        self._first = 0 if base is None else base.number
        self._causes: dict[int | str, Input] = {}
        # A session imported under another id keeps its event ids, which contain its original session id.
        sid = next((recorded.id.partition(".")[0] for recorded in own if recorded.id), log[0].sid)
        state, taken = (service.initial(sid), 0) if base is None else (base.state, base.taken)
        self._result = Replayed(writer=service.writer, sid=sid, began=log[0].ts, state=state, inputs=taken)

    def run(self) -> Replayed:
        result = self._result
        for number, recorded in enumerate(self._own, self._first):
            if not self._journal.is_entry(recorded) and isinstance(recorded.event, events.Unreadable):
                continue
            self._check_id(number, recorded)
        for entry, followed in _entries(self._own, self._journal):
            if entry is None:
                result.differences += [self._uncaused(recorded) for recorded in followed]
                continue
            try:
                expected = list(self._expected(entry))
            except _Raised as raised:
                result.differences.append(raised.difference)
                break
            self._compare(entry, expected, followed)
        return result

    def _expected(self, entry: events.Recorded) -> Iterator[_Expected]:
        journal: Any = entry.event
        if journal.first != self._result.inputs:
            reason = (
                "its beginning is not there" if not self._result.inputs else f"{journal.first - self._result.inputs} inputs are not there"
            )
            raise _broken(entry, f"begins with input {journal.first} instead of {self._result.inputs}: {reason}")
        for place, (taken, taken_input) in enumerate(self._journal.read(entry), start=1):
            input = self._shown(taken, taken_input, self._result.inputs)
            try:
                self._result.state, outputs = self._service.step(self._result.state, taken_input, taken.at)
            except Exception as error:
                raise _Raised(entry, input, error) from error
            self._result.inputs += 1
            for output in outputs:
                if isinstance(output, Append):
                    yield _Expected(output.event, input, last=journal.together or place == len(journal.inputs))

    def _shown(self, taken: Taken, value: Any, number: int) -> Input:
        if isinstance(value, LogInput):
            recorded = value.recorded
            return Input(number=number, at=taken.at, cause=recorded.seq, name=recorded.type, value=recorded.event)
        return Input(number=number, at=taken.at, cause=f"{self._service.writer}#{number}", name=_name(value), value=value)

    def _compare(self, entry: events.Recorded, expected: list[_Expected], followed: list[events.Recorded]) -> None:
        result = self._result
        result.events += len(followed) + 1
        journal: Any = entry.event
        if followed and expected and expected[-1].last and not journal.together:
            # The first output of the last input wrote this entry. The step does not decide when other entries are written.
            input = expected[-1].input
            fields = _fields({"ts": entry.ts, "cause": entry.cause}, {"ts": input.at, "cause": None})
            if fields:
                result.differences.append(Difference(kind="changed", seq=entry.seq, type=entry.type, input=input, fields=fields))
        then, now = [one.type for one in followed], [events.kind_of(one.event).name for one in expected]
        for tag, a, b, c, d in SequenceMatcher(None, then, now, autojunk=False).get_opcodes():
            if tag == "equal":
                for recorded, wanted_event in zip(followed[a:b], expected[c:d], strict=True):
                    self._compare_event(recorded, wanted_event)
                continue
            result.differences += [self._missing(recorded, expected) for recorded in followed[a:b]]
            extra = [
                Difference(kind="extra", seq=entry.seq, type=now[at], input=expected[at].input, fields=_all(expected[at]))
                for at in range(c, d)
            ]
            ends_here = tag == "insert" and a == len(followed) and (followed[-1] if followed else entry) is self._own[-1]
            (result.unfinished if ends_here else result.differences).extend(extra)

    def _compare_event(self, recorded: events.Recorded, expected: _Expected) -> None:
        kind = events.kind_of(expected.event)
        place = (expected.input.cause, expected.input.at, kind.visible)
        same = expected.last and (recorded.cause, recorded.ts, recorded.visible) == place
        if same and msgspec.msgpack.encode(recorded.event) == msgspec.msgpack.encode(expected.event):
            return
        then = {"visible": recorded.visible, "ts": recorded.ts, "cause": recorded.cause, "data": plain(recorded.event)}
        now = {"visible": kind.visible, "ts": expected.input.at, "cause": expected.input.cause, "data": plain(expected.event)}
        if not expected.last:
            then["journal"], now["journal"] = "more inputs in its entry", "its input ends the entry"
        fields = tuple(field for field in _fields(then, now) if not ignored(recorded.type, field.path))
        if fields:
            difference = Difference(kind="changed", seq=recorded.seq, type=recorded.type, input=expected.input, fields=fields)
            self._result.differences.append(difference)

    def _check_id(self, number: int, recorded: events.Recorded) -> None:
        parts = recorded.id.split(".")
        then = {"sid": parts[0], "writer": parts[1] if len(parts) > 1 else "", "number": parts[-1]}
        then["process"] = ".".join(parts[2:-1]) if len(parts) > _PROCESS else ""
        now = {"sid": self._result.sid, "writer": self._service.writer, "number": str(number), "process": ""}
        fields = tuple(field for field in _fields({"id": then}, {"id": now}) if not ignored(recorded.type, field.path))
        if fields:
            text = "has an id that does not fit its place in the log"
            self._result.differences.append(
                Difference(kind="log", seq=recorded.seq, type=recorded.type, input=None, fields=fields, text=text)
            )

    def _missing(self, recorded: events.Recorded, expected: list[_Expected]) -> Difference:
        if isinstance(recorded.event, events.Unreadable):
            return Difference(kind="log", seq=recorded.seq, type=recorded.type, input=None, text=f"is broken: {recorded.event.unreadable}")
        if isinstance(recorded.event, events.Unknown):
            return Difference(kind="log", seq=recorded.seq, type=recorded.type, input=None, text="was written by a newer release")
        input = next((one.input for one in expected if one.input.cause == recorded.cause), None) or self._cause(recorded)
        return Difference(kind="missing", seq=recorded.seq, type=recorded.type, input=input, fields=_all(recorded))

    def _cause(self, recorded: events.Recorded) -> Input | None:
        """Return the input that a recorded event names, when the step made nothing of it."""
        if not self._causes:
            read = (one for entry in self._own if self._journal.holds_entry(entry.event) for one in self._journal.read(entry))
            shown = (self._shown(taken, value, number) for number, (taken, value) in enumerate(read))
            self._causes = {one.cause: one for one in shown}
        return self._causes.get(recorded.cause) if recorded.cause is not None else None

    def _uncaused(self, recorded: events.Recorded) -> Difference:
        return Difference(kind="log", seq=recorded.seq, type=recorded.type, input=None, text="stands in the log before any input")


class _Raised(Exception):
    def __init__(self, entry: events.Recorded, input: Input, error: Exception) -> None:
        super().__init__()
        text = f"the step raised {type(error).__name__}: {error}"
        self.difference = Difference(kind="raised", seq=entry.seq, type=entry.type, input=input, text=text)


def ignored(event_type: str, path: str) -> bool:
    """Return whether a field is declared as not compared."""
    return ("*", path) in IGNORED or (event_type, path) in IGNORED


def plain(value: Any) -> Any:
    """Return an event or an input as plain values."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(value))


def _entries(own: Sequence[events.Recorded], journal: JournalReader[Any]) -> Iterator[tuple[events.Recorded | None, list[events.Recorded]]]:
    """Yield each journal entry with the events that follow it; first, without an entry, the events before all entries."""
    entry: events.Recorded | None = None
    followed: list[events.Recorded] = []
    for recorded in own:
        if journal.holds_entry(recorded.event):
            if entry is not None or followed:
                yield entry, followed
            entry, followed = recorded, []
        elif not isinstance(recorded.event, Checkpoint):
            followed.append(recorded)
    yield entry, followed


def _all(event: events.Recorded | _Expected) -> tuple[Field, ...]:
    data = plain(event.event)
    if isinstance(event, _Expected):
        return tuple(Field(f"data.{name}", _ABSENT, value) for name, value in data.items())
    return tuple(Field(f"data.{name}", value, _ABSENT) for name, value in data.items())


def _fields(recorded: Any, replayed: Any, path: str = "") -> tuple[Field, ...]:
    if isinstance(recorded, dict) and isinstance(replayed, dict):
        names = [*recorded, *(name for name in replayed if name not in recorded)]
        pairs = [(f"{path}.{name}" if path else str(name), recorded.get(name, _ABSENT), replayed.get(name, _ABSENT)) for name in names]
    elif isinstance(recorded, list) and isinstance(replayed, list):
        longest = range(max(len(recorded), len(replayed)))
        pairs = [(f"{path}[{at}]", _at(recorded, at), _at(replayed, at)) for at in longest]
    else:
        same = recorded == replayed and type(recorded) is type(replayed)
        return () if same else (Field(path, recorded, replayed),)
    return tuple(field for name, then, now in pairs for field in _fields(then, now, name))


def _at(values: list[Any], at: int) -> Any:
    return values[at] if at < len(values) else _ABSENT


def _name(input: Any) -> str:
    tag = getattr(getattr(input, "__struct_config__", None), "tag", None)
    return str(tag) if tag is not None else type(input).__name__


def _broken(entry: events.Recorded, what: str) -> VoxbridgeError:
    return VoxbridgeError(Code.INTERNAL, f"The journal entry at log position {entry.seq} {what}.", retryable=False)

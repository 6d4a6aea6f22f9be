"""Replay of a recording with the services' current steps, and a report of the differences that shows their causes.

Owns which services can be replayed, and the words. Does not own the comparison (`voxbridge.shared.step.replay`) nor where a recording is
kept (`voxbridge.sessions.archive`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from voxbridge.services.awareness.core import checkpoints
from voxbridge.services.awareness.core import inputs as awareness_inputs
from voxbridge.services.awareness.core import step as awareness
from voxbridge.services.awareness.core.state import initial
from voxbridge.services.terminals.core import life
from voxbridge.services.tools.core import inputs as tools_inputs
from voxbridge.services.tools.core import state as tools_state
from voxbridge.services.tools.core import step as tools
from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.core import step as voice
from voxbridge.shared import events
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.events.journal import JOURNALS
from voxbridge.shared.step.replay import Difference, Input, Replayed, Service, plain, replay

NAMES: Final = ("voice", "tools", "awareness", "terminals")
SHOWN: Final = 20
"""Differences that are printed by default."""

_WIDTH: Final = 160
_UNFINISHED: Final = (
    "The log ends before them: the call goes on, or its process was killed in between. If so, `--unfinished` lets that pass."
)


def services() -> dict[str, Service]:
    """Return the services that can be replayed, with their current steps."""
    return {
        "voice": Service(writer="voice", step=voice.step, initial=voice.initial, inputs=inputs.Input),
        "awareness": Service(
            writer="awareness", step=awareness.step, initial=initial, inputs=awareness_inputs.Input, restored=checkpoints.restored
        ),
        "terminals": Service(writer="terminals", step=life.step, initial=life.initial, inputs=life.Input),
        "tools": Service(writer="tools", step=tools.step, initial=lambda _sid: tools_state.State(), inputs=tools_inputs.Input),
    }


def took_part(log: Sequence[events.Recorded]) -> list[str]:
    """Return the services that took inputs in a session."""
    return [name for name in NAMES if any(isinstance(one.event, JOURNALS[name]) for one in log)]


def run(log: Sequence[events.Recorded], service: str) -> Replayed:
    """Replay one service; raises as `voxbridge.shared.step.replay.replay`."""
    return replay(services()[service], log)


def differences(path: Path, service: str) -> str:
    """Return the differences between a recording and its replay, in words; empty when there are none. For tests."""
    from voxbridge.sessions.archive import read

    replayed = run(read(path).log, service)
    return "" if same(replayed) else "\n".join(report(replayed))


def same(replayed: Replayed, *, unfinished: bool = False) -> bool:
    """Return whether the replay gave what was recorded. With `unfinished` the log may lack the last events."""
    return not replayed.differences and (unfinished or not replayed.unfinished)


def report(replayed: Replayed, *, unfinished: bool = False, limit: int = SHOWN) -> Iterator[str]:
    """Yield the result, line by line."""
    found = replayed.differences if unfinished else [*replayed.differences, *replayed.unfinished]
    scope = f"{replayed.inputs:,} inputs, {replayed.events:,} events"
    if not found:
        yield f"{replayed.writer}: no difference ({scope})"
        if replayed.unfinished:
            yield f"  {len(replayed.unfinished)} more would follow its end: the call goes on, or its process was killed in between."
        return
    yield f"{replayed.writer}: {len(found):,} difference{'s' if len(found) > 1 else ''} ({scope})"
    for difference in found[:limit]:
        yield from _described(difference, replayed.began)
    if len(found) > limit:
        yield f"… and {len(found) - limit:,} more; `--limit` shows them"
    if replayed.unfinished and not unfinished:
        yield _UNFINISHED


def _described(difference: Difference, began: int) -> Iterator[str]:
    input = difference.input
    at = f", {moment(input.at - began)} into the call" if input is not None else ""
    what = {
        "changed": "has other fields",
        "missing": "was recorded, and is not appended now",
        "extra": "is appended now, and was not recorded",
        "raised": difference.text,
        "log": difference.text,
    }[difference.kind]
    place = f"after position {difference.seq}" if difference.kind == "extra" else f"position {difference.seq}"
    yield ""
    yield f"{difference.type} ({place}{at}) {what}"
    for field in difference.fields:
        match difference.kind:
            case "missing":
                yield f"    {field.path}: {_shown(field.recorded)}"
            case "extra":
                yield f"    {field.path}: {_shown(field.replayed)}"
            case _:
                yield f"    {field.path}"
                yield f"      recorded {_shown(field.recorded)}"
                yield f"      replayed {_shown(field.replayed)}"
    if input is not None:
        yield f"    caused by input {input.number}: {_cause(input)}"


def _cause(input: Input) -> str:
    place = f" at position {input.cause}" if isinstance(input.cause, int) else ""
    value: Any = plain(input.value)
    if isinstance(value, dict):
        value = {name: part for name, part in value.items() if name != "type"}
    return f"{input.name}{place} {_shown(value)}"


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) and value.startswith("(") else msgspec.json.encode(value).decode()
    return text if len(text) <= _WIDTH else f"{text[:_WIDTH]}… ({len(text):,} characters)"


def moment(us: int) -> str:
    """Return a time in a call, as `m:ss.mmm`."""
    minutes, ms = divmod(max(0, us) // 1_000, 60_000)
    return f"{minutes}:{ms // 1_000:02d}.{ms % 1_000:03d}"


def chosen(log: Sequence[events.Recorded], service: str | None) -> list[str]:
    """Return the named service, or all that took part; raises `NOT_FOUND` when none did."""
    found = [service] if service else took_part(log)
    if not found:
        raise VoxbridgeError(Code.NOT_FOUND, "No service that can be replayed took an input in this session.", field="service")
    return found

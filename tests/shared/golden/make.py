"""The golden log of a release: one event of each type, as the release writes it, with its meaning.

Make one with each release, `python -m tests.shared.golden.make`, and commit it; it is named after the version in pyproject.toml. Later
releases read it in `tests/shared/test_events.py`, so a change that would lose data in existing logs fails there: give the event a new
version and an upcaster instead. The file of a published release is never made again; `--replace` is for the one in preparation.

Each line is a JSON object: `type`, `v`, `writer`, `visible`, `payload` (the bytes in the log, base64), `means` (the event as JSON).
"""

from __future__ import annotations

import base64
import sys
from importlib.metadata import version
from pathlib import Path

import msgspec

from tests.shared.samples import samples
from voxbridge.shared import events

FOLDER = Path(__file__).parent
SID = "0123456789abcdef0123456789abcdef"


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """An event of a golden log."""

    type: str
    v: int
    writer: str
    visible: bool
    payload: str
    means: msgspec.Raw


def meaning(event: events.Event) -> bytes:
    """Return an event as JSON; the raw inputs of a journal in base64."""
    return msgspec.json.encode(msgspec.to_builtins(event, enc_hook=_raw))


def lines() -> list[Line]:
    """Return the golden log of the present code."""
    found = []
    for number, (name, event) in enumerate(samples().items()):
        kind = events.KINDS[name]
        payload = events.encode(
            event, event_id=f"{SID}.{kind.writer}.{number}", sid=SID, ts=1_700_000_000_000_000 + number, cause=number or None
        )
        found.append(
            Line(
                type=name,
                v=kind.version,
                writer=kind.writer,
                visible=kind.visible,
                payload=base64.b64encode(payload).decode(),
                means=msgspec.Raw(meaning(event)),
            )
        )
    return found


def read(path: Path) -> list[Line]:
    """Return the events of a golden log."""
    return [msgspec.json.decode(line, type=Line) for line in path.read_bytes().splitlines()]


def path_of_this_release() -> Path:
    """Return the path of the golden log of the version in pyproject.toml."""
    return FOLDER / f"v{version('voxbridge')}.jsonl"


def _raw(value: object) -> object:
    if isinstance(value, msgspec.Raw):
        return base64.b64encode(bytes(value)).decode()
    raise NotImplementedError(type(value).__name__)


def main() -> int:
    """Write the file of this release; refuse to overwrite it without `--replace`."""
    path = path_of_this_release()
    if path.exists() and "--replace" not in sys.argv[1:]:
        sys.stderr.write(f"{path.name} is there already. It is made again only while its release is not out: --replace.\n")
        return 1
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines()))
    sys.stdout.write(f"{path}: {len(lines())} events\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

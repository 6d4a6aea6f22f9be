"""Keys by their names, as the bytes that a program in some modes expects. Pure."""

from __future__ import annotations

import re
from typing import Final

from voxbridge.shared.errors import Code, VoxbridgeError

_PLAIN: Final = {
    "enter": b"\r", "tab": b"\t", "escape": b"\x1b", "space": b" ", "backspace": b"\x7f", "shift-tab": b"\x1b[Z", "insert": b"\x1b[2~",
    "delete": b"\x1b[3~", "page-up": b"\x1b[5~", "page-down": b"\x1b[6~", "f1": b"\x1bOP", "f2": b"\x1bOQ", "f3": b"\x1bOR",
    "f4": b"\x1bOS", "f5": b"\x1b[15~", "f6": b"\x1b[17~", "f7": b"\x1b[18~", "f8": b"\x1b[19~", "f9": b"\x1b[20~", "f10": b"\x1b[21~",
    "f11": b"\x1b[23~", "f12": b"\x1b[24~",
}  # fmt: skip
_MOVES: Final = {"up": b"A", "down": b"B", "right": b"C", "left": b"D", "home": b"H", "end": b"F"}
_OTHER: Final = {"return": "enter", "esc": "escape", "pageup": "page-up", "pagedown": "page-down", "del": "delete", "arrow": ""}
_SHIFTS: Final = {"shift": 1, "alt": 2, "ctrl": 4, "control": 4}
_CONTROLS: Final = {"space": b"\x00", "@": b"\x00", "[": b"\x1b", "\\": b"\x1c", "]": b"\x1d", "^": b"\x1e", "_": b"\x1f", "?": b"\x7f"}

NAMES: Final = (*_PLAIN, *_MOVES, "ctrl-c", "alt-x")
"""Names, the last two standing for every letter."""


def encode(name: str, *, application_cursor: bool = False) -> bytes:
    """Return the bytes of a key, such as `enter`, `ctrl-c`, `alt-left`, `shift-tab`. Raises `INVALID_ARGUMENT` naming them."""
    if len(name) == 1 and name.isprintable():
        return name.encode()
    key = re.sub(r"[\s+_]+", "-", name.strip().casefold())
    key = _OTHER.get(key, key)
    if key in _PLAIN:
        return _PLAIN[key]
    *shifts, last = key.split("-") if not key.endswith("--") else [*key[:-2].split("-"), "-"]
    last = _OTHER.get(last, last)
    if any(shift not in _SHIFTS for shift in shifts) or len(set(shifts)) != len(shifts):
        raise _unknown(name)
    held = sum(_SHIFTS[shift] for shift in shifts)
    if last in _MOVES:
        if held:
            return b"\x1b[1;%d%b" % (held + 1, _MOVES[last])
        return (b"\x1bO" if application_cursor else b"\x1b[") + _MOVES[last]
    if held & 4 and not held & 1:
        code = bytes([ord(last) & 0x1F]) if len(last) == 1 and "a" <= last <= "z" else _CONTROLS.get(last)
        if code is not None:
            return b"\x1b" + code if held & 2 else code
    if held == 2 and (last in _PLAIN or (len(last) == 1 and last.isascii() and last.isprintable())):
        return b"\x1b" + _PLAIN.get(last, last.encode())
    raise _unknown(name)


def _unknown(name: str) -> VoxbridgeError:
    message = f"There is no key {name[:16]!r}. Keys are {', '.join(NAMES[:-2])}, and letters with ctrl- or alt-."
    return VoxbridgeError(Code.INVALID_ARGUMENT, message, field="key")

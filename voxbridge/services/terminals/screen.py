"""The screen of a terminal, by an emulator: libghostty-vt through pyghostty.

A seam: nothing else knows the library. Measured beside it were pyte (8 MB/s, and no answers to half of the queries) and libvterm's bindings
(unkept); libghostty-vt reads 126 to 144 MB/s, answers the programs' queries, and writes a screen as bytes for another emulator.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from pyghostty import GhosttyError, UnknownSequence, ffi, lib
from pyghostty import Terminal as _Terminal
from pyghostty.core import check, init_sized

from voxbridge.services.terminals.core import text

SCROLLBACK: Final = 1_500
"""Lines that are kept above the screen."""

SCROLLBACK_BYTES: Final = 4 * 1024 * 1024
"""Memory of these lines; of very wide ones fewer are kept."""

SEQUENCE_LIMIT: Final = 4_096
"""Bytes of an OSC sequence that are looked at."""

UNFINISHED_LIMIT: Final = 65_536
"""Bytes of a sequence under way that a keyframe goes on with; of a longer one the rest is lost to who attaches within it."""

REPLY_LIMIT: Final = 4_096
"""Bytes of answers to the queries of one piece of output; a flood of queries gets no more."""

_MODES: Final = {"bracketed_paste": 2004, "application_cursor": 1, "focus": 1004}
_MOUSE: Final = (9, 1000, 1002, 1003)
_ALTERNATE: Final = re.compile(rb"\x1b\[\?(?:1049|1047|47)h")
_PALETTE: Final = re.compile("\x1b\\]4;[^\x1b]*\x1b\\\\")
"""The colours that the library writes before styled text, though nobody changed them."""


_PROMPT: Final = b"\x1b]133;"
_UNKNOWN: Final = b"\x1b]1330;"
"""Marks of prompts (OSC 133), and an OSC that nobody knows. The library begins a new line at a mark and clears prompts as it is resized,
which the emulators of viewers do not: it is not told of them."""


class Screen:
    """A screen. `told` gets each OSC sequence that the emulator does not know: its bytes, without introducer and terminator."""

    def __init__(self, columns: int, rows: int, told: Callable[[bytes], None]) -> None:
        self._terminal: Any = _Terminal(columns, rows, SCROLLBACK)
        self._told = told
        self._replies = bytearray()
        self._held = b""
        """The beginning of what may become a mark of a prompt."""

        for option, limit in (
            (lib.GHOSTTY_TERMINAL_OPT_CONTINUATION_MAX_BYTES, UNFINISHED_LIMIT),
            (lib.GHOSTTY_TERMINAL_OPT_SCROLLBACK_MAX_BYTES, SCROLLBACK_BYTES),
        ):
            check(lib.ghostty_terminal_set(self._terminal._t[0], option, ffi.new("size_t*", limit)), "limit")
        self._terminal.on_unknown_sequence(self._unknown, SEQUENCE_LIMIT)
        self._terminal.on_reply(self._replied)

    def feed(self, data: bytes) -> bytes:
        """Take output; return what the emulator answers to the program's queries, but for those answers that were dropped meanwhile."""
        data = self._held + data
        self._held = data[len(data) - _begun(data) :]
        self._terminal.feed(data[: len(data) - len(self._held)].replace(_PROMPT, _UNKNOWN))
        replies = bytes(self._replies[:REPLY_LIMIT])
        self._replies.clear()
        return replies

    def drop_answers(self) -> None:
        """Forget the answers to queries of the output that is being taken: whoever asked has ended."""
        self._replies.clear()

    def resize(self, columns: int, rows: int) -> None:
        """Give the screen another size."""
        self._terminal.resize(columns, rows)

    @property
    def size(self) -> tuple[int, int]:
        """Return columns and rows."""
        columns, rows = self._terminal.size
        return int(columns), int(rows)

    @property
    def cursor(self) -> tuple[int, int]:
        """Return row and column of the cursor, from 0."""
        column, row = self._terminal.cursor
        return int(row), int(column)

    @property
    def whole(self) -> bool:
        """Tell whether no escape sequence is under way."""
        return not self._held and self._ground

    @property
    def title(self) -> str:
        """Return the title that the program set, untrusted, in one line."""
        return text.words(self._string("title"), 128)

    @property
    def directory(self) -> str:
        """Return the directory that the program told; empty if it told none of this machine."""
        told = self._string("pwd")
        return text.words(unquote(urlsplit(told).path) if told.startswith("file://") else told, 1_024)

    def mode(self, name: str) -> bool:
        """Tell whether a mode is on: `bracketed_paste`, `application_cursor`, `focus`."""
        return bool(self._terminal.mode(_MODES[name]))

    @property
    def modes(self) -> tuple[str, ...]:
        """Return the modes in force, by name."""
        named = [name for name in ("bracketed_paste", "application_cursor") if self.mode(name)]
        alternate = ["alternate_screen"] if self._terminal.get("active_screen", "int") else []
        return (*alternate, *named, *(["mouse"] if any(self._terminal.mode(one) for one in _MOUSE) else []))

    def rows(self) -> list[str]:
        """Return the rows of the screen as text that a person sees, the empty ones at the end left out."""
        columns, rows = self.size
        return _lines(self._styled(self._selection("active", 0, columns, rows)))

    def lines(self) -> list[str]:
        """Return the scrollback and the screen as text that a person sees, long lines in one piece."""
        selection = init_sized("GhosttySelection")
        result = lib.ghostty_terminal_select_all(self._terminal._t[0], selection)
        if result == lib.GHOSTTY_NO_VALUE:
            return []
        check(result, "select_all")
        return _lines(self._styled(selection, unwrap=True))

    def keyframe(self, *, scrollback: bool) -> bytes:
        """Return bytes that make this screen, its modes and its cursor in an emulator that was reset; with the lines above it, and the
        screen behind an alternate one, or without."""
        return b"\x1bc" + self._made_again(scrollback=scrollback) + self._held

    def _made_again(self, *, scrollback: bool) -> bytes:
        if not scrollback:
            return _switched(self._formatted()) + self._unfinished()
        if not self._terminal.get("active_screen", "int"):
            return self._above() + self._formatted() + self._unfinished()
        # Mode 47 shows the other screen and clears nothing, but the cursor goes along: that of the screen behind is the one that was saved,
        # and this one's is made again. Back by the program's own modes: with another one set, the screen would be one in front of nothing
        # once the program has left it.
        shown, unfinished = self._formatted(), self._unfinished()
        self._terminal.feed(b"\x18\x1b[?47l\x1b8")
        behind = self._above() + _ALTERNATE.sub(b"", self._formatted())
        self._terminal.feed(b"".join(_switches(shown)) + _ALTERNATE.sub(b"", shown) + unfinished)
        return behind + _switched(shown) + unfinished

    @property
    def _ground(self) -> bool:
        return bool(self._terminal.get("vt_ground", "bool"))

    def _unfinished(self) -> bytes:
        """Return the sequence that is under way, if any: what follows a keyframe goes on in it."""
        if self._ground:
            return b""
        terminal = self._terminal._t[0]
        try:
            return _filled(lambda buffer, size, count: lib.ghostty_terminal_continuation_buf(terminal, buffer, size, count))
        except GhosttyError:
            return b""

    def _above(self) -> bytes:
        """Return bytes that make the lines above the screen, and an empty screen below them."""
        columns, rows = self.size
        count = int(self._terminal.get("scrollback_rows", "size_t"))
        if not count:
            return b""
        lines = _PALETTE.sub("", self._styled(self._selection("screen", 0, columns, count))).split("\n")
        lines = lines[:count] + [""] * (count - len(lines))
        return "\r\n".join(line.rstrip("\r") for line in lines).encode() + b"\x1b[0m" + b"\r\n" * rows + b"\x1b[H"

    def _formatted(self) -> bytes:
        options = init_sized("GhosttyFormatterTerminalOptions")
        options.emit = lib.GHOSTTY_FORMATTER_FORMAT_VT
        for part in ("modes", "scrolling_region", "tabstops", "pwd", "keyboard"):
            setattr(options.extra, part, True)
        for part in ("cursor", "style", "hyperlink", "protection", "kitty_keyboard", "charsets"):
            setattr(options.extra.screen, part, True)
        selection = self._selection("active", 0, *self.size)  # held until the end: the options have its address alone
        options.selection = selection
        made = ffi.new("GhosttyFormatter*")
        check(lib.ghostty_formatter_terminal_new(ffi.NULL, made, self._terminal._t[0], options[0]), "formatter")
        try:
            found = _filled(lambda buffer, size, count: lib.ghostty_formatter_format_buf(made[0], buffer, size, count))
        finally:
            lib.ghostty_formatter_free(made[0])
        return found.replace(b"\0", b"")  # the emulator ends the directory that it was told with one

    def close(self) -> None:
        """Free the emulator."""
        self._terminal.close()

    def _selection(self, tag: str, first: int, columns: int, rows: int) -> Any:
        selection = init_sized("GhosttySelection")
        selection.start = self._terminal.ref(0, first, tag)[0]
        selection.end = self._terminal.ref(columns - 1, first + rows - 1, tag)[0]
        return selection

    def _styled(self, selection: Any, *, unwrap: bool = False) -> str:
        options = init_sized("GhosttyTerminalSelectionFormatOptions")
        options.emit, options.unwrap, options.trim, options.selection = lib.GHOSTTY_FORMATTER_FORMAT_VT, unwrap, True, selection
        terminal = self._terminal._t[0]
        found = _filled(lambda buffer, size, count: lib.ghostty_terminal_selection_format_buf(terminal, options[0], buffer, size, count))
        return found.decode(errors="replace")

    def _string(self, key: str) -> str:
        found = self._terminal.get(key, "GhosttyString")
        return bytes(ffi.buffer(found.ptr, found.len)).rstrip(b"\0").decode(errors="replace") if found.len else ""

    def _unknown(self, sequence: UnknownSequence) -> None:
        if sequence.kind == "osc" and not sequence.truncated:
            self._told(sequence.content)

    def _replied(self, reply: bytes) -> None:
        if len(self._replies) < REPLY_LIMIT:
            self._replies += reply


def _switches(keyframe: bytes) -> list[bytes]:
    """Return the switches to the alternate screen in a keyframe, the one that clears it first."""
    return [switch for mode in (b"1049", b"1047", b"47") if (switch := b"\x1b[?" + mode + b"h") in keyframe]


def _switched(keyframe: bytes) -> bytes:
    """Return a keyframe with one switch to the alternate screen, where it has several: the first of the program's own."""
    found = _switches(keyframe)
    return found[0] + _ALTERNATE.sub(b"", keyframe) if found else keyframe


def _begun(data: bytes) -> int:
    """Return how many bytes at the end may be the beginning of a mark."""
    return next((size for size in range(len(_PROMPT) - 1, 0, -1) if data.endswith(_PROMPT[:size])), 0)


def _filled(call: Callable[[Any, int, Any], int]) -> bytes:
    """Return what a function of the library writes: it is asked for the size first."""
    count = ffi.new("size_t*")
    call(ffi.NULL, 0, count)
    buffer = ffi.new("uint8_t[]", max(count[0], 1))
    check(call(buffer, len(buffer), count), "format")
    return bytes(ffi.buffer(buffer, count[0]))


def _lines(styled: str) -> list[str]:
    lines = [line.rstrip() for line in text.seen(styled).split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines

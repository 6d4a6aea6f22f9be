"""Views of a terminal as text that a model may read: nothing concealed, no escape, no invisible character."""

from __future__ import annotations

from voxbridge.services.terminals.core import state as states
from voxbridge.services.terminals.screen import Screen
from voxbridge.services.terminals.terminal import Terminal
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.terminals.questions import VIEW_BYTES, Read, Seen


def read(terminal: Terminal, asked: Read) -> Seen:
    """Return a view: the screen, what was written since a view, the lines above the screen too, the last command's output, or what was
    written since a text was last submitted."""
    exit_code = None
    dropped = 0
    if asked.view == "screen":
        lines = terminal.screen.rows()
    elif asked.view == "scrollback":
        lines = terminal.screen.lines()
    elif asked.view == "since":
        lines, dropped = _since(terminal, asked.since)
    elif asked.view == "command":
        lines, dropped, exit_code = _command(terminal)
    elif "alternate_screen" in terminal.screen.modes:  # it is drawn over again, so that what was written is not text
        lines = terminal.screen.rows()
    else:
        lines, dropped = _since(terminal, min(terminal.meta.submitted, terminal.ring.count))
    dropped += max(0, len(lines) - asked.lines)
    kept, left = _bounded(lines[-asked.lines :])
    row, column = terminal.screen.cursor
    modes = (*terminal.screen.modes, *(["echo_off"] if terminal.echo_off() else []))
    return Seen(
        text="\n".join(kept), view=asked.view, row=row, column=column, modes=modes, title=terminal.screen.title,
        directory=terminal.screen.directory or terminal.meta.directory, seq=terminal.viewed(), dropped=dropped + left, exit_code=exit_code,
        state=states.state(terminal.known),
    )  # fmt: skip


def _since(terminal: Terminal, offset: int) -> tuple[list[str], int]:
    if offset > terminal.ring.count:
        message = f"The program has written {terminal.ring.count} bytes since its start, and `since` is beyond that. Read the screen."
        raise VoxbridgeError(Code.INVALID_ARGUMENT, message, field="since")
    written = terminal.ring.since(offset)
    if written is None:
        return terminal.screen.lines(), 1
    return _drawn(terminal, written), 0


def _command(terminal: Terminal) -> tuple[list[str], int, int | None]:
    last = terminal.commands.last
    if last.begun is None:
        message = "No command was marked in this terminal: its shell has no integration, or nothing was run yet. Read the screen."
        raise VoxbridgeError(Code.NOT_FOUND, message, field="view")
    written = terminal.ring.since(last.begun)
    if written is None:
        return terminal.screen.lines(), 1, last.code
    end = len(written) if last.ended is None else last.ended - last.begun
    return _drawn(terminal, written[:end]), 0, last.code


def _drawn(terminal: Terminal, written: bytes) -> list[str]:
    """Return some output as lines, drawn on a screen of its own."""
    columns, rows = terminal.screen.size
    screen = Screen(columns, rows, lambda _: None)
    try:
        screen.feed(written)
        return screen.lines()
    finally:
        screen.close()


def _bounded(lines: list[str]) -> tuple[list[str], int]:
    """Return the last lines within `VIEW_BYTES`, and how many were left out."""
    size = 0
    for place in range(len(lines) - 1, -1, -1):
        size += len(lines[place].encode()) + 1
        if size > VIEW_BYTES * 4:
            return lines[place + 1 :], place + 1
    return lines, 0

"""Log lines of a process about itself: one line per record, `time level process logger: message`, a traceback included.

Owns the form of the lines. Does not own the files they are written to (the supervisor's) nor anything a session needs: facts about a call
are events. Lines that were not yet written are lost in a crash.
"""

from __future__ import annotations

import logging
import re
import sys
import time
from typing import Final

LEVELS: Final = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
MAX_LINE: Final = 8_192
"""Characters of a line; longer lines are cut, so that a bad message cannot fill the disk."""


_UNSHOWN: Final = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
"""Characters that a terminal interprets and does not show (control characters, line separators, changes of direction), and those that no
file can hold."""


class OneLine(logging.Formatter):
    """Formatter of lines such as `2026-01-31T12:00:00.123Z warning voice-1a2b voxbridge.shared.service.process: message`; control
    characters are written as escapes."""

    def __init__(self, process: str) -> None:
        super().__init__()
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        text = record.getMessage()
        if record.exc_info:
            text = f"{text} | {self.formatException(record.exc_info)}"
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = f"{moment}.{int(record.msecs):03}Z {record.levelname.lower()} {self._process} {record.name}: {text}"
        if not line.isprintable():
            line = _UNSHOWN.sub(_escaped, line)
        return line if len(line) <= MAX_LINE else f"{line[: MAX_LINE - 1]}…"


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape", "surrogatepass").decode("ascii")


def configure(process: str, level: str) -> None:
    """Send the records of this process to its standard error; `level` is one of `LEVELS`, anything else is `info`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(OneLine(process))
    logging.basicConfig(handlers=[handler], level=LEVELS.get(level, logging.INFO), force=True)
    # These log each request and each reconnection attempt; the service itself logs what matters.
    for chatty in ("httpx", "httpx2", "nats"):
        logging.getLogger(chatty).setLevel(max(logging.WARNING, LEVELS.get(level, logging.INFO)))

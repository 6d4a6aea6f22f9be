from __future__ import annotations

import logging
import subprocess
import sys

from voxbridge.shared.service.log_format import MAX_LINE, OneLine


def _record(message: str, *args: object) -> logging.LogRecord:
    record = logging.LogRecord("voxbridge.shared.x", logging.WARNING, __file__, 1, message, args, None)
    record.created, record.msecs = 1_700_000_000.25, 250.0
    return record


def test_a_record_is_one_line_with_time_level_process_and_logger() -> None:
    line = OneLine("voice-1a2b").format(_record("took %d ms\nand more", 5))
    assert line == "2023-11-14T22:13:20.250Z warning voice-1a2b voxbridge.shared.x: took 5 ms\\nand more"


def test_a_traceback_stays_on_the_line() -> None:
    code = (
        "import logging; from voxbridge.shared.service import log_format; log_format.configure('p-1', 'info')\n"
        "try: 1 / 0\n"
        "except ZeroDivisionError: logging.getLogger('x').exception('failed')\n"
        "logging.getLogger('x').debug('not shown')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    (line,) = done.stderr.splitlines()
    assert "error p-1 x: failed | Traceback" in line
    assert line.endswith("ZeroDivisionError: division by zero")


def test_a_long_line_is_cut_at_its_limit() -> None:
    assert len(OneLine("p").format(_record("x" * MAX_LINE * 2))) == MAX_LINE


def test_what_a_terminal_would_obey_is_written_as_an_escape() -> None:
    line = OneLine("p").format(_record("a\x1b[31mred\x9b0m\x00\u202eback\u2028next\r\x7f\ud800 é 日本語"))
    assert line.endswith(r"a\x1b[31mred\x9b0m\x00\u202eback\u2028next\r\x7f\ud800 é 日本語")
    line.encode()

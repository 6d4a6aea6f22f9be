"""The part of the table that is about terminals. Each call has a terminal of its own."""

from __future__ import annotations

from typing import Final

from tests.tools.every_function.entry import Before, Entry
from tests.tools.every_function.packs import MISSING, WRONG, has

NAME: Final = "{own} @@"
VARIES: Final = ("terminal", "state", "words", "needs_you")


def begun(program: str) -> Before:
    """Return the call that starts a program in the function's own terminal."""
    return Before(name="start_terminal", arguments={"program": program, "name": NAME})


TERMINALS: Final[dict[str, Entry]] = {
    "list_terminals": Entry(
        before=(begun("python"),),
        check=has("terminals", name="list_terminals @@", program="python"),
        varies=("terminals", "count", "spoken"),
    ),
    "read_terminal": Entry(
        before=(begun("python"),),
        arguments={"terminal": NAME, "lines": 5},
        wanted={"name": "read_terminal @@", "program": "python", "dropped": 0},
        varies=(*VARIES, "text", "spoken"),
        hostile=(({"terminal": "nobody at all"}, MISSING), ({"lines": 0}, WRONG)),
    ),
    "start_terminal": Entry(
        arguments={"program": "sh", "name": NAME},
        wanted={"name": "start_terminal @@", "program": "sh", "spoken": "start_terminal @@ is started."},
        varies=VARIES,
        hostile=(({"program": "sh -c id"}, MISSING), ({"program": "/bin/sh"}, MISSING)),
    ),
    "send_to_terminal": Entry(
        before=(begun("mine"),),
        arguments={"terminal": NAME, "text": "write the tests"},
        wanted={"program": "mine", "text": "write the tests", "removed": 0, "spoken": "send_to_terminal @@ has it."},
        varies=(*VARIES, "proof"),
        hostile=(({"terminal": "nobody at all"}, MISSING),),
    ),
    "run_in_terminal": Entry(
        before=(begun("sh"),),
        arguments={"terminal": NAME, "command": "true"},
        wanted={"program": "sh", "text": "true", "removed": 0, "spoken": "run_in_terminal @@ has it."},
        varies=(*VARIES, "proof"),
        hostile=(({"terminal": "nobody at all"}, MISSING), ({"command": "true\nfalse"}, WRONG)),
    ),
    "send_key": Entry(
        before=(begun("python"),),
        arguments={"terminal": NAME, "key": "escape", "times": 2},
        wanted={"key": "escape", "times": 2, "spoken": "I pressed escape in send_key @@."},
        varies=VARIES,
        hostile=(({"key": "rm"}, WRONG), ({"times": 21}, WRONG)),
    ),
    "wait_for_terminal": Entry(
        before=(begun("mine"), Before(name="send_key", arguments={"terminal": NAME, "key": "ctrl-c"})),
        arguments={"terminal": NAME, "until": "end", "seconds": 1},
        wanted={"met": True, "state": "dead", "announce": "wait_for_terminal @@ has ended."},
        varies=VARIES,
        hostile=(({"terminal": "nobody at all"}, MISSING),),
    ),
    "watch_terminals": Entry(
        arguments={"seconds": 1},
        wanted={"seconds": 1, "spoken": "I no longer watch the terminals."},
        hostile=(({"seconds": 0}, WRONG),),
    ),
    "forward_output": Entry(
        before=(begun("mine"), Before(name="start_terminal", arguments={"program": "python", "name": f"{NAME} source"})),
        arguments={"source": f"{NAME} source", "terminal": NAME, "lines": 1, "when": "done"},
        wanted={
            "program": "mine",
            "name": "forward_output @@",
            "lines": 1,
            "spoken": "forward_output @@ has 1 line from forward_output @@ source.",
        },
        varies=(*VARIES, "proof", "source", "dropped", "removed"),
        hostile=(({"source": "nobody at all"}, MISSING), ({"lines": 0}, WRONG), ({"when": "later"}, WRONG)),
    ),
    "switch_mode": Entry(
        arguments={"mode": "ai"},
        wanted={"mode": "ai", "auto": True, "spoken": "I take your orders."},
        varies=("terminal",),
        hostile=(({"mode": "root"}, WRONG), ({"mode": "ai", "auto": "maybe"}, WRONG)),
    ),
    "type_into_terminal": Entry(
        before=(begun("mine"),),
        arguments={"terminal": NAME, "text": "Don't touch the tests."},
        wanted={"program": "mine", "text": "Don't touch the tests.", "removed": 0, "spoken": "type_into_terminal @@ has it."},
        varies=(*VARIES, "proof"),
        hostile=(({"terminal": "nobody at all"}, MISSING), ({"text": ""}, WRONG)),
    ),
    "close_terminal": Entry(
        before=(begun("sh"),),
        arguments={"terminal": NAME},
        wanted={"name": "close_terminal @@", "left": [], "spoken": "close_terminal @@ is closed."},
        varies=("terminal",),
        hostile=(({"terminal": "nobody at all"}, MISSING),),
    ),
}

"""Shell commands by what people say: those of everyday work, of which a small model writes another ("show the disk usage" became `ls`), and
the terminal that is meant where its place is said. Pure.

A request counts only as a whole, without the terminal that it names. Whatever comes of it is read back and approved like any command.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Final

from voxbridge.services.models.choice.orders import Able, Order

TERMINAL: Final = "terminal"
COMMAND: Final = "command"
"""Arguments that name a terminal, and take a command line for it."""
PLACES: Final = ("first", "left", "second", "right", "third", "fourth", "last")
NAME_WORDS: Final = 3
"""Words of a name; a longer one is more than a name."""

_THING: Final = r"(?: (?:one|terminal|window|pane|shell))"
_PLACE: Final = re.compile(rf"\b(?:in|on|into|to|at|for|from|of) the (?P<place>(?:{'|'.join(PLACES)}){_THING}?)\b", re.IGNORECASE)
_POLITE: Final = re.compile(
    r"^(?:(?:please|now|and|then|can you|could you|would you|will you|I want you to)\b[\s,]*)+|[\s,]*\bplease$", re.IGNORECASE
)
_SHOW: Final = r"(?:show|print|list|check|give|tell|read|display|what is|what's|what are)(?: me)?(?: all)?(?: of)?(?: the| my)?"
_MAKE: Final = r"(?:make|create|add)(?: me)?(?: a| an| another)?(?: new)?(?: empty)?"
_CALLED: Final = r"(?: (?:called|named|with the name))? (?P<name>.+)"
_TABLE: Final[tuple[tuple[str, str], ...]] = (
    (rf"{_MAKE} (?:folder|directory){_CALLED}", "mkdir {name}"),
    (rf"{_MAKE} file{_CALLED}", "touch {name}"),
    (rf"{_SHOW} (?:files|folder|directory)(?: (?:here|there|in it))?", "ls"),
    (rf"(?:{_SHOW}|which|what) files(?: (?:are|is))? (?:here|there|in it|in here|in there)", "ls"),
    (rf"{_SHOW} files (?:with|and) (?:their |the )?(?:sizes|details|dates|permissions)", "ls -l"),
    (r"how many files (?:are|is) (?:here|there|in it)", "ls | wc -l"),
    (rf"{_SHOW} (?:disk usage|disk space|free space|free disk space|space on the disk)", "df -h"),
    (r"how much (?:disk )?space is (?:left|free|there|available)", "df -h"),
    (rf"{_SHOW} (?:memory|free memory|memory usage|free RAM)", "free -h"),
    (rf"{_SHOW} (?:date|time|date and time|date and the time)", "date"),
    (rf"{_SHOW} (?:current |working |present )+(?:folder|directory)", "pwd"),
    (r"where am I|(?:which|what) (?:folder|directory) (?:is this|am I in|are we in|is it in)", "pwd"),
    (rf"{_SHOW} (?:running )?processes", "ps aux"),
    (rf"(?:{_SHOW} )?git status", "git status"),
    (rf"{_SHOW} (?:git log|last commits|latest commits|recent commits)", "git log --oneline -10"),
    (rf"{_SHOW} git diff", "git diff"),
    (r"(?:go|change|switch|move)(?: back)? (?:to|into) (?:the |my )?home(?: folder| directory)?|go home", "cd ~"),
    (r"(?:go|change|move) (?:up|back)(?: (?:one|a))?(?: (?:folder|directory|level))?", "cd .."),
    (r"(?:go|change|switch|move) (?:to|into) (?:the |my )?(?:folder|directory) (?P<name>.+)", "cd {name}"),
    (r"(?:go|change|switch|move) (?:to|into) (?:the |my )?(?P<name>.+) (?:folder|directory)", "cd {name}"),
    (rf"{_SHOW} (?:contents? of(?: the)?(?: file)?|file) (?P<name>.+)", "cat {name}"),
    (r"clear(?: (?:the |my )?(?:screen|terminal|window|shell))?", "clear"),
)
_READ: Final = tuple((re.compile(pattern, re.IGNORECASE), line) for pattern, line in _TABLE)
_NO_NAME: Final = re.compile(r"^(?:called|named|for|with|of|that|to)\b|\b(?:and|then|but|or|if|when|with|in|on|into)\b", re.IGNORECASE)
"""Words that say more than a name."""


def place(said: str) -> str:
    """Return the place by which a request means a terminal, as it was said ("left one"); empty where it names none, or several."""
    found = {match["place"].casefold(): match["place"] for match in _PLACE.finditer(said)}
    return next(iter(found.values())) if len(found) == 1 else ""


def unbroken(said: str, terminals: Sequence[str]) -> str:
    """Return a request with the names of terminals whole: a recogniser writes "in the Notes, Terminal" for a pause behind the name, and
    "the notes' terminals" for the notes terminal."""
    if not terminals:
        return said
    named = (
        rf"\b((?:at|from|in|into|my|of|on|the|to) (?:the |my )?(?:{_known(terminals)}))(?:'s|'|[,.;])?\s+(terminal|window|pane|shell)s?\b"
    )
    return re.sub(named, r"\1 \2", said, flags=re.IGNORECASE)


def read(said: str, tools: Sequence[Able]) -> list[Order]:
    """Return the call that a request is which means one of these commands in a terminal that it names; empty for any other. No router takes
    part: it knows no names, and took "in Harbour show me the disk usage" for a wish that nothing serves."""
    for tool in tools:
        names = tool.names.get(TERMINAL, ())
        if {TERMINAL, COMMAND} <= tool.parameters.get("properties", {}).keys() and (line := command(said, names)):
            named = {found["name"].casefold(): found["name"] for found in re.finditer(_where(names), said, re.IGNORECASE)}
            where = place(said) or (next(iter(named.values())) if len(named) == 1 else "")
            return [Order(tool.name, {COMMAND: line, TERMINAL: where}, said)] if where else []
    return []


def command(said: str, terminals: Sequence[str]) -> str:
    """Return the command line that a request means, with what it names as one word of the shell; empty where it means none of these."""
    told = _POLITE.sub("", " ".join(re.sub(_where(terminals), " ", said, flags=re.IGNORECASE).split()).strip(" .!?,"))
    for pattern, line in _READ:
        if (match := pattern.fullmatch(told.strip(" .!?,"))) is None:
            continue
        if "{name}" not in line:
            return line
        name = match["name"].strip(" \"'.!?,")
        if name and not _NO_NAME.search(name) and len(name.split()) <= NAME_WORDS:
            return line.format(name=shlex.quote(name))
    return ""


def _where(terminals: Sequence[str]) -> str:
    """Return the pattern of the words that name a terminal."""
    return rf"\b(?:in|on|into) (?:the |my )?(?P<name>{_known(terminals)}){_THING}?\b(?!\s+(?:folder|directory))[\s,]*"


def _known(terminals: Sequence[str]) -> str:
    return "|".join(re.escape(name) for name in sorted((*terminals, *PLACES), key=len, reverse=True))

"""Names of keys, and of the modes of a bridge, as people say them: whole utterances, which need no model. Pure."""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

from voxbridge.shared.macros.answers import plain

Mode = Literal["ai", "chat", "key"]
"""Destination of the captain's words: to the officer, as text into the active terminal, or as the name of a key."""

WORDS_LIMIT: Final = 80
"""Characters of an utterance that names a key or a mode; nobody says one in more."""

TIMES_LIMIT: Final = 20

_KEYS: Final = {
    "enter": "enter, return, enter key, submit, send, send it",
    "escape": "escape, esc, get out",
    "tab": "tab",
    "shift-tab": "shift tab, back tab",
    "space": "space, space bar, spacebar",
    "backspace": "backspace, back space, delete back",
    "up": "up, arrow up, up arrow, cursor up",
    "down": "down, arrow down, down arrow, cursor down",
    "left": "left, arrow left, left arrow, cursor left",
    "right": "right, arrow right, right arrow, cursor right",
    "page-up": "page up",
    "page-down": "page down",
    "ctrl-c": "control c, ctrl c, control see, interrupt, stop, stop it",
    "ctrl-d": "control d, ctrl d, end of file",
    "ctrl-l": "control l, ctrl l, clear, clear the screen",
    "ctrl-z": "control z, ctrl z, suspend",
    "y": "y, yes, why",
    "n": "n, no",
    "1": "1, one, number one, option one, the first, the first one",
    "2": "2, two, number two, option two, the second, the second one",
    "3": "3, three, number three, option three, the third, the third one",
    "4": "4, four, number four, option four, the fourth, the fourth one",
}
NAMES: Final = {name: key for key, names in _KEYS.items() for name in names.split(", ")}
"""Keys by what they are called aloud."""

_TIMES: Final = {"once": 1, "twice": 2, "thrice": 3} | {
    f"{word} times": number for number, word in enumerate(("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"), 2)
}
_PRESS: Final = re.compile(r"^(?:please )?(?:press|hit|type|push)? ?(?:the )?|(?: key)?(?: please)?$")
_MODES: Final[dict[Mode, str]] = {
    "ai": r"ai|a i|a eye|officer|orders?|command",
    "chat": r"chat|text|dictation|typing",
    "key": r"keys?|keyboard",
}
_MODE: Final = re.compile(
    r"(?:please )?(?:(?:switch|go|change|turn|put it)(?: back)?(?: to| on| into)? |back to |turn on |use )?(?:the )?"
    rf"(?:{'|'.join(f'(?P<{mode}>{words})' for mode, words in _MODES.items())}) mode(?: on)?(?: please)?"
)


_AUTO: Final = re.compile(r"(?:please )?(?:(?:turn|switch) )?(?:auto|automatic|auto mode|auto send)(?: mode)? (?P<on>on|off)(?: please)?")


class Pressed(NamedTuple):
    """A key, and how often it is pressed."""

    key: str
    times: int


def mode(said: str) -> Mode | None:
    """Return the mode that a whole utterance asks for; None if it says something else."""
    found = _MODE.fullmatch(_words(said))
    return None if found is None else next(mode for mode in _MODES if found[mode])


def auto(said: str) -> bool | None:
    """Return whether a whole utterance turns AUTO on or off; None if it says something else."""
    found = _AUTO.fullmatch(_words(said))
    return None if found is None else found["on"] == "on"


def pressed(said: str) -> Pressed | None:
    """Return the key that a whole utterance names: "escape", "press control c", "down three times", "up up"; None if it names none, or
    several."""
    words = _PRESS.sub("", _words(said))
    for often, times in _TIMES.items():
        if words.endswith(f" {often}"):
            key = NAMES.get(words.removesuffix(f" {often}"))
            return None if key is None else Pressed(key, times)
    if words in NAMES:
        return Pressed(NAMES[words], 1)
    for times in range(2, min(TIMES_LIMIT, len(words.split())) + 1):
        each, rest = divmod(len(words.split()), times)
        one = " ".join(words.split()[:each])
        if not rest and words == " ".join([one] * times) and one in NAMES:
            return Pressed(NAMES[one], times)
    return None


def _words(said: str) -> str:
    """Return the words of an utterance, those with a hyphen apart: recognisers write "Control-C"; empty for a long one."""
    return " ".join(plain(said).replace("-", " ").split()) if len(said) <= WORDS_LIMIT else ""

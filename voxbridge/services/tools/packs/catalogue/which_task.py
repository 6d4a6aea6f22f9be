"""Choice of the tasks that the user means: by id, label, length, place in the order, kind, or all.

Owns how tasks are named and told apart. A description that fits one task means it. Where it fits several or none, the caller asks: another
task is never taken in its place.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Final

from voxbridge.shared import spoken_durations
from voxbridge.shared.agents.tasks import OpenTask

_PLACES: Final = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_ORDER: Final = {
    **{word: place for place, word in enumerate(_PLACES)},
    **{word: place for place, word in enumerate(("1st", "2nd", "3rd", "4th", "5th", "6th", "7th", "8th", "9th", "10th"))},
    **dict.fromkeys(("last", "latest", "newest"), -1),
    **dict.fromkeys(("oldest", "earliest"), 0),
}
_ALL: Final = frozenset({"all", "every", "everything", "both"})
_TIMER: Final = "set_timer"
_TIMERS: Final = frozenset({"timer", "timers", "alarm", "alarms", "countdown", "reminder", "reminders"})
_FILLING: Final = frozenset(
    re.findall(
        r"\w+",
        "a an the my your our this that one ones for of to from with please cancel stop end abort kill drop off turn switch call halt "
        "forget job jobs task tasks running now and it them",
    )
)
_SIMILAR: Final = 0.75
"""Likeness of a label that was misheard."""


def chosen(said: str, tasks: Sequence[OpenTask]) -> list[OpenTask]:
    """Return the tasks that a description fits, in the order of `tasks`, the oldest first: one, several or none. An empty one fits all; a
    name that `names` gives its own task alone."""
    words = _words(said)
    bare = [word for word in words if word != "the"]
    for task, name in zip(tasks, names(tasks), strict=True):
        if task.task_id == said.strip() or [word for word in _words(name) if word != "the"] == bare:
            return [task]
    fitting = [task for task in tasks if task.function == _TIMER] if _TIMERS & set(words) else list(tasks)
    length = spoken_durations.seconds(said)
    if length is not None:
        fitting = [task for task in fitting if _length_s(task) == length]
        words = _words(spoken_durations.without(said))
    left = [word for word in words if word not in _FILLING | _TIMERS | _ALL]
    places = [word for word in left if word in _ORDER]
    wanted = [word for word in left if word not in _ORDER]
    if wanted:
        fitting = _labelled(wanted, fitting) or (_labelled(left, fitting) if places else [])
    if not places or len(fitting) == 1:
        return fitting
    place = _ORDER[places[0]]
    return fitting[place:] if place < 0 else fitting[place : place + 1]


def means_all(said: str) -> bool:
    """Return whether a description asks for all that fit it."""
    return bool(_ALL & set(_words(said)))


def names(tasks: Sequence[OpenTask]) -> list[str]:
    """Return a name for each task that tells it from the others: "the tea timer", "the 5 minute timer", "the second 5 minute timer"."""
    plain = [_name(task) for task in tasks]
    counts, seen = Counter(plain), Counter[str]()
    told = []
    for name in plain:
        place = seen[name]
        seen[name] += 1
        alike = counts[name] > 1 and place < len(_PLACES)
        told.append(f"the {_PLACES[place]} {name.removeprefix('the ')}" if alike else name)
    return told


def _name(task: OpenTask) -> str:
    kind = task.function.replace("_", " ").removeprefix("set ")
    if task.label:
        return f"the {task.label} {kind}"
    length = _length_s(task)
    return (
        f"the {kind}"
        if length is None or task.function != _TIMER
        else f"the {spoken_durations.in_words(length).replace('s ', ' ').removesuffix('s')} {kind}"
    )


def _length_s(task: OpenTask) -> int | None:
    return None if task.due_at is None else round((task.due_at - task.called_at) / 1_000_000)


def _labelled(wanted: Sequence[str], tasks: Sequence[OpenTask]) -> list[OpenTask]:
    """Return the tasks of whose label or function all the words are; else those where most are alike."""
    whole = [task for task in tasks if all(_stands_in(word, task) for word in wanted)]
    if whole:
        return whole
    alike = {task.task_id: max(_likeness(wanted, task.label), _likeness(wanted, _name(task))) for task in tasks if task.label}
    best = max(alike.values(), default=0.0)
    return [task for task in tasks if best >= _SIMILAR and alike.get(task.task_id) == best]


def _likeness(wanted: Sequence[str], name: str) -> float:
    return difflib.SequenceMatcher(None, " ".join(wanted), " ".join(_words(name)).removeprefix("the ")).ratio()


def _stands_in(word: str, task: OpenTask) -> bool:
    """Return whether a word is one of the label's or the function's. Scripts without spaces have the label inside a longer word."""
    words = {*_words(task.label), *task.function.split("_")}
    if word in words:
        return True
    return not word.isascii() and any(not one.isascii() and (one in word or word in one) for one in words)


def _words(text: str) -> list[str]:
    """Return the words of a text in small letters: letters and figures of any script, with the marks that belong to them."""
    plain = unicodedata.normalize("NFC", text).casefold().replace("-", " ").replace("'s", "")
    return "".join(one if unicodedata.category(one)[0] in "LMN" else " " for one in plain).split()

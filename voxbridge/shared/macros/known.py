"""The macros of an account as its log tells them: which there are, by which words. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from voxbridge.shared import events
from voxbridge.shared.events.tools import MacroDeleted, MacroSaved
from voxbridge.shared.macros.triggers import Spoken, is_slot, pattern_of

TOPICS: Final = ("macro.saved", "macro.deleted")
"""Topics of the account's log, from the tool executor, that tell of macros."""

RUN: Final = "run {}"
"""Words that start a macro of this name, as it is told when it was saved, unless they are another one's trigger."""

SPOKEN_CHARACTERS: Final = 32_768
"""Characters of names and triggers that a session knows: the newest macros."""


def spoken(log: Iterable[events.Recorded]) -> tuple[Spoken, ...]:
    """Return the macros that events in log order leave, oldest first, as many as `SPOKEN_CHARACTERS` hold. Each has `RUN` as its last
    trigger."""
    found: dict[str, Spoken] = {}
    for recorded in log:
        event = recorded.event
        if isinstance(event, MacroSaved) and event.fresh and event.macro_id in found:
            continue
        if isinstance(event, MacroSaved | MacroDeleted):
            found.pop(event.macro_id, None)
        if isinstance(event, MacroSaved):
            triggers = event.document.get("triggers", ())
            found[event.macro_id] = Spoken(str(event.document.get("name", "")), tuple(str(one) for one in triggers))
    own = {tuple(pattern_of(trigger)) for macro in found.values() for trigger in macro.triggers}
    found = {key: _with_name(macro, own) for key, macro in found.items()}
    kept: list[Spoken] = []
    left = SPOKEN_CHARACTERS
    for macro in reversed(found.values()):
        left -= len(macro.name) + sum(map(len, macro.triggers))
        if left < 0:
            break
        kept.append(macro)
    return tuple(reversed(kept))


def _with_name(macro: Spoken, own: set[tuple[str, ...]]) -> Spoken:
    pattern = pattern_of(RUN.format(macro.name))
    if tuple(pattern) in own or any(map(is_slot, pattern)):
        return macro
    return Spoken(macro.name, (*macro.triggers, RUN.format(macro.name)))

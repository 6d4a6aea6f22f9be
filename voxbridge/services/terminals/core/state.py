"""The state of a program, from the best source that speaks: the program itself, its shell, its end, what its screen shows, and silence.

Each source's last word is kept with its time, so that `explain` can say who says what. A word ends when a better fact makes it old: a
prompt ends what a program said before it, an exit ends everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec.structs import replace

from voxbridge.services.terminals.core.marks import Prompt, Report
from voxbridge.shared.terminals.model import Kind, Phase, Reason, Source, State
from voxbridge.shared.terminals.questions import Rung

QUIET_US: Final = 1_500_000
"""Time without output after which an agent that says nothing of itself counts as idle."""

_NO_WORDS: Final = ("", "dialog open")
"""Words that say nothing of a question; the second ones are those of Claude Code 2.1.332."""

PARTS_LIMIT: Final = 256
"""Parts of a program that may report at a time."""

ORDER: Final[tuple[Source, ...]] = ("exit", "program", "shell", "screen", "silence")
"""Sources, the best first."""

_URGENT: Final = ("blocked", "working", "error", "done", "idle")
"""States of parts, the one that tells most first."""

_WHY: Final[Mapping[Source, str]] = {
    "exit": "The program has ended.",
    "program": "The program says so itself.",
    "shell": "The shell marks where commands begin and end.",
    "screen": "Its screen shows what a question of this program looks like.",
    "silence": "Guessed from output, or from none.",
}


class Word(msgspec.Struct, frozen=True, kw_only=True):
    """Word of a source, and since when it says so."""

    phase: Phase
    at: int
    reason: Reason = ""
    words: str = ""
    progress: int | None = None


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is known of a program's state."""

    kind: Kind
    started: int
    words: Mapping[Source, Word] = {}
    parts: Mapping[str, Report] = {}
    output_at: int = 0
    typed_at: int = 0
    code: int | None = None
    """Exit code of the last command of a shell."""


def begun(kind: Kind, now: int) -> Known:
    """Return what is known of a program that was just started."""
    return Known(kind=kind, started=now)


def reported(known: Known, report: Report, now: int) -> Known:
    """Take a report of the program."""
    parts = {name: one for name, one in known.parts.items() if name != report.part}
    if report.state == "clear":
        parts = {name: one for name, one in parts.items() if not (report.part == "" or name.startswith(f"{report.part}/"))}
    elif len(parts) < PARTS_LIMIT:
        parts[report.part] = report
    known = replace(known, parts=parts)
    if not parts:
        return _without(known, "program")
    first = min(parts.values(), key=lambda one: _URGENT.index(one.state))
    phase: Phase = "done" if first.state == "error" else first.state  # type: ignore[assignment]  # `clear` is never kept
    reason: Reason = "error" if first.state == "error" else first.reason  # type: ignore[assignment]
    return _with(known, "program", Word(phase=phase, at=now, reason=reason, words=first.words, progress=first.progress))


def prompted(known: Known, prompt: Prompt, now: int) -> Known:
    """Take a mark of a shell. Between D and B a prompt is drawn, and what is typed then is drawn into it; so a shell that signs its marks
    is done or idle at B. Others may not write B, and are at D or A."""
    before = known.words.get("shell", _NOTHING)
    if prompt.mark == "C":
        return _with(_without(replace(known, code=None), "screen"), "shell", Word(phase="working", at=now))
    if prompt.mark == "D":
        known = replace(known, code=prompt.code)
        return known if prompt.trusted or before.phase != "working" else _with(known, "shell", _done(prompt.code, now))
    if prompt.mark == "A" and prompt.trusted:
        return known
    known = _without(replace(known, parts={}), "program")
    if before.phase in ("done", "idle"):
        return known
    return _with(known, "shell", _done(known.code, now) if before.phase == "working" else Word(phase="idle", at=now))


def _done(code: int | None, now: int) -> Word:
    return Word(phase="done", at=now, reason="error" if code else "", words=f"exit code {code}" if code else "")


def wrote(known: Known, now: int) -> Known:
    """Take that the program wrote something."""
    known = replace(known, output_at=now)
    return known if known.words.get("silence", _NOTHING).phase == "working" else _with(known, "silence", Word(phase="working", at=now))


def fell_silent(known: Known, now: int) -> Known:
    """Take that nothing was written for `QUIET_US`."""
    return _with(known, "silence", Word(phase="idle", at=now))


def shows(known: Known, phase: Phase | None, reason: Reason, words: str, now: int) -> Known:
    """Take what the screen shows by the program's manifest; None for nothing that it knows."""
    if phase is None:
        return _without(known, "screen")
    before = known.words.get("screen")
    if before is not None and (before.phase, before.reason, before.words) == (phase, reason, words):
        return known
    return _with(known, "screen", Word(phase=phase, at=now, reason=reason, words=words))


def typed(known: Known, now: int) -> Known:
    """Take that something was typed: whoever types has seen what was done, and answers what was asked on the screen."""
    return looked(replace(known, typed_at=now), now)


def looked(known: Known, now: int) -> Known:
    """Take that somebody looked: what was done is over."""
    for source, word in known.words.items():
        if word.phase == "done":
            known = _with(known, source, Word(phase="idle", at=now))
    return known


def ended(known: Known, code: int, now: int) -> Known:
    """Take that the program ended."""
    words = f"ended with exit code {code}" if code >= 0 else f"ended by signal {-code}"
    return replace(_with(known, "exit", Word(phase="dead", at=now, words=words)), parts={})


def state(known: Known) -> State:
    """Return the state."""
    source = _counting(known)
    if source is None:
        return State(phase="starting" if not known.output_at else "unknown", since=known.started)
    word = known.words[source]
    shown = known.words.get("screen", _NOTHING)
    # A program may say that it asks, and not what: its screen has the words, once the question is drawn.
    asks = shown.words if word.phase == shown.phase == "blocked" and word.words in _NO_WORDS else word.words
    return State(phase=word.phase, since=word.at, source=source, reason=word.reason, words=asks, progress=word.progress)


def asks_without_words(known: Known) -> bool:
    """Tell whether the program says that it asks, and not what."""
    word = known.words.get("program", _NOTHING)
    return word.phase == "blocked" and word.words in _NO_WORDS


def explain(known: Known) -> tuple[Rung, ...]:
    """Return what each source says, the best first, and whether it counts."""
    counting = _counting(known)
    rungs = []
    for source in ORDER:
        word = known.words.get(source)
        if word is None:
            rungs.append(Rung(source=source, says="nothing", at=0, counts=False, why="It has said nothing."))
            continue
        says = " ".join(part for part in (word.phase, word.reason, word.words) if part)
        why = _WHY[source] if source == counting else f"A better source speaks: {counting}."
        rungs.append(Rung(source=source, says=says, at=word.at, counts=source == counting, why=why))
    return tuple(rungs)


_NOTHING: Final = Word(phase="unknown", at=0)


def _counting(known: Known) -> Source | None:
    """Return the source that counts. What a screen asks goes before a program that says it works, but not before one that says it asks."""
    spoken = [source for source in ORDER if source in known.words]
    if not spoken:
        return None
    best = spoken[0]
    screen = known.words.get("screen")
    # A shell knows that a command runs, and not what it asks.
    unaware = known.words[best].phase in (("working",) if best == "shell" else ("working", "idle"))
    return "screen" if unaware and screen is not None and screen.phase == "blocked" else best


def _with(known: Known, source: Source, word: Word) -> Known:
    return replace(known, words={**known.words, source: word})


def _without(known: Known, source: Source) -> Known:
    return replace(known, words={name: word for name, word in known.words.items() if name != source})

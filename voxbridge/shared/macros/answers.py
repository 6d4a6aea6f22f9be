"""Answers to the questions of runs: how one goes on after a step that failed (again, without it, not at all), and whether the next step of
one that goes step by step may begin (yes, no, stop). Pure.

No model takes part: an answer is one of a few plain phrases, or none.
"""

from __future__ import annotations

import re
from typing import Final, Literal

Choice = Literal["again", "go_on", "stop"]
StepChoice = Literal["yes", "no", "stop"]

_PHRASES: Final[dict[Choice, str]] = {
    "again": "again, try again, try it again, retry, once more, yes, yes please, please try again, "
    "noch einmal, nochmal, versuch es noch einmal, encore, réessaie, otra vez, inténtalo otra vez, ancora, riprova, "
    "de novo, tenta de novo",
    "go_on": "go_on, go on, go on without it, carry on, continue, skip it, skip, skip that, next, go ahead without it, without it, "
    "weiter, mach weiter, ohne, überspringen, continue sans, passe, sigue, sáltalo, continua, vai avanti, salta, continue sem",
    "stop": "stop, stop it, stop here, no, cancel, cancel it, abort, never mind, leave it, "
    "stopp, abbrechen, nein, arrête, annule, non, para, cancela, fermati, annulla, pare, não",
}
_CHOICES: Final = {phrase: choice for choice, phrases in _PHRASES.items() for phrase in phrases.split(", ")}
_STEPS: Final[dict[StepChoice, str]] = {
    "yes": "yes, yes please, yeah, yep, yup, sure, okay, ok, go ahead, do it, yes do it, go on, continue, next, "
    "ja, ja bitte, klar, gerne, mach das, mach weiter, weiter, oui, d'accord, vas-y, allez-y, continue, sí, si, vale, adelante, sigue, "
    "sì, va bene, procedi, vai avanti, sim, está bem, pode fazer, continua",
    "no": "no, nope, nah, no thanks, skip, skip it, skip that, skip this one, leave it out, without it, not this one, don't, not that, "
    "nein, nee, überspringen, lass es aus, auslassen, ohne, non, passe, saute, sáltalo, salta, não, pula",
}
_STEP_CHOICES: Final = {phrase: choice for choice, phrases in _STEPS.items() for phrase in phrases.split(", ")}
_CALLED_OFF: Final = (
    "cancel, cancel it, cancel that, stop, stop it, never mind, forget it, abort, "
    "abbrechen, stopp, vergiss es, annule, arrête, cancela, cancélalo, déjalo, annulla, lascia stare, cancele, deixa"
)
_CANCEL: Final = frozenset(_CALLED_OFF.split(", "))


def choice_of(text: str) -> Choice | None:
    """Return the choice that a whole answer is; None if it is none."""
    return _CHOICES.get(plain(text))


def step_choice_of(text: str) -> StepChoice | None:
    """Return whether the next step may begin (`no`: it is left out), or the run is to end; None if a whole answer says neither."""
    return "stop" if cancels(text) else _STEP_CHOICES.get(plain(text))


def cancels(text: str) -> bool:
    """Tell whether a whole answer calls the run off."""
    return plain(text) in _CANCEL


def plain(text: str) -> str:
    """Return the words of a text in lower case, without punctuation."""
    return " ".join(re.findall(r"[\w'-]+", text.casefold().replace("’", "'")))

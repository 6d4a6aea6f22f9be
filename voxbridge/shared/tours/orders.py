"""Plain orders that start and steer a guided tour: whole utterances that need no model. Pure."""

from __future__ import annotations

import re
from typing import Final, Literal

from voxbridge.shared.macros.answers import plain

Step = Literal["next", "back", "skip", "stop", "explain"]

_PHRASES: Final[dict[Step, str]] = {
    "next": "next, next one, next step, next please, go on, continue, carry on, and then, let's go, let's begin, begin, start, okay next, "
    "weiter, der nächste, nächster schritt, mach weiter, los, suivant, la suite, continue s'il te plaît, siguiente, sigue, "
    "avanti, prossimo, próximo, seguinte, continua",
    "back": "back, go back, previous, previous step, step back, one back, the one before, zurück, der vorige, retour, précédent, "
    "atrás, anterior, indietro, precedente, volta, voltar",
    "skip": "skip, skip it, skip this, skip this one, skip that, skip this step, überspringen, passe, saute, sáltalo, salta, pula, pular",
    "stop": "stop, stop it, stop the tour, end the tour, end, quit, quit the tour, close the tour, that's enough, enough, I'm done, "
    "leave the tour, cancel the tour, cancel, stopp, genug, tour beenden, arrête, terminé, para, basta, termina, fine, chega, pare",
    "explain": "explain more, explain, explain that, tell me more, more, say more, what does that mean, more about that, "
    "what is that, go into detail, mehr, mehr dazu, erklär das, plus, en savoir plus, explique, más, explica, di più, spiega, mais",
}
_STEPS: Final = {plain(phrase): step for step, phrases in _PHRASES.items() for phrase in phrases.split(", ")}
_START: Final = re.compile(
    r"(?:(?:please )?(?:start|begin|show me|give me|take me on|take) (?:a|the) (?:guided )?tour|(?:please )?show me around|"
    r"(?:can|could) you (?:show me around|give me a tour))(?: (?:of|in|through))?(?: the)?(?P<page>(?: [\w'-]+){0,4})"
)
_KINDS: Final = frozenset(("page", "room", "screen"))
_HERE: Final = frozenset(("", "here", "this", "this app", "app", "please"))
WORDS_LIMIT: Final = 80
"""Characters of an order; nobody says a plain one in more."""


def steered(text: str) -> Step | None:
    """Return what a whole utterance says to a tour that is shown; None if it says something else."""
    return _STEPS.get(plain(text)) if len(text) <= WORDS_LIMIT else None


def started(text: str) -> str | None:
    """Return the page whose tour a whole utterance asks for, empty for the page at hand; None if it asks for no tour."""
    found = _START.fullmatch(plain(text)) if len(text) <= WORDS_LIMIT else None
    if found is None:
        return None
    words = [word for word in found["page"].split() if word not in _KINDS]
    page = " ".join(words)
    return "" if page in _HERE else page.removesuffix(" please")

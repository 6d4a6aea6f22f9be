"""Approval of a call by voice: the question is asked, and the user's own next words are matched with a plain yes or no. Pure.

No model takes part: what a page, a file or a result says cannot approve anything. A yes counts only as the next thing that the user says
after the question was heard to its end, with nothing that the agent said in between, while one question alone is open, and for
`VALID_MS` at most. Anything else has the question asked once more; after that it lapses.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from voxbridge.services.voice.core.state import Question
from voxbridge.services.voice.core.transition import Transition
from voxbridge.shared.events import tools
from voxbridge.shared.events import voice as ev
from voxbridge.shared.step.fold import Append

VALID_MS: Final = 60_000
ASKED_LIMIT: Final = 2
QUESTIONS_LIMIT: Final = 8
"""Questions that a session keeps; the executor lets the others lapse."""

WORDS_LIMIT: Final = 60
"""Characters of an answer; nobody says a plain yes in more."""


class Answers(NamedTuple):
    """Plain answers in a language, and what the agent says after each."""

    yes: frozenset[str]
    no: frozenset[str]
    granted: str
    refused: str


def _said(yes: str, no: str, granted: str, refused: str) -> Answers:
    return Answers(frozenset(yes.split(", ")), frozenset(no.split(", ")), granted, refused)


_BY_LANGUAGE: Final = {
    "en": _said(
        "yes, yes please, yeah, yep, yup, sure, okay, ok, go ahead, do it, please do, yes do it, yes go ahead, of course, approved, "
        "confirmed, that is right, that's right, correct, absolutely, certainly",
        "no, no thanks, no thank you, nope, nah, don't, do not, don't do it, do not do it, stop, cancel, cancel it, never mind, "
        "please don't, no don't, leave it, not now, rather not",
        "All right.",
        "All right, I won't.",
    ),
    "de": _said(
        "ja, ja bitte, jawohl, klar, okay, ok, gerne, mach das, mach es, ja mach das, tu es, sicher, natürlich, genau, "
        "bestätigt, einverstanden",
        "nein, nein danke, nee, lass es, lass das, stopp, abbrechen, nicht, lieber nicht, auf keinen fall, mach das nicht",
        "In Ordnung.",
        "In Ordnung, ich lasse es.",
    ),
    "fr": _said(
        "oui, oui s'il te plaît, oui s'il vous plaît, ouais, d'accord, ok, vas-y, allez-y, bien sûr, fais-le, faites-le, confirmé",
        "non, non merci, arrête, annule, annulez, surtout pas, pas maintenant, ne le fais pas, laisse tomber",
        "D'accord.",
        "D'accord, je ne le fais pas.",
    ),
    "es": _said(
        "sí, si, sí por favor, claro, vale, de acuerdo, adelante, hazlo, por supuesto, confirmado, ok",
        "no, no gracias, para, cancela, cancélalo, déjalo, mejor no, ahora no, no lo hagas",
        "De acuerdo.",
        "De acuerdo, no lo hago.",
    ),
    "it": _said(
        "sì, si, sì grazie, certo, va bene, ok, d'accordo, fallo, procedi, confermato",
        "no, no grazie, fermati, annulla, lascia stare, meglio di no, non farlo, non ora",
        "Va bene.",
        "Va bene, non lo faccio.",
    ),
    "pt": _said(
        "sim, sim por favor, claro, está bem, tudo bem, ok, pode fazer, faz isso, faça isso, confirmado",
        "não, não obrigado, não obrigada, pare, cancela, cancele, deixa, melhor não, agora não, não faça isso",
        "Está bem.",
        "Está bem, não faço.",
    ),
}
LANGUAGES: Final = tuple(_BY_LANGUAGE)


def requested(t: Transition, event: tools.ApprovalRequested) -> None:
    """Keep a question until it is over."""
    question = Question(id=event.approval_id, text=event.question)
    t.pending.questions = (*t.pending.questions, question)[-QUESTIONS_LIMIT:]


def ended(t: Transition, event: tools.ApprovalEnded) -> None:
    """Forget a question that is over: it was answered, here or by a click, or lapsed."""
    t.pending.questions = tuple(one for one in t.pending.questions if one.id != event.approval_id)


def asks(t: Transition, result: dict[str, Any]) -> str:
    """Return the question in a call's result, if it is one that is open: the agent says it word for word."""
    found = next((one for one in t.pending.questions if one.id == result.get("approval_id")), None)
    return found.text if found is not None and result.get("status") == "needs_approval" else ""


def watch(t: Transition) -> None:
    """Note which questions were heard in this step, and which of them the agent has talked over."""
    if not t.pending.questions:
        return
    for output in t.outputs:
        if isinstance(output, Append) and isinstance(output.event, ev.AgentSaid) and output.event.text:
            said = output.event
            t.pending.questions = tuple(_heard(t, one, said) for one in t.pending.questions)


def again(t: Transition) -> str:
    """Return the question that is to be asked once more now; empty if there is none."""
    due = next((one for one in t.pending.questions if one.again), None)
    if due is None:
        return ""
    t.pending.questions = tuple(replace(one, again=False) if one is due else one for one in t.pending.questions)
    return due.text


def answered(t: Transition, text: str, language: str = "") -> str:
    """Take what the user said as the answer to the open question. Return what the agent says to that; empty if it was no answer."""
    asked = [one for one in t.pending.questions if one.heard_at]
    if not asked:
        return ""
    (question, *others) = asked
    known = _BY_LANGUAGE.get((language or t.settings.language or "en")[:2].casefold(), _BY_LANGUAGE["en"])
    words = _plain(text)
    answer = "approved" if words in known.yes else "denied" if words in known.no else ""
    if answer and len(t.pending.questions) == 1 and t.now - question.heard_at <= VALID_MS * 1_000:
        t.append(ev.ApprovalAnswered(approval_id=question.id, answer="approved" if answer == "approved" else "denied", words=text))
        t.pending.questions = ()
        return known.granted if answer == "approved" else known.refused
    for one in (question, *others):
        if one.asked >= ASKED_LIMIT:
            t.append(ev.ApprovalAnswered(approval_id=one.id, answer="lapsed", words=text[:WORDS_LIMIT]))
    kept = (one if not one.heard_at else _once_more(one) for one in t.pending.questions)
    t.pending.questions = tuple(one for one in kept if one.asked <= ASKED_LIMIT)
    return ""


def _once_more(question: Question) -> Question:
    return replace(question, heard_at=0, asked=question.asked + 1, again=True)


def _heard(t: Transition, question: Question, said: ev.AgentSaid) -> Question:
    if not said.interrupted and _is_question(said.text, question.text, whole=t.state.realtime is None):
        return replace(question, heard_at=t.now, again=False)
    if question.heard_at:  # the agent said something else since: a yes might mean that
        return replace(question, heard_at=0, again=question.asked < ASKED_LIMIT, asked=question.asked + (question.asked < ASKED_LIMIT))
    return question


def _is_question(said: str, question: str, *, whole: bool) -> bool:
    """Tell whether the agent asked: word for word where the words were ours, with a question at its end where they were a model's."""
    return _plain(question) in _plain(said) if whole else "?" in said[-WORDS_LIMIT:]


def _plain(text: str) -> str:
    return " ".join(re.findall(r"[\w'-]+", text.casefold().replace("’", "'")))

"""Questions that the user answers: approval of a call by a plain yes or no, and the questions of runs. Pure.

No model takes part: what a page, a file or a result says cannot approve or answer anything. A yes counts only as the next thing that the
user says after the question was heard to its end, word for word, with nothing that the agent said in between, and for `VALID_MS` at most.
Anything else has the question asked once more; after that it lapses. A run takes as its answer what the user says next, or how it is to go
on.

Several questions can be open; one is asked at a time, and a yes is for the one that was heard. For `ALONE_MS` after it nothing else is
announced: the end of a task would come between the question and its answer. A question that no answer of the agent puts,
because a macro's step asks it or a model spoke of something else, is put by the installation's own voice when nobody speaks. Journals with
the rules 0 know other ways: a question of a realtime model counted as any of ours, and none was answered while two were open. Those with
rules before 3 know whole answers alone: "Yes, delete it." was none.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from msgspec.structs import replace

from voxbridge.services.voice.core import inputs
from voxbridge.services.voice.core.state import Question
from voxbridge.services.voice.core.transition import Transition
from voxbridge.shared.events import tools
from voxbridge.shared.events import voice as ev
from voxbridge.shared.language import yes_no
from voxbridge.shared.language.yes_no import Answers
from voxbridge.shared.macros.answers import cancels, choice_of, plain, step_choice_of
from voxbridge.shared.macros.triggers import Match
from voxbridge.shared.step.fold import Append

VALID_MS: Final = 60_000
ALONE_MS: Final = 8_000
"""Time after a question in which nothing is announced. What waits is announced as soon as the question is answered."""

TIMER: Final = "question"
"""Timer for the end of that time."""

ASKED_LIMIT: Final = 2
QUESTIONS_LIMIT: Final = 8
"""Questions that a session keeps; the executor lets the others lapse."""

ANSWER_CHARACTERS: Final = 2_000
"""Characters of an answer to a run."""

OVERLAP: Final = 0.6
"""Part of the words of a run's question that a model must have used, so that it counts as asked."""

WORDS_LIMIT: Final = 60
"""Characters of an answer; nobody says a plain yes in more."""


BY_CLICK: Final = "Please answer by a click, or in English."
"""Words before a question in a language whose words for yes and no are not known."""

_IN_MODE: Final = {"": "{}", "dry_run": "a dry run of {}", "step_by_step": "{} step by step"}
"""Name of a macro in a mode, in the language that modes are said in."""

_APPROVAL: Final = "approval-"
"""Beginning of the id of an approval; the rest is the id of its call."""

_ASKING: Final = ("?", "？", "؟")
_OF_RUNS: Final = ("answer", "choice", "step")
_DECIDES: Final = {"choice": choice_of, "step": step_choice_of}
"""Reads the plain answer to a question of a run that has a few; any words answer the others."""


def requested(t: Transition, event: tools.ApprovalRequested) -> None:
    """Keep a question until it is over. One of a program's call is that program's to put, and answered by a click."""
    if event.by_program:
        return
    question = Question(id=event.approval_id, text=event.question, again=t.settings.rules > 0 and not _is_waited_for(t, event.call_id))
    t.pending.questions = (*t.pending.questions, question)[-QUESTIONS_LIMIT:]


def ended(t: Transition, event: tools.ApprovalEnded) -> None:
    """Forget a question that is over: it was answered, here or by a click, or lapsed. One that was not said yet is not said."""
    over = [one.text for one in t.pending.questions if one.id == event.approval_id]
    t.pending.notices = tuple(one for one in t.pending.notices if one.text not in over)
    t.pending.questions = tuple(one for one in t.pending.questions if one.id != event.approval_id)


def run_asks(t: Transition, event: tools.RunWaiting) -> None:
    """Keep the question of a run until the run goes on."""
    run_goes_on(t, event.run_id)
    kinds: dict[str, Literal["answer", "choice", "step"]] = {"ask": "answer", "step": "step"}
    kind = kinds.get(event.reason, "choice")
    question = Question(id=event.run_id, text=event.question, kind=kind, step=event.step, again=t.settings.rules > 0)
    t.pending.questions = (*t.pending.questions, question)[-QUESTIONS_LIMIT:]


def run_goes_on(t: Transition, run_id: str) -> None:
    """Forget the question of a run that has its answer, or needs none any more; one that was not said yet is not said."""
    over = [one.text for one in t.pending.questions if one.id == run_id and one.kind in _OF_RUNS]
    t.pending.questions = tuple(one for one in t.pending.questions if one.id != run_id or one.kind not in _OF_RUNS)
    t.pending.notices = tuple(one for one in t.pending.notices if one.text not in over)


def offers(t: Transition, macro: Match, language: str) -> str:
    """Keep the question whether a macro was meant; return it."""
    text = _known(t, language).meant.format(_IN_MODE[macro.mode].format(macro.name))
    question = Question(id=f"macro-{t.counters.turns}", text=text, kind="macro", macro=macro)
    t.pending.questions = (*t.pending.questions, question)[-QUESTIONS_LIMIT:]
    return text


def asks(t: Transition, result: dict[str, Any]) -> str:
    """Return the question in a call's result, if it is one that is open: the agent says it word for word."""
    found = next((one for one in t.pending.questions if one.id == result.get("approval_id")), None)
    return put(t, found) if found is not None and result.get("status") == "needs_approval" else ""


def put(t: Transition, question: Question) -> str:
    """Return the words in which an approval is asked for. Where no answer in the call's language is known, they say how to answer."""
    language = t.team.agent.language or t.settings.language
    known = question.kind != "approval" or yes_no.is_known(language) or t.settings.rules < inputs.BY_CLICK
    return question.text if known else f"{BY_CLICK} {question.text}"


def watch(t: Transition) -> None:
    """Note which questions were heard in this step, as far as it has come, and which of them the agent has talked over."""
    new, t.watched = tuple(t.outputs[t.watched :]), len(t.outputs)
    if not t.pending.questions:
        return
    for output in new:
        if isinstance(output, Append) and isinstance(output.event, ev.AgentSaid):
            said = output.event
            t.pending.questions = tuple(_heard(t, one, said) for one in t.pending.questions if not _lapses(t, one, said))
            if is_left_alone(t):
                t.set_timer(TIMER, ALONE_MS)


def is_left_alone(t: Transition) -> bool:
    """Tell whether a question was heard a moment ago, after which nothing is announced yet."""
    return any(one.heard_at and one.alone for one in t.pending.questions)


def waited(t: Transition) -> None:
    """Let what waits be announced, although a question has no answer."""
    t.pending.questions = tuple(replace(one, alone=False) for one in t.pending.questions)


def again(t: Transition) -> Question | None:
    """Return the question that is to be asked now; None if there is none, or if another one waits for its answer."""
    if t.settings.rules and any(one.heard_at and not _is_stale(t, one) for one in t.pending.questions):
        return None
    due = next((one for one in t.pending.questions if one.again), None)
    t.pending.questions = tuple(replace(one, again=False) if one is due else one for one in t.pending.questions)
    return due


def answered(t: Transition, text: str, language: str = "") -> str | Match:
    """Take what the user said as the answer to the open question. Return what the agent says to that, or the macro that was meant; empty if
    it was not an answer."""
    if t.settings.rules:
        watch(t)  # these words may have cut off what the agent said since
    asked = [one for one in t.pending.questions if one.heard_at]
    if not asked:
        return ""
    (question, *others) = asked
    if len(asked if t.settings.rules else t.pending.questions) == 1:
        settled = _settled(t, question, text, language)
        if settled:
            t.pending.questions = tuple(one for one in t.pending.questions if one is not question)
            return settled
    for one in (question, *others):
        if one.asked >= ASKED_LIMIT and one.kind == "approval":
            t.append(ev.ApprovalAnswered(approval_id=one.id, answer="lapsed", words=text[:WORDS_LIMIT]))
    kept = (one if not one.heard_at else _once_more(one) for one in t.pending.questions if one.kind != "macro")
    t.pending.questions = tuple(one for one in kept if one.asked <= ASKED_LIMIT)
    return ""


def _settled(t: Transition, question: Question, text: str, language: str) -> str | Match:
    """Settle the question that was heard, if this is an answer to it."""
    known = _known(t, language)
    reads = _DECIDES.get(question.kind)
    if question.kind == "answer" or (reads is not None and reads(text) is not None):
        off = cancels(text)
        t.append(ev.RunAnswered(run_id=question.id, step=question.step, text=text[:ANSWER_CHARACTERS], cancelled=off))
        return known.refused if off else known.granted
    answer = _answer(t, text, language, question.text)
    if not answer or reads is not None or _is_stale(t, question):
        return ""
    if question.macro is None:
        t.append(ev.ApprovalAnswered(approval_id=question.id, answer="approved" if answer == "approved" else "denied", words=text))
    elif answer == "approved":
        return question.macro
    return known.granted if answer == "approved" else known.refused


def _answer(t: Transition, text: str, language: str, question: str) -> str:
    """Return what a plain answer says, `approved` or `denied`, in the language that was heard or in that of the call; empty if it says
    nothing, or not the same in both. What is asked in return ("Okay?") is not an answer."""
    if t.settings.rules and text.rstrip(" \"'»”’").endswith(_ASKING):
        return ""
    if t.settings.rules >= inputs.YES_NO:
        read = {yes_no.read(text, one, question) for one in (language or t.settings.language, t.settings.language)} - {""}
        return read.pop() if len(read) == 1 else ""
    words, known = _plain(text), _known(t, language)
    spoken = (known, _known(t, "")) if t.settings.rules else (known,)
    said = {"approved" if words in one.yes else "denied" for one in spoken if words in one.yes or words in one.no}
    return said.pop() if len(said) == 1 else ""


def _is_stale(t: Transition, question: Question) -> bool:
    return t.now - question.heard_at > VALID_MS * 1_000


def _is_waited_for(t: Transition, call_id: str) -> bool:
    """Tell whether an answer of the agent waits for the result of a call: the question that the result asks is put there."""
    realtime, reply = t.state.realtime, t.reply
    waiting = [call.call_id for call in realtime.tool_calls.open] if realtime is not None else []
    return call_id in waiting or (reply is not None and any(call.call_id == call_id for call in reply.round.calls))


def _known(t: Transition, language: str) -> Answers:
    return yes_no.of(language or t.settings.language, whole=t.settings.rules < inputs.YES_NO)


def _once_more(question: Question) -> Question:
    return replace(question, heard_at=0, asked=question.asked + 1, again=True)


def _heard(t: Transition, question: Question, said: ev.AgentSaid) -> Question:
    if said.text and not said.interrupted and _asks(t, said.text, question):
        return replace(question, heard_at=t.now, again=False, alone=t.settings.rules >= inputs.LEFT_ALONE)
    cut_off = _cut_off(question, said)
    if cut_off or (said.text and question.heard_at):  # what the agent said since may be what a yes means
        due = question.asked < ASKED_LIMIT
        heard_at = question.heard_at if cut_off and question.kind in _OF_RUNS else 0
        return replace(question, heard_at=heard_at, again=due, asked=question.asked + due)
    if t.settings.rules and said.text and question.kind == "approval" and not _is_waited_for(t, question.id.removeprefix(_APPROVAL)):
        return replace(question, again=True)  # the agent's answer spoke of something else
    return question


def _lapses(t: Transition, question: Question, said: ev.AgentSaid) -> bool:
    """Let an approval lapse that was cut off when it was asked for the last time: nothing could answer it any more."""
    if question.kind != "approval" or question.asked < ASKED_LIMIT or not _cut_off(question, said):
        return False
    t.append(ev.ApprovalAnswered(approval_id=question.id, answer="lapsed", words=""))
    return True


def _cut_off(question: Question, said: ev.AgentSaid) -> bool:
    """Tell whether the user spoke before the question was heard to its end. One about a macro is over with any next words."""
    return said.interrupted and question.kind != "macro" and _is_question(f"{said.text} {said.unheard}", question.text, whole=True)


def _asks(t: Transition, said: str, question: Question) -> bool:
    """Tell whether the agent asked. Any words answer a run, so a model, which may ask other things as well, must have used most of its
    words."""
    if t.settings.rules and question.kind == "approval":
        return _plain(said).endswith(_plain(question.text))  # what is said after it may be what a yes means
    if t.state.realtime is None or question.kind == "approval":
        return _is_question(said, question.text, whole=t.state.realtime is None)
    wanted, found = set(_plain(question.text).split()), set(_plain(said).split())
    return len(wanted & found) >= OVERLAP * len(wanted)


def _is_question(said: str, question: str, *, whole: bool) -> bool:
    """Tell whether the agent asked: word for word, or, in journals with the rules 0, with any question where the words were a model's."""
    return _plain(question) in _plain(said) if whole else "?" in said[-WORDS_LIMIT:]


def _plain(text: str) -> str:
    # What is said has no underscores, which a question may have in the names of files.
    return plain(text.replace("_", " "))

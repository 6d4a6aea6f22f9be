"""Ends of tasks, and of calls that went on after they were cut off: each is told to the user and to the model once. Pure."""

from __future__ import annotations

from typing import Any, Final

from voxbridge.services.voice.core.prompt import memory
from voxbridge.services.voice.core.realtime import connection
from voxbridge.services.voice.core.state import Notice
from voxbridge.services.voice.core.transition import Transition
from voxbridge.services.voice.core.turns import open_calls, turns
from voxbridge.shared.errors import Code
from voxbridge.shared.events import tools
from voxbridge.shared.events import voice as ev
from voxbridge.shared.events.voice import Failure

_NOTE: Final = "(Result of {name}, which has ended: {result})"
_SPOKEN: Final = ("spoken", "announce")
_QUIET: Final = ("the user cancelled it", "the session ended")
"""Reasons of a cancellation that nobody needs to be told."""

TOLD_KEPT: Final = 64
"""Tasks that outlive the session of which it remembers that it told their end."""

_EARLIER: Final = "From an earlier call: "


def ended(t: Transition, event: tools.TaskCompleted | tools.TaskFailed | tools.TaskInterrupted | tools.TaskCancelled) -> None:
    """Tell how a task ended."""
    before = t.pending.notices
    match event:
        case tools.TaskCompleted(function=function, result=result, announce=announce):
            if announce or t.settings.tells_ends:
                completed(t, function, result, announce)
        case tools.TaskFailed(function=function, error=error):
            failed(t, function, error)
        case tools.TaskInterrupted(function=function) if t.settings.tells_ends:
            interrupted(t, function)
        case tools.TaskCancelled(function=function, reason=reason) if t.settings.tells_ends and reason not in _QUIET:
            turns.notice(t, f"{_words(function)} was cancelled.")
        case _:
            pass
    if event.outlives and len(t.pending.notices) > len(before):
        said = t.pending.notices[-1].text
        t.pending.notices = (*before, Notice(said if event.ended_ts is None else f"{_EARLIER}{said}", event.task_id))


def want(t: Transition) -> None:
    """Ask for the ends of tasks that no session of the account has told. One session gets each of them, as an event of the executor."""
    new = tuple(task for task in t.pending.unheard if task not in t.pending.wanted)
    t.pending.wanted = t.pending.unheard
    if new and t.state.request is not None:
        t.append(ev.TasksWanted(task_ids=new, account=t.state.request.account))


def told(t: Transition, notice: Notice) -> None:
    """Take note that the end of a task that outlives the session is being said."""
    if notice.task:
        t.pending.told = (*t.pending.told, notice)[-TOLD_KEPT:]


def completed(t: Transition, name: str, result: dict[str, Any], announce: str = "") -> None:
    """Have the agent say the result, and give the whole of it to the model."""
    spoken = announce or result.get("spoken")
    turns.notice(t, spoken if isinstance(spoken, str) and spoken else f"{_words(name)} is done.")
    if t.settings.tells_ends and any(key not in _SPOKEN for key in result):
        note = _NOTE.format(name=name, result=memory.as_text(result))
        if t.state.realtime is not None:
            connection.say(t, note, respond=False)
        memory.remember_note(t, note)


def decided(t: Transition, event: tools.ApprovalEnded) -> None:
    """Tell the model what became of a request for approval: it asked, and did not take the answer itself."""
    name = event.name
    told = f"The user approved {name}: it runs now, and its result comes later." if event.outcome == "approved" else f"{name} is not run."
    note = f"({told})"
    if t.state.realtime is not None:
        connection.say(t, note, respond=False)
    memory.remember_note(t, note)


def failed(t: Transition, name: str, error: Failure) -> None:
    """Have the agent say why it failed."""
    turns.notice(t, f"{name.replace('_', ' ')} failed: {error.message}")


def interrupted(t: Transition, name: str) -> None:
    """Have the agent say that the outcome is not known."""
    turns.notice(t, f"{_words(name)} was interrupted; whether it took effect is not known.")


def late(t: Transition, name: str, outcome: dict[str, Any] | Failure | None) -> bool:
    """Tell the end of a call that nobody waits for any more, if it may have changed something. Return whether it was told."""
    if not open_calls.outlives_its_reply(t, name):
        return False
    if isinstance(outcome, dict):
        completed(t, name, outcome)
    elif outcome is None:
        interrupted(t, name)
    elif outcome.code != Code.CANCELLED:
        failed(t, name, outcome)
    else:
        memory.remember_note(t, f"({name} was cancelled before it began.)")
    return True


def _words(name: str) -> str:
    words = name.replace("_", " ")
    return f"{words[:1].upper()}{words[1:]}"

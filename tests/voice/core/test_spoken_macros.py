"""Macros by voice: the user's own words start one before a model is asked, and answer what a run asks."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.voice.conversation import FUNCTIONS, Conversation
from voxbridge.services.voice.core import agents, inputs
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.turns.consent import ANSWER_CHARACTERS, ASKED_LIMIT, VALID_MS
from voxbridge.services.voice.core.turns.open_calls import QUIET_MS
from voxbridge.shared.agents.model import Agent, AgentTeam
from voxbridge.shared.events import gateway, tools
from voxbridge.shared.events import voice as ev
from voxbridge.shared.macros.triggers import Spoken
from voxbridge.shared.store.store import Function

NAME = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 64}}, "required": ["name"]}
RUN = Function(name="run_macro", description="Run a macro.", parameters=NAME, kind="async", timeout_s=60)
MACROS = (Spoken("night", ("good night everybody",)), Spoken("deploy", ("deploy {service}",)))


def conversation(*, installed: tuple[Function, ...] = (*FUNCTIONS, RUN), **options: Any) -> Conversation:
    return Conversation(installed=installed, macros=MACROS, **options)


def said(call: Conversation) -> list[str]:
    return [event.text for event in call.events(ev.AgentSaid)]


def called(call: Conversation) -> list[dict[str, Any]]:
    return [event.arguments for event in call.events(ev.ToolCalled) if event.name == "run_macro"]


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("Good night, everybody!", {"name": "night"}),
        ("deploy the billing API", {"name": "deploy", "inputs": {"service": "the billing API"}}),
    ],
)
@pytest.mark.parametrize("local", [True, False])
def test_a_trigger_starts_its_macro_and_no_model_is_asked(words: str, arguments: dict[str, Any], local: bool) -> None:
    call = conversation(speak_results=local)
    call.speak(words)
    call.pass_ms(QUIET_MS)
    assert called(call) == [arguments]
    call.complete_tool({"status": "started", "task_id": "task-c", "spoken": "Started it."})
    call.hear()
    assert said(call) == ["Started it."]
    assert not call.effects(out.Complete)
    assert call.events(ev.TurnCompleted)[-1].reason == "completed"


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("Dry run: good night everybody.", {"name": "night", "dry_run": True}),
        ("Run night step by step.", {"name": "night", "step_by_step": True}),
        ("deploy the billing API step by step", {"name": "deploy", "inputs": {"service": "the billing API"}, "step_by_step": True}),
    ],
)
def test_a_macro_is_started_in_the_mode_that_was_said(words: str, arguments: dict[str, Any]) -> None:
    call = conversation()
    call.speak(words)
    call.pass_ms(QUIET_MS)
    assert called(call) == [arguments]
    assert not call.effects(out.Complete)


def test_words_like_a_trigger_are_read_back_with_their_mode() -> None:
    call = conversation()
    call.speak("Good night everbody step by step.")
    call.hear()
    assert said(call) == ["Did you mean night step by step? Please say yes or no."]
    call.speak("Yes.")
    call.pass_ms(QUIET_MS)
    assert called(call) == [{"name": "night", "step_by_step": True}]


def test_a_typed_trigger_starts_its_macro_at_once() -> None:
    call = conversation()
    call.log(gateway.TextReceived(text="good night everybody"))
    assert called(call) == [{"name": "night"}]


def test_a_macro_that_is_refused_says_why_and_no_model_is_asked() -> None:
    call = conversation()
    call.log(gateway.TextReceived(text="good night everybody"))
    failed = call.events(ev.ToolCalled)[-1]
    error = ev.Failure(code="CONFLICT", message="night is running already.")
    call.log(tools.ToolFailed(call_id=failed.call_id, name="run_macro", error=error, ms=1))
    call.hear()
    assert said(call) == ["night is running already."]
    assert not call.effects(out.Complete)


def test_the_user_may_go_on_after_a_trigger_before_it_begins() -> None:
    call = conversation()
    call.speak("Good night everybody")
    call.speak("in the story that you told me")
    call.pass_ms(QUIET_MS)
    assert called(call) == []
    assert call.last_effect(out.Complete)[1].messages[-1].text == "Good night everybody in the story that you told me"


def test_a_trigger_may_be_said_with_a_pause_in_it() -> None:
    call = conversation()
    call.speak("deploy")
    call.speak("the billing API")
    call.pass_ms(QUIET_MS)
    assert called(call) == [{"name": "deploy", "inputs": {"service": "the billing API"}}]


def test_noise_after_a_trigger_starts_it_all_the_same() -> None:
    call = conversation()
    call.speak("Good night everybody")
    call.speak("")
    call.pass_ms(QUIET_MS)
    assert called(call) == [{"name": "night"}]
    assert not call.effects(out.Complete)


@pytest.mark.parametrize(("answer", "runs"), [("Yes.", True), ("No.", False), ("What time is it?", False)])
def test_words_that_are_only_like_a_trigger_are_read_back(answer: str, runs: bool) -> None:
    call = conversation()
    call.speak("goodnight everybody")
    call.hear()
    assert said(call) == ["Did you mean night? Please say yes or no."]
    assert called(call) == []
    call.speak(answer)
    call.pass_ms(QUIET_MS)
    assert called(call) == ([{"name": "night"}] if runs else [])
    assert bool(call.effects(out.Complete)) is (answer == "What time is it?"), "other words are for the model"
    assert call.state.pending.questions == ()


@pytest.mark.parametrize(("wait_ms", "runs"), [(VALID_MS - 3_000, True), (VALID_MS + 1, False)])
def test_a_yes_to_a_macro_counts_for_a_minute(wait_ms: int, runs: bool) -> None:
    call = conversation()
    call.speak("goodnight everybody")
    call.hear()
    call.pass_ms(wait_ms)
    call.speak("Yes.")
    call.pass_ms(QUIET_MS)
    assert bool(called(call)) is runs


def test_other_words_go_to_the_model() -> None:
    call = conversation()
    call.speak("What is a good night's sleep?")
    assert len(call.effects(out.Complete)) == 1
    assert called(call) == []


def test_an_agent_that_may_not_run_macros_hears_no_trigger() -> None:
    call = conversation(installed=FUNCTIONS)
    call.speak("good night everybody")
    assert len(call.effects(out.Complete)) == 1


@pytest.mark.parametrize(
    ("listed", "allowed"),
    [
        (None, None),
        (("run_macro", "current_time"), ("current_time", "run_macro")),
        (("run_macro", "run_tool"), None),
    ],
    ids=["all", "those it names", "all by run_tool"],
)
def test_a_macro_is_called_with_the_rights_of_the_agent(listed: tuple[str, ...] | None, allowed: tuple[str, ...] | None) -> None:
    team = AgentTeam(agents=(Agent(name="clerk", tools=listed),))
    call = conversation(team=team, installed=(*FUNCTIONS, RUN, replace(RUN, name="run_tool")), functions=())
    call.log(gateway.TextReceived(text="good night everybody"))
    assert [event.allowed for event in call.events(ev.ToolCalled)] == [allowed]


def test_a_macro_that_is_saved_or_deleted_counts_at_once() -> None:
    call = conversation()
    call.take(inputs.MacrosChanged((Spoken("lunch", ("time for lunch",)),)))
    call.log(gateway.TextReceived(text="time for lunch"))
    assert called(call) == [{"name": "lunch"}]
    call.log(gateway.TextReceived(text="good night everybody"))
    assert len(called(call)) == 1


@pytest.mark.parametrize("mode", ["gemini", "openai", "claude", "local"])
def test_every_model_is_told_the_names_of_macros(mode: Any) -> None:
    many = tuple(Spoken(f"macro {number}") for number in range(agents.MACROS_TOLD + 1))
    providers = ("local", "echo", "gemini", "openai", "anthropic")
    call = Conversation(mode=mode, installed=(RUN,), macros=many, functions=(), providers=providers)
    assert names(call) == [one.name for one in many[1:]]
    call.take(inputs.MacrosChanged((Spoken("lunch"),)))
    assert names(call) == ["lunch"]
    call.take(inputs.MacrosChanged(()))
    assert names(call) is None


def names(call: Conversation) -> list[str] | None:
    (function,) = [one for one in call.state.team.functions if one.name == "run_macro"]
    found: list[str] | None = function.parameters["properties"]["name"].get("enum")
    return found


# --- questions of runs ---


def waits(call: Conversation, question: str = "Which city?", reason: Any = "ask") -> None:
    call.log(tools.RunWaiting(run_id="r1", name="trip", reason=reason, step="where", question=question, expires_ts=1))
    call.hear()


def test_the_users_next_words_answer_a_run() -> None:
    call = conversation()
    waits(call)
    assert said(call) == ["Which city?"]
    call.speak("Lisbon, please.")
    (answer,) = call.events(ev.RunAnswered)
    assert (answer.run_id, answer.step, answer.text, answer.cancelled) == ("r1", "where", "Lisbon, please.", False)
    assert not call.effects(out.Complete)
    call.hear()
    assert said(call)[-1] == "All right."
    call.speak("And what time is it there?")
    assert len(call.events(ev.RunAnswered)) == 1
    assert len(call.effects(out.Complete)) == 1


def test_cancel_calls_the_run_off() -> None:
    call = conversation()
    waits(call)
    call.speak("Never mind.")
    assert [event.cancelled for event in call.events(ev.RunAnswered)] == [True]


@pytest.mark.parametrize("words", ["Try it again.", "go on", "Stop!"])
def test_how_a_run_goes_on_is_the_users_word(words: str) -> None:
    call = conversation()
    waits(call, "The step a failed: broken. Shall I try it again, go on without it, or stop?", "error")
    call.speak(words)
    assert [event.text for event in call.events(ev.RunAnswered)] == [words]


STEP = "Step 1 of 2: echo with hello. Shall I? Say yes, no to leave it out, or stop."


@pytest.mark.parametrize(
    ("words", "stops", "then"),
    [
        ("Yes.", False, "All right."),
        ("Go ahead!", False, "All right."),
        ("No.", False, "All right."),
        ("Skip it", False, "All right."),
        ("Stop!", True, "All right, I won't."),
        ("Abbrechen.", True, "All right, I won't."),
    ],
)
def test_whether_the_next_step_begins_is_the_users_word(words: str, stops: bool, then: str) -> None:
    call = conversation()
    waits(call, STEP, "step")
    assert said(call) == [STEP]
    call.speak(words)
    (answer,) = call.events(ev.RunAnswered)
    assert (answer.run_id, answer.step, answer.text, answer.cancelled) == ("r1", "where", words, stops)
    call.hear()
    assert said(call)[-1] == then
    assert not call.effects(out.Complete)


def test_other_words_begin_no_step() -> None:
    call = conversation()
    waits(call, STEP, "step")
    call.speak("What does that do?")
    call.write("It says hello.")
    call.hear()
    assert said(call)[-1] == STEP, "it is asked once more"
    assert call.events(ev.RunAnswered) == []


def test_a_step_that_was_left_out_by_a_click_is_not_asked_about_any_more() -> None:
    call = conversation()
    waits(call, STEP, "step")
    call.log(tools.RunStepSkipped(run_id="r1", step="where"))
    assert call.state.pending.questions == ()


def test_other_words_have_the_question_asked_once_more_and_then_left_to_the_client() -> None:
    call = conversation()
    question = "The step a failed: broken. Shall I try it again, go on without it, or stop?"
    waits(call, question, "error")
    for _ in range(ASKED_LIMIT):
        call.speak("What happened?")
        call.write("I do not know.")
        call.hear()
    assert said(call).count(question) == ASKED_LIMIT
    assert call.events(ev.RunAnswered) == []
    assert call.state.pending.questions == ()


def test_a_question_that_was_answered_elsewhere_is_not_asked_any_more() -> None:
    call = conversation()
    call.speak("Hello.")
    call.log(tools.RunWaiting(run_id="r1", name="trip", reason="ask", step="where", question="Which city?", expires_ts=1))
    call.log(tools.RunStepCompleted(run_id="r1", step="where", attempt=1))
    call.write("Hello to you.")
    call.hear()
    assert said(call) == ["Hello to you."]
    call.speak("Lisbon.")
    assert call.events(ev.RunAnswered) == []


def test_a_question_that_is_talked_over_is_asked_again() -> None:
    call = conversation()
    call.log(tools.RunWaiting(run_id="r1", name="trip", reason="ask", step="where", question="Which city shall it be?", expires_ts=1))
    call.synthesize()
    call.play(300)
    call.speak("Wait.")
    call.write("Yes?")
    call.hear()
    assert said(call)[-1] == "Which city shall it be?"
    call.speak("Lisbon.")
    assert [event.text for event in call.events(ev.RunAnswered)] == ["Lisbon."]


def test_an_answer_is_cut_at_its_bound() -> None:
    call = conversation()
    waits(call)
    call.log(gateway.TextReceived(text="x" * (ANSWER_CHARACTERS + 1)))
    assert call.events(ev.RunAnswered)[0].text == "x" * ANSWER_CHARACTERS


@pytest.mark.parametrize(("mode", "told"), [("local", ["handbook"]), ("gemini", None)])
def test_the_local_model_alone_is_told_the_names_of_things_that_may_change(mode: Any, told: list[str] | None) -> None:
    schema = {"type": "object", "properties": {"database": {"type": "string"}}}
    search = Function(name="search_kg", description="Search.", parameters=schema)
    providers = ("local", "echo", "gemini")
    call = Conversation(mode=mode, installed=(search,), functions=(), providers=providers, names={"search_kg": {"database": ("handbook",)}})
    (function,) = [one for one in call.state.team.functions if one.name == "search_kg"]
    assert function.parameters["properties"]["database"].get("enum") == told

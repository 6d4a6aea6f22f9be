"""Functions that an agent starts with: called once in a session, beside it, when the agent takes the conversation."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.voice.conversation import FUNCTIONS, Conversation
from voxbridge.services.voice.core import agents, inputs
from voxbridge.services.voice.core import outputs as out
from voxbridge.shared.agents.functions import Function
from voxbridge.shared.agents.model import Agent, AgentTeam
from voxbridge.shared.events import gateway, tools
from voxbridge.shared.events import voice as ev

WATCH = Function(
    name="watch_terminals", description="Watch.", parameters={"type": "object"}, kind="async", effect="read", timeout_s=60, listed=False
)
OFFICER = Agent(name="officer", tools=("watch_terminals", "current_time"), starts=("watch_terminals",), greeting="On the bridge.")
CLERK = Agent(name="clerk", tools=("current_time",), handoffs=("officer",))


def session(*members: Agent, **given: Any) -> Conversation:
    return Conversation(team=AgentTeam(agents=members), installed=(*FUNCTIONS, WATCH), functions=(), **given)


def heard(call: Conversation) -> None:
    """Have the client play all that the agent says."""
    for _ in range(20):
        if call.state.speech.reply is None:
            return
        call.synthesize()
        call.play(9_000, "finished")
    raise AssertionError("the reply does not end")


def called(call: Conversation) -> list[str]:
    return [one.name for one in call.events(ev.ToolCalled)]


def test_it_is_called_when_the_session_begins_and_nobody_waits_for_its_answer() -> None:
    call = session(OFFICER)
    (watch,) = call.events(ev.ToolCalled)
    assert (watch.name, watch.arguments, watch.turn) == ("watch_terminals", {}, 0)
    assert watch.allowed == ("current_time", "watch_terminals")
    answer = {"task_id": f"task-{watch.call_id}", "status": "started", "spoken": "Started watch terminals."}
    call.log(tools.ToolCompleted(call_id=watch.call_id, name="watch_terminals", result=answer, ms=1, goes_on="task"))
    call.speak("Hello?")
    call.write("Hi there.")
    heard(call)
    said = [one.text for one in call.events(ev.AgentSaid)]
    assert said[-1] == "Hi there."
    assert "Started watch terminals." not in said
    assert called(call) == ["watch_terminals"]


def test_it_is_called_when_the_agent_is_handed_the_conversation_and_not_again() -> None:
    call = session(CLERK, OFFICER)
    assert called(call) == []
    for target in ("officer", "clerk", "officer"):
        call.log(gateway.HandoffRequested(target=target))
        call.write("Here.")
        heard(call)
    assert [one.target for one in call.events(ev.HandoffCompleted)] == ["officer", "clerk", "officer"]
    assert called(call) == ["watch_terminals"]


def test_one_that_the_agent_may_not_call_or_that_is_no_task_is_not_called() -> None:
    for agent in (
        Agent(name="officer", tools=("current_time",), starts=("watch_terminals",)),
        Agent(name="officer", tools=("current_time",), starts=("current_time", "no_such")),
    ):
        assert called(session(agent)) == []


def test_a_child_session_starts_nothing() -> None:
    child = gateway.Child(parent="f" * 32, call_id="c", kind="run", seconds=60, tokens=1_000)
    assert called(session(OFFICER, child=child)) == []


def test_what_a_task_tells_on_the_way_is_said_when_nobody_speaks() -> None:
    call = session(OFFICER)
    heard(call)
    call.speak("What time is it?")
    asks = "Claude asks for permission: create hello.txt."
    call.log(tools.TaskProgressed(task_id="task-1", function="watch_terminals", done=0.0, message=asks, tell=True))
    call.log(tools.TaskProgressed(task_id="task-1", function="watch_terminals", done=0.5, message="half way"))
    call.write("It is noon.")
    heard(call)
    assert [one.text for one in call.events(ev.AgentSaid)] == ["On the bridge.", "It is noon.", asks]


def test_the_recogniser_is_told_the_vocabulary_of_the_agent_that_speaks() -> None:
    call = session(msgspec.structs.replace(OFFICER, vocabulary=("Claude", "its diff")))
    call.speak("Hello?")
    assert {effect.vocabulary for _, effect in call.effects(out.Transcribe)} == {("Claude", "its diff")}


def test_the_recogniser_is_told_of_the_terminals_that_there_are() -> None:
    names = {
        "send_key": {"terminal": ("Build", "Claude", *(f"Terminal {number}" for number in range(64)))},
        "forward_output": {"terminal": ("Build",), "source": ("Notes",)},
        "run_workflow": {"name": ("Deploy",)},
        "close_terminal": {"terminal": ("Hidden",)},
    }
    officer = msgspec.structs.replace(OFFICER, tools=("send_key", "forward_output", "run_workflow"), vocabulary=("Claude", "its diff"))
    call = session(officer, names=names)
    call.speak("Hello?")
    (told,) = {effect.vocabulary for _, effect in call.effects(out.Transcribe)}
    assert told[:5] == ("Claude", "its diff", "in Build", "in Claude", "in Terminal 0")
    assert len(told) == agents.VOCABULARY
    assert not {"in Hidden", "in Deploy", "in Notes"} & {*told}
    call = session(msgspec.structs.replace(officer, vocabulary=()), names=names)
    call.speak("Hello?")
    assert {effect.vocabulary for _, effect in call.effects(out.Transcribe)} == {()}, "an agent that has no words of its own is told none"


def test_a_terminal_that_is_started_in_the_call_is_one_to_the_recogniser_and_to_the_local_model() -> None:
    key = msgspec.structs.replace(WATCH, name="send_key", parameters={"type": "object", "properties": {"terminal": {"type": "string"}}})
    officer = msgspec.structs.replace(OFFICER, tools=("send_key",), starts=(), vocabulary=("Claude",))
    call = Conversation(team=AgentTeam(agents=(officer,)), installed=(*FUNCTIONS, key), functions=())
    call.speak("Start a terminal called server.")
    call.write("Server is started.")
    heard(call)
    call.take(inputs.NamesChanged({"send_key": {"terminal": ("Server",)}}))
    call.speak("Press enter in the server.")
    assert [effect.vocabulary for _, effect in call.effects(out.Transcribe)][-1] == ("Claude", "in Server")
    (function,) = [one for one in call.state.team.functions if one.name == "send_key"]
    assert function.parameters["properties"]["terminal"]["examples"] == ["Server"]
    call.take(inputs.NamesChanged({}))
    call.speak("Which terminals are there?")
    assert [effect.vocabulary for _, effect in call.effects(out.Transcribe)][-1] == ("Claude",)


def test_a_stranger_and_an_agent_in_the_background_learn_no_names() -> None:
    child = gateway.Child(parent="f" * 32, call_id="c", kind="run", seconds=60, tokens=1_000)
    call = session(OFFICER, child=child)
    call.take(inputs.NamesChanged({"send_key": {"terminal": ("Server",)}}))
    assert call.state.team.names == {}

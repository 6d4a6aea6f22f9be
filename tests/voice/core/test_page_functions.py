"""Functions of the page in the core: offered beside the installation's, and refused where they cannot be."""

from __future__ import annotations

import msgspec
import pytest

from tests.voice.conversation import PAGE_FUNCTIONS, Conversation
from tests.voice.core.test_calls import calling
from voxbridge.services.voice.core import agents, inputs, page_functions
from voxbridge.services.voice.core import outputs as out
from voxbridge.services.voice.core.page_functions import LOCAL_BYTES
from voxbridge.shared.agents.functions import Function
from voxbridge.shared.agents.model import HANDOFF, Agent, ModelName
from voxbridge.shared.errors import Code
from voxbridge.shared.events import gateway
from voxbridge.shared.events import voice as ev
from voxbridge.shared.events.gateway import ClientCapabilities, SessionRequested

CLOCK = Function(name="current_time", description="The time.", parameters={"type": "object"})
LOCAL = Agent(name="")
CLAUDE = Agent(name="", llm=ModelName("anthropic", "claude"))


def page(name: str, description: str = "") -> Function:
    return Function(name=name, description=description, parameters={"type": "object"}, kind="browser")


def test_a_session_offers_the_functions_of_its_page_beside_the_installations() -> None:
    call = Conversation()
    (started,) = call.events(ev.SessionStarted)
    assert started.tools == ("current_time", "send_mail", *(one.name for one in PAGE_FUNCTIONS))


@pytest.mark.parametrize("name", ["current_time", HANDOFF])
def test_a_name_that_is_taken_is_refused(name: str) -> None:
    code, message = page_functions.wrong([page("free"), page(name)], [CLOCK], [LOCAL])
    assert (code, name in message, "free" in message) == (Code.INVALID_ARGUMENT, True, False)


def test_the_local_model_is_offered_so_many_bytes_and_others_more() -> None:
    rest = LOCAL_BYTES - len('["big","",{"type":"object"}]')
    assert page_functions.wrong([page("big", "x" * rest)], [CLOCK], [LOCAL])[1] == ""
    code, message = page_functions.wrong([page("big", "x" * (rest + 1))], [CLOCK], [CLAUDE, LOCAL])
    assert (code, str(LOCAL_BYTES) in message) == (Code.TOO_LARGE, True)
    assert page_functions.wrong([page("big", "x" * (rest + 1))], [CLOCK], [CLAUDE])[1] == ""


def test_a_session_whose_page_takes_a_name_that_is_there_ends_with_the_reason() -> None:
    call = Conversation(functions=(page("current_time"),))
    (ended,) = call.events(ev.SessionEnded)
    assert ended.error is not None
    assert (ended.reason, ended.error.code, "current_time" in ended.error.message) == ("refused", "INVALID_ARGUMENT", True)
    assert call.events(ev.SessionStarted) == []


def test_a_page_has_its_own_time_and_no_more() -> None:
    call = calling("open_page")
    (called,) = call.events(ev.ToolCalled)
    assert called.deadline_ms == 5_000
    call.pass_ms(4_999)
    assert call.events(ev.ToolCancelled) == []
    call.pass_ms(1)
    assert [one.reason for one in call.events(ev.ToolCancelled)] == ["timed_out"]


def test_functions_of_the_catalogue_are_offered_if_the_page_answers_them() -> None:
    own = [CLOCK, page("navigate_page"), page("switch_theme")]
    request = SessionRequested(mode="local", functions=(page("mine"),), client=ClientCapabilities(browser=("switch_theme",)))
    assert [one.name for one in page_functions.offered(own, request)] == ["current_time", "switch_theme", "mine"]


def test_a_function_that_the_page_declares_takes_the_place_of_the_catalogues() -> None:
    mine, own = page("navigate_page", "Mine."), [CLOCK, page("navigate_page", "The catalogue's.")]
    assert page_functions.wrong([mine], own, [LOCAL])[1] == ""
    request = SessionRequested(mode="local", functions=(mine,), client=ClientCapabilities(browser=("navigate_page",)))
    assert page_functions.offered(own, request) == (CLOCK, mine)


def test_what_a_page_says_of_an_argument_goes_into_the_catalogues_function() -> None:
    path = {"type": "string", "maxLength": 256}
    own = msgspec.structs.replace(page("navigate_page", "Go."), parameters={"type": "object", "properties": {"path": path}})
    said = {"type": "object", "properties": {"path": {"type": "string", "enum": ["Home"]}}}
    names = msgspec.structs.replace(page("navigate_page"), parameters=said)
    request = SessionRequested(mode="local", functions=(names, page("mine", "My own.")))
    offered, mine = page_functions.offered([own, page("switch_theme")], request)
    assert (offered.description, mine.name) == ("Go.", "mine")
    assert offered.parameters["properties"] == {"path": path | {"enum": ["Home"]}}


@pytest.mark.parametrize(("functions", "shared"), [((), True), (("navigate_page",), True), (("navigate_page", "mine"), False)])
def test_names_of_a_page_leave_the_prompt_to_be_kept(functions: tuple[str, ...], shared: bool) -> None:
    said = {"type": "object", "properties": {"path": {"type": "string", "enum": ["Home"]}}}
    declared = tuple(msgspec.structs.replace(page(name), parameters=said) for name in functions)
    call = Conversation(functions=declared)
    assert agents.shared(call.state) is shared


def test_a_call_without_its_page_is_answered_at_once() -> None:
    call = Conversation()
    call.speak("Open the page.")
    effect = call.last_effect(out.Complete)[0]
    call.log(gateway.ClientDisconnected(gateway="", connection="", reason="closed", last_seq=0))
    call.take(inputs.ToolRequested(effect=effect, name="open_page", arguments={}))
    call.take(inputs.Completed(effect=effect))
    assert [one.reason for one in call.events(ev.ToolCancelled)] == ["unavailable"]
    told = call.last_effect(out.Complete)[1].messages[-1].text
    assert ('"code":"UNAVAILABLE"' in told, "not connected" in told) == (True, True)
    call.log(gateway.ClientConnected(gateway="g", connection="d", resumed=True))
    (called,) = call.events(ev.ToolCalled)
    call.log(gateway.BrowserCallAnswered(call_id=called.call_id, name="open_page", result={"late": True}))
    assert [one.how for one in call.events(ev.ToolDelivered)] == ["response", "dropped"]

"""The functions of a request to the installation's own models service."""

from __future__ import annotations

from voxbridge.services.models.api.bodies import ChatRequest
from voxbridge.services.models.core import chatml
from voxbridge.shared.agents import talking
from voxbridge.shared.agents.functions import Function, with_names
from voxbridge.shared.agents.model import Agent, handoff_function
from voxbridge.shared.language import own_offer
from voxbridge.shared.language.conversation import ToolRequested

TIME = Function(name="current_time", description="The time.", parameters={"type": "object"}, utterances=("what time is it",))
HASH = Function(name="hash_text", description="A hash.", parameters={"type": "object"}, listed=False, utterances=("hash this",))
PAGE = Function(name="page_thing", description="A thing.", parameters={"type": "object"}, kind="browser", listed=False)
RUN = Function(name="run_tool", description="Run a tool.", parameters={"type": "object"}, utterances=("run the tool hash",))
CATALOGUE = (TIME, HASH, PAGE, RUN)


def _kept(function: Function) -> Function:
    """Return a function as a session has it."""
    return Function(name=function.name, description=function.description, parameters=function.parameters)


def test_utterances_are_those_of_the_catalogue() -> None:
    (tool,) = own_offer.offer([_kept(TIME)], CATALOGUE)
    assert tool["function"]["utterances"] == ["what time is it"]
    (unknown,) = own_offer.offer([_kept(TIME)], ())
    assert "utterances" not in unknown["function"]


def test_what_the_local_model_cannot_write_it_is_not_told() -> None:
    fewer = {"type": "object", "properties": {"name": {"type": "string"}}}
    whole = {"type": "object", "properties": {"name": {"type": "string"}, "steps": {"type": "array"}}}
    macro = Function(name="macro", description="A macro.", parameters=whole, local=fewer)
    (tool,) = own_offer.offer([_kept(macro)], [macro])
    assert tool["function"]["parameters"] == fewer
    of_the_page = Function(name="macro", description="A macro.", parameters=TIME.parameters)
    (tool,) = own_offer.offer([of_the_page], [macro])
    assert tool["function"]["parameters"] == TIME.parameters


def test_unlisted_functions_go_along_where_run_tool_is_offered() -> None:
    offered = own_offer.offer([_kept(TIME), _kept(RUN)], CATALOGUE)
    assert [tool["function"]["name"] for tool in offered] == ["current_time", "run_tool", "hash_text"]
    assert [tool["function"].get("listed", True) for tool in offered] == [True, True, False]
    assert len(own_offer.offer([_kept(TIME)], CATALOGUE)) == 1


def test_a_call_of_an_unlisted_function_is_one_of_run_tool() -> None:
    call = ToolRequested(effect=1, name="hash_text", arguments={"text": "x"})
    assert own_offer.as_offered(call, [_kept(TIME), _kept(RUN)]) == ToolRequested(
        effect=1, name="run_tool", arguments={"tool_id": "hash_text", "params": {"text": "x"}}
    )
    assert own_offer.as_offered(call, [_kept(TIME)]) is call
    own = ToolRequested(effect=1, name="current_time", arguments={})
    assert own_offer.as_offered(own, [_kept(TIME), _kept(RUN)]) is own


def test_the_number_of_functions_has_the_services_limit() -> None:
    many = tuple(Function(name=f"f{index}", description="x", parameters={}, listed=False) for index in range(own_offer.OFFER_LIMIT))
    assert own_offer.OFFER_LIMIT == chatml.MAX_TOOLS
    assert len(own_offer.offer([RUN], many)) == own_offer.OFFER_LIMIT


def test_what_is_offered_is_within_the_limits_of_the_service() -> None:
    wordy = Function(name="wordy", description="x", parameters={}, utterances=("a" * 5_000,) * 50)
    offered = own_offer.offer([_kept(wordy)], [wordy])
    ChatRequest.model_validate({"messages": [{"role": "user", "content": "x"}], "tools": offered})


def test_a_handover_is_wanted_by_the_names_of_the_others() -> None:
    one = Agent(name="desk", handoffs=("billing",))
    function = handoff_function(one, [one, Agent(name="billing", description="Invoices and refunds.")])
    assert function is not None
    (tool,) = own_offer.offer([function], CATALOGUE)
    assert "let me talk to billing" in tool["function"]["utterances"]
    assert "billing: Invoices and refunds." in tool["function"]["utterances"]


def test_things_that_a_session_knows_go_along_beside_the_schema() -> None:
    whole = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 64}, "kind": {"type": "string", "enum": ["a"]}}}
    fewer = {"type": "object", "properties": {"name": {"type": "string"}}}
    macro = Function(name="macro", description="A macro.", parameters=whole, local=fewer)
    names = [f"m{number}" for number in range(own_offer.NAMES_LIMIT)]
    here = with_names(_kept(macro), {"name": ["x" * (own_offer.NAME_CHARACTERS + 1), *names, "one more"], "none": ["x"]})
    (tool,) = own_offer.offer([here], [macro])
    assert tool["function"]["parameters"] == fewer
    assert tool["function"]["names"] == {"name": names}
    ChatRequest.model_validate({"messages": [{"role": "user", "content": "x"}], "tools": [tool]})
    (tool,) = own_offer.offer([_kept(macro)], [macro])
    assert "names" not in tool["function"]


def test_of_what_grows_during_a_session_the_things_are_examples_and_no_bound() -> None:
    whole = {"type": "object", "properties": {"terminal": {"type": "string", "maxLength": 64, "examples": ["build"]}}}
    read = Function(name="read_terminal", description="Read.", parameters=whole)
    here = with_names(_kept(read), {"terminal": ("Work", "Claude")})
    assert here.parameters["properties"]["terminal"] == {"type": "string", "maxLength": 64, "examples": ["Work", "Claude"]}
    (tool,) = own_offer.offer([here], [read])
    assert tool["function"]["parameters"] == whole, "so that its prompt is that of every session"
    assert tool["function"]["names"] == {"terminal": ["Work", "Claude"]}


def test_a_function_that_the_catalogue_does_not_have_brings_its_own_utterances() -> None:
    (told,) = own_offer.offer([talking.START], [])
    function = told["function"]
    assert function["utterances"] == list(talking.START.utterances)
    assert function["reads"]

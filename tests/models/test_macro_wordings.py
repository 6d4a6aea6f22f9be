"""Macros as people ask for them: the functions that the router offers, and what the grammar lets the local model write, without weights."""

from __future__ import annotations

from typing import Any, Final

import pytest

from bench.choice import asking
from voxbridge.services.models.api import routers
from voxbridge.services.models.api.bodies import ChatRequest
from voxbridge.services.models.api.chat import Plan, plan
from voxbridge.services.models.choice.router import Router
from voxbridge.services.tools.registry import BUILT_IN, load

TOOLS: Final[list[Any]] = asking.offered([tool.card() for tool in load(BUILT_IN, timeout_s=30).values()])

SAID: Final = {
    "create_macro": """
        save what I just did as a macro called evening
        save that as a macro named tea time
        turn what we just did into a macro called breakfast
        keep this as a macro called workout
        make a macro of that and name it bedtime
        please save those steps as a routine called commute
        remember what I just did as a macro called night
        store that as a shortcut named focus
        I want to save this as a macro, call it sunset
        save that as a queued macro called coffee
    """,
    "run_macro": """
        run the evening macro
        start my evening routine
        please do the evening macro now
        do my bedtime routine
        play the macro tea time
        go ahead and start the workout macro
        launch my commute shortcut
        execute the macro breakfast
        what would the evening macro do
        start the macro called sunset
    """,
    "list_macros": """
        what macros do I have
        tell me my macros
        which routines did I make
        do I have any macros
        show my shortcuts
        what are the names of my macros
        read me my macros
        how many macros are there
        what have I saved as macros
        list the macros
    """,
    "change_macro": """
        rename the macro evening to night
        change the name of the evening macro to late
        give the macro tea time the name coffee time
        make the evening macro start when I say good night
        change the trigger of evening to lights out
        let the evening macro run in parallel
        make the evening macro queued
        the commute routine should be called way home
        if a step of the evening macro fails it should continue
        let the workout macro restart
    """,
    "delete_macro": """
        delete the macro evening
        remove the evening macro
        get rid of the bedtime routine
        erase the macro called tea time
        I do not want the breakfast macro any more
        throw the workout macro away
        please delete my commute shortcut
        forget the evening routine
        drop the macro evening
        the sunset macro can be removed
    """,
}


@pytest.fixture(scope="module")
def router() -> Router:
    offered = ChatRequest(messages=[{"role": "user", "content": "x"}], tools=TOOLS).offered()  # type: ignore[list-item]
    return Router([routers.known(tool) for tool in offered], routers.read_meanings())


def planned(said: str, router: Router) -> Plan:
    request = ChatRequest(messages=[{"role": "user", "content": said}], tools=TOOLS)  # type: ignore[list-item]
    return plan(request, 0.0, router)


@pytest.mark.parametrize(("name", "said"), [(name, line.strip()) for name, lines in SAID.items() for line in lines.strip().splitlines()])
def test_what_people_say_for_macros_is_a_call_that_can_be_the_right_one(name: str, said: str, router: Router) -> None:
    decision = router.decide(said)
    assert decision.mode != "words", decision
    assert name in (decision.among if decision.mode == "call" else decision.shortlist), decision


@pytest.mark.parametrize(
    ("said", "argument", "absent"),
    [
        ("save what I just did as a macro called evening", "char{1,64}", ("steps", "inputs", "policy")),
        ("save that as a queued macro called coffee", '\\"queued\\"', ("steps", "inputs", "parallel")),
        ("run the evening macro", "char{1,64}", ("inputs",)),
    ],
)
def test_the_model_writes_nothing_of_a_macro_that_it_would_make_up(
    said: str, argument: str, absent: tuple[str, ...], router: Router
) -> None:
    grammar = planned(said, router).sampling.grammar
    assert argument in grammar
    assert [word for word in absent if f'\\"{word}\\"' in grammar] == []

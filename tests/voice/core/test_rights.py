"""Rights of an agent: the list that its calls carry, as the executor takes it. An offer does not decide: a model may name any function."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final

import msgspec
import pytest

from tests.voice.conversation import Conversation
from tests.voice.core.test_page_options import SHOP, PageCall
from voxbridge.services.tools.core.inputs import Accepted, Rejected
from voxbridge.services.tools.core.outputs import Resolve
from voxbridge.services.tools.registry import load
from voxbridge.services.tools.session.lookup import look_up
from voxbridge.services.tools.session.standing import Standing
from voxbridge.services.voice.core import inputs, provider_events
from voxbridge.services.voice.core import outputs as out
from voxbridge.shared.agents.model import Agent, AgentTeam, ModelName
from voxbridge.shared.errors import Code
from voxbridge.shared.events import voice as ev

TOOLS: Final = load(("tests.tools.pack", "voxbridge.services.tools.packs.catalogue.functions"), timeout_s=30)
FUNCTIONS: Final = tuple(tool.card() for tool in TOOLS.values())
NAMES: Final = tuple(TOOLS)
LISTS: Final[dict[str, tuple[str, ...] | None]] = {
    "none": (),
    "one": ("echo",),
    "two": ("echo", "double"),
    "run_tool": ("echo", "run_tool"),
    "all": None,
}
MODELS: Final[dict[str, dict[str, Any]]] = {
    "cascade": {},
    "claude": {"llm": ModelName("anthropic", "claude-sonnet-5")},
    "gemini": {"realtime": ModelName("gemini", "gemini-3.8-live")},
    "openai": {"realtime": ModelName("openai", "gpt-realtime-2.1")},
}


def decided(called: ev.ToolCalled) -> Accepted | Rejected:
    """Return the executor's decision on a call."""
    wanted = Resolve(called.call_id, called.name, called.arguments, called.account, called.allowed, called.unattended)
    return look_up(TOOLS, wanted, Standing(), MappingProxyType({}))


def refused(called: ev.ToolCalled) -> bool:
    """Tell whether a call is refused for want of rights."""
    decision = decided(called)
    return isinstance(decision, Rejected) and decision.error.code == Code.PERMISSION_DENIED


def names(call: Conversation, name: str, **arguments: Any) -> ev.ToolCalled:
    """Have the agent's model name a function, whatever it was offered. Return the call."""
    call.speak("Do it.") if call.state.realtime is None else None
    if call.state.realtime is None:
        effect = call.last_effect(out.Complete)[0]
        call.take(inputs.ToolRequested(effect=effect, name=name, arguments=arguments))
    else:
        link = call.state.realtime.effect
        call.take(provider_events.ProviderReady(effect=link))
        call.take(provider_events.UserWords(effect=link, text="Do it."))
        call.take(provider_events.CallRequested(effect=link, ref="r1", name=name, arguments=arguments))
    call.pass_ms(1_000)
    return call.events(ev.ToolCalled)[-1]


def conversation(model: str, listed: tuple[str, ...] | None) -> Conversation:
    """Return a call of an agent with this model and this list."""
    team = AgentTeam(agents=(Agent(name="clerk", tools=listed, **MODELS[model]),))
    providers = ("local", "echo", "gemini", "openai", "anthropic")
    return Conversation(team=team, installed=FUNCTIONS, functions=(), providers=providers)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("listed", LISTS)
def test_nothing_runs_that_is_not_on_the_agents_list(model: str, listed: str) -> None:
    wanted = LISTS[listed]
    may = set(NAMES) if wanted is None or "run_tool" in wanted else set(wanted)
    for name in NAMES:
        assert refused(names(conversation(model, wanted), name)) is (name not in may), name


@pytest.mark.parametrize("model", MODELS)
def test_run_tool_leads_no_further_for_an_agent_that_does_not_have_it(model: str) -> None:
    assert refused(names(conversation(model, ("echo",)), "run_tool", tool_id="double", params={"number": 1}))
    assert not refused(names(conversation(model, ("run_tool",)), "run_tool", tool_id="double", params={"number": 1}))


def test_a_stranger_calls_what_the_key_names_and_nothing_else() -> None:
    assert names(PageCall(key=SHOP), "send_mail").allowed == ("get_weather",)
    key = msgspec.structs.replace(SHOP, functions=("current_time", "run_tool"))
    called = names(PageCall(key=key), "run_tool", tool_id="echo", params={"text": "x"})
    assert called.allowed is not None
    assert refused(called), "run_tool reaches only what the key names"

"""Who speaks in a session: the agents that were asked for by name, or the one that the session's options make. Pure."""

from __future__ import annotations

from typing import Final

import msgspec

from services.voice import capabilities, prompt
from services.voice.draft import Draft
from services.voice.inputs import Opened
from shared.agents import Agent, ModelName, Realtime, handoff_function
from shared.events.gateway import SessionRequested

CLAUDE: Final = "anthropic"


def of(request: SessionRequested, opened: Opened) -> tuple[Agent, ...]:
    """The session's agents, the first of which begins. The session's own options count before those of its file."""
    if opened.cast is None:
        return (_made(request, opened),)
    first, *others = opened.cast.agents
    wished = {
        name: value for name, value in (("voice", request.voice), ("output", request.output)) if value
    }  # a model of one provider is none of another's, so a wish for one counts only without an agent
    return (msgspec.structs.replace(first, **wished), *others)


def providers(agent: Agent) -> set[str]:
    """Whom an agent needs; `local` stands for the installation's own models."""
    if agent.realtime is not None:
        return {agent.realtime.provider}
    return {part.provider or "local" for part in (agent.stt, agent.llm, agent.tts)}


def enter(d: Draft, agent: Agent) -> None:
    """From now on this agent speaks."""
    state = d.state
    state.agent = agent
    state.output = agent.output
    state.model = model_of(agent, state.usual)
    state.voice = agent.voice
    allowed = state.catalogue if agent.tools is None else tuple(one for one in state.catalogue if one.name in agent.tools)
    handoff = handoff_function(agent, state.agents)
    state.functions = allowed if handoff is None else (*allowed, handoff)
    custom = state.request.system_prompt if state.request is not None else ""
    state.instructions = prompt.instructions(custom, agent)


def model_of(agent: Agent, usual: str) -> str:
    """The name of the model that an agent thinks with. `usual` is that of the installation's own language model."""
    if agent.realtime is not None:
        return agent.realtime.model or capabilities.DEFAULT_MODELS[agent.realtime.provider]
    if agent.llm.provider in ("", "local"):
        return agent.llm.model or usual
    return agent.llm.model or capabilities.TEXT_MODELS.get(agent.llm.provider, "")


def _made(request: SessionRequested, opened: Opened) -> Agent:
    realtime: dict[str, Realtime] = {"gemini": "gemini", "openai": "openai"}
    agent = Agent(name="", greeting=opened.greeting, voice=request.voice or opened.voice, output=request.output or "audio")
    provider = realtime.get(request.mode)
    if provider is not None:
        voice = agent.voice or capabilities.DEFAULT_VOICES[provider]
        model = ModelName(provider, request.model or capabilities.DEFAULT_MODELS[provider])
        return msgspec.structs.replace(agent, realtime=model, voice=voice, greeting="", search=provider == "gemini")
    if request.mode == "claude":
        llm = ModelName(CLAUDE, request.model or capabilities.TEXT_MODELS[CLAUDE])
        return msgspec.structs.replace(agent, llm=llm, output=request.output or "text")
    return msgspec.structs.replace(agent, llm=ModelName("", request.model or opened.model))

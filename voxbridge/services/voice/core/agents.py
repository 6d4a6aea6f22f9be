"""Agents of a session: those that were requested by name, or the one that the session's options define. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal

from msgspec.structs import replace

from voxbridge.services.voice.core import capabilities, inputs
from voxbridge.services.voice.core.inputs import Opened
from voxbridge.services.voice.core.prompt import prompt
from voxbridge.services.voice.core.state import State, Team
from voxbridge.services.voice.core.transition import Transition
from voxbridge.shared.agents import talking
from voxbridge.shared.agents.functions import Function, is_names, with_names
from voxbridge.shared.agents.model import HANDOFF, Agent, ModelName, Realtime, handoff_function
from voxbridge.shared.events.gateway import SessionRequested
from voxbridge.shared.macros.triggers import Spoken

CLAUDE: Final = "anthropic"
RUN_MACRO: Final = "run_macro"
MACRO_FUNCTIONS: Final = (RUN_MACRO, "change_macro", "delete_macro")
"""Functions whose `name` is that of a macro."""
TERMINAL: Final = "terminal"
"""Argument that names a terminal."""

VOCABULARY: Final = 32
"""Names and words that a recogniser is told of, unless its agent has more of its own."""

MACROS_TOLD: Final = 64
"""Names of macros that a model is told."""


def of(request: SessionRequested, opened: Opened) -> tuple[Agent, ...]:
    """Return the session's agents, the first of which begins. The session's options override those in that agent's file."""
    members = opened.team.agents if opened.team is not None else (_made(request, opened),)
    options = request.options
    if options.language:
        members = tuple(replace(agent, language=options.language) for agent in members)
    first, *others = members
    if options.greeting is not None:
        first = replace(first, greeting=options.greeting)
    if opened.team is not None:
        # A requested `model` counts only without a named agent: it may belong to another provider.
        first = replace(first, voice=request.voice or first.voice, output=request.output or first.output)
    members = (first, *others)
    if options.output:
        return answering_in(members, options.output, opened.rules)
    return tuple(answering_in((agent,), agent.output, opened.rules)[0] for agent in members)


def answering_in(agents: Iterable[Agent], output: Literal["audio", "text"], rules: int) -> tuple[Agent, ...]:
    """Return the agents as they answer by voice or in text: a model that speaks itself cannot write, so one of its provider does."""

    def answering(agent: Agent) -> Agent:
        if agent.realtime is None:
            return replace(agent, output=output)
        if rules < inputs.WRITES:
            return agent
        return replace(agent, output=output, llm=ModelName(agent.realtime.provider) if output == "text" else agent.llm)

    return tuple(answering(agent) for agent in agents)


def providers(agent: Agent) -> set[str]:
    """Return the providers that an agent needs; `local` stands for the installation's own models."""
    if agent.realtime is not None:
        return {agent.realtime.provider}
    return {part.provider or "local" for part in (agent.stt, agent.llm, agent.tts)}


def unknown_functions(agents: Sequence[Agent], functions: Sequence[Function]) -> list[tuple[str, list[str]]]:
    """Return the agents whose `tools` name unknown functions, with those names."""
    known = {function.name for function in functions}
    found = ((agent.name, [name for name in agent.tools or () if name not in known]) for agent in agents)
    return [(name, unknown) for name, unknown in found if unknown]


def enter(t: Transition, agent: Agent) -> None:
    """Make this the agent that speaks."""
    state = t.state
    state.team.agent = agent
    state.team.output = agent.output
    t.pending.steered = replace(t.pending.steered, mode="ai", auto=True)
    state.team.model = model_of(agent, state.team.usual)
    state.team.voice = agent.voice
    state.team.instructions, state.team.functions = _told(state, agent)


def answers_in(t: Transition, agent: Agent) -> None:
    """Go on with the same agent and the same model, which answers by voice or in text from here on."""
    t.team.agent, t.team.output = agent, agent.output
    t.team.functions = _told(t.state, agent)[1]


def know_macros(t: Transition, macros: tuple[Spoken, ...]) -> None:
    """Take the macros of the account as they are now. A connection to a realtime model keeps the names that it was opened with."""
    t.team.macros = macros
    if t.state.phase == "open":
        t.team.functions = _told(t.state, t.team.agent)[1]


def know_names(t: Transition, names: dict[str, dict[str, tuple[str, ...]]]) -> None:
    """Take the names of the things that there are now."""
    t.team.names = names
    if t.state.phase == "open":
        t.team.functions = _told(t.state, t.team.agent)[1]


def thinks_here(agent: Agent) -> bool:
    """Check whether an agent uses the installation's own language model."""
    return agent.realtime is None and agent.llm.provider in ("", "local")


def read_ahead(state: State) -> tuple[tuple[str, tuple[Function, ...]], ...]:
    """Return `(instructions, functions)` pairs that the installation's own language model may read before a handoff.

    They are those of the first agent that uses this model: as it is asked right after a handoff, and as it is asked later. Empty if
    the current agent uses the model already, or no agent does."""
    agent = None if thinks_here(state.team.agent) else next(filter(thinks_here, state.team.agents), None)
    if agent is None:
        return ()
    instructions, functions = _told(state, agent)
    arriving = tuple(function for function in functions if function.name != HANDOFF)
    return tuple((instructions, offered) for offered in ([functions] if arriving == functions else [arriving, functions]))


def _told(state: State, agent: Agent) -> tuple[str, tuple[Function, ...]]:
    """Return the instructions of an agent and the functions that it may call."""
    allowed = tuple(one for one in state.team.catalogue if (one.listed if agent.tools is None else one.name in agent.tools))
    if state.settings.rules >= inputs.WRITES:  # a small model would ask once more for what it has just been given
        there = talking.START if agent.output == "audio" else talking.END
        allowed = tuple(one for one in allowed if one.name != there.name)
    names = {"name": [macro.name for macro in state.team.macros[-MACROS_TOLD:]]}
    allowed = tuple(with_names(one, names) if one.name in MACRO_FUNCTIONS else one for one in allowed)
    if thinks_here(agent):  # it may name others as well; a vendor's model is held to an enum, and this session may make a new graph
        allowed = tuple(with_names(one, state.team.names.get(one.name, {})) for one in allowed)
    handoff = handoff_function(agent, state.team.agents)
    custom = state.request.system_prompt if state.request is not None else ""
    return prompt.instructions(custom, agent), allowed if handoff is None else (*allowed, handoff)


def vocabulary(team: Team) -> tuple[str, ...]:
    """Return the names and words that the agent's recogniser is told of: its own, and the terminals that there are, if it may name
    one in a call. These are told as people say them: of sixty spoken orders a recogniser that was told "in Build" heard the
    names in 59, and one that was told "Build" in 48."""
    agent = team.agent
    allowed = None if agent.tools is None else set(agent.tools)
    there = dict.fromkeys(
        f"in {name}"
        for function, named in team.names.items()
        if agent.vocabulary and (allowed is None or function in allowed)
        for name in named.get(TERMINAL, ())
    )
    return (*agent.vocabulary, *there)[: max(VOCABULARY, len(agent.vocabulary))]


def shared(state: State) -> bool:
    """Check that the session added nothing to the agent's instructions and functions: an endpoint may then keep its cache of them for
    other sessions. The names that a page gives to choose from are no part of the prompt."""
    request = state.request
    return request is None or (not request.system_prompt.strip() and all(map(is_names, request.functions)))


def model_of(agent: Agent, usual: str) -> str:
    """Return the name of the model that an agent uses; `usual` is that of the installation's own language model."""
    if agent.realtime is not None and agent.speaks_itself:
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
        return replace(agent, realtime=model, voice=voice, greeting="", search=provider == "gemini")
    if request.mode == "claude":
        llm = ModelName(CLAUDE, request.model or capabilities.TEXT_MODELS[CLAUDE])
        return replace(agent, llm=llm, output=request.output or "text")
    return replace(agent, llm=ModelName("", request.model or opened.model))

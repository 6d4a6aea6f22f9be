"""Agents and pipelines, for the services that run them and the pages that show them. Pure data.

People write them in `agents/*.yaml` (`voxbridge.shared.agents.reading` reads them, docs/agents.md explains them). A session takes the
agents it may need when it is opened and keeps them to its end, so a change of a file applies to new sessions.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from difflib import get_close_matches
from typing import Any, Final, Literal

import msgspec

from voxbridge.shared.agents.functions import Function
from voxbridge.shared.errors import Code, VoxbridgeError

HANDOFF: Final = "handoff_conversation"
"""Name of the function with which an agent hands the conversation over."""

REASON_LIMIT: Final = 500
SUMMARY_LIMIT: Final = 2_000

Realtime = Literal["gemini", "openai"]
Output = Literal["audio", "text"]


class ModelName(msgspec.Struct, frozen=True):
    """A model and its provider. Empty strings stand for the installation's defaults."""

    provider: str = ""
    model: str = ""


class Agent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An agent, resolved from its file, or from the session's options when there is no file.

    Either `realtime` names the speech-to-speech model that hears and speaks, or the cascade does with `stt`, `llm` and `tts`. In text a
    language model of the same provider, `llm`, writes in place of the former.
    """

    name: str
    role: str = ""
    description: str = ""
    scope: str = ""
    prompt: str = ""
    greeting: str = ""
    """Said when a session begins with this agent; empty: nothing. Never repeated in the same session."""

    arrival: str = ""
    """Instruction for the agent's first action when it is handed a conversation; empty: it goes on with what was asked."""

    voice: str = ""
    language: str = ""
    vocabulary: tuple[str, ...] = ()
    """Names and words that are likely to be said to it, for the recogniser."""

    tools: tuple[str, ...] | None = None
    """Names of the functions that it may call; None stands for all that the catalogue lists for models."""

    starts: tuple[str, ...] = ()
    """Names of functions that are called, without arguments, when it takes the conversation: tasks that go on beside it."""

    handoffs: tuple[str, ...] = ()
    """Agents it may hand over to, by name."""

    realtime: ModelName | None = None
    stt: ModelName = ModelName()
    llm: ModelName = ModelName()
    tts: ModelName = ModelName()
    output: Output = "audio"
    manual_activity: bool = False
    search: bool = False
    """Grounding by the provider's own web search, where the model has it."""

    filler: bool | None = None
    """True if a few words cover the wait for its answer; None: as the installation says."""

    record: bool | None = None
    """True if its sessions are recorded; None: as the installation says."""

    expert: bool = False
    """True if other agents may ask it questions; it answers from `knowledge`, with the names of its sources."""

    knowledge: tuple[str, ...] = ()
    """Names of the account's knowledge graphs that an expert answers from."""

    @property
    def speaks_itself(self) -> bool:
        """True while a speech-to-speech model hears and speaks; it cannot write."""
        return self.realtime is not None and self.output == "audio"


class Stage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A phase of a pipeline: its agent, and the phases that may follow."""

    phase: str
    agent: str
    next: tuple[str, ...] = ()


class Pipeline(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Agents in order. The first stage begins; from a stage the conversation may go to the next ones, and, with `hand_back`, back to the
    stage that it came from."""

    name: str
    description: str = ""
    stages: tuple[Stage, ...] = ()
    hand_back: bool = True


class AgentTeam(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The agents that may take part in a session, the first of which begins, and the name of their pipeline, if any."""

    agents: tuple[Agent, ...]
    pipeline: str = ""

    def find(self, name: str) -> Agent | None:
        """Return the agent of this name."""
        return next((agent for agent in self.agents if agent.name == name), None)


class Roster(msgspec.Struct, frozen=True, kw_only=True):
    """The agents and the pipelines of a folder, in the order of their files' names. All names are distinct."""

    agents: tuple[Agent, ...] = ()
    pipelines: tuple[Pipeline, ...] = ()

    def team(self, name: str) -> AgentTeam:
        """Return the agents of a session with the agent or the pipeline of this name; raises `NOT_FOUND`.

        For an agent: itself and all agents that can be reached over handoffs. For a pipeline: the agents of its stages; they hand over as
        its stages say, whatever their own files say.
        """
        agents = {agent.name: agent for agent in self.agents}
        pipeline = next((one for one in self.pipelines if one.name == name), None)
        if pipeline is not None:
            ways = _ways(pipeline)
            members = tuple(msgspec.structs.replace(agents[member], handoffs=tuple(targets)) for member, targets in ways.items())
            return AgentTeam(agents=members, pipeline=name)
        if name not in agents:
            known = [*agents, *(one.name for one in self.pipelines)]
            raise VoxbridgeError(
                Code.NOT_FOUND, f"There is no agent and no pipeline with the name {name[:64]!r}.{nearest(name, known)}", field="agent"
            )
        reached = [name]
        for member in reached:
            reached += [target for target in agents[member].handoffs if target not in reached]
        return AgentTeam(agents=tuple(agents[member] for member in reached))


def identity(agent: Agent) -> str:
    """Return the block that tells an agent its identity, the same for every kind of model; empty for an agent without one."""
    known = (("Role", agent.role), ("Description", agent.description), ("Scope", agent.scope))
    lines = [f"{label}: {value}" for label, value in known if value]
    return "\n".join(["--- Agent Identity ---", *lines]) if lines else ""


def instructions(agent: Agent) -> str:
    """Return the instructions for the model of an agent: its prompt, then its identity. Empty for an agent that has neither."""
    return "\n\n".join(part for part in (agent.prompt.strip(), identity(agent)) if part)


def handoff_function(agent: Agent, others: Sequence[Agent]) -> Function | None:
    """Return the function with which `agent` hands over to those of `others` that it may; None when there are none."""
    targets = [other for other in others if other.name in agent.handoffs and other.name != agent.name]
    if not targets:
        return None
    known = "\n".join(f"- {other.name}: {other.description or other.role or 'no description'}" for other in targets)
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {
            "target": {"type": "string", "enum": [other.name for other in targets], "description": "Who is to go on."},
            "reason": {"type": "string", "description": "Why, in a few words."},
            "summary": {"type": "string", "description": "What the other one has to know: what was asked, what was found, what is open."},
        },
        "required": ["target", "reason"],
        "additionalProperties": False,
    }
    description = f"Hand the conversation over to another agent, at once and without announcing it. You may hand over to:\n{known}"
    return Function(name=HANDOFF, description=description, parameters=parameters)


def nearest(word: str, known: Collection[str]) -> str:
    """Return ` Did you mean …?` with the known word that is closest to this one; empty when none is close."""
    found = get_close_matches(word[:64], list(known), n=1)
    return f" Did you mean {found[0]}?" if found else ""


def _ways(pipeline: Pipeline) -> dict[str, dict[str, None]]:
    """Return each agent of a pipeline, beginning with the first, with the agents that it may hand over to: forward, then back."""
    at = {stage.phase: stage.agent for stage in pipeline.stages}
    steps = [(stage.agent, at[phase]) for stage in pipeline.stages for phase in stage.next]
    back = [(after, before) for before, after in steps] if pipeline.hand_back else []
    ways: dict[str, dict[str, None]] = {stage.agent: {} for stage in pipeline.stages}
    for before, after in [*steps, *back]:
        if before != after:
            ways[before][after] = None
    return ways

"""`voxbridge agents`: the agents and pipelines of a folder, the instructions of an agent's model, and the problems of the files.

Owns the words and the look of these commands. Does not own what an agent is (`voxbridge.shared.agents.model`) nor what a valid file is
(`voxbridge.shared.agents.reading`). Exit status 1 means that a file is wrong or that there is no such agent.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NoReturn

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from voxbridge.shared.agents.model import Agent, AgentTeam, ModelName, Pipeline, Roster, handoff_function, instructions
from voxbridge.shared.agents.reading import AgentsRefused, load
from voxbridge.shared.config import Config
from voxbridge.shared.errors import VoxbridgeError

_FOLDER = click.option(
    "--folder", type=click.Path(path_type=Path, file_okay=False), help="Folder of the files; default: VOXBRIDGE_AGENTS_DIR."
)


@click.group()
def agents() -> None:
    """The agents and pipelines of this installation: list, look at one, check the files.

    \b
    Examples:
      voxbridge agents ls                     who there is, and on which models
      voxbridge agents show triage            what the model of an agent is told
      voxbridge agents show advice            a pipeline: its stages, and what each agent is told in it
      voxbridge agents check                  every mistake in the files, with file and line
      voxbridge agents check ./my-agents      the same for another folder

    An agent is a file in VOXBRIDGE_AGENTS_DIR, a pipeline one in its folder `pipelines`; docs/agents.md explains both.
    """


@agents.command("ls")
@_FOLDER
def list_agents(folder: Path | None) -> None:
    """List the agents and the pipelines."""
    place = _folder(folder)
    roster = _loaded(place)
    console = Console(highlight=False)
    if not roster.agents:
        console.print(f"There are no agents in {place}. docs/agents.md shows how to write the first.", soft_wrap=True, markup=False)
        return
    table = Table("agent", "models", "voice", "hands over to", "what for", title=Text(str(place)))
    for agent in roster.agents:
        table.add_row(*map(Text, (agent.name, _models(agent), agent.voice, ", ".join(agent.handoffs), agent.description or agent.role)))
    console.print(table)
    if not roster.pipelines:
        console.print("There are no pipelines.")
        return
    table = Table("pipeline", "stages", "hands back", "what for")
    for one in roster.pipelines:
        stages = ", ".join(stage.phase if stage.phase == stage.agent else f"{stage.phase} ({stage.agent})" for stage in one.stages)
        table.add_row(*map(Text, (one.name, stages, "yes" if one.hand_back else "no", one.description)))
    console.print(table)


@agents.command()
@click.argument("name")
@_FOLDER
def show(name: str, folder: Path | None) -> None:
    """Show an agent as its model gets it, or a pipeline with all of its agents.

    \b
    Examples:
      voxbridge agents show assistant
      voxbridge agents show local-team

    In a pipeline an agent hands over as the stages say; alone, as its own file says.
    """
    roster = _loaded(_folder(folder))
    try:
        team = roster.team(name)
    except VoxbridgeError as error:
        _say(error)
    console = Console(highlight=False)
    if not team.pipeline:
        _show_agent(console, team.agents[0], team)
        return
    _show_pipeline(console, next(one for one in roster.pipelines if one.name == name))
    for agent in team.agents:
        console.print()
        _show_agent(console, agent, team)


@agents.command()
@click.argument("folder", required=False, type=click.Path(path_type=Path, exists=True, file_okay=False))
def check(folder: Path | None) -> None:
    """Check the files, and print each mistake with its file and line.

    \b
    Examples:
      voxbridge agents check                  the files in VOXBRIDGE_AGENTS_DIR
      voxbridge agents check ./my-agents      those in another folder

    Exit code 0: all is right; 1: there are mistakes.
    """
    place = _folder(folder)
    try:
        roster = load(place)
    except AgentsRefused as refused:
        for problem in refused.problems:
            click.echo(problem)
        click.echo("New sessions keep the agents of the last good files until this is mended.", err=True)
        sys.exit(1)
    if roster.agents:
        click.echo(f"{place}: {_counted(len(roster.agents), 'agent')} and {_counted(len(roster.pipelines), 'pipeline')}, all right.")
    else:
        click.echo(f"{place}: no agents.")


def _folder(given: Path | None) -> Path:
    return given or Config.from_env().agents_dir


def _loaded(folder: Path) -> Roster:
    try:
        return load(folder)
    except AgentsRefused as refused:
        _say(refused)


def _say(error: VoxbridgeError) -> NoReturn:
    Console(stderr=True).print(error.message, style="red", highlight=False, soft_wrap=True, markup=False)
    sys.exit(1)


def _show_pipeline(console: Console, pipeline: Pipeline) -> None:
    console.print(Text(pipeline.name, "bold"), Text(pipeline.description, "dim"), soft_wrap=True)
    table = Table("phase", "agent", "goes on to", box=None, pad_edge=False)
    for stage in pipeline.stages:
        table.add_row(*map(Text, (stage.phase, stage.agent, ", ".join(stage.next) or "the end")))
    console.print(table)
    console.print("An agent may hand back to whoever came before it." if pipeline.hand_back else "Nobody hands back.", style="dim")


def _show_agent(console: Console, agent: Agent, team: AgentTeam) -> None:
    said = {"models": _models(agent), "voice": agent.voice, "language": agent.language, "output": agent.output}
    said |= {"greeting": agent.greeting, "arrival": agent.arrival}
    said["functions"] = "all" if agent.tools is None else ", ".join(agent.tools) or "none"
    said["recorded"] = {True: "yes", False: "no", None: "as the installation says"}[agent.record]
    switches = {"own activity detector": agent.manual_activity, "web search": agent.search}
    said["also"] = ", ".join(name for name, on in switches.items() if on)
    console.print(Text(agent.name, "bold"))
    for label, value in said.items():
        if value:
            console.print(Text.assemble((f"{label:<10}", "dim"), value), soft_wrap=True)
    _block(console, "What the model is told", instructions(agent) or "Only what every agent is told.")
    function = handoff_function(agent, team.agents)
    if function is not None:
        targets = ", ".join(function.parameters["properties"]["target"]["enum"])
        _block(console, f"{function.name}(target: {targets})", function.description)


def _block(console: Console, title: str, text: str) -> None:
    console.print(Text(f"\n{title}", "cyan"), soft_wrap=True)
    for line in text.splitlines():
        console.print(Text(f"  {line}"), soft_wrap=True)


def _models(agent: Agent) -> str:
    if agent.realtime is not None:
        return _model(agent.realtime)
    parts = {"stt": agent.stt, "llm": agent.llm, "tts": agent.tts}
    named = {part: _model(model) for part, model in parts.items()}
    return named["llm"] if len(set(named.values())) == 1 else ", ".join(f"{part} {model}" for part, model in named.items())


def _model(name: ModelName) -> str:
    provider = name.provider or "local"
    return f"{provider}:{name.model}" if name.model else provider


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"

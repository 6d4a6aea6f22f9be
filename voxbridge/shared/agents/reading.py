"""Reading of agents and pipelines: `agents/*.yaml` and `agents/pipelines/*.yaml`, and a report on all that is wrong in them.

Owns the fields of the files and their limits. Does not own what an agent is (`voxbridge.shared.agents.model`), nor whether the functions
and endpoints that a file names exist: they may be added later.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import Final, cast, get_args

import yaml

from voxbridge.shared.agents.model import Agent, ModelName, Output, Pipeline, Realtime, Roster, Stage, nearest
from voxbridge.shared.agents.providers import PROVIDERS
from voxbridge.shared.agents.yaml_file import NAME, Form, Problem, Value, YamlFile, kind_of, shown
from voxbridge.shared.errors import Code, VoxbridgeError

AGENTS_LIMIT: Final = 64
PIPELINES_LIMIT: Final = 64
STAGES_LIMIT: Final = 32
TOOLS_LIMIT: Final = 64
STARTS_LIMIT: Final = 4
VOCABULARY_LIMIT: Final = 32
GRAPHS_LIMIT: Final = 10
PROBLEMS_LIMIT: Final = 100
PROMPT_LIMIT: Final = 16_384
TEXT_LIMITS: Final = {"role": 200, "description": 500, "scope": 500, "greeting": 500, "arrival": 1_000, "voice": 64}
"""Characters of a field."""

_ROLES: Final = ("model", "stt", "llm", "tts")
_FLAGS: Final = ("manual_activity", "search", "filler", "record", "expert")
_OTHERS: Final = ("prompt", "language", "vocabulary", "tools", "starts", "handoffs", "output", "knowledge")
AGENT_FIELDS: Final = ("name", *TEXT_LIMITS, *_ROLES, *_OTHERS, *_FLAGS)
PIPELINE_FIELDS: Final = ("name", "description", "hand_back", "stages")
STAGE_FIELDS: Final = ("phase", "agent", "next")

_FUNCTION: Final[Form] = (
    re.compile(r"[a-z][a-z0-9_]{0,63}"),
    "the name of a function: lower-case letters, digits and underscores, at most 64",
)
_WORD: Final[Form] = (re.compile(r"[^\s,\x00-\x1f][^,\x00-\x1f]{0,63}"), "a name or a few words, at most 64 characters, without commas")
_GRAPH: Final[Form] = (re.compile(r"[^\s\x00-\x1f][^\x00-\x1f]{0,59}"), "the name of a knowledge graph, at most 60 characters")
_OUTPUT: Final = {False: (re.compile("audio|text"), "audio or text"), True: (re.compile("audio"), "audio beside `model`, which speaks")}
_LANGUAGE: Final[Form] = (re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}"), "a language code such as en or pt-BR")
_MODEL: Final = re.compile(r"(?P<provider>[a-z][a-z0-9-]{0,31})(:(?P<model>[A-Za-z0-9][A-Za-z0-9._:/@-]{0,127}))?")
_BUILT_IN: Final = {
    "llm": ("gemini", "anthropic", "openai"),
    "stt": ("openai", "assemblyai"),
    "tts": ("openai", "elevenlabs"),
}
"""Built-in providers of each part of a cascade."""

_EXPECTED: Final = {
    "model": "gemini, gemini:MODEL, openai or openai:MODEL; leave it out for an agent with `stt`, `llm` and `tts`",
    "llm": "local, openai, anthropic, gemini or the name of an endpoint, with :MODEL where you want a certain one",
    "stt": "local, openai, assemblyai or the name of an endpoint, with :MODEL where you want a certain one",
    "tts": "local, openai, elevenlabs or the name of an endpoint, with :MODEL where you want a certain one",
}


class AgentsRefused(VoxbridgeError):
    """Error of a folder that cannot be used; its message is the problems, one on a line."""

    def __init__(self, problems: Collection[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__(Code.INVALID_ARGUMENT, "\n".join(map(str, self.problems)), field=self.problems[0].field or None)


def load(folder: Path) -> Roster:
    """Read a folder; a missing one holds no agents. Raises `AgentsRefused` with all problems."""
    return _Reading(folder).roster()


def entries(folder: Path, limit: int) -> list[Path]:
    """Return the first files of a folder that are, or were meant to be, read: at most one more than `limit`. Raises `OSError`."""
    found = (path for path in folder.iterdir() if path.suffix in (".yaml", ".yml") and not path.name.startswith("."))
    return sorted(found)[: limit + 1]


class _Reading:
    """A single reading of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._problems: list[Problem] = []
        self._mentioned: list[tuple[YamlFile, Value, str]] = []

    def roster(self) -> Roster:
        agent_files = self._files(self._folder, "agents", AGENTS_LIMIT, AGENT_FIELDS, "an agent")
        pipeline_files = self._files(self._folder / "pipelines", "pipelines", PIPELINES_LIMIT, PIPELINE_FIELDS, "a pipeline")
        agents = tuple(self._agent(file) for file in agent_files)
        pipelines = tuple(self._pipeline(file) for file in pipeline_files)
        self._check_names([*agent_files, *pipeline_files])
        self._check_mentions({file.name for file in agent_files}, {file.name for file in pipeline_files})
        if self._problems:
            ordered = sorted(self._problems, key=lambda problem: (problem.path, problem.line))
            left = len(ordered) - PROBLEMS_LIMIT
            more = [Problem(str(self._folder), 0, "", f"There are {left} more problems.")] if left > 0 else []
            raise AgentsRefused([*ordered[:PROBLEMS_LIMIT], *more])
        return Roster(agents=agents, pipelines=pipelines)

    def _files(self, folder: Path, plural: str, limit: int, known: Collection[str], what: str) -> list[YamlFile]:
        try:
            paths = entries(folder, limit)
        except FileNotFoundError:
            return []
        except OSError as error:
            self._problems.append(Problem(str(folder), 0, "", f"The folder cannot be read: {error.strerror}."))
            return []
        if len(paths) > limit:
            self._problems.append(Problem(str(folder), 0, "", f"There are more than {limit} {plural}, which is the most that are read."))
        files = [YamlFile(path, self._problems) for path in paths[:limit]]
        for file in files:
            file.read(what, known)
        return files

    def _agent(self, file: YamlFile) -> Agent:
        fields = file.fields
        given = {name for name, value in fields.items() if kind_of(value.node) != "nothing"}
        texts = {name: file.text(fields, name, limit=limit) for name, limit in TEXT_LIMITS.items()}
        handoffs = file.names(fields, "handoffs", AGENTS_LIMIT, "agents", NAME)
        self._mentioned += [(file, value, name) for name, value in handoffs.items()]
        if file.name in handoffs:
            file.wrong(handoffs[file.name], "names the agent itself.")
        tools = tuple(file.names(fields, "tools", TOOLS_LIMIT, "functions", _FUNCTION))
        starts = file.names(fields, "starts", STARTS_LIMIT, "functions", _FUNCTION)
        for name in starts:
            if "tools" in given and name not in tools:
                file.wrong(starts[name], f"names {name}, which is not among its `tools`. Add it there.")
        vocabulary = tuple(file.names(fields, "vocabulary", VOCABULARY_LIMIT, "words", _WORD))
        if vocabulary and "model" in given:
            file.wrong(fields["vocabulary"], "does not go with `model`, which hears itself: it is for the recogniser of `stt`.")
        graphs = tuple(file.names(fields, "knowledge", GRAPHS_LIMIT, "knowledge graphs", _GRAPH))
        expert = file.flag(fields, "expert") or False
        if graphs and not expert:
            file.wrong(fields["knowledge"], "goes with `expert: true`: only an expert answers from graphs of its own.")
        if expert and "model" in given:
            file.wrong(fields["expert"], "does not go with `model`, which only speaks: an expert answers in text.")
        models = {role: _model(file, role) for role in _ROLES}
        for role in _ROLES[1:]:
            if {"model", role} <= given:
                file.wrong(fields[role], "does not go with `model`: that model hears and speaks itself. Leave one of them out.")
        output = file.text(fields, "output", form=_OUTPUT["model" in given])
        return Agent(
            name=file.name,
            role=texts["role"],
            description=texts["description"],
            scope=texts["scope"],
            prompt=file.text(fields, "prompt", limit=PROMPT_LIMIT, lines=True),
            greeting=texts["greeting"],
            arrival=texts["arrival"],
            voice=texts["voice"],
            language=file.text(fields, "language", form=_LANGUAGE),
            vocabulary=vocabulary,
            tools=tools if "tools" in given else None,
            starts=tuple(starts),
            handoffs=tuple(handoffs),
            realtime=models["model"],
            stt=models["stt"] or ModelName(),
            llm=models["llm"] or ModelName(),
            tts=models["tts"] or ModelName(),
            output=cast("Output", output or "audio"),
            manual_activity=file.flag(fields, "manual_activity") or False,
            search=file.flag(fields, "search") or False,
            filler=file.flag(fields, "filler"),
            record=file.flag(fields, "record"),
            expert=expert,
            knowledge=graphs,
        )

    def _pipeline(self, file: YamlFile) -> Pipeline:
        stages: dict[str, Stage] = {}
        lines: dict[str, Value] = {}
        following: list[tuple[Value, str]] = []
        listed = file.items(file.fields, "stages", STAGES_LIMIT, "stages")
        for value in listed:
            fields = file.mapping(value, "a stage", STAGE_FIELDS)
            for needed in ("phase", "agent"):
                if isinstance(value.node, yaml.MappingNode) and needed not in fields:
                    file.wrong(value, f"needs `{needed}`.")
            phase = file.text(fields, "phase", form=NAME, needed=True)
            agent = file.text(fields, "agent", form=NAME, needed=True)
            after = self._next(file, fields)
            following += [(after[name], name) for name in after]
            if agent:
                self._mentioned.append((file, fields["agent"], agent))
            if phase in stages:
                file.wrong(fields["phase"], f"names the phase {phase} a second time; it is in line {lines[phase].line} already.")
            elif phase:
                stages[phase], lines[phase] = Stage(phase=phase, agent=agent, next=tuple(after)), fields["phase"]
        if file.fields and "stages" not in file.fields:
            file.wrong(1, "A pipeline needs `stages`.")
        elif file.fields and not listed and kind_of(file.fields["stages"].node) in ("nothing", "a list"):
            file.wrong(file.fields["stages"], "must be a list of stages, at least one.")
        for value, name in following:
            if name not in stages:
                file.wrong(value, f"names the phase {shown(name)}, which no stage has.{nearest(name, stages)}")
        for name in stages.keys() - _reached(stages):
            file.wrong(lines[name], f"is never reached: put {name} into the `next` of an earlier stage.")
        return Pipeline(
            name=file.name,
            description=file.text(file.fields, "description", limit=TEXT_LIMITS["description"]),
            stages=tuple(stages.values()),
            hand_back=file.flag(file.fields, "hand_back") is not False,
        )

    def _next(self, file: YamlFile, fields: dict[str, Value]) -> dict[str, Value]:
        value = fields.get("next")
        if value is None or not isinstance(value.node, yaml.ScalarNode):
            return file.names(fields, "next", STAGES_LIMIT, "phases", NAME)
        name = file.text(fields, "next", form=NAME)
        return {name: value} if name else {}

    def _check_names(self, files: list[YamlFile]) -> None:
        first: dict[str, YamlFile] = {}
        for file in files:
            other = first.setdefault(file.name, file)
            if other is not file:
                file.wrong(file.fields.get("name", Value("name", 1, None)), f"is {file.name}, which is the name of {other.path} already.")

    def _check_mentions(self, agents: set[str], pipelines: set[str]) -> None:
        for file, value, name in self._mentioned:
            if name not in agents:
                why = "which is a pipeline" if name in pipelines else "and there is no agent of that name"
                file.wrong(value, f"names {name}, {why}.{nearest(name, agents)}")


def _model(file: YamlFile, role: str) -> ModelName | None:
    value = file.fields.get(role)
    text = file.text(file.fields, role, form=(_MODEL, _EXPECTED[role]))
    found = _MODEL.fullmatch(text)
    if value is None or found is None:
        return None
    provider = found["provider"]
    if provider not in get_args(Realtime) if role == "model" else provider in PROVIDERS and provider not in _BUILT_IN[role]:
        file.wrong(value, f"must be {_EXPECTED[role]}; it is {shown(text)}.")
        return None
    return ModelName(provider, found["model"] or "")


def _reached(stages: dict[str, Stage]) -> set[str]:
    waiting = list(stages)[:1]
    for phase in waiting:
        waiting += [name for name in stages[phase].next if name in stages and name not in waiting]
    return set(waiting)

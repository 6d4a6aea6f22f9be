"""Agents and pipelines as people write them: `agents/*.yaml` and `agents/pipelines/*.yaml`, read, checked, and read again on a change.

Owns the form of the files and the report on a wrong one: file, line, field, and what was expected, for all files at once. Does not own what
an agent is (`voxbridge.shared.agents.model`), nor whether the functions and endpoints that a file names exist: they may be added later. A
crash loses nothing, since everything is in the files.
"""

from __future__ import annotations

import errno
import logging
import re
import stat
import time
import unicodedata
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, Final, NamedTuple, cast, get_args

import msgspec
import yaml

from voxbridge.shared.agents.model import Agent, ModelName, Output, Pipeline, Realtime, Roster, Stage, nearest
from voxbridge.shared.errors import Code, VoxbridgeError

AGENTS_LIMIT: Final = 64
PIPELINES_LIMIT: Final = 64
STAGES_LIMIT: Final = 32
TOOLS_LIMIT: Final = 64
FILE_LIMIT: Final = 64 * 1024
"""Bytes of one file."""

VALUES_LIMIT: Final = 2_000
"""Scalars, lists and mappings of one file: above what the largest pipeline needs."""

PROBLEMS_LIMIT: Final = 100
PROMPT_LIMIT: Final = 16_384
TEXT_LIMITS: Final = {"role": 200, "description": 500, "scope": 500, "greeting": 500, "arrival": 1_000, "voice": 64}
"""Characters of a field."""

SCAN_EVERY_S: Final = 1.0

_DEPTH: Final = 8
_SHOWN: Final = 40
_ROLES: Final = ("model", "stt", "llm", "tts")
_OTHERS: Final = ("prompt", "language", "tools", "handoffs", "output", "manual_activity", "search", "filler", "record")
AGENT_FIELDS: Final = ("name", *TEXT_LIMITS, *_ROLES, *_OTHERS)
PIPELINE_FIELDS: Final = ("name", "description", "hand_back", "stages")
STAGE_FIELDS: Final = ("phase", "agent", "next")

_NAME: Final = (
    re.compile(r"[a-z][a-z0-9-]{0,63}"),
    "a name: lower-case letters, digits and hyphens, a letter first, at most 64 characters",
)
_FUNCTION: Final = (re.compile(r"[a-z][a-z0-9_]{0,63}"), "the name of a function: lower-case letters, digits and underscores, at most 64")
_OUTPUT: Final = {False: (re.compile("audio|text"), "audio or text"), True: (re.compile("audio"), "audio beside `model`, which speaks")}
_LANGUAGE: Final = (re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}"), "a language code such as en or pt-BR")
_MODEL: Final = re.compile(r"(?P<provider>[a-z][a-z0-9-]{0,31})(:(?P<model>[A-Za-z0-9][A-Za-z0-9._:/@-]{0,127}))?")
_EXPECTED: Final = {
    "model": "gemini, gemini:MODEL, openai or openai:MODEL; leave it out for an agent with `stt`, `llm` and `tts`",
    "llm": "local, openai, anthropic, gemini or the name of an endpoint, with :MODEL where you want a certain one",
    "stt": "local, openai or the name of an endpoint, with :MODEL where you want a certain one",
    "tts": "local, openai or the name of an endpoint, with :MODEL where you want a certain one",
}
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_log = logging.getLogger(__name__)


class Problem(msgspec.Struct, frozen=True):
    """A problem in a file. `line` counts from 1; 0 when the problem has no line."""

    path: str
    line: int
    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}" if self.line else f"{self.path}: {self.message}"


class AgentsRefused(VoxbridgeError):
    """Error of a folder that cannot be used; its message is the problems, one on a line."""

    def __init__(self, problems: Collection[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__(Code.INVALID_ARGUMENT, "\n".join(map(str, self.problems)), field=self.problems[0].field or None)


def load(folder: Path) -> Roster:
    """Read a folder; a missing one holds no agents. Raises `AgentsRefused` with all problems."""
    return _Reading(folder).roster()


class Agents:
    """Roster of a folder for new sessions, read again when a file was added, removed or changed. Reading blocks for some ms.

    While the files are wrong, or the folder is gone, the last good roster stays; `problems` says what is wrong."""

    def __init__(self, folder: Path, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._folder = folder
        self._monotonic = monotonic
        self._looked: float | None = None
        self._mark: tuple[object, ...] | None = None
        self._roster = Roster()
        self.problems: tuple[Problem, ...] = ()

    def current(self) -> Roster:
        """Return the roster as the files are now, or were less than `SCAN_EVERY_S` ago."""
        now = self._monotonic()
        if self._looked is None or now - self._looked >= SCAN_EVERY_S:
            self._looked = now
            mark = _mark(self._folder)
            if mark != self._mark:
                self._read(mark)
        return self._roster

    def _read(self, mark: tuple[object, ...]) -> None:
        self._mark = mark
        if self._roster.agents and (str(self._folder), errno.ENOENT) in mark:
            self.problems = (Problem(str(self._folder), 0, "", "The folder is gone."),)
        else:
            try:
                self._roster, self.problems = load(self._folder), ()
            except AgentsRefused as refused:
                self.problems = refused.problems
        if self.problems:
            _log.error("The agents stay as they were: %s", "; ".join(map(str, self.problems)))
        else:
            _log.info("%s: %d agents, %d pipelines", self._folder, len(self._roster.agents), len(self._roster.pipelines))


class _Value(NamedTuple):
    """A value in a file, and the line of its key."""

    field: str
    line: int
    node: Any


class _File:
    """A file of agents or pipelines: its fields, typed, and its problems. A wrong value is reported and treated as missing."""

    def __init__(self, path: Path, problems: list[Problem]) -> None:
        self.path = path
        self._problems = problems
        self.name = path.stem
        self.fields: dict[str, _Value] = {}

    def wrong(self, value: _Value | int, message: str) -> None:
        field, line = ("", value) if isinstance(value, int) else (value.field, value.line)
        self._problems.append(Problem(str(self.path), line, field, f"`{field}` {message}" if field else message))

    def read(self, what: str, known: Collection[str]) -> None:
        """Fill `fields` and `name`."""
        node = self._compose()
        if node is None:
            return
        self.fields = self.mapping(_Value("", node.start_mark.line + 1, node), what, known)
        if not self.fields:
            return
        named = self.text(self.fields, "name", form=_NAME)
        if "name" not in self.fields and not _NAME[0].fullmatch(self.name):
            self.wrong(1, f"The file's name must be {_NAME[1]}, or the file needs a `name`.")
        self.name = named or self.name

    def _compose(self) -> Any:
        if self.path.suffix != ".yaml":
            self.wrong(0, "Only files that end in .yaml are read; give it that ending, or move it away.")
            return None
        try:
            if not stat.S_ISREG(self.path.stat().st_mode):
                self.wrong(0, "This is not a file.")
                return None
            with self.path.open("rb") as file:
                data = file.read(FILE_LIMIT + 1)
        except OSError as error:
            self.wrong(0, f"The file cannot be read: {error.strerror}.")
            return None
        if len(data) > FILE_LIMIT:
            self.wrong(0, f"The file has more than {FILE_LIMIT:,} bytes, which is the most that is read.")
            return None
        node = None
        try:
            self._plain(text := data.decode("utf-8-sig"))
            node = yaml.compose(text, Loader=_LOADER)
            if node is None or not node.value:
                self.wrong(1, "The file is empty.")
        except UnicodeDecodeError as error:
            self.wrong(data.count(b"\n", 0, error.start) + 1, "The file must be text in UTF-8.")
        except _NotPlain as error:
            self.wrong(error.line, str(error))
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            self.wrong(mark.line + 1 if mark else 0, f"This is not YAML: {getattr(error, 'problem', None) or error}.")
        return node if node is not None and node.value else None

    def _plain(self, text: str) -> None:
        """Refuse YAML that could cost or mean more than it seems to, before anything is built from it."""
        found = yaml.SafeLoader.NON_PRINTABLE.search(text)
        if found:
            raise _NotPlain(text.count("\n", 0, found.start()) + 1, "The file holds a control character.")
        depth = values = 0
        for event in yaml.parse(text, Loader=_LOADER):
            line = event.start_mark.line + 1
            if getattr(event, "anchor", None) is not None:
                raise _NotPlain(line, "Anchors (&) and aliases (*) are not read; write the value out, or put it in quotes.")
            if getattr(event, "tag", None) is not None:
                raise _NotPlain(line, "Tags (!) are not read; put the value in quotes if it begins with one.")
            depth += isinstance(event, yaml.CollectionStartEvent)
            values += isinstance(event, yaml.NodeEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEPTH:
                raise _NotPlain(line, f"Values may be nested {_DEPTH} deep.")
            if values > VALUES_LIMIT:
                raise _NotPlain(line, f"The file holds more than {VALUES_LIMIT:,} values, which is the most that is read.")

    def mapping(self, value: _Value, what: str, known: Collection[str]) -> dict[str, _Value]:
        """Return the known fields of a mapping."""
        found: dict[str, _Value] = {}
        if not isinstance(value.node, yaml.MappingNode):
            must = "must be" if value.field else "The file must hold"
            self.wrong(value, f"{must} {what}, in lines of `field: value`; it is {_kind(value.node)}.")
            return found
        for key, node in value.node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else ""
            one = _Value(f"{value.field}.{name}" if value.field else name, key.start_mark.line + 1, node)
            if name not in known:
                hint = nearest(name, known) or f" Its fields are: {', '.join(known)}."
                self.wrong(one._replace(field=_cut(one.field) or "?"), f"is not a field of {what}.{hint}")
            elif name in found:
                self.wrong(one, f"is there already, in line {found[name].line}.")
            else:
                found[name] = one
        return found

    def items(self, fields: dict[str, _Value], name: str, limit: int, of: str) -> list[_Value]:
        """Return the elements of a list; none when there is no list."""
        value = fields.get(name)
        if value is None or _kind(value.node) == "nothing":
            return []
        if not isinstance(value.node, yaml.SequenceNode):
            self.wrong(value, f"must be a list of {of}, such as [first, second]; it is {_kind(value.node)}.")
            return []
        if len(value.node.value) > limit:
            self.wrong(value, f"has {len(value.node.value)} elements; at most {limit} are taken.")
        return [_Value(f"{value.field}[{at}]", node.start_mark.line + 1, node) for at, node in enumerate(value.node.value[:limit])]

    def names(self, fields: dict[str, _Value], name: str, limit: int, of: str, form: tuple[re.Pattern[str], str]) -> dict[str, _Value]:
        """Return the elements of a list of names, each once, by name."""
        found: dict[str, _Value] = {}
        for one in self.items(fields, name, limit, of):
            text = self.text({name: one}, name, form=form, needed=True)
            if text in found:
                self.wrong(one, f"is {text}, which is in the list already.")
            elif text:
                found[text] = one
        return found

    def text(
        self,
        fields: dict[str, _Value],
        name: str,
        *,
        limit: int = 256,
        form: tuple[re.Pattern[str], str] | None = None,
        lines: bool = False,
        needed: bool = False,
    ) -> str:
        """Return a text without surrounding whitespace, on one line unless `lines`; empty when there is none. Numbers and dates are taken
        as written; yes and no are refused, since the author of `greeting: off` does not mean the word."""
        value = fields.get(name)
        if value is None:
            return ""
        kind = _kind(value.node)
        if kind == "nothing":
            if needed:
                self.wrong(value, f"must be {form[1] if form else 'text'}; it is empty.")
            return ""
        if kind in ("a list", "a mapping", "a yes-or-no value"):
            quotes = f": put {_shown(value.node.value)} in quotes if you mean the word" if kind == "a yes-or-no value" else ""
            self.wrong(value, f"must be {form[1] if form else 'text'}; it is {kind}{quotes}.")
            return ""
        text = str(value.node.value).strip() if lines else " ".join(str(value.node.value).split())
        if any(unicodedata.category(character) in ("Cc", "Cs") and character not in "\n\t" for character in text):
            self.wrong(value, "holds characters that cannot be shown.")
        elif form is not None and form[0].fullmatch(text) is None:
            self.wrong(value, f"must be {form[1]}; it is {_shown(text)}.")
        elif len(text) > limit:
            self.wrong(value, f"has {len(text):,} characters; at most {limit:,} are taken.")
        else:
            return text
        return ""

    def flag(self, fields: dict[str, _Value], name: str) -> bool | None:
        """Return true or false, or None when the field is missing or empty."""
        value = fields.get(name)
        if value is None or _kind(value.node) == "nothing":
            return None
        if _kind(value.node) != "a yes-or-no value":
            self.wrong(value, f"must be true or false; it is {_kind(value.node)}.")
            return None
        return bool(yaml.SafeLoader.bool_values[value.node.value.lower()])


class _NotPlain(Exception):
    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


class _Reading:
    """A single reading of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._problems: list[Problem] = []
        self._mentioned: list[tuple[_File, _Value, str]] = []

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

    def _files(self, folder: Path, plural: str, limit: int, known: Collection[str], what: str) -> list[_File]:
        try:
            paths = _entries(folder, limit)
        except FileNotFoundError:
            return []
        except OSError as error:
            self._problems.append(Problem(str(folder), 0, "", f"The folder cannot be read: {error.strerror}."))
            return []
        if len(paths) > limit:
            self._problems.append(Problem(str(folder), 0, "", f"There are more than {limit} {plural}, which is the most that are read."))
        files = [_File(path, self._problems) for path in paths[:limit]]
        for file in files:
            file.read(what, known)
        return files

    def _agent(self, file: _File) -> Agent:
        fields = file.fields
        given = {name for name, value in fields.items() if _kind(value.node) != "nothing"}
        texts = {name: file.text(fields, name, limit=limit) for name, limit in TEXT_LIMITS.items()}
        handoffs = file.names(fields, "handoffs", AGENTS_LIMIT, "agents", _NAME)
        self._mentioned += [(file, value, name) for name, value in handoffs.items()]
        if file.name in handoffs:
            file.wrong(handoffs[file.name], "names the agent itself.")
        tools = tuple(file.names(fields, "tools", TOOLS_LIMIT, "functions", _FUNCTION))
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
            tools=tools if "tools" in given else None,
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
        )

    def _pipeline(self, file: _File) -> Pipeline:
        stages: dict[str, Stage] = {}
        lines: dict[str, _Value] = {}
        following: list[tuple[_Value, str]] = []
        listed = file.items(file.fields, "stages", STAGES_LIMIT, "stages")
        for value in listed:
            fields = file.mapping(value, "a stage", STAGE_FIELDS)
            for needed in ("phase", "agent"):
                if isinstance(value.node, yaml.MappingNode) and needed not in fields:
                    file.wrong(value, f"needs `{needed}`.")
            phase = file.text(fields, "phase", form=_NAME, needed=True)
            agent = file.text(fields, "agent", form=_NAME, needed=True)
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
        elif file.fields and not listed and _kind(file.fields["stages"].node) in ("nothing", "a list"):
            file.wrong(file.fields["stages"], "must be a list of stages, at least one.")
        for value, name in following:
            if name not in stages:
                file.wrong(value, f"names the phase {_shown(name)}, which no stage has.{nearest(name, stages)}")
        for name in stages.keys() - _reached(stages):
            file.wrong(lines[name], f"is never reached: put {name} into the `next` of an earlier stage.")
        return Pipeline(
            name=file.name,
            description=file.text(file.fields, "description", limit=TEXT_LIMITS["description"]),
            stages=tuple(stages.values()),
            hand_back=file.flag(file.fields, "hand_back") is not False,
        )

    def _next(self, file: _File, fields: dict[str, _Value]) -> dict[str, _Value]:
        value = fields.get("next")
        if value is None or not isinstance(value.node, yaml.ScalarNode):
            return file.names(fields, "next", STAGES_LIMIT, "phases", _NAME)
        name = file.text(fields, "next", form=_NAME)
        return {name: value} if name else {}

    def _check_names(self, files: list[_File]) -> None:
        first: dict[str, _File] = {}
        for file in files:
            other = first.setdefault(file.name, file)
            if other is not file:
                file.wrong(file.fields.get("name", _Value("name", 1, None)), f"is {file.name}, which is the name of {other.path} already.")

    def _check_mentions(self, agents: set[str], pipelines: set[str]) -> None:
        for file, value, name in self._mentioned:
            if name not in agents:
                why = "which is a pipeline" if name in pipelines else "and there is no agent of that name"
                file.wrong(value, f"names {name}, {why}.{nearest(name, agents)}")


def _model(file: _File, role: str) -> ModelName | None:
    value = file.fields.get(role)
    text = file.text(file.fields, role, form=(_MODEL, _EXPECTED[role]))
    found = _MODEL.fullmatch(text)
    if value is None or found is None:
        return None
    provider = found["provider"]
    if provider not in get_args(Realtime) if role == "model" else role != "llm" and provider in ("anthropic", "gemini"):
        file.wrong(value, f"must be {_EXPECTED[role]}; it is {_shown(text)}.")
        return None
    return ModelName(provider, found["model"] or "")


def _reached(stages: dict[str, Stage]) -> set[str]:
    waiting = list(stages)[:1]
    for phase in waiting:
        waiting += [name for name in stages[phase].next if name in stages and name not in waiting]
    return set(waiting)


def _entries(folder: Path, limit: int) -> list[Path]:
    """Return the first files of a folder that are, or were meant to be, read: at most one more than `limit`. Raises `OSError`."""
    found = (path for path in folder.iterdir() if path.suffix in (".yaml", ".yml") and not path.name.startswith("."))
    return sorted(found)[: limit + 1]


def _mark(folder: Path) -> tuple[object, ...]:
    """Return a value that changes when a file is added, removed or changed."""
    marks: list[object] = []
    for place, limit in ((folder, AGENTS_LIMIT), (folder / "pipelines", PIPELINES_LIMIT)):
        try:
            marks += [_stamp(path) for path in _entries(place, limit)]
        except OSError as error:
            marks.append((str(place), error.errno))
    return tuple(marks)


def _stamp(path: Path) -> tuple[object, ...]:
    try:
        state = path.stat()
    except OSError as error:
        return (str(path), error.errno)
    return (str(path), state.st_ino, state.st_mtime_ns, state.st_size)


def _kind(node: Any) -> str:
    if isinstance(node, yaml.ScalarNode):
        names = {"bool": "a yes-or-no value", "int": "a number", "float": "a number"}
        kind = node.tag.rpartition(":")[2]
        return "nothing" if kind == "null" or not node.value.strip() else names.get(kind, "text")
    return "a list" if isinstance(node, yaml.SequenceNode) else "a mapping"


def _shown(text: str) -> str:
    return repr(_cut(text))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"

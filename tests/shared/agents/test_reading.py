"""Files of agents and pipelines: accepted content, and the messages of refusals. Changes of files: test_model.py."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import get_type_hints

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from voxbridge.shared.agents import reading, yaml_file
from voxbridge.shared.agents.model import Agent, ModelName, Pipeline, Roster, Stage
from voxbridge.shared.agents.reading import AgentsRefused, load
from voxbridge.shared.agents.yaml_file import Problem
from voxbridge.shared.errors import Code

ROOT = Path(__file__).parents[3]
TWO = {"a.yaml": "role: First\n", "b.yaml": "role: Second\n"}


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def refused(folder: Path, files: dict[str, str]) -> list[str]:
    """Return the messages about these files, with paths relative to the folder."""
    with pytest.raises(AgentsRefused) as caught:
        load(write(folder, files))
    assert caught.value.code is Code.INVALID_ARGUMENT
    assert caught.value.message.splitlines() == [str(problem) for problem in caught.value.problems]
    return [str(problem).removeprefix(f"{folder}/") for problem in caught.value.problems]


def problem_of(folder: Path, text: str, name: str = "x.yaml") -> str:
    (problem,) = refused(folder, {name: text})
    return problem


def agent_of(folder: Path, text: str) -> Agent:
    (agent,) = load(write(folder, {"x.yaml": text})).agents
    return agent


def test_a_file_says_all_there_is_to_an_agent(tmp_path: Path) -> None:
    text = """
name: guide
role: Guide
description: >
  Shows people
  around.
scope: The old town.
prompt: |
  Be lively.

  Point at things.
greeting: This way!
arrival: Say what is to be seen.
voice: Puck
language: pt-BR
tools: [current_time, calculate]
starts: [calculate]
handoffs: [b]
model: gemini:gemini-2.5-flash-native-audio-latest
output: audio
manual_activity: true
search: yes
record: off
"""
    assert load(write(tmp_path, {**TWO, "x.yaml": text})).agents[2] == Agent(
        name="guide",
        role="Guide",
        description="Shows people around.",
        scope="The old town.",
        prompt="Be lively.\n\nPoint at things.",
        greeting="This way!",
        arrival="Say what is to be seen.",
        voice="Puck",
        language="pt-BR",
        tools=("current_time", "calculate"),
        starts=("calculate",),
        handoffs=("b",),
        realtime=ModelName("gemini", "gemini-2.5-flash-native-audio-latest"),
        output="audio",
        manual_activity=True,
        search=True,
        record=False,
    )


def test_what_a_file_leaves_out_has_its_default_and_the_name_is_the_files(tmp_path: Path) -> None:
    assert agent_of(tmp_path, "prompt: Be brief.\n") == Agent(name="x", prompt="Be brief.")
    assert agent_of(tmp_path, "llm: anthropic\noutput: text\n").output == "text"
    assert agent_of(tmp_path, "prompt: Be brief.\nvoice:\ntools: ~\nmodel: ''\nrecord: null\nlanguage: ' '\n") == Agent(
        name="x", prompt="Be brief."
    )


def test_no_functions_is_something_else_than_all_of_them(tmp_path: Path) -> None:
    assert agent_of(tmp_path, "tools: []\n").tools == ()
    assert agent_of(tmp_path, "role: x\n").tools is None


@pytest.mark.parametrize(
    ("written", "realtime"),
    [
        ("gemini", ModelName("gemini")),
        ("gemini:gemini-3.8-live", ModelName("gemini", "gemini-3.8-live")),
        ("openai", ModelName("openai")),
        ("openai:gpt-realtime-2.1", ModelName("openai", "gpt-realtime-2.1")),
    ],
)
def test_a_realtime_model_by_provider_and_name(tmp_path: Path, written: str, realtime: ModelName) -> None:
    assert agent_of(tmp_path, f"model: {written}\n").realtime == realtime


def test_the_parts_of_a_cascade_each_by_provider_and_name(tmp_path: Path) -> None:
    agent = agent_of(tmp_path, "llm: anthropic:claude-sonnet-5\nstt: local\ntts: openai:gpt-4o-mini-tts\n")
    assert (agent.realtime, agent.llm, agent.stt, agent.tts) == (
        None,
        ModelName("anthropic", "claude-sonnet-5"),
        ModelName("local"),
        ModelName("openai", "gpt-4o-mini-tts"),
    )
    assert agent_of(tmp_path, "llm: my-vllm:org/qwen2.5:7b\n").llm == ModelName("my-vllm", "org/qwen2.5:7b")


@pytest.mark.parametrize("part", ["stt", "llm", "tts"])
def test_a_realtime_model_and_a_part_of_the_cascade_exclude_each_other(tmp_path: Path, part: str) -> None:
    assert problem_of(tmp_path, f"model: gemini\n{part}: local\n") == (
        f"x.yaml:2: `{part}` does not go with `model`: that model hears and speaks itself. Leave one of them out."
    )


def test_an_empty_model_is_none(tmp_path: Path) -> None:
    assert agent_of(tmp_path, "model: gemini\nllm:\n").realtime == ModelName("gemini")
    assert agent_of(tmp_path, "model:\nllm: local\n").llm == ModelName("local")


def test_a_pipeline_has_its_stages_in_order(tmp_path: Path) -> None:
    text = "description: Both.\nstages:\n- {phase: one, agent: a, next: two}\n- phase: two\n  agent: b\n  next: [one]\n"
    roster = load(write(tmp_path, {**TWO, "pipelines/p.yaml": text}))
    stages = (Stage(phase="one", agent="a", next=("two",)), Stage(phase="two", agent="b", next=("one",)))
    assert roster.pipelines == (Pipeline(name="p", description="Both.", stages=stages),)
    text += "hand_back: false\nname: duo\n"
    assert load(write(tmp_path, {"pipelines/p.yaml": text})).pipelines == (
        Pipeline(name="duo", description="Both.", stages=stages, hand_back=False),
    )


def test_numbers_and_dates_are_text_where_text_is_wanted(tmp_path: Path) -> None:
    agent = agent_of(tmp_path, "voice: 7\nrole: 2026-01-31\ngreeting: '1.50'\n")
    assert (agent.voice, agent.role, agent.greeting) == ("7", "2026-01-31", "1.50")


def test_other_writing_is_text_too(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_bytes(b"\xef\xbb\xbf" + "greeting: Grüß Gott 👩‍🚀 שלום\r\n".encode())
    assert load(tmp_path).agents[0].greeting == "Grüß Gott 👩‍🚀 שלום"


NAME = "a name: lower-case letters, digits and hyphens, a letter first, at most 64 characters"
REALTIME = "gemini, gemini:MODEL, openai or openai:MODEL; leave it out for an agent with `stt`, `llm` and `tts`"
LLM = "local, openai, anthropic, gemini or the name of an endpoint, with :MODEL where you want a certain one"
EARS = "local, openai, assemblyai or the name of an endpoint, with :MODEL where you want a certain one"
VOICE = "local, openai, elevenlabs or the name of an endpoint, with :MODEL where you want a certain one"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("role: a\n\npromt: b\n", "3: `promt` is not a field of an agent. Did you mean prompt?"),
        ("system_prompt: b\n", "1: `system_prompt` is not a field of an agent. Did you mean prompt?"),
        ("<<: {role: b}\n", f"1: `<<` is not a field of an agent. Its fields are: {', '.join(reading.AGENT_FIELDS)}."),
        ("[a]: b\n", f"1: `?` is not a field of an agent. Its fields are: {', '.join(reading.AGENT_FIELDS)}."),
        ("role: a\nvoice: b\nrole: c\n", "3: `role` is there already, in line 1."),
        ("role:\n  - a\n", "1: `role` must be text; it is a list."),
        ("greeting: off\n", "1: `greeting` must be text; it is a yes-or-no value: put 'off' in quotes if you mean the word."),
        (
            "language: no\n",
            "1: `language` must be a language code such as en or pt-BR; it is a yes-or-no value: put 'no' in quotes if you mean the word.",
        ),
        ("language: English\n", "1: `language` must be a language code such as en or pt-BR; it is 'English'."),
        ("name: Front Desk\n", f"1: `name` must be {NAME}; it is 'Front Desk'."),
        ("name: [a]\n", f"1: `name` must be {NAME}; it is a list."),
        ("model: gemini-3.8-live\n", f"1: `model` must be {REALTIME}; it is 'gemini-3.8-live'."),
        ("model: 'gemini:'\n", f"1: `model` must be {REALTIME}; it is 'gemini:'."),
        ("model: none\n", f"1: `model` must be {REALTIME}; it is 'none'."),
        ("model:\n  gemini: x\n", f"1: `model` must be {REALTIME}; it is a mapping."),
        ("llm: Claude Sonnet\n", f"1: `llm` must be {LLM}; it is 'Claude Sonnet'."),
        ("stt: anthropic\n", f"1: `stt` must be {EARS}; it is 'anthropic'."),
        ("stt: elevenlabs\n", f"1: `stt` must be {EARS}; it is 'elevenlabs'."),
        ("tts: gemini:x\n", f"1: `tts` must be {VOICE}; it is 'gemini:x'."),
        ("tts: assemblyai\n", f"1: `tts` must be {VOICE}; it is 'assemblyai'."),
        ("llm: elevenlabs\n", f"1: `llm` must be {LLM}; it is 'elevenlabs'."),
        ("output: video\n", "1: `output` must be audio or text; it is 'video'."),
        ("model: gemini\noutput: text\n", "2: `output` must be audio beside `model`, which speaks; it is 'text'."),
        ("output: text\nmodel: openai\n", "1: `output` must be audio beside `model`, which speaks; it is 'text'."),
        ("search: maybe\n", "1: `search` must be true or false; it is text."),
        ("record: 1\n", "1: `record` must be true or false; it is a number."),
        ("expert: 1\n", "1: `expert` must be true or false; it is a number."),
        ("knowledge: [handbook]\n", "1: `knowledge` goes with `expert: true`: only an expert answers from graphs of its own."),
        ("expert: true\nmodel: gemini\n", "1: `expert` does not go with `model`, which only speaks: an expert answers in text."),
        (
            "expert: true\nknowledge: [a, b, c, d, e, f, g, h, i, j, k]\n",
            "2: `knowledge` has 11 elements; at most 10 are taken.",
        ),
        ("tools: current_time\n", "1: `tools` must be a list of functions, such as [first, second]; it is text."),
        (
            "tools:\n  - a\n  - b-c\n",
            "3: `tools[1]` must be the name of a function: lower-case letters, digits and underscores, at most 64; it is 'b-c'.",
        ),
        ("tools:\n  - a\n  - a\n", "3: `tools[1]` is a, which is in the list already."),
        (
            "tools:\n  -\n",
            "2: `tools[0]` must be the name of a function: lower-case letters, digits and underscores, at most 64; it is empty.",
        ),
        ("handoffs: [{a: b}]\n", f"1: `handoffs[0]` must be {NAME}; it is a mapping."),
        ("role: a\nhandoffs: [x]\n", "2: `handoffs[0]` names the agent itself."),
        ("handoffs:\n- nobody\n", "2: `handoffs[0]` names nobody, and there is no agent of that name."),
        ('role: "a\\eb"\n', "1: `role` holds characters that cannot be shown."),
        ('prompt: "a\\x9b"\n', "1: `prompt` holds characters that cannot be shown."),
        ("role: a\nvoice: \x07\n", "2: The file holds a control character."),
        ("role: &x a\nvoice: *x\n", "1: Anchors (&) and aliases (*) are not read; write the value out, or put it in quotes."),
        ("role: *x\n", "1: Anchors (&) and aliases (*) are not read; write the value out, or put it in quotes."),
        ("role: !!python/object:os.system ls\n", "1: Tags (!) are not read; put the value in quotes if it begins with one."),
        ("- role\n", "1: The file must hold an agent, in lines of `field: value`; it is a list."),
        ("Be kind.\n", "1: The file must hold an agent, in lines of `field: value`; it is text."),
        ("", "1: The file is empty."),
        ("# nothing\n", "1: The file is empty."),
        ("{}\n", "1: The file is empty."),
    ],
)
def test_a_wrong_agent_is_said_with_file_line_field_and_what_was_expected(tmp_path: Path, text: str, problem: str) -> None:
    assert problem_of(tmp_path, text) == f"x.yaml:{problem}"


@pytest.mark.parametrize("text", ["role: [a\n", "role: 'a\n", "role: a: b\n", "\trole: a\n", "role: a\n---\nrole: b\n"])
def test_what_is_not_yaml_is_said_with_its_line(tmp_path: Path, text: str) -> None:
    assert re.fullmatch(r"x\.yaml:[123]: This is not YAML: .+\.", problem_of(tmp_path, text))


STAGES = "stages:\n- {phase: one, agent: a, next: two}\n- {phase: two, agent: b}\n"


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("description: x\n", ["1: A pipeline needs `stages`."]),
        ("description: x\nstages: []\n", ["2: `stages` must be a list of stages, at least one."]),
        ("description: x\nstages:\n", ["2: `stages` must be a list of stages, at least one."]),
        ("stages: a\n", ["1: `stages` must be a list of stages, such as [first, second]; it is text."]),
        ("stages: [a]\n", ["1: `stages[0]` must be a stage, in lines of `field: value`; it is text."]),
        ("{}\n", ["1: The file is empty."]),
        (STAGES + "loop: true\n", ["4: `loop` is not a field of a pipeline. Its fields are: name, description, hand_back, stages."]),
        (STAGES + "hand_back: always\n", ["4: `hand_back` must be true or false; it is text."]),
        ("stages:\n- phase: one\n  agnet: a\n", [
            "2: `stages[0]` needs `agent`.",
            "3: `stages[0].agnet` is not a field of a stage. Did you mean agent?",
        ]),
        ("stages:\n- agent: a\n", ["2: `stages[0]` needs `phase`."]),
        ("stages: [{}]\n", ["1: `stages[0]` needs `phase`.", "1: `stages[0]` needs `agent`."]),
        ("stages:\n- phase:\n  agent: a\n", [f"2: `stages[0].phase` must be {NAME}; it is empty."]),
        ("stages:\n- phase: one\n  agent: aa\n", ["3: `stages[0].agent` names aa, and there is no agent of that name. Did you mean a?"]),
        ("stages:\n- phase: one\n  agent: p\n", ["3: `stages[0].agent` names p, which is a pipeline."]),
        (STAGES.replace("next: two", "next: tow"), [
            "2: `stages[0].next` names the phase 'tow', which no stage has. Did you mean two?",
            "3: `stages[1].phase` is never reached: put two into the `next` of an earlier stage.",
        ]),
        (STAGES.replace("next: two", "next: {two: 1}"), [
            "2: `stages[0].next` must be a list of phases, such as [first, second]; it is a mapping.",
            "3: `stages[1].phase` is never reached: put two into the `next` of an earlier stage.",
        ]),
        (STAGES + "- {phase: three, agent: a, next: four}\n- {phase: four, agent: b, next: [three]}\n", [
            "4: `stages[2].phase` is never reached: put three into the `next` of an earlier stage.",
            "5: `stages[3].phase` is never reached: put four into the `next` of an earlier stage.",
        ]),
        (STAGES + "- {phase: two, agent: a}\n", ["4: `stages[2].phase` names the phase two a second time; it is in line 3 already."]),
    ],
)  # fmt: skip
def test_a_wrong_pipeline_is_said_with_file_line_field_and_what_was_expected(tmp_path: Path, text: str, problems: list[str]) -> None:
    found = refused(tmp_path, {**TWO, "pipelines/p.yaml": text})
    assert found == [f"pipelines/p.yaml:{problem}" for problem in problems]


@pytest.mark.parametrize(("field", "limit"), [*reading.TEXT_LIMITS.items(), ("prompt", reading.PROMPT_LIMIT)])
def test_texts_have_limits(tmp_path: Path, field: str, limit: int) -> None:
    assert getattr(agent_of(tmp_path, f"{field}: {'x' * limit}\n"), field) == "x" * limit
    assert problem_of(tmp_path, f"{field}: {'x' * (limit + 1)}\n") == (
        f"x.yaml:1: `{field}` has {limit + 1:,} characters; at most {limit:,} are taken."
    )


def test_names_have_a_limit(tmp_path: Path) -> None:
    assert agent_of(tmp_path, f"name: {'x' * 64}\n").name == "x" * 64
    assert "at most 64 characters; it is 'xxx" in problem_of(tmp_path, f"name: {'x' * 65}\n")
    assert len(agent_of(tmp_path, f"llm: a:{'x' * 128}\n").llm.model) == 128
    assert len(agent_of(tmp_path, f"llm: {'x' * 32}\n").llm.provider) == 32
    assert "`llm` must be" in problem_of(tmp_path, f"llm: {'x' * 33}\n")
    assert "`llm` must be" in problem_of(tmp_path, f"llm: a:{'x' * 129}\n")


def test_lists_have_limits(tmp_path: Path) -> None:
    def tools(number: int) -> str:
        return f"tools: [{', '.join(f't{index}' for index in range(number))}]\n"

    assert len(agent_of(tmp_path, tools(reading.TOOLS_LIMIT)).tools or ()) == reading.TOOLS_LIMIT
    assert problem_of(tmp_path, tools(reading.TOOLS_LIMIT + 1)) == "x.yaml:1: `tools` has 65 elements; at most 64 are taken."


def test_pipelines_have_a_limit_of_stages(tmp_path: Path) -> None:
    def stages(number: int) -> str:
        return "stages:\n" + "".join(f"- {{phase: s{index}, agent: a, next: s{(index + 1) % number}}}\n" for index in range(number))

    assert len(load(write(tmp_path, {**TWO, "pipelines/p.yaml": stages(reading.STAGES_LIMIT)})).pipelines[0].stages) == reading.STAGES_LIMIT
    assert "`stages` has 33 elements; at most 32 are taken." in refused(tmp_path, {"pipelines/p.yaml": stages(reading.STAGES_LIMIT + 1)})[0]


def test_a_file_has_a_limit(tmp_path: Path) -> None:
    text = "role: x\n" + "#" * (yaml_file.FILE_LIMIT - 8)
    assert agent_of(tmp_path, text).role == "x"
    assert problem_of(tmp_path, text + "#") == "x.yaml: The file has more than 65,536 bytes, which is the most that is read."


def test_a_folder_has_a_limit_of_agents_and_of_pipelines(tmp_path: Path) -> None:
    write(tmp_path, {f"a{index:02}.yaml": "role: x\n" for index in range(reading.AGENTS_LIMIT)})
    write(tmp_path, {f"pipelines/p{index:02}.yaml": "stages: [{phase: a, agent: a00}]\n" for index in range(reading.PIPELINES_LIMIT)})
    roster = load(tmp_path)
    assert (len(roster.agents), len(roster.pipelines)) == (64, 64)
    assert problem_of(tmp_path, "role: x\n") == f"{tmp_path}: There are more than 64 agents, which is the most that are read."
    (tmp_path / "x.yaml").unlink()
    more = refused(tmp_path, {"pipelines/x.yaml": "stages: [{phase: a, agent: a00}]\n"})
    assert more == ["pipelines: There are more than 64 pipelines, which is the most that are read."]


def test_what_is_nested_too_deep_is_refused_before_it_is_built(tmp_path: Path) -> None:
    assert problem_of(tmp_path, "role: " + "[" * 7 + "]" * 7 + "\n") == "x.yaml:1: `role` must be text; it is a list."
    for text in ("role: " + "[" * 8 + "]" * 8, "role: " + "[" * 60_000, "role: " + "{a: " * 10_000):
        assert problem_of(tmp_path, text) == "x.yaml:1: Values may be nested 8 deep."


def test_a_file_has_a_limit_of_values(tmp_path: Path) -> None:
    def tools(number: int) -> str:
        return "tools:\n" + "- a\n" * number

    most = yaml_file.VALUES_LIMIT - 3  # the mapping, its key and the list are values too
    assert "has 1997 elements" in refused(tmp_path, {"x.yaml": tools(most)})[0]
    found = problem_of(tmp_path, tools(most + 1))
    assert found == "x.yaml:1999: The file holds more than 2,000 values, which is the most that is read."


def test_problems_have_a_limit(tmp_path: Path) -> None:
    found = refused(tmp_path, {"x.yaml": "".join(f"field{index}: x\n" for index in range(reading.PROBLEMS_LIMIT + 7))})
    assert len(found) == reading.PROBLEMS_LIMIT + 1
    assert found[-1] == f"{tmp_path}: There are 7 more problems."


def test_a_value_that_is_shown_is_cut(tmp_path: Path) -> None:
    assert problem_of(tmp_path, f"output: {'x' * 200}\n").endswith(f"it is '{'x' * 39}…'.")
    assert len(problem_of(tmp_path, f"{'x' * 120}: a\n")) < 400


def test_everything_that_is_wrong_in_a_folder_is_said_at_once_in_order(tmp_path: Path) -> None:
    found = refused(
        tmp_path,
        {
            "b.yaml": "voice: [x]\nrolle: x\n",
            "a.yaml": "role: [\n",
            "c.yaml": "handoffs: [a, b, z]\n",
            "pipelines/p.yaml": "stages: [{phase: one, agent: b, next: tow}]\n",
        },
    )
    assert [problem.partition(": ")[0] for problem in found] == ["a.yaml:2", "b.yaml:1", "b.yaml:2", "c.yaml:1", "pipelines/p.yaml:1"]
    with pytest.raises(AgentsRefused) as caught:
        load(tmp_path)
    assert caught.value.problems[1] == Problem(str(tmp_path / "b.yaml"), 1, "voice", "`voice` must be text; it is a list.")
    assert caught.value.as_dict()["code"] == "INVALID_ARGUMENT"


def test_the_error_names_the_field_of_its_first_problem(tmp_path: Path) -> None:
    with pytest.raises(AgentsRefused) as caught:
        load(write(tmp_path, {"x.yaml": "output: video\n"}))
    assert caught.value.field == "output"


def test_a_name_is_given_once_among_agents_and_pipelines(tmp_path: Path) -> None:
    pipeline = "name: b\nstages: [{phase: one, agent: a}]\n"
    found = refused(tmp_path, {**TWO, "c.yaml": "role: x\nname: a\n", "pipelines/p.yaml": pipeline})
    assert found == [
        f"c.yaml:2: `name` is a, which is the name of {tmp_path}/a.yaml already.",
        f"pipelines/p.yaml:1: `name` is b, which is the name of {tmp_path}/b.yaml already.",
    ]


def test_the_name_of_the_file_must_do_when_there_is_no_other(tmp_path: Path) -> None:
    assert refused(tmp_path, {"Front Desk.yaml": "role: x\n"}) == [
        f"Front Desk.yaml:1: The file's name must be {NAME}, or the file needs a `name`."
    ]
    assert load(write(tmp_path, {"Front Desk.yaml": "name: desk\n"})).agents == (Agent(name="desk"),)


def test_a_folder_that_is_not_there_holds_no_agents(tmp_path: Path) -> None:
    assert load(tmp_path / "none") == Roster()
    assert load(tmp_path) == Roster()


def test_other_files_are_left_alone_but_for_a_likely_slip(tmp_path: Path) -> None:
    write(tmp_path, {"a.yaml": "role: x\n", ".a.yaml": "[", "notes.md": "[", "pipelines/.#p.yaml": "["})
    assert [agent.name for agent in load(tmp_path).agents] == ["a"]
    assert refused(tmp_path, {"b.yml": "role: x\n"}) == [
        "b.yml: Only files that end in .yaml are read; give it that ending, or move it away."
    ]


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "gone.yaml").symlink_to(tmp_path / "nowhere")
    (tmp_path / "latin.yaml").write_bytes(b"role: a\nvoice: \xe9\n")
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "pipelines").write_text("x")
    assert refused(tmp_path, {}) == [
        "folder.yaml: This is not a file.",
        "gone.yaml: The file cannot be read: No such file or directory.",
        "latin.yaml:2: The file must be text in UTF-8.",
        "pipe.yaml: This is not a file.",
        "pipelines: The folder cannot be read: Not a directory.",
    ]


@pytest.mark.parametrize("loader", [yaml.SafeLoader, yaml_file._LOADER])
def test_without_the_fast_reader_of_yaml_the_same_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loader: object) -> None:
    monkeypatch.setattr(yaml_file, "_LOADER", loader)
    assert problem_of(tmp_path, "role: " + "[" * 2_000) == "x.yaml:1: Values may be nested 8 deep."
    assert problem_of(tmp_path, "role: a\nrole: b\n") == "x.yaml:2: `role` is there already, in line 1."
    for text in ('role: "\\ud800"\n', "role: [\n", "role: a\n\x07", "role: *x\n", "role: !x a\n", "role: a\n---\n"):
        assert problem_of(tmp_path, text).startswith("x.yaml:")
    assert agent_of(tmp_path, "role: a\nprompt: |\n  b\n  c\n").prompt == "b\nc"


def outcome(folder: Path) -> tuple[Agent, ...] | tuple[Problem, ...]:
    try:
        return load(folder).agents
    except AgentsRefused as caught:
        return caught.problems


@given(st.text(max_size=200) | st.text(alphabet="abc:-[]{}&*!|>'\"#, \n\t\x00\x85\u2028\ud7ff", max_size=60))
def test_whatever_a_file_holds_it_is_read_or_refused_in_words(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    folder = tmp_path_factory.mktemp("agents")
    (folder / "x.yaml").write_bytes(text.encode("utf-8", "surrogatepass"))
    found = outcome(folder)
    assert found
    for one in found:
        assert isinstance(one, Agent) or str(one).startswith(f"{folder}/x.yaml:")


def test_the_shipped_agents_are_right_and_the_local_ones_need_no_key() -> None:
    roster = load(ROOT / "agents")
    assert {agent.name for agent in roster.agents} == {
        *("advisor", "assistant", "closer", "guide", "host", "librarian", "officer", "researcher", "teller", "triage")
    }
    team = roster.team("local-team").agents
    assert [agent.name for agent in team] == ["host", "teller"]
    for name in ("librarian", "researcher"):
        (agent,) = roster.team(name).agents
        assert (agent.realtime, agent.llm, agent.expert) == (None, ModelName("local"), name == "librarian")
    for agent in (*team, *roster.team("assistant").agents):
        assert (agent.realtime, agent.stt, agent.llm, agent.tts) == (None, *[ModelName("local")] * 3)
    voices = [(agent.name, agent.realtime, agent.voice) for agent in roster.team("two-voices").agents]
    assert voices == [("triage", ModelName("gemini"), "Aoede"), ("guide", ModelName("gemini"), "Charon")]
    advice = roster.team("advice").agents
    assert [(agent.name, agent.handoffs) for agent in advice] == [
        ("triage", ("advisor", "closer")),
        ("advisor", ("closer", "triage")),
        ("closer", ("triage", "advisor")),
    ]
    assert [(agent.realtime or agent.llm).provider for agent in advice] == ["gemini", "anthropic", "local"]


def test_every_field_of_an_agent_can_be_written_in_a_file() -> None:
    assert set(get_type_hints(Agent)) - {"realtime"} == set(reading.AGENT_FIELDS) - {"model"}
    assert set(get_type_hints(Pipeline)) == set(reading.PIPELINE_FIELDS)
    assert set(get_type_hints(Stage)) == set(reading.STAGE_FIELDS)


def test_the_page_has_every_field_with_its_limit_and_its_examples_are_right(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([a-z_]+)` \|(.*)$", page, re.MULTILINE))
    assert set(rows) >= {*reading.AGENT_FIELDS, *reading.PIPELINE_FIELDS, *reading.STAGE_FIELDS}
    for field, limit in {**reading.TEXT_LIMITS, "prompt": reading.PROMPT_LIMIT}.items():
        assert f"{limit:,} characters" in rows[field]
    examples = re.findall(r"```yaml\n# agents/(\S+)\n(.*?)```", page, re.DOTALL)
    assert len(examples) >= 3
    assert len(load(write(tmp_path, dict(examples))).agents) == sum("/" not in name for name, _ in examples)

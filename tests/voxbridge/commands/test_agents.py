"""`voxbridge agents`: the list, the details of an agent and of a pipeline, and the report of mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from voxbridge.cli import cli

ROOT = Path(__file__).parents[3]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of agents, which is the default one here."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VOXBRIDGE_AGENTS_DIR", raising=False)
    monkeypatch.setenv("COLUMNS", "160")
    (tmp_path / "agents" / "pipelines").mkdir(parents=True)
    return tmp_path / "agents"


@pytest.fixture
def team(folder: Path) -> Path:
    (folder / "desk.yaml").write_text(
        "role: Front desk\nprompt: Be brief.\nmodel: gemini:gemini-3.8-live\nvoice: Kore\nhandoffs: [sales]\n"
    )
    sales = "description: Sells [red]bikes[/red].\nllm: openai\ntools: [price]\nsearch: true\nrecord: false\ngreeting: Hi!\n"
    (folder / "sales.yaml").write_text(sales)
    (folder / "plain.yaml").write_text("tools: []\n")
    stages = "stages:\n- {phase: desk, agent: desk, next: deal}\n- {phase: deal, agent: sales}\n"
    line = f"description: From hello to sold.\nhand_back: false\n{stages}"
    (folder / "pipelines" / "line.yaml").write_text(line)
    return folder


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["agents", *arguments])


def row(output: str, name: str) -> list[str]:
    (line,) = [line for line in output.splitlines() if line.startswith(f"│ {name} ")]
    return [cell.strip() for cell in line.strip("│").split("│")]


def test_the_list_has_every_agent_and_every_pipeline(team: Path) -> None:
    result = run("ls")
    assert result.exit_code == 0
    assert row(result.output, "desk") == ["desk", "gemini:gemini-3.8-live", "Kore", "sales", "Front desk"]
    assert row(result.output, "sales") == ["sales", "stt local, llm openai, tts local", "", "", "Sells [red]bikes[/red]."]
    assert row(result.output, "plain") == ["plain", "local", "", "", ""]
    assert row(result.output, "line") == ["line", "desk, deal (sales)", "no", "From hello to sold."]


def test_an_empty_folder_is_said_with_where_to_go_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run("ls")
    assert (result.exit_code, result.output) == (0, "There are no agents in agents. docs/agents.md shows how to write the first.\n")
    monkeypatch.setenv("VOXBRIDGE_AGENTS_DIR", "by-setting")
    assert run("ls").output.startswith("There are no agents in by-setting.")
    assert run("ls", "--folder", "elsewhere").output.startswith("There are no agents in elsewhere.")


def test_agents_without_pipelines_are_listed_too(folder: Path) -> None:
    (folder / "a.yaml").write_text("role: x\n")
    assert run("ls").output.endswith("There are no pipelines.\n")


def test_an_agent_is_shown_as_its_model_gets_it(team: Path) -> None:
    output = run("show", "desk").output
    told = """
What the model is told
  Be brief.
  
  --- Agent Identity ---
  Role: Front desk

handoff_conversation(target: sales)
"""  # noqa: W293 - an empty line of the prompt
    assert told in output
    assert "  - sales: Sells [red]bikes[/red].\n" in output
    for line in ("models    gemini:gemini-3.8-live", "voice     Kore", "functions all", "recorded  as the installation says"):
        assert line in output.splitlines()


def test_an_agent_without_handoffs_and_prompt_is_shown_as_it_is(team: Path) -> None:
    output = run("show", "plain").output
    assert "handoff_conversation" not in output
    assert "  Only what every agent is told.\n" in output
    assert "functions none" in output
    output = run("show", "sales").output
    for line in ("functions price", "also      web search", "recorded  no", "greeting  Hi!"):
        assert line in output.splitlines()


def test_a_pipeline_is_shown_with_its_stages_and_each_agent_as_it_is_there(team: Path) -> None:
    output = run("show", "line").output
    assert output.startswith("line From hello to sold.\n")
    assert [line.split() for line in output.splitlines()[1:4]] == [
        ["phase", "agent", "goes", "on", "to"],
        ["desk", "desk", "deal"],
        ["deal", "sales", "the", "end"],
    ]
    assert "Nobody hands back." in output
    assert output.count("What the model is told") == 2
    assert output.count("handoff_conversation(") == 1
    text = (team / "pipelines" / "line.yaml").read_text().replace("hand_back: false\n", "")
    (team / "pipelines" / "line.yaml").write_text(text)
    assert "handoff_conversation(target: desk)" in run("show", "line").output


def test_nobody_of_a_name_is_one_line_and_exit_code_1(team: Path) -> None:
    result = run("show", "dsek")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "There is no agent and no pipeline with the name 'dsek'. Did you mean desk?\n"


def test_check_says_every_mistake_on_a_line_of_its_own(team: Path) -> None:
    (team / "desk.yaml").write_text("promt: x\nvoice: []\n")
    (team / "pipelines" / "line.yaml").write_text("stages: []\n")
    result = run("check")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "agents/desk.yaml:1: `promt` is not a field of an agent. Did you mean prompt?",
        "agents/desk.yaml:2: `voice` must be text; it is a list.",
        "agents/pipelines/line.yaml:1: `stages` must be a list of stages, at least one.",
    ]
    assert result.stderr.startswith("New sessions keep the agents of the last good files")


@pytest.mark.parametrize("command", [("ls",), ("show", "sales")])
def test_with_a_mistake_in_the_files_the_other_commands_say_it_too(team: Path, command: tuple[str, ...]) -> None:
    (team / "desk.yaml").write_text("voice: []\n")
    result = run(*command)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "agents/desk.yaml:1: `voice` must be text; it is a list.\n"


def test_check_says_that_all_is_right(team: Path, tmp_path: Path) -> None:
    assert run("check").output == "agents: 3 agents and 1 pipeline, all right.\n"
    shipped = ROOT / "agents"
    agents, pipelines = (len([*folder.glob("*.yaml")]) for folder in (shipped, shipped / "pipelines"))
    assert run("check", str(shipped)).output == f"{shipped}: {agents} agents and {pipelines} pipelines, all right.\n"
    assert run("check", str(team / "pipelines")).exit_code == 1
    (tmp_path / "none").mkdir()
    assert run("check", "none").output == "none: no agents.\n"


def test_check_of_a_folder_that_is_not_there_is_refused(folder: Path) -> None:
    result = run("check", "nowhere")
    assert (result.exit_code, "'nowhere' does not exist" in result.stderr) == (2, True)


@pytest.mark.parametrize("command", [(), ("show",), ("check",)])
def test_help_has_examples(command: tuple[str, ...]) -> None:
    output = run(*command, "--help").output
    assert "Examples:\n" in output
    assert f"voxbridge agents {' '.join(command)}".strip() in output

"""Agents' instructions about themselves and each other, the team of a session, and changes of their files."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from voxbridge.shared.agents import files as agents_files
from voxbridge.shared.agents.files import SCAN_EVERY_S, Agents
from voxbridge.shared.agents.model import HANDOFF, Agent, Pipeline, Roster, Stage, handoff_function, identity, instructions, nearest
from voxbridge.shared.errors import Code, VoxbridgeError

TWO = {"a.yaml": "role: First\n", "b.yaml": "role: Second\n"}
DESK = Agent(name="desk", role="Front desk", description="Finds out what it is about.", prompt="Be brief.\n", handoffs=("sales", "repairs"))
SALES = Agent(name="sales", role="Sales", handoffs=("desk",))
REPAIRS = Agent(name="repairs")
LONER = Agent(name="loner", description="Works alone.")
LINE = Pipeline(
    name="line",
    stages=(
        Stage(phase="greet", agent="desk", next=("sell", "mend")),
        Stage(phase="sell", agent="sales", next=("close",)),
        Stage(phase="mend", agent="repairs", next=("close",)),
        Stage(phase="close", agent="desk"),
    ),
)


def roster(*pipelines: Pipeline) -> Roster:
    return Roster(agents=(DESK, LONER, REPAIRS, SALES), pipelines=pipelines)


def targets(agent: Agent, others: tuple[Agent, ...]) -> list[str]:
    function = handoff_function(agent, others)
    return function.parameters["properties"]["target"]["enum"] if function else []


def test_an_agent_knows_what_its_file_says_of_it() -> None:
    assert identity(DESK).splitlines() == ["--- Agent Identity ---", "Role: Front desk", "Description: Finds out what it is about."]
    assert identity(Agent(name="a", scope="Bikes only.")) == "--- Agent Identity ---\nScope: Bikes only."


def test_an_agent_without_role_description_and_scope_has_no_identity() -> None:
    assert identity(Agent(name="a", prompt="Be kind.")) == ""


def test_the_model_is_told_the_prompt_and_then_the_identity() -> None:
    assert instructions(DESK) == f"Be brief.\n\n{identity(DESK)}"
    assert instructions(SALES) == identity(SALES)
    assert instructions(Agent(name="a", prompt="Be kind.")) == "Be kind."
    assert instructions(Agent(name="a")) == ""


def test_the_handoff_function_takes_only_targets_that_the_agent_has_and_that_are_there() -> None:
    assert targets(DESK, (DESK, REPAIRS, SALES, LONER)) == ["repairs", "sales"]
    assert targets(DESK, (DESK, SALES)) == ["sales"]
    function = handoff_function(DESK, (SALES, REPAIRS))
    assert function is not None
    assert function.name == HANDOFF == "handoff_conversation"
    assert function.parameters["required"] == ["target", "reason"]
    assert set(function.parameters["properties"]) == {"target", "reason", "summary"}
    assert function.parameters["additionalProperties"] is False


def test_the_handoff_function_says_what_each_target_is_for() -> None:
    wordy = Agent(name="desk", handoffs=("sales", "repairs", "loner"))
    function = handoff_function(wordy, (SALES, REPAIRS, LONER))
    assert function is not None
    assert function.description.splitlines()[1:] == ["- sales: Sales", "- repairs: no description", "- loner: Works alone."]


def test_there_is_no_handoff_function_without_a_target() -> None:
    assert handoff_function(LONER, (LONER, SALES)) is None
    assert handoff_function(Agent(name="a", handoffs=("a",)), (Agent(name="a"),)) is None


def test_the_cast_of_an_agent_is_itself_and_whoever_can_be_reached() -> None:
    team = roster().team("desk")
    assert [agent.name for agent in team.agents] == ["desk", "sales", "repairs"]
    assert team.pipeline == ""
    assert team.find("sales") is SALES
    assert team.find("loner") is None
    assert roster().team("loner").agents == (LONER,)


def test_agents_that_hand_over_in_a_circle_are_each_in_the_cast_once() -> None:
    a, b, c = (Agent(name=name, handoffs=(after,)) for name, after in (("a", "b"), ("b", "c"), ("c", "a")))
    assert Roster(agents=(a, b, c)).team("b").agents == (b, c, a)


def test_in_a_pipeline_agents_hand_over_to_the_next_stages_and_back_to_where_they_came_from() -> None:
    team = roster(LINE).team("line")
    assert team.pipeline == "line"
    assert {agent.name: agent.handoffs for agent in team.agents} == {
        "desk": ("sales", "repairs"),
        "sales": ("desk",),
        "repairs": ("desk",),
    }
    assert team.agents[0].name == "desk"


def test_without_hand_back_there_is_no_way_back() -> None:
    line = Pipeline(name="line", hand_back=False, stages=(Stage(phase="a", agent="desk", next=("b",)), Stage(phase="b", agent="sales")))
    team = roster(line).team("line")
    assert [(agent.name, agent.handoffs) for agent in team.agents] == [("desk", ("sales",)), ("sales", ())]


def test_the_stages_replace_what_the_files_of_the_agents_say() -> None:
    line = Pipeline(name="line", stages=(Stage(phase="a", agent="loner", next=("b",)), Stage(phase="b", agent="desk")))
    team = roster(line).team("line")
    assert [(agent.name, agent.handoffs) for agent in team.agents] == [("loner", ("desk",)), ("desk", ("loner",))]
    assert team.agents[0].description == LONER.description


def test_an_agent_with_two_stages_in_a_row_does_not_hand_over_to_itself() -> None:
    line = Pipeline(name="line", stages=(Stage(phase="a", agent="desk", next=("b",)), Stage(phase="b", agent="desk")))
    assert [(agent.name, agent.handoffs) for agent in roster(line).team("line").agents] == [("desk", ())]


def test_nobody_of_a_name_is_said_with_the_nearest_name_there_is() -> None:
    with pytest.raises(VoxbridgeError, match=r"'repair'\. Did you mean repairs") as caught:
        roster(LINE).team("repair")
    assert (caught.value.code, caught.value.field) == (Code.NOT_FOUND, "agent")
    with pytest.raises(VoxbridgeError) as long:
        roster().team("x" * 10_000)
    assert len(long.value.message) < 200


def test_a_word_like_none_of_the_known_ones_gets_no_suggestion() -> None:
    assert nearest("prompt", ()) == ""
    assert nearest("qqq", ("prompt", "voice")) == ""
    assert nearest("promt", ("prompt", "voice")) == " Did you mean prompt?"


class Watched:
    """A folder with its reader, and a clock of the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now = 100.0
        self.agents = Agents(folder, monotonic=lambda: self.now)
        self._written = 0

    def write(self, files: dict[str, str]) -> None:
        """Write files, each with a different modification time."""
        for name, text in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            self._written += 1
            os.utime(path, ns=(0, self._written * 1_000_000_000))

    def names(self, after_s: float = SCAN_EVERY_S) -> list[str]:
        self.now += after_s
        return [agent.name for agent in self.agents.current().agents]


@pytest.fixture
def watched(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Watched:
    caplog.set_level(logging.INFO, "voxbridge.shared.agents.files")
    folder = Watched(tmp_path / "agents")
    folder.write(TWO)
    return folder


def test_a_file_that_comes_goes_or_changes_is_there_for_the_next_session(watched: Watched) -> None:
    assert watched.names() == ["a", "b"]
    watched.write({"c.yaml": "role: x\n"})
    assert watched.names() == ["a", "b", "c"]
    (watched.folder / "b.yaml").unlink()
    assert watched.names() == ["a", "c"]
    watched.write({"c.yaml": "name: z\n"})
    assert watched.names() == ["a", "z"]
    watched.write({"pipelines/p.yaml": "stages: [{phase: one, agent: a}]\n"})
    watched.names()
    assert watched.agents.current().pipelines[0].name == "p"
    (watched.folder / "pipelines/p.yaml").unlink()
    watched.names()
    assert watched.agents.current().pipelines == ()


def test_the_files_are_looked_at_once_a_second_at_most(watched: Watched) -> None:
    assert watched.names() == ["a", "b"]
    watched.write({"c.yaml": "role: x\n"})
    assert watched.names(after_s=0.99) == ["a", "b"]
    assert watched.names(after_s=0.01) == ["a", "b", "c"]


def test_nothing_is_read_while_nothing_changes(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    first = watched.agents.current()
    monkeypatch.setattr(agents_files, "load", None)
    assert watched.names() == ["a", "b"]
    assert watched.agents.current() is first


def test_a_file_put_in_place_of_another_is_seen_even_with_the_same_size_and_time(watched: Watched) -> None:
    watched.names()
    before = (watched.folder / "a.yaml").stat()
    new = watched.folder / "a.tmp"
    new.write_text("role: Fresh\n")
    os.utime(new, ns=(before.st_atime_ns, before.st_mtime_ns))
    new.replace(watched.folder / "a.yaml")
    watched.names()
    assert watched.agents.current().agents[0].role == "Fresh"


def test_broken_files_keep_the_last_good_agents_and_are_told_once(watched: Watched, caplog: pytest.LogCaptureFixture) -> None:
    good = watched.agents.current()
    watched.write({"a.yaml": "rolle: x\n"})
    for _ in range(3):
        watched.names()
        assert watched.agents.current() is good
    (problem,) = watched.agents.problems
    assert (problem.line, problem.field) == (1, "rolle")
    assert [record.levelname for record in caplog.records] == ["INFO", "ERROR"]
    assert f"{watched.folder}/a.yaml:1: `rolle` is not a field of an agent" in caplog.text
    watched.write({"a.yaml": "rolle: y\n"})
    watched.names()
    assert [record.levelname for record in caplog.records] == ["INFO", "ERROR", "ERROR"]
    watched.write({"a.yaml": "role: Third\n"})
    assert watched.names() == ["a", "b"]
    assert watched.agents.problems == ()
    assert watched.agents.current().agents[0].role == "Third"


def test_files_that_are_broken_from_the_start_give_no_agents(watched: Watched) -> None:
    watched.write({"a.yaml": "["})
    assert watched.names() == []
    assert len(watched.agents.problems) == 1


def test_a_folder_that_is_gone_keeps_its_agents_until_it_is_back(watched: Watched) -> None:
    assert watched.names() == ["a", "b"]
    away = watched.folder.rename(watched.folder.with_name("away"))
    assert watched.names() == ["a", "b"]
    assert [str(problem) for problem in watched.agents.problems] == [f"{watched.folder}: The folder is gone."]
    away.rename(watched.folder)
    (watched.folder / "a.yaml").unlink()
    assert watched.names() == ["b"]
    assert watched.agents.problems == ()


def test_a_folder_that_is_emptied_has_no_agents(watched: Watched) -> None:
    assert watched.names() == ["a", "b"]
    for name in TWO:
        (watched.folder / name).unlink()
    assert watched.names() == []
    assert watched.agents.problems == ()


def test_a_folder_that_comes_later_is_read(tmp_path: Path) -> None:
    watched = Watched(tmp_path / "agents")
    assert watched.names() == []
    assert watched.agents.problems == ()
    watched.write(TWO)
    assert watched.names() == ["a", "b"]

"""Fields of an agent for what goes on beside its talking: tasks that it starts with, and words that its recogniser is told."""

from __future__ import annotations

from pathlib import Path

from tests.shared.agents.test_reading import agent_of, problem_of
from voxbridge.shared.agents.reading import STARTS_LIMIT, VOCABULARY_LIMIT


def test_an_agent_starts_with_few_functions_among_its_tools(tmp_path: Path) -> None:
    starts = "starts: [a, b, c, d"
    assert len(agent_of(tmp_path, f"{starts}]\n").starts) == STARTS_LIMIT
    assert problem_of(tmp_path, f"{starts}, e]\n") == "x.yaml:1: `starts` has 5 elements; at most 4 are taken."
    problem = problem_of(tmp_path, "tools: [a]\nstarts:\n  - b\n")
    assert problem == "x.yaml:3: `starts[0]` names b, which is not among its `tools`. Add it there."


def test_a_vocabulary_has_so_many_words_of_a_length_and_is_for_a_recogniser(tmp_path: Path) -> None:
    words = [f"w{number}" for number in range(VOCABULARY_LIMIT)]
    assert agent_of(tmp_path, f"vocabulary: {words}\n").vocabulary == tuple(words)
    assert problem_of(tmp_path, f"vocabulary: {[*words, 'more']}\n") == "x.yaml:1: `vocabulary` has 33 elements; at most 32 are taken."
    assert agent_of(tmp_path, f"vocabulary: [{'x' * 64}]\n").vocabulary == ("x" * 64,)
    assert "at most 64 characters" in problem_of(tmp_path, f"vocabulary: [{'x' * 65}]\n")
    problem = problem_of(tmp_path, "model: gemini\nvocabulary: [a]\n")
    assert problem == "x.yaml:2: `vocabulary` does not go with `model`, which hears itself: it is for the recogniser of `stt`."

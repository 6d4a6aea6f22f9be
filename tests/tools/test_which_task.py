"""The tasks that are meant: never another one than was described."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxbridge.services.tools.packs.catalogue.which_task import chosen, means_all, names
from voxbridge.shared.agents.tasks import OpenTask

MINUTE = 60_000_000


def timer(task_id: str, minutes: float, label: str = "") -> OpenTask:
    """Return a timer that runs."""
    return OpenTask(task_id=task_id, function="set_timer", state="scheduled", called_at=0, label=label, due_at=round(minutes * MINUTE))


TEA, FIVE, TEN, CHAI, OCHA = (timer("tea", 4, "tea"), timer("5", 5), timer("10", 10), timer("чай", 3, "чай"), timer("お茶", 2, "お茶"))
SECOND = timer("5b", 5)
IMPORT = OpenTask(task_id="import", function="ingest_to_kg", state="running", called_at=0)
MACRO = OpenTask(task_id="macro", function="run_macro", state="running", called_at=0, label="good night")


@pytest.mark.parametrize(
    ("said", "tasks", "meant"),
    [
        ("the five minute timer", [FIVE, TEN], ["5"]),
        ("cancel the 10-minute timer", [FIVE, TEN], ["10"]),
        ("the ten minute timer", [FIVE], []),
        ("the pasta timer", [FIVE], []),
        ("the pasta timer", [FIVE, TEN], []),
        ("pasta", [TEA, IMPORT], []),
        ("the timer", [TEA, FIVE, IMPORT], ["tea", "5"]),
        ("timer", [FIVE, IMPORT], ["5"]),
        ("", [FIVE, TEN], ["5", "10"]),
        ("the first one", [FIVE, TEN], ["5"]),
        ("the second timer", [IMPORT, FIVE, TEN], ["10"]),
        ("the last timer", [FIVE, TEN, IMPORT], ["10"]),
        ("the third timer", [FIVE, TEN], []),
        ("the second five minute timer", [FIVE, TEN, SECOND], ["5b"]),
        ("all timers", [TEA, FIVE, IMPORT], ["tea", "5"]),
        ("everything", [TEA, IMPORT], ["tea", "import"]),
        ("the tee timer", [TEA, CHAI], []),
        ("the tea timer please", [TEA, FIVE], ["tea"]),
        ("the good nite macro", [MACRO, IMPORT], ["macro"]),
        ("the ingest", [MACRO, IMPORT], ["import"]),
        ("таймер чай", [CHAI, OCHA, FIVE], []),
        ("чай", [CHAI, OCHA, FIVE], ["чай"]),
        ("お茶のタイマー", [CHAI, OCHA, FIVE], ["お茶"]),
        ("10", [FIVE, TEN], ["10"]),
    ],
)
def test_what_a_description_fits_is_meant_and_nothing_else(said: str, tasks: list[OpenTask], meant: list[str]) -> None:
    assert [task.task_id for task in chosen(said, tasks)] == meant


def test_tasks_are_named_so_that_they_can_be_told_apart() -> None:
    tasks = [FIVE, SECOND, TEN, TEA, timer("x", 90), timer("y", 1), IMPORT]
    assert names(tasks) == [
        "the first 5 minute timer",
        "the second 5 minute timer",
        "the 10 minute timer",
        "the tea timer",
        "the 1 hour and 30 minute timer",
        "the 1 minute timer",
        "the ingest to kg",
    ]


@given(
    st.lists(
        st.tuples(st.sampled_from(["", "tea", "rice", "дом", "茶", "cancel_task tea", "the task"]), st.integers(min_value=1, max_value=90)),
        min_size=1,
        max_size=8,
    )
)
def test_each_name_means_its_own_task(made: list[tuple[str, int]]) -> None:
    tasks = [timer(f"t{place}", minutes, label) for place, (label, minutes) in enumerate(made)]
    for name, task in zip(names(tasks), tasks, strict=True):
        assert chosen(name, tasks) == chosen(name.removeprefix("the "), tasks) == [task]


@pytest.mark.parametrize(
    ("said", "every"), [("all timers", True), ("cancel everything", True), ("both", True), ("the call timer", False), ("", False)]
)
def test_all_is_heard(said: str, every: bool) -> None:
    assert means_all(said) is every

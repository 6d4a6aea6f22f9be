"""`/api/vox/tours`: the tours of this installation."""

from __future__ import annotations

from pathlib import Path

from tests.gateway.conftest import Running
from voxbridge.shared.config import Config
from voxbridge.shared.tours import library


async def test_tours_are_listed_and_read_one_by_one(running: Running) -> None:
    known = library.load(Path(Config().tours_dir))
    listed = (await running.get("/api/vox/tours")).json()
    assert listed["count"] == len(known) == len(listed["tours"])
    for one in listed["tours"]:
        tour = known[one["page"]]
        assert (one["name"], one["description"], one["step_count"]) == (tour.name, tour.description, len(tour.steps))
        assert (await running.get(f"/api/vox/tours/{one['page']}")).json() == library.as_data(tour)


async def test_a_page_without_a_tour_is_not_found(running: Running) -> None:
    answer = await running.get("/api/vox/tours/kitchen")
    assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (404, "NOT_FOUND", "page")
    assert "/api/vox/tours" in answer.json()["message"]

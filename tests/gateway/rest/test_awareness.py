"""Reports of what the user does on a page, over HTTP and over the socket: shown as agents are told them, and switched off."""

from __future__ import annotations

from pathlib import Path

from tests.awareness.serving import serving
from tests.eventually import eventually
from tests.gateway.conftest import Running
from tests.gateway.rest.test_config import ask
from voxbridge.shared.awareness.prompt import OPENING
from voxbridge.shared.awareness_client import AWAY
from voxbridge.shared.bus import subjects
from voxbridge.shared.config import Config
from voxbridge.shared.errors import Code
from voxbridge.shared.events.gateway import PageVisited

PATH = "/api/vox/awareness"


async def test_reports_are_shown_as_agents_are_told_them_and_a_source_is_switched_off(
    running: Running, nats_url: str, redis_url: str, tmp_path: Path
) -> None:
    away = await ask(running, "GET", PATH)
    assert (away.status_code, away.json()["code"], away.json()["message"]) == (503, Code.UNAVAILABLE, AWAY)
    visit = {"event_type": "page_visit", "page": "https://ada:pw@h.test/orders?token=planted", "metadata": {"title": "Orders"}}
    first = await ask(running, "POST", PATH, json=visit)
    assert first.status_code == 200
    assert first.json()["recorded"]
    assert first.json()["visit_id"]
    error = {"event_type": "error", "error_type": "TypeError", "message": "x is undefined", "page": "/orders"}
    met = (await ask(running, "POST", PATH, json=error)).json()
    async with serving(Config(nats_url=nats_url, redis_url=redis_url, data_dir=tmp_path)):
        await eventually(lambda: _is_told(running))  # the service begins with what was reported before
        shown = (await ask(running, "GET", PATH)).json()
        assert shown["prompt"].startswith(OPENING)
        assert "planted" not in shown["prompt"]
        assert [(one["page"], one["title"]) for one in shown["recent_pages"]] == [("https://h.test/orders", "Orders")]
        assert [one["error_id"] for one in shown["unresolved_errors"]] == [met["error_id"]]
        assert shown["page_stats"] == {"https://h.test/orders": 1}
        assert (await ask(running, "DELETE", f"{PATH}/errors/{met['error_id']}")).status_code == 204
        assert (await ask(running, "GET", PATH)).json()["unresolved_errors"] == []
        off = (await ask(running, "PUT", f"{PATH}/sources/pages", json={"on": False})).json()
        assert off == {"sources": {"pages": False, "errors": True, "context": True}}
        assert (await ask(running, "POST", PATH, json=visit)).json() == {"success": True, "recorded": False}
        shown = (await ask(running, "GET", PATH)).json()
        assert (shown["prompt"], shown["recent_pages"], shown["page_stats"]) == ("", [], {})


async def _is_told(running: Running) -> bool:
    return (await ask(running, "GET", PATH)).status_code == 200


async def test_a_report_that_is_none_names_its_field(running: Running) -> None:
    for body, field in (
        ({"event_type": "party"}, "event_type"),
        ({"event_type": "page_visit"}, "page"),
        ({"event_type": "error", "error_type": "E"}, "message"),
        ({"event_type": "context", "key": "k" * 2_049}, "key"),
        ({"event_type": "page_visit", "page": "/", "session": "x"}, "session"),
    ):
        answer = await ask(running, "POST", PATH, json=body)
        assert (answer.status_code, answer.json()["field"]) == (422, field)


async def test_a_page_reports_over_its_socket_into_the_log_of_its_account_and_not_of_the_call(running: Running) -> None:
    log = running.gateway.log
    async with running.client() as client:
        await client.say({"type": "start", "mode": "echo"})  # no worker takes it, and the report need not wait for one
        await client.say({"type": "awareness", "event_type": "page_visit", "page": "/tools?secret=planted", "title": "Tools"})

        async def there() -> bool:
            return bool([one async for one in log.read_all(subjects.awareness_log("local"))])

        await eventually(there)
        (one,) = [one async for one in log.read_all(subjects.awareness_log("local"))]
        assert isinstance(one.event, PageVisited)
        sid = one.event.session
        assert (one.event.page, one.event.title) == ("/tools", "Tools")
        first = (await log.read(sid, limit=1))[0]
        assert first.type == "session.requested"
        await client.say({"type": "awareness", "event_type": "party"})
        assert (await client.until("error"))["field"] == "event_type"
    assert not [one for one in [one async for one in log.read_all(sid)] if one.type == "page.visited"]

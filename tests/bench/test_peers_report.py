"""Report of the comparison."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from bench import figures
from bench.clients.client import EchoResult
from bench.peers import report, results
from bench.peers.__main__ import chosen, main
from bench.peers.handoff import Handoffs
from bench.peers.plot import draw
from bench.peers.results import Absent, Comparison, Measured, judged


def trip(sessions: int, cpu: float, *, p99: float = 5.0, lost: int = 0) -> EchoResult:
    return EchoResult(
        sessions=sessions,
        frames=1_000,
        rate=1_000.0,
        lost=lost,
        rtt_ms=figures.series([1.0] * 500 + [p99] * (500 - lost), lost=lost),
        late_ms=figures.series([0.1]),
        cpu_us={"one": cpu / 2, "other": cpu / 2},
        client_cpu=0.1,
    )


def measured(name: str, cpu: float, *rungs: EchoResult, handoffs: Handoffs | None = None, failed: str = "") -> Measured:
    return Measured(
        name=name,
        title=name.title(),
        version="1.2",
        sdk="3.4.0",
        python="3.11.7",
        settings="as it comes",
        side=[] if failed else [trip(20, cpu), trip(20, cpu * 2), trip(20, cpu / 2)],
        rungs=list(rungs),
        handoffs=handoffs,
        no_handoff="" if handoffs else "it has none",
        failed=failed,
    )


def ours(*rungs: EchoResult) -> Measured:
    done = Handoffs(ms=[11.0, 15.0, 13.0], stand_in_ms=[2.0, 4.0, 3.0], plain=2, plain_kept=2, unresumable=1, unresumable_kept=1, failed=[])
    return measured("voxbridge", 300.0, *(rungs or (trip(50, 280.0), trip(75, 250.0), trip(100, 200.0, lost=50))), handoffs=done)


PIPECAT = measured("pipecat", 700.0, trip(25, 700.0), trip(50, 380.0, lost=500))
RELAY = measured("relay", 250.0, trip(50, 280.0))
GONE = Absent(name="roomkit", title="RoomKit", version="0.1", error="it needs Python 3.12 or later, and none can be had here")


def comparison(*systems: Measured, absent: tuple[Absent, ...] = (), quick: bool = False) -> Comparison:
    return Comparison(
        taken_at="2026-01-02T03:04:05+00:00",
        quick=quick,
        machine={"cores": 2, "cpu": "a processor", "memory_gib": 8, "system": "Linux"},
        load_before=0.1,
        load_after=1.2,
        sessions=20,
        one_core=True,
        noisy=[],
        systems=list(systems),
        absent=list(absent),
        figures=judged(list(systems), list(absent), quick=quick),
    )


def figure(found: Comparison, begins: str) -> tuple[float | None, bool | None, str]:
    one = next(figure for figure in found.figures if figure.what.startswith(begins))
    return one.value, one.met, one.note


def test_the_product_is_set_against_pipecat_with_as_many_sessions_of_each() -> None:
    value, met, note = figure(comparison(ours(), RELAY, PIPECAT), "CPU per frame, 20 sessions each, in those of Pipecat")
    assert value == pytest.approx(300 / 700)
    assert (met, note) == (True, "")


def test_a_share_above_the_target_is_missed() -> None:
    cheaper = measured("pipecat", 500.0, trip(10, 500.0))
    value, met, _ = figure(comparison(ours(), cheaper), "CPU per frame, 20 sessions each, in those of Pipecat")
    assert value == pytest.approx(0.6)
    assert met is False


def test_a_target_against_a_peer_that_is_missing_or_failed_is_missed_and_says_why() -> None:
    absent = Absent(name="pipecat", title="Pipecat", version="1", error="no network")
    what = "CPU per frame in those of Pipecat"
    assert figure(comparison(ours(), absent=(absent,)), what)[1:] == (False, "it could not be measured: no network")
    failed = measured("pipecat", 0.0, failed="with 20 sessions: it said nothing")
    why = "it could not be measured: with 20 sessions: it said nothing"
    assert figure(comparison(ours(), failed), what)[1:] == (False, why)


def test_a_peer_that_was_not_asked_for_is_no_target() -> None:
    assert not [one for one in comparison(ours(), RELAY).figures if "pipecat" in one.what.lower()]


def test_sessions_a_core_end_before_the_first_that_were_not_held() -> None:
    found = comparison(ours())
    assert figure(found, "sessions of the product on one core") == (75, True, "")
    assert report.held(found.systems[0]) == "75 (at 100: 5% lost)"
    assert report.held(measured("x", 1.0, trip(10, 1.0))) == "20 (not tried above)"
    assert report.held(measured("x", 1.0, trip(10, 1.0), trip(25, 1.0, p99=600.0))) == "20 (at 25: p99 600 ms)"


def test_a_quick_run_has_no_target_for_rungs_that_it_does_not_try() -> None:
    assert figure(comparison(ours(trip(50, 280.0)), quick=True), "sessions of the product")[1] is None


def test_a_handoff_is_given_raw_and_that_it_lost_the_history_is_said() -> None:
    found = ours()
    assert figure(comparison(found), "handoff in the product") == (13.0, None, "3 calls, history kept in all")
    found.handoffs = Handoffs(ms=[9.0], stand_in_ms=[2.0], plain=0, plain_kept=0, unresumable=1, unresumable_kept=0, failed=[])
    assert figure(comparison(found), "handoff in the product") == (9.0, None, "1 calls, history kept in not all")


@pytest.mark.parametrize(("bare_ms", "met"), [(8.0, True), (7.9, False)])
def test_a_handoff_may_take_five_ms_more_than_on_the_bare_sdk(bare_ms: float, met: bool) -> None:
    bare = measured(
        "relay",
        250.0,
        handoffs=Handoffs(ms=[bare_ms], stand_in_ms=[2.0], plain=1, plain_kept=1, unresumable=0, unresumable_kept=0, failed=[]),
    )
    one = next(one for one in comparison(ours(), bare).figures if one.key == "peers.handoff")
    assert (one.value, one.baseline, one.beside, one.met) == (13.0, bare_ms, "the bare SDK", met)


def test_every_system_and_every_missing_peer_has_a_row() -> None:
    failed = measured("livekit", 0.0, failed="it did not start: no port")
    rows = report.system_rows(comparison(ours(), RELAY, PIPECAT, failed, absent=(GONE,)))
    assert [row[0] for row in rows] == [
        "Voxbridge 1.2",
        "Relay 1.2",
        "Pipecat 1.2",
        "Livekit 1.2; failed it did not start: no port",
        "RoomKit 0.1",
    ]
    assert all(len(row) == len(report.SYSTEMS) for row in rows)
    assert rows[0][1:6] == ("1 ms / 5 ms", "0", "300 µs", "1.20 ×", "75 (at 100: 5% lost)")
    assert rows[0][6:] == ("13 ms (11.0-15.0)", "2 of 2", "1 of 1")
    assert rows[4][1] == f"not measured: {GONE.error}"


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    found = comparison(ours(), PIPECAT, absent=(GONE,))
    results.save(found, tmp_path / "peers.json")
    assert report.as_markdown(results.load(tmp_path / "peers.json")) == report.as_markdown(found)


def test_a_picture_is_drawn_of_whatever_was_measured(tmp_path: Path) -> None:
    draw(comparison(ours(), measured("livekit", 0.0, failed="it did not start")), tmp_path / "peers.png")
    assert (tmp_path / "peers.png").stat().st_size > 10_000
    assert (tmp_path / "peers.svg").exists()


def test_peers_are_named_with_commas_and_an_unknown_one_is_refused() -> None:
    assert chosen("") == ("pipecat", "roomkit", "livekit")
    assert chosen("livekit, pipecat,livekit") == ("livekit", "pipecat")
    with pytest.raises(click.BadParameter, match="vapi: there are pipecat, roomkit, livekit"):
        chosen("vapi")


def test_without_a_last_run_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results.load, "__defaults__", (tmp_path / "none.json",))
    ran = CliRunner().invoke(main, ["--markdown"])
    assert (ran.exit_code, ran.output) == (1, "Error: There are no results yet: run `make bench-peers`.\n")

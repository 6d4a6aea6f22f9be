"""`python -m bench`: measure, print one table beside the baseline of the same run, write bench/out/, fail when a target is missed."""

from __future__ import annotations

import re
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import click
import msgspec
import uvloop
from rich.console import Console

from bench import machine, pages, report
from bench.areas.agents import agents
from bench.areas.appends import appends
from bench.areas.at_rest import at_rest
from bench.areas.audio import Found, audio, memory, sessions
from bench.areas.awareness import awareness
from bench.areas.barge_in import barge_in
from bench.areas.choices import choices
from bench.areas.doors import doors
from bench.areas.embedded import embedded
from bench.areas.first_answers import first_answers
from bench.areas.functions import functions
from bench.areas.gateway_back import gateway_back
from bench.areas.handlers import handlers
from bench.areas.kills import kills
from bench.areas.knowledge import knowledge
from bench.areas.live_calls import live_calls
from bench.areas.local_model import busy, warm
from bench.areas.log import log
from bench.areas.long_call import long_call
from bench.areas.macros import macros
from bench.areas.many_calls import many_calls
from bench.areas.mcp import mcp
from bench.areas.officer import officer
from bench.areas.page_functions import page_functions
from bench.areas.past import past
from bench.areas.realtime import realtime
from bench.areas.resumes import resumes
from bench.areas.speech import rehearse, speech
from bench.areas.spoken_names import spoken_names
from bench.areas.starts import starts
from bench.areas.takeovers import takeovers
from bench.areas.talking import talking
from bench.areas.terminals import terminals
from bench.peers import plot as peers_plot
from bench.peers import results as peers_results
from bench.peers.catalogue import PEERS
from bench.peers.measure import compare
from bench.plot import PICTURE, draw
from bench.report import Figure, Results
from bench.stack import FULL, Stack, StackError, stack

Area = Callable[[bool, Callable[[str], None]], Awaitable[Found]]


async def peers(quick: bool, say: Callable[[str], None]) -> Found:
    """Run the comparison with Pipecat, RoomKit, LiveKit and the bare SDK as an area."""
    found = await compare(tuple(PEERS), quick=quick, say=lambda text: say(f"peers: {text}"))
    # The areas before this one raise the load average, so that note is dropped here; the run itself reports its load at the start.
    return found.figures, msgspec.to_builtins(found, str_keys=True), [why for why in found.noisy if "load average" not in why]


Talking = Callable[[Stack, bool, Callable[[str], None]], Awaitable[Found]]

ALONE: Final[Mapping[str, Area]] = {
    "audio": audio,
    "sessions": sessions,
    "realtime": realtime,
    "live_calls": live_calls,
    "memory": memory,
    "talking": talking,
    "appends": appends,
    "functions": functions,
    "mcp": mcp,
    "handlers": handlers,
    "page_functions": page_functions,
    "macros": macros,
    "agents": agents,
    "knowledge": knowledge,
    "log": log,
    "awareness": awareness,
    "terminals": terminals,
    "resumes": resumes,
    "takeovers": takeovers,
    "gateway_back": gateway_back,
    "at_rest": at_rest,
    "past": past,
    "many_calls": many_calls,
    "long_call": long_call,
    "barge_in": barge_in,
    "embedded": embedded,
    "first_answers": first_answers,
    "warm": warm,
    "choices": choices,
    "officer": officer,
    "spoken_names": spoken_names,
    "peers": peers,
    "doors": doors,
    "kills": kills,
    "busy": busy,
}
"""Areas that start what they need. Those that load the machine come last, so that they do not disturb the others."""

TOGETHER: Final[Mapping[str, Talking]] = {"starts": starts, "speech": speech}
"""Areas that share one product with its models loaded, started once."""

AREAS: Final = (*ALONE, *TOGETHER)

FAILED_LIMIT: Final = 120
"""Maximum length of the reason why an area failed, in characters."""


def _failed(area: str, error: Exception) -> Figure:
    """Return the row of an area that could not be measured. It may be published, so paths of this machine are removed."""
    lines = str(error).splitlines() or [type(error).__name__]
    why = re.sub(r"(?<![\w.:/])/[\w./-]+", "…", lines[0])[:FAILED_LIMIT]
    return Figure(area=area, what=area, unit="", value=None, target=0, note=f"failed: {why}")


async def measure(areas: tuple[str, ...], *, quick: bool, say: Callable[[str], None]) -> Results:
    """Measure every figure of these areas. An area that fails counts as a missed target, and the run goes on."""
    before = machine.load_average()
    figures: list[Figure] = []
    detail: dict[str, Any] = {}
    noisy = [f"load average {before:.2f} before the run"] if machine.busy(before) else []

    async def take(name: str, found: Awaitable[Found]) -> None:
        try:
            taken, about, noise = await found
        except Exception as error:  # noqa: BLE001 - what is wrong with one area must not lose the others' hour
            traceback.print_exc()
            figures.append(_failed(name, error))
            return
        figures.extend(taken)
        for one in taken:
            say(f"{name}: {one.what}: {'no figure' if one.value is None else report.shown(one.value, one.unit)}")
        noisy.extend(noise)
        if about:
            detail[name] = about

    for name, area in ALONE.items():
        if name in areas:
            await take(name, area(quick, say))
    talking = [name for name in TOGETHER if name in areas]
    if talking:
        say("starting the product with its models")
        try:
            async with stack(FULL) as product:
                for name in talking:
                    say("the language model reads its standing prompt")
                    await rehearse(product)
                    await take(name, TOGETHER[name](product, quick, say))
        except (StackError, OSError, TimeoutError) as error:
            figures.extend(_failed(name, error) for name in talking)
    return Results(
        taken_at=datetime.now(UTC).isoformat(timespec="seconds"),
        quick=quick,
        machine=machine.facts(),
        load_before=before,
        load_after=machine.load_average(),
        noisy=noisy,
        figures=figures,
        # In the form that is stored, so that the plots handle only one form.
        detail=msgspec.to_builtins(detail, str_keys=True),
    )


def chosen(only: str) -> tuple[str, ...]:
    """Return the areas that `--only` names; raises `click.BadParameter`."""
    names = tuple(name.strip().replace("-", "_") for name in only.split(",") if name.strip()) or AREAS
    unknown = [name for name in names if name not in AREAS]
    if unknown:
        raise click.BadParameter(f"{', '.join(unknown)}: there are {', '.join(AREAS)}.", param_hint="--only")
    return names


@click.command(
    epilog="""\b
Examples:
  python -m bench                          everything, most of an hour
  python -m bench --quick                  everything, shorter and rougher
  python -m bench --only audio,starts      two areas
  python -m bench --markdown               the table of the last run
  python -m bench --publish                the last run into README and docs, its JSON into docs/benchmarks/
"""
)
@click.option("--only", default="", metavar="AREAS", help=f"Some of {', '.join(AREAS)}, separated by commas.")
@click.option("--quick", is_flag=True, help="Fewer rounds: to see that it works, not to quote.")
@click.option("--markdown", is_flag=True, help="Measure nothing; print the last results as Markdown.")
@click.option("--publish", is_flag=True, help="Measure nothing; write the last results into the pages that quote them.")
def main(only: str, quick: bool, markdown: bool, publish: bool) -> None:
    """Measure Voxbridge on this machine, each figure beside a baseline of the same run.

    Writes bench/out/results.json and bench/out/results.png. Exit code 1 when a target is missed, 2 for a wrong option.
    Take figures that are to be quoted on a machine that does nothing else: the results say how busy it was.
    """
    console = Console()
    if markdown or publish:
        _last(publish=publish)
        return
    areas = chosen(only)
    began = time.monotonic()

    def say(text: str) -> None:
        # Without a terminal, print one line for each step, so that a log shows the progress.
        if console.is_terminal:
            status.update(text)
        else:
            console.print(f"{time.monotonic() - began:5.0f} s  {text}", soft_wrap=True)

    with console.status("measuring") as status:
        results = uvloop.run(measure(areas, quick=quick, say=say))
    report.save(results)
    draw(results)
    if "peers" in results.detail:
        peers_plot.draw(msgspec.convert(results.detail["peers"], peers_results.Comparison))
    report.show(results, console)
    console.print(f"Written: {report.RESULTS} and {PICTURE}.")
    for figure in report.missed(results):
        console.print(f"Missed: {figure.what}.", style="red")
    sys.exit(1 if report.missed(results) else 0)


def _last(*, publish: bool) -> None:
    try:
        found = report.load()
    except (FileNotFoundError, msgspec.DecodeError) as error:
        raise click.ClickException("There are no results yet: run `python -m bench`.") from error
    if not publish:
        click.echo(report.as_markdown(found), nl=False)
        return
    try:
        written = pages.publish(found, dict(zip(pages.PICTURES, (PICTURE, peers_plot.PICTURE), strict=True)))
    except (pages.PageError, FileNotFoundError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"Written: {', '.join(map(str, written))}.")


if __name__ == "__main__":
    main()

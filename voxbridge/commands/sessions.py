"""`voxbridge sessions`: the list of calls in the log, one call in full, a call as it happens, and moving a call to another worker.

Owns the words and the look of these commands. Does not own what is reported (`voxbridge.sessions.report`) nor the moving
(`voxbridge.sessions.move`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Final

import click
import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from voxbridge.sessions import move
from voxbridge.sessions import report as sessions_report
from voxbridge.sessions.eventlog import opened
from voxbridge.sessions.replay import moment
from voxbridge.shared import events
from voxbridge.shared.clock import SystemClock
from voxbridge.shared.config import Config
from voxbridge.shared.log.feed import Feed
from voxbridge.shared.log.reader import Log
from voxbridge.shared.log.silences import silences

BAR: Final = 40
"""Characters of the longest latency bar."""

_COLOURS: Final = ("yellow", "cyan", "magenta", "blue", "green", "bright_black", "red")
_GLYPHS: Final = "█▓▒░█▓▒"
_WORDS: Final = {
    "end_of_turn": "end of turn",
    "stt_final": "heard",
    "llm_first_token": "first word",
    "first_sentence": "first sentence",
    "tts_first_audio": "first sound",
    "first_audio_sent": "sent",
    "first_audio_heard": "played",
}
_STYLES: Final = {
    "user": "bold",
    "agent": "green",
    "tool": "magenta",
    "task": "magenta",
    "worker": "blue",
    "client": "dim",
    "failure": "red",
    "end": "bold",
    "turn": "dim",
    "handoff": "green",
    "model": "blue",
}


@click.group("sessions")
def group() -> None:
    """The calls in the log: list them, read one, follow one; and move one to another worker.

    \b
    Examples:
      voxbridge sessions ls                   the newest calls
      voxbridge sessions show 4f1c            the call whose id begins with 4f1c
      voxbridge sessions why 4f1c             why it was silent, and what to do
      voxbridge sessions tail 4f1c --json     every event as it is recorded, one JSON object a line
      voxbridge sessions move 4f1c            have another voice worker go on with the call
      voxbridge sessions workers              the voice workers, their calls and their load

    The log is that of the product that runs on VOXBRIDGE_DATA_DIR, or the one at rest there, or that of VOXBRIDGE_NATS_URL.
    """


@group.command("ls")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, sessions_report.LIMIT), help="How many, newest first.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def list_sessions(limit: int, as_json: bool) -> None:
    """List the newest calls."""

    async def read() -> list[sessions_report.Summary]:
        async with opened(Config.from_env()) as found:
            return await sessions_report.newest(found.log, limit)

    listed = asyncio.run(read())
    if as_json:
        for one in listed:
            click.echo(msgspec.json.encode(one))
        return
    if not listed:
        click.echo("The log holds no calls.")
        return
    table = Table(box=None, pad_edge=False)
    for name in ("session", "started", "mode", "turns", "length", "ended"):
        table.add_column(name, no_wrap=name != "ended", min_width=len(listed[0].id) if name == "session" else None)
    for one in listed:
        length = moment(one.length_ms * 1_000).partition(".")[0] if one.length_ms is not None else ""
        style = "red" if one.error else "green" if one.state == "live" else ""
        state = Text(one.reason or one.state, style)
        table.add_row(one.id, _local(one.started_at_ms)[:-3], one.mode, str(one.turns), length, state)
    Console(soft_wrap=True).print(table)


@group.command()
@click.argument("sid")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def why(sid: str, as_json: bool) -> None:
    """Say why a call was silent: each stretch of more than 2.5 s in which somebody waited, its cause, and what to do.

    SID is the id of the call, or enough of its beginning.
    """

    async def read() -> tuple[list[events.Recorded], int]:
        async with opened(Config.from_env()) as found:
            whole = [one async for one in found.log.read_all(await sessions_report.find(found.log, sid))]
            return whole, SystemClock().now_us() if found.live else 0

    log, now_us = asyncio.run(read())
    found = silences(log, now_us or None)
    if as_json:
        for one in found:
            click.echo(msgspec.json.encode(one))
        return
    if not found:
        click.echo("Nobody waited for longer than 2.5 s in this call.")
    for one in found:
        goes_on = ", and goes on" if one.open else ""
        click.echo(f"{moment(one.from_ms * 1_000)}  silent for {(one.to_ms - one.from_ms) / 1_000:.1f} s{goes_on}")
        click.echo(f"  {one.why}\n  {one.todo}")


@group.command()
@click.argument("sid")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def show(sid: str, as_json: bool) -> None:
    """Show one call: what was said, how long it took, tools, workers, failures.

    SID is the id of the call, or enough of its beginning.
    """

    async def read() -> list[events.Recorded]:
        async with opened(Config.from_env()) as found:
            return [one async for one in found.log.read_all(await sessions_report.find(found.log, sid))]

    log = asyncio.run(read())
    told = list(sessions_report.rows(log))
    summary = sessions_report.summary(log)
    if as_json:
        click.echo(msgspec.json.encode({**msgspec.to_builtins(summary), "events": len(log), "rows": told}))
        return
    console = Console(highlight=False)
    console.print(_head(summary, log), soft_wrap=True)
    longest = max((max(row.stages.values()) for row in told if row.stages), default=0)
    for row in told:
        console.print(_line(row, longest), soft_wrap=not console.is_terminal)


@group.command()
@click.argument("sid", required=False)
@click.option("--json", "as_json", is_flag=True, help="Every event as one JSON object a line, journals included.")
def tail(sid: str | None, as_json: bool) -> None:
    """Follow a call as it happens, until it ends; without SID the newest one."""

    async def follow() -> None:
        async with opened(Config.from_env(), live=True) as found:
            await _follow(found.log, await _chosen(found.log, sid), as_json)

    try:
        asyncio.run(follow())
    except KeyboardInterrupt:
        raise click.exceptions.Exit(130) from None


@group.command("move")
@click.argument("sid")
@click.option("--to", default="", metavar="WORKER", help="The worker that is to have the call; else the first to say that it has room.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def move_session(sid: str, to: str, as_json: bool) -> None:
    """Move a live call to another voice worker, between two turns.

    \b
    SID is the id of the call, or enough of its beginning. A turn in progress gets 1.8 s to end. A worker that
    is named has the call to itself for 3 s; then any may take it. With no room elsewhere nothing is given up.

    \b
    Examples:
      voxbridge sessions move 4f1c                        to whoever has room
      voxbridge sessions move 4f1c --to voice-5d0c81aa    to this one; `voxbridge sessions workers` names them
    """

    async def ask() -> move.Report:
        async with opened(Config.from_env(), live=True) as found:
            return await move.move(found.log, await sessions_report.find(found.log, sid), to)

    report = asyncio.run(ask())
    if as_json:
        click.echo(msgspec.json.encode(report))
    else:
        click.echo(f"{report.session}: from {report.source} to {report.to}, a pause of {report.pause_ms} ms")


@group.command("workers")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def list_workers(as_json: bool) -> None:
    """List the voice workers that are running: their calls, their room, and their load over the last ten seconds."""

    async def ask() -> list[move.Worker]:
        async with opened(Config.from_env(), live=True) as found:
            return await move.workers(found.log.nc)

    listed = asyncio.run(ask())
    if as_json:
        for one in listed:
            click.echo(msgspec.json.encode(one))
        return
    if not listed:
        click.echo("No voice worker answers.")
        return
    table = Table(box=None, pad_edge=False)
    for name in ("worker", "calls", "room", "loop lag p95", "CPU"):
        table.add_column(name, no_wrap=True, justify="left" if name == "worker" else "right")
    for one in listed:
        table.add_row(one.process, str(one.sessions), str(one.room), f"{one.loop_lag_p95_ms:.1f} ms", f"{one.cpu_share:.0%}")
    Console(soft_wrap=True).print(table)


async def _chosen(log: Log, sid: str | None) -> str:
    if sid is None:
        newest = await sessions_report.newest(log, 1)
        if newest:
            return newest[0].id
    return await sessions_report.find(log, sid or "")


async def _follow(log: Log, sid: str, as_json: bool) -> None:
    over = asyncio.Event()
    console = Console(highlight=False)
    began = 0

    def handle(recorded: events.Recorded) -> None:
        nonlocal began
        began = began or recorded.ts
        if as_json:
            click.echo(msgspec.json.encode(plain(recorded)))
        elif (row := sessions_report.row(recorded, began)) is not None:
            console.print(_line(row, max(row.stages.values(), default=0)), soft_wrap=not console.is_terminal)
        if isinstance(recorded.event, events.voice.SessionEnded):
            over.set()

    feed = Feed(log, sid, handle)
    await feed.start()
    try:
        await over.wait()
    finally:
        await feed.stop()


def plain(recorded: events.Recorded) -> dict[str, object]:
    """Return an event as values that JSON can express."""
    data = msgspec.msgpack.decode(msgspec.msgpack.encode(recorded.event))
    whole = {name: getattr(recorded, name) for name in ("seq", "writer", "visible", "ts", "id", "type", "v", "cause")}
    return {**whole, "data": msgspec.to_builtins(data, str_keys=True)}


def _head(summary: sessions_report.Summary, log: Sequence[events.Recorded]) -> Text:
    text = Text(f"{summary.id}\n", "bold")
    facts = [_local(summary.started_at_ms), summary.mode, f"{summary.turns} turns", f"{len(log):,} events", summary.state]
    facts += [f"model {one.event.model}" for one in log if isinstance(one.event, events.voice.SessionStarted)]
    text.append(_clean(" · ".join(facts)), "dim")
    return text


def _line(row: sessions_report.Row, longest: int) -> Text:
    text = Text(f"{moment(row.at_ms * 1_000):>10}  ", "dim")
    if row.kind == "turn":
        text.append(f"{'':8}")
        text.append_text(_bar(row, longest))
        return text
    text.append(f"{row.kind:<8}", "dim")
    text.append(_clean(row.text), _STYLES[row.kind])
    if row.note:
        text.append(f"  {_clean(row.note)}", "dim")
    return text


def _bar(row: sessions_report.Row, longest: int) -> Text:
    bar, said, before = Text(), list[str](), 0
    for colour, glyph, name in zip(_COLOURS, _GLYPHS, sessions_report.STAGES, strict=True):
        ms = row.stages.get(name)
        if ms is None:
            continue
        said.append(f"{_WORDS[name]} {ms}")
        width = round(max(ms, before) * BAR / longest) - round(before * BAR / longest) if longest > 0 else 0
        bar.append(glyph * width, colour)
        before = max(ms, before)
    words = " · ".join(said) + (" ms" if said else "")
    bar.append("  " if said else "")
    bar.append(" ".join(part for part in (row.text, row.note, words) if part), "dim")
    return bar


def _local(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1_000).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _clean(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)

"""`voxbridge doctor`: shows the findings, as a table or as JSON.

Owns the words of the command and its exit code: 0 if nothing fails, 1 if something does, 2 for settings that cannot be read.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Final

import click
import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from voxbridge.doctor.examination import examine
from voxbridge.doctor.finding import Finding, fail, worst
from voxbridge.shared.config import Config
from voxbridge.shared.errors import VoxbridgeError

_COLOURS: Final = {"OK": "green", "WARN": "yellow", "FAIL": "bold red"}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON, for programs.")
def doctor(as_json: bool) -> None:
    """Explain what is wrong with this installation, running or not, and how to mend it.

    \b
    Looks at settings, folders, disk, ports, versions, NATS, Valkey, each service, the models, and sessions
    without a worker; takes ten seconds at most. It changes nothing. The exit code is 1 when something fails.

    \b
    Examples:
      voxbridge doctor
      voxbridge doctor --json | jq '.findings[] | select(.level != "OK")'
    """
    begun = time.monotonic()
    try:
        config = Config.from_env()
    except VoxbridgeError as error:
        _show([fail("settings", str(error.field), error.message, "Correct it; `voxbridge config` lists them all.")], begun, as_json)
        sys.exit(2)
    findings = asyncio.run(examine(config))
    _show(findings, begun, as_json)
    sys.exit(1 if worst(findings) == "FAIL" else 0)


def _show(findings: list[Finding], begun: float, as_json: bool) -> None:
    level, took_ms = worst(findings), round((time.monotonic() - begun) * 1_000)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode({"level": level, "took_ms": took_ms, "findings": findings})).decode())
        return
    console = Console()
    console.print(table(findings))
    wrong = sum(finding.level == "FAIL" for finding in findings)
    soon = sum(finding.level == "WARN" for finding in findings)
    summary = f"{wrong} of {len(findings)} fail, {soon} warn" if wrong or soon else f"All {len(findings)} are well"
    console.print(f"{summary}. It took {took_ms / 1_000:.1f} s.", highlight=False)


def table(findings: list[Finding]) -> Table:
    """Return the findings as a table."""
    grid = Table("", "what", "how it stands, and what to do", show_lines=False)
    area = ""
    for finding in findings:
        if finding.area != area:
            area = finding.area
            grid.add_row("", Text(area, style="bold"), "")
        text = Text(finding.says)
        if finding.do:
            text.append(f"\n→ {finding.do}", style="bold")
        grid.add_row(Text(finding.level, style=_COLOURS[finding.level]), f"  {finding.name}", text)
    return grid

"""Plots of a comparison: CPU, round trips, the ladder, handoffs; one colour for each system."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.peers.results import P99_LIMIT_MS, Comparison, Measured, median_cpu
from bench.report import OUT

PICTURE: Final = OUT / "peers.png"
_COLOURS: Final = {"voxbridge": "#2f6fde", "relay": "#8a8f98", "pipecat": "#d97a00", "roomkit": "#2a9d5c", "livekit": "#8e44ad"}
_OTHER: Final = "#555555"
_LIMIT: Final = "#c0392b"


def draw(found: Comparison, path: Path = PICTURE) -> None:
    """Write the plots as PNG, and as SVG beside it."""
    mpl.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.alpha": 0.25})
    figure = Figure(figsize=(11, 7.5), layout="constrained")
    axes = figure.subplots(2, 2)
    _cpu(axes[0][0], found)
    _trips(axes[0][1], found)
    _ladder(axes[1][0], found)
    _handoffs(axes[1][1], found)
    quiet = "noisy, not to be quoted" if found.noisy else "quiet machine"
    figure.suptitle(f"{found.taken_at[:10]}, {found.machine.get('cores')} cores ({found.machine.get('cpu')}), {quiet}", fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=140)
    figure.savefig(path.with_suffix(".svg"))


def _colour(one: Measured) -> str:
    return _COLOURS.get(one.name, _OTHER)


def _cpu(ax: Axes, found: Comparison) -> None:
    ax.set_title(f"CPU of all processes, {found.sessions} sessions", fontsize=10)
    ax.set_xlabel("µs a frame of 20 ms")
    for row, one in enumerate(found.systems):
        value = median_cpu(one.side)
        if value is not None:
            ax.barh(row, value, color=_colour(one))
            ax.text(value, row, f" {value:.0f}", va="center", fontsize=8)
    ax.set_yticks(range(len(found.systems)), [one.title for one in found.systems])
    ax.invert_yaxis()


def _trips(ax: Axes, found: Comparison) -> None:
    ax.set_title(f"Audio round trip, {found.sessions} sessions", fontsize=10)
    ax.set_xlabel("ms")
    ax.set_ylabel("percent of frames back by then")
    for one in found.systems:
        for number, result in enumerate(one.side):
            curve = result.rtt_ms.curve
            label = one.title if number == 0 else None
            ax.plot([value for _, value in curve], [percent for percent, _ in curve], color=_colour(one), label=label)
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter("{x:g}")
    _legend(ax)


def _ladder(ax: Axes, found: Comparison) -> None:
    ax.set_title("One core", fontsize=10)
    ax.set_xlabel("sessions")
    ax.set_ylabel("round trip p99, ms")
    for one in found.systems:
        points = [(rung.sessions, rung.rtt_ms.p99) for rung in one.rungs if rung.rtt_ms.p99 is not None]
        if points:
            ax.plot([sessions for sessions, _ in points], [p99 for _, p99 in points], "o-", color=_colour(one), label=one.title)
    ax.axhline(P99_LIMIT_MS, color=_LIMIT, linestyle="--", linewidth=1)
    ax.set_yscale("log")
    ax.yaxis.set_major_formatter("{x:g}")
    _legend(ax)


def _handoffs(ax: Axes, found: Comparison) -> None:
    ax.set_title("Handoff: tool call → first audio of the next agent", fontsize=10)
    ax.set_xlabel("ms")
    for one in found.systems:
        if one.handoffs is not None and one.handoffs.ms:
            ax.plot(one.handoffs.ms, [one.title] * len(one.handoffs.ms), "o", color=_colour(one), alpha=0.5)
            ax.plot(statistics.median(one.handoffs.ms), one.title, "|", color=_colour(one), markersize=22)
    ax.set_xlim(left=0)
    ax.margins(y=0.4)
    ax.invert_yaxis()


def _legend(ax: Axes) -> None:
    if ax.get_legend_handles_labels()[0]:
        ax.legend(frameon=False, fontsize=8)

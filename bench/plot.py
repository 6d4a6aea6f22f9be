"""Plots of a run: round trips beside the bare echo, the ladder, the starts, and the waterfall of a spoken turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.report import OUT, Results, circumstances

PICTURE: Final = OUT / "results.png"
_OURS: Final = "#2f6fde"
_BARE: Final = "#8a8f98"
_LIMIT: Final = "#c0392b"


def draw(results: Results, path: Path = PICTURE) -> None:
    """Write the plots as PNG, and as SVG beside it."""
    mpl.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.alpha": 0.25})
    figure = Figure(figsize=(11, 7.5), layout="constrained")
    axes = figure.subplots(2, 2)
    _trips(axes[0][0], results.detail.get("audio"))
    _ladder(axes[0][1], results.detail.get("sessions"))
    _starts(axes[1][0], results.detail.get("starts"))
    _waterfall(axes[1][1], results.detail.get("speech"))
    figure.suptitle(circumstances(results), fontsize=8, wrap=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=140)
    figure.savefig(path.with_suffix(".svg"))


def _trips(ax: Axes, detail: Mapping[str, Any] | None) -> None:
    _label(ax, "Audio round trip, 50 sessions of 20 ms frames", "ms", "percent of frames back by then")
    if detail is None:
        return _empty(ax)
    for name, key, colour in (("Voxbridge", "rounds", _OURS), ("bare echo", "bare", _BARE)):
        for number, result in enumerate(detail[key]["50"]):
            _curve(ax, result["rtt_ms"]["curve"], colour, name if number == 0 else None)
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.legend(frameon=False)
    return None


def _ladder(ax: Axes, detail: Mapping[str, Any] | None) -> None:
    _label(ax, "One gateway and one voice process", "sessions", "ms")
    if detail is None:
        return _empty(ax)
    for name, colour in (("p99", _OURS), ("p50", _BARE)):
        points = [(rung["sessions"], rung["rtt_ms"][name]) for rung in detail["rungs"] if rung["rtt_ms"][name] is not None]
        if points:
            ax.plot(*zip(*points, strict=True), "o-", color=colour, label=f"round trip, {name}")
    ax.axhline(100, color=_LIMIT, linestyle="--", linewidth=1, label="limit of p99")
    ax.set_yscale("log")
    ax.yaxis.set_major_formatter("{x:g}")
    ax.legend(frameon=False)
    return None


def _starts(ax: Axes, detail: Mapping[str, Any] | None) -> None:
    _label(ax, "start → setup_complete, local mode", "ms", "percent of sessions started by then")
    if detail is None:
        return _empty(ax)
    _curve(ax, detail["paced"]["curve"], _OURS, f"one each {detail['gap_s'] * 1_000:g} ms")
    _curve(ax, detail["burst"]["curve"], _BARE, "50 at once")
    ax.axvline(100, color=_LIMIT, linestyle="--", linewidth=1, label="limit of p95")
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.legend(frameon=False)
    return None


def _waterfall(ax: Axes, detail: Mapping[str, Any] | None) -> None:
    _label(ax, "A spoken turn, medians", "ms after the end of speech", "")
    if detail is None or not detail["waterfall"]:
        return _empty(ax)
    stages = sorted(detail["waterfall"].items(), key=lambda stage: stage[1])
    begin = 0.0
    for name, at in stages:
        label = name.replace("_", " ")
        ax.barh(label, at - begin, left=begin, color=_OURS)
        ax.text(at, label, f" {at:.0f}", va="center", fontsize=8)
        begin = at
    ax.axvline(1_500, color=_LIMIT, linestyle="--", linewidth=1)
    ax.invert_yaxis()
    return None


def _curve(ax: Axes, curve: Sequence[Sequence[float]], colour: str, label: str | None) -> None:
    ax.plot([value for _, value in curve], [percent for percent, _ in curve], color=colour, label=label)


def _label(ax: Axes, title: str, x: str, y: str) -> None:
    ax.set_title(title, fontsize=10)
    ax.set_xlabel(x)
    ax.set_ylabel(y)


def _empty(ax: Axes) -> None:
    ax.text(0.5, 0.5, "not measured in this run", ha="center", va="center", transform=ax.transAxes)

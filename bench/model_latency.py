"""Latency of one request to each local model: medians over repeated requests, one at a time.

    python -m bench.model_latency [--url http://127.0.0.1:8421/v1] [--repeat 9]

Needs a running models service. The recording is made by its own voice. Run it on an otherwise idle machine.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable

import click
import httpx
from rich.console import Console
from rich.table import Table

from bench.tool_choice import CASES, SYSTEM, TOOLS

SENTENCE = "Please run the unit tests in terminal two, and tell me as soon as they finish."


def _timed(count: int, work: Callable[[int], float]) -> tuple[float, float]:
    work(0)
    took = [work(index + 1) for index in range(count)]
    return statistics.median(took), max(took)


class Bench:
    """The requests. Each method returns seconds."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        self.recording = client.post("/audio/speech", json={"input": SENTENCE, "response_format": "wav"}).raise_for_status().content

    def _first(self, path: str, body: dict[str, object]) -> float:
        started = time.perf_counter()
        with self._client.stream("POST", path, json=body) as answer:
            answer.raise_for_status()
            for chunk in answer.iter_bytes():
                if b'"content":""' not in chunk and b'"content":null' not in chunk:
                    return time.perf_counter() - started
        raise RuntimeError("the answer was empty")

    def _whole(self, path: str, **request: object) -> float:
        started = time.perf_counter()
        self._client.post(path, **request).raise_for_status()  # type: ignore[arg-type]
        return time.perf_counter() - started

    def transcription(self, _index: int) -> float:
        """Time a whole transcription."""
        return self._whole("/audio/transcriptions", files={"file": ("a.wav", self.recording)}, data={"model": "whisper"})

    def turn(self, _index: int) -> float:
        """Time a decision about the end of a turn."""
        return self._whole("/audio/turns", files={"file": ("a.wav", self.recording)})

    def short_reply(self, _index: int) -> float:
        """Time a short sentence, spoken as a whole."""
        return self._whole("/audio/speech", json={"input": "Sure, one moment.", "response_format": "pcm"})

    def first_sound(self, _index: int) -> float:
        """Time the first bytes of a reply of two sentences."""
        return self._first("/audio/speech", {"input": f"It is a quarter past nine. {SENTENCE}", "response_format": "pcm"})

    def first_word(self, index: int) -> float:
        """Time the first word of an answer, with tools offered, a warm prefix and a new question each time."""
        messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": f"Hello, this is caller number {index}."}]
        return self._first("/chat/completions", {"messages": messages, "tools": TOOLS, "stream": True, "max_tokens": 16, "temperature": 0})

    def tool_call(self, index: int) -> float:
        """Time a whole tool call with its arguments, prefix warm."""
        case = [case for case in CASES if case.tool == "set_timer"][index % 5]
        messages = [{"role": "system", "content": SYSTEM}, *case.messages]
        return self._whole("/chat/completions", json={"messages": messages, "tools": TOOLS, "max_tokens": 64, "temperature": 0})


@click.command()
@click.option("--url", default="http://127.0.0.1:8421/v1", show_default=True)
@click.option("--repeat", default=9, show_default=True)
def main(url: str, repeat: int) -> None:
    """Measure and print."""
    table = Table(
        "what", "median ms", "longest ms", title=f"Model latency, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores at the start"
    )
    with httpx.Client(base_url=url, timeout=60) as client:
        bench = Bench(client)
        seconds = (len(bench.recording) - 44) / 48_000
        rows = {
            f"transcription of {seconds:.1f} s": bench.transcription,
            "end of turn": bench.turn,
            "first word, warm prefix, tools": bench.first_word,
            "tool call, warm prefix": bench.tool_call,
            '"Sure, one moment.", whole': bench.short_reply,
            "first sound of two sentences": bench.first_sound,
        }
        for name, work in rows.items():
            middle, longest = _timed(repeat, work)
            table.add_row(name, f"{middle * 1_000:.0f}", f"{longest * 1_000:.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()

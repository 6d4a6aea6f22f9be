"""Positions of audio frames on a session's clock, and their peaks."""

from __future__ import annotations

import numpy as np

from voxbridge.services.voice.audio.peaks import SCALE, Peaks
from voxbridge.shared.audio import frames
from voxbridge.shared.audio.recordings import LONGEST_MS

BEGAN_MS = 1_790_000_000_000


def frame(level: float, at_ms: int, *, generation: int = 0, ms: int = 20, rate: int = frames.INPUT_RATE, flags: int = 0) -> bytes:
    """Return a frame whose samples swing to `level` of full scale, sent `at_ms` after the start of the session."""
    samples = np.full(rate * ms // 1_000, round(level * 32_767), dtype="<i2")
    samples[::2] = -samples[::2]
    return frames.pack(frames.PCM16, generation, 0, BEGAN_MS + at_ms, samples.tobytes(), flags)


def heard(*taken: bytes) -> Peaks:
    """Return a microphone's peaks."""
    peaks = Peaks("in", BEGAN_MS)
    peaks.take(taken)
    return peaks


def said(*taken: bytes) -> Peaks:
    """Return a reply's peaks."""
    peaks = Peaks("out", BEGAN_MS)
    peaks.take(taken)
    return peaks


def reply(level: float, at_ms: int, generation: int = 1, ms: int = 20) -> bytes:
    """Return a frame of a reply."""
    return frame(level, at_ms, generation=generation, ms=ms, rate=frames.OUTPUT_RATE)


def test_a_microphone_frame_ends_when_it_came() -> None:
    peaks = heard(frame(0.5, 120))
    assert peaks.end_ms == 120
    low, high = peaks.between(0, 200, 10)
    assert high == [None] * 5 + [64] + [None] * 4
    assert low == [None] * 5 + [-64] + [None] * 4


def test_frames_that_were_held_up_on_their_way_lie_side_by_side() -> None:
    late = heard(*(frame(0.25, at) for at in (20, 40, 110, 110, 110, 120)))
    assert late.between(0, 120, 6)[1] == [32] * 6


def test_after_a_silence_of_the_microphone_the_clock_is_taken_again() -> None:
    peaks = heard(frame(0.25, 20), frame(1.0, 1_020))
    assert peaks.between(0, 1_020, 51)[1] == [32, *[None] * 49, SCALE]


def test_a_reply_that_is_sent_ahead_lies_where_it_is_played() -> None:
    peaks = said(*(reply(0.25 * (n + 1), 1_000) for n in range(3)))
    assert peaks.between(1_000, 1_060, 3)[1] == [32, 64, 95]
    assert peaks.end_ms == 1_060


def test_what_a_flush_dropped_was_not_heard() -> None:
    flush = frames.pack(frames.FLUSH, 1, 0, BEGAN_MS + 1_040)
    peaks = said(*(reply(0.5, 1_000) for _ in range(10)), flush, reply(0.5, 1_050), reply(1.0, 1_060, generation=2))
    assert peaks.between(1_000, 1_100, 5)[1] == [64, 64, None, SCALE, None]


def test_a_reply_after_a_pause_of_the_synthesis_is_heard_when_it_came() -> None:
    peaks = said(reply(0.5, 1_000), reply(0.5, 1_100))
    assert peaks.between(1_000, 1_120, 6)[1] == [64, None, None, None, None, 64]


def test_long_frames_and_odd_ends_fill_the_bins_that_they_last() -> None:
    peaks = heard(frame(0.5, 110, ms=110))
    assert peaks.between(0, 120, 6)[1] == [64] * 6
    assert said(frame(0.5, 0, generation=1, ms=100, flags=frames.RATE_16K)).end_ms == 100


def test_fewer_bins_hold_the_extremes_and_more_repeat_them() -> None:
    peaks = heard(*(frame(0.1 * n, 20 * n) for n in range(1, 6)))
    assert peaks.between(0, 100, 1) == ([-64], [64])
    assert peaks.between(0, 100, 10)[1] == [13, 13, 25, 25, 38, 38, 51, 51, 64, 64]


def test_what_is_no_frame_and_what_is_out_of_bounds_is_passed_over() -> None:
    before = frame(1.0, -5_000)
    far = frame(1.0, LONGEST_MS + 1_000)
    peaks = heard(b"", b"short", before, far, frames.pack(frames.PCM16, 0, 0, BEGAN_MS + 40), frames.pack(99, 0, 0, BEGAN_MS + 40, b"ab"))
    assert peaks.end_ms == 0
    assert peaks.between(0, 1_000, 2) == ([None, None], [None, None])


def test_the_clock_of_frames_may_turn_over() -> None:
    began = 2**32 - 30
    peaks = Peaks("in", began)
    peaks.take([frames.pack(frames.PCM16, 0, 0, began + 60, b"\xff\x3f" * 320)])
    assert peaks.between(0, 80, 4)[1] == [None, None, 63, None]


def test_an_hour_of_audio_is_kept_in_a_few_hundred_kilobytes() -> None:
    peaks = Peaks("in", BEGAN_MS)
    peaks.take([frame(0.5, at) for at in range(20, 60_020, 20)])
    peaks.take([frame(0.5, 3_600_000)])
    assert peaks.end_ms == 3_600_000
    assert peaks.between(0, 3_600_000, 60)[1][0] == 64
    assert peaks.between(0, 3_600_000, 60)[1][30] is None

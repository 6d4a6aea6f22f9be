"""Sending audio, in virtual time."""

from __future__ import annotations

import asyncio

from tests.eventually import BOUND_S
from tests.virtual_time import in_virtual_time
from voxbridge.services.voice.audio.speaker import BUFFER_MS, FRAME_MS, LEAD_MS, Speaker
from voxbridge.shared.audio import frames

BYTES_PER_MS = 48
FRAME = FRAME_MS * BYTES_PER_MS


class Heard:
    """The client's end: frames with the ms at which they were sent."""

    def __init__(self) -> None:
        self.frames: list[tuple[frames.Prefix, bytes, float]] = []
        self.started: list[int] = []
        self.speaker = Speaker(self, lambda generation, _: self.started.append(generation))
        self.open = asyncio.Event()
        self.open.set()
        self._came = asyncio.Event()

    def ready(self) -> bool:
        return self.open.is_set()

    async def hold(self) -> None:
        await self.open.wait()

    def publish(self, frame: bytes) -> None:
        assert self.open.is_set()
        self.frames.append((frames.parse(frame), frame[frames.PREFIX_SIZE :], asyncio.get_running_loop().time() * 1_000))
        self._came.set()

    async def count(self, number: int) -> None:
        while len(self.frames) < number:
            self._came.clear()
            await self._came.wait()

    def pcm(self, generation: int) -> bytes:
        return b"".join(pcm for prefix, pcm, _ in self.frames if prefix.generation == generation and prefix.kind == frames.PCM16)

    def marks(self) -> list[tuple[int, int, int]]:
        return [(prefix.kind, prefix.generation, prefix.flags) for prefix, _, _ in self.frames]


def sound(ms: int, seed: int = 1) -> bytes:
    return bytes((index * seed + index // 251) % 256 for index in range(ms * BYTES_PER_MS))


@in_virtual_time
async def test_a_reply_comes_whole_in_order_and_in_real_time_with_a_small_lead() -> None:
    heard, pcm = Heard(), sound(3_000)
    for start in range(0, len(pcm), 4_800):
        await heard.speaker.put(1, pcm[start : start + 4_800])
    heard.speaker.finish(1)
    await heard.count(3_000 // FRAME_MS + 1)
    assert heard.pcm(1) == pcm
    assert [prefix.sequence for prefix, _, _ in heard.frames] == list(range(len(heard.frames)))
    for number, (_, _, at) in enumerate(heard.frames[:-1]):
        ahead = number * FRAME_MS - at
        assert ahead <= LEAD_MS + 0.001
        assert at <= max(0, number * FRAME_MS - LEAD_MS) + FRAME_MS
    assert heard.marks()[-1] == (frames.PCM16, 1, frames.LAST)
    assert {flags for _, _, flags in heard.marks()[:-1]} == {0}
    assert heard.started == [1]


@in_virtual_time
async def test_the_rest_that_fills_no_frame_is_the_last_one() -> None:
    heard, pcm = Heard(), sound(50)
    await heard.speaker.put(1, pcm[:1_000])
    await heard.speaker.put(1, pcm[1_000:])
    heard.speaker.finish(1)
    await heard.count(3)
    assert [len(pcm) for _, pcm, _ in heard.frames] == [FRAME, FRAME, FRAME // 2]
    assert heard.marks()[-1] == (frames.PCM16, 1, frames.LAST)
    assert heard.pcm(1) == pcm


@in_virtual_time
async def test_a_reply_shorter_than_a_frame_is_heard_and_told_of() -> None:
    heard = Heard()
    await heard.speaker.put(1, sound(7))
    heard.speaker.finish(1)
    await heard.count(1)
    assert heard.pcm(1) == sound(7)
    assert heard.started == [1]


@in_virtual_time
async def test_the_end_is_marked_once_however_often_it_is_said() -> None:
    heard = Heard()
    await heard.speaker.put(1, sound(40))
    heard.speaker.finish(1)
    heard.speaker.finish(1)
    await heard.count(3)
    heard.speaker.finish(1)
    await heard.speaker.put(2, sound(20))
    heard.speaker.finish(2)
    await heard.count(5)
    assert [(generation, flags) for _, generation, flags in heard.marks()] == [(1, 0), (1, 0), (1, frames.LAST), (2, 0), (2, frames.LAST)]


@in_virtual_time
async def test_a_reply_that_never_had_audio_has_no_end_to_mark() -> None:
    heard = Heard()
    await heard.speaker.put(1, sound(20))
    heard.speaker.finish(2)
    heard.speaker.finish(1)
    await heard.count(2)
    assert [generation for _, generation, _ in heard.marks()] == [1, 1]


@in_virtual_time
async def test_after_a_flush_nothing_of_the_old_reply_is_sent() -> None:
    heard = Heard()
    await heard.speaker.put(1, sound(5_000))
    await heard.count(10)
    flushing = heard.speaker.flush(1)
    before = len(heard.frames)
    await asyncio.sleep(1)
    assert len(heard.frames) == before, "it stops at once, before the client is told"
    await flushing
    await heard.speaker.put(1, sound(1_000))
    heard.speaker.finish(1)
    await heard.speaker.put(2, sound(100))
    heard.speaker.finish(2)
    await heard.count(before + 7)
    assert heard.marks()[before] == (frames.FLUSH, 1, 0)
    assert {generation for _, generation, _ in heard.marks()[before + 1 :]} == {2}
    assert [prefix.sequence for prefix, _, _ in heard.frames] == list(range(len(heard.frames)))
    assert heard.pcm(2) == sound(100)


@in_virtual_time
async def test_a_flush_of_an_old_reply_leaves_the_new_one_alone() -> None:
    heard = Heard()
    await heard.speaker.put(2, sound(1_000))
    heard.speaker.finish(2)
    await heard.count(5)
    await heard.speaker.flush(1)
    await heard.count(1_000 // FRAME_MS + 2)
    assert heard.pcm(2) == sound(1_000)


@in_virtual_time
async def test_a_flush_by_whoever_hears_of_the_first_frame_stops_it_there() -> None:
    heard = Heard()
    flushed: list[asyncio.Future[None]] = []
    heard.speaker = Speaker(heard, lambda generation, _: flushed.append(asyncio.ensure_future(heard.speaker.flush(generation))))
    await heard.speaker.put(1, sound(1_000))
    await heard.count(2)
    await asyncio.sleep(1)
    assert [kind for kind, _, _ in heard.marks()] == [frames.PCM16, frames.FLUSH]
    assert flushed[0].done()


@in_virtual_time
async def test_a_reply_that_begins_before_the_last_one_was_sent_follows_it_under_its_own_number() -> None:
    heard = Heard()
    await heard.speaker.put(1, sound(1_010))
    await heard.speaker.put(2, sound(500, seed=3))
    heard.speaker.finish(2)
    await heard.count(51 + 26)
    assert heard.pcm(1) == sound(1_010)
    assert heard.pcm(2) == sound(500, seed=3)
    generations = [generation for _, generation, _ in heard.marks()]
    assert generations == sorted(generations)
    assert heard.started == [1, 2]


@in_virtual_time
async def test_synthesis_waits_when_the_buffer_is_full_and_goes_on_when_there_is_room() -> None:
    heard, loop = Heard(), asyncio.get_running_loop()
    for _ in range(BUFFER_MS // 100):
        await heard.speaker.put(1, sound(100))
    assert loop.time() == 0
    assert heard.frames == [], "all of it fits before a single frame is sent"
    await heard.speaker.put(1, sound(100))
    assert heard.frames
    for _ in range(20):
        await heard.speaker.put(1, sound(100))
    assert loop.time() * 1_000 >= 2_000 - LEAD_MS - 200, "from then on it is taken as fast as it is played"


@in_virtual_time
async def test_a_flush_frees_whoever_waits_for_room() -> None:
    heard = Heard()
    await heard.speaker.put(1, sound(BUFFER_MS))
    waiting = asyncio.create_task(heard.speaker.put(1, sound(100)))
    await asyncio.sleep(0)
    await heard.speaker.flush(1)
    await asyncio.wait_for(waiting, BOUND_S)
    await heard.speaker.put(2, sound(20))
    heard.speaker.finish(2)
    await asyncio.sleep(1)
    assert heard.pcm(2) == sound(20)
    assert len(heard.pcm(1)) <= LEAD_MS * BYTES_PER_MS + FRAME


@in_virtual_time
async def test_after_a_wait_for_the_synthesis_the_lead_is_earned_again() -> None:
    heard, loop = Heard(), asyncio.get_running_loop()
    await heard.speaker.put(1, sound(200))
    await heard.count(10)
    await asyncio.sleep(5)
    await heard.speaker.put(1, sound(2_000))
    heard.speaker.finish(1)
    await heard.count(111)
    assert loop.time() * 1_000 >= 5_000 + 2_000 - LEAD_MS - FRAME_MS, "a late piece is not sent all at once"


@in_virtual_time
async def test_a_stopped_voice_takes_and_sends_nothing_more() -> None:
    heard = Heard()
    await heard.speaker.put(1, sound(BUFFER_MS))
    waiting = asyncio.create_task(heard.speaker.put(1, sound(100)))
    await asyncio.sleep(0)
    sent = len(heard.frames)
    heard.speaker.stop()
    await asyncio.wait_for(waiting, BOUND_S)
    await heard.speaker.put(2, sound(100))
    heard.speaker.finish(2)
    await asyncio.sleep(1)
    assert len(heard.frames) == sent
    assert [task for task in asyncio.all_tasks() if "Speaker" in str(task.get_coro())] == []


@in_virtual_time
async def test_what_comes_as_it_is_heard_goes_out_in_the_call_that_brings_it() -> None:
    heard, pcm = Heard(), sound(200)
    heard.speaker.put_now(1, pcm[:640])
    await heard.count(1)
    for start in range(640, len(pcm), 640):
        before = len(heard.frames)
        heard.speaker.put_now(1, pcm[start : start + 640])
        assert len(heard.frames) == before + 1
    heard.speaker.finish(1)
    await heard.count(16)
    assert heard.pcm(1) == pcm
    assert [prefix.sequence for prefix, _, _ in heard.frames] == list(range(16))
    assert heard.marks()[-1] == (frames.PCM16, 1, frames.LAST)


@in_virtual_time
async def test_what_comes_faster_than_it_is_heard_is_paced_and_stays_in_order() -> None:
    heard, loop, pcm = Heard(), asyncio.get_running_loop(), sound(3_000)
    heard.speaker.put_now(1, pcm[:640])
    await heard.count(1)
    for start in range(640, len(pcm), 640):
        heard.speaker.put_now(1, pcm[start : start + 640])
    assert len(heard.pcm(1)) <= (LEAD_MS + FRAME_MS) * BYTES_PER_MS, "the lead, and not a frame more"
    heard.speaker.finish(1)
    while not heard.marks()[-1][2] & frames.LAST:
        await heard.count(len(heard.frames) + 1)
    assert heard.pcm(1) == pcm
    assert loop.time() * 1_000 >= 3_000 - LEAD_MS - FRAME_MS


@in_virtual_time
async def test_frames_are_held_until_they_may_go_and_none_overtakes_another() -> None:
    heard, pcm = Heard(), sound(100)
    heard.speaker.put_now(1, pcm[:960])
    await heard.count(1)
    heard.open.clear()
    for start in range(960, len(pcm), 960):
        heard.speaker.put_now(1, pcm[start : start + 960])
    await asyncio.sleep(1)
    assert len(heard.frames) == 1
    heard.open.set()
    heard.speaker.finish(1)
    await heard.count(6)
    assert heard.pcm(1) == pcm


@in_virtual_time
async def test_after_a_hold_a_reply_goes_on_in_real_time_and_its_frames_are_new() -> None:
    heard, loop = Heard(), asyncio.get_running_loop()
    await heard.speaker.put(1, sound(3_000))
    await heard.count(10)
    heard.open.clear()
    held = len(heard.frames)
    await asyncio.sleep(5)
    assert len(heard.frames) == held
    heard.open.set()
    began = loop.time()
    heard.speaker.finish(1)
    while not heard.marks()[-1][2] & frames.LAST:
        await heard.count(len(heard.frames) + 1)
    assert heard.pcm(1) == sound(3_000)
    first, second = (prefix.time_ms for prefix, _, _ in heard.frames[held : held + 2])
    assert second - first <= FRAME_MS, "the frame that waited is not older than the one after it"
    left_ms = 3_000 - held * FRAME_MS
    assert loop.time() * 1_000 - began * 1_000 >= left_ms - LEAD_MS - FRAME_MS, "it is not hurried"


@in_virtual_time
async def test_a_flush_ends_what_goes_out_as_it_comes() -> None:
    heard = Heard()
    heard.speaker.put_now(1, sound(20))
    await heard.count(1)
    await heard.speaker.flush(1)
    heard.speaker.put_now(1, sound(20))
    heard.speaker.put_now(2, sound(20))
    await heard.count(3)
    assert heard.marks() == [(frames.PCM16, 1, 0), (frames.FLUSH, 1, 0), (frames.PCM16, 2, 0)]
    assert heard.started == [1, 2]

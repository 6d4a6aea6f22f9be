"""State that a worker left of a session: the fold of its log, and the timers and effects that had begun and not ended.

Reading it changes nothing; after a crash in between, the next worker takes the session.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from voxbridge.services.voice.audio import catch_up
from voxbridge.services.voice.audio.speaker import FRAME_MS, LEAD_MS
from voxbridge.services.voice.core import inputs, step
from voxbridge.services.voice.core.outstanding import Outstanding
from voxbridge.services.voice.core.state import State
from voxbridge.shared import events
from voxbridge.shared.audio import frames
from voxbridge.shared.clock import wall_ms32
from voxbridge.shared.log import streams
from voxbridge.shared.step.fold import Folded, fold

KEPT_MS: Final = streams.REPLY_S * 1_000 - 500
"""Milliseconds since the first frame of a generation within which the bus still keeps all of its audio."""

GIVE_WAY: Final = 32
"""Inputs after which a fold gives way to the event loop: about a millisecond of work."""


@dataclass(frozen=True, slots=True)
class PriorState:
    """A folded session. `alive_at` is the time at which its worker last wrote, µs."""

    folded: Folded[State]
    outstanding: Outstanding
    alive_at: int

    def left_ms(self, kept: catch_up.Kept, now: int) -> int:
        """Return how many ms of the newest generation's audio had left for the client; `now` is in µs."""
        state = self.folded.state
        reply = state.speech.reply
        left = kept.left_ms(state.counters.generation)
        if reply is None or reply.playback.sent is None or now - reply.playback.sent < KEPT_MS * 1_000:
            return left
        if not kept.spoken:
            return max(left, (self.alive_at - reply.playback.sent) // 1_000 + LEAD_MS)
        last_at = now // 1_000 - frames.age_ms(frames.parse(kept.spoken[-1]).time_ms, wall_ms32())
        return max(left, last_at - reply.playback.sent // 1_000 + LEAD_MS)

    def next_sequence(self, kept: catch_up.Kept) -> int:
        """Return the number of the next frame for the client."""
        found = kept.next_sequence()
        if found is not None:
            return found
        state = self.folded.state
        return state.client.sequence + (_LONGEST_MS // FRAME_MS if state.counters.generation else 0)


_LONGEST_MS: Final = 600_000
"""Milliseconds that no reply exceeds: if no frame of the last reply is kept, the numbers of this much audio are skipped."""


async def read(sid: str, log: list[events.Recorded]) -> PriorState:
    """Fold a session's whole log, in a thread. Raises what the step raises, and `INTERNAL` if the journal names a missing event."""
    return await asyncio.to_thread(_fold, sid, log)


def _fold(sid: str, log: list[events.Recorded]) -> PriorState:
    outstanding = Outstanding()
    seen = count()

    def watch(input: Any, outputs: Sequence[Any], now: int) -> None:
        outstanding.watch(input, outputs, now)
        if next(seen) % GIVE_WAY == 0:
            time.sleep(0)  # gives the interpreter to the event loop, which has calls to serve

    folded = fold(step.step, step.initial(sid), inputs.Input, "voice", log, watch=watch)
    alive_at = max((one.ts for one in log if one.writer == "voice"), default=0)
    return PriorState(folded, outstanding, alive_at)

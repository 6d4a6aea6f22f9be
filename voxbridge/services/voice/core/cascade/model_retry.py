"""A model that cannot be reached for a moment: it is asked again, so that its restart is a pause and not an apology. Pure.

What waits for it keeps since when: the words of an utterance (`Utterance.stt_away`), the text of a reply (`Reply.llm_away`) and its
sound (`Reply.tts_away`). Within `model_patience_s`, for words `stt_patience_s`, a failure sets a timer, and `try_again` asks once more
when it fires; the state says meanwhile what is waited for. Beyond it the failure is one. An apology is not waited for: its words are on
the page.
"""

from __future__ import annotations

from typing import Final, Literal

from voxbridge.services.voice.core.transition import Draft
from voxbridge.shared.events import voice as ev

RETRY_MS: Final = 500
TIMER: Final = "again"

Part = Literal["stt", "llm", "tts"]


def wait(d: Draft, part: Part, error: ev.Failure, since: int, turn: int) -> int:
    """Since when the model is away, in µs, if it is to be asked again; 0 if its failure is one. `since` is 0 at its first failure."""
    passing = error.code == "PROVIDER_UNAVAILABLE" and error.retryable
    patience_s = d.state.stt_patience_s if part == "stt" else d.state.model_patience_s
    if not passing or d.now - (since or d.now) >= patience_s * 1_000_000:
        return 0
    if not since:
        d.append(ev.ProviderFailed(part=part, error=error, turn=turn, handled=True))
    d.set_timer(TIMER, RETRY_MS)
    return since or d.now

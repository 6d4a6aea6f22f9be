"""Retries of a model that is unavailable for a moment, so that its restart causes a pause and not an apology. Pure.

The time of the first failure is kept in `Utterance.stt_away`, `Reply.llm_away` or `Reply.tts_away`. Within `model_patience_s`
(`stt_patience_s` for speech recognition), a failure sets a timer, and `try_again` asks once more when it fires; meanwhile the client is
shown what is waited for. After that time the failure counts. The audio of an apology is not retried: its words are on the page.
"""

from __future__ import annotations

from typing import Final, Literal

from voxbridge.services.voice.core.transition import Transition
from voxbridge.shared.events import voice as ev

RETRY_MS: Final = 500
TIMER: Final = "again"

Part = Literal["stt", "llm", "tts"]


def wait(t: Transition, part: Part, error: ev.Failure, since: int, turn: int) -> int:
    """Schedule a retry and return the time of the first failure, µs; return 0 if the failure counts. `since` is 0 at the first failure."""
    passing = error.code == "PROVIDER_UNAVAILABLE" and error.retryable
    patience_s = t.settings.stt_patience_s if part == "stt" else t.settings.model_patience_s
    if not passing or t.now - (since or t.now) >= patience_s * 1_000_000:
        return 0
    if not since:
        t.append(ev.ProviderFailed(part=part, error=error, turn=turn, handled=True))
    t.set_timer(TIMER, RETRY_MS)
    return since or t.now

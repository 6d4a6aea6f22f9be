"""Takeover on three servers, through a follower: repeats the tests of one server."""

from __future__ import annotations

from tests.three_servers import nats_url
from tests.voice.ownership.test_takeover import (
    test_a_released_session_is_with_another_worker_at_once,
    test_a_takeover_into_which_somebody_else_wrote_is_begun_again,
    test_an_owner_that_was_thought_dead_is_kept_out_by_the_log,
    test_the_events_that_a_crash_kept_from_the_log_are_written_by_the_successor,
)

__all__ = [
    "nats_url",
    "test_a_released_session_is_with_another_worker_at_once",
    "test_a_takeover_into_which_somebody_else_wrote_is_begun_again",
    "test_an_owner_that_was_thought_dead_is_kept_out_by_the_log",
    "test_the_events_that_a_crash_kept_from_the_log_are_written_by_the_successor",
]

"""The tool executor on three servers, through a follower: repeats the tests of one server."""

from __future__ import annotations

from tests.three_servers import nats_url
from tests.tools.test_recovery import (
    test_a_call_that_comes_again_is_left_to_the_process_that_has_it,
    test_a_stopped_process_that_wakes_up_adds_nothing_to_what_was_said_for_it,
)
from tests.tools.test_service import (
    test_a_killed_executors_call_is_interrupted_once_and_never_run_again,
    test_a_thousand_copies_of_a_call_have_one_effect,
    test_idle_sessions_are_forgotten_and_folded_again,
    test_the_end_of_a_session_ends_its_timers,
    test_the_end_of_a_session_without_calls_leaves_no_word,
    test_two_executors_share_the_calls_of_many_sessions_and_of_one,
)

__all__ = [
    "nats_url",
    "test_a_call_that_comes_again_is_left_to_the_process_that_has_it",
    "test_a_killed_executors_call_is_interrupted_once_and_never_run_again",
    "test_a_stopped_process_that_wakes_up_adds_nothing_to_what_was_said_for_it",
    "test_a_thousand_copies_of_a_call_have_one_effect",
    "test_idle_sessions_are_forgotten_and_folded_again",
    "test_the_end_of_a_session_ends_its_timers",
    "test_the_end_of_a_session_without_calls_leaves_no_word",
    "test_two_executors_share_the_calls_of_many_sessions_and_of_one",
]

"""Resuming on three servers, through a follower: repeats the tests of one server."""

from __future__ import annotations

from tests.gateway.vox.test_resuming import (
    other,
    processes,
    test_a_call_of_the_page_that_was_open_is_answered_on_the_new_socket_and_an_answered_one_is_not,
    test_a_position_above_the_top_gets_a_snapshot,
    test_another_gateway_tells_exactly_what_was_missed_and_goes_on,
    test_over_many_cuts_and_several_writers_every_event_is_told_once_in_order_from_one_gateway_and_the_other,
    test_two_clients_that_resume_at_once_leave_one,
)
from tests.three_servers import nats_url

__all__ = [
    "nats_url",
    "other",
    "processes",
    "test_a_call_of_the_page_that_was_open_is_answered_on_the_new_socket_and_an_answered_one_is_not",
    "test_a_position_above_the_top_gets_a_snapshot",
    "test_another_gateway_tells_exactly_what_was_missed_and_goes_on",
    "test_over_many_cuts_and_several_writers_every_event_is_told_once_in_order_from_one_gateway_and_the_other",
    "test_two_clients_that_resume_at_once_leave_one",
]

"""The three tiers of tests: which test is in which. The only place that says so.

A tier holds what the tiers above it hold: `quick` is in `test`, and `test` is in `all`. `tests/long` is in none of them; `make test-long`
runs it. An entry is a folder, a module or the node id of a test, and holds what is below it. `python -m deploy.testrun.tiers` prints the
table of CONTRIBUTING.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Final

from deploy.testrun import ROOT

NAMES: Final = ("quick", "test", "all")

QUICK: Final = (
    "tests/awareness/test_core.py",
    "tests/awareness/test_prompt.py",
    "tests/deploy/test_commit_subject.py",
    "tests/fuzz",
    "tests/gateway/calls",
    "tests/gateway/core",
    "tests/gateway/door/test_forwarded.py",
    "tests/gateway/platform/test_messages.py",
    "tests/knowledge/test_core.py",
    "tests/models/test_arguments.py",
    "tests/models/test_audio.py",
    "tests/models/test_background.py",
    "tests/models/test_busy.py",
    "tests/models/test_choice.py",
    "tests/models/test_choice_lines.py",
    "tests/models/test_commands.py",
    "tests/models/test_core.py",
    "tests/models/test_expected.py",
    "tests/models/test_grammar.py",
    "tests/models/test_lines.py",
    "tests/models/test_router_files.py",
    "tests/recorded",
    "tests/shared/agents",
    "tests/shared/audio/test_frames.py",
    "tests/shared/bus/test_framing.py",
    "tests/shared/bus/test_partials.py",
    "tests/shared/language/test_dialects.py",
    "tests/shared/log/test_quotas.py",
    "tests/shared/log/test_silences.py",
    "tests/shared/log/test_storable.py",
    "tests/shared/platform",
    "tests/shared/secrets/test_access_tokens.py",
    "tests/shared/secrets/test_vault.py",
    "tests/shared/step/test_effects.py",
    "tests/shared/step/test_replay.py",
    "tests/shared/terminals",
    "tests/shared/test_cancellation.py",
    "tests/shared/test_clock.py",
    "tests/shared/test_config.py",
    "tests/shared/test_document_text.py",
    "tests/shared/test_events.py",
    "tests/shared/test_ids.py",
    "tests/shared/test_nesting.py",
    "tests/shared/test_spoken_durations.py",
    "tests/shared/test_spoken_modes.py",
    "tests/shared/test_spoken_numbers.py",
    "tests/shared/test_structures.py",
    "tests/shared/test_tours.py",
    "tests/shared/test_workspace.py",
    "tests/terminals/test_core.py",
    "tests/terminals/test_screen_questions.py",
    "tests/terminals/test_ring.py",
    "tests/terminals/test_screen.py",
    "tests/tools/runs",
    "tests/tools/test_core.py",
    "tests/tools/test_registry.py",
    "tests/tools/test_results.py",
    "tests/voice/audio/test_catch_up.py",
    "tests/voice/audio/test_peaks.py",
    "tests/voice/audio/test_resample.py",
    "tests/voice/core",
    "tests/voice/orders",
    "tests/voice/ownership/test_questions.py",
    "tests/voice/providers/test_link.py",
    "tests/voice/speakable",
    "tests/voxbridge/commands/test_token.py",
    "tests/voxbridge/supervisor/test_readiness.py",
    "tests/voxbridge/supervisor/test_restart.py",
)
"""Tests without a server, a network or a model."""

NOT_QUICK: Final = (
    "tests/gateway/core/test_session_token.py",
    "tests/voice/core/test_handoff.py",
    "tests/voice/core/test_slow_model.py",
    "tests/voice/core/test_tool_rounds.py",
    "tests/voice/core/test_unreachable.py",
)
"""Tests below an entry of `QUICK` that do use a server."""

ONLY_ALL: Final[dict[str, str]] = {
    "tests/agents/test_erased.py": "tests/voxbridge/commands has erasing; tests/agents/test_runs.py has children",
    "tests/agents/test_experts.py": "tests/agents/test_runs.py; tests/knowledge/test_service.py",
    "tests/agents/test_killed.py": "tests/agents/test_runs.py has the same runs undisturbed",
    "tests/agents/test_runs.py": "some tests of the module stay; tests/shared/agents",
    "tests/awareness/test_killed.py": "tests/voxbridge/supervisor/test_up.py; tests/awareness/test_core.py",
    "tests/bench/test_main.py::test_a_picture_is_drawn_of_whatever_was_measured": "`make bench` draws them",
    "tests/bench/test_relay_handoff.py": "`make bench` runs it",
    "tests/browser": "tests/browser/test_conversation.py has one conversation; `npm test` has the code of the pages",
    "tests/deploy/test_bootstrap.py::test_a_clean_checkout_sets_itself_up_with_the_systems_python_and_make_alone": "each run of CI does it",
    "tests/deploy/test_credentials.py": "tests/deploy/test_permissions.py; tests/deploy/test_doors.py",
    "tests/deploy/test_doors.py::test_headers_open_no_other_way": "one service stays; tests/deploy/test_permissions.py",
    "tests/deploy/test_doors.py::test_nobody_reads_audio_or_recordings_that_are_not_for_it": "one service stays; tests/deploy/test_permissions.py",
    "tests/deploy/test_first_change.py": "tests/tools/test_functions.py and the table of every function, for the functions that there are",
    "tests/deploy/test_gates.py::test_docstrings_open_with_a_verb_or_a_name": "`make check`",
    "tests/deploy/test_gates.py::test_every_core_is_pure": "`make check`",
    "tests/deploy/test_gates.py::test_no_module_is_too_long": "`make check`",
    "tests/deploy/test_images.py": "tests/deploy/test_compose.py; tests/deploy/test_wheel.py",
    "tests/deploy/test_imports.py": "`make check` holds the contracts; one broken one stays",
    "tests/deploy/test_purity.py": "`make check` has the gate of pure cores",
    "tests/deploy/test_recordings.py::test_no_other_users_command_opens_a_recording": "tests/deploy/test_permissions.py",
    "tests/deploy/test_session.py": "tests/deploy/test_permissions.py; tests/deploy/test_doors.py",
    "tests/deploy/test_testrun.py::test_a_file_that_is_left_is_red_and_named": "the tests of the module that stay",
    "tests/deploy/test_testrun.py::test_a_fourth_test_that_passes_the_second_time_is_red": "the tests of the module that stay",
    "tests/deploy/test_testrun.py::test_a_process_that_is_left_is_red_named_and_ended": "the tests of the module that stay",
    "tests/deploy/test_testrun.py::test_a_process_that_lost_its_parent_is_gone_when_it_ends": "the tests of the module that stay",
    "tests/deploy/test_testrun.py::test_a_test_in_quarantine_runs_and_does_not_decide": "the tests of the module that stay",
    "tests/deploy/test_testrun.py::test_an_interrupted_run_leaves_nothing": "the tests of the module that stay",
    "tests/deploy/test_testrun.py::test_an_old_line_and_one_that_names_no_test_are_red": "the tests of the module that stay",
    "tests/deploy/test_wheel.py::test_a_command_whose_libraries_are_missing_says_what_to_install": "tests/voxbridge/commands",
    "tests/deploy/test_wheel.py::test_the_command_runs_in_an_environment_of_its_own": "the contents of the wheel stay; tests/voxbridge/commands",
    "tests/faults/test_acknowledged.py": "tests/shared/log/test_writer.py and test_feed.py kill a server",
    "tests/faults/test_approvals.py": "tests/tools/test_approvals.py; tests/voice/core/test_consent.py",
    "tests/faults/test_disk.py": "tests/shared/log/test_writer.py; tests/voxbridge/installation",
    "tests/faults/test_gateway_and_page.py": "tests/gateway/core/test_page_functions.py",
    "tests/faults/test_handlers_killed.py": "tests/tools/sandbox/test_calls.py kills a sandbox; tests/faults/test_event_boundaries.py",
    "tests/faults/test_hostile_servers_beside_a_call.py": "tests/tools/mcp/test_hostile_servers.py",
    "tests/faults/test_keystrokes.py": "tests/tools/packs/test_terminals.py; tests/faults/test_event_boundaries.py",
    "tests/faults/test_macros_in_a_call.py": "one test of the module stays; tests/tools/test_macros.py",
    "tests/faults/test_once.py": "tests/tools/test_effects_of_calls.py; tests/tools/test_recovery.py",
    "tests/faults/test_realtime_crashes.py": "tests/voice/realtime has each crash in virtual time",
    "tests/faults/test_secrets.py::test_a_service_that_cannot_start_does_not_say_its_secrets": "the other tests of the module",
    "tests/faults/test_secrets.py::test_no_secret_is_in_anything_that_an_installation_writes_or_says": "the other tests of the module",
    "tests/faults/test_told_in_the_next_call.py": "tests/tools/test_ends.py",
    "tests/faults/test_told_in_the_next_call_by_vendors.py": "tests/tools/test_ends.py",
    "tests/faults/test_told_once.py": "tests/tools/test_ends.py",
    "tests/faults/test_told_once_in_a_cascade.py": "tests/tools/test_ends.py",
    "tests/faults/test_valkey.py": "one test of the module stays; tests/shared/store",
    "tests/faults/test_words_over_cuts.py": "tests/gateway/vox/test_outages.py; tests/voice/audio/test_catch_up.py",
    "tests/gateway/core/test_session_token.py::test_beyond_the_retention_nothing_of_what_was_missed_is_told": "the rules in the same module",
    "tests/gateway/core/test_session_token.py::test_the_token_stands_in_no_event_and_no_line_of_a_log": "tests/faults/test_secrets.py",
    "tests/gateway/core/test_session_token.py::test_while_the_log_is_away_the_token_is_not_spent": "the rules in the same module",
    "tests/gateway/core/test_session_token.py::test_who_goes_on_with_it_a_second_time_takes_it_over": "the rules in the same module",
    "tests/gateway/core/test_session_token.py::test_who_refuses_a_recording_does_not_go_on_with_one": "the rules in the same module",
    "tests/gateway/door/test_access.py": "some tests of the module stay; tests/shared/secrets/test_access_tokens.py",
    "tests/gateway/door/test_quotas.py::test_a_client_that_floods_the_log_is_told_once_and_writes_no_more_than_its_rate": "tests/shared/log/test_quotas.py",
    "tests/gateway/platform/test_admittance.py": "some tests of the module stay; tests/shared/platform",
    "tests/gateway/platform/test_stranger.py::test_messages_in_any_order_open_no_session_of_what_is_not_approved": "one seed stays",
    "tests/gateway/rest/test_app.py::test_every_answer_to_generated_requests_is_as_the_document_says": "the other tests of the module",
    "tests/gateway/rest/test_config.py": "tests/shared/secrets; tests/voxbridge/commands/test_keys.py",
    "tests/gateway/rest/test_functions.py::test_a_call_that_no_executor_takes_in_time_is_timed_out_and_never_begun_later": "tests/gateway/calls",
    "tests/gateway/rest/test_functions.py::test_a_gateway_that_is_killed_while_the_function_runs_loses_nothing": "tests/faults/test_event_boundaries.py kills the gateway; tests/gateway/calls",
    "tests/gateway/rest/test_functions.py::test_a_hundred_requests_with_one_key_are_one_call": "tests/gateway/calls",
    "tests/gateway/rest/test_functions.py::test_a_hundred_requests_with_one_key_at_two_gateways_are_one_call_of_two_executors": "the same at one gateway",
    "tests/gateway/rest/test_functions.py::test_a_killed_executor_leaves_one_effect_and_an_honest_outcome": "tests/tools/test_service.py kills an executor",
    "tests/gateway/rest/test_functions.py::test_an_account_has_so_many_calls_open_and_no_more": "tests/gateway/calls",
    "tests/gateway/rest/test_functions.py::test_too_fast_is_told_with_when_to_come_back": "tests/gateway/calls",
    "tests/gateway/rest/test_functions_killed.py": "tests/gateway/calls/test_ledger.py",
    "tests/gateway/rest/test_runs.py": "one test of the module stays; tests/tools/runs",
    "tests/gateway/rest/test_tasks_in_sessions.py": "tests/gateway/rest/test_functions.py has tasks",
    "tests/gateway/rest/test_terminals.py": "two tests of the module stay; tests/terminals",
    "tests/gateway/vox/test_replicated.py": "tests/gateway/vox on one server",
    "tests/gateway/vox/test_resuming.py::test_a_gateway_that_is_killed_loses_nothing_and_its_clients_resume_at_another_and_at_the_restarted_one": "tests/faults/test_event_boundaries.py kills the gateway",
    "tests/gateway/vox/test_resuming.py::test_a_resume_while_the_log_is_away_is_unavailable_and_closes_with_1013": "tests/gateway/vox/test_outages.py",
    "tests/gateway/vox/test_resuming.py::test_a_thousand_and_one_missed_events_arrive_each_once_in_order": "fewer events in the same module",
    "tests/gateway/vox/test_resuming.py::test_over_many_cuts_and_several_writers_every_event_is_told_once_in_order_from_one_gateway_and_the_other": "the other tests of the module",
    "tests/knowledge/test_ingest_killed.py": "tests/tools/packs/test_knowledge.py; tests/agents/test_runs.py",
    "tests/knowledge/test_killed.py": "tests/knowledge/test_graph_file.py kills a writer",
    "tests/knowledge/test_killed_at_each.py": "tests/knowledge/test_graph_file.py kills a writer",
    "tests/knowledge/test_quality.py": "tests/knowledge/test_service.py",
    "tests/knowledge/test_vectors.py": "tests/knowledge/test_core.py; tests/knowledge/test_service.py",
    "tests/models/test_choice.py::test_routers_are_kept_and_their_number_is_bounded": "the other tests of the module",
    "tests/models/test_choice.py::test_training_twice_gives_the_same_answers": "tests/models/test_router_files.py",
    "tests/models/test_choice_after_calls.py": "tests/models/test_choice.py; bench/choice",
    "tests/models/test_choice_after_handoffs.py": "tests/models/test_choice.py",
    "tests/models/test_choosing.py": "tests/models/test_choice.py has the router, tests/models/test_service.py one call of the real model",
    "tests/models/test_macro_wordings.py": "tests/models/test_choice.py; bench/choice",
    "tests/models/test_passages.py": "tests/models/test_readings.py",
    "tests/models/test_service.py::test_a_long_recording_is_understood_to_its_end": "tests/models/test_audio.py; the recordings of the module",
    "tests/models/test_service.py::test_a_warm_prefix_is_not_read_again": "tests/models/test_prompts.py",
    "tests/models/test_service.py::test_json_fits_its_schema": "one schema stays; tests/models/test_grammar.py",
    "tests/models/test_service.py::test_piper_is_started_again_when_it_dies": "tests/models/test_child.py",
    "tests/models/test_service.py::test_the_choice_of_a_tool_can_be_forced_and_forbidden": "tests/models/test_choice.py",
    "tests/models/test_warm_prompts.py": "tests/models/test_prompts.py",
    "tests/models/test_window.py::test_an_estimate_of_a_text_is_no_less_than_nine_tenths_of_its_tokens": "the other tests of the module",
    "tests/shared/log/test_feed.py::test_delivered_is_stored_under_random_cuts_of_the_connection": "one seed stays; kills in the same module",
    "tests/shared/log/test_reader.py::test_reads_go_on_over_cuts_of_the_connection": "the other tests of the module",
    "tests/shared/log/test_replicated.py": "tests/shared/log on one server",
    "tests/shared/log/test_scale.py": "tests/shared/log/test_reader.py",
    "tests/shared/service/test_process.py::test_a_service_that_does_not_drain_is_cut_off_at_the_bound": "the other tests of the module",
    "tests/terminals/test_cancelled_orders.py": "tests/tools/packs/test_terminals.py; tests/voice/core/test_consent.py",
    "tests/terminals/test_killed.py::test_killed_under_a_flood_it_loses_and_doubles_nothing": "the kills in a coding session beside it",
    "tests/terminals/test_killed.py::test_without_nats_and_without_valkey_programs_run_on": "the kill of the service beside it",
    "tests/terminals/test_order_by_vendors.py": "tests/tools/packs/test_terminals.py; tests/tools/packs/test_crew.py; tests/voice/providers",
    "tests/terminals/test_real_agents.py": "tests/terminals/test_screen_questions.py has their screens; coding_agent.py stands for them",
    "tests/terminals/test_shells.py": "tests/terminals/test_hostile.py and test_fleet.py have bash",
    "tests/terminals/test_service.py::test_a_question_that_cannot_be_read_is_refused": "one question stays",
    "tests/terminals/test_service.py::test_stopped_in_order_it_leaves_its_programs_to_the_next": "tests/terminals/test_killed.py",
    "tests/tools/every_function/test_injection.py": "tests/voice/core/test_consent.py; tests/tools/test_forged.py",
    "tests/tools/every_function/test_table.py::test_every_function_answers_the_same_by_each_door": "tests/tools/packs has each function; tests/gateway/rest and tests/tools/test_macros.py the doors",
    "tests/tools/every_function/test_table.py::test_every_function_bears_what_strangers_write": "test_injection.py beside it",
    "tests/tools/every_function/test_table.py::test_every_function_refuses_what_its_schema_does_not_have": "tests/tools/test_limits.py",
    "tests/tools/mcp/test_calls.py": "some tests of the module stay; tests/tools/mcp",
    "tests/tools/mcp/test_hostile_servers.py": "some tests of the module stay",
    "tests/tools/mcp/test_odd_schemas.py::test_each_alone_beside_a_good_one_works_or_is_named": "all at once beside it",
    "tests/tools/mcp/test_servers.py": "tests/tools/mcp/test_calls.py",
    "tests/tools/packs/test_code.py::test_a_bomb_for_a_parser_costs_its_own_call_at_most": "tests/tools/test_children.py",
    "tests/tools/packs/test_codegen.py::test_components_bundle_pass_the_strict_compiler_and_render": "the other tests of the module",
    "tests/tools/packs/test_codegen.py::test_endpoints_start_answer_and_refuse": "the other tests of the module",
    "tests/tools/packs/test_codegen.py::test_tests_are_collected_run_and_fail_when_the_interface_changes": "the other tests of the module",
    "tests/tools/packs/test_crew.py::test_a_watch_goes_on_when_the_terminals_service_was_killed": "the rules in the same module",
    "tests/tools/packs/test_crew.py::test_where_no_key_may_be_pressed_a_question_is_told": "the rules in the same module",
    "tests/tools/packs/test_terminals.py": "one test of the module stays; tests/terminals",
    "tests/tools/packs/test_utilities_bounds.py::test_a_pattern_that_would_take_more_memory_is_refused": "the other bounds",
    "tests/tools/packs/test_utilities_called.py::test_a_query_that_never_ends_is_ended_with_its_process": "the other tests of the module",
    "tests/tools/packs/test_utilities_hostile.py::test_a_query_that_is_more_than_a_select_over_the_table_is_refused[sql36]": "the other queries",
    "tests/tools/runs/test_orders.py": "one test of the module stays; tests/tools/runs/test_machine.py",
    "tests/tools/sandbox/test_bundlers.py": "tests/tools/sandbox/test_forbidden.py",
    "tests/tools/sandbox/test_hostile.py::test_a_handler_at_full_tilt_does_not_keep_another_from_answering": "`make bench` measures it",
    "tests/tools/sandbox/test_hostile.py::test_the_other_hostile_handlers_end_as_the_table_says": "every second one stays",
    "tests/tools/test_absence.py": "tests/tools/test_registry.py",
    "tests/tools/test_account_calls.py": "tests/gateway/rest/test_functions.py",
    "tests/tools/test_fuzzed_calls.py::test_many_fuzzed_calls_end_exactly_once": "fewer calls in the same module",
    "tests/tools/test_isolation.py::test_a_killed_executor_takes_its_functions_along_and_a_successor_says_so": "tests/tools/test_service.py kills an executor",
    "tests/tools/test_isolation.py::test_while_one_function_takes_the_processor_others_are_answered_until_its_time_is_over": "tests/tools/test_children.py",
    "tests/tools/test_loading.py::test_an_executor_serves_without_the_packs_that_it_cannot_use_and_says_so": "the other test of the module",
    "tests/tools/test_macro_table.py": "tests/tools/test_macros.py; tests/tools/runs",
    "tests/tools/test_notes.py": "tests/tools/test_functions.py",
    "tests/tools/test_outliving.py": "tests/tools/test_ends.py",
    "tests/tools/test_recovery.py": "tests/tools/test_core.py has each redelivery; tests/tools/test_service.py kills an executor",
    "tests/tools/test_replicated.py": "tests/tools on one server",
    "tests/tools/test_runs_killed.py": "tests/tools/runs has each death of a run in virtual time",
    "tests/tools/test_service.py::test_a_drained_executor_hands_its_timers_over_at_once": "the kill of an executor with a timer beside it",
    "tests/tools/test_service.py::test_a_result_waits_for_a_log_that_is_away": "tests/tools/test_faults.py",
    "tests/tools/test_service.py::test_a_thousand_copies_of_a_call_have_one_effect": "tests/tools/test_core.py has each redelivery",
    "tests/tools/test_service.py::test_two_executors_share_the_calls_of_many_sessions_and_of_one": "tests/tools/test_handover.py",
    "tests/tools/test_standing_kept.py": "tests/tools/test_approvals.py",
    "tests/tools/test_tasks_of_accounts.py": "tests/tools/test_ends.py; tests/gateway/rest/test_tasks_in_sessions.py",
    "tests/tools/test_undo_called.py": "tests/tools/test_undo.py",
    "tests/voice/audio/test_recorder.py": "tests/shared/audio/test_recordings.py",
    "tests/voice/core/test_crashes.py::test_a_page_may_be_cut_off_at_any_moment_and_hears_the_rest_when_it_is_back": "one of them stays; tests/voice/orders",
    "tests/voice/core/test_crashes.py::test_a_worker_may_die_at_any_moment_of_an_answer_and_of_a_call": "one of them stays; tests/voice/orders",
    "tests/voice/orders/test_orders.py::test_many_orders_of_what_may_happen_come_to_rest": "fewer orders in the same module",
    "tests/voice/ownership/test_carried_on.py": "tests/voice/ownership/test_takeover.py; tests/voice/core/test_crashes.py",
    "tests/voice/ownership/test_many_workers.py": "tests/voice/ownership/test_takeover.py",
    "tests/voice/ownership/test_migration.py": "tests/voice/ownership/test_takeover.py",
    "tests/voice/ownership/test_peers.py": "one test of the module stays; tests/voice/ownership/test_takeover.py",
    "tests/voice/ownership/test_replicated.py": "tests/voice/ownership on one server",
    "tests/voice/ownership/test_takeover.py": "tests/voice/core/test_crashes.py; one test of the module stays",
    "tests/voice/providers/test_models.py::test_a_worker_starts_without_the_vendors_sdks": "the other tests of the module",
    "tests/voice/providers/test_provider_suite.py": "tests/voice/providers has the tests of each adapter",
    "tests/voice/providers/test_spoken_pages.py": "tests/voice/providers/test_provider_suite.py",
    "tests/voice/realtime/test_gemini_generations.py": "some tests of the module stay; tests/voice/realtime/test_gemini_calls.py",
    "tests/voice/realtime/test_live_crashes.py": "tests/voice/core/test_crashes.py",
    "tests/voice/realtime/test_live_world.py::test_a_day_of_one_session": "the calls of the same world",
    "tests/voice/realtime/test_live_world.py::test_a_worker_may_die_behind_every_input_of_a_call": "one of them stays",
    "tests/voice/realtime/test_long_calls.py": "one test of the module stays; tests/voice/core/test_prompt.py",
    "tests/voice/session/test_inspection.py::test_every_moment_is_the_same_forwards_backwards_and_afresh": "the other tests of the module",
    "tests/voice/session/test_inspection.py::test_what_is_told_is_bounded": "tests/voice/core/test_limits.py",
    "tests/voice/session/test_service.py::test_models_that_are_away_for_a_moment_are_a_pause_in_the_turn": "tests/voice/core has each outage in virtual time",
    "tests/voice/session/test_service.py::test_sessions_leave_no_task_subscription_or_lease_behind": "the other tests of the module",
    "tests/voice/session/test_service.py::test_two_workers_share_the_requests_and_none_is_taken_twice": "tests/voice/ownership/test_takeover.py",
    "tests/voxbridge/commands/test_export.py::test_a_recorded_call_becomes_a_test_that_fails_when_the_behaviour_is_changed": "tests/recorded",
    "tests/voxbridge/commands/test_export.py::test_a_session_of_a_hundred_thousand_events_is_exported_in_bounded_memory": "the other tests of the module",
    "tests/voxbridge/commands/test_terminals.py": "tests/terminals; tests/gateway/rest/test_terminals.py",
    "tests/voxbridge/doctor/test_tools.py::test_executors_that_were_given_other_packs_or_mcp_servers_are_told": "the other tests of the module",
}
"""Tests of `make test-all` alone, each with what covers the same in `make test`."""

STAYS: Final = (
    "tests/agents/test_runs.py::test_a_program_runs_an_agent_over_rest",
    "tests/agents/test_runs.py::test_a_request_that_is_made_again_and_at_the_same_time_is_one_session_and_one_text",
    "tests/agents/test_runs.py::test_an_agent_with_claude_works_by_claude",
    "tests/agents/test_runs.py::test_an_agent_works_in_a_session_of_its_own_and_its_answer_is_told_once",
    "tests/browser/test_conversation.py::test_a_person_is_understood_and_the_answer_is_heard",
    "tests/deploy/test_doors.py::test_headers_open_no_other_way[gateway]",
    "tests/deploy/test_doors.py::test_nobody_reads_audio_or_recordings_that_are_not_for_it[tools]",
    "tests/deploy/test_imports.py::test_an_import_that_breaks_a_contract_is_named[voxbridge/services/voice/core/inputs.py]",
    "tests/faults/test_macros_in_a_call.py::test_a_macro_is_told_and_run_step_by_step_at_a_word",
    "tests/faults/test_valkey.py::test_a_call_goes_on_over_a_killed_valkey",
    "tests/gateway/door/test_access.py::test_an_administrator_makes_tokens_over_http_and_nobody_else_does",
    "tests/gateway/door/test_access.py::test_every_door_to_a_session_is_tried_with_tokens",
    "tests/gateway/door/test_access.py::test_every_route_that_is_not_open_to_all_wants_a_token",
    "tests/gateway/door/test_access.py::test_sessions_are_told_to_those_whose_they_are",
    "tests/gateway/platform/test_admittance.py::test_a_gateway_that_begins_knows_keys_and_approvals_of_before",
    "tests/gateway/platform/test_admittance.py::test_a_key_opens_no_other_door_and_the_host_is_the_installations",
    "tests/gateway/platform/test_admittance.py::test_an_origin_is_judged_by_the_key_and_not_by_the_installation",
    "tests/gateway/platform/test_admittance.py::test_calls_at_a_time_are_counted_over_two_gateways",
    "tests/gateway/platform/test_stranger.py::test_messages_in_any_order_open_no_session_of_what_is_not_approved[1]",
    "tests/gateway/rest/test_runs.py::test_a_run_goes_step_by_step_and_is_answered_before_each",
    "tests/gateway/rest/test_terminals.py::test_a_role_has_its_orders_and_those_of_the_roles_before_it[control]",
    "tests/gateway/rest/test_terminals.py::test_a_terminal_by_rest_from_its_start_to_its_end",
    "tests/gateway/rest/test_terminals.py::test_keys_are_typed_and_shown_at_two_sockets",
    "tests/models/test_service.py::test_json_fits_its_schema[scalars]",
    "tests/shared/log/test_feed.py::test_delivered_is_stored_under_random_cuts_of_the_connection[embedded-0]",
    "tests/terminals/test_service.py::test_a_question_that_cannot_be_read_is_refused[{]",
    "tests/tools/mcp/test_calls.py::test_a_tool_is_published_and_run_by_run_tool",
    "tests/tools/mcp/test_calls.py::test_an_answer_that_is_not_what_was_declared_is_left_out_and_said[lie]",
    "tests/tools/mcp/test_hostile_servers.py::test_a_server_that_dies_in_a_call_interrupts_it_and_comes_back",
    "tests/tools/mcp/test_hostile_servers.py::test_two_tools_of_one_name_are_both_refused",
    "tests/tools/packs/test_terminals.py::test_a_command_is_run_once_a_person_approved_it_and_read",
    "tests/tools/runs/test_orders.py::test_every_run_ends_once_and_leaves_nothing_open",
    "tests/voice/core/test_crashes.py::test_a_page_may_be_cut_off_at_any_moment_and_hears_the_rest_when_it_is_back[cut_off]",
    "tests/voice/core/test_crashes.py::test_a_worker_may_die_at_any_moment_of_an_answer_and_of_a_call[killed-a page that reports]",
    "tests/voice/ownership/test_peers.py::test_a_killed_worker_is_followed_before_its_lease_runs_out_and_one_that_stands_still_is_not",
    "tests/voice/ownership/test_takeover.py::test_a_released_session_is_with_another_worker_at_once",
    "tests/voice/ownership/test_takeover.py::test_an_owner_that_was_thought_dead_is_kept_out_by_the_log",
    "tests/voice/realtime/test_gemini_generations.py::test_a_handoff_goes_on_with_the_conversation[True-gemini-3.8-live]",
    "tests/voice/realtime/test_gemini_generations.py::test_a_model_that_keeps_the_first_agents_instructions_is_not_resumed_for_a_handoff",
    "tests/voice/realtime/test_gemini_generations.py::test_a_status_beside_the_end_of_a_turn_changes_nothing_for_the_caller",
    "tests/voice/realtime/test_live_world.py::test_a_worker_may_die_behind_every_input_of_a_call[gemini-3.8-live-700]",
    "tests/voice/realtime/test_long_calls.py::test_a_connection_that_is_seeded_again_says_what_it_was_not_told[20]",
)
"""Tests of `make test` below an entry of `ONLY_ALL`."""

LONG: Final = "tests/long"

ALONE: Final = (
    "tests/browser",
    "tests/models/test_child.py",
    "tests/models/test_choosing.py",
    "tests/models/test_passages.py",
    "tests/models/test_service.py",
    "tests/models/test_start.py",
    "tests/models/test_warm_prompts.py",
    "tests/voxbridge/supervisor",
)
"""Tests that load the machine or look at its clock: they run one at a time, after the rest."""

PAGES: Final = (
    "tests/browser/test_bridge.py",
    "tests/browser/test_embedded.py",
    "tests/browser/test_insight.py",
    "tests/browser/test_long_utterance.py",
    "tests/browser/test_page_functions.py",
    "tests/browser/test_page_reading.py",
    "tests/browser/test_rooms.py",
    "tests/browser/test_text_and_voice.py",
    "tests/browser/test_tokens.py",
    "tests/browser/test_tools_room.py",
    "tests/browser/test_tools_work.py",
    "tests/browser/test_work.py",
)
"""Tests below `ALONE` in a real browser, but with no language model or a scripted one: two modules of them run at a time."""

PARTS: Final = ("side", "pages", "alone")


def holds(tier: str, test: str) -> bool:
    """Tell whether a tier runs a test, by its node id."""
    if _below(test, (LONG,)):
        return False
    if tier == "all":
        return True
    if _below(test, ONLY_ALL) and not _below(test, STAYS):
        return False
    return tier == "test" or (_below(test, QUICK) and not _below(test, NOT_QUICK))


def in_part(part: str, test: str) -> bool:
    """Tell whether a test, or a module, runs in a part of a tier: `side` by side, as one of the `pages`, or `alone`. A module is whole
    in one of them."""
    return part == ("pages" if _below(test, PAGES) else "alone" if _below(test, ALONE) else "side")


def may_hold(tier: str, module: str) -> bool:
    """Tell whether a tier may run some test of a module, by its path from the root of the checkout."""
    if tier == "quick" and (_below(module, NOT_QUICK) or not (_below(module, QUICK) or _above(module, QUICK))):
        return False
    return not _below(module, (LONG,)) and (tier == "all" or not _below(module, ONLY_ALL) or _above(module, STAYS))


def table() -> str:
    """Return the table of CONTRIBUTING: for each folder of tests, what of it is in which tier."""
    folders = sorted(path.parent.relative_to(ROOT).as_posix() for path in (ROOT / "tests").glob("*/__init__.py"))
    lines = ["| folder | `make test-quick` | `make test` | in `make test-all` alone |", "|---|---|---|---|"]
    for folder in folders:
        if folder == LONG:
            lines.append(f"| `{folder}/` | | | in none of them: `make test-long` |")
            continue
        quick = "all" if _below(folder, QUICK) and not _above(folder, NOT_QUICK) else "some" if _above(folder, QUICK) else ""
        later = sorted({entry.partition("::")[0] for entry in ONLY_ALL if _below(entry, (folder,)) and entry != folder})
        test = "all" if not later else "most"
        if _below(folder, ONLY_ALL):
            test, later = ("one" if _above(folder, STAYS) else ""), ["the others"]
        cells = ", ".join(f"`{path.removeprefix(f'{folder}/')}`" if "." in path else path for path in later)
        lines.append(f"| `{folder}/` | {quick} | {test} | {cells} |")
    return "\n".join(lines)


def _above(path: str, entries: Iterable[str]) -> bool:
    return any(_below(entry, (path,)) for entry in entries)


def _below(test: str, entries: Iterable[str]) -> bool:
    return any(test == entry or (test.startswith(entry) and test[len(entry)] in "/:[") for entry in entries)


if __name__ == "__main__":
    sys.stdout.write(f"{table()}\n")

"""A row for every limit of the tool executor: how it is proved at its bound, here or in a test of its own."""

from __future__ import annotations

from tests.tools.proofs import (
    Elsewhere,
    Kept,
    Limit,
    Refused,
    argument,
    macro,
    passage_of,
    take_aliased,
    take_checked,
    take_checkpoint,
    take_columns,
    take_common,
    take_described,
    take_documents,
    take_drafted,
    take_facts,
    take_frame,
    take_granted,
    take_inputs,
    take_licence,
    take_licences,
    take_line,
    take_listed,
    take_methods,
    take_pause,
    take_remote,
    take_said,
    take_searched,
    take_sections,
    take_servers,
    take_slots,
    take_title,
    take_undo,
    take_workflows,
    tools,
)
from voxbridge.services.tools.mcp import config
from voxbridge.services.tools.packs.codegen import names
from voxbridge.services.tools.packs.everyday import calculator
from voxbridge.services.tools.packs.knowledge import spoken as passages
from voxbridge.services.tools.packs.macros import functions as macros
from voxbridge.services.tools.packs.terminals import reach as terminals
from voxbridge.services.tools.packs.utilities import json_text, patterns, words, yaml_text
from voxbridge.services.tools.runs import conditions, pipes, spoken
from voxbridge.shared.errors import Code

DOCUMENT = Elsewhere("tools/runs/test_document.py", "test_a_document_at_its_limits_is_taken_and_one_beyond_is_refused")
NAMES = Elsewhere("tools/packs/test_codegen.py", "test_names_fields_and_paths_are_taken_up_to_their_limits")
TEXTS = Elsewhere("tools/mcp/test_text.py", "test_an_answer_is_text_and_links_within_bounds")
MANY = Elsewhere("tools/mcp/test_hostile_servers.py", "test_ten_thousand_tools_are_refused_in_a_sentence_and_some_can_be_chosen")
HOSTILE = Elsewhere("tools/sandbox/test_hostile.py", "test_the_other_hostile_handlers_end_as_the_table_says")
REQUESTS = Elsewhere("tools/sandbox/test_forbidden.py", "test_a_request_is_within_its_limits_whatever_the_sandbox_says")
FULL = Elsewhere("tools/test_service.py", "test_a_full_process_leaves_calls_to_the_stream")
PROOFS: dict[Limit, Refused | Kept | Elsewhere] = {
    ("core.approvals", "GRANTED_KEPT"): Kept(take=take_granted),
    ("sandbox.engine", "MEMORY_LIMIT"): HOSTILE,
    ("sandbox.engine", "STACK_LIMIT"): HOSTILE,
    ("sandbox.engine", "RANDOM_LIMIT"): Elsewhere("tools/sandbox/test_bounds.py", "test_random_bytes_are_given_up_to_the_bound"),
    ("sandbox.fetching", "HEADERS_LIMIT"): REQUESTS,
    ("sandbox.fetching", "HEADER_LIMIT"): REQUESTS,
    ("sandbox.fetching", "REQUEST_LIMIT"): REQUESTS,
    ("sandbox.fetching", "ANSWER_LIMIT"): Elsewhere("tools/sandbox/test_forbidden.py", "test_an_answer_is_read_within_its_limits"),
    ("sandbox.frames", "IN_LIMIT"): Elsewhere("tools/sandbox/test_bounds.py", "test_a_process_that_is_told_more_than_it_may_be_ends"),
    ("sandbox.frames", "OUT_LIMIT"): HOSTILE,
    ("sandbox.outside", "FETCH_LIMIT_S"): Elsewhere(
        "tools/sandbox/test_forbidden.py", "test_a_slow_and_an_endless_answer_end_with_their_time"
    ),
    ("sandbox.sandboxes", "ACCOUNT_LIMIT"): Elsewhere("tools/sandbox/test_hostile.py", "test_calls_beyond_the_limits_are_refused"),
    ("sandbox.sandboxes", "WAITING_LIMIT"): Elsewhere("tools/sandbox/test_bounds.py", "test_a_call_waits_for_a_place_in_a_line_that_ends"),
    ("sandbox.sandboxes", "RUNNING_LIMIT"): Elsewhere(
        "tools/sandbox/test_bounds.py", "test_so_many_handlers_run_at_a_time_over_all_accounts"
    ),
    ("sandbox.sandboxes", "IDLE_LIMIT"): Elsewhere("tools/sandbox/test_bounds.py", "test_so_many_processes_wait_for_their_sessions"),
    ("sandbox.sandboxes", "CALLS_LIMIT"): Elsewhere("tools/sandbox/test_bounds.py", "test_a_process_is_replaced_after_so_many_calls"),
    ("sandbox.sandboxes", "OPEN_LIMIT"): HOSTILE,
    ("sandbox.sandboxes", "ASKS_LIMIT"): HOSTILE,
    ("sandbox.sandboxes", "CHECKED_KEPT"): Elsewhere(
        "tools/sandbox/test_bounds.py", "test_of_so_many_sources_it_is_known_that_they_can_run"
    ),
    ("session.customers", "ARGUMENTS_LIMIT"): Elsewhere("tools/sandbox/test_bounds.py", "test_arguments_are_taken_up_to_the_bound"),
    ("session.customers", "SESSIONS_KEPT"): Elsewhere(
        "tools/sandbox/test_bounds.py", "test_the_configurations_of_so_many_sessions_are_kept"
    ),
    ("core.approvals", "QUESTION_CHARACTERS"): Elsewhere("tools/test_approvals.py", "test_a_long_argument_is_cut_in_the_question"),
    ("core.calls", "ENDED_KEPT"): Elsewhere("tools/test_core.py", "test_what_a_session_remembers_is_bounded"),
    ("core.calls", "RECENT_KEPT"): Elsewhere("tools/test_effects_of_calls.py", "test_results_kept_for_repetitions_are_bounded"),
    ("core.calls", "ATTEMPTS_LIMIT"): Elsewhere("tools/test_core.py", "test_an_idempotent_function_is_begun_again_up_to_the_limit"),
    ("core.calls", "TASKS_LIMIT"): Elsewhere("tools/test_effects_of_calls.py", "test_a_session_runs_a_bounded_number_of_tasks"),
    ("core.ends", "KEPT"): Elsewhere("tools/test_ends.py", "test_an_account_keeps_so_many_ends_and_forgets_the_oldest"),
    ("core.ends", "RESULT_BYTES"): Elsewhere("tools/test_ends.py", "test_a_large_result_is_kept_as_what_is_to_be_said"),
    ("core.results", "RESULT_LIMIT"): Elsewhere("tools/test_service.py", "test_a_result_at_the_limit_is_delivered"),
    ("core.results", "MESSAGE_LIMIT"): Elsewhere("tools/test_results.py", "test_a_message_has_a_bound"),
    ("core.step", "OPEN_LIMIT"): Elsewhere("tools/test_core.py", "test_a_session_has_a_bounded_number_of_open_calls"),
    ("core.step", "WITHDRAWN_KEPT"): Elsewhere("tools/test_core.py", "test_what_a_session_remembers_is_bounded"),
    ("core.step", "FACTS_KEPT"): Kept(take=take_facts),
    ("core.tasks", "ACCOUNT_LIMIT"): Elsewhere(
        "tools/test_tasks_of_accounts.py", "test_a_call_that_is_approved_counts_among_the_tasks_of_its_account_and_is_refused_beyond_them"
    ),
    ("core.tasks", "TIMERS_KEPT"): Elsewhere(
        "tools/test_tasks_of_accounts.py", "test_a_task_that_cannot_be_refused_is_counted_beyond_the_limit_and_a_timer_takes_up_no_room"
    ),
    ("core.undo", "KEPT"): Elsewhere("tools/test_undo.py", "test_an_account_lists_so_many_and_forgets_the_oldest"),
    ("core.undo", "UNDO_BYTES"): Kept(take=take_undo),
    ("isolation.children", "CHILDREN_LIMIT"): Elsewhere(
        "tools/test_children.py", "test_there_are_never_more_children_than_the_limit_and_calls_wait_in_turn"
    ),
    ("isolation.children", "WAITING_LIMIT"): Elsewhere("tools/test_children.py", "test_more_calls_than_may_wait_are_refused"),
    ("isolation.children", "CALLS_LIMIT"): Elsewhere(
        "tools/test_limits.py", "test_a_child_makes_so_many_calls_and_another_takes_its_place"
    ),
    ("isolation.children", "FRAME_LIMIT"): Elsewhere("tools/test_limits.py", "test_an_answer_of_a_child_has_a_bound"),
    ("mcp.client", "CALLS_LIMIT"): Elsewhere("tools/mcp/test_hostile_servers.py", "test_more_calls_than_a_server_may_have_are_refused"),
    ("mcp.config", "FILE_LIMIT"): Elsewhere("tools/mcp/test_config.py", "test_a_file_has_a_bound_and_an_empty_one_names_no_server"),
    ("mcp.config", "SERVERS_LIMIT"): Refused(take=take_servers, field=config.SETTING),
    ("mcp.config", "EXAMPLES_LIMIT"): Elsewhere("tools/mcp/test_config.py", "test_what_people_say_for_a_tool_is_the_later_rules"),
    ("mcp.connection", "TOOLS_LIMIT"): MANY,
    ("mcp.connection", "PAGES_LIMIT"): MANY,
    ("mcp.connection", "REFUSED_LIMIT"): Elsewhere("tools/mcp/test_odd_schemas.py", "test_of_many_refused_tools_the_first_are_named"),
    ("loading", "_WHY_LIMIT"): Elsewhere(
        "tools/test_loading.py", "test_each_pack_that_cannot_be_used_is_named_with_its_reason_and_the_others_serve"
    ),
    ("mcp.schemas", "ENUM_LIMIT"): Elsewhere("tools/mcp/test_schemas.py", "test_of_a_long_enum_a_few_values_are_told"),
    ("mcp.schemas", "NODES_LIMIT"): Elsewhere("tools/mcp/test_schemas.py", "test_what_means_nothing_is_refused_with_its_reason"),
    ("mcp.content", "TEXT_LIMIT"): TEXTS,
    ("mcp.content", "STRUCTURE_LIMIT"): TEXTS,
    ("mcp.content", "LINKS_LIMIT"): TEXTS,
    ("mcp.content", "SPOKEN_LIMIT"): TEXTS,
    ("mcp.host", "UNSENT_LIMIT"): Elsewhere("tools/mcp/test_lines.py", "test_a_host_whose_executor_does_not_read_ends"),
    ("mcp.lines", "FLOOD_LIMIT"): Elsewhere("tools/mcp/test_lines.py", "test_a_server_is_ended_at_a_line_beyond_the_flood_limit"),
    ("mcp.lines", "STDERR_KEPT"): Elsewhere("tools/mcp/test_lines.py", "test_the_last_that_a_server_said_as_an_error_is_kept"),
    ("mcp.lines", "LINE_LIMIT"): Elsewhere("tools/mcp/test_hostile_servers.py", "test_an_answer_that_is_too_long_fails_its_own_call"),
    ("mcp.messages", "FRAME_LIMIT"): Refused(take=take_frame, field=None, code=Code.TOO_LARGE),
    ("mcp.names", "NAME_LIMIT"): Elsewhere("tools/mcp/test_text.py", "test_a_name_that_fits_stays_and_others_differ_by_a_hash"),
    ("mcp.remote", "ARGUMENTS_LIMIT"): Refused(take=take_remote, field=None, code=Code.TOO_LARGE),
    ("mcp.text", "DESCRIPTION_LIMIT"): Elsewhere("tools/mcp/test_text.py", "test_texts_are_cut_at_their_bounds"),
    ("mcp.text", "SCHEMA_LIMIT"): Elsewhere("tools/mcp/test_text.py", "test_schemas_have_bounds"),
    ("mcp.text", "DEPTH_LIMIT"): Elsewhere("tools/mcp/test_text.py", "test_schemas_have_bounds"),
    ("mcp.text", "TOOL_NAME_LIMIT"): Elsewhere("tools/mcp/test_text.py", "test_schemas_have_bounds"),
    ("packs.catalogue.functions", "DESCRIPTION_CHARACTERS"): Kept(take=take_described),
    ("packs.code.functions", "FOUND_LIMIT"): Elsewhere("tools/packs/test_code.py", "test_a_long_list_is_cut_with_a_count"),
    ("packs.code.sources", "FILES_LIMIT"): Elsewhere("tools/packs/test_code.py", "test_a_folder_is_read_within_its_bounds"),
    ("packs.code.sources", "TOTAL_LIMIT"): Elsewhere("tools/packs/test_code.py", "test_a_folder_is_read_within_its_bounds"),
    ("packs.codegen.endpoint", "PARTS_LIMIT"): NAMES,
    ("packs.codegen.endpoint", "TEXT_LIMIT"): Elsewhere("tools/packs/test_codegen.py", "test_endpoints_start_answer_and_refuse"),
    ("packs.codegen.endpoint", "LIST_LIMIT"): Elsewhere("tools/packs/test_codegen.py", "test_endpoints_start_answer_and_refuse"),
    ("packs.codegen.names", "NAME_LIMIT"): NAMES,
    ("packs.codegen.names", "FIELDS_LIMIT"): NAMES,
    ("packs.codegen.names", "FIELD_LIMIT"): Refused(
        take=lambda size: names._field("a" * 40 + " " * (size - 47) + ":number", "fields"), field="fields"
    ),
    ("packs.codegen.outline", "NAMES_LIMIT"): Elsewhere("tools/packs/test_codegen.py", "test_a_module_of_many_functions_is_cut"),
    ("packs.codegen.outline", "METHODS_LIMIT"): Kept(take=take_methods),
    ("packs.device.sensors", "OUTPUT_LIMIT"): Elsewhere("tools/test_limits.py", "test_a_program_of_sensors_says_so_much"),
    ("packs.device.sensors", "ENTRIES_LIMIT"): Elsewhere("tools/test_limits.py", "test_so_many_sensors_are_read"),
    ("packs.everyday.calculator", "EXPRESSION_LIMIT"): argument("calculate", "expression"),
    ("packs.everyday.calculator", "POWER_LIMIT"): Refused(take=lambda size: calculator.evaluate(f"1 ** {size}"), field="expression"),
    ("packs.everyday.calculator", "DIGITS_LIMIT"): Refused(
        take=lambda size: calculator.evaluate(f"round(2.5, {size})"), field="expression"
    ),
    ("packs.everyday.calculator", "FACTORIAL_LIMIT"): Refused(
        take=lambda size: calculator.evaluate(f"factorial({size})"), field="expression"
    ),
    ("packs.everyday.notes", "NOTE_LIMIT"): argument("remember", "note"),
    ("packs.everyday.notes", "FOUND_LIMIT"): Elsewhere("tools/test_functions.py", "test_five_notes_at_most_are_found"),
    ("packs.knowledge.functions", "GRAPHS_LIMIT"): Kept(take=take_searched),
    ("packs.knowledge.spoken", "TEXT_LIMIT"): Kept(take=lambda size: len(passages.passage(passage_of("x" * size))["text"])),
    ("packs.knowledge.spoken", "SPOKEN_LIMIT"): Kept(
        take=lambda size: len(passages.best_sentence("x", passage_of("x" * size)).partition(" That is")[0])
    ),
    ("packs.everyday.calculator", "WHOLE_LIMIT"): Kept(
        take=lambda size: size if calculator.spoken(calculator.tidy(size - 1)) == f"{size - 1:,}" else 0
    ),
    ("packs.everyday.calculator", "MAGNITUDE_LIMIT"): Elsewhere("tools/test_limits.py", "test_a_number_is_worked_out_up_to_its_bound"),
    ("packs.macros.functions", "MACROS_LIMIT"): Elsewhere("tools/test_macros.py", "test_an_account_has_a_bound_of_macros"),
    ("packs.macros.functions", "SHOWN_LIMIT"): Kept(
        take=lambda size: len(macros._planned(macro(steps=["current_time"] * size), {}, {})["steps"])
    ),
    ("packs.playbooks.functions", "TEXT_LIMIT"): Elsewhere("tools/packs/test_playbooks.py", "test_a_file_that_changes_is_read_again"),
    ("packs.playbooks.functions", "QUERY_LIMIT"): argument("search_playbooks", "query"),
    ("packs.playbooks.library", "FILES_LIMIT"): Elsewhere("tools/packs/test_playbooks.py", "test_what_is_no_playbook_hides_none"),
    ("packs.playbooks.library", "FILE_LIMIT"): Elsewhere("tools/packs/test_playbooks.py", "test_what_is_no_playbook_hides_none"),
    ("packs.projects.functions", "DESCRIPTION_LIMIT"): argument("create_project", "description", name="x"),
    ("packs.terminals.reach", "SPOKEN_CHARACTERS"): Kept(take=lambda size: len(terminals.end_of("x" * size))),
    ("session.contexts", "TELL_LIMIT"): Elsewhere(
        "tools/test_service.py", "test_a_task_tells_something_on_the_way_and_is_as_far_as_it_was"
    ),
    ("packs.terminals.functions", "WATCH_LIMIT_S"): Refused(
        take=lambda size: tools()["watch_terminals"].check({"seconds": size}), field="seconds"
    ),
    ("packs.terminals.reach", "WAIT_LIMIT_S"): Refused(
        take=lambda size: tools()["wait_for_terminal"].check({"seconds": size}), field="seconds"
    ),
    ("packs.utilities.bounds", "TEXT_LIMIT"): argument("count_words", "text"),
    ("packs.utilities.bounds", "GIVEN_LIMIT"): Elsewhere("tools/packs/test_utilities_hostile.py", "test_a_result_is_whole_or_refused"),
    ("packs.utilities.bounds", "NODE_LIMIT"): Refused(take=take_aliased, field="text"),
    ("packs.utilities.bounds", "LISTED_LIMIT"): Kept(
        take=lambda size: len(patterns.tested("a", "a" * size, None, ignore_case=False, multiline=False)["matches"])
    ),
    ("packs.utilities.colours", "COLOUR_LIMIT"): argument("describe_color", "color"),
    ("packs.utilities.json_text", "DIGITS_LIMIT"): Kept(take=lambda size: size if isinstance(json_text._integer("1" * size), int) else 0),
    ("packs.device.sensors", "_FILE_LIMIT"): Kept(take=take_line),
    ("packs.knowledge.functions", "TEXT_LIMIT"): argument("ingest_to_kg", "text", database="g", source="s"),
    ("packs.knowledge.documents", "FILES_LIMIT"): Refused(take=take_documents, field="source", code=Code.TOO_LARGE),
    ("packs.playbooks.library", "SECTIONS_LIMIT"): Kept(take=take_sections),
    ("packs.utilities.licences", "BYTES_LIMIT"): Kept(take=take_licence),
    ("packs.utilities.licences", "FILES_LIMIT"): Kept(take=take_licences),
    ("packs.utilities.probes", "SHOWN_LIMIT"): Kept(take=take_title),
    ("packs.workflows.functions", "SHOWN_LIMIT"): Kept(take=take_listed),
    ("packs.utilities.markup", "BRACKETS_LIMIT"): Elsewhere(
        "tools/packs/test_utilities_hostile.py", "test_markdown_has_a_bound_of_brackets"
    ),
    ("packs.utilities.patterns", "PATTERN_LIMIT"): argument("try_regex", "pattern", text="a"),
    ("packs.utilities.patterns", "MEMORY_LIMIT"): Elsewhere(
        "tools/packs/test_utilities_bounds.py", "test_a_pattern_that_would_take_more_memory_is_refused"
    ),
    ("packs.utilities.patterns", "MATCHES_LIMIT"): Elsewhere(
        "tools/packs/test_utilities_hostile.py", "test_matches_are_counted_and_shown_within_bounds"
    ),
    ("packs.utilities.patterns", "SHOWN_LIMIT"): Kept(
        take=lambda size: len(patterns.tested("a+", "a" * size, None, ignore_case=False, multiline=False)["matches"][0]["text"])
    ),
    ("packs.utilities.tables", "SQL_LIMIT"): argument("query_table", "sql", path="a.csv"),
    ("packs.agents.functions", "MESSAGE_LIMIT"): Elsewhere(
        "tools/every_function/test_table.py", "test_every_function_refuses_what_its_schema_does_not_have"
    ),
    ("packs.agents.sources", "PASSAGE_CHARACTERS"): Elsewhere(
        "tools/packs/test_sources.py", "test_passages_are_data_without_hidden_characters_and_of_bounded_length"
    ),
    ("packs.utilities.tables", "ROWS_LIMIT"): Elsewhere("tools/packs/test_utilities_hostile.py", "test_a_query_gives_no_more_than_fits"),
    ("packs.utilities.tables", "COLUMNS_LIMIT"): Refused(take=take_columns, field="sql"),
    ("packs.utilities.tables", "CELL_LIMIT"): Elsewhere("tools/packs/test_utilities_hostile.py", "test_a_query_gives_no_more_than_fits"),
    ("packs.utilities.tables", "COMMON_LIMIT"): Kept(take=take_common),
    ("packs.utilities.times", "RUNS_LIMIT"): Refused(
        take=lambda size: tools()["explain_cron"].check({"expression": "* * * * *", "runs": size}), field="runs"
    ),
    ("packs.utilities.tokens", "TOKEN_LIMIT"): argument("decode_jwt", "token"),
    ("packs.utilities.units", "UNIT_LIMIT"): argument("convert_units", "from_unit", amount=1, to_unit="m"),
    ("packs.utilities.words", "LINES_LIMIT"): Refused(take=lambda size: words.compared("a\n" * size, "b"), field="first"),
    ("packs.utilities.words", "SHOWN_LIMIT"): Elsewhere(
        "tools/packs/test_utilities_hostile.py", "test_words_are_counted_and_written_right"
    ),
    ("packs.utilities.yaml_text", "DOCUMENT_LIMIT"): Refused(take=lambda size: yaml_text.load("--- a\n" * size), field="text"),
    ("runs.conditions", "TERMS_LIMIT"): Elsewhere("tools/runs/test_pipes.py", "test_a_condition_has_a_bound_of_terms"),
    ("runs.conditions", "CONDITION_CHARACTERS"): Refused(
        take=lambda size: conditions.read("1 == " + "1" * (size - 5)), field="when", code=Code.TOO_LARGE
    ),
    ("runs.document", "STEPS_LIMIT"): DOCUMENT,
    ("runs.document", "DEPTH_LIMIT"): Elsewhere("tools/runs/test_checks.py", "test_a_document_and_what_it_runs_have_a_bound_in_bytes"),
    ("runs.document", "DOCUMENT_BYTES"): DOCUMENT,
    ("runs.document", "BUNDLE_BYTES"): Elsewhere("tools/runs/test_checks.py", "test_a_document_and_what_it_runs_have_a_bound_in_bytes"),
    ("runs.document", "NESTING_LIMIT"): DOCUMENT,
    ("runs.document", "TRIGGERS_LIMIT"): Refused(
        take=lambda size: macro(triggers=[f"say {number}" for number in range(size)]), field="triggers"
    ),
    ("runs.document", "INPUTS_LIMIT"): Refused(
        take=lambda size: macro(inputs={f"n{number}": {} for number in range(size)}), field="inputs"
    ),
    ("runs.document", "QUEUED_LIMIT"): Refused(take=lambda size: macro(mode="queued", limit=size), field="limit"),
    ("runs.document", "PARALLEL_LIMIT"): Refused(take=lambda size: macro(mode="parallel", limit=size), field="limit"),
    ("runs.document", "RETRIES_LIMIT"): Refused(take=lambda size: macro(policy={"retry": size}), field="on_error"),
    ("runs.document", "BACKOFF_LIMIT_S"): Refused(take=lambda size: macro(policy={"retry": {"n": 1, "backoff_s": size}}), field="on_error"),
    ("runs.document", "TEXT_CHARACTERS"): Refused(take=lambda size: macro(steps=[{"say": "x" * size}]), field="steps"),
    ("runs.document", "CONDITION_CHARACTERS"): Refused(
        take=lambda size: macro(steps=[{"say": "x", "when": "1 == " + "1" * (size - 5)}]), field="steps"
    ),
    ("runs.document", "TIMEOUT_LIMIT_S"): Refused(take=lambda size: macro(steps=[{"wait": size}]), field="steps"),
    ("runs.draft", "VALUES_LIMIT"): Elsewhere("tools/runs/test_draft.py", "test_a_draft_has_bounds"),
    ("runs.dry_run", "PLANNED_LIMIT"): Elsewhere(
        "tools/runs/test_draft.py", "test_a_plan_has_a_bound_and_ends_where_documents_run_in_a_circle"
    ),
    ("runs.failures", "ATTEMPTS_LIMIT"): Elsewhere(
        "tools/runs/test_machine.py", "test_a_step_has_a_bound_of_attempts_by_the_users_word_too"
    ),
    ("runs.failures", "PAUSE_LIMIT_US"): Kept(take=take_pause),
    ("runs.draft", "DEPTH_LIMIT"): Kept(take=take_drafted),
    ("runs.machine", "RESULTS_BYTES"): Elsewhere("tools/runs/test_machine.py", "test_a_run_has_a_bound_of_results"),
    ("runs.machine", "SAID_CHARACTERS"): Kept(take=take_said),
    ("runs.machine", "ANSWER_CHARACTERS"): Elsewhere(
        "tools/runs/test_machine.py", "test_an_answer_is_a_text_of_the_step_and_cut_at_its_bound"
    ),
    ("runs.modes", "RUNS_LIMIT"): Elsewhere("tools/runs/test_modes.py", "test_all_runs_together_have_a_bound"),
    ("runs.modes", "ENDED_KEPT"): Elsewhere("tools/runs/test_modes.py", "test_a_start_that_comes_again_starts_nothing"),
    ("runs.pipes", "RESOLVED_BYTES"): Elsewhere("tools/runs/test_pipes.py", "test_a_step_takes_no_more_than_its_share_by_pipes"),
    ("runs.pipes", "PIPES_LIMIT"): Elsewhere("tools/runs/test_pipes.py", "test_a_step_takes_no_more_than_its_share_by_pipes"),
    ("runs.pipes", "PATH_LIMIT"): Refused(
        take=lambda size: pipes.split(f"${{steps.a.result{'.b' * (size - 3)}}}", field="steps"), field="steps"
    ),
    ("runs.pipes", "PIPE_CHARACTERS"): Refused(
        take=lambda size: pipes.split('${input.n default: "' + "x" * (size - 22) + '"}', field="steps"), field="steps"
    ),
    ("runs.schemas", "DEPTH_LIMIT"): Kept(take=take_checked),
    ("runs.spoken", "TEXT_CHARACTERS"): Kept(take=lambda size: len(spoken._cut("x" * size)), more=1),
    ("runs.triggers", "SLOTS_LIMIT"): Refused(take=take_slots, field="triggers"),
    ("runs.values", "INPUTS_BYTES"): Refused(take=take_inputs, field="inputs", code=Code.TOO_LARGE),
    ("service", "HELD_LIMIT"): Elsewhere("tools/test_service.py", "test_a_process_that_holds_too_much_refuses"),
    ("service", "HANDED_OVER_LIMIT"): Elsewhere(
        "tools/test_handover.py", "test_an_executor_that_is_full_is_handed_so_many_calls_and_no_more"
    ),
    ("session.decisions", "ACCOUNTS_KEPT"): Elsewhere("tools/test_limits.py", "test_what_decisions_need_is_kept_of_so_many_accounts"),
    ("session.effects", "RUNNING_LIMIT"): FULL,
    ("session.history", "CALLS_LIMIT"): Elsewhere("tools/test_limits.py", "test_the_newest_calls_of_a_session_are_drafted_from"),
    ("session.sessions", "SESSIONS_KEPT"): Elsewhere("tools/test_service.py", "test_idle_sessions_are_forgotten_and_folded_again"),
    ("session.checkpoints", "STATE_LIMIT"): Kept(take=take_checkpoint),
    ("session.effects", "ALARM_LIMIT_MS"): Elsewhere("tools/test_functions.py", "test_a_timer_runs_for_a_second_to_a_day"),
    ("session.handover", "OWNERS_LIMIT"): Elsewhere(
        "tools/test_handover.py", "test_the_session_that_was_quiet_for_longest_is_forgotten_at_the_limit"
    ),
    ("session.intake", "DELIVERIES_LIMIT"): Elsewhere(
        "tools/test_recovery.py", "test_a_call_that_no_process_can_deal_with_is_given_up_after_its_tries"
    ),
    ("session.library", "FILES_LIMIT"): Kept(take=take_workflows),
    ("session.library", "FILE_BYTES"): Elsewhere("tools/test_macros.py", "test_a_file_that_is_no_workflow_is_refused"),
}

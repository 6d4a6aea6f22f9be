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
    "tests/models/test_audio.py",
    "tests/models/test_background.py",
    "tests/models/test_busy.py",
    "tests/models/test_choice.py",
    "tests/models/test_choice_lines.py",
    "tests/models/test_core.py",
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
    "tests/shared/test_spoken_numbers.py",
    "tests/shared/test_tours.py",
    "tests/shared/test_workspace.py",
    "tests/terminals/test_core.py",
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
    "tests/agents/test_killed.py": "tests/agents/test_runs.py has the same runs undisturbed",
    "tests/awareness/test_killed.py": "tests/voxbridge/supervisor/test_up.py; tests/awareness/test_core.py",
    "tests/browser": "tests/browser/test_conversation.py has one conversation; `npm test` has the code of the pages",
    "tests/deploy/test_bootstrap.py::test_a_clean_checkout_sets_itself_up_with_the_systems_python_and_make_alone": "each run of CI does it",
    "tests/deploy/test_credentials.py": "tests/deploy/test_permissions.py; tests/deploy/test_doors.py",
    "tests/deploy/test_first_change.py": "tests/tools/test_functions.py and the table of every function, for the functions that there are",
    "tests/deploy/test_gates.py::test_every_core_is_pure": "`make check`",
    "tests/deploy/test_images.py": "tests/deploy/test_compose.py; tests/deploy/test_wheel.py",
    "tests/deploy/test_purity.py": "`make check` has the gate of pure cores",
    "tests/deploy/test_session.py": "tests/deploy/test_permissions.py; tests/deploy/test_doors.py",
    "tests/faults/test_approvals.py": "tests/tools/test_approvals.py; tests/voice/core/test_consent.py",
    "tests/faults/test_disk.py": "tests/shared/log/test_writer.py; tests/voxbridge/installation",
    "tests/faults/test_gateway_and_page.py": "tests/gateway/core/test_page_functions.py",
    "tests/faults/test_hostile_servers_beside_a_call.py": "tests/tools/mcp/test_hostile_servers.py",
    "tests/faults/test_once.py": "tests/tools/test_effects_of_calls.py; tests/tools/test_recovery.py",
    "tests/faults/test_realtime_crashes.py": "tests/voice/realtime has each crash in virtual time",
    "tests/faults/test_secrets.py::test_no_secret_is_in_anything_that_an_installation_writes_or_says": "the other tests of the module",
    "tests/faults/test_told_in_the_next_call.py": "tests/tools/test_ends.py",
    "tests/faults/test_told_in_the_next_call_by_vendors.py": "tests/tools/test_ends.py",
    "tests/faults/test_told_once.py": "tests/tools/test_ends.py",
    "tests/faults/test_told_once_in_a_cascade.py": "tests/tools/test_ends.py",
    "tests/faults/test_words_over_cuts.py": "tests/gateway/vox/test_outages.py; tests/voice/audio/test_catch_up.py",
    "tests/gateway/rest/test_app.py::test_every_answer_to_generated_requests_is_as_the_document_says": "the other tests of the module",
    "tests/gateway/rest/test_config.py": "tests/shared/secrets; tests/voxbridge/commands/test_keys.py",
    "tests/gateway/rest/test_functions_killed.py": "tests/gateway/calls/test_ledger.py",
    "tests/gateway/vox/test_replicated.py": "tests/gateway/vox on one server",
    "tests/knowledge/test_killed.py": "tests/knowledge/test_graph_file.py kills a writer",
    "tests/knowledge/test_killed_at_each.py": "tests/knowledge/test_graph_file.py kills a writer",
    "tests/knowledge/test_quality.py": "tests/knowledge/test_service.py",
    "tests/knowledge/test_vectors.py": "tests/knowledge/test_core.py; tests/knowledge/test_service.py",
    "tests/models/test_choosing.py": "tests/models/test_choice.py has the router, tests/models/test_service.py one call of the real model",
    "tests/models/test_passages.py": "tests/models/test_readings.py",
    "tests/models/test_warm_prompts.py": "tests/models/test_prompts.py",
    "tests/shared/log/test_replicated.py": "tests/shared/log on one server",
    "tests/terminals/test_killed.py::test_killed_under_a_flood_it_loses_and_doubles_nothing": "the kills in a coding session beside it",
    "tests/tools/every_function/test_table.py::test_every_function_bears_what_strangers_write": "test_injection.py beside it",
    "tests/tools/every_function/test_table.py::test_every_function_refuses_what_its_schema_does_not_have": "tests/tools/test_limits.py",
    "tests/tools/mcp/test_servers.py": "tests/tools/mcp/test_calls.py",
    "tests/tools/packs/test_codegen.py::test_tests_are_collected_run_and_fail_when_the_interface_changes": "the other tests of the module",
    "tests/tools/sandbox/test_hostile.py": "tests/tools/sandbox/test_forbidden.py",
    "tests/tools/test_absence.py": "tests/tools/test_registry.py",
    "tests/tools/test_account_calls.py": "tests/gateway/rest/test_functions.py",
    "tests/tools/test_fuzzed_calls.py::test_many_fuzzed_calls_end_exactly_once": "fewer calls in the same module",
    "tests/tools/test_notes.py": "tests/tools/test_functions.py",
    "tests/tools/test_outliving.py": "tests/tools/test_ends.py",
    "tests/tools/test_recovery.py": "tests/tools/test_core.py has each redelivery; tests/tools/test_service.py kills an executor",
    "tests/tools/test_replicated.py": "tests/tools on one server",
    "tests/tools/test_runs_killed.py": "tests/tools/runs has each death of a run in virtual time",
    "tests/tools/test_standing_kept.py": "tests/tools/test_approvals.py",
    "tests/tools/test_tasks_of_accounts.py": "tests/tools/test_ends.py; tests/gateway/rest/test_tasks_in_sessions.py",
    "tests/tools/test_undo_called.py": "tests/tools/test_undo.py",
    "tests/voice/audio/test_recorder.py": "tests/shared/audio/test_recordings.py",
    "tests/voice/orders/test_orders.py::test_many_orders_of_what_may_happen_come_to_rest": "fewer orders in the same module",
    "tests/voice/ownership/test_carried_on.py": "tests/voice/ownership/test_takeover.py; tests/voice/core/test_crashes.py",
    "tests/voice/ownership/test_many_workers.py": "tests/voice/ownership/test_takeover.py",
    "tests/voice/ownership/test_migration.py": "tests/voice/ownership/test_takeover.py",
    "tests/voice/ownership/test_replicated.py": "tests/voice/ownership on one server",
    "tests/voice/ownership/test_takeover.py": "tests/voice/core/test_crashes.py; one test of the module stays",
    "tests/voice/providers/test_provider_suite.py": "tests/voice/providers has the tests of each adapter",
    "tests/voice/providers/test_spoken_pages.py": "tests/voice/providers/test_provider_suite.py",
    "tests/voice/realtime/test_live_crashes.py": "tests/voice/core/test_crashes.py",
}
"""Tests of `make test-all` alone, each with what covers the same in `make test`."""

STAYS: Final = (
    "tests/browser/test_conversation.py::test_a_person_is_understood_and_the_answer_is_heard",
    "tests/voice/ownership/test_carried_on.py::test_what_was_said_over_a_kill_is_understood_whole",
    "tests/voice/ownership/test_takeover.py::test_a_released_session_is_with_another_worker_at_once",
    "tests/voice/ownership/test_takeover.py::test_an_owner_that_was_thought_dead_is_kept_out_by_the_log",
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

PARTS: Final = ("side", "alone")


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
    """Tell whether a test, or a module, runs in a part of a tier: `side` by side, or `alone`. A module is whole in one of them."""
    return _below(test, ALONE) == (part == "alone")


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

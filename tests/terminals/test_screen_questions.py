"""Questions of programs, as their screens show them: the screens are those of the releases that tests/terminals/agents pins."""

from __future__ import annotations

import pytest

from voxbridge.services.terminals.core.screen_questions import dialog, look
from voxbridge.services.terminals.core.text import words
from voxbridge.shared.terminals.model import Reason

CODEX = """
• Running echo hello > hello.txt

  Would you like to run the following command?

  Environment: local

  Reason: the captain wants this file

  $ echo hello > hello.txt
    cat hello.txt

› 1. Yes, proceed (y)
  2. Yes, and don't ask again for commands that start with `echo hello > hello.txt` (p)
  3. No, and tell Codex what to do differently (esc)

  Press enter to confirm or esc to cancel
"""
GEMINI = """
 > Please create the file hello.txt

╭──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────╮
│ ? WriteFile  Writing to hello.txt                                                                                    │
│ ╭──────────────────────────────────────────────────────────────────────────────────────────────────────────────────╮ │
│ │ 1 hello                                                                                                          │ │
│ ╰──────────────────────────────────────────────────────────────────────────────────────────────────────────────────╯ │
│ Apply this change?                                                                                                   │
│                                                                                                                      │
│ ● 1. Allow once                                                                                                      │
│   2. Allow for this session                                                                                          │
│   4. No, suggest changes (esc)                                                                                       │
╰──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────╯
"""


CLAUDE = """
  Make auto mode your default permission mode?

  Auto mode lets Claude handle permission prompts automatically. Claude checks each tool call for risky actions and
  prompt injection before executing, runs the ones it assesses as lower-risk, and blocks the rest.

  ❯ Yes, set auto mode as my default permission mode
    No, keep manual mode
"""


@pytest.mark.parametrize(
    ("manifest", "screen", "found"),
    [
        ("codex", CODEX, ("permission", "Would you like to run the following command? echo hello > hello.txt cat hello.txt")),
        ("codex", "› Ask Codex to do anything\n\n  gpt-5 default · ~/work", None),
        ("gemini", GEMINI, ("permission", "Apply this change? WriteFile Writing to hello.txt")),
        ("gemini", " > Please create the file\n ? for shortcuts", None),
        ("claude", "Do you want to create hello.txt?\n❯ 1. Yes", ("permission", "Do you want to create hello.txt?")),
        ("bash", "Password: ", ("auth", "Password:")),
        ("bash", "Continue? [y/N]", ("question", "Continue? [y/N]")),
    ],
)
def test_a_question_is_read_off_the_screen_with_its_subject(manifest: str, screen: str, found: tuple[Reason, str] | None) -> None:
    seen = look(manifest, screen.split("\n"))
    assert seen is None or seen[0] == "blocked"
    assert (seen and (seen[1], words(seen[2]))) == found


def test_a_dialog_that_no_manifest_knows_has_its_question() -> None:
    assert look("claude", CLAUDE.split("\n")) is None
    assert dialog(CLAUDE.split("\n")) == "Make auto mode your default permission mode?"
    assert dialog(["Shall we?", "$ "]) == dialog(["nothing"]) == ""


def test_a_subject_above_the_question_of_codex_is_not_its_own() -> None:
    earlier = "  $ rm -rf build\n\n  Would you like to make the following edits?\n\n› 1. Yes, proceed (y)"
    assert look("codex", earlier.split("\n")) == ("blocked", "permission", "Would you like to make the following edits?")

"""Sayings of programs, keys, and texts on their way in and out."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxbridge.services.terminals.commands import Commands
from voxbridge.services.terminals.core import keys, marks, state, text
from voxbridge.services.terminals.core.marks import Prompt, Query, Report, of_sequence
from voxbridge.shared.errors import VoxbridgeError
from voxbridge.shared.terminals.model import Kind

NONCE = "a" * 32


def words(said: str) -> str:
    return base64.b64encode(said.encode()).decode()


@pytest.mark.parametrize(
    ("sequence", "means"),
    [
        (b"7501;?", Query()),
        (b"7501;state=working", Report("", "working")),
        (b"7501;state=blocked:kind=permission:id=a/b:msg=" + words("May I?").encode(), Report("a/b", "blocked", "permission", "May I?")),
        (b"7501;state=working:progress=40", Report("", "working", progress=40)),
        (b"7501;state=working:progress=101", None),
        (b"7501;state=working:kind=permission", None),
        (b"7501;state=asleep", None),
        (b"7501;state=idle:state=done", None),
        (b"7501;state=idle:id=" + b"x" * 129, None),
        (b"7501;state=idle:msg=" + words("a\x1bb").encode(), None),
        (b"7501;state=idle:msg=" + words("x" * 2_049).encode(), None),
        (b"7501;state=idle:msg=!!!", None),
        (b"7501;state=idle:" + b"x" * 4_096, None),
        (b"633;D;1;" + NONCE.encode(), Prompt("D", 1, trusted=True)),
        (b"633;C;" + NONCE.encode(), Prompt("C", None, trusted=True)),
        (b"633;C;" + b"b" * 32, None),
        (b"633;C", None),
        (b"633;P;Cwd=/;" + NONCE.encode(), None),
        (b"52;c;aGk=", None),
        (b"\xff\xfe", None),
    ],
)
def test_a_sequence_says_one_thing_or_nothing(sequence: bytes, means: object) -> None:
    assert of_sequence(sequence, NONCE) == means


@given(st.binary(max_size=300))
def test_no_sequence_breaks_the_reading(sequence: bytes) -> None:
    of_sequence(sequence, NONCE)
    of_sequence(b"7501;" + sequence, NONCE)


def test_a_nonce_that_is_not_set_signs_nothing() -> None:
    assert of_sequence(b"633;C;", "") is None


def phases(kind: Kind, *steps: object) -> list[str]:
    """Return the phase after each step."""
    known, found = state.begun(kind, 0), list[str]()
    for at, step in enumerate(steps, 1):
        if isinstance(step, Prompt):
            known = state.prompted(known, step, at)
        elif isinstance(step, Report):
            known = state.reported(known, step, at)
        elif step == "wrote":
            known = state.wrote(known, at)
        elif step == "silent":
            known = state.fell_silent(known, at)
        elif step == "looked":
            known = state.looked(known, at)
        elif isinstance(step, int):
            known = state.ended(known, step, at)
        else:
            known = state.shows(known, "blocked", "question", str(step), at) if step else state.shows(known, None, "", "", at)
        found.append(state.state(known).phase)
    return found


SIGNED = {mark: Prompt(mark, 0 if mark == "D" else None, trusted=True) for mark in ("A", "B", "C", "D")}
PLAIN = {mark: Prompt(mark, 0 if mark == "D" else None) for mark in ("A", "B", "C", "D")}


def test_a_shell_that_signs_its_marks_is_done_once_its_prompt_stands() -> None:
    steps = [SIGNED[mark] for mark in "ABCDAB"]
    assert phases("shell", "wrote", *steps) == ["working", "working", "idle", "working", "working", "working", "done"]


def test_a_shell_that_does_not_is_done_at_its_mark() -> None:
    assert phases("shell", PLAIN["A"], PLAIN["C"], PLAIN["D"], PLAIN["A"]) == ["idle", "working", "done", "done"]


def test_what_was_done_is_idle_once_somebody_looked() -> None:
    assert phases("shell", SIGNED["B"], SIGNED["C"], SIGNED["D"], SIGNED["B"], "looked")[-2:] == ["done", "idle"]


def test_a_question_on_the_screen_counts_before_a_shell_that_works_and_not_before_its_prompt() -> None:
    assert phases("shell", SIGNED["C"], "Sure? [y/N]") == ["working", "blocked"]
    assert phases("shell", SIGNED["C"], "Sure? [y/N]", SIGNED["D"], SIGNED["B"])[-1] == "done"


def test_a_program_that_says_what_it_does_counts_before_silence() -> None:
    blocked = Report("", "blocked", "permission", "May I?")
    assert phases("agent", "wrote", Report("", "working"), "silent", blocked, Report("", "done")) == [
        "working", "working", "working", "blocked", "done",
    ]  # fmt: skip


def test_a_program_that_says_that_it_asks_and_not_what_has_the_words_of_its_screen() -> None:
    known = state.reported(state.begun("agent", 0), Report("", "blocked", "permission"), 1)
    assert state.state(known).words == ""
    shown = state.state(state.shows(known, "blocked", "question", "Run it?", 2))
    assert (shown.words, shown.reason, shown.source, shown.since) == ("Run it?", "permission", "program", 1)
    spoken = state.reported(known, Report("", "blocked", "permission", "May I?"), 3)
    assert state.state(state.shows(spoken, "blocked", "question", "Run it?", 4)).words == "May I?"
    dialog = state.reported(known, Report("", "blocked", "", "dialog open"), 5)
    assert (state.state(dialog).words, state.asks_without_words(dialog), state.asks_without_words(spoken)) == ("dialog open", True, False)
    assert state.state(state.shows(dialog, "blocked", "question", "Use auto mode?", 6)).words == "Use auto mode?"
    works = state.reported(known, Report("", "working"), 5)
    assert state.state(state.shows(works, None, "", "", 6)).words == ""


def test_of_a_programs_parts_the_most_urgent_counts_until_it_is_cleared() -> None:
    steps = [Report("main", "working"), Report("main/sub", "blocked", "question", "Which?"), Report("main/sub", "clear")]
    assert phases("agent", *steps) == ["working", "blocked", "working"]
    assert phases("agent", *steps[:2], Report("main", "clear"))[-1] == "starting"


def test_an_end_counts_before_everything() -> None:
    assert phases("agent", Report("", "working"), "Sure? [y/N]", -9)[-1] == "dead"
    known = state.ended(state.begun("agent", 0), -9, 1)
    assert [rung.source for rung in state.explain(known) if rung.counts] == ["exit"]


def test_parts_are_bounded() -> None:
    known = state.begun("agent", 0)
    for number in range(2 * state.PARTS_LIMIT):
        known = state.reported(known, Report(f"p{number}", "working"), number)
    assert len(known.parts) == state.PARTS_LIMIT


@pytest.mark.parametrize("cut", range(1, 60))
def test_commands_are_found_in_marks_that_are_cut_anywhere(cut: int) -> None:
    written = b"$ \x1b]133;C\x07one\ntwo\n\x1b]133;D;3\x1b\\\x1b]133;A\x07$ \x1b]0;title\x07"
    commands = Commands()
    found = commands.feed(written[:cut], 0) + commands.feed(written[cut:], cut)
    assert [prompt.mark for prompt in found] == ["C", "D", "A"]
    assert written[commands.last.begun : commands.last.ended] == b"one\ntwo\n"
    assert commands.last.code == 3


@given(st.text(max_size=200))
def test_a_typed_text_has_no_control_character_but_line_feeds_and_tabs(said: str) -> None:
    clean, removed = text.typed(said)
    assert not [one for one in clean if (one < " " and one not in "\n\t") or "\x7f" <= one <= "\x9f"]
    assert removed == len(said.replace("\r\n", "\n")) - len(clean)


@pytest.mark.parametrize(
    ("said", "clean"),
    [
        ("ls\r\nrm -rf /\r", "ls\nrm -rf /\n"),
        ("a\x1b[201~\nrm", "a[201~\nrm"),
        ("a\x9b201~b", "a201~b"),
        ("admin\u202egpj.exe", "admingpj.exe"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("tag\U000e0041", "tag"),
        ("👩\u200d🚀", "👩\u200d🚀"),
        ("half \ud800", "half "),
    ],
)
def test_what_is_not_seen_is_not_typed(said: str, clean: str) -> None:
    assert text.typed(said)[0] == clean


@pytest.mark.parametrize(
    ("styled", "shown"),
    [
        ("a\x1b[8msecret\x1b[28mb", "ab"),
        ("a\x1b[1;8msecret\x1b[0mb", "ab"),
        ("\x1b[38;5;8mgrey\x1b[0m", "grey"),
        ("\x1b[48;2;8;8;8mback\x1b[0m", "back"),
        ("\x1b]8;;https://evil\x1b\\here\x1b]8;;\x1b\\", "here"),
        ("a\x1bP1$r0m\x1b\\b", "ab"),
        ("abc\u202edef", "abcdef"),
    ],
)
def test_what_a_person_does_not_see_no_model_sees(styled: str, shown: str) -> None:
    assert text.seen(styled) == shown


def test_words_are_one_line_of_bounded_length() -> None:
    assert text.words("a\n b\t\x1b[31mc") == "a b c"
    assert len(text.words("x" * 1_000)) == 300


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("enter", b"\r"), ("Return", b"\r"), ("esc", b"\x1b"), ("ctrl-c", b"\x03"), ("Ctrl+C", b"\x03"), ("ctrl-[", b"\x1b"),
        ("up", b"\x1b[A"),        ("alt-left", b"\x1b[1;3D"), ("ctrl-shift-right", b"\x1b[1;6C"), ("alt-x", b"\x1bx"),
        ("page up", b"\x1b[5~"), ("f5", b"\x1b[15~"),
        ("y", b"y"), ("1", b"1"), ("shift-tab", b"\x1b[Z"), ("ctrl-alt-a", b"\x1b\x01"), ("-", b"-"), ("ctrl-space", b"\x00"), ("Y", b"Y"),
        ("é", "é".encode()), ("+", b"+"), (" ", b" "),
    ],
)  # fmt: skip
def test_keys_have_names(name: str, code: bytes) -> None:
    assert keys.encode(name) == code


def test_moves_follow_the_cursor_mode() -> None:
    assert keys.encode("up", application_cursor=True) == b"\x1bOA"


@pytest.mark.parametrize("name", ["", "hyper-x", "enterr", "ctrl-", "ctrl-ctrl-c", "f13", "yes", "\x1b", "ctrl-é"])
def test_an_unknown_key_is_refused_with_those_that_are_known(name: str) -> None:
    with pytest.raises(VoxbridgeError, match="Keys are enter, tab"):
        keys.encode(name)


def test_the_mark_of_a_prompt_takes_no_code_that_is_none() -> None:
    assert marks.of_prompt(b"D", b"abc") == Prompt("D", None)
    assert marks.of_prompt(b"D", b"-1;x") == Prompt("D", -1)

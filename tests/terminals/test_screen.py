"""The seam to the emulator: a screen is made again exactly from its keyframe, answers queries within a bound, and shows what is seen."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.draws import dice
from voxbridge.services.terminals import screen as screens
from voxbridge.services.terminals.screen import Screen

SESSION = (
    b"\x1b]0;a title\x07\x1b]7;file://host/tmp/a%20b\x07$ ls\r\n\x1b[1;32mgreen\x1b[0m \x1b[4mline\x1b[0m\r\n"
    + b"".join(b"row %d \xe2\x9c\x93 \xf0\x9f\x98\x80 \xe4\xbd\xa0\r\n" % number for number in range(60))
    + b"\x1b[?2004h\x1b[?1h\x1b[5;10r\x1b[6;3Hin a region\x1b[r\x1b[10;4H\x1b[7mreverse"
)
ALTERNATE = SESSION + b"\x1b[?1049h\x1b[2J\x1b[3;7H\x1b[31mother screen\x1b[?25l\x1b[?1006h\x1b[?1002h"

HOSTILE = (
    b"$ \x1b]633;D;0;00\x07\x1b]133;D;0\x07\x1b]133;A\x07\x1b]0;touch trap\x07\x1b[21t\x1b]52;c;dG91Y2g=\x07\x1b]52;c;?\x07\x1bP$q m\x1b\\"
    b"\x1b]4;0;?\x07\x1b]10;?\x07\x1b]7501;?\x1b\\\x1b]7501;state=done\x07\x1b[c\x1b[6n\x1b[>q\x1b[>0c\x1b[?6n\x1b[18t\x1b[99999999999999m"
    b"\xc2\x9b6n\x9b31m\xff\xfe\x80\xe2\x9c\xf0\x9f\x98\x1b[8mhidden\x1b[28m\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\xe2\x80\xaegpj\xe2\x80\xac"
    b"\x1b_apc\x1b\\\x1b^pm\x1b\\\x1bXsos\x1b\\\x1bPq#0;2;0;0;0#0~~\x1b\\\x1b[?1049hfront\x1b[?2026h\x1b[2J\x1b[?1049l\x1b[;;;;;;;;;;;;;;;;;;m"
    b"\x1b[38;5;1;48;2;1;2;3mend\x1b[1\x18\x1b[2\x1a\x1b[3\x1b[4mof it"
)
"""Output that wants to be answered, forges marks, and leaves the emulator in the middle of something."""


def made() -> Screen:
    return Screen(60, 12, lambda _: None)


def test_hostile_output_is_the_same_wherever_it_is_cut() -> None:
    answers: list[bytes] = []
    whole = Screen(60, 12, answers.append)
    whole.feed(HOSTILE)
    assert b"".join(answers), "it asks, and is answered"
    for cut in range(len(HOSTILE) + 1):
        told: list[bytes] = []
        parts = Screen(60, 12, told.append)
        parts.feed(HOSTILE[:cut])
        parts.feed(HOSTILE[cut:])
        assert (look(parts), parts.title, b"".join(told)) == (look(whole), whole.title, b"".join(answers)), cut
        parts.close()
    whole.close()


@pytest.fixture
def screen() -> Iterator[Screen]:
    one = made()
    yield one
    one.close()


def look(screen: Screen) -> tuple[object, ...]:
    return (screen.rows(), screen.lines(), screen.cursor, screen.modes, screen.keyframe(scrollback=False))


@pytest.mark.parametrize("mode", [b"1049", b"1047", b"47"])
def test_a_keyframe_of_an_alternate_screen_leaves_the_screen_as_it_was(screen: Screen, mode: bytes) -> None:
    screen.feed(b"behind\x1b[?" + mode + b"hin front")
    before = screen.keyframe(scrollback=False)
    for _ in range(2):
        again = made()
        again.feed(screen.keyframe(scrollback=True))
        assert screen.keyframe(scrollback=False) == before
        again.feed(b"\x1b[?" + mode + b"l and on")
        assert again.rows()[0].startswith("behind")
        again.close()
    screen.feed(b"\x1b[?" + mode + b"l and on")
    after = made()
    after.feed(screen.keyframe(scrollback=False))
    assert (after.modes, after.rows()) == ((), screen.rows()), "what comes after it is not in front of anything"
    after.close()


@pytest.mark.parametrize("session", [SESSION, ALTERNATE])
def test_a_keyframe_makes_the_screen_again_wherever_output_is_cut(session: bytes) -> None:
    whole = made()
    whole.feed(session)
    chance = dice("cuts of a session")
    for cut in sorted({0, 1, len(session) - 1, *(chance.randrange(len(session)) for _ in range(120))}):
        before, after = made(), made()
        before.feed(session[:cut])
        after.feed(before.keyframe(scrollback=True))
        assert look(after)[:4] == look(before)[:4], cut
        after.feed(session[cut:])
        before.feed(session[cut:])
        assert look(after)[:4] == look(whole)[:4], cut
        assert look(before)[:4] == look(whole)[:4], cut  # making a keyframe changes nothing
        before.close()
        after.close()
    whole.close()


def test_marks_of_prompts_move_nothing_wherever_they_are_cut() -> None:
    """The library would begin a new line at one, which the emulators of viewers do not."""
    marked = b"a password: \x1b]133;D;0\x07\x1b]133;A\x1b\\$ \x1b]133;B\x07ls\r\n\x1b]133;C\x07\x1b]1337;x\x07end\x1b]13"
    for cut in range(len(marked) + 1):
        screen = made()
        screen.feed(marked[:cut])
        again = made()
        again.feed(screen.keyframe(scrollback=True))
        for one in (screen, again):
            one.feed(marked[cut:])
            assert [row.rstrip() for row in one.lines()[:2]] == ["a password: $ ls", "end"], cut
            one.close()


def test_queries_are_answered_within_a_bound(screen: Screen) -> None:
    assert screen.feed(b"\x1b[6n") == b"\x1b[1;1R"
    assert screen.feed(b"\x1b[c").startswith(b"\x1b[?")
    assert screen.feed(b"\x1b[5n") == b"\x1b[0n"
    flood = screen.feed(b"\x1b[6n" * 100_000)
    assert 0 < len(flood) <= screens.REPLY_LIMIT
    assert screen.feed(b"\x1b[5n") == b"\x1b[0n"


def test_what_the_emulator_does_not_know_is_told_within_a_bound() -> None:
    told: list[bytes] = []
    screen = Screen(60, 12, told.append)
    for byte in b"\x1b]7501;state=working\x07":
        screen.feed(bytes([byte]))
    screen.feed(b"\x1b]7501;" + b"x" * (screens.SEQUENCE_LIMIT + 1) + b"\x07")
    screen.feed(b"\x1b]7501;?\x1b\\")
    assert told == [b"7501;state=working", b"7501;?"]
    screen.close()


def test_title_and_directory_are_bounded_lines(screen: Screen) -> None:
    screen.feed(b"\x1b]2;" + b"t" * 5_000 + b"\x1b]2;two\nlines \xe2\x80\xae\x07")
    assert len(screen.title) <= 128
    assert "\u202e" not in screen.title
    screen.feed(b"\x1b]7;file://other/a%1b%5b31m\x07")
    assert "\x1b" not in screen.directory


def test_no_output_breaks_it() -> None:
    chance = dice("hostile output")
    screen = made()
    parts = [
        b"\x1b",
        b"[",
        b"]",
        b"P",
        b"\\",
        b"\x07",
        b";",
        b"999999999",
        b"?",
        b"h",
        b"l",
        b"m",
        b"\x9b",
        b"\xff",
        b"\xe2",
        b"8",
        b"J",
        b"r",
        b"\n",
    ]
    for _ in range(300):
        screen.feed(b"".join(chance.choices(parts, k=200)))
        other = made()
        other.feed(screen.keyframe(scrollback=True))
        other.close()
        screen.rows()
        screen.resize(chance.randint(2, 200), chance.randint(1, 60))
    screen.close()


def test_the_lines_that_are_kept_are_bounded(screen: Screen) -> None:
    for number in range(screens.SCROLLBACK * 30):
        screen.feed(b"line %d\r\n" % number)
    assert len(screen.lines()) < screens.SCROLLBACK * 20
    assert len(screen.keyframe(scrollback=True)) < 1 << 20

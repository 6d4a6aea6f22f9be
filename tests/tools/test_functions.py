"""Results of each function."""

from __future__ import annotations

import operator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from num2words import num2words

from voxbridge.services.tools import zones
from voxbridge.services.tools.packs.everyday import calculator, notes, timer
from voxbridge.services.tools.packs.everyday.places import places
from voxbridge.services.tools.packs.everyday.time import current_time, told
from voxbridge.services.tools.registry import BUILT_IN, load
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.spoken_arithmetic import as_expression
from voxbridge.shared.store.store import Note

if TYPE_CHECKING:
    from voxbridge.services.tools.context import Context

NOON_UTC = 1_763_726_400_000_000  # Friday, 21 November 2025, 12:00
SUMMER_UTC = 1_752_580_800_000_000  # 15 July 2025, 12:00


@pytest.mark.parametrize(
    ("asked", "zone", "name"),
    [
        ("Tokyo", "Asia/Tokyo", "Tokyo"),
        ("tokio", "Asia/Tokyo", "Tokyo"),
        ("New York", "America/New_York", "New York City"),
        ("NYC", "America/New_York", "New York City"),
        ("São Paulo", "America/Sao_Paulo", "São Paulo"),
        ("sao paulo", "America/Sao_Paulo", "São Paulo"),
        ("Zürich", "Europe/Zurich", "Zürich"),
        ("Zurich", "Europe/Zurich", "Zürich"),
        ("Cologne", "Europe/Berlin", "Köln"),
        ("Москва", "Europe/Moscow", "Moscow"),
        ("in London", "Europe/London", "London"),
        ("Berlin time", "Europe/Berlin", "Berlin"),
        ("Paris", "Europe/Paris", "Paris"),
        ("Paris, Texas", "America/Chicago", "Paris"),
        ("paris texas", "America/Chicago", "Paris"),
        ("Portland, Oregon", "America/Los_Angeles", "Portland"),
        ("Washington DC", "America/New_York", "Washington"),
        ("California", "America/Los_Angeles", "Los Angeles"),
        ("Japan", "Asia/Tokyo", "Tokyo"),
        ("United States", "America/New_York", "Washington"),
        ("the UK", "Europe/London", "London"),
        ("Georgia", "Asia/Tbilisi", "Tbilisi"),
        ("Calcutta", "Asia/Kolkata", "Kolkata"),
        ("St. Petersburg", "Europe/Moscow", "Saint Petersburg"),
        ("Bombay", "Asia/Kolkata", "Mumbai"),
        ("the Netherlands", "Europe/Amsterdam", "Amsterdam"),
        ("Holland", "Europe/Amsterdam", "Amsterdam"),
        ("Czech Republic", "Europe/Prague", "Prague"),
        ("UTC", "UTC", "UTC"),
        ("GMT", "UTC", "UTC"),
        ("PST", "America/Los_Angeles", "Los Angeles"),
        ("Europe/Berlin", "Europe/Berlin", "Berlin"),
    ],
)
def test_a_place_is_understood_as_people_name_it(asked: str, zone: str, name: str) -> None:
    place, _ = places().find(asked)
    assert (place.time_zone, place.name) == (zone, name)


def test_the_time_is_told_with_its_zone_and_a_phrase() -> None:
    place, others = places().find("Tokyo")
    assert told(place, others, NOON_UTC) == {
        "place": "Tokyo, Japan",
        "time_zone": "Asia/Tokyo",
        "local_time": "2025-11-21 21:00",
        "weekday": "Friday",
        "utc_offset": "+09:00",
        "spoken": "It's 9:00 PM on Friday in Tokyo.",
    }


def test_summer_time_is_kept() -> None:
    place, _ = places().find("Berlin")
    assert told(place, [], NOON_UTC)["utc_offset"] == "+01:00"
    assert told(place, [], SUMMER_UTC)["utc_offset"] == "+02:00"


def test_of_places_with_one_name_the_largest_is_told_and_said() -> None:
    place, others = places().find("Birmingham")
    answer = told(place, others, NOON_UTC)
    assert answer["spoken"] == "It's 12:00 PM on Friday in Birmingham, United Kingdom."
    assert "largest" in answer["note"]


def test_a_continent_is_no_place_with_one_time() -> None:
    with pytest.raises(VoxbridgeError, match="Asia has many time zones"):
        places().find("Asia")


def test_a_place_that_has_an_other_name_of_a_larger_one_is_still_told_of() -> None:
    _, others = places().find("Calcutta")
    assert [place.country for place in others] == ["South Africa"]


@pytest.mark.parametrize(("asked", "says"), [("Tokyoo", "Did you mean Tokyo?"), ("qqqqzz", "larger city"), ("", "larger city")])
def test_an_unknown_place_is_answered_with_what_to_do(asked: str, says: str) -> None:
    with pytest.raises(VoxbridgeError, match="know the place") as caught:
        places().find(asked)
    assert caught.value.code == Code.NOT_FOUND
    assert says in caught.value.message


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("17*23", 391),
        ("17 times 23", 391),
        ("17 x 23", 391),
        ("What is 2 plus 2?", 4),
        ("seventeen times twenty-three", 391),
        ("two hundred and five point five minus five", 200.5),
        ("one million divided by eight", 125_000),
        ("15 percent of 80", 12),
        ("fifteen percent off eighty", 68),
        ("five over two", 2.5),
        ("twelve dozen", 144),
        ("half a dozen plus a dozen", 18),
        ("ten to the minus two", 0.01),
        ("seven minus negative two", 9),
        ("the factorial of five", 120),
        ("three factorial plus one", 7),
        ("15% of 80", 12),
        ("80 plus 15 percent", 92),
        ("80 - 10%", 72),
        ("50 percent", 0.5),
        ("10 % 3", 1),
        ("7 mod 3", 1),
        ("square root of 144", 12),
        ("the square root of 144 plus 5", 17),
        ("√81", 9),
        ("cube root of 27", 3),
        ("3 squared plus 4 squared", 25),
        ("2^10", 1024),
        ("5 to the power of 3", 125),
        ("half of 90", 45),
        ("10!", 3_628_800),
        ("1,000 × 3", 3_000),
        ("100 ÷ 8", 12.5),
        ("(1+2)*3", 9),
        ("-5 + 3", -2),
        ("0.1+0.2", 0.3),
        ("max(2, 7)", 7),
        ("eighty minus fifteen", 65),
        ("fifty minus seven", 43),
        ("sixty less ten", 50),
        ("one point five million divided by two", 750_000),
        ("two point twenty five times four", 9),
        ("a hundred plus one", 101),
        ("two and a half times four", 10),
        ("point five times two", 1),
        ("divide nine thousand by forty eight", 187.5),
        ("add up twelve fifteen and thirty one", 58),
        ("add up 12, 15 and 31", 58),
        ("the sum of forty four and sixty seven", 111),
        ("the product of six and seven", 42),
        ("subtract eighteen from ninety one", 73),
        ("take nineteen from fifty", 31),
        ("share 120 among five people", 24),
        ("two thirds of ninety", 60),
        ("a quarter of sixty eight", 17),
        ("half of eleven hundred", 550),
        ("minus five plus three", -2),
        ("12345678901234 + 1", 12345678901235),
        ("round(2.34567, 2)", 2.35),
        ("round(1234567, -3)", 1_235_000),
        ("round(2.1, 15)", 2.1),
        ("round(2.5)", 2),
        ("999999999999 * 999999999999", 999999999998e12),
    ],
)
def test_a_sum_is_worked_out_in_figures_and_in_words(expression: str, value: float) -> None:
    assert calculator.evaluate(expression)[0] == value


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("1/0", "divides by zero"),
        ("9**9**9", "too large"),
        ("200!", "too large"),
        ("1e308*10", "too large"),
        ("2**1001", "too large"),
        ("sqrt(-1)", "cannot be worked out"),
        ("(-8)**0.5", "no real result"),
        ("'a'*10", "only figures"),
        ("'a'*200000000", "only figures"),
        ("1+True*2", "use figures"),
        ("b'a'*9", "only figures"),
        ("2j*2", "only figures"),
        ("round(7,-10000000)", "too large"),
        ("round(7,10000000)", "too large"),
        ("round(7,16)", "too large"),
        ("round(7,0.5)", "too large"),
        ("round(7,1e999)", "too large"),
        ("[1]*9", "use figures"),
        ("__import__('os')", "only figures"),
        ("(1).__class__", "use figures"),
        ("lambda: 1", "use figures"),
        ("3 apples", "use figures"),
        ("one two three plus four", "several ways (1 2 3 + 4)"),
        ("nine nine nine plus one", "several ways"),
        ("twenty twenty six minus five", "several ways"),
        ("1 < 2", "use figures"),
        ("2 +", "use figures"),
        ("?", "use figures"),
    ],
)
def test_what_is_no_sum_is_refused_with_its_reason(expression: str, says: str) -> None:
    with pytest.raises(VoxbridgeError, match="cannot be worked out") as caught:
        calculator.evaluate(expression)
    assert caught.value.code == Code.INVALID_ARGUMENT
    assert caught.value.field == "expression"
    assert says in caught.value.message


@pytest.mark.parametrize(
    ("zone", "said"),
    [("Europe/Lisbon", "It's 1:00 PM on Tuesday, July 15."), ("Pacific/Kiritimati", "It's 2:00 AM on Wednesday, July 16.")],
)
@pytest.mark.parametrize("place", ["", " ", "here", "Home", "my time zone", "local time"])
def test_the_time_without_a_place_is_the_callers(zone: str, said: str, place: str) -> None:
    result = current_time(cast("Context", SimpleNamespace(now=SUMMER_UTC, time_zone=zone)), place)
    assert (result["spoken"], result["time_zone"]) == (said, zone)


def test_a_zone_that_this_machine_does_not_know_leaves_the_installations(tmp_path: Path) -> None:
    assert zones.chosen("Mars/Olympus", "Asia/Tokyo") == "Asia/Tokyo"
    assert zones.chosen("", "../../etc/passwd") == "UTC"
    link = tmp_path / "localtime"
    assert zones.of_machine(link) == ""
    (tmp_path / "zoneinfo" / "Asia").mkdir(parents=True)
    (tmp_path / "zoneinfo" / "Asia" / "Tokyo").touch()
    link.symlink_to(tmp_path / "zoneinfo" / "Asia" / "Tokyo")
    assert zones.of_machine(link) == "Asia/Tokyo"


@pytest.mark.parametrize(
    ("value", "said"),
    [(391, "391"), (1_234_567, "1,234,567"), (12.5, "12.5"), (1 / 3, "about 0.3333"), (1e24, "about 1 times 10 to the power of 24")],
)
def test_a_number_is_said_as_it_is_read_out(value: float, said: str) -> None:
    assert calculator.spoken(value) == said


SIGNS = {"plus": operator.add, "minus": operator.sub, "times": operator.mul}


@given(st.integers(min_value=0, max_value=10**6), st.sampled_from(sorted(SIGNS)), st.integers(min_value=0, max_value=10**6))
def test_a_sum_of_any_two_numbers_in_words_is_right(left: int, sign: str, right: int) -> None:
    assert calculator.evaluate(f"{num2words(left)} {sign} {num2words(right)}")[0] == SIGNS[sign](left, right)


def test_an_expression_is_shown_as_it_was_understood() -> None:
    assert as_expression("What is fifteen percent of eighty?") == "(15/100) * 80"


async def test_a_timer_says_its_length_and_what_it_is_for() -> None:
    pasta = await timer.set_timer(300, "pasta timer")
    plain = await timer.set_timer(3_661)
    assert (pasta.after_ms, pasta.label) == (300_000, "pasta")
    assert (pasta.spoken, pasta.announce) == ("Pasta timer set for 5 minutes.", "Your pasta timer is done.")
    assert plain.announce == "Your timer for 1 hour, 1 minute and 1 second is done."


@pytest.mark.parametrize(("seconds", "allowed"), [(0, False), (1, True), (86_400, True), (86_401, False), ("300", True), (-5, False)])
def test_a_timer_runs_for_a_second_to_a_day(seconds: Any, allowed: bool) -> None:
    tool = load(BUILT_IN, timeout_s=30)["set_timer"]
    if allowed:
        assert tool.check({"seconds": seconds}).seconds == int(seconds)  # type: ignore[attr-defined]
    else:
        with pytest.raises(VoxbridgeError, match="`seconds`"):
            tool.check({"seconds": seconds})


def some_notes(*texts: str) -> list[Note]:
    return [Note(note_id=str(number), text=text, ts=-number) for number, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["Anna likes red apples.", "The key is under the mat.", "Anna has a car."]),
        ("where is the key", ["The key is under the mat."]),
        ("apple", ["Anna likes red apples."]),
        ("what does Anna like", ["Anna likes red apples.", "Anna has a car."]),
        ("ANNA", ["Anna likes red apples.", "Anna has a car."]),
        ("cars", ["Anna has a car."]),
        ("submarine", []),
    ],
)
def test_notes_are_found_by_their_words_and_the_newest_of_equals_first(query: str, found: list[str]) -> None:
    kept = some_notes("Anna likes red apples.", "The key is under the mat.", "Anna has a car.")
    assert [note.text for note in notes.rank(query, kept)] == found


NOTES_IN_SCRIPTS = (
    "我的车停在三楼",
    "我的钥匙在桌子上",
    "मेरी गाड़ी तीसरी मंज़िल पर",
    "मेरा बटुआ रसोई में",
    "Anna is allergic to nuts",
    "The Wi-Fi is called meadow",
    "รถของฉันจอดอยู่ชั้นสาม",
    "車は三階に停めました",
    "제 차는 3층에 있어요",
    "Чай стоит на полке",
)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("我的车在哪里", "我的车停在三楼"),
        ("गाड़ी कहाँ", "मेरी गाड़ी तीसरी मंज़िल पर"),
        ("रसोई", "मेरा बटुआ रसोई में"),
        ("does Anna have an allergy", "Anna is allergic to nuts"),
        ("what is the wifi called", "The Wi-Fi is called meadow"),
        ("รถอยู่ที่ไหน", "รถของฉันจอดอยู่ชั้นสาม"),
        ("車はどこ", "車は三階に停めました"),
        ("차는 어디에 있어요", "제 차는 3층에 있어요"),
        ("где чай", "Чай стоит на полке"),
        ("submarine", None),
        ("潜水艦", None),
    ],
)
def test_a_note_is_found_by_a_part_of_it_in_any_script(query: str, found: str | None) -> None:
    assert [note.text for note in notes.rank(query, some_notes(*NOTES_IN_SCRIPTS))] == ([] if found is None else [found])


def test_five_notes_at_most_are_found() -> None:
    assert len(notes.rank("", some_notes(*"abcdefgh"))) == len(notes.rank("word", some_notes(*["word"] * 8))) == notes.FOUND_LIMIT


def test_accents_do_not_hide_a_note() -> None:
    assert notes.rank("cafe", some_notes("The Café opens at nine."))


def test_every_built_in_function_is_described_for_a_small_model() -> None:
    tools = load(BUILT_IN, timeout_s=30)
    assert {"current_time", "calculate", "set_timer", "remember", "recall", "run_tool", "cancel_task"} < set(tools)
    for tool in filter(lambda tool: tool.listed, tools.values()):
        assert len(tool.description) <= 100, tool.name
        assert 6 <= len(tool.utterances) <= 24, tool.name
        for parameter in tool.parameters["properties"].values():
            assert 0 < len(parameter["description"]) <= 80, tool.name
    assert tools["set_timer"].card().kind == "async"
    assert current_time.__module__ == "voxbridge.services.tools.packs.everyday.time"

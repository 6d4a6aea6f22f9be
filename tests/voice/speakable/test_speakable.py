"""Texts that a voice gets for pieces of a reply."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from voxbridge.services.voice.core.cascade.segmenter import cut
from voxbridge.services.voice.speakable.names import LONGEST_PATH
from voxbridge.services.voice.speakable.rules import MOST_DECIMALS, MOST_FIGURES, ROUNDED_DECIMALS
from voxbridge.services.voice.speakable.text import LANGUAGES, MOST_PASSES, speakable

ROOT = Path(__file__).parents[3]
MARKS = "*_`#|~[]{}\\"
TOKENS = (
    "* ** _ __ ` ``` ~ ~~ # ## > | [ ] ( ) < > <b> </b> ![ ]( :// https:// www. @ . , ; : ! ? - – + = × ÷ & &amp; &lt; → -> ^ ° % $ € "
    "£ ¥ CHF USD SEK km kg m s h °C GB v V No. Nr. n° n.º 0 1 2 5 10 12 31 99 1.5 1,5 1,250 1.250 2024 1999 00 007 :05 14:05 1/2 ½ ² st "
    "th er º ª am PM Uhr h05 de der am Jan January Januar janvier enero API NASA HTML a b word get_user getUser e.g. z.B. 😀 1️⃣ é"
)
SNIPPETS = st.sampled_from(TOKENS.split())
RAGGED = st.lists(SNIPPETS | st.sampled_from([" ", "\n", "\t", "\u00a0"]), max_size=30).map("".join)
ANY = st.text(max_size=200) | RAGGED
TAGS = st.sampled_from([*LANGUAGES, "sv", "", "en-GB", "de_DE"])

ENGLISH = [
    ("It costs $3.50.", "It costs three dollars and fifty cents."),
    ("$1 or €5 or £0.05", "one dollar or five euros or five pence"),
    ("$1.2 million", "one point two million dollars"),
    ("$5-10 a day", "five to ten dollars a day"),
    ("a loss of -$5.25", "a loss of minus five dollars and twenty-five cents"),
    ("500 SEK and 20 USD", "five hundred Swedish kronor and twenty dollars"),
    ("$3bn, ¥1,000", "three billion dollars, one thousand yen"),
    ("1,250,000 people", "one million two hundred and fifty thousand people"),
    ("Pi is 3.14.", "Pi is three point one four."),
    ("it is -5 now", "it is minus five now"),
    ("Jan 5, 2024 was", "January fifth, twenty twenty-four was"),
    ("on 5 January 2024.", "on the fifth of January, twenty twenty-four."),
    ("It is on 5 January.", "It is on the fifth of January."),
    ("the 1st of May", "the first of May"),
    ("March 3-5", "March third to fifth"),
    ("2024-01-05", "January fifth, twenty twenty-four"),
    ("2024-01-05T14:05:00Z", "January fifth, twenty twenty-four, fourteen oh five U T C"),
    ("03/04/2024", "March fourth, twenty twenty-four"),
    ("25/12/2024", "December twenty-fifth, twenty twenty-four"),
    ("It is 14:05", "It is fourteen oh five"),
    ("9:00, 15:00 and 0:00", "nine o'clock, fifteen hundred and midnight"),
    ("from 9:15–17:30", "from nine fifteen to seventeen thirty"),
    ("at 3pm or 10:30am", "at 3 PM or 10:30 AM"),
    ("Call 555-1234.", "Call five five five, one two three four."),
    ("(555) 123-4567", "five five five, one two three, four five six seven"),
    ("Call 07700 900123.", "Call zero seven seven zero zero, nine zero zero one two three."),
    ("Reference 1234-5678", "Reference one two three four, five six seven eight"),
    ("Your code is 482913", "Your code is four eight two nine one three"),
    ("code 100-200", "code one zero zero, two zero zero"),
    ("flight BA 284", "flight B A two eight four"),
    ("order 12 pizzas", "order 12 pizzas"),
    ("card 4111 1111 1111 1111", "card four one one one, one one one one, one one one one, one one one one"),
    ("DE89 3704 0044 0532", "D E eight nine, three seven zero four, zero zero four four, zero five three two"),
    ("3-5 = -2", "three minus five equals minus two"),
    ("56m remaining", "fifty-six minutes remaining"),
    ("2h 30m", "two hours thirty minutes"),
    ("in 5m 30s", "in five minutes thirty seconds"),
    ("a 30m rope", "a thirty meters rope"),
    ("22.700000762939453 °C", "twenty-two point seven degrees Celsius"),
    ("0.30000000000000004", "zero point three"),
    ("2025-11-25T09:30:00+02:00", "November twenty-fifth, twenty twenty-five, nine thirty U T C plus two"),
    (r"It is $17 \times 23 = 391$.", "It is 17 times 23 equals 391."),
    ("a² + b² = c²", "a squared plus b squared equals c squared"),
    ("(x+1)² is not 25 m²", "(x+1) squared is not twenty-five square meters"),
    (r"$\frac{-b \pm \sqrt{b^2 - 4ac}}{2a}$", "minus b plus or minus the square root of b squared minus 4ac over 2a"),
    ("It costs $5 and $10.", "It costs five dollars and ten dollars."),
    ("v1.2.3", "version one point two point three"),
    ("Python 3.11.4, version 3.12", "Python three point eleven point four, version three point twelve"),
    ("127.0.0.1", "one hundred and twenty-seven dot zero dot zero dot one"),
    ("call +1 (555) 123-4567 now", "call plus one, five five five, one two three, four five six seven now"),
    ("50% or 12.5 %", "fifty percent or twelve point five percent"),
    ("10-20% or 5%-10%", "ten to twenty percent or five to ten percent"),
    ("1 mi is 1.6 km", "one mile is one point six kilometers"),
    ("5-10 km at 100 mph", "five to ten kilometers at one hundred miles per hour"),
    ("-5 °C, 90° and 16 GB", "minus five degrees Celsius, ninety degrees and sixteen gigabytes"),
    ("pages 5-10", "pages five to ten"),
    ("1990–1995", "nineteen ninety to nineteen ninety-five"),
    ("the 1st, 22nd and 103rd", "the first, twenty-second and one hundred and third"),
    ("1/2 cup and 3/4", "one half cup and three quarters"),
    ("2 1/2 cups, 1½", "two and a half cups, one and a half"),
    ("in 1999 and the 1990s", "in nineteen ninety-nine and the nineteen nineties"),
    ("item #5, no. 6", "item number 5, number 6"),
    ("See https://www.example.org/a/b?x=1.", "See example dot org slash a slash b."),
    ("http://localhost:8420/x", "localhost 8420 slash x"),
    ("me.you@example.org", "me dot you at example dot org"),
    ("open main.py", "open main dot py"),
    ("The API and URLs in HTML", "The A P I and U R L's in H T M L"),
    ("2 * 3 = 6 and 2*3", "2 times 3 equals 6 and 2 times 3"),
    ("R&D, a & b", "R and D, a and b"),
    ("5 > 3", "5 is greater than 3"),
    ("Paris → London", "Paris to London"),
    ("~5 people", "about 5 people"),
    ("C# code", "C sharp code"),
    ("10^6", "10 to the power of 6"),
    ("fruit, e.g. pears", "fruit, for example pears"),
]
GERMAN = [
    ("Der Code ist 4711.", "Der Code ist vier sieben eins eins."),
    ("noch 2h 30m", "noch zwei Stunden dreißig Minuten"),
    ("Es kostet 3,50 €.", "Es kostet drei Euro und fünfzig Cent."),
    ("1 €, CHF 20", "ein Euro, zwanzig Franken"),
    ("1.250.000 Menschen", "eine Million zweihundertfünfzigtausend Menschen"),
    ("1.250,75 €", "eintausendzweihundertfünfzig Euro und fünfundsiebzig Cent"),
    ("2,5 Mio. €", "zwei Komma fünf Millionen Euro"),
    ("am 5. Januar 2024", "am fünften Januar zweitausendvierundzwanzig"),
    ("der 5. Januar.", "der fünfte Januar."),
    ("am 5.1.2024", "am fünften Januar zweitausendvierundzwanzig"),
    ("um 14:05 Uhr oder 1.00 Uhr", "um vierzehn Uhr fünf oder ein Uhr"),
    ("3,14 und -5 °C", "drei Komma eins vier und minus fünf Grad Celsius"),
    ("1 kWh, 1 h, 5 h", "eine Kilowattstunde, eine Stunde, fünf Stunden"),
    ("5-10 km, 50 %", "fünf bis zehn Kilometer, fünfzig Prozent"),
    ("1/2, 3/4, 2½", "ein halb, drei Viertel, zweieinhalb"),
    ("der 3. Mann am 3. Tag", "der dritte Mann am dritten Tag"),
    ("seit 1999", "seit neunzehnhundertneunundneunzig"),
    ("z. B. Nr. 5", "zum Beispiel Nummer 5"),
    ("+49 30 1234567", "plus vier neun, drei null, eins zwei drei vier fünf sechs sieben"),
    ("a@b.de", "a at b Punkt de"),
    ("v1.2", "Version eins Punkt zwei"),
    ("die KI der EU", "die K I der E U"),
    ("5 * 3", "5 mal 3"),
]
FRENCH = [
    ("dans 2h 30m", "dans deux heures trente"),
    ("Ça coûte 3,50 €.", "Ça coûte trois euros et cinquante centimes."),
    ("1 250 000 habitants", "un million deux cent cinquante mille habitants"),
    ("1\u202f250,75 €", "mille deux cent cinquante euros et soixante-quinze centimes"),
    ("2,5 M€ ou 1 000 000 €", "deux virgule cinq millions d'euros ou un million d'euros"),
    ("le 5 janvier 2024", "le cinq janvier deux mille vingt-quatre"),
    ("le 1er mai.", "le premier mai."),
    ("05/01/2024", "cinq janvier deux mille vingt-quatre"),
    ("à 14h05, à 1h30, à 14:05", "à quatorze heures cinq, à une heure trente, à quatorze heures cinq"),
    ("3,14 et -5 °C", "trois virgule un quatre et moins cinq degrés Celsius"),
    ("21 min, 1 h, 1 lb", "vingt et une minutes, une heure, une livre"),
    ("10-20 %", "dix à vingt pour cent"),
    ("1/2, 3/4, 2½", "un demi, trois quarts, deux et demi"),
    ("le 1er, la 1re, le 2e", "le premier, la première, le deuxième"),
    ("n° 5", "numéro 5"),
    ("06 12 34 56 78", "zéro six, douze, trente-quatre, cinquante-six, soixante-dix-huit"),
    ("a@b.fr", "a arobase b point fr"),
    ("la TVA", "la T V A"),
]
SPANISH = [
    ("Cuesta 3,50 €.", "Cuesta tres euros con cincuenta céntimos."),
    ("1.250.000 personas", "un millón doscientos cincuenta mil personas"),
    ("2,5 M€", "dos coma cinco millones de euros"),
    ("el 5 de enero de 2024", "el cinco de enero de dos mil veinticuatro"),
    ("05/01/2024", "cinco de enero de dos mil veinticuatro"),
    ("a las 14:05, a las 1:30", "a las catorce y cinco, a las una y treinta"),
    ("3,14 y -5 °C", "tres coma uno cuatro y menos cinco grados Celsius"),
    ("21 km y 200 lb", "veintiún kilómetros y doscientas libras"),
    ("50 %, 5-10 km", "cincuenta por ciento, cinco a diez kilómetros"),
    ("1/2, 3/4, 2½", "un medio, tres cuartos, dos y medio"),
    ("el 1º, la 2ª, el 3er", "el primero, la segunda, el tercer"),
    ("n.º 5", "número 5"),
    ("612 345 678", "seis uno dos, tres cuatro cinco, seis siete ocho"),
    ("a@b.es", "a arroba b punto es"),
    ("la ONG", "la O N G"),
]
AS_IT_IS = [
    "12 times 12 equals 144.",
    "It's 1:49 AM on Sunday in Tokyo.",
    "5 - 3 is 2",
    "Call 911",
    "the score was 3-1",
    "open 24/7",
    "007",
    "2:1",
    "1e6",
    "2.5x faster",
    "COVID-19",
    "the 80s",
    "No. 5 people came",
    "NASA",
    "iPhone and YouTube",
    "MY TV IS ON",
    "1.2.3.4.5.6",
    "12345678901234567890",
    "Dr. Who",
    "31/31/2024",
    "01/02",
    "don't-stop",
]
MARKUP = [
    ("**Bold**, _thin_ and ~~gone~~", "Bold, thin and gone"),
    ("## Title\n> a word", "Title a word"),
    ("- [ ] one\n- [x] two\n* three", "one two three"),
    ("1. Boil water.", "1. Boil water."),
    ("[a page](https://example.org/a_(b)) and ![a tree](t.png)", "a page and a tree"),
    ("as said[^1]", "as said"),
    ("`current_time`, `getUserName` and snake_case", "current time, get User Name and snake case"),
    ("__init__", "init"),
    ("```python\nx = 1\n```", "x equals 1"),
    ("| a | b |\n|---|:-:|\n| 1 | 2 |", "a, b 1, 2"),
    ("one\n---\ntwo", "one two"),
    ("<b>hi</b><br/>there", "hi there"),
    ("Tom &amp; Ann", "Tom and Ann"),
    (r"\*no\*", "no"),
    ("Hi 😀! 👨‍👩‍👧", "Hi!"),
    ("**Half a span.", "Half a span."),
    ("the rest**", "the rest"),
    ("its end](https://example.org)", "its end"),
]


@pytest.mark.parametrize(("text", "said"), ENGLISH)
def test_english(text: str, said: str) -> None:
    assert speakable(text) == said


@pytest.mark.parametrize(("text", "said"), GERMAN)
def test_german(text: str, said: str) -> None:
    assert speakable(text, "de") == said


@pytest.mark.parametrize(("text", "said"), FRENCH)
def test_french(text: str, said: str) -> None:
    assert speakable(text, "fr") == said


@pytest.mark.parametrize(("text", "said"), SPANISH)
def test_spanish(text: str, said: str) -> None:
    assert speakable(text, "es") == said


@pytest.mark.parametrize("text", AS_IT_IS)
def test_what_no_rule_understands_or_any_voice_reads_right_stays(text: str) -> None:
    assert speakable(text) == text


@pytest.mark.parametrize(("text", "said"), MARKUP)
def test_no_markup_is_said(text: str, said: str) -> None:
    assert speakable(text) == said


@pytest.mark.parametrize(
    ("tag", "said"), [("en", "March fourth"), ("en-US", "March fourth"), ("en-GB", "April third"), ("en_AU", "April third")]
)
def test_a_date_with_slashes_is_read_as_the_region_writes_it(tag: str, said: str) -> None:
    assert speakable("03/04/2024", tag) == f"{said}, twenty twenty-four"


def test_a_language_without_rules_keeps_its_numbers_and_loses_its_markup() -> None:
    assert speakable("**Kostar** 3,50 € den 5/1/2024, 2*3, se `get_user` & [här](https://example.org)", "sv") == (
        "Kostar 3,50 € den 5/1/2024, 2×3, se get user & här"
    )


def test_numbers_are_spelled_up_to_their_limits() -> None:
    edge = ",".join(["999"] * (MOST_FIGURES // 3))
    assert speakable(edge).startswith("nine hundred and ninety-nine trillion")
    assert speakable(f"1,{edge}") == f"1,{edge}"
    assert speakable("0." + "1" * MOST_DECIMALS) == "zero point" + " one" * MOST_DECIMALS
    assert speakable("0." + "1" * (MOST_DECIMALS + 1)) == "zero point" + " one" * ROUNDED_DECIMALS


def test_a_long_path_is_not_read_out() -> None:
    edge = "a" * LONGEST_PATH
    assert speakable(f"https://example.org/{edge}") == f"example dot org slash {edge}"
    assert speakable(f"https://example.org/{edge}a") == "example dot org"


@pytest.mark.parametrize("layers", [MOST_PASSES - 1, MOST_PASSES, 5 * MOST_PASSES])
def test_markup_in_layers_is_undone_however_many_there_are(layers: int) -> None:
    for text in (
        "[" * layers + "word" + "](a)" * layers,
        "> " * layers + "- " * layers + "word",
        "**" * layers + "word",
        "\\" * layers + "*word",
        "&lt;" * layers + "word" + "&gt;" * layers,
    ):
        assert speakable(text) == "word"
    assert speakable(f"a &{'amp;' * layers} b") == "a and b"


@given(ANY, TAGS)
@example("&amp;lt;b>", "en")
@example("`" * 50, "en")
@example("[[[[[[a](b)](c)](d)](e)](f)](g)", "en")
def test_any_text_comes_out_bounded_on_one_line_and_without_marks(text: str, tag: str) -> None:
    said = speakable(text, tag)
    assert len(said) <= 20 * len(text) + 200
    assert said == " ".join(said.split())
    assert not set(said) & set(MARKS)


@given(ANY, TAGS)
def test_what_was_made_speakable_stays_so(text: str, tag: str) -> None:
    said = speakable(text, tag)
    assert speakable(said, tag) == said


@given(st.text(alphabet="abcde fgé,.!?'", max_size=200).map(lambda text: re.sub(r"\.(?=\w)", ". ", text)), TAGS)  # `a.de` is a domain
def test_plain_words_are_said_as_they_are(text: str, tag: str) -> None:
    assert speakable(text, tag) == " ".join(text.split())


def test_no_word_is_lost_or_joined_between_the_pieces_of_a_stream() -> None:
    text = "It is **$5. And** 3.5 km away, see [the map. Or](https://example.org) ask `get_user`.\n| a | b |\n"
    pieces, rest = cut(text, first=True)
    assert " ".join(filter(None, map(speakable, [*pieces, rest]))) == (
        "It is five dollars. And three point five kilometers away, see the map. Or ask get user. a, b"
    )


def test_a_piece_that_ended_a_sentence_still_does() -> None:
    for text in (
        "It is 5 Jan.",
        "It costs $5.",
        "At 14:05.",
        "See https://example.org.",
        "Take 5 km.",
        "The 1st.",
        "Use v1.2.",
        "Half: ½.",
    ):
        assert speakable(text).endswith("."), text


def test_the_machine_changes_nothing() -> None:
    """The words are the same under another locale and time zone, so a call replays identically everywhere."""
    said = "On 2024-01-05 at 14:05 it cost 1,250.50 $ and 5 km."
    program = f"from voxbridge.services.voice.speakable.text import speakable\nprint(speakable({said!r}))"
    heard = {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={
                **os.environ,
                "PYTHONUTF8": "1",
                "PYTHONHASHSEED": seed,
                **dict.fromkeys(("LC_ALL", "LANG", "LC_NUMERIC"), locale),
                "TZ": zone,
            },
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stdout
        for locale, zone, seed in (("de_DE.UTF-8", "Asia/Tokyo", "1"), ("C", "UTC", "2"))
    }
    assert len(heard) == 1


@pytest.mark.parametrize(
    ("language", "text", "said"),
    [
        ("es-MX", "1,500 pesos", "mil quinientos pesos"),
        ("es-MX", "$250", "doscientos cincuenta pesos"),
        ("es-MX", "US$3.50", "tres dólares con cincuenta centavos"),
        ("es-AR", "$1.500,50", "mil quinientos pesos con cincuenta centavos"),
        ("es-Latn-MX", "$1,500.50", "mil quinientos pesos con cincuenta centavos"),
        ("es", "$250", "doscientos cincuenta dólares"),
        ("de-CH", "CHF 1'234.50", "eintausendzweihundertvierunddreißig Franken und fünfzig Rappen"),
        ("de-CH", "1’234.5 km", "eintausendzweihundertvierunddreißig Komma fünf Kilometer"),
        ("de-AT", "1.234,50 €", "eintausendzweihundertvierunddreißig Euro und fünfzig Cent"),
        ("fr-CH", "CHF 1'234.50", "mille deux cent trente-quatre francs suisses et cinquante centimes"),
        ("en-IN", "₹2.5 crore", "two point five crore rupees"),
        ("en-IN", "₹3 lakh", "three lakh rupees"),
        ("en", "A$25, CA$500", "twenty-five Australian dollars, five hundred Canadian dollars"),
        ("en", "$500 CAD", "five hundred Canadian dollars"),
        ("en", "S$4 and HK$5", "four Singapore dollars and five Hong Kong dollars"),
        ("en", "US$3.50", "three dollars and fifty cents"),
    ],
)
def test_figures_and_money_are_those_of_the_region(language: str, text: str, said: str) -> None:
    assert speakable(text, language) == said
    assert speakable(said, language) == said

"""Written texts and the words that are said for them, each read by a person: numbers, money, dates, units, telephones, formulas."""

from __future__ import annotations

import pytest

from voxbridge.services.voice.speakable.text import speakable

TEXTS: dict[str, tuple[tuple[str, str], ...]] = {
    "en": (
        ("Call 555-1234 before 9:30 a.m.", "Call five five five, one two three four before 9:30 a.m."),
        (
            "It costs $1,299.99, i.e. €1.",
            "It costs one thousand two hundred and ninety-nine dollars and ninety-nine cents, that is one euro.",
        ),
        ("Temps range 15-20 °C; wind 30 km/h.", "Temps range fifteen to twenty degrees Celsius; wind thirty kilometers per hour."),
        (
            "Version 3.11.4 fixes 1/2 of the bugs (50%).",
            "Version three point eleven point four fixes one half of the bugs (fifty percent).",
        ),
        ("π ≈ 3.14159265358979", "π is about three point one four one six"),
        ("She was born Jan. 5th, 1987.", "She was born January fifth, nineteen eighty-seven."),
        ("1st, 2nd, 3rd & 21st", "first, second, third and twenty-first"),
        ("Ring +44 20 7946 0958.", "Ring plus four four, two zero, seven nine four six, zero nine five eight."),
        ("The file is 2.5 GB.", "The file is two point five gigabytes."),
        ("x ≥ 5 and y ≠ 3", "x is at least 5 and y is not 3"),
        ("It took 2h 35m.", "It took two hours thirty-five minutes."),
        ("Flight BA2490 leaves at 6:05pm.", "Flight B A two four nine zero leaves at 6:05pm."),
    ),
    "de": (
        (
            "Das kostet 1.299,99 € bzw. 5,50 CHF.",
            "Das kostet eintausendzweihundertneunundneunzig Euro und neunundneunzig Cent beziehungsweise fünf Franken und fünfzig Rappen.",
        ),
        ("Am 3.4.2026 um 14:30 Uhr.", "Am dritten April zweitausendsechsundzwanzig um vierzehn Uhr dreißig."),
        ("Es sind -5 °C.", "Es sind minus fünf Grad Celsius."),
        ("Z. B. 3,5 km bei 120 km/h.", "Zum Beispiel drei Komma fünf Kilometer bei einhundertzwanzig Kilometer pro Stunde."),
        ("Ruf 030 1234567 an.", "Ruf null drei null, eins zwei drei vier fünf sechs sieben an."),
        ("100 % von 1/4 sind 0,25.", "einhundert Prozent von ein Viertel sind null Komma zwei fünf."),
        ("x² + y² = 25", "x zum Quadrat plus y zum Quadrat gleich 25"),
    ),
    "fr": (
        ("Ça coûte 1 299,99 €.", "Ça coûte mille deux cent quatre-vingt-dix-neuf euros et quatre-vingt-dix-neuf centimes."),
        ("Le 3 avril 2026 à 14h30.", "Le trois avril deux mille vingt-six à quatorze heures trente."),
        ("Appelez le 01 23 45 67 89.", "Appelez le zéro un, vingt-trois, quarante-cinq, soixante-sept, quatre-vingt-neuf."),
        ("3,5 km à 120 km/h", "trois virgule cinq kilomètres à cent vingt kilomètres par heure"),
        ("1er mai, 2e étage", "premier mai, deuxième étage"),
        ("Il fait -5 °C.", "Il fait moins cinq degrés Celsius."),
    ),
    "es": (
        (
            "Cuesta 1.299,99 € o $500.",
            "Cuesta mil doscientos noventa y nueve euros con noventa y nueve céntimos o quinientos dólares.",
        ),
        ("El 3/4/2026 a las 14:30.", "El tres de abril de dos mil veintiséis a las catorce y treinta."),
        ("Llame al 912 345 678.", "Llame al nueve uno dos, tres cuatro cinco, seis siete ocho."),
        ("50 % de 1/2", "cincuenta por ciento de un medio"),
        ("EE. UU. tiene 50 estados", "Estados Unidos tiene 50 estados"),
        ("Hace -5 °C hoy.", "Hace menos cinco grados Celsius hoy."),
    ),
}


@pytest.mark.parametrize(("language", "written", "said"), [(code, *pair) for code, pairs in TEXTS.items() for pair in pairs])
def test_a_text_is_said_as_a_person_reads_it(language: str, written: str, said: str) -> None:
    assert speakable(written, language) == said

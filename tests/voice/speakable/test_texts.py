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
        (
            "The flight takes 1h 45m and costs £89.50.",
            "The flight takes one hour forty-five minutes and costs eighty-nine pounds and fifty pence.",
        ),
        ("Mix 250 ml milk with 1½ cups of flour.", "Mix two hundred and fifty milliliters milk with one and a half cups of flour."),
        ("Pay by 31/12/2026 to save 15%.", "Pay by December thirty-first, twenty twenty-six to save fifteen percent."),
        (
            "It's -3 °F outside, i.e. about -19.4 °C.",
            "It's minus three degrees Fahrenheit outside, that is about minus nineteen point four degrees Celsius.",
        ),
        ("Your code is 482 913.", "Your code is four eight two, nine one three."),
        ("2^10 = 1024", "2 to the power of 10 equals 1024"),
        (r"\frac{-b \pm \sqrt{b^2 - 4ac}}{2a}", "minus b plus or minus the square root of b squared minus 4ac over 2a"),
        ("<think>They greet me.</think> Hello there.", "Hello there."),
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
        (
            "Der Zug fährt um 7.05 Uhr ab und kostet 1,5 Mio. €.",
            "Der Zug fährt um sieben Uhr fünf ab und kostet eins Komma fünf Millionen Euro.",
        ),
        ("Die PIN lautet 0815.", "Die PIN lautet null acht eins fünf."),
        ("Ca. 2,5 GB in 30 s.", "Circa zwei Komma fünf Gigabyte in dreißig Sekunden."),
        ("Die Sitzung ist vom 3. bis 5. Juni.", "Die Sitzung ist vom dritten bis fünften Juni."),
    ),
    "fr": (
        ("Ça coûte 1 299,99 €.", "Ça coûte mille deux cent quatre-vingt-dix-neuf euros et quatre-vingt-dix-neuf centimes."),
        ("Le 3 avril 2026 à 14h30.", "Le trois avril deux mille vingt-six à quatorze heures trente."),
        ("Appelez le 01 23 45 67 89.", "Appelez le zéro un, vingt-trois, quarante-cinq, soixante-sept, quatre-vingt-neuf."),
        ("3,5 km à 120 km/h", "trois virgule cinq kilomètres à cent vingt kilomètres par heure"),
        ("1er mai, 2e étage", "premier mai, deuxième étage"),
        ("Il fait -5 °C.", "Il fait moins cinq degrés Celsius."),
        (
            "La réunion dure 1h 30m et coûte 2,5 millions d'euros.",
            "La réunion dure une heure trente et coûte deux virgule cinq millions d'euros.",
        ),
        ("Le code est 4821.", "Le code est quatre huit deux un."),
        ("Écrivez à info@exemple.fr.", "Écrivez à info arobase exemple point fr."),
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
        ("La empresa vale 2,5 millones de €.", "La empresa vale dos coma cinco millones de euros."),
        ("Pesa 1 kg y mide 1,70 m.", "Pesa un kilogramo y mide uno coma siete cero metros."),
        ("El código es 4821.", "El código es cuatro ocho dos uno."),
        ("Vive en el 3.º piso, 1.ª puerta.", "Vive en el tercer piso, primera puerta."),
    ),
    "it": (
        (
            "Il prezzo è 1.299,99 €, cioè circa $1.500.",
            "Il prezzo è milleduecentonovantanove euro e novantanove centesimi, cioè circa millecinquecento dollari.",
        ),
        ("La riunione è il 3 aprile 2026 alle 14:30.", "La riunione è il tre aprile duemilaventisei alle quattordici e trenta."),
        ("Il 1° maggio siamo aperti, ore 8.30-13.00.", "Il primo maggio siamo aperti, ore otto e trenta a tredici."),
        ("Fa -5 °C, domani 20°.", "Fa meno cinque gradi Celsius, domani venti gradi."),
        ("Abita al 2° piano, 3ª porta.", "Abita al secondo piano, terza porta."),
        ("Corre a 120 km/h per 2,5 km.", "Corre a centoventi chilometri orari per due virgola cinque chilometri."),
        ("Chiama il 347 123 4567.", "Chiama il tre quattro sette, uno due tre, quattro cinque sei sette."),
        ("L'azienda vale 2,5 milioni di €.", "L'azienda vale due virgola cinque milioni di euro."),
        ("Pesa 1 kg, costa £1 e dura 1 h.", "Pesa un chilogrammo, costa una sterlina e dura un'ora."),
        ("Ad es. il 50 % di 1/4 fa 0,125.", "Ad esempio il cinquanta per cento di un quarto fa zero virgola uno due cinque."),
        ("x² + y² = 25", "x al quadrato più y al quadrato è uguale a 25"),
    ),
    "pt": (
        ("Custa R$ 1.299,99 ou US$ 5.", "Custa mil duzentos e noventa e nove reais e noventa e nove centavos ou cinco dólares."),
        (
            "A reunião é em 3 de abril de 2026 às 14h30.",
            "A reunião é em três de abril de dois mil e vinte e seis às catorze horas e trinta.",
        ),
        ("Dia 1º de maio às 9:05 faz -5 °C.", "Dia primeiro de maio às nove e cinco faz menos cinco graus Celsius."),
        ("Mora no 2º andar, 3ª porta.", "Mora no segundo andar, terceira porta."),
        ("Corre a 120 km/h por 2,5 km.", "Corre a cento e vinte quilômetros por hora por dois vírgula cinco quilômetros."),
        ("Ligue para (11) 3456-7890.", "Ligue para um um, três quatro cinco seis, sete oito nove zero."),
        ("A empresa vale 2,5 milhões de €, ou R$ 3 bi.", "A empresa vale dois vírgula cinco milhões de euros, ou três bilhões de reais."),
        ("Leva 2h 35m e custa 202 £.", "Leva duas horas e trinta e cinco e custa duzentas e duas libras."),
        ("P. ex. a versão 3.11.4 do Python.", "Por exemplo a versão três ponto onze ponto quatro do Python."),
        ("50 % de 1/4 são 0,125.", "cinquenta por cento de um quarto são zero vírgula um dois cinco."),
        ("Os EUA têm 50 estados.", "Os Estados Unidos têm 50 estados."),
    ),
}


@pytest.mark.parametrize(("language", "written", "said"), [(code, *pair) for code, pairs in TEXTS.items() for pair in pairs])
def test_a_text_is_said_as_a_person_reads_it(language: str, written: str, said: str) -> None:
    assert speakable(written, language) == said

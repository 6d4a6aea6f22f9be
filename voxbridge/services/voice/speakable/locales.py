"""Separators, signs, money and fractions as each language writes and says them: tables only. Pure.

Months, units and the names of rarer currencies are in `units`; numbers in words come from num2words (`words`).
A crash here loses nothing.
"""

from __future__ import annotations

from typing import Final

import msgspec


class Currency(msgspec.Struct, frozen=True, array_like=True):
    """Names of a currency's unit and of its hundredth, singular and plural; no hundredth for a currency that has none."""

    one: str
    many: str
    cent: str = ""
    cents: str = ""


class Locale(msgspec.Struct, frozen=True, kw_only=True):
    """The words and separators of a language. `signs` are the words for signs between two operands."""

    code: str
    decimal: str
    groups: str
    """Characters that may separate thousands."""
    point: str
    minus: str
    to: str
    at: str
    dot: str
    slash: str
    dash: str
    underscore: str
    percent: str
    about: str
    number: str
    number_signs: str
    """Pattern of the abbreviations of "number" before a figure."""
    version: str
    cents_joint: str
    of_money: str
    """Word between a million and its currency."""
    signs: dict[str, str]
    currencies: dict[str, Currency]
    denominators: tuple[tuple[str, str], ...]
    """Singular and plural of a half, a third, … a tenth."""
    mixed: str
    """Word between a whole number and its fraction."""
    and_half: str
    """Words that follow a whole number for a half more."""
    letters: str
    """Acronyms with a vowel that are said letter by letter, separated by spaces; those without a vowel are in any case."""
    short: dict[str, str]
    """Abbreviations that a voice reads wrong, with the words for them."""
    tag: str = ""
    """BCP 47 tag of a region that has rules of its own; empty for the language."""


_EN: Final = Locale(
    code="en",
    decimal=".",
    groups=",\u00a0\u202f",
    point="point",
    minus="minus",
    to="to",
    at="at",
    dot="dot",
    slash="slash",
    dash="dash",
    underscore="underscore",
    percent="percent",
    about="about",
    number="number",
    number_signs=r"[Nn]o\.|[Nn]r\.|#",
    version="version",
    cents_joint="and",
    of_money="",
    signs={
        "&": "and",
        "+": "plus",
        "=": "equals",
        "×": "times",
        "*": "times",
        "÷": "divided by",
        "^": "to the power of",
        "≈": "is about",
        "≠": "is not",
        "<": "is less than",
        ">": "is greater than",
        "≤": "is at most",
        "≥": "is at least",
        "→": "to",
    },
    currencies={
        "$": Currency("dollar", "dollars", "cent", "cents"),
        "€": Currency("euro", "euros", "cent", "cents"),
        "£": Currency("pound", "pounds", "penny", "pence"),
        "¥": Currency("yen", "yen"),
        "₹": Currency("rupee", "rupees", "paisa", "paise"),
        "CHF": Currency("Swiss franc", "Swiss francs", "centime", "centimes"),
    },
    denominators=(
        ("half", "halves"),
        ("third", "thirds"),
        ("quarter", "quarters"),
        ("fifth", "fifths"),
        ("sixth", "sixths"),
        ("seventh", "sevenths"),
        ("eighth", "eighths"),
        ("ninth", "ninths"),
        ("tenth", "tenths"),
    ),
    mixed="and",
    and_half=" and a half",
    letters=(
        "AI API ATM BBC CEO CIA CIO CLI CPU CTO DIY DNA EU ETA EV FAQ FBI FYI GDP GPU GUI HIV HR IBM ID IDE IOT IP IPO "
        "IQ ISO ISP LED MIT NBA NFL NHS NYC OCR OS OECD PDF QA QR RNA SEO SQL SUV UAE UFO UI UK UN URI URL USA USB UTC "
        "UX VIP VPN"
    ),
    short={"e.g.": "for example", "i.e.": "that is", "approx.": "approximately", "vs.": "versus", "w/o": "without", "w/": "with"},
)

_DE: Final = Locale(
    code="de",
    decimal=",",
    groups=".'’\u00a0\u202f",
    point="Komma",
    minus="minus",
    to="bis",
    at="at",
    dot="Punkt",
    slash="Schrägstrich",
    dash="Bindestrich",
    underscore="Unterstrich",
    percent="Prozent",
    about="etwa",
    number="Nummer",
    number_signs=r"[Nn]r\.|#",
    version="Version",
    cents_joint="und",
    of_money="",
    signs={
        "&": "und",
        "+": "plus",
        "=": "gleich",
        "×": "mal",
        "*": "mal",
        "÷": "geteilt durch",
        "^": "hoch",
        "≈": "ist etwa",
        "≠": "ist nicht",
        "<": "ist kleiner als",
        ">": "ist größer als",
        "≤": "ist höchstens",
        "≥": "ist mindestens",
        "→": "nach",
    },
    currencies={
        "$": Currency("Dollar", "Dollar", "Cent", "Cent"),
        "€": Currency("Euro", "Euro", "Cent", "Cent"),
        "£": Currency("Pfund", "Pfund", "Penny", "Pence"),
        "¥": Currency("Yen", "Yen"),
        "₹": Currency("Rupie", "Rupien", "Paisa", "Paise"),
        "CHF": Currency("Franken", "Franken", "Rappen", "Rappen"),
    },
    denominators=(
        ("halb", "halbe"),
        ("Drittel", "Drittel"),
        ("Viertel", "Viertel"),
        ("Fünftel", "Fünftel"),
        ("Sechstel", "Sechstel"),
        ("Siebtel", "Siebtel"),
        ("Achtel", "Achtel"),
        ("Neuntel", "Neuntel"),
        ("Zehntel", "Zehntel"),
    ),
    mixed="und",
    and_half="einhalb",
    letters="AG AGB API ARD BIP CPU EDV EU EZB GPU ICE ID IP IT KI ÖPNV OECD PDF SQL UKW UNHCR URL USA USB UTC VIP ZDF",
    short={"z. B.": "zum Beispiel", "z.B.": "zum Beispiel", "d. h.": "das heißt", "d.h.": "das heißt", "u. a.": "unter anderem",
           "u.a.": "unter anderem", "bzw.": "beziehungsweise", "ca.": "circa", "vgl.": "vergleiche"},
)  # fmt: skip

_FR: Final = Locale(
    code="fr",
    decimal=",",
    groups=" .\u00a0\u202f",
    point="virgule",
    minus="moins",
    to="à",
    at="arobase",
    dot="point",
    slash="barre oblique",
    dash="tiret",
    underscore="tiret bas",
    percent="pour cent",
    about="environ",
    number="numéro",
    number_signs=r"[Nn][°º]|#",
    version="version",
    cents_joint="et",
    of_money="de",
    signs={
        "&": "et",
        "+": "plus",
        "=": "égale",
        "×": "fois",
        "*": "fois",
        "÷": "divisé par",
        "^": "puissance",
        "≈": "est environ",
        "≠": "n'est pas",
        "<": "est inférieur à",
        ">": "est supérieur à",
        "≤": "est au plus",
        "≥": "est au moins",
        "→": "vers",
    },
    currencies={
        "$": Currency("dollar", "dollars", "cent", "cents"),
        "€": Currency("euro", "euros", "centime", "centimes"),
        "£": Currency("livre", "livres", "penny", "pence"),
        "¥": Currency("yen", "yens"),
        "₹": Currency("roupie", "roupies", "paisa", "paisas"),
        "CHF": Currency("franc suisse", "francs suisses", "centime", "centimes"),
    },
    denominators=(
        ("demi", "demis"),
        ("tiers", "tiers"),
        ("quart", "quarts"),
        ("cinquième", "cinquièmes"),
        ("sixième", "sixièmes"),
        ("septième", "septièmes"),
        ("huitième", "huitièmes"),
        ("neuvième", "neuvièmes"),
        ("dixième", "dixièmes"),
    ),
    mixed="et",
    and_half=" et demi",
    letters="API CPU EDF GPU IA ID IP OMC ONG PIB RATP SAV SQL TVA UE URL USA USB UTC",
    short={"p. ex.": "par exemple", "c.-à-d.": "c'est-à-dire"},
)

_ES: Final = Locale(
    code="es",
    decimal=",",
    groups=".\u00a0\u202f",
    point="coma",
    minus="menos",
    to="a",
    at="arroba",
    dot="punto",
    slash="barra",
    dash="guion",
    underscore="guion bajo",
    percent="por ciento",
    about="unos",
    number="número",
    number_signs=r"[Nn]\.?[º°]|[Nn]úm\.|#",
    version="versión",
    cents_joint="con",
    of_money="de",
    signs={
        "&": "y",
        "+": "más",
        "=": "es igual a",
        "×": "por",
        "*": "por",
        "÷": "dividido por",
        "^": "elevado a",
        "≈": "es aproximadamente",
        "≠": "no es",
        "<": "es menor que",
        ">": "es mayor que",
        "≤": "es como mucho",
        "≥": "es como mínimo",
        "→": "a",
    },
    currencies={
        "$": Currency("dólar", "dólares", "centavo", "centavos"),
        "€": Currency("euro", "euros", "céntimo", "céntimos"),
        "£": Currency("libra", "libras", "penique", "peniques"),
        "¥": Currency("yen", "yenes"),
        "₹": Currency("rupia", "rupias", "paisa", "paisas"),
        "CHF": Currency("franco suizo", "francos suizos", "céntimo", "céntimos"),
    },
    denominators=(
        ("medio", "medios"),
        ("tercio", "tercios"),
        ("cuarto", "cuartos"),
        ("quinto", "quintos"),
        ("sexto", "sextos"),
        ("séptimo", "séptimos"),
        ("octavo", "octavos"),
        ("noveno", "novenos"),
        ("décimo", "décimos"),
    ),
    mixed="y",
    and_half=" y medio",
    letters="API CPU GPU IA ID IP ONG PIB SQL UE URL USA USB UTC",
    short={"p. ej.": "por ejemplo", "EE. UU.": "Estados Unidos", "EE.UU.": "Estados Unidos"},
)

_IT: Final = Locale(
    code="it",
    decimal=",",
    groups=".\u00a0\u202f",
    point="virgola",
    minus="meno",
    to="a",
    at="chiocciola",
    dot="punto",
    slash="barra",
    dash="trattino",
    underscore="trattino basso",
    percent="per cento",
    about="circa",
    number="numero",
    number_signs=r"[Nn]\.?[º°]|[Nn]\.|#",
    version="versione",
    cents_joint="e",
    of_money="di",
    signs={
        "&": "e",
        "+": "più",
        "=": "è uguale a",
        "×": "per",
        "*": "per",
        "÷": "diviso",
        "^": "elevato a",
        "≈": "è circa",
        "≠": "è diverso da",
        "<": "è minore di",
        ">": "è maggiore di",
        "≤": "è al massimo",
        "≥": "è almeno",
        "→": "a",
    },
    currencies={
        "$": Currency("dollaro", "dollari", "centesimo", "centesimi"),
        "€": Currency("euro", "euro", "centesimo", "centesimi"),
        "£": Currency("sterlina", "sterline", "penny", "pence"),
        "¥": Currency("yen", "yen"),
        "₹": Currency("rupia", "rupie", "paisa", "paise"),
        "CHF": Currency("franco svizzero", "franchi svizzeri", "centesimo", "centesimi"),
    },
    denominators=(
        ("mezzo", "mezzi"),
        ("terzo", "terzi"),
        ("quarto", "quarti"),
        ("quinto", "quinti"),
        ("sesto", "sesti"),
        ("settimo", "settimi"),
        ("ottavo", "ottavi"),
        ("nono", "noni"),
        ("decimo", "decimi"),
    ),
    mixed="e",
    and_half=" e mezzo",
    letters="API CPU GPU IA ID IP PDF SQL UE URL USB UTC",
    short={"ad es.": "ad esempio", "p. es.": "per esempio", "sig.": "signor", "sig.ra": "signora", "dott.": "dottor",
           "dott.ssa": "dottoressa", "prof.": "professor", "ca.": "circa"},
)  # fmt: skip

_PT: Final = Locale(
    code="pt",
    decimal=",",
    groups=".\u00a0\u202f",
    point="vírgula",
    minus="menos",
    to="a",
    at="arroba",
    dot="ponto",
    slash="barra",
    dash="hífen",
    underscore="sublinhado",
    percent="por cento",
    about="cerca de",
    number="número",
    number_signs=r"[Nn]\.?[º°]|#",
    version="versão",
    cents_joint="e",
    of_money="de",
    signs={
        "&": "e",
        "+": "mais",
        "=": "é igual a",
        "×": "vezes",
        "*": "vezes",
        "÷": "dividido por",
        "^": "elevado a",
        "≈": "é aproximadamente",
        "≠": "é diferente de",
        "<": "é menor que",
        ">": "é maior que",
        "≤": "é no máximo",
        "≥": "é no mínimo",
        "→": "a",
    },
    currencies={
        "$": Currency("dólar", "dólares", "centavo", "centavos"),
        "€": Currency("euro", "euros", "centavo", "centavos"),
        "£": Currency("libra", "libras", "penny", "pence"),
        "¥": Currency("iene", "ienes"),
        "₹": Currency("rupia", "rupias", "paisa", "paisas"),
        "CHF": Currency("franco suíço", "francos suíços", "centavo", "centavos"),
        "BRL": Currency("real", "reais", "centavo", "centavos"),
    },
    denominators=(
        ("meio", "meios"),
        ("terço", "terços"),
        ("quarto", "quartos"),
        ("quinto", "quintos"),
        ("sexto", "sextos"),
        ("sétimo", "sétimos"),
        ("oitavo", "oitavos"),
        ("nono", "nonos"),
        ("décimo", "décimos"),
    ),
    mixed="e",
    and_half=" e meio",
    letters="API CEP CPF CPU GPU IA ID IP PDF SQL UE URL USB UTC",
    short={"p. ex.": "por exemplo", "Sr.": "senhor", "Sra.": "senhora", "Dr.": "doutor", "Dra.": "doutora", "EUA": "Estados Unidos"},
)

LOCALES: Final = {locale.code: locale for locale in (_EN, _DE, _FR, _ES, _IT, _PT)}

DOLLARS: Final = {
    "A$": "AUD",
    "AU$": "AUD",
    "C$": "CAD",
    "CA$": "CAD",
    "HK$": "HKD",
    "MX$": "MXN",
    "NZ$": "NZD",
    "R$": "BRL",
    "S$": "SGD",
    "US$": "USD",
}
"""ISO 4217 codes of the signs that say whose dollar, peso or real they are."""

CODES: Final = {"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "INR": "₹", "CHF": "CHF"}
"""ISO 4217 codes of the currencies whose everyday names are in the tables."""

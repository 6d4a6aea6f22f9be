"""The names of months, units and of currencies that `locales` has no everyday name for, in each language: tables only. Pure.

The names are the CLDR's. They are kept here, not read through a library, for two reasons: libraries with the CLDR read the locale and the
time zone of the process on import, and after an update of such a library an old call would replay to other words. A crash here loses
nothing.
"""

from __future__ import annotations

from typing import Final

LANGUAGES: Final = ("en", "de", "fr", "es")
"""The order of the columns below."""

MONTHS: Final = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
}
"""Names of the months, January to December."""

SHORT_MONTHS: Final = {
    "en": "Jan=1 Feb=2 Mar=3 Apr=4 Jun=6 Jul=7 Aug=8 Sep=9 Oct=10 Nov=11 Dec=12 Sept=9",
    "de": "Jan=1 Feb=2 Apr=4 Aug=8 Sept=9 Okt=10 Nov=11 Dez=12 Mär=3 Jun=6 Jul=7 Sep=9",
    "fr": "janv=1 févr=2 avr=4 juil=7 sept=9 oct=10 nov=11 déc=12",
    "es": "ene=1 feb=2 mar=3 abr=4 may=5 jun=6 jul=7 ago=8 sept=9 oct=10 nov=11 dic=12",
}
"""Abbreviations of months, which may end in a dot, with the number of the month."""

UNITS: Final = {
    "mm": "millimeter|millimeters; Millimeter; millimètre|millimètres; milímetro|milímetros",
    "cm": "centimeter|centimeters; Zentimeter; centimètre|centimètres; centímetro|centímetros",
    "m": "meter|meters; Meter; mètre|mètres; metro|metros",
    "km": "kilometer|kilometers; Kilometer; kilomètre|kilomètres; kilómetro|kilómetros",
    "mi": "mile|miles; Meile|Meilen; mile|miles; milla|millas",
    "ft": "foot|feet; Fuß; pied|pieds; pie|pies",
    "yd": "yard|yards; Yard|Yards; yard|yards; yarda|yardas",
    "m² m2": "square meter|square meters; Quadratmeter; mètre carré|mètres carrés; metro cuadrado|metros cuadrados",
    "km² km2": (
        "square kilometer|square kilometers; Quadratkilometer; kilomètre carré|kilomètres carrés; kilómetro cuadrado|kilómetros cuadrados"
    ),
    "ha": "hectare|hectares; Hektar; hectare|hectares; hectárea|hectáreas",
    "m³ m3": "cubic meter|cubic meters; Kubikmeter; mètre cube|mètres cubes; metro cúbico|metros cúbicos",
    "ml mL": "milliliter|milliliters; Milliliter; millilitre|millilitres; mililitro|mililitros",
    "cl": "centiliter|centiliters; Zentiliter; centilitre|centilitres; centilitro|centilitros",
    "l L": "liter|liters; Liter; litre|litres; litro|litros",
    "mg": "milligram|milligrams; Milligramm; milligramme|milligrammes; miligramo|miligramos",
    "g": "gram|grams; Gramm; gramme|grammes; gramo|gramos",
    "kg": "kilogram|kilograms; Kilogramm; kilogramme|kilogrammes; kilogramo|kilogramos",
    "lb lbs": "pound|pounds; Pfund; livre|livres; libra|libras",
    "oz": "ounce|ounces; Unze|Unzen; once|onces; onza|onzas",
    "km/h kph": (
        "kilometer per hour|kilometers per hour; Kilometer pro Stunde; "
        "kilomètre par heure|kilomètres par heure; kilómetro por hora|kilómetros por hora"
    ),
    "mph": (
        "mile per hour|miles per hour; Meile pro Stunde|Meilen pro Stunde; mile par heure|miles par heure; milla por hora|millas por hora"
    ),
    "m/s": (
        "meter per second|meters per second; Meter pro Sekunde; mètre par seconde|mètres par seconde; metro por segundo|metros por segundo"
    ),
    "°C ℃": "degree Celsius|degrees Celsius; Grad Celsius; degré Celsius|degrés Celsius; grado Celsius|grados Celsius",
    "°F ℉": "degree Fahrenheit|degrees Fahrenheit; Grad Fahrenheit; degré Fahrenheit|degrés Fahrenheit; grado Fahrenheit|grados Fahrenheit",
    "°": "degree|degrees; Grad; degré|degrés; grado|grados",
    "kB KB": "kilobyte|kilobytes; Kilobyte; kilooctet|kilooctets; kilobyte|kilobytes",
    "MB": "megabyte|megabytes; Megabyte; mégaoctet|mégaoctets; megabyte|megabytes",
    "GB": "gigabyte|gigabytes; Gigabyte; gigaoctet|gigaoctets; gigabyte|gigabytes",
    "TB": "terabyte|terabytes; Terabyte; téraoctet|téraoctets; terabyte|terabytes",
    "W": "watt|watts; Watt; watt|watts; vatio|vatios",
    "kW": "kilowatt|kilowatts; Kilowatt; kilowatt|kilowatts; kilovatio|kilovatios",
    "MW": "megawatt|megawatts; Megawatt; mégawatt|mégawatts; megavatio|megavatios",
    "kWh": "kilowatt hour|kilowatt-hours; Kilowattstunde|Kilowattstunden; kilowatt-heure|kilowatt-heures; kilovatio hora|kilovatios hora",
    "kcal": "kilocalorie|kilocalories; Kilokalorie|Kilokalorien; kilocalorie|kilocalories; kilocaloría|kilocalorías",
    "Hz": "hertz; Hertz; hertz; hercio|hercios",
    "kHz": "kilohertz; Kilohertz; kilohertz; kilohercio|kilohercios",
    "MHz": "megahertz; Megahertz; mégahertz; megahercio|megahercios",
    "GHz": "gigahertz; Gigahertz; gigahertz; gigahercio|gigahercios",
    "hPa": "hectopascal|hectopascals; Hektopascal; hectopascal|hectopascals; hectopascal|hectopascales",
    "ms": "millisecond|milliseconds; Millisekunde|Millisekunden; milliseconde|millisecondes; milisegundo|milisegundos",
    "s sec": "second|seconds; Sekunde|Sekunden; seconde|secondes; segundo|segundos",
    "min": "minute|minutes; Minute|Minuten; minute|minutes; minuto|minutos",
    "h": "hour|hours; Stunde|Stunden; heure|heures; hora|horas",
}
"""Names of a unit by its signs: the singular in each language, and the plural where it differs."""

CURRENCIES: Final = {
    "AUD": (
        "Australian dollar|Australian dollars; Australischer Dollar|Australische Dollar; "
        "dollar australien|dollars australiens; dólar australiano|dólares australianos"
    ),
    "BRL": (
        "Brazilian real|Brazilian reals; Brasilianischer Real|Brasilianische Real; "
        "réal brésilien|réals brésiliens; real brasileño|reales brasileños"
    ),
    "CAD": (
        "Canadian dollar|Canadian dollars; Kanadischer Dollar|Kanadische Dollar; "
        "dollar canadien|dollars canadiens; dólar canadiense|dólares canadienses"
    ),
    "CNY": "Chinese yuan; Chinesischer Yuan|Renminbi Yuan; yuan renminbi chinois|yuans renminbi chinois; yuan renminbi|yuanes renminbi",
    "CZK": (
        "Czech koruna|Czech korunas; Tschechische Krone|Tschechische Kronen; "
        "couronne tchèque|couronnes tchèques; corona checa|coronas checas"
    ),
    "DKK": "Danish krone|Danish kroner; Dänische Krone|Dänische Kronen; couronne danoise|couronnes danoises; corona danesa|coronas danesas",
    "HKD": (
        "Hong Kong dollar|Hong Kong dollars; Hongkong-Dollar; dollar de Hong Kong|dollars de Hong Kong; dólar hongkonés|dólares hongkoneses"
    ),
    "HUF": (
        "Hungarian forint|Hungarian forints; Ungarischer Forint|Ungarische Forint; "
        "forint hongrois|forints hongrois; forinto húngaro|forintos húngaros"
    ),
    "KRW": "South Korean won; Südkoreanischer Won|Südkoreanische Won; won sud-coréen|wons sud-coréens; won surcoreano|wons surcoreanos",
    "MXN": (
        "Mexican peso|Mexican pesos; Mexikanischer Peso|Mexikanische Pesos; peso mexicain|pesos mexicains; peso mexicano|pesos mexicanos"
    ),
    "NOK": (
        "Norwegian krone|Norwegian kroner; Norwegische Krone|Norwegische Kronen; "
        "couronne norvégienne|couronnes norvégiennes; corona noruega|coronas noruegas"
    ),
    "NZD": (
        "New Zealand dollar|New Zealand dollars; Neuseeland-Dollar; "
        "dollar néo-zélandais|dollars néo-zélandais; dólar neozelandés|dólares neozelandeses"
    ),
    "PLN": "Polish zloty|Polish zlotys; Polnischer Złoty|Polnische Złoty; zloty polonais|zlotys polonais; esloti polaco|eslotis polacos",
    "SEK": (
        "Swedish krona|Swedish kronor; Schwedische Krone|Schwedische Kronen; "
        "couronne suédoise|couronnes suédoises; corona sueca|coronas suecas"
    ),
    "SGD": (
        "Singapore dollar|Singapore dollars; Singapur-Dollar; "
        "dollar de Singapour|dollars de Singapour; dólar singapurense|dólares singapurenses"
    ),
    "TRY": "Turkish lira|Turkish Lira; Türkische Lira; livre turque|livres turques; lira turca|liras turcas",
    "ZAR": (
        "South African rand; Südafrikanischer Rand|Südafrikanische Rand; "
        "rand sud-africain|rands sud-africains; rand sudafricano|rands sudafricanos"
    ),
}
"""Names of a currency by its ISO 4217 code, in the format of `UNITS`."""

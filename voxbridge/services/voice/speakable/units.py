"""The names of months, units and of currencies that `locales` has no everyday name for, in each language: tables only. Pure.

The names are the CLDR's. They are kept here, not read through a library, for two reasons: libraries with the CLDR read the locale and the
time zone of the process on import, and after an update of such a library an old call would replay to other words. A crash here loses
nothing.
"""

from __future__ import annotations

from typing import Final

LANGUAGES: Final = ("en", "de", "fr", "es", "it", "pt")
"""The order of the columns below."""

MONTHS: Final = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
}
"""Names of the months, January to December."""

SHORT_MONTHS: Final = {
    "en": "Jan=1 Feb=2 Mar=3 Apr=4 Jun=6 Jul=7 Aug=8 Sep=9 Oct=10 Nov=11 Dec=12 Sept=9",
    "de": "Jan=1 Feb=2 Apr=4 Aug=8 Sept=9 Okt=10 Nov=11 Dez=12 Mär=3 Jun=6 Jul=7 Sep=9",
    "fr": "janv=1 févr=2 avr=4 juil=7 sept=9 oct=10 nov=11 déc=12",
    "es": "ene=1 feb=2 mar=3 abr=4 may=5 jun=6 jul=7 ago=8 sept=9 oct=10 nov=11 dic=12",
    "it": "gen=1 feb=2 apr=4 mag=5 giu=6 lug=7 ago=8 sett=9 ott=10 nov=11 dic=12",
    "pt": "jan=1 fev=2 abr=4 mai=5 jun=6 jul=7 ago=8 set=9 out=10 nov=11 dez=12",
}
"""Abbreviations of months, which may end in a dot, with the number of the month."""

UNITS: Final = {
    "mm": "millimeter|millimeters; Millimeter; millimètre|millimètres; milímetro|milímetros; millimetro|millimetri; milímetro|milímetros",
    "cm": (
        "centimeter|centimeters; Zentimeter; centimètre|centimètres; centímetro|centímetros; centimetro|centimetri; centímetro|centímetros"
    ),
    "m": "meter|meters; Meter; mètre|mètres; metro|metros; metro|metri; metro|metros",
    "km": "kilometer|kilometers; Kilometer; kilomètre|kilomètres; kilómetro|kilómetros; chilometro|chilometri; quilômetro|quilômetros",
    "mi": "mile|miles; Meile|Meilen; mile|miles; milla|millas; miglio|miglia; milha|milhas",
    "ft": "foot|feet; Fuß; pied|pieds; pie|pies; piede|piedi; pé|pés",
    "yd": "yard|yards; Yard|Yards; yard|yards; yarda|yardas; iarda|iarde; jarda|jardas",
    "m² m2": (
        "square meter|square meters; Quadratmeter; mètre carré|mètres carrés; metro cuadrado|metros cuadrados; "
        "metro quadrato|metri quadrati; metro quadrado|metros quadrados"
    ),
    "km² km2": (
        "square kilometer|square kilometers; Quadratkilometer; kilomètre carré|kilomètres carrés; "
        "kilómetro cuadrado|kilómetros cuadrados; chilometro quadrato|chilometri quadrati; quilômetro quadrado|quilômetros quadrados"
    ),
    "ha": "hectare|hectares; Hektar; hectare|hectares; hectárea|hectáreas; ettaro|ettari; hectare|hectares",
    "m³ m3": (
        "cubic meter|cubic meters; Kubikmeter; mètre cube|mètres cubes; metro cúbico|metros cúbicos; metro cubo|metri cubi; "
        "metro cúbico|metros cúbicos"
    ),
    "ml mL": (
        "milliliter|milliliters; Milliliter; millilitre|millilitres; mililitro|mililitros; millilitro|millilitri; mililitro|mililitros"
    ),
    "cl": (
        "centiliter|centiliters; Zentiliter; centilitre|centilitres; centilitro|centilitros; centilitro|centilitri; centilitro|centilitros"
    ),
    "l L": "liter|liters; Liter; litre|litres; litro|litros; litro|litri; litro|litros",
    "mg": "milligram|milligrams; Milligramm; milligramme|milligrammes; miligramo|miligramos; milligrammo|milligrammi; miligrama|miligramas",
    "g": "gram|grams; Gramm; gramme|grammes; gramo|gramos; grammo|grammi; grama|gramas",
    "kg": "kilogram|kilograms; Kilogramm; kilogramme|kilogrammes; kilogramo|kilogramos; chilogrammo|chilogrammi; quilograma|quilogramas",
    "lb lbs": "pound|pounds; Pfund; livre|livres; libra|libras; libbra|libbre; libra|libras",
    "oz": "ounce|ounces; Unze|Unzen; once|onces; onza|onzas; oncia|once; onça|onças",
    "km/h kph": (
        "kilometer per hour|kilometers per hour; Kilometer pro Stunde; kilomètre par heure|kilomètres par heure; "
        "kilómetro por hora|kilómetros por hora; chilometro orario|chilometri orari; quilômetro por hora|quilômetros por hora"
    ),
    "mph": (
        "mile per hour|miles per hour; Meile pro Stunde|Meilen pro Stunde; mile par heure|miles par heure; "
        "milla por hora|millas por hora; miglio orario|miglia orarie; milha por hora|milhas por hora"
    ),
    "m/s": (
        "meter per second|meters per second; Meter pro Sekunde; mètre par seconde|mètres par seconde; "
        "metro por segundo|metros por segundo; metro al secondo|metri al secondo; metro por segundo|metros por segundo"
    ),
    "°C ℃": (
        "degree Celsius|degrees Celsius; Grad Celsius; degré Celsius|degrés Celsius; grado Celsius|grados Celsius; "
        "grado Celsius|gradi Celsius; grau Celsius|graus Celsius"
    ),
    "°F ℉": (
        "degree Fahrenheit|degrees Fahrenheit; Grad Fahrenheit; degré Fahrenheit|degrés Fahrenheit; "
        "grado Fahrenheit|grados Fahrenheit; grado Fahrenheit|gradi Fahrenheit; grau Fahrenheit|graus Fahrenheit"
    ),
    "°": "degree|degrees; Grad; degré|degrés; grado|grados; grado|gradi; grau|graus",
    "kB KB": "kilobyte|kilobytes; Kilobyte; kilooctet|kilooctets; kilobyte|kilobytes; kilobyte; kilobyte|kilobytes",
    "MB": "megabyte|megabytes; Megabyte; mégaoctet|mégaoctets; megabyte|megabytes; megabyte; megabyte|megabytes",
    "GB": "gigabyte|gigabytes; Gigabyte; gigaoctet|gigaoctets; gigabyte|gigabytes; gigabyte; gigabyte|gigabytes",
    "TB": "terabyte|terabytes; Terabyte; téraoctet|téraoctets; terabyte|terabytes; terabyte; terabyte|terabytes",
    "W": "watt|watts; Watt; watt|watts; vatio|vatios; watt; watt|watts",
    "kW": "kilowatt|kilowatts; Kilowatt; kilowatt|kilowatts; kilovatio|kilovatios; chilowatt; quilowatt|quilowatts",
    "MW": "megawatt|megawatts; Megawatt; mégawatt|mégawatts; megavatio|megavatios; megawatt; megawatt|megawatts",
    "kWh": (
        "kilowatt hour|kilowatt-hours; Kilowattstunde|Kilowattstunden; kilowatt-heure|kilowatt-heures; "
        "kilovatio hora|kilovatios hora; chilowattora; quilowatt-hora|quilowatts-hora"
    ),
    "kcal": (
        "kilocalorie|kilocalories; Kilokalorie|Kilokalorien; kilocalorie|kilocalories; kilocaloría|kilocalorías; "
        "chilocaloria|chilocalorie; quilocaloria|quilocalorias"
    ),
    "Hz": "hertz; Hertz; hertz; hercio|hercios; hertz; hertz",
    "kHz": "kilohertz; Kilohertz; kilohertz; kilohercio|kilohercios; chilohertz; quilohertz",
    "MHz": "megahertz; Megahertz; mégahertz; megahercio|megahercios; megahertz; megahertz",
    "GHz": "gigahertz; Gigahertz; gigahertz; gigahercio|gigahercios; gigahertz; gigahertz",
    "hPa": (
        "hectopascal|hectopascals; Hektopascal; hectopascal|hectopascals; hectopascal|hectopascales; ettopascal; hectopascal|hectopascais"
    ),
    "ms": (
        "millisecond|milliseconds; Millisekunde|Millisekunden; milliseconde|millisecondes; milisegundo|milisegundos; "
        "millisecondo|millisecondi; milissegundo|milissegundos"
    ),
    "s sec": "second|seconds; Sekunde|Sekunden; seconde|secondes; segundo|segundos; secondo|secondi; segundo|segundos",
    "min": "minute|minutes; Minute|Minuten; minute|minutes; minuto|minutos; minuto|minuti; minuto|minutos",
    "h": "hour|hours; Stunde|Stunden; heure|heures; hora|horas; ora|ore; hora|horas",
}
"""Names of a unit by its signs: the singular in each language, and the plural where it differs."""

CURRENCIES: Final = {
    "AUD": (
        "Australian dollar|Australian dollars; Australischer Dollar|Australische Dollar; dollar australien|dollars australiens; "
        "dólar australiano|dólares australianos; dollaro australiano|dollari australiani; dólar australiano|dólares australianos"
    ),
    "BRL": (
        "Brazilian real|Brazilian reals; Brasilianischer Real|Brasilianische Real; réal brésilien|réals brésiliens; "
        "real brasileño|reales brasileños; real brasiliano|real brasiliani; real|reais"
    ),
    "CAD": (
        "Canadian dollar|Canadian dollars; Kanadischer Dollar|Kanadische Dollar; dollar canadien|dollars canadiens; "
        "dólar canadiense|dólares canadienses; dollaro canadese|dollari canadesi; dólar canadense|dólares canadenses"
    ),
    "CNY": (
        "Chinese yuan; Chinesischer Yuan|Renminbi Yuan; yuan renminbi chinois|yuans renminbi chinois; yuan renminbi|yuanes renminbi; "
        "renminbi cinese; yuan chinês|yuans chineses"
    ),
    "CZK": (
        "Czech koruna|Czech korunas; Tschechische Krone|Tschechische Kronen; couronne tchèque|couronnes tchèques; "
        "corona checa|coronas checas; corona ceca|corone ceche; coroa tcheca|coroas tchecas"
    ),
    "DKK": (
        "Danish krone|Danish kroner; Dänische Krone|Dänische Kronen; couronne danoise|couronnes danoises; "
        "corona danesa|coronas danesas; corona danese|corone danesi; coroa dinamarquesa|coroas dinamarquesas"
    ),
    "HKD": (
        "Hong Kong dollar|Hong Kong dollars; Hongkong-Dollar; dollar de Hong Kong|dollars de Hong Kong; "
        "dólar hongkonés|dólares hongkoneses; dollaro di Hong Kong|dollari di Hong Kong; dólar de Hong Kong|dólares de Hong Kong"
    ),
    "HUF": (
        "Hungarian forint|Hungarian forints; Ungarischer Forint|Ungarische Forint; forint hongrois|forints hongrois; "
        "forinto húngaro|forintos húngaros; fiorino ungherese|fiorini ungheresi; forint húngaro|forints húngaros"
    ),
    "KRW": (
        "South Korean won; Südkoreanischer Won|Südkoreanische Won; won sud-coréen|wons sud-coréens; won surcoreano|wons surcoreanos; "
        "won sudcoreano|won sudcoreani; won sul-coreano|wons sul-coreanos"
    ),
    "MXN": (
        "Mexican peso|Mexican pesos; Mexikanischer Peso|Mexikanische Pesos; peso mexicain|pesos mexicains; "
        "peso mexicano|pesos mexicanos; peso messicano|pesos messicani; peso mexicano|pesos mexicanos"
    ),
    "NOK": (
        "Norwegian krone|Norwegian kroner; Norwegische Krone|Norwegische Kronen; couronne norvégienne|couronnes norvégiennes; "
        "corona noruega|coronas noruegas; corona norvegese|corone norvegesi; coroa norueguesa|coroas norueguesas"
    ),
    "NZD": (
        "New Zealand dollar|New Zealand dollars; Neuseeland-Dollar; dollar néo-zélandais|dollars néo-zélandais; "
        "dólar neozelandés|dólares neozelandeses; dollaro neozelandese|dollari neozelandesi; dólar neozelandês|dólares neozelandeses"
    ),
    "PLN": (
        "Polish zloty|Polish zlotys; Polnischer Złoty|Polnische Złoty; zloty polonais|zlotys polonais; "
        "esloti polaco|eslotis polacos; złoty polacco|złoty polacchi; zloty polonês|zlotys poloneses"
    ),
    "SEK": (
        "Swedish krona|Swedish kronor; Schwedische Krone|Schwedische Kronen; couronne suédoise|couronnes suédoises; "
        "corona sueca|coronas suecas; corona svedese|corone svedesi; coroa sueca|coroas suecas"
    ),
    "SGD": (
        "Singapore dollar|Singapore dollars; Singapur-Dollar; dollar de Singapour|dollars de Singapour; "
        "dólar singapurense|dólares singapurenses; dollaro di Singapore|dollari di Singapore; dólar de Singapura|dólares de Singapura"
    ),
    "TRY": (
        "Turkish lira|Turkish Lira; Türkische Lira; livre turque|livres turques; lira turca|liras turcas; lira turca|lire turche; "
        "lira turca|liras turcas"
    ),
    "ZAR": (
        "South African rand; Südafrikanischer Rand|Südafrikanische Rand; rand sud-africain|rands sud-africains; "
        "rand sudafricano|rands sudafricanos; rand sudafricano|rand sudafricani; rand sul-africano|rands sul-africanos"
    ),
}
"""Names of a currency by its ISO 4217 code, in the format of `UNITS`."""

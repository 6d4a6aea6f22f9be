"""Separators and money of regions that write a language otherwise than `locales` has it: tables only. Pure.

Of a region only what differs stands here; its language has the rest. Source: CLDR 48, the locales of these names.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from voxbridge.services.voice.speakable.locales import LOCALES, Currency, Locale

_PESO: Final = Currency("peso", "pesos", "centavo", "centavos")
_DECIMAL_COMMA: Final = ("ar", "cl", "co", "uy")
_DECIMAL_POINT: Final = ("mx", "us", "pr", "gt", "hn", "sv", "ni", "pa", "pe", "do")
_PESOS: Final = ("ar", "cl", "co", "cu", "do", "mx", "uy")


def _spanish(region: str) -> Locale:
    spanish = LOCALES["es"]
    currencies = {**spanish.currencies, "$": _PESO} if region in _PESOS else spanish.currencies
    made = replace(spanish, tag=f"es-{region}", currencies=currencies)
    return replace(made, decimal=".", groups=",\u00a0\u202f", point="punto") if region in _DECIMAL_POINT else made


REGIONS: Final = {
    **{f"es-{region}": _spanish(region) for region in sorted({*_DECIMAL_COMMA, *_DECIMAL_POINT, *_PESOS})},
    "de-ch": replace(LOCALES["de"], tag="de-ch", decimal=".", groups="'’\u00a0\u202f"),
    "de-li": replace(LOCALES["de"], tag="de-li", decimal=".", groups="'’\u00a0\u202f"),
    "fr-ch": replace(LOCALES["fr"], tag="fr-ch", decimal=".", groups="'’\u00a0\u202f"),
    "it-ch": replace(LOCALES["it"], tag="it-ch", decimal=".", groups="'’\u00a0\u202f"),
    "pt-pt": replace(
        LOCALES["pt"],
        tag="pt-pt",
        groups=" .\u00a0\u202f",
        currencies={**LOCALES["pt"].currencies, "€": Currency("euro", "euros", "cêntimo", "cêntimos")},
    ),
}
"""Locales by BCP 47 tag in lower case."""


def of(tag: str) -> Locale | None:
    """Return the locale of a BCP 47 tag in lower case: that of its region, or of its language; None for a language without rules."""
    language, *others = tag.split("-")
    region = next((part for part in others if len(part) == 2), "")
    return REGIONS.get(f"{language}-{region}") or LOCALES.get(language)

"""Numbers that are no amounts: codes, references, cards and accounts, which are read digit by digit. Pure.

Owns which numbers these are: those that the words before them say so of, and those of a shape that no amount has. Telephone numbers are in
`names`. A crash here loses nothing.
"""

from __future__ import annotations

import re
from typing import Final

from voxbridge.services.voice.speakable import words
from voxbridge.services.voice.speakable.locales import LOCALES, Locale

_NAMED: Final = {
    "en": (
        r"codes?|PINs?|passcode|password|reference|ref|confirmation|booking|tracking|order|invoice|case|ticket|flight|account|card|serial|ID|ZIP"
        r"|postcode"
    ),
    "de": r"(?:\w*code|PIN|TAN|Kennwort|Referenz|Bestellung|Buchung|Rechnung|Vorgang|Ticket|Flug|Konto|Karte|Postleitzahl|PLZ|\w*nummer)",
    "fr": r"codes?|PIN|référence|réf|confirmation|réservation|suivi|commande|facture|dossier|billet|vol|compte|carte|numéro",
    "es": r"códigos?|PIN|referencia|ref|confirmación|reserva|seguimiento|pedido|factura|caso|billete|vuelo|cuenta|tarjeta|número",
    "it": r"codic[ei]|PIN|riferimento|rif|conferma|prenotazione|spedizione|ordine|fattura|pratica|biglietto|volo|conto|carta|CAP",
    "pt": r"códigos?|PIN|CPF|CEP|referência|ref|confirmação|reserva|rastreio|pedido|fatura|caso|bilhete|voo|conta|cartão",
}
_LINK: Final = {
    "en": r"(?:\s+(?:number|code|no\.|is|was|to))*",
    "de": r"(?:\s+(?:Nummer|Nr\.|ist|lautet|war))*",
    "fr": r"(?:\s+(?:numéro|n°|est|était|de))*",
    "es": r"(?:\s+(?:número|n\.º|es|era|de))*",
    "it": r"(?:\s+(?:numero|n\.|è|era|di))*",
    "pt": r"(?:\s+(?:número|n\.º|é|era|de))*",
}
_FIGURES: Final = r"[0-9]{2,}(?:[ -][0-9]{2,})*"
_END: Final = r"(?![\w]|[.,:/-][0-9]|\s?[%€$£°]|\s(?:percent|dollars?|euros?|Prozent|Euro|pour|por|per\scento))"
_CODES: Final = {
    code: re.compile(
        rf"\b(?P<before>(?:{_NAMED[code]}){_LINK[code]}\s*[:#]?\s+)(?P<letters>[A-Z]{{1,3}}[ -]?)?(?P<figures>{_FIGURES}){_END}",
        re.IGNORECASE,
    )
    for code in LOCALES
}
_CARD: Final = re.compile(r"(?<![\w.,/+–-])[0-9]{4}(?:([ -])[0-9]{4})(?:\1[0-9]{4}){2}(?![\w/]|[.,-][0-9])")
_ACCOUNT: Final = re.compile(r"\b[A-Z]{2}[0-9]{2}(?: [A-Z0-9]{4}){2,7}(?: [A-Z0-9]{1,4})?\b|\b[A-Z]{2}[0-9]{13,30}\b")
_FEWEST: Final = 3
"""Digits of a code: fewer are an amount ("order 12 pizzas")."""


def codes(locale: Locale, text: str) -> str:
    """Spell codes digit by digit, with a pause between their groups."""
    text = _ACCOUNT.sub(lambda found: _characters(locale, found[0]), text)
    text = _CARD.sub(lambda found: _grouped(locale, found[0]), text)
    return _CODES[locale.code].sub(lambda found: _code(locale, found), text)


def _code(locale: Locale, found: re.Match[str]) -> str:
    figures = found["figures"]
    if sum(map(str.isdigit, figures)) < _FEWEST:
        return found[0]
    letters = (found["letters"] or "").strip(" -")
    return f"{found['before']}{' '.join(letters) + ' ' if letters else ''}{_grouped(locale, figures)}"


def _grouped(locale: Locale, figures: str) -> str:
    return ", ".join(words.digits(locale, group) for group in re.findall(r"[0-9]+", figures))


def _characters(locale: Locale, account: str) -> str:
    groups = account.split() if " " in account else [account]
    return ", ".join(" ".join(words.digits(locale, one) if one.isdigit() else one for one in group) for group in groups)

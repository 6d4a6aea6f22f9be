"""Spoken forms of addresses, telephone numbers, versions, signs and acronyms. Pure.

Owns what is read letter by letter, digit by digit or part by part; amounts are in `rules`. A crash here loses nothing.
"""

from __future__ import annotations

import re
from typing import Final

from voxbridge.services.voice.speakable import words
from voxbridge.services.voice.speakable.locales import LOCALES, Locale

LONGEST_PATH: Final = 40
"""Characters of a URL's path; a longer one is not read out."""

_URL: Final = re.compile(r"(?:https?://|\bwww\.)[^\s<>()\[\]\"'`|*]+", re.IGNORECASE)
_EMAIL: Final = re.compile(r"(?<![\w.+-])(?:mailto:)?([A-Za-z0-9][\w.+-]{0,63})@([A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,5})(?![\w@])")
_SITES: Final = "com|org|net|edu|gov|io|dev|app|ai|eu|uk|de|at|ch|fr|es|mx|it|pt|br"
_FILES: Final = "py|js|ts|tsx|json|jsonl|yaml|yml|toml|md|txt|csv|pdf|html|css|sh|sql|xml|zip|png|jpg|wav|mp3|log|lock|cfg|ini"
_DOMAIN: Final = re.compile(
    rf"(?<![\w@/.-])((?:[A-Za-z0-9][\w-]{{0,62}}\.){{1,4}}(?:{_SITES}|{_FILES}))((?:/[\w.-]*)*)(?![\w@])(?<![.-])", re.ASCII
)
_LOOPBACK: Final = re.compile(r"(?<![\w./-])localhost:([0-9]{2,5})\b")
_PHONE: Final = {
    "": r"\+[0-9]{1,3}(?:[ .\u00a0/-]?\(?[0-9]{1,5}\)?){1,6}",
    "en": r"(?:\+1[ .-]?|1-)?(?:\([2-9][0-9]{2}\) ?|[2-9][0-9]{2}[.-])[0-9]{3}[.-][0-9]{4}"
    r"|[2-9][0-9]{2}-[0-9]{4}|0[0-9]{4} [0-9]{6}|0[0-9]{2,3} [0-9]{3,4} [0-9]{4}",
    "de": r"0[1-9][0-9]{1,4}[ /-][0-9]{2,4}(?:[ -]?[0-9]{2,4}){1,3}",
    "fr": r"0[1-9](?:[ .\u00a0\u202f-][0-9]{2}){4}",
    "es": r"[679][0-9]{2}(?: [0-9]{3}){2}|[679][0-9]{2}(?: [0-9]{2}){3}",
    "it": r"3[0-9]{2}[ .-][0-9]{3}[ .-]?[0-9]{4}|0[1-9][0-9]{0,2}[ /-][0-9]{3,4}(?:[ -]?[0-9]{3,4}){0,2}",
    "pt": r"(?:\([1-9][0-9]\) ?|[1-9][0-9] )9?[0-9]{4}-[0-9]{4}|9[0-9]{4}-[0-9]{4}|[29][0-9]{2}(?: [0-9]{3}){2}",
}
_PHONES: Final = {code: re.compile(rf"(?<![\w.,/+-])(?:{_PHONE['']}|{_PHONE[code]})(?![\w/]|[.,-][0-9]| ?[€$%])") for code in LOCALES}
_FEWEST, _MOST = 7, 15
_VERSION: Final = re.compile(
    r"(?<![\w.,/:-])(?:([vV])(?=[0-9])|((?i:version|release) v?(?=[0-9]+\.[0-9])))?([0-9]{1,4}(?:\.[0-9]{1,4}){0,4})(?![\w/]|[.,:][0-9])"
)
_ARROW: Final = re.compile(r"(?<=\s)(?:-{1,2}>|=>|⇒|➔|➜|⟶)(?=\s)")
_SIGN: Final = re.compile(
    r"(?<=[\w%)°€\"”])\s+([+=×*÷^≈≠<>≤≥→])\s+(?=[\w($€£\"“+-])|(?<=[0-9])(\*\*|[+=×*÷^≈≠<>≤≥])(?=[0-9])|(?<=\w)\s?(&)\s?(?=\w)"
)
_ABOUT: Final = re.compile(r"(?<![\w~/.])[~≈]\s?(?=[$€£]?[0-9])")
_SHARP: Final = re.compile(r"\b([CF])#(?!\w)")
_CAPITALS: Final = re.compile(r"(?<![\w.'’/@-])([A-ZÄÖÜ]{2,6})(s|['’]s)?(?![\w@/'’])")
_SAID_AS_WORDS: Final = frozenset(
    [
        "AM",
        "PM",
        "MR",
        "MRS",
        "MS",
        "DR",
        "ST",
        "VS",
        "NR",
        "BZW",
        "CA",
        "HM",
        "HMM",
        "SH",
        "SHH",
        "PST",
        "PSST",
        "BRR",
        "GRR",
        "TSK",
        "PFFT",
        "ZZZ",
        "NTH",
    ]
)
_VOWEL: Final = re.compile(r"[AEIOUYÄÖÜ]")
_ROMAN: Final = re.compile(r"[IVX]+")
_LETTERS: Final = {code: frozenset(locale.letters.split()) for code, locale in LOCALES.items()}
_SPELLED: Final = {
    code: locale.short | {short[:1].upper() + short[1:]: words[:1].upper() + words[1:] for short, words in locale.short.items()}
    for code, locale in LOCALES.items()
}
"""Abbreviations with their words, also as they begin a sentence."""

_SHORT: Final = {
    code: re.compile(rf"(?<![\w.])(?:{'|'.join(map(re.escape, sorted(spelled, key=len, reverse=True)))})(?=\s)")
    for code, spelled in _SPELLED.items()
}


def addresses(locale: Locale, text: str) -> str:
    """Spell URLs, e-mail addresses, domains and file names, part by part."""
    if "://" in text or "www." in text.lower():
        text = _URL.sub(lambda url: _url(locale, url[0]), text)
    if "@" in text:
        text = _EMAIL.sub(lambda address: f"{_parts(locale, address[1])} {locale.at} {_parts(locale, address[2])}", text)
    if ":" in text:
        text = _LOOPBACK.sub(r"localhost \1", text)
    return _DOMAIN.sub(lambda name: _parts(locale, name[1]) + _path(locale, name[2]), text) if "." in text else text


def _url(locale: Locale, url: str) -> str:
    address = url.rstrip(".,;:!?…")
    rest = re.sub(r"[?#].*", "", re.sub(r"^(?:https?://)?(?:www\.)?", "", address, flags=re.IGNORECASE))
    host, _, path = rest.partition("/")
    host = host.rpartition("@")[2].replace(":", " ")
    if not re.fullmatch(r"[\w. -]+", host):
        return host + url[len(address) :]
    return _parts(locale, host) + _path(locale, path) + url[len(address) :]


def _path(locale: Locale, path: str) -> str:
    """Return a path in words; empty for a path that is too long or full of signs."""
    if len(path) > LONGEST_PATH or not re.fullmatch(r"[\w./-]*", path):
        return ""
    return "".join(f" {locale.slash} {_parts(locale, part)}" for part in path.split("/") if part)


def _parts(locale: Locale, name: str) -> str:
    for sign, word in ((".", locale.dot), ("-", locale.dash), ("_", locale.underscore), ("+", locale.signs["+"])):
        name = name.replace(sign, f" {word} ")
    return " ".join(name.split())


def phones(locale: Locale, text: str) -> str:
    """Spell telephone numbers digit by digit, French ones in pairs, with a pause between groups."""
    return _PHONES[locale.code].sub(lambda number: _phone(locale, number[0]), text)


def _phone(locale: Locale, number: str) -> str:
    groups: list[str] = re.findall(r"[0-9]+", number)
    if not _FEWEST <= sum(map(len, groups)) <= _MOST:
        return number
    if locale.code == "fr" and number.startswith("0"):
        said = [words.digits(locale, pair) if pair.startswith("0") else words.cardinal("fr", int(pair)) for pair in groups]
    else:
        said = [words.digits(locale, group) for group in groups]
    return (f"{locale.signs['+']} " if number.startswith("+") else "") + ", ".join(said)


def versions(locale: Locale, text: str) -> str:
    """Spell `v1.2.3`, `version 3.11`, `3.11.4` and IPv4 addresses, part by part."""
    return _VERSION.sub(lambda found: _version(locale, found), text)


def _version(locale: Locale, found: re.Match[str]) -> str:
    parts = found[3].split(".")
    grouped = "." in locale.groups and len(parts[0]) <= 3 and all(len(part) == 3 for part in parts[1:])
    dated = len(parts) == 3 and len(parts[2]) == 4
    if not found[1] and not found[2] and (len(parts) < 3 or grouped or dated):
        return found[0]
    joint = locale.dot if locale.code != "en" or len(parts) == 4 else locale.point
    numbers = f" {joint} ".join(words.cardinal(locale.code, int(part)) for part in parts)
    return f"{locale.version} {numbers}" if found[1] else f"{(found[2] or '').removesuffix('v')}{numbers}"


def signs(locale: Locale, text: str) -> str:
    """Spell signs between two operands, and the tilde before a number."""
    text = _ARROW.sub("→", text)
    text = _SIGN.sub(lambda sign: f" {locale.signs[_plain(sign)]} ", text)
    text = _ABOUT.sub(f"{locale.about} ", text)
    return _SHARP.sub(r"\1 sharp", text) if "#" in text else text


def _plain(sign: re.Match[str]) -> str:
    found = sign[1] or sign[2] or sign[3]
    return "^" if found == "**" else found


def acronyms(locale: Locale, text: str) -> str:
    """Spell acronyms that are said letter by letter. In a text of capitals alone they cannot be recognised, so it stays as it is."""
    if text.upper() == text:
        return text
    return _CAPITALS.sub(lambda word: _spelled(locale, word), text)


def _spelled(locale: Locale, word: re.Match[str]) -> str:
    name = word[1]
    if name in _SAID_AS_WORDS or (name not in _LETTERS[locale.code] and (_VOWEL.search(name) or _ROMAN.fullmatch(name))):
        return word[0]
    return " ".join(name) + ("'s" if word[2] else "")


def abbreviations(locale: Locale, text: str) -> str:
    """Spell abbreviations that a voice reads wrong, where something follows: one that ends a piece may end the sentence."""
    return _SHORT[locale.code].sub(lambda found: _SPELLED[locale.code][found[0]], text)

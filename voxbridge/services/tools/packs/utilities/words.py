"""Words of a text: counting them, writing them otherwise, and comparing two texts."""

from __future__ import annotations

import difflib
import re
from typing import Any, Final, Literal

from voxbridge.services.tools.packs.utilities.bounds import count, refused

Case = Literal["lower", "upper", "title", "sentence", "snake", "camel", "pascal", "kebab", "constant", "dot"]

READ_WPM: Final = 238
"""Words that an adult reads in a minute, silently, in English."""
SPOKEN_WPM: Final = 150
LINES_LIMIT: Final = 5_000
"""Lines of a text that is compared."""
SHOWN_LIMIT: Final = 20_000
"""Characters of a comparison that are given."""
_WORD: Final = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*")
_SENTENCE_END: Final = re.compile(r"[.!?。！？]+(?=\s|$)")


def counted(text: str) -> dict[str, Any]:
    """Return how much of what a text has."""
    words = _WORD.findall(text)
    paragraphs = [part for part in re.split(r"\n[ \t]*\n", text) if part.strip()]
    sentences = sum(1 for part in _SENTENCE_END.split(text) if _WORD.search(part))
    return {
        "words": len(words),
        "distinct_words": len({word.lower() for word in words}),
        "characters": len(text),
        "characters_without_spaces": sum(1 for one in text if not one.isspace()),
        "sentences": sentences,
        "paragraphs": len(paragraphs),
        "lines": len(text.splitlines()),
        "reading_seconds": round(len(words) * 60 / READ_WPM),
        "speaking_seconds": round(len(words) * 60 / SPOKEN_WPM),
        "spoken": f"That's {count(len(words), 'word')} in {count(sentences, 'sentence')}.",
    }


def slug(text: str, longest: int) -> str:
    """Return a text in a-z, 0-9 and hyphens, cut between words where it is too long."""
    from anyascii import anyascii

    parts = re.findall(r"[a-z0-9]+", anyascii(text).lower().replace("'", ""))
    made = ""
    for part in parts:
        longer = f"{made}-{part}" if made else part
        if len(longer) > longest:
            return made or part[:longest]
        made = longer
    if not made:
        raise refused("Nothing in this text can be written with letters or digits.")
    return made


def cased(text: str, case: Case) -> str:
    """Return a text in another case; those of identifiers take its words and leave what is between them."""
    match case:
        case "lower":
            return text.lower()
        case "upper":
            return text.upper()
        case "title":
            return re.sub(r"[^\W_]+(?:['’][^\W_]+)*", lambda found: found[0][:1].upper() + found[0][1:].lower(), text)
        case "sentence":
            return re.sub(r"(^|[.!?]\s+)([^\W\d_])", lambda found: found[1] + found[2].upper(), text.lower())
        case _:
            return _joined(identifier_words(text), case)


def _joined(words: list[str], case: Case) -> str:
    if not words:
        raise refused("There is no word in this text.")
    low = [word.lower() for word in words]
    match case:
        case "snake":
            return "_".join(low)
        case "kebab":
            return "-".join(low)
        case "constant":
            return "_".join(low).upper()
        case "dot":
            return ".".join(low)
    capital = [word[:1].upper() + word[1:] for word in low]
    return "".join(capital) if case == "pascal" else "".join([low[0], *capital[1:]])


def identifier_words(text: str) -> list[str]:
    """Return the words of a text or an identifier: `parseHTTPResponse_2` has parse, HTTP, Response and 2."""
    words: list[str] = []
    word = ""
    for place, one in enumerate(text):
        if not one.isalnum():
            if one not in "'’":
                if word:
                    words.append(word)
                word = ""
            continue
        before, after = word[-1:], text[place + 1 : place + 2]
        if word and one.isupper() and (not before.isupper() or after.islower()):
            words.append(word)
            word = ""
        word += one
    return [*words, word] if word else words


def compared(first: str, second: str) -> dict[str, Any]:
    """Return the lines in which two texts differ, in the unified format, and how alike they are."""
    before, after = first.splitlines(), second.splitlines()
    if max(len(before), len(after)) > LINES_LIMIT:
        raise refused(f"A text that is compared has at most {LINES_LIMIT:,} lines.", "first" if len(before) > LINES_LIMIT else "second")
    lines = list(difflib.unified_diff(before, after, "first", "second", lineterm=""))
    added = sum(1 for line in lines[2:] if line.startswith("+"))
    removed = sum(1 for line in lines[2:] if line.startswith("-"))
    alike = round(100 * difflib.SequenceMatcher(None, before, after).ratio())
    diff = "\n".join(lines)
    result: dict[str, Any] = {"same": first == second, "added": added, "removed": removed, "alike_percent": alike}
    result |= {"diff": diff[:SHOWN_LIMIT], "cut": len(diff) > SHOWN_LIMIT}
    if first == second:
        return result | {"spoken": "The two texts are the same."}
    if not lines:
        return result | {"spoken": "Their lines are the same; they differ in how lines end."}
    return result | {"spoken": f"{count(added, 'line')} added and {removed:,} removed."}

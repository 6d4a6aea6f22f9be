"""Regular expressions that strangers wrote, run by RE2: in time linear in the text, whatever the pattern."""

from __future__ import annotations

from typing import Any, Final

from voxbridge.services.tools.packs.utilities.bounds import LISTED_LIMIT, count, given, refused

PATTERN_LIMIT: Final = 1_000
"""Characters of a pattern."""
MATCHES_LIMIT: Final = 10_000
"""Matches that are counted."""
SHOWN_LIMIT: Final = 200
"""Characters of a match or a group that are shown."""
MEMORY_LIMIT: Final = 8 * 1024 * 1024
"""Bytes that a compiled pattern may take."""


def tested(pattern: str, text: str, replacement: str | None, *, ignore_case: bool, multiline: bool) -> dict[str, Any]:
    """Return what a pattern finds in a text, and the text after a replacement."""
    compiled = compile_pattern(pattern, ignore_case=ignore_case, multiline=multiline)
    matches: list[dict[str, Any]] = []
    total = 0
    for found in compiled.finditer(text):
        total += 1
        if total <= LISTED_LIMIT:
            match: dict[str, Any] = {"start": found.start(), "end": found.end(), "text": found.group()[:SHOWN_LIMIT]}
            if compiled.groups:
                match["groups"] = [None if one is None else one[:SHOWN_LIMIT] for one in found.groups()[:LISTED_LIMIT]]
            if named := found.groupdict():
                match["named"] = {name: None if one is None else one[:SHOWN_LIMIT] for name, one in list(named.items())[:LISTED_LIMIT]}
            matches.append(match)
        if total > MATCHES_LIMIT:
            break
    result: dict[str, Any] = {"matches": matches, "count": min(total, MATCHES_LIMIT), "more": total > MATCHES_LIMIT}
    result["whole_text"] = compiled.fullmatch(text) is not None
    given(str(matches))
    if replacement is not None:
        try:
            result["replaced"] = given(compiled.sub(replacement, text))
        except (IndexError, ValueError, KeyError) as error:
            raise refused(f"The replacement cannot be used: {str(error)[:100]}.", "replacement") from error
    first = f" The first is {matches[0]['text'][:60]!r}." if matches and matches[0]["text"] else ""
    more = "more than " if total > MATCHES_LIMIT else ""
    said = f"It matches {more}{count(result['count'], 'time')}.{first}" if total else "It does not match."
    return result | {"spoken": said}


def compile_pattern(pattern: str, *, ignore_case: bool = False, multiline: bool = False) -> Any:
    """Return a compiled pattern. Raises `INVALID_ARGUMENT` that says what RE2 does not take."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = MEMORY_LIMIT
    options.case_sensitive = not ignore_case
    try:
        return re2.compile(f"(?m:{pattern})" if multiline else pattern, options)
    except re2.error as error:
        why = error.args[0].decode("utf-8", "replace") if error.args and isinstance(error.args[0], bytes) else str(error)
        hint = " Lookaround and backreferences are not supported." if "perl operator" in why or "escape sequence" in why else ""
        raise refused(f"The pattern cannot be used: {why[:200]}.{hint}", "pattern") from error

"""Texts: counting, writing otherwise, comparing, matching, and secrets in them."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from voxbridge.services.tools.packs.utilities import leaks, patterns, words
from voxbridge.services.tools.packs.utilities.bounds import AnyText, Text, given
from voxbridge.services.tools.registry import function


@function(timeout_s=5, effect="read", isolated=True)
def count_words(text: Text) -> dict[str, Any]:
    """Count the words, sentences and characters of a text, and how long it takes to read.

    Args:
        text: The text.

    Examples:
        how many words are in this
        count the words of that paragraph
        how long is this text
        how many characters does my message have
        how long would it take to read this aloud
        is this under two hundred and eighty characters
        word count please
        count the words in I like green apples
        number of words in this sentence
        how many words did I select
        how many letters has this word
        word count of the selection
    """
    return words.counted(text)


@function(timeout_s=5, effect="read", isolated=True, listed=False)
def make_slug(
    text: Annotated[str, Meta(min_length=1, max_length=2_000)], max_length: Annotated[int, Meta(ge=8, le=200)] = 80
) -> dict[str, Any]:
    """Turn a title into a slug for a URL or a file name.

    Args:
        text: The title.
        max_length: Its greatest length.

    Examples:
        make a slug of this title
        what would the URL for this headline be
        turn the heading into a file name
        slugify that
        a link friendly version of this name
        web address form of my article title
        slug for hello big world
        give me a URL slug of my headline
        what slug would this title have
    """
    made = words.slug(text, max_length)
    return {"slug": made, "spoken": f"The slug is {made}."}


@function(timeout_s=5, effect="read", isolated=True, listed=False)
def convert_case(text: Text, case: words.Case) -> dict[str, Any]:
    """Write a text or an identifier in another case.

    Args:
        text: The text.
        case: The case.

    Examples:
        put this in upper case
        write that in camel case
        make it snake case
        convert the name to kebab case
        title case for this heading
        lower case all of it please
        turn the variable into pascal case
        write first name in camel case
        turn total price into snake case
        make the selected text upper case
        all capitals please for this heading
        how does order item look in pascal case
    """
    made = given(words.cased(text, case))
    return {"text": made, "spoken": f"It is: {made}." if len(made) <= 80 else f"It is in {case} case now."}


@function(timeout_s=5, effect="read", isolated=True, listed=False)
def compare_texts(first: AnyText, second: AnyText) -> dict[str, Any]:
    """Compare two texts line by line.

    Args:
        first: The text before.
        second: The text after.

    Examples:
        compare these two texts
        what changed between the versions
        show me the difference of these files
        diff the old and the new config
        are these two snippets the same
        which lines were added
        what is different between those two
        compare the first text with the second
        are both texts equal
    """
    return words.compared(first, second)


@function(timeout_s=5, effect="read", isolated=True, listed=False)
def try_regex(
    pattern: Annotated[str, Meta(min_length=1, max_length=patterns.PATTERN_LIMIT)],
    text: AnyText,
    replacement: Annotated[str, Meta(max_length=1_000)] | None = None,
    ignore_case: bool = False,
    multiline: bool = False,
) -> dict[str, Any]:
    """Try a regular expression on a text: what it matches, and what a replacement gives.

    Args:
        pattern: The expression, in the syntax of RE2.
        text: The text.
        replacement: What to put for each match.
        ignore_case: Take capitals and small letters for the same.
        multiline: Let ^ and $ match at each line.

    Examples:
        test this regex
        does the pattern match my text
        what does this regular expression find
        try the expression on this line
        which groups does the regex capture
        replace all digits with a pattern
        try this regex on my line
        see whether the pattern fits
        does backslash d plus match this
    """
    return patterns.tested(pattern, text, replacement, ignore_case=ignore_case, multiline=multiline)


@function(timeout_s=5, effect="read", isolated=True, listed=False)
def find_secrets(text: Text) -> dict[str, Any]:
    """Find keys, tokens and passwords in a text; they are shown masked.

    Args:
        text: The text.

    Examples:
        are there any secrets in this text
        check the log for passwords
        did I paste an API key
        look for leaked tokens in this
        is it safe to share this config
        scan the snippet for credentials
        is there a password in this text
        any keys in what I pasted
        look for secrets in the selection
    """
    return leaks.found(text)

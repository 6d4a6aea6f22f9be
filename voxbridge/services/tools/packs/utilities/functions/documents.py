"""JSON, YAML and Markdown."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from voxbridge.services.tools.packs.utilities import json_text, markup, yaml_text
from voxbridge.services.tools.packs.utilities.bounds import Text, count, given
from voxbridge.services.tools.registry import function


@function(timeout_s=5, effect="read", isolated=True, listed=False)
def format_json(text: Text, indent: Annotated[int, Meta(ge=0, le=8)] = 2, sort_keys: bool = False) -> dict[str, Any]:
    """Lay out JSON so that people can read it, or in one line.

    Args:
        text: The JSON.
        indent: Spaces for a level; 0 puts it into one line.
        sort_keys: Order the keys by name.

    Examples:
        format this JSON
        pretty print that payload
        make this JSON readable
        minify the JSON I pasted
        put the response on one line
        indent that config by four
        sort the keys of this object
        lay this JSON out nicely
        clean up the JSON
        make the JSON one line
    """
    made = given(json_text.formatted(text, indent, sort_keys=sort_keys))
    return {"json": made, "spoken": f"It is formatted, in {count(made.count(chr(10)) + 1, 'line')}."}


@function(timeout_s=5, effect="read", isolated=True, listed=False)
def validate_json(text: Text) -> dict[str, Any]:
    """Check whether a text is valid JSON, and where it is not.

    Args:
        text: The text.

    Examples:
        is this valid JSON
        check that payload for mistakes
        why does this JSON not parse
        where is the syntax error in this object
        validate the config I pasted
        does this response have a duplicate key
        check the JSON I selected
        can this JSON be parsed
        is something wrong with my JSON
        test if the JSON is correct
    """
    return json_text.check(text)


@function(timeout_s=5, effect="read", isolated=True, listed=False)
def query_json(text: Text, path: Annotated[str, Meta(min_length=1, max_length=500, examples=["people[0].name"])]) -> dict[str, Any]:
    """Find a part of a JSON text by its path.

    Args:
        text: The JSON.
        path: The path, in JMESPath.

    Examples:
        get the first name out of this JSON
        what is the version in that package file
        pull the ids from this response
        look up a field in the payload
        which items cost more than ten in this object
        extract the nested value at data dot users
        what does the price field hold in this JSON
        give me the email out of that object
        read the third item of this JSON
    """
    return json_text.query(text, path)


@function(timeout_s=5, effect="read", isolated=True, listed=False)
def yaml_to_json(text: Text, indent: Annotated[int, Meta(ge=0, le=8)] = 2) -> dict[str, Any]:
    """Turn YAML into JSON.

    Args:
        text: The YAML.
        indent: Spaces for a level; 0 puts it into one line.

    Examples:
        convert this YAML to JSON
        turn the compose file into JSON
        what does this YAML look like as JSON
        is that YAML valid
        parse the front matter I pasted
        change my pipeline config from YAML to JSON
        I have YAML and need JSON
        make JSON of this YAML
        rewrite the YAML as JSON
    """
    value, documents = yaml_text.load(text)
    made = given(json_text.dump(value, indent))
    return {"json": made, "documents": documents, "spoken": f"It is JSON now, from {count(documents, 'document')}."}


@function(timeout_s=5, effect="read", isolated=True, listed=False)
def json_to_yaml(text: Text) -> dict[str, Any]:
    """Turn JSON into YAML.

    Args:
        text: The JSON.

    Examples:
        convert this JSON to YAML
        write that object as YAML
        turn the config from JSON into YAML
        I need this payload in YAML
        give me the YAML for these settings
        make a YAML file of this JSON
        I have JSON and need YAML
        make YAML of that JSON
        rewrite the JSON as YAML
    """
    made = given(yaml_text.dump(json_text.value_of(text)))
    return {"yaml": made, "spoken": f"It is YAML now, in {count(made.count(chr(10)), 'line')}."}


@function(timeout_s=5, effect="read", isolated=True, listed=False)
def markdown_to_html(text: Text) -> dict[str, Any]:
    """Turn Markdown into HTML that is safe to show.

    Args:
        text: The Markdown.

    Examples:
        convert this Markdown to HTML
        render the readme as HTML
        turn my notes into a web page
        what is the HTML for this list
        make HTML out of that table
        give me this Markdown as safe HTML
        make HTML from the Markdown
        turn this Markdown into HTML
        show me the Markdown as a page
    """
    made = given(markup.to_html(text))
    return {"html": made, "spoken": "It is HTML now."}

"""URLs, encodings, tokens, hashes, identifiers and passwords."""

from __future__ import annotations

import time
from typing import Annotated, Any, Literal

from msgspec import Meta

from voxbridge.services.tools.packs.utilities import encodings, tokens
from voxbridge.services.tools.packs.utilities.bounds import AnyText, Text, count
from voxbridge.services.tools.registry import function


@function(timeout_s=5, effect="read", isolated=True, listed=False)
def parse_url(url: Annotated[str, Meta(min_length=1, max_length=8_192)]) -> dict[str, Any]:
    """Take a URL apart: host, port, path and the fields of its query.

    Args:
        url: The URL.

    Examples:
        take this link apart
        what are the query parameters of that URL
        which host does this address lead to
        what port is in the link
        parse the callback URL
        where does this link really go
        split this URL
        what parts does the link have
        which parameters are in the link
    """
    return encodings.parts_of(url)


@function(timeout_s=5, effect="read", isolated=True, listed=False)
def encode_text(text: Text, encoding: encodings.Encoding) -> dict[str, Any]:
    """Encode a text in Base64, hexadecimal digits, for a URL or for HTML.

    Args:
        text: The text.
        encoding: How.

    Examples:
        encode this in base sixty four
        base64 encode my string
        URL encode this search
        percent encode that name
        turn the text into hex
        escape this for HTML
        encode the word hello in base sixty four
        make this safe for a URL
        what is hello in hex
    """
    return {"encoded": encodings.encode(text, encoding), "spoken": "It is encoded."}


@function(timeout_s=5, effect="read", isolated=True, listed=False)
def decode_text(text: Text, encoding: encodings.Encoding) -> dict[str, Any]:
    """Decode a text from Base64, hexadecimal digits, a URL or HTML.

    Args:
        text: The encoded text.
        encoding: How it is encoded.

    Examples:
        decode this base sixty four
        what does that base64 string say
        URL decode this link text
        turn this hex back into text
        unescape the HTML
        what is behind these percent signs
        what does this hex mean
        decode the string I selected
        make the encoded text readable
    """
    return encodings.decoded(text, encoding)


@function(timeout_s=5, effect="read", isolated=True, listed=False)
def decode_jwt(
    token: Annotated[str, Meta(min_length=1, max_length=tokens.TOKEN_LIMIT)], key: Annotated[str, Meta(max_length=4_096)] = ""
) -> dict[str, Any]:
    """Read a JSON Web Token, and check its HS256 signature if the key is given.

    Args:
        token: The token.
        key: The key; without it the token proves nothing.

    Examples:
        decode this JWT
        what is in that web token
        has this token expired
        when does my access token run out
        check the signature of this JWT
        who was this bearer token issued for
        read the JSON web token
        who does this token belong to
        look inside the access token
    """
    return tokens.read(token, key, now=time.time())


@function(timeout_s=5, effect="read", isolated=True, listed=False)
def hash_text(text: AnyText, algorithm: encodings.Algorithm = "sha256", key: Annotated[str, Meta(max_length=4_096)] = "") -> dict[str, Any]:
    """Compute the hash of a text, or its HMAC with a key.

    Args:
        text: The text.
        algorithm: The hash.
        key: The key of an HMAC.

    Examples:
        hash this text
        what is the SHA 256 of that string
        compute an MD5 checksum of this
        give me the SHA one of my password
        make an HMAC of this message
        CRC of this line please
        SHA 512 of the word apple
        what's the MD5 of hello world
        give me a checksum for banana
        I want a hash of the text good morning
    """
    result = {"algorithm": algorithm, "hash": encodings.digest(text, algorithm, key), "hmac": bool(key)}
    if algorithm in encodings.BROKEN:
        result["note"] = f"{algorithm} protects against mistakes, not against people: other texts with this hash can be made."
    return result | {"spoken": f"That's its {algorithm} {'HMAC' if key else 'hash'}."}


@function(timeout_s=5, effect="read", listed=False)
def generate_uuid(
    version: Literal[4, 5, 7] = 4,
    number: Annotated[int, Meta(ge=1, le=50)] = 1,
    name: Annotated[str, Meta(max_length=500)] = "",
    namespace: encodings.Namespace = "dns",
) -> dict[str, Any]:
    """Make UUIDs.

    Args:
        version: 4 is random, 7 is random and sorted by time, 5 is made of a name.
        number: How many.
        name: The name, for version 5.
        namespace: Its namespace.

    Examples:
        make me a UUID
        generate five unique ids
        I need a random identifier
        give me a new GUID
        create a version seven UUID
        a time sorted id please
        a fresh id please
        I need three UUIDs
        new unique identifier
        can I get a random id
    """
    made = [encodings.new_uuid(version, name, namespace) for _ in range(1 if version == 5 else number)]
    return {"uuids": made, "spoken": f"I made {count(len(made), 'UUID')}."}


@function(timeout_s=5, effect="read")
def generate_password(length: Annotated[int, Meta(ge=8, le=128)] = 20, symbols: bool = True, similar: bool = False) -> dict[str, Any]:
    """Make a strong random password.

    Args:
        length: Number of characters.
        symbols: With symbols beside letters and digits.
        similar: With characters that look alike, such as l and 1.

    Examples:
        make me a password
        generate a strong password
        I need a new password with sixteen characters
        come up with a secure passcode
        give me a long random password without symbols
        invent a password for my router
        a safe login password please
        give me a password with twenty characters
        I want a new secure password
        what would be a strong password
        a random password with no symbols
    """
    made, bits = encodings.password(length, symbols=symbols, similar=similar)
    return {
        "password": made,
        "length": length,
        "entropy_bits": bits,
        "spoken": f"Here is a password of {length} characters, on the screen.",
    }

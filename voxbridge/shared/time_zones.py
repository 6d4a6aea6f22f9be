"""Names of time zones, as the IANA database has them. Pure: which of them a machine knows is `voxbridge.services.tools.zones`'s to say."""

from __future__ import annotations

import re
from typing import Final

LENGTH_LIMIT: Final = 64
"""Characters of a name."""

FORM: Final = r"[A-Za-z][A-Za-z0-9_+\-]*(?:/[A-Za-z0-9_+\-]+){0,3}"
"""Form of a name, such as Europe/Lisbon."""


def is_name(text: str) -> bool:
    """Check whether a text has the form of a time zone's name."""
    return len(text) <= LENGTH_LIMIT and re.fullmatch(FORM, text) is not None

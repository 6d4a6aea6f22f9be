"""Time zones of calls: the caller's, or else the installation's, or this machine's.

A caller's zone may be unknown here, since browsers have newer tables; the next one counts then, and UTC last.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from voxbridge.shared.time_zones import is_name

_HERE: Final = re.compile(
    r"(?:right )?here|(?:at )?home|local(?: time)?"
    r"|(?:my|our|this|the user's)(?: own)?(?: local)? (?:place|home|location|city|town|time|zone|time zone)"
)
"""Words for where the caller is."""

_MACHINE: Final = Path("/etc/localtime")


def of_machine(link: Path = _MACHINE) -> str:
    """Return the name of this machine's time zone; empty where it says none."""
    try:
        parts = link.resolve().parts
    except OSError:
        return ""
    return "/".join(parts[parts.index("zoneinfo") + 1 :]) if "zoneinfo" in parts else ""


def is_known(name: str) -> bool:
    """Check whether this machine has the rules of a time zone."""
    if not is_name(name):
        return False
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def is_here(text: str) -> bool:
    """Tell whether a text means where the caller is."""
    return _HERE.fullmatch(" ".join(text.split()).casefold()) is not None


def chosen(*names: str) -> str:
    """Return the first of these zones that is known; UTC if none is."""
    return next((name for name in names if is_known(name)), "UTC")

"""The shared parts of rules that look for figures in a text: where a figure may begin and end, and the type of a rule. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

Rule = tuple[re.Pattern[str], Callable[[re.Match[str]], str]]
"""A pattern, and what is said for each match."""

START: Final = r"(?<![\w.,:/+–-])"
"""Pattern of what stands before a figure that is not a part of something longer."""

END: Final = r"(?![\w]|[.,:/-][0-9])"
"""Pattern of what follows such a figure."""

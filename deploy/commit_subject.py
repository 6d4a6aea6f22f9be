"""Check of a commit's message: its subject is short, and the body is apart from it. `.githooks/commit-msg` runs it.

Usage: python3 deploy/commit_subject.py FILE, with the message in FILE. Exits with 1 and the reason if the message is refused.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

LIMIT = 72
"""Characters of a subject."""

_MADE_BY_GIT = re.compile(r"^(Merge|Revert|fixup!|squash!|amend!) ")


def refusal(message: str) -> str:
    """Return why a message is refused; empty if it is not. Lines that begin with # are comments."""
    lines = [line for line in message.splitlines() if not line.startswith("#")]
    subject = lines[0].rstrip() if lines else ""
    if _MADE_BY_GIT.match(subject):
        return ""
    if not subject:
        return "The message is empty: say in one line what the change does."
    if len(subject) > LIMIT:
        return f"The subject has {len(subject)} characters, and {LIMIT} at most: put the rest into the body."
    if len(lines) > 1 and lines[1].strip():
        return "An empty line stands between the subject and the body."
    return ""


def main() -> int:
    """Check the message in the file that is named, and return the exit code."""
    reason = refusal(Path(sys.argv[1]).read_text(encoding="utf-8"))
    if reason:
        sys.stderr.write(f"{reason}\n")
    return 1 if reason else 0


if __name__ == "__main__":
    sys.exit(main())

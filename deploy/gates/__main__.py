"""`python -m deploy.gates`: run every gate; exit code 1 when one finds something."""

from __future__ import annotations

import sys

from deploy.gates import configuration, docstrings, figures, functions, imports, length, licences, purity, readme, session_messages

GATES = {
    "every core is pure": purity,
    "rooms point one way": imports,
    "modules are short": length,
    "docstrings open with a verb or a name": docstrings,
    "licences are allowed": licences,
    "docs/configuration.md is what the code says": configuration,
    "docs/functions.md is what the code says": functions,
    "the messages of /session are what the code says": session_messages,
    "README's table of functions is what the code says": readme,
    "README and docs quote the newest run of make bench": figures,
}


def main() -> int:
    """Print one line per gate, each problem below it, and what is near a limit."""
    found = 0
    for rule, gate in GATES.items():
        problems = gate.problems()
        found += len(problems)
        sys.stdout.write(f"{'✗' if problems else '✓'} {rule}\n")
        sys.stdout.writelines(f"    {problem}\n" for problem in problems)
    sys.stdout.writelines(f"! {warning}\n" for warning in length.warnings())
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

"""A coding agent of a few lines: takes pastes, says what it does (OSC 7501), and asks before it does anything with "ask" in it.

With an argument it appends each request to that file, as it got it.
"""

from __future__ import annotations

import base64
from typing import Final

PROGRAM: Final = f"""
import sys
def says(report):
    sys.stdout.write("\\x1b]7501;" + report + "\\x1b\\\\")
    sys.stdout.flush()
print("agent ready \\x1b[?2004h", flush=True)
says("state=idle")
for line in sys.stdin:
    while "\\x1b[200~" in line and "\\x1b[201~" not in line:
        line += sys.stdin.readline()
    if len(sys.argv) > 1:
        with open(sys.argv[1], "a") as log:
            log.write(line.replace("\\x1b[200~", "").replace("\\x1b[201~", "").strip() + "\\n---\\n")
    words = line.replace("\\x1b[200~", "").replace("\\x1b[201~", "").strip()
    says("state=working")
    print("> " + words.upper(), flush=True)
    if "ask" in words:
        says("state=blocked:kind=permission:msg={base64.b64encode(b"create hello.txt").decode()}")
        sys.stdin.readline()
        says("state=working")
    print("diff of", words.split()[0] if words else "nothing", flush=True)
    says("state=done")
"""

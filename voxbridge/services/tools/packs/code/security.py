"""Findings of bandit in Python texts. Runs in a child process: the texts are anybody's, and bandit recurses.

Owns the use of bandit as a library. Does not own which files are looked at.
"""

from __future__ import annotations

import io
import re
import tokenize
import warnings
from typing import Any, Final

from voxbridge.shared.errors import Code, VoxbridgeError

_NOSEC: Final = re.compile(r"#\s*nosec\b:?(?P<rules>[^#]*)")
_RULE: Final = re.compile(r"\bB\d{3}\b")
_LEVELS: Final = ("HIGH", "MEDIUM", "LOW", "UNDEFINED")


def scan(texts: dict[str, str]) -> dict[str, Any]:
    """Return `findings`, worst first, and `unreadable`: the files that are no Python, each with why.

    A line that carries `# nosec`, alone or with the rule, is left out, as by bandit's own command.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # bandit's own use of its loader, and escapes in somebody's text
        return _scan(texts)


def _scan(texts: dict[str, str]) -> dict[str, Any]:
    from bandit.core.config import BanditConfig
    from bandit.core.meta_ast import BanditMetaAst
    from bandit.core.metrics import Metrics
    from bandit.core.node_visitor import BanditNodeVisitor
    from bandit.core.test_set import BanditTestSet

    tests, metrics = BanditTestSet(BanditConfig()), Metrics()
    findings: list[dict[str, Any]] = []
    unreadable: dict[str, str] = {}
    for name, text in texts.items():
        content = text.encode()
        metrics.begin(name)
        try:
            visitor = BanditNodeVisitor(name, io.BytesIO(content), BanditMetaAst(), tests, False, _allowed(content), metrics)
            visitor.process(content)
        except (SyntaxError, ValueError) as error:
            unreadable[name] = f"line {error.lineno} is not valid Python" if isinstance(error, SyntaxError) else "it is not valid Python"
        except (RecursionError, MemoryError):
            unreadable[name] = "it is nested too deeply"
        else:
            findings += [_finding(name, issue) for issue in visitor.tester.results]
    findings.sort(key=lambda one: (_LEVELS.index(one["severity"]), _LEVELS.index(one["confidence"]), one["file"], one["line"]))
    if unreadable and len(unreadable) == len(texts) == 1:
        ((name, why),) = unreadable.items()
        raise VoxbridgeError(Code.INVALID_ARGUMENT, f"{name} cannot be scanned: {why}. Mend it, or name another file.", field="path")
    return {"findings": findings, "unreadable": unreadable}


def _finding(name: str, issue: Any) -> dict[str, Any]:
    return {
        "rule": issue.test_id,
        "severity": issue.severity,
        "confidence": issue.confidence,
        "file": name,
        "line": issue.lineno,
        "says": " ".join(issue.text.split())[:200],
    }


def _allowed(content: bytes) -> dict[int, set[str] | None]:
    """Return for each line with a `nosec` comment the rules that it allows; an empty set allows all."""
    allowed: dict[int, set[str] | None] = {}
    try:
        for token in tokenize.tokenize(io.BytesIO(content).readline):
            found = _NOSEC.search(token.string) if token.type == tokenize.COMMENT else None
            if found is not None:
                allowed[token.start[0]] = set(_RULE.findall(found["rules"]))
    except (tokenize.TokenError, SyntaxError, RecursionError):  # what is left is parsed, and that says what is wrong
        pass
    return allowed

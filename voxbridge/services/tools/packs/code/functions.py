"""Declarations of the functions that judge code: its security and its complexity."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Final

from msgspec import Meta

from voxbridge.services.tools.context import Context
from voxbridge.services.tools.packs.code import complexity, security
from voxbridge.services.tools.packs.code.sources import Sources, gather, some
from voxbridge.services.tools.registry import function, worker
from voxbridge.shared.errors import Code, VoxbridgeError
from voxbridge.shared.spoken_paths import PATH_LIMIT

SHOWN: Final = 15
"""Findings or functions in a result; the others are counted."""

FOUND_LIMIT: Final = 100
"""Findings or functions that a child hands over."""

CHILD_S: Final = 20.0
Path = Annotated[str, Meta(min_length=1, max_length=PATH_LIMIT, examples=["src/core.py", "core dot py"])]


@worker(timeout_s=CHILD_S)
def scan(texts: dict[str, str]) -> dict[str, Any]:
    """Scan Python texts."""
    found = security.scan(texts)
    return {**found, "findings": found["findings"][:FOUND_LIMIT], "total": len(found["findings"])}


@worker(timeout_s=CHILD_S)
def measure(texts: dict[str, str]) -> dict[str, Any]:
    """Measure the functions of texts."""
    found = complexity.measure(texts)
    hard = sum(one["complexity"] > complexity.HARD for one in found["functions"])
    return {**found, "functions": found["functions"][:FOUND_LIMIT], "total": len(found["functions"]), "hard": hard}


@function(effect="read", timeout_s=30)
async def scan_code_security(path: Path, ctx: Context) -> dict[str, Any]:
    """Scan Python code for security problems.

    Args:
        path: File or folder of the workspace, as said.

    Examples:
        is there anything insecure in core dot py
        scan the source folder for vulnerabilities
        check my code for security holes
        run a security audit of the payments module
        does app dot py have any dangerous calls
        look for hardcoded passwords in settings dot py
        are there security issues in this project
        how safe does the api folder look
        can somebody break into app dot py
        look over the login code for weaknesses
        any exploits possible in the api folder
        is upload dot py safe
        find vulnerabilities in my project
        scan server dot py
        are there security issues in views dot py
    """
    sources = await asyncio.to_thread(gather, ctx.workspace, path, (".py",))
    found = await ctx.in_child(scan, texts=sources.texts)
    return _told(sources, found, "findings", _security_sentence(sources, found))


@function(effect="read", timeout_s=30)
async def analyze_code_complexity(path: Path, ctx: Context) -> dict[str, Any]:
    """Tell how complex the functions of a source file or folder are, the most complex first.

    Args:
        path: File or folder of the workspace, as said.

    Examples:
        how complex is core dot py
        which function is the hardest to follow
        analyze the complexity of the source folder
        find the most complicated code in the project
        what are the longest functions in utils dot ts
        is anything in the api folder too complicated
        measure cyclomatic complexity of the parser
        which code should I simplify first
        how tangled is the code of the parser
        which file should I refactor
        check the complexity of models dot py
        how hard to read is billing dot py
        which parts of api dot py are hard to read
        is the code in models dot py too nested
        give me the complexity of the whole folder
    """
    sources = await asyncio.to_thread(gather, ctx.workspace, path, complexity.SUFFIXES)
    found = await ctx.in_child(measure, texts=sources.texts)
    return _told(sources, found, "functions", _complexity_sentence(sources, found))


def _told(sources: Sources, found: dict[str, Any], key: str, spoken: str) -> dict[str, Any]:
    unreadable = found["unreadable"]
    if unreadable and len(unreadable) == len(sources.texts):
        raise VoxbridgeError(Code.INVALID_ARGUMENT, f"Nothing in {sources.name} could be parsed. Name other code.", field="path")
    shown = some(found[key], SHOWN)
    return {
        "path": sources.name,
        "files": len(sources.texts),
        key: shown["found"],
        "count": found["total"],
        **({"not_shown": found["total"] - SHOWN} if found["total"] > SHOWN else {}),
        **({"unreadable": dict(list(unreadable.items())[:5])} if unreadable else {}),
        **({"files_left_out": sources.left_out} if sources.left_out else {}),
        "spoken": spoken,
    }


def _security_sentence(sources: Sources, found: dict[str, Any]) -> str:
    if not found["total"]:
        return f"I found no security problems in {sources.name}."
    worst = found["findings"][0]
    where = f"line {worst['line']}" if sources.is_file else f"{worst['file']}, line {worst['line']}"
    count = "1 problem" if found["total"] == 1 else f"{found['total']} problems"
    first = worst["says"].partition(". ")[0].rstrip(".")[:120]
    return f"I found {count} in {sources.name}. The worst is in {where}: {first}."


def _complexity_sentence(sources: Sources, found: dict[str, Any]) -> str:
    if not found["total"]:
        return f"There are no functions in {sources.name}."
    worst = found["functions"][0]
    count = f"{found['hard']} of {found['total']} are hard to follow" if found["hard"] else "None is hard to follow"
    return f"The most complex function in {sources.name} is {worst['function']}, with a complexity of {worst['complexity']}. {count}."

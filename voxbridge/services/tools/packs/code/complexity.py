"""Complexity of functions, by lizard. Runs in a child process: the texts are anybody's.

Owns the use of lizard as a library, and from which complexity on a function is called hard to follow.
"""

from __future__ import annotations

from typing import Any, Final

SUFFIXES: Final = (
    *(".py", ".js", ".jsx", ".ts", ".tsx", ".java", ".kt", ".swift", ".go", ".rs", ".rb", ".php", ".scala", ".lua", ".cs"),
    *(".c", ".h", ".cc", ".cpp", ".hpp", ".cxx", ".m", ".mm"),
)
HARD: Final = 10
"""Cyclomatic complexity above which a function is called hard to follow (McCabe's own limit)."""


def measure(texts: dict[str, str]) -> dict[str, Any]:
    """Return `functions`, the most complex first, and `unreadable`: the files that could not be analysed, each with why."""
    import lizard

    functions: list[dict[str, Any]] = []
    unreadable: dict[str, str] = {}
    for name, text in texts.items():
        try:
            found = lizard.analyze_file.analyze_source_code(name, text)
        except (RecursionError, MemoryError):
            unreadable[name] = "it is nested too deeply"
            continue
        except (IndexError, KeyError, AttributeError, ValueError, StopIteration):
            unreadable[name] = "it is not valid in its language"
            continue
        functions += [
            {
                "function": one.name[:120],
                "complexity": one.cyclomatic_complexity,
                "lines": one.nloc,
                "parameters": one.parameter_count,
                "file": name,
                "line": one.start_line,
            }
            for one in found.function_list
        ]
    functions.sort(key=lambda one: (-one["complexity"], -one["lines"], one["file"], one["line"]))
    return {"functions": functions, "unreadable": unreadable}

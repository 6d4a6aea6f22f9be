"""The text of a React component in TypeScript. Pure.

Owns the form of the text. It is made of checked names alone (`voxbridge.services.tools.packs.codegen.names`).
"""

from __future__ import annotations

from typing import Final

from voxbridge.services.tools.packs.codegen.names import Named

_TYPES: Final = {
    "text": "string",
    "number": "number",
    "integer": "number",
    "boolean": "boolean",
    "date": "Date",
    "list": "readonly string[]",
    "action": "() => void",
    "children": "ReactNode",
}
_TITLES: Final = (("title",), ("name",), ("heading",), ("label",))


def component(name: str, props: list[Named], label: str) -> str:
    """Return a module that exports a component and the type of its properties."""
    lines = ['import type { ReactNode } from "react";', ""] if any(one.kind == "children" for one in props) else []
    if props:
        lines += [f"/** Properties of {name}. */", f"export interface {name}Props {{"]
        lines += [f"  readonly {one.camel}{'?' if _optional(one) else ''}: {_TYPES[one.kind]};" for one in props]
        lines += ["}", ""]
    given = f"{{ {', '.join(one.camel for one in props)} }}: {name}Props" if props else ""
    css = "-".join(label.lower().split())
    lines += [
        f"/** {label}. */",
        f"export function {name}({given}) {{",
        "  return (",
        f'    <section className="{css}" aria-label="{label}">',
    ]
    title = next((one for one in props if one.words in _TITLES and one.kind == "text"), None)
    body = [line for one in props for line in (_element(one, is_title=one is title))] or [f"<p>{label}</p>"]
    return "\n".join([*lines, *(f"      {line}" for line in body), "    </section>", "  );", "}", ""])


def _optional(one: Named) -> bool:
    return one.optional or one.kind == "children"


def _element(one: Named, *, is_title: bool) -> list[str]:
    name, label = one.camel, one.label
    if one.kind == "action":
        words = " ".join(one.words[1:] if one.words[0] == "on" and len(one.words) > 1 else one.words).capitalize()
        return [
            '<button type="button" onClick={() => ' + (f"{name}?.()" if one.optional else f"{name}()") + "}>",
            f"  {words}",
            "</button>",
        ]
    if one.kind == "children":
        return [f"{{{name}}}"]
    if one.kind == "list":
        items = f"({name} ?? [])" if one.optional else name
        return [
            f'<ul aria-label="{label}">',
            f"  {{{items}.map((entry, index) => (",
            "    <li key={`${index}-${entry}`}>{entry}</li>",
            "  ))}",
            "</ul>",
        ]
    if is_title:
        return [f"<h2>{{{name}}}</h2>"]
    if one.kind == "boolean":
        return [f'<p>{label}: {{{name} ? "yes" : "no"}}</p>']
    if one.kind == "date":
        day = f"{name}?.toISOString().slice(0, 10)" if one.optional else f"{name}.toISOString().slice(0, 10)"
        return [f"<p>{label}: {{{day}}}</p>"]
    return [f"<p>{label}: {{{name}}}</p>"]

"""Gate: the JSON Schemas and the TypeScript types of `/session` are what the Python types say."""

from __future__ import annotations

from deploy.gates import ROOT
from deploy.session_messages import SCHEMAS, TYPES, schemas, types


def problems() -> list[str]:
    """Return one problem for each file that differs."""
    wanted = {SCHEMAS: schemas(), TYPES: types()}
    differing = [file for file, text in wanted.items() if not file.is_file() or file.read_text(encoding="utf-8") != text]
    return [f"{file.relative_to(ROOT)} differs: run `python -m deploy.session_messages`." for file in differing]

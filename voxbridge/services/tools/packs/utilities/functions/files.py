"""Python code, tables in files, and licences of a folder."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from msgspec import Meta

from voxbridge.services.tools.context import Context
from voxbridge.services.tools.packs.utilities import licences, python_code, tables
from voxbridge.services.tools.packs.utilities.bounds import Text, refused
from voxbridge.services.tools.registry import Isolation, function, worker

Path = Annotated[str, Meta(max_length=500)]
Table = Annotated[str, Meta(max_length=65_536)]
_RUFF = Isolation(memory_mb=1_024)  # of address space, which a process of its own takes at once and hardly uses


@function(timeout_s=10, effect="read", isolated=_RUFF, listed=False)
def format_python(code: Text) -> dict[str, Any]:
    """Lay out Python code as ruff does.

    Args:
        code: The code.

    Examples:
        format this Python
        tidy up the code I pasted
        make this script pretty
        reformat the function
        fix the indentation of that Python
        run a formatter over this snippet
        make the Python code pretty
        lay out my Python code
        clean up this Python file
    """
    made = python_code.formatted(code)
    same = made == code
    return {"code": made, "changed": not same, "spoken": "It was formatted already." if same else "It is formatted."}


@function(timeout_s=10, effect="read", isolated=_RUFF, listed=False)
def lint_python(code: Text) -> dict[str, Any]:
    """Find mistakes in Python code, such as unused imports and undefined names.

    Args:
        code: The code.

    Examples:
        lint this Python
        are there mistakes in the code
        check my script for unused imports
        is anything undefined in this function
        what is wrong with this Python snippet
        run the linter over it
        check this Python for errors
        any lint errors in this code
        find unused imports in this file
    """
    return python_code.checked(code)


@function(timeout_s=15, effect="read", listed=False)
async def query_table(
    sql: Annotated[str, Meta(min_length=1, max_length=tables.SQL_LIMIT)], ctx: Context, table: Table = "", path: Path = ""
) -> dict[str, Any]:
    """Run one SELECT over a table, of a file or given as CSV; it is called data.

    Args:
        sql: The query, in SQL.
        table: The table, as CSV.
        path: A file of the workspace, .csv, .tsv or .json.

    Examples:
        run SQL over this file
        query the CSV for the largest order
        sum up the sales column by region
        select all rows above a hundred
        how many rows of the table are from May
        average price in that spreadsheet
        what's the highest value in the CSV
        how many lines of the table have a price over ten
        use SQL on the CSV
    """
    text = await _content(table, path, ctx)
    form: tables.Form = "json" if path.lower().endswith((".json", ".jsonl", ".ndjson")) else "csv"
    return await ctx.in_child(query_in_child, sql=sql, text=text, form=form)


@worker(timeout_s=10, memory_mb=1_024)
def query_in_child(sql: str, text: str, form: tables.Form) -> dict[str, Any]:
    """Run a query over a table that a stranger wrote."""
    return tables.query(sql, text, form)


@function(timeout_s=15, effect="read", listed=False)
async def summarize_csv(ctx: Context, table: Table = "", path: Path = "") -> dict[str, Any]:
    """Describe the columns of a CSV table: types, ranges, averages and gaps.

    Args:
        table: The table, as CSV.
        path: A file of the workspace.

    Examples:
        describe this CSV
        what is in the table
        give me statistics of the spreadsheet
        mean and median of the columns
        how many values are missing in the file
        summarise the data I pasted
        what columns has the CSV
        give me an overview of the CSV file
        averages of the columns in this CSV
    """
    return await ctx.in_child(summarize_in_child, text=await _content(table, path, ctx))


@worker(timeout_s=10)
def summarize_in_child(text: str) -> dict[str, Any]:
    """Read a table that a stranger wrote."""
    return tables.statistics_of(text)


@function(timeout_s=20, effect="read", listed=False)
async def list_licences(ctx: Context, path: Path = "") -> dict[str, Any]:
    """List the licences that the files of a folder declare.

    Args:
        path: A folder of the workspace; all of it by default.

    Examples:
        which licences are in this folder
        what license does the project have
        list the licences of my code
        is there any GPL in the workspace
        under which terms is this package
        check the folder for license files
        may I use this package commercially what's its licence
        licence check of the folder
        show all the licences used here
    """
    return await asyncio.to_thread(licences.of_folder, ctx.workspace, path)


async def _content(table: str, path: str, ctx: Context) -> str:
    """Return the text of a table that was given or is in a file."""
    if bool(table) == bool(path):
        raise refused("Give either the table itself or the path of a file, and not both.", "table")
    return table or await asyncio.to_thread(ctx.workspace.read_text, path)

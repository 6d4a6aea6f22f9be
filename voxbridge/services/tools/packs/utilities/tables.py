"""Tables in CSV: what their columns hold, and SQL over them.

A query runs on a copy in memory, in a database that reached no file, extension or network since before the query was read.
"""

from __future__ import annotations

import csv
import io
import math
import statistics
from collections import Counter
from pathlib import Path
from typing import Any, Final, Literal

from voxbridge.services.tools.packs.utilities import csv_text
from voxbridge.services.tools.packs.utilities.bounds import count, plain, refused, storable
from voxbridge.shared.errors import Code, VoxbridgeError

SQL_LIMIT: Final = 4_000
"""Characters of a query."""
MEMORY: Final = "128MB"
ROWS_LIMIT: Final = 50
"""Rows of a query that are given."""
COLUMNS_LIMIT: Final = 50
CELL_LIMIT: Final = 200
"""Characters of a cell that are given."""
COMMON_LIMIT: Final = 3
Form = Literal["csv", "json"]
_LOADED: Final = {
    # of the dialect, which `csv_text` decided, nothing is left to guess; of the types all
    "csv": "CREATE TABLE data AS SELECT * FROM read_csv(?, delim = ',', quote = '\"', escape = '\"', header = true, skip = 0, "
    "sample_size = -1)",
    "json": "CREATE TABLE data AS SELECT * FROM read_json(?)",
}
_LOCKED: Final = ("enable_external_access = false", "allow_community_extensions = false", "lock_configuration = true")


def statistics_of(text: str) -> dict[str, Any]:
    """Return for each column of a CSV text its type, what is missing, and its range or its commonest values."""
    table = csv_text.read(text, strict=False)
    header, body = table.header, table.rows
    columns = [{"name": name[:CELL_LIMIT]} | _column([row[place] for row in body]) for place, name in enumerate(header[:COLUMNS_LIMIT])]
    result = {"rows": len(body), "columns": columns, "column_count": len(header), "ragged_rows": table.ragged, "left_out": _left_out(table)}
    return result | {"spoken": f"It has {count(len(body), 'row')} and {count(len(header), 'column')}.{csv_text.told(table)}"}


def query(sql: str, text: str, form: Form = "csv") -> dict[str, Any]:
    """Return the rows of a SELECT over a text in CSV or JSON, the table `data`. Raises `INVALID_ARGUMENT` and `PERMISSION_DENIED`."""
    if form == "json":
        return _queried(sql, text, form)
    table = csv_text.read(text)
    written = io.StringIO()
    csv.writer(written).writerows([table.header, *table.rows])
    answer = _queried(sql, written.getvalue(), form)
    return answer | {"left_out": _left_out(table), "spoken": answer["spoken"] + csv_text.told(table)}


def _left_out(table: csv_text.Table) -> list[dict[str, Any]]:
    return [{"line": one.line, "why": one.why, "text": plain(one.text)} for one in table.outside[:ROWS_LIMIT]]


def _queried(sql: str, text: str, form: Form) -> dict[str, Any]:
    import tempfile

    import duckdb

    with tempfile.TemporaryDirectory(prefix="voxbridge-table-") as folder:
        path = Path(folder) / f"data.{form}"
        path.write_text(text, encoding="utf-8")
        config: dict[str, Any] = {"threads": 1, "memory_limit": MEMORY, "temp_directory": "", "autoinstall_known_extensions": False}
        with duckdb.connect(":memory:", config=config | {"autoload_known_extensions": False}) as database:
            try:
                database.execute(_LOADED[form], [str(path)])
            except duckdb.Error as error:
                raise refused(f"The table cannot be read: {_first_line(error)}.", "table") from error
            for setting in _LOCKED:
                database.execute(f"SET {setting}")
            return _selected(database, sql)


def _selected(database: Any, sql: str) -> dict[str, Any]:
    import duckdb

    try:
        statements = database.extract_statements(sql)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            message = "One SELECT is run and nothing else: no other statement, and no second one."
            raise VoxbridgeError(Code.PERMISSION_DENIED, message, field="sql")
        answer = database.execute(statements[0])
        columns = [column[0] for column in answer.description or []]
        rows = answer.fetchmany(ROWS_LIMIT + 1)
    except duckdb.PermissionException as error:
        message = "A query reads the table `data` alone: no file, network, extension or setting."
        raise VoxbridgeError(Code.PERMISSION_DENIED, message, field="sql") from error
    except duckdb.OutOfMemoryException as error:
        raise VoxbridgeError(Code.TOO_LARGE, f"The query needs more than {MEMORY} of memory.", limit=MEMORY) from error
    except (duckdb.Error, RecursionError, ValueError, OverflowError) as error:
        raise refused(f"The query cannot be run: {_first_line(error)}.", "sql") from error
    if len(columns) > COLUMNS_LIMIT:
        raise refused(f"A query gives at most {COLUMNS_LIMIT} columns, and this gives {len(columns)}. Name those you need.", "sql")
    more = len(rows) > ROWS_LIMIT
    shown = [[_cell(cell) for cell in row] for row in rows[:ROWS_LIMIT]]
    if len(shown) == 1 and len(columns) == 1:
        spoken = "There is no value." if shown[0][0] is None else f"It is {_said(shown[0][0])}."
    else:
        spoken = f"I found {'more than ' if more else ''}{count(len(shown), 'row')}."
    return {"columns": columns, "rows": shown, "more": more, "spoken": spoken}


def _column(cells: list[str]) -> dict[str, Any]:
    filled = [cell for cell in cells if cell]
    result: dict[str, Any] = {"missing": len(cells) - len(filled), "distinct": len(set(filled))}
    try:
        numbers = [float(cell) for cell in filled]
    except ValueError:
        numbers = []
    if numbers and all(math.isfinite(number) for number in numbers):
        return result | {
            "type": "number",
            "min": min(numbers),
            "max": max(numbers),
            "mean": _tidy(statistics.fmean(numbers)),
            "median": _tidy(statistics.median(numbers)),
            "sum": _tidy(math.fsum(numbers)),
            "deviation": _tidy(statistics.stdev(numbers)) if len(numbers) > 1 else 0,
        }
    common = [{"value": value[:CELL_LIMIT], "count": times} for value, times in Counter(filled).most_common(COMMON_LIMIT)]
    return result | {"type": "text" if filled else "empty", "common": common}


def _tidy(number: float) -> float:
    return float(f"{number:.10g}")


def _cell(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return plain(value)
    text = plain(str(value))
    return text if len(text) <= CELL_LIMIT else f"{text[:CELL_LIMIT]}…"


def _said(value: Any) -> str:
    """Return a cell as it is told; a truth value by word, a number without what arithmetic left behind it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.10g}" if isinstance(value, float) and abs(value) < 1e6 else str(value) or "an empty text"


def _first_line(error: BaseException) -> str:
    return storable(str(error).strip().partition("\n")[0])[:200]

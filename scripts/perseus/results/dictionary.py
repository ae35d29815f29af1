"""Generate the data dictionary, which lists every result file and column with unit and meaning.

`make docs/reference/data.md` writes the dictionary into docs/reference/data.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import pyarrow as pa
from pydantic import BaseModel

from perseus.measurement.monitor_schema import METRICS, MONITOR_SCHEMA
from perseus.measurement.raw_results import REQUESTS_SCHEMA, WINDOWS_SCHEMA
from perseus.results.compare import table as compared
from perseus.results.records import Ceiling, Record
from perseus.results.schema import Column, Schema
from perseus.results.tables import TABLES, module_of

HEAD = """# Data dictionary

`make docs/reference/data.md` makes this page from the code. A test compares the page with the code.

A file of results is Parquet unless its name says otherwise. The metadata of its columns has the
units and meanings at the time of writing. Times in ns are on the monotonic clock of the measuring
host; `started` in record.json states one moment both on this clock and as Unix time. Latency counts
from the intended send time. A null (an empty field in CSV) means that there is no value; the
verdict of the row says why. A percentile is infinite if too many requests got no response.
"""

CHECKED = """Each table also exists as CSV, with six significant digits. Perseus checks the
values and rows of every result against this page, and the tables against each other. `checked.json`
beside the tables lists all rules that hold. A report requires this file.
"""

COLUMN: Final = ("column", "type", "unit", "values", "meaning")


def dictionary() -> str:
    """Return the text of docs/reference/data.md."""
    parts = [
        HEAD,
        "## Raw results: `results/<study>/raw/<cell>/`\n",
        "One folder per cell: scenario x load line x repeat. `server.log` is the log of the"
        " server. If dedicated peaks have repeats, `repeats/<scenario>.<load line>.json` lists"
        " their record.json files, which shared cells read. `measured/<kind>.json` lists the cells"
        " of a kind of experiment, each with the SHA-256 of its record.json: tables and figures use"
        " these cells.\n",
        _table(
            "requests.parquet",
            "One row per request; each window is a row group of the file.",
            REQUESTS_SCHEMA,
        ),
        _table("windows.parquet", "One row per window and tenant.", WINDOWS_SCHEMA),
        _table("monitor.parquet", "One row per metric and second.", MONITOR_SCHEMA),
        "Metrics:\n",
        _rows(("metric", "meaning"), METRICS.items()),
        "### record.json\n",
        _keys(Record),
        *_of_kinds(),
        "## The client's ceilings: `results/<study>/ceilings/<server>.json`\n",
        "One file per server. Perseus measures the ceilings with a null model, which does no"
        " work.\n",
        _keys(Ceiling),
        "## Tables: `results/<study>/tables/`\n",
        CHECKED,
        *(_checked(name, module_of(name).DESCRIPTION, module_of(name).SCHEMA) for name in TABLES),
        "## Two results compared: `results/compare/<base>-<new>/`\n",
        "The table also exists as CSV, beside `comparison.html`, `summary.md` and the figure."
        " Perseus checks this table like the tables of a study.\n",
        _checked("comparison", compared.DESCRIPTION, compared.SCHEMA),
    ]
    return "\n".join(parts).rstrip("\n") + "\n"


def keys(model: type[BaseModel]) -> dict[str, str]:
    """Return a table of the keys of a JSON file and their meanings, given the pydantic model of the
    file."""
    fields = model.model_fields.items()
    return {of.alias or name: of.description for name, of in fields if of.description}


def _keys(model: type[BaseModel], but: Iterable[str] = ()) -> str:
    """Return a table of the keys of a pydantic model, without the keys in `but`."""
    told = set(but)
    return _rows(("key", "meaning"), [row for row in keys(model).items() if row[0] not in told])


def _of_kinds() -> Iterator[str]:
    """Yield a table of the keys that each kind of experiment adds to record.json."""
    for name in TABLES:
        record = getattr(module_of(name), "RECORD", None)
        if record is not None:
            yield f"Additional keys for an experiment of kind `{record.kind}`:\n"
            yield _keys(record, but=keys(Record))


def _table(name: str, what: str, schema: pa.Schema) -> str:
    rows = (
        (field.name, _kind(field.type), field.metadata[b"unit"].decode(), _meaning(field))
        for field in schema
    )
    return f"### {name}\n\n{what}\n\n{_rows(('column', 'type', 'unit', 'meaning'), rows)}"


def _checked(name: str, what: str, schema: Schema) -> str:
    """Return the section of one table: its columns and the rules that hold in each row."""
    rows = map(_column, schema.columns)
    parts = [f"### {name}.parquet\n\n{what}\n", _rows(COLUMN, rows)]
    if schema.key:
        parts.append(f"No two rows have the same {_names(schema.key)}.\n")
    if schema.holds:
        each = "".join(f"- {relation.what}\n" for relation in schema.holds)
        parts.append(f"In each row:\n\n{each}")
    return "\n".join(parts)


def _column(of: Column) -> tuple[str, ...]:
    return of.name, str(of.kind), of.unit, of.values, of.meaning


def _names(columns: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in columns)


def _kind(kind: pa.DataType) -> str:
    return "string" if pa.types.is_dictionary(kind) else str(kind)


def _meaning(field: pa.Field) -> str:
    """Return the meaning of a column. If the column contains the values of several metrics, refer
    to their table."""
    return str(field.metadata.get(b"meaning", b"see the metrics below").decode())


def _rows(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    lines += ["| `" + " | ".join(map(_cell, row)).replace(" |", "` |", 1) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|")


if __name__ == "__main__":
    print(dictionary(), end="")

"""Generate the data dictionary, the page docs/reference/data.md. The page lists every result file,
and every column with its unit and meaning."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import pyarrow as pa
from pydantic import BaseModel

from perseus.measurement.monitor_schema import METRICS, MONITOR_SCHEMA
from perseus.measurement.raw_results import REQUESTS_SCHEMA, WINDOWS_SCHEMA
from perseus.results.client_ceiling import Ceiling
from perseus.results.compare import table as compared
from perseus.results.records import Record
from perseus.results.schema import Column, Schema
from perseus.results.tables import TABLES, module_of

HEAD = """# Data dictionary

`make docs/reference/data.md` makes this page from the code. A test compares the page with the code.

In a Parquet file, the metadata of each column states the unit and the meaning that the column had
when the file was written. Times in ns are on the monotonic clock of the measuring host. To convert
a time into Unix time, use `started` in record.json, which states one moment on both clocks. The
latency of a request is the time from its intended send time to its response. A null (in CSV an
empty field) means that the value is unknown or does not exist. The columns `verdict` and `reason`
say why. If too many requests got no response, a percentile of the latency is infinite.
"""

CHECKED = """Perseus also writes each table as CSV, with six significant digits. Perseus checks that
each table keeps the rules on this page, and that the tables of a study do not contradict each
other. The file `checked.json` beside the tables lists all rules that hold. Perseus makes a report
only if this file exists.
"""

COLUMN: Final = ("column", "type", "unit", "values", "meaning")


def dictionary() -> str:
    """Return the text of docs/reference/data.md."""
    parts = [
        HEAD,
        "## Raw results: `results/<study>/raw/<cell>/`\n",
        "Each folder contains the results of one cell: one repeat of one load line of one scenario."
        " `server.log` is the log of the server. If Perseus measures a dedicated peak several"
        " times, `repeats/<scenario>.<load line>.json` contains the contents of record.json of all"
        " these repeats. `measured/<kind>.json` lists the measured cells of one kind of experiment,"
        " each with the SHA-256 of its record.json. Perseus makes tables and figures from the"
        " listed cells.\n",
        _table(
            "requests.parquet",
            "One row per request. Each row group of the Parquet file contains the requests of one"
            " window.",
            REQUESTS_SCHEMA,
        ),
        _table(
            "windows.parquet",
            "One row per window and tenant. Latencies and numbers of requests include only the"
            " requests that count for the verdict.",
            WINDOWS_SCHEMA,
        ),
        _table(
            "monitor.parquet",
            "One row per sample of a metric. A sample is due every second.",
            MONITOR_SCHEMA,
        ),
        "Metrics:\n",
        _rows(("metric", "meaning"), METRICS.items()),
        "### record.json\n",
        _keys(Record),
        *_of_kinds(),
        "## The client's ceilings: `results/<study>/ceilings/<server>.json`\n",
        "One file per server. A client ceiling is the highest rate that the client can send on"
        " schedule to a null model, which does no work.\n",
        _keys(Ceiling),
        "## Tables: `results/<study>/tables/`\n",
        CHECKED,
        *(_checked(name, module_of(name).DESCRIPTION, module_of(name).SCHEMA) for name in TABLES),
        "## Two results compared: `results/compare/<base>-<new>/`\n",
        "The folder contains the table `comparison` as Parquet and as CSV. The folder also contains"
        " `comparison.html`, `summary.md` and a figure.\n",
        _checked("comparison", compared.DESCRIPTION, compared.SCHEMA),
    ]
    return "\n".join(parts).rstrip("\n") + "\n"


def keys(model: type[BaseModel]) -> dict[str, str]:
    """Return the description of each key of a JSON file, given the pydantic model of the file."""
    fields = model.model_fields.items()
    return {of.alias or name: of.description for name, of in fields if of.description}


def _keys(model: type[BaseModel], but: Iterable[str] = ()) -> str:
    told = set(but)
    return _rows(("key", "meaning"), [row for row in keys(model).items() if row[0] not in told])


def _of_kinds() -> Iterator[str]:
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
    """Return the meaning of a column. For the column `value` of monitor.parquet, the text refers to
    the table of metrics."""
    return str(field.metadata.get(b"meaning", b"see the metrics below").decode())


def _rows(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    lines += ["| `" + " | ".join(map(_cell, row)).replace(" |", "` |", 1) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|")


if __name__ == "__main__":
    print(dictionary(), end="")

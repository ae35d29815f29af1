"""Generate the page docs/reference/data.md, the data dictionary: every result file of Perseus, and
every column with its unit and meaning."""

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

On this page you find every result file of Perseus, and the meaning of each column and key. Do not
edit this page: `make docs/reference/data.md` generates it from the code.

- Each Parquet file states the unit and the meaning of each column in its metadata. These texts
  are from the version of Perseus that wrote the file.
- Times in ns are on the monotonic clock of the host that measured, unless their name contains
  `unix`. To convert such a time into Unix time, use the key `started` in record.json. This key
  states the same moment on both clocks.
- The latency of a request is the time from its intended send time to its response. The latency of a
  failed request is infinite. For example, p95 is infinite if more than 5 % of the requests failed.
- A null (in CSV an empty field) means that the value is unknown or does not exist. If the table has
  the columns `verdict` and `reason`, these columns say why.
"""

CHECKED = """Perseus also writes each table as CSV, with six significant digits.

Before Perseus makes a report, Perseus checks the rules under each table, and checks that no table
contradicts another table of the study. A formula such as `a <= b` does not apply to a row in which
one of its values is null. If all rules hold, Perseus lists the rules in the file `checked.json`
beside the tables. Without this file, Perseus makes no report.
"""

COLUMN: Final = ("column", "type", "unit", "values", "meaning")


def dictionary() -> str:
    """Return the text of docs/reference/data.md."""
    parts = [
        HEAD,
        "## Raw results: `results/<study>/raw/<cell>/`\n",
        "Each folder contains the results of one cell: one repeat of one load line of one scenario"
        " or, in an experiment without load lines, one repeat of the experiment. The folder"
        " contains the files below, and the log of the server (`server.log`).\n",
        "The files `results/<study>/measured/<kind>.json` list the measured cells of each kind of"
        " experiment, with the SHA-256 of their record.json. Perseus makes the tables and figures"
        " from the listed cells. If a preset has several repeats,"
        " `results/<study>/repeats/<scenario>.<load line>.json` contains copies of the record.json"
        " of all repeats of a dedicated peak.\n",
        _table(
            "requests.parquet",
            "One row per request. Each row group of the Parquet file contains the requests of one"
            " window.",
            REQUESTS_SCHEMA,
        ),
        _table(
            "windows.parquet",
            "One row per window and tenant. Unless a description says otherwise, latencies and"
            " numbers of requests include only the requests that count for the verdict: requests"
            " with an intended send time after the settling time.",
            WINDOWS_SCHEMA,
        ),
        _table(
            "monitor.parquet",
            "One row per sample and metric. In each sample, a metric `nv_inference_*` has one row"
            " per model, and a metric `gpu_*` has one row per GPU. Perseus takes about one sample"
            " per second.",
            MONITOR_SCHEMA,
        ),
        "The column `metric` has these values:\n",
        _rows(("metric", "meaning"), METRICS.items()),
        "### record.json\n",
        _keys(Record),
        *_of_kinds(),
        "## The client's ceilings: `results/<study>/ceilings/<server>.json`\n",
        "One file per server. A client ceiling is the highest rate at which the client can send"
        " requests on schedule. Perseus measures the client ceiling with a null model, which does"
        " no work.\n",
        _keys(Ceiling),
        "## Tables: `results/<study>/tables/`\n",
        CHECKED,
        *(_checked(name, module_of(name).DESCRIPTION, module_of(name).SCHEMA) for name in TABLES),
        "## Two results compared: `results/compare/<base>-<new>/`\n",
        "If you compare two studies, this folder contains the table `comparison` as Parquet and as"
        " CSV, the page `comparison.html`, `summary.md` and a figure.\n",
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
            yield f"In an experiment of kind `{record.kind}`, record.json also has these keys:\n"
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
        parts.append(f"Perseus checks these rules:\n\n{each}")
    return "\n".join(parts)


def _column(of: Column) -> tuple[str, ...]:
    return of.name, str(of.kind), of.unit, of.values, of.meaning


def _names(columns: Sequence[str]) -> str:
    *others, last = (f"`{name}`" for name in columns)
    return f"combination of {', '.join(others)} and {last}" if others else last


def _kind(kind: pa.DataType) -> str:
    return "string" if pa.types.is_dictionary(kind) else str(kind)


def _meaning(field: pa.Field) -> str:
    """Return the meaning of a column of a raw result file.

    The column `value` of monitor.parquet has another meaning for each metric, so the text refers to
    the table of metrics.
    """
    return str(field.metadata.get(b"meaning", b"see the metrics below").decode())


def _rows(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    lines += ["| `" + " | ".join(map(_cell, row)).replace(" |", "` |", 1) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|")


if __name__ == "__main__":
    print(dictionary(), end="")

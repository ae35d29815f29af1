"""Read the results of a study from its folder or archive, and check them for a comparison."""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from perseus.host.parquet import TEXT
from perseus.host.printable import printable
from perseus.results import archive
from perseus.results.records import PeakRecord
from perseus.results.repeats import WORST_FIRST, key
from perseus.results.schema import Column, Schema
from perseus.results.tables import module_of

NEEDED: Final = {
    "peaks": (
        *("study", "server", "scenario", "load_line", "kind", "preset", "mix", "verdict", "reason"),
        *("repeats_used", "requests", "estimate_rps", "ci_low_rps", "ci_high_rps"),
        *("sharing_ratio", "sharing_ratio_low", "sharing_ratio_high"),
    ),
    "tenants": (
        *("scenario", "load_line", "cell", "tenant", "model", "rate_rps", "request_bytes"),
        *("preprocessing", "sla_percentile", "sla_ms", "p95_ms", "p95_low_ms", "p95_high_ms"),
    ),
    "costs": (
        *("server", "scenario", "load_line", "instance", "region", "pricing", "usd_per_hour"),
        "usd_per_million_inferences",
    ),
    "aa": ("server", "cell", "windows", "answered_rps", "low_rps", "high_rps", "noise_floor"),
}
"""Tables that a comparison reads, and the columns that each table must have."""

FINITE: Final = (
    *("rate_rps", "request_bytes", "sla_percentile", "sla_ms", "usd_per_hour"),
    *("answered_rps", "noise_floor"),
)
"""Columns in which every number must be finite, in all tables that a comparison reads."""

MAX_ROWS: Final = 1_000_000
"""A comparison rejects a table with more than MAX_ROWS rows, because a small Parquet file may
contain an enormous table."""

READ = re.compile(
    r"(?P<root>(?:[^/]+/)*)"
    r"(?P<name>tables/(?:peaks|tenants|costs|aa)\.parquet|raw/[^/]+/record\.json"
    r"|models/[^/]+/check\.json)"
)
"""Names of the files that a comparison reads."""

Files = dict[str, bytes]
"""Content of each file, by its path relative to the folder of the study."""


class CompareError(ValueError):
    """Error: Perseus cannot compare the results of two studies. `problems` has one line for each
    problem."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = tuple(problems)
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        lines = "\n".join(f"  - {problem}" for problem in problems)
        super().__init__(f"The results cannot be compared, because of {count}:\n{lines}")


@dataclass(frozen=True)
class Source:
    """The part of a study's results that a comparison needs.

    `records` has the records of the searches from which Perseus made the tables. `records` is empty
    if all records are missing, or if a record comes from another version of Perseus. The comparison
    then uses only the tables, and `without_records` is the reason. `checks` has the content of
    check.json of each exported model, by the name of the model. `digest` is a hash of all files:
    two sources with the same digest are the same results.
    """

    where: str
    study: str
    digest: str
    tables: Mapping[str, pd.DataFrame]
    records: tuple[PeakRecord, ...]
    checks: Mapping[str, Mapping[str, Any]]
    without_records: str


def read_source(path: Path) -> Source:
    """Return the results in the folder or archive of a study. Raises CompareError with all
    problems."""
    if not path.exists():
        raise CompareError(["there is no such folder or archive"])
    files = _of_folder(path) if path.is_dir() else _of_archive(path)
    problems: list[str] = []
    tables = dict(_tables(files, problems))
    if problems:
        raise CompareError(problems)
    files = dict(_of_tables(files, tables["tenants"]))
    records, without = _records(files, set(tables["tenants"]["cell"]))
    if records and _of_records(records) != _of_peaks(tables["peaks"]):
        raise CompareError(
            [
                "the tables are older than the records of the cells: run the study to its end,"
                " which makes the tables again"
            ]
        )
    return Source(
        where=str(path),
        study=str(tables["peaks"]["study"].iloc[0]),
        digest=_digest(files),
        tables=tables,
        records=records,
        checks=dict(_checks(files)),
        without_records=without,
    )


def _of_folder(path: Path) -> Files:
    wanted = (*path.glob("tables/*.parquet"), *path.glob("raw/*/record.json"))
    files = (*wanted, *path.glob("models/*/check.json"))
    named = {file.relative_to(path).as_posix(): file for file in sorted(files)}
    return {name: file.read_bytes() for name, file in named.items() if READ.fullmatch(name)}


def _of_archive(path: Path) -> Files:
    """Return the files of the study in an archive. The study may be in any folder of the archive.

    Raises CompareError if the archive contains more than one study.
    """
    try:
        read = archive.read(path, READ)
    except archive.ArchiveError as error:
        raise CompareError([str(error)]) from None
    named = ((READ.fullmatch(name), content) for name, content in read.items())
    matches = [(match, content) for match, content in named if match]
    roots = {match["root"] for match, _ in matches if match["name"].startswith("tables/")}
    if len(roots) > 1:
        found = ", ".join(sorted(roots))
        raise CompareError([f"it has more than one study: {found}. Name an archive with one study"])
    return {match["name"]: content for match, content in matches if match["root"] in roots}


def _tables(files: Files, problems: list[str]) -> Iterator[tuple[str, pd.DataFrame]]:
    for name, columns in NEEDED.items():
        file = f"tables/{name}.parquet"
        if file not in files:
            problems.append(
                f"it has no {file}. Name the folder or archive with the results of a study, such as"
                " results/default"
            )
            continue
        try:
            table = _table(files[file])
            if missing := [column for column in columns if column not in table.column_names]:
                problems.append(
                    f"{file} comes from another version of Perseus and lacks the columns"
                    f" {', '.join(missing)}: make the tables again with this version (snakemake"
                    " tables)"
                )
            elif name == "peaks" and not table.num_rows:
                problems.append("this study has no search for a peak, and a comparison needs peaks")
            else:
                yield name, _frame(table, [of for of in _columns(name) if of.name in columns])
        except (pa.ArrowException, OSError, ValueError, KeyError) as error:
            problems.append(f"{file} cannot be read ({error})")


def _table(content: bytes) -> pa.Table:
    file = pq.ParquetFile(io.BytesIO(content))
    if file.metadata.num_rows > MAX_ROWS:
        raise ValueError(f"more than {MAX_ROWS} rows")
    return file.read()


def _columns(name: str) -> Sequence[Column]:
    schema: Schema = module_of(name).SCHEMA
    return schema.columns


def _frame(table: pa.Table, columns: Sequence[Column]) -> pd.DataFrame:
    """Check the types and the values of some columns of a table, and return these columns with
    unprintable characters escaped.

    Raises ValueError if a value is not allowed, and ArrowException if a type is wrong.
    """
    found = {}
    for of in columns:
        values = table[of.name].cast(of.kind)
        if not of.null and values.null_count:
            raise ValueError(f"{of.name} is null in {values.null_count} rows")
        series = values.to_pandas()
        if of.kind == TEXT:
            series = series.map(printable, na_action="ignore")
        elif len(wrong := series[(series < of.least) | (series > of.most)]):
            raise ValueError(f"{of.name} is {wrong.iloc[0]:g}, and must be {of.values}")
        elif of.name in FINITE and np.isinf(series).any():
            raise ValueError(f"{of.name} is infinite")
        found[of.name] = series
    return pd.DataFrame(found)


def _of_tables(files: Files, tenants: pd.DataFrame) -> Iterator[tuple[str, bytes]]:
    """Yield the files of all tables, and the files of the cells and models that the table `tenants`
    lists."""
    of = {"raw": set(tenants["cell"]), "models": set(tenants["model"])}
    for name, content in files.items():
        kind, rest = name.split("/", 1)
        if kind == "tables" or rest.split("/")[0] in of[kind]:
            yield name, content


def _records(files: Files, cells: set[str]) -> tuple[tuple[PeakRecord, ...], str]:
    """Return the records of all cells, or no records. The second value is the reason why there are
    no records; otherwise empty.

    Raises CompareError if only some records are missing. The reason is a run that stopped before
    its end, while the tables are from an earlier run.
    """
    contents = {
        name.split("/")[1]: files[name] for name in sorted(files) if name.startswith("raw/")
    }
    if not contents:
        return (), "its records are missing"
    if cells - contents.keys():
        raise CompareError(["the results are incomplete: run the study to its end"])
    found = []
    for cell, content in contents.items():
        try:
            plain = {**json.loads(content), "folder": Path(cell)}
            found.append(PeakRecord.model_validate(plain))
        except (ValidationError, ValueError, TypeError, RecursionError):
            return (), "its records come from another version of Perseus"
    return tuple(found), ""


Evidence = dict[tuple[str, str], tuple[str, int, int]]
"""Three values of each load line, by the names of scenario and load line: the verdict, the number
of repeats that found a limit of the server, and the number of requests. If the values from the
records differ from the values in the table `peaks`, the table is older than the records."""


def _of_records(records: Sequence[PeakRecord]) -> Evidence:
    lines: dict[tuple[str, str], list[PeakRecord]] = {}
    for record in records:
        lines.setdefault(key(record.task), []).append(record)
    found = {}
    for line, repeats in lines.items():
        verdict = str(min((each.outcome for each in repeats), key=WORST_FIRST.index))
        used = sum(each.has_limit for each in repeats)
        found[line] = verdict, used, sum(each.requests for each in repeats)
    return found


def _of_peaks(peaks: pd.DataFrame) -> Evidence:
    return {
        (row["scenario"], row["load_line"]): (row["verdict"], row["repeats_used"], row["requests"])
        for row in peaks.to_dict("records")
    }


def _checks(files: Files) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, content in files.items():
        if name.startswith("models/"):
            try:
                told = json.loads(content)
            except (ValueError, RecursionError):
                continue
            if isinstance(told, dict):
                yield name.split("/")[1], told


def _digest(files: Files) -> str:
    names = sorted(files)
    each = (f"{name} {hashlib.sha256(files[name]).hexdigest()}\n" for name in names)
    # A file name may contain bytes that are not valid Unicode.
    return hashlib.sha256("".join(each).encode(errors="surrogatepass")).hexdigest()

"""The answer of a study as the last lines of a run."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pandas as pd
from pyarrow import ArrowInvalid

from perseus.report.answers import answers
from perseus.report.answers.summary import NAMED
from perseus.report.numbers import bounds, significant
from perseus.report.shown import BELOW, fails_below, words
from perseus.results.tables import TABLES
from perseus.results.told_apart import told_apart

MOST_ANSWERS = 3
MOST_PEAKS = 20
PLAIN = str.maketrans(
    {"\N{MINUS SIGN}": "-", "\N{EN DASH}": "-", "\N{INFINITY}": "inf", BELOW: "*"}
)


def lines(tables: Path, encoding: str | None = None) -> Iterator[str]:
    """The first answers of the report, and the peaks; none where tables are missing or cut, and in
    plain characters where the encoding lacks others: neither is a reason for a run that has done
    its work to fail."""
    return (writable(line, encoding or "utf-8") for line in _lines(tables))


def writable(text: str, encoding: str) -> str:
    """The text, or as much of it as the encoding has."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(PLAIN).encode(encoding, "replace").decode(encoding)
    return text


def _lines(tables: Path) -> Iterator[str]:
    try:
        read = {name: pd.read_parquet(tables / f"{name}.parquet") for name in TABLES}
    except (OSError, ArrowInvalid):
        return
    frames = told_apart(read)
    for answer in islice(answers(frames), MOST_ANSWERS):
        yield answer.headline
        yield from (f"  {part.headline}" for part in answer.parts[:NAMED])
    peaks = frames["peaks"]
    if len(peaks):
        yield ""
        shown = peaks.head(MOST_PEAKS)
        yield from _peaks(shown)
        if shown.apply(fails_below, axis="columns").any():
            yield (
                f"{BELOW} single windows failed below the interval; the estimate weighs all of"
                " them: see the first failing rate in the report"
            )
    if len(peaks) > MOST_PEAKS:
        yield f"... and {len(peaks) - MOST_PEAKS} more: {tables}/peaks.csv"


def _peaks(peaks: pd.DataFrame) -> Iterator[str]:
    """A row for each load line, in columns."""
    rows = [
        ("server", "load line", "requests/s", "95 % interval", "certified", "verdict"),
        *(
            (
                str(row["server"]),
                str(row["mix"]),
                significant(row["estimate_rps"]),
                _interval(row),
                significant(row["certified_rps"]),
                words(row["verdict"]),
            )
            for _, row in peaks.iterrows()
        ),
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _interval(row: pd.Series) -> str:
    """Empty where there is none; with a mark where a rate below it failed."""
    if pd.isna(row["ci_low_rps"]):
        return ""
    mark = f" {BELOW}" if fails_below(row) else ""
    return bounds(row["ci_low_rps"], row["ci_high_rps"], significant) + mark

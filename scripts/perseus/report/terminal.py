"""Write the first conclusions and the peaks of a study as the last lines of a run."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pandas as pd
from pyarrow import ArrowInvalid

from perseus.peak.outcome import Outcome
from perseus.report.conclusions import conclusions
from perseus.report.conclusions.summary import NAMED
from perseus.report.numbers import bounds, significant
from perseus.report.shown_tables import BELOW, fails_below, plain_words
from perseus.results.scenario_names import with_scenario_names
from perseus.results.tables import TABLES

MAX_CONCLUSIONS = 3
MAX_PEAKS = 20
VERDICTS = "docs/reference/verdicts.md"
ADVICE = {
    Outcome.UNCERTIFIED: (
        "no tested rate was certified, or no rate failed, so the limit is unknown. If the reason"
        f" in the report names a preset, run the study with this preset. Else see {VERDICTS}."
    ),
    Outcome.INFEASIBLE: (
        "the server misses the SLA even at low rates, or Perseus could not export the model. Relax"
        " the SLA or choose a larger server. If the export failed, choose another runtime or"
        " precision."
    ),
    Outcome.PREDICTED: "Perseus did not measure this mix. To measure it, remove `predict: true`.",
}
"""Advice for some verdicts. For every other verdict, the lines refer to the page VERDICTS."""

PLAIN = str.maketrans(
    {"\N{MINUS SIGN}": "-", "\N{EN DASH}": "-", "\N{INFINITY}": "inf", BELOW: "*"}
)


def lines(tables: Path, encoding: str | None = None) -> Iterator[str]:
    """Return the first conclusions of the report, and the peaks, as lines for the terminal.

    If tables are missing or damaged, return no lines. This is no error, since the run itself was
    successful. `encoding` is the encoding of the terminal. Characters without a code in this
    encoding are replaced.
    """
    return (writable(line, encoding or "utf-8") for line in _lines(tables))


def writable(text: str, encoding: str) -> str:
    """Return the text, with replacements for characters that the encoding lacks."""
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
    frames = with_scenario_names(read)
    for conclusion in islice(conclusions(frames), MAX_CONCLUSIONS):
        yield conclusion.headline
        yield from (f"  {part.headline}" for part in conclusion.parts[:NAMED])
    peaks = frames["peaks"]
    if len(peaks):
        yield ""
        shown = peaks.head(MAX_PEAKS)
        yield from _peaks(shown)
        if shown.apply(fails_below, axis="columns").any():
            yield (
                f"{BELOW} some windows failed at rates below the interval. The estimate uses these"
                " windows, too. The report states the lowest failing rate."
            )
        for verdict in shown["verdict"].drop_duplicates():
            if verdict != Outcome.OK:
                advice = ADVICE.get(
                    verdict, f"for the reason, see the report; for help, see {VERDICTS}"
                )
                yield f"{plain_words(verdict)}: {advice}"
    if len(peaks) > MAX_PEAKS:
        yield f"... and {len(peaks) - MAX_PEAKS} more: {tables}/peaks.csv"


def _peaks(peaks: pd.DataFrame) -> Iterator[str]:
    rows = [
        ("server", "load line", "requests/s", "95 % interval", "certified", "verdict"),
        *(
            (
                str(row["server"]),
                str(row["mix"]),
                significant(row["estimate_rps"]),
                _interval(row),
                significant(row["certified_rps"]),
                plain_words(row["verdict"]),
            )
            for _, row in peaks.iterrows()
        ),
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _interval(row: pd.Series) -> str:
    """Return the interval of a peak as text, or an empty text if the interval is unknown. If a rate
    below the interval failed, the text ends in the mark BELOW."""
    if pd.isna(row["ci_low_rps"]):
        return ""
    mark = f" {BELOW}" if fails_below(row) else ""
    return bounds(row["ci_low_rps"], row["ci_high_rps"], significant) + mark

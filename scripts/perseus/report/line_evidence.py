"""Collect the evidence for each load line: offered rates, verdicts, charts and cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from perseus.report.charts import Chart, of_samples, of_windows
from perseus.report.evidence import CellEvidence, PageEvidence
from perseus.report.numbers import counted, percent, significant
from perseus.report.shown_tables import Row, plain_words, rows_of, span
from perseus.results.records import Record


@dataclass(frozen=True)
class LineEvidence:
    """Section of the page for one load line on one server. `facts` maps names to short texts."""

    id: str
    title: str
    result: str
    facts: Mapping[str, str]
    charts: Sequence[Chart]
    cells: Sequence[CellEvidence]


def lines(evidence: PageEvidence, peaks: pd.DataFrame) -> Iterator[LineEvidence]:
    """Yield one section for each load line, in the order of the cells. An experiment without load
    lines has one section for each of its runs."""
    found = {(row["scenario"], row["load_line"]): row for row in rows_of(peaks)}
    groups: dict[tuple[str, str], list[CellEvidence]] = {}
    for cell in evidence.sections():
        groups.setdefault(_line(evidence.records[cell.name]), []).append(cell)
    for line, cells in groups.items():
        scenario, run = line
        row = found.get(line)
        windows = [evidence.windows[cell.name] for cell in cells if cell.name in evidence.windows]
        all_windows = _searched(pd.concat(windows)) if windows else None
        name = f"{scenario}.{run}"
        charts = [] if all_windows is None else list(of_windows(all_windows, name))
        samples = [evidence.samples[cell.name] for cell in cells if cell.name in evidence.samples]
        if samples:
            charts += of_samples(pd.concat(samples), name)
        yield LineEvidence(
            id=f"evidence-{name}",
            title=f"{row['mix']} on {row['server']}" if row else f"{run} of {scenario}",
            result=_result(row) if row else ", ".join(dict.fromkeys(c.outcome for c in cells)),
            facts={} if all_windows is None else _facts(all_windows, row),
            charts=charts,
            cells=cells,
        )


def _searched(windows: pd.DataFrame) -> pd.DataFrame:
    """Return the windows that offered a load of the load line. These are all windows except
    warm-ups and saturation probes. If there are no such windows, return all windows."""
    of_search = windows[windows["scale"].notna()]
    return of_search if len(of_search) else windows


def _line(record: Record) -> tuple[str, str]:
    return record.task.scenario, record.task.run.name


def _result(row: Row) -> str:
    if row["estimate_rps"] is None:
        return plain_words(row["verdict"])
    limit = span(row, ("estimate_rps", "ci_low_rps", "ci_high_rps"))
    verdict = "" if row["verdict"] == "ok" else f", {plain_words(row['verdict'])}"
    return f"{limit.text} requests/s {limit.interval}{verdict}"


def _facts(windows: pd.DataFrame, row: Row | None) -> dict[str, str]:
    """Return short texts about a load line, by name. The texts state how many windows Perseus
    offered, the rates in these windows, and how many windows got each verdict.

    `windows` has the rows of windows.parquet of all repeats.
    """
    each = windows.groupby(["cell", "window"], sort=False)
    offered = each["offered_rps"].sum()
    verdicts = each["window_verdict"].first()
    low, high = significant(offered.min()), significant(offered.max())
    facts = {
        "offered": f"{_windows(offered)} at {low} to {high} requests/s, "
        f"{windows['requests'].sum():.0f} requests",
        **{
            plain_words(verdict): f"{_windows(rates)}, {_ends(rates)}"
            for verdict, rates in offered.groupby(verdicts, sort=False)
        },
    }
    if row and row["certified_rps"] is not None:
        rate = significant(row["certified_rps"])
        facts["certified"] = f"at {rate} requests/s, every SLA held in new windows"
    if row and row["first_failing_rps"] is not None:
        worst = windows.loc[windows["window_verdict"] == "fail", "exceedance"]
        over = (
            f"; in the worst of all failed windows, {percent(worst.max())} of the requests of a"
            " tenant were late"
            if len(worst)
            else ""
        )
        facts["first failure"] = f"at {significant(row['first_failing_rps'])} requests/s{over}"
    return facts


def _windows(rates: pd.Series) -> str:
    return counted(len(rates), "window")


def _ends(rates: pd.Series) -> str:
    low, high = significant(rates.min()), significant(rates.max())
    return f"at {low} requests/s" if low == high else f"at {low} to {high} requests/s"

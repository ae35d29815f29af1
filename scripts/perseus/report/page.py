"""Write the report of a study: one HTML file with the conclusion first, and then the evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import pandas as pd

from perseus.host.files import whole
from perseus.peak.outcome import Outcome
from perseus.report import charts, configuration, main_tables
from perseus.report.certainty import bridge, caveats, coverage, surer
from perseus.report.conclusions import conclusions
from perseus.report.demand_form import demand_form
from perseus.report.evidence import (
    WINDOW_COLUMNS,
    PageEvidence,
    read_records,
    read_samples,
    read_windows,
)
from perseus.report.figures import FIGURES, files_of, module_of
from perseus.report.headline import Headline, headline
from perseus.report.hosts import days, differences, hosts, without_statistics
from perseus.report.key_figures import cards
from perseus.report.line_evidence import lines
from perseus.report.numbers import listed
from perseus.report.shown_tables import MAX_ROWS
from perseus.report.style import NOTHING
from perseus.report.templating import data_url, environment
from perseus.results.records import Record
from perseus.results.scenario_names import with_scenario_names
from perseus.study.tasks.report import ReportTask

FIRST: Final = {
    "frontier": "Beyond the dashed line, sharing saves money if the servers are full.",
    "grid": "Each mark is a setting: marks further left are cheaper, and lower marks are faster.",
    "servers": "Each row is a server, with the cheapest on top: marks further left are better.",
    "background": "The peak of one model beside other models at constant rates.",
    "peaks": "The highest load that one server carries within the SLAs, all tenants together.",
    "replay": "The rate of the arrivals (top), and the share of requests within the SLA (bottom).",
    "soak": "The latencies, the memory and the open files of one server under the same load.",
    "slowdown": "Each square shows by what factor the model of the column slows down the model of"
    " the row.",
    "startup": "Each curve shows the share of server starts that took at most a given time.",
    "concurrency": "Left: latency over throughput; right: throughput over requests in flight.",
    "catalogue": "Each mark is a network: marks further left are cheaper, and higher marks are more"
    " accurate.",
    "aa": "Differences of throughput that are smaller than the height of the band may be noise of"
    " the host.",
}
"""Figures for the first screen, in the order of preference, each with a caption of one sentence."""
CLOSED_LOOPS: Final = ("concurrency", "startup", "aa")
"""Kinds of experiments that send all requests in closed loops."""
MAX_WARNINGS: Final = 5
MEANINGS: Final[Mapping[str, str]] = {
    Outcome.UNCERTIFIED: "No rate passed its certification, or no tested rate failed, so the limit"
    " is not known.",
    Outcome.INFEASIBLE: "The server misses the SLA at every tested load, or died under load, or"
    " Perseus could not export the model.",
    Outcome.BLOCKED: "The rates of the cell depend on a dedicated peak that was not found.",
    Outcome.UNSTEADY: "The speed of the server changed too much during the measurement.",
    Outcome.CLIENT_LIMITED: "The client reached its limit before the server reached its own limit.",
    Outcome.DISTURBED: "Other processes used the host. Measure again when the host is idle.",
    Outcome.THROTTLED: "A CPU quota stopped the server. Give the container a larger quota.",
    Outcome.FAILED: "The server died, did not start, or answered with errors.",
}
"""Explanations of outcomes without a result."""
NO_TASK: Final = ReportTask()
NO_FRAMES: Final[Mapping[str, pd.DataFrame]] = MappingProxyType({})


def write(
    tables: Mapping[str, Path],
    drawn: Sequence[Path],
    records: Sequence[Path],
    task: ReportTask,
    path: Path,
) -> None:
    """Write the report into the file `path`.

    `tables` maps the name of a table to its Parquet file. `drawn` has the SVG files of the figures,
    and `records` has the files record.json of all cells. The function reads the windows of a cell
    from the folder of its record.
    """
    frames = with_scenario_names({name: pd.read_parquet(file) for name, file in tables.items()})
    loaded = read_records(records)
    figures = {file.stem: file.read_bytes() for file in drawn}
    html = render(frames, figures, loaded, task, read_windows(loaded), read_samples(loaded))
    with whole(path) as partial:
        partial.write_text(html, encoding="utf-8")


def render(
    tables: Mapping[str, pd.DataFrame],
    drawn: Mapping[str, bytes],
    records: Sequence[Record],
    task: ReportTask = NO_TASK,
    windows: Mapping[str, pd.DataFrame] = NO_FRAMES,
    samples: Mapping[str, pd.DataFrame] = NO_FRAMES,
) -> str:
    """Return the HTML of the report, with all text from the data escaped and each figure embedded.

    `windows` and `samples` map the name of a cell to its windows and its monitor samples. If a cell
    was measured several times, the windows and samples are from the attempt that its record
    describes.
    """
    evidence = PageEvidence({record.task.cell: record for record in records}, windows, samples)
    failures = [record for record in records if record.outcome not in ("ok", "predicted")]
    doubtful = [record for record in records if record.warnings]
    figures, conclusion = _figures(drawn), headline(tables)
    first = _first(figures, conclusion)
    predicted = sum(record.outcome == Outcome.PREDICTED for record in records)
    return (
        environment()
        .get_template("page.html")
        .render(
            study=evidence.study,
            seed=records[0].task.seed,
            measured=days(records),
            headline=conclusion,
            cards=cards(tables, len(records) - predicted),
            surer=surer(tables, records),
            coverage=coverage(tables),
            caveats=list(caveats(tables)),
            bridge=bridge(tables),
            demand=demand_form(tables, task.demand),
            first=first,
            brief=FIRST[first["name"]] if first else "",
            conclusions=list(conclusions(tables)),
            tables=list(main_tables.tables(tables, evidence)),
            figures=[each for each in figures if each is not first],
            empty_figures=[name for name in FIGURES if name in drawn and _is_empty(drawn[name])],
            charts=[*charts.of_frontiers(tables), *charts.of_costs(tables["break_even"])],
            evidence=evidence,
            lines=list(lines(evidence, tables["peaks"])),
            window_columns=WINDOW_COLUMNS,
            doubtful=doubtful[:MAX_WARNINGS],
            all_doubtful=len(doubtful),
            failures=failures[:MAX_ROWS],
            meanings={o: MEANINGS[o] for o in dict.fromkeys(each.outcome for each in failures)},
            has_open_loop=any(record.task.run.kind not in CLOSED_LOOPS for record in records),
            has_searches=not tables["peaks"].empty,
            has_savings=bool(tables["savings"]["saving"].notna().any()),
            all_failures=len(failures),
            again=[record for record in records if len(record.attempts) > 1][:MAX_ROWS],
            cells=len(records),
            predicted=predicted,
            hosts=hosts(records),
            differences=differences(records),
            without_statistics=without_statistics(records),
            configuration=list(configuration.tables(task, records)),
            presets=configuration.presets(records),
            traces=task.traces,
        )
    )


def _first(figures: Sequence[dict[str, Any]], conclusion: Headline) -> dict[str, Any] | None:
    """Return the figure for the first screen: the figure of the headline or, if the study does not
    have this figure, the first known figure in FIRST. Return None if there is no such figure."""
    known = {each["name"]: each for each in figures}
    return next((known[name] for name in (conclusion.figure, *FIRST) if name in known), None)


def _figures(drawn: Mapping[str, bytes]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "data": data_url(drawn[name]),
            "caption": module_of(name).CAPTION,
            "files": listed(files_of(name)),
        }
        for name in FIGURES
        if name in drawn and not _is_empty(drawn[name])
    ]


def _is_empty(svg: bytes) -> bool:
    return f'id="{NOTHING}"'.encode() in svg

"""Make the table `attainment`: the share of requests within the SLA in each second and minute of a
replay."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from perseus.host.parquet import REAL, TEXT, WHOLE
from perseus.results.columns import CELL, cell
from perseus.results.records import Row
from perseus.results.schema import Schema, ascending, close, column, holds
from perseus.results.study_results import StudyResults
from perseus.results.tables.replay import PHASES, Offered, ReplayRecord

BINS_S = (1, 60)

DESCRIPTION = (
    "One row per time bin (1 s or 60 s), phase and tenant of each replay. The table is empty"
    " without an experiment `replay`."
)
SCHEMA = Schema(
    [
        *CELL,
        column("tenant", TEXT, "", "name of the tenant"),
        column(
            "phase",
            TEXT,
            "",
            "phase of the replay: shared (all tenants have load) or alone (only this tenant has"
            " load). Both phases have the same intended send times.",
            choices=PHASES,
        ),
        column(
            "bin_s", WHOLE, "s", "length of the time bin. The last bin of a window may be shorter."
        ),
        column("start_s", WHOLE, "s", "time from the start of the window to the start of the bin"),
        column(
            "requests",
            WHOLE,
            "requests",
            "number of requests with an intended send time in the bin",
        ),
        column(
            "within",
            WHOLE,
            "requests",
            "number of requests that have an intended send time in the bin and a latency within"
            " the SLA",
        ),
        column(
            "attained",
            REAL,
            "share",
            "share of the requests in the bin that met the SLA: within / requests. Null for a bin"
            " without requests.",
        ),
    ],
    key=("cell", "tenant", "phase", "bin_s", "start_s"),
    holds=[
        ascending("within", "requests"),
        holds(
            "attained = within / requests",
            lambda attained, within, requests: close(attained * requests, within),
        ),
    ],
)


def rows(results: StudyResults) -> Iterator[Row]:
    for record in results.of_kind(ReplayRecord):
        for offered in record.offered:
            for bin_s in BINS_S:
                for bin_row in _of_bins(offered, bin_s):
                    of = {"tenant": offered.tenant, "phase": offered.phase}
                    yield {**cell(record.task), **of, **bin_row}


def _of_bins(offered: Offered, bin_s: int) -> Iterator[Row]:
    starts = range(0, len(offered.requests_each_s), bin_s)
    sums = [
        np.add.reduceat(each, starts).tolist()
        for each in (offered.requests_each_s, offered.within_each_s)
    ]
    for start_s, requests, within in zip(starts, *sums, strict=True):
        yield {
            "bin_s": bin_s,
            "start_s": start_s,
            "requests": requests,
            "within": within,
            "attained": within / requests if requests else np.nan,
        }

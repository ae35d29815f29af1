"""Make the tables of every report: peaks, savings, costs and response times.

The module `own_tables` makes the tables of experiments, grids and fleets.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from perseus.report.evidence import PageEvidence
from perseus.report.links import COSTS, PEAKS, line_id
from perseus.report.numbers import significant
from perseus.report.own_tables import sections
from perseus.report.shown_tables import (
    BELOW,
    MAX_ROWS,
    Entry,
    Remark,
    Row,
    ShownTable,
    between,
    count,
    fails_below,
    machine_text,
    plain_words,
    probability,
    rows_of,
    span,
)
from perseus.report.shown_tables import share as in_percent
from perseus.results.tables import OF_KINDS, PREDICTIONS, TABLES
from perseus.results.tables import module_of as table_module

AT_MOST = "\N{NO-BREAK SPACE}\N{LESS-THAN OR EQUAL TO}\N{NO-BREAK SPACE}"

NO_DAY = (
    "The date of some prices is not known: for example, a source may state a version in place of a"
    " date. To state the date of your own prices, set the keys costs.prices and costs.priced_on."
)


def tables(frames: Mapping[str, pd.DataFrame], evidence: PageEvidence) -> Iterator[ShownTable]:
    """Yield all tables of the report, in the order of the page."""
    rows = {name: rows_of(frame, table_module(name).SCHEMA.arrow) for name, frame in frames.items()}
    first = [name for name in TABLES if name not in (*OF_KINDS, *PREDICTIONS)]
    yield from sections(first, rows, evidence)
    yield _peaks(rows["peaks"], rows["ceilings"], evidence)
    if rows["savings"]:
        yield _savings(rows["savings"])
    if any(row["predicted_ratio"] is not None for row in rows["predictions"]):
        yield from sections(PREDICTIONS, rows, evidence)
    yield from _costs(rows["costs"], rows["peaks"])
    yield _response_times(rows["tenants"], evidence)
    if pictures := [row for row in rows["tenants"] if row["preprocessing"]]:
        yield _preprocessing(pictures, evidence)
    yield from sections(OF_KINDS, rows, evidence)


def _peaks(rows: list[Row], ceilings: list[Row], evidence: PageEvidence) -> ShownTable:
    below = [row for row in rows if fails_below(row)]
    remarks = [
        Remark(
            "The ceiling of the client is unreliable",
            f"for {row['server']} and requests of {row['models']}: {row['problem']}. The"
            " table therefore does not show how busy the client was. Stop other programs, and run"
            " `make again` to measure the ceiling again.",
        )
        for row in ceilings
        if row["problem"]
    ] + [
        Remark(
            "A cliff",
            f"on {row['server']}, {row['mix']}: {row['cliff']}. Near this load, a small increase of"
            " the load raises the latency a lot. In production, stay well below this load.",
        )
        for row in rows
        if row["cliff"]
    ]
    if below:
        remarks.append(
            Remark(
                f"{BELOW} Fails below the interval:",
                "the first failing rate is the lowest rate above the certified rate at which a"
                " window of any repeat failed. The interval can lie above this rate, because the"
                " estimate also uses the windows that passed near this rate or above this rate.",
            )
        )
    return ShownTable(
        title=PEAKS,
        note=(
            "Requests/s of all models together, with 95 % intervals in brackets. Certified: a"
            " rate at which every SLA held in windows after the search; with repeats, the lowest"
            " certified rate of all repeats. Repeats: the number of repeats that found a limit; if"
            " a repeat found no limit, at least one end of the interval is open (not known)."
            " Dedicated servers replaced: the number of full dedicated servers whose load one"
            " shared server carries (sharing ratio). This number is corrected for changes of the"
            " host's speed between the runs (column speed_change in savings.csv). Load of the"
            " client: the estimated limit, divided by the highest rate at which the client can"
            " send requests to a model that does no work."
        ),
        columns=(
            "server",
            "load line",
            "certified",
            "estimated limit",
            "first failing",
            "dedicated servers replaced",
            "load of the client",
            "repeats",
            "verdict",
        ),
        rows=[_peak(row, evidence) for row in rows[:MAX_ROWS]],
        ids=[line_id(row) for row in rows[:MAX_ROWS]],
        remarks=remarks,
        total=len(rows),
        file="peaks",
    )


def _peak(row: Row, evidence: PageEvidence) -> list[Entry]:
    certified, failing = _decisive(row, evidence)
    cells = evidence.cells_of(str(row["scenario"]), str(row["load_line"]))
    first = evidence.link(cells[0].task.cell) if cells else ""
    replaced = ("sharing_ratio", "sharing_ratio_low", "sharing_ratio_high")
    itself = Entry(significant(None if row["estimate_rps"] is None else 1))
    mark = f" {BELOW}" if fails_below(row) else ""
    return [
        Entry(str(row["server"])),
        Entry(str(row["mix"]), link=first),
        Entry(significant(row["certified_rps"]), link=certified),
        span(row, ("estimate_rps", "ci_low_rps", "ci_high_rps")).to(first),
        Entry(significant(row["first_failing_rps"]) + mark, link=failing),
        itself if row["kind"] == "dedicated" else span(row, replaced),
        Entry(in_percent(row["client_load"])),
        Entry(f"{row['repeats_used']} of {row['repeats']}"),
        Entry(plain_words(row["verdict"])),
    ]


def _decisive(row: Row, evidence: PageEvidence) -> tuple[str, str]:
    """Return the anchors of two windows of a load line: the window that certified the lowest rate,
    and the window that failed at the lowest rate. The windows of all repeats count.

    If no window certified a rate, or if no window failed, the anchor of this window is empty.
    """
    cells = evidence.searches_of(str(row["scenario"]), str(row["load_line"]))
    certified = min(
        (record for record in cells if record.certified_window >= 0),
        key=lambda record: record.certified_scale,
        default=None,
    )
    failing = min(
        (record for record in cells if math.isfinite(record.first_failing_scale)),
        key=lambda record: record.first_failing_scale,
        default=None,
    )
    return (
        "" if certified is None else evidence.certified_link(certified.task.cell),
        "" if failing is None else evidence.failing_link(failing.task.cell),
    )


def _savings(rows: list[Row]) -> ShownTable:
    return ShownTable(
        title="Savings of sharing",
        note="Saving of full shared servers, as a share of the cost of full dedicated servers of"
        " the same type. On GPUs, the PERSEUS study (LeMay, Li and Guo, 2020) found savings of up"
        ' to 12 % by the same formula. The intervals in the column "corrected" are valid for all'
        " mixes of a scenario at once. Noise of the host: in the experiment aa, two starts of the"
        " same server may differ in throughput by this share.",
        columns=(
            "server",
            "load line",
            "saving",
            "P(saving > 0)",
            "corrected",
            "noise of the host",
        ),
        rows=[
            [
                Entry(str(row["server"])),
                Entry(str(row["mix"]), link=line_id(row)),
                span(row, ("saving", "ci_low", "ci_high"), "percent"),
                Entry(probability(row["probability_of_saving"])),
                Entry("", between(row, ("ci_simultaneous_low", "ci_simultaneous_high"), "percent")),
                Entry(in_percent(row["noise_floor"])),
            ]
            for row in rows[:MAX_ROWS]
        ],
        total=len(rows),
        file="savings",
    )


def _costs(rows: list[Row], peaks: list[Row]) -> Iterator[ShownTable]:
    """Yield the table of costs and the table of prices.

    For each load line, the table of costs has one row per machine and region. A remark lists the
    servers without a price.
    """
    priced = {row["server"] for row in rows}
    unpriced = sorted({str(row["server"]) for row in peaks} - priced)
    if not rows:
        yield ShownTable(
            title=COSTS,
            note="",
            columns=(),
            rows=[],
            total=0,
            file="costs",
            empty="No server of this study has a price of the kinds in costs.pricing, so the report"
            " has no costs. Set the key price of the servers, or change costs.pricing. Then run the"
            " study again: Perseus computes the costs, but repeats no measurement.",
        )
        return
    pricings = list(dict.fromkeys(str(row["pricing"]) for row in rows))
    lines: dict[tuple[str, ...], dict[str, Row]] = {}
    prices: dict[tuple[str, ...], dict[str, Row]] = {}
    for row in rows:
        place = f"{row['region']} {row['zone']}" if row["zone"] else str(row["region"])
        instance = (str(row["server"]), machine_text(row), place)
        line = (str(row["scenario"]), str(row["load_line"]), *instance)
        lines.setdefault(line, {})[str(row["pricing"])] = row
        prices.setdefault(instance, {})[str(row["pricing"])] = row
    joules = any(row["joules_per_inference"] is not None for row in rows)
    by_price = [
        f"{what}, {plain_words(pricing)}"
        for pricing in pricings
        for what in ("at the estimated limit", "at the certified rate", "on dedicated servers")
    ]
    yield ShownTable(
        title=COSTS,
        note="USD per million inferences in the proportion of the mix. Each cost assumes that the"
        " server always runs at the rate in the heading of the column. On dedicated servers: the"
        " cost of the same inferences if each model has dedicated servers.",
        columns=("server", "load line", *by_price, *(["J per inference"] if joules else [])),
        rows=[
            [
                *_costs_of(paid, pricings),
                *([Entry(significant(_any(paid)["joules_per_inference"]))] if joules else []),
            ]
            for paid in list(lines.values())[:MAX_ROWS]
        ],
        remarks=[Remark("Without a price:", f"{', '.join(unpriced)}.")] if unpriced else [],
        total=len(lines),
        file="costs",
        empty="",
    )
    sources = "; ".join(sorted({str(row["price_source"]) for row in rows}))
    no_day = "" if all(row["price_date"] for row in rows) else f" {NO_DAY}"
    yield ShownTable(
        title="Prices",
        note=f"USD per hour, from {sources}. Spot prices change, and the provider may take spot"
        " servers away. The prices do not include traffic and storage. If you pay other prices,"
        " enter them in the section Your demand, or name another list in `costs.prices` and run the"
        f" study again. New prices need no new measurement.{no_day}",
        columns=(
            "server",
            "instance",
            "region",
            *(plain_words(pricing) for pricing in pricings),
            "valid on",
        ),
        rows=[
            [
                *map(Entry, instance),
                *(Entry(_usd_per_hour(paid, each)) for each in pricings),
                Entry(_any(paid)["price_date"] or "not known"),
            ]
            for instance, paid in list(prices.items())[:MAX_ROWS]
        ],
        remarks=[
            Remark("Doubtful:", f"the price of {instance[0]}: {_any(paid)['price_doubts']}.")
            for instance, paid in list(prices.items())[:MAX_ROWS]
            if _any(paid)["price_doubts"]
        ],
        total=len(prices),
        file="costs",
        empty="",
    )


def _costs_of(paid: Mapping[str, Row], pricings: Sequence[str]) -> Iterator[Entry]:
    """Yield the entries of a row of the table of costs: the load line, and three costs for each
    pricing. `paid` has the rows of the table costs for this load line, by pricing."""
    first = _any(paid)
    yield Entry(str(first["server"]))
    yield Entry(str(first["mix"]), link=line_id(first))
    names = ("usd_per_million_inferences", "ci_low_usd", "ci_high_usd")
    for pricing in pricings:
        if pricing in paid:
            row = paid[pricing]
            yield span(row, names)
            yield Entry(significant(row["usd_per_million_certified"]))
            yield Entry(significant(row["dedicated_usd_per_million"]))
        else:
            yield from [Entry(significant(None))] * 3


def _any(paid: Mapping[str, Row]) -> Row:
    return next(iter(paid.values()))


def _usd_per_hour(paid: Mapping[str, Row], pricing: str) -> str:
    return f"{paid[pricing]['usd_per_hour']:g}" if pricing in paid else significant(None)


def _response_times(rows: list[Row], evidence: PageEvidence) -> ShownTable:
    # Without a certified rate, rate_rps is null. A tenant without load in a mix has rate 0.
    certified = [row for row in rows if row["rate_rps"]]
    return ShownTable(
        title="Response times at the certified rates",
        note=(
            "Milliseconds since the intended send time. Queue, compute and client are the means of"
            " the parts of the latency. Slowdown: p95 beside the other models, divided by p95 alone"
            " on the same server at the same rate. Requests: the number of counted requests and, in"
            " brackets, the number of independent requests that would give equally strong evidence."
            " Late requests: the share of requests that exceed the latency limit or fail."
        ),
        columns=(
            "cell",
            "tenant",
            "requests/s",
            "requests",
            "p50",
            "p95",
            "p99",
            "SLA",
            "late requests",
            "slowdown",
            "queue",
            "compute",
            "client",
        ),
        rows=[_response_time(row, evidence) for row in certified[:MAX_ROWS]],
        total=len(certified),
        file="tenants",
        empty="No rate was certified.",
    )


def _response_time(row: Row, evidence: PageEvidence) -> list[Entry]:
    cell = str(row["cell"])
    window = evidence.certified_link(cell) if evidence.link(cell) else ""
    times = [Entry(significant(row[name])) for name in ("p50_ms", "p95_ms", "p99_ms")]
    parts = [Entry(significant(row[name])) for name in ("queue_ms", "compute_ms", "client_ms")]
    return [
        Entry(cell, link=evidence.link(cell)),
        Entry(str(row["tenant"])),
        Entry(significant(row["rate_rps"]), link=window),
        Entry(count(row["requests"]), f"(worth {count(row['effective_requests'])})"),
        *times,
        Entry(f"p{row['sla_percentile']:g}{AT_MOST}{row['sla_ms']:g}"),
        span(row, ("exceedance", "exceedance_low", "exceedance_high"), "percent").to(window),
        span(row, ("slowdown", "slowdown_low", "slowdown_high")),
        *parts,
    ]


def _preprocessing(rows: list[Row], evidence: PageEvidence) -> ShownTable:
    return ShownTable(
        title="Where images are converted into tensors",
        note=(
            "CPU time of a request at the certified rates, in milliseconds. To preprocess: the time"
            " in which the client converts the images of a request into tensors. The client does"
            " this before the windows. If the client converts the images, add this time to the CPU"
            " time of the client and to the latency."
        ),
        columns=(
            "cell",
            "tenant",
            "preprocessing",
            "estimated limit (requests/s)",
            "p95 (ms)",
            "bytes",
            "CPU of the client",
            "to preprocess",
            "CPU of the server",
        ),
        rows=[
            [
                Entry(str(row["cell"]), link=evidence.link(str(row["cell"]))),
                Entry(str(row["tenant"])),
                Entry(str(row["preprocessing"])),
                span(row, ("estimate_rps", "ci_low_rps", "ci_high_rps")),
                span(row, ("p95_ms", "p95_low_ms", "p95_high_ms")),
                Entry(count(row["request_bytes"])),
                Entry(significant(row["client_cpu_ms"])),
                Entry(significant(row["client_preprocess_ms"])),
                Entry(significant(row["server_cpu_ms"])),
            ]
            for row in rows[:MAX_ROWS]
        ],
        total=len(rows),
        file="tenants",
    )

"""The tables of a study, from the records and certified windows of its cells."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from perseus.results import cost
from perseus.results import repeats as lines
from perseus.host import parquet as schema
from perseus.results.repeats import Line, Record, interval, number
from perseus.peak.window import Phase
from perseus.results.loop_tables import ceilings, compute_ms, concurrency
from perseus.peak.stats import Interval
from perseus.results.table_schemas import SAVINGS, SCHEMAS

Row = dict[str, Any]


@dataclass(frozen=True)
class Raw:
    """What the tables are made of: records of cells, and of the client's ceilings.

    `windows` holds for each record its `compared_rows`.
    """

    records: Sequence[Record]
    windows: Sequence[Sequence[Row]]
    ceilings: Sequence[Record] = ()


def make(raw: Raw, settings: Mapping[str, Any]) -> dict[str, pa.Table]:
    """All tables by name; `settings` is a `plan.tables_slice`."""
    searches = [pair for pair in zip(raw.records, raw.windows, strict=True) if not _swept(pair[0])]
    found = lines.group([record for record, _ in searches], settings["seed"])
    of_client = [row for record in raw.ceilings for row in ceilings(record)]
    rows = {
        "peaks": [_peak(line, lines.dedicated(found, line), of_client) for line in found],
        "tenants": list(_tenants(found, searches)),
        "costs": list(_costs(found, settings)),
        "savings": list(_savings(found)),
        "ceilings": of_client,
        "concurrency": [
            row
            for record, windows in zip(raw.records, raw.windows, strict=True)
            if _swept(record)
            for row in concurrency(record, windows)
        ],
    }
    return {name: schema.table(rows[name], SCHEMAS[name]) for name in SCHEMAS}


def compared_rows(record: Record, windows: Path) -> list[Row]:
    """The rows of windows.parquet that the tables need of a cell.

    Of a search its last certified window, one row per tenant, and each tenant alone; of a sweep
    all.
    """
    if _swept(record):
        return list(pq.read_table(windows).to_pylist())
    if record["certified_window"] < 0:
        return []
    where = [[("window", "=", record["certified_window"])], [("phase", "=", Phase.ALONE)]]
    return list(pq.read_table(windows, filters=where).to_pylist())


def read(records: Sequence[Path], windows: Sequence[Path], ceilings: Sequence[Path]) -> Raw:
    """The records of all cells, with those of their windows that the tables need."""
    loaded = [json.loads(path.read_text()) for path in records]
    compared = [compared_rows(*pair) for pair in zip(loaded, windows, strict=True)]
    return Raw(loaded, compared, [json.loads(path.read_text()) for path in ceilings])


# Rows


def _swept(record: Record) -> bool:
    """Whether a cell is a sweep of concurrencies, not a search."""
    return bool(record["cell"]["line"]["kind"] == "concurrency")


def _line(line: Line) -> Row:
    cell = line.cell
    return {
        "study": cell["study"],
        "server": cell["server"]["name"],
        "scenario": cell["scenario"],
        "load_line": cell["line"]["name"],
        "kind": cell["line"]["kind"],
        "models": " + ".join(tenant["model"] for tenant in cell["tenants"]),
        "mix": lines.mix_text(cell),
        "verdict": line.verdict,
        "reason": line.reason,
    }


def _ends(name: str, found: Interval, names: tuple[str, str]) -> Row:
    return {name: found.value, names[0]: found.low, names[1]: found.high}


def _peak(line: Line, alone: Sequence[Line | None], ceilings: Sequence[Row]) -> Row:
    certified_scale, certified = line.certified
    failing_scale, failing_rps = line.first_failing
    ratio = lines.sharing_ratio(line, alone)
    total = interval(float(line.rates_rps.sum()), line.rates_draws_rps.sum(axis=1))
    sure = [np.nan if peak is None else peak.certified[0] for peak in alone]
    return {
        **_line(line),
        "device": line.cell["server"]["device"],
        "runtime": line.cell["server"]["runtime"],
        "certified_rps": float(certified.sum()),
        **_ends("estimate_rps", total, ("ci_low_rps", "ci_high_rps")),
        "first_failing_rps": failing_rps,
        "cliff": next((r["cliff"] for r in line.records if r["cliff"]), ""),
        "certified_scale": certified_scale,
        **_ends(
            "estimate_scale",
            interval(line.scale, line.scale_draws),
            ("ci_low_scale", "ci_high_scale"),
        ),
        "first_failing_scale": failing_scale,
        **_ends("sharing_ratio", interval(*ratio), ("sharing_ratio_low", "sharing_ratio_high")),
        "certified_sharing_ratio": float((certified / sure).sum()),
        "client_load": _client_load(line, ceilings),
        "repeats": len(line.records),
        "repeats_used": sum(map(lines.has_limit, line.records)),
        "requests": sum(record["requests"] for record in line.records),
        "measured_s": float(sum(record["measured_s"] for record in line.records)),
    }


def _client_load(line: Line, ceilings: Sequence[Row]) -> float:
    """Sum over the tenants of rate / ceiling of the client; NaN where a ceiling is not known."""
    ceiling_rps = {
        (row["server"], model, row["request_batch_size"]): row["ceiling_rps"]
        for row in ceilings
        for model in row["models"].split(" + ")
    }
    server = line.cell["server"]["name"]
    of_tenants = [
        ceiling_rps.get((server, tenant["model"], tenant["request_batch_size"]), np.nan)
        for tenant in line.cell["tenants"]
    ]
    return float((line.rates_rps / of_tenants).sum())


_FROM_WINDOW = (
    "requests",
    "effective_requests",
    "batches",
    "errors",
    "p50_ms",
    "p95_ms",
    "p95_low_ms",
    "p95_high_ms",
    "p99_ms",
    "sla_percentile_ms",
    "exceedance",
    "exceedance_low",
    "exceedance_high",
    "queue_ms",
    "client_ms",
)


def _tenants(
    found: Sequence[Line], searches: Sequence[tuple[Record, Sequence[Row]]]
) -> Iterator[Row]:
    of_line = {lines.key(line.records[0]): line for line in found}
    for record, rows in searches:
        line, cell = of_line[lines.key(record)], record["cell"]
        at_window = {row["tenant"]: row for row in rows if row["phase"] != Phase.ALONE}
        alone_at = {
            row["tenant"]: row
            for row in rows
            if row["phase"] == Phase.ALONE and row["offered_rps"] > 0
        }
        rates = lines.rates_rps(record, number(record["certified_scale"]))
        limit = number(record["estimate_scale"]) if lines.has_limit(record) else np.nan
        estimates = lines.rates_rps(record, limit)
        alone = lines.dedicated(found, line)
        for i, tenant in enumerate(cell["tenants"]):
            seen, peak = at_window.get(tenant["name"], {}), alone[i]
            yield {
                **_line(line),
                "verdict": record["outcome"],
                "reason": record["reason"],
                "cell": cell["cell"],
                "repeat": cell["repeat"],
                "tenant": tenant["name"],
                "model": tenant["model"],
                "rate_rps": float(rates[i]),
                "estimate_rps": float(estimates[i]),
                "base_rps": number(record["line"]["base_rps"][i]),
                "direction_rps": number(record["line"]["direction_rps"][i]),
                "dedicated_rps": np.nan if peak is None else float(peak.rates_rps[0]),
                "sla_percentile": tenant["sla_percentile"],
                "sla_ms": tenant["sla_ms"],
                **{name: seen.get(name) for name in _FROM_WINDOW},
                "compute_ms": compute_ms(seen),
                **_slowdown(seen, alone_at.get(tenant["name"], {})),
                "unloaded_p50_ms": record["unloaded_p50_ms"].get(tenant["name"]),
                "first_inference_ms": record["first_inference_ms"].get(tenant["name"]),
                "startup_s": record["startup_s"],
            }


def _slowdown(shared: Row, alone: Row) -> Row:
    """p95 shared / p95 alone at an equal rate (M11); the ends combine both on a logarithmic scale.

    The two windows are independent, so that the squares of their logarithmic errors add up.
    """
    names = ("p95_low_ms", "p95_ms", "p95_high_ms")
    ends = np.array([[number(row.get(name)) for name in names] for row in (shared, alone)])
    with np.errstate(divide="ignore", invalid="ignore"):
        (below, above), (alone_below, alone_above) = np.diff(np.log(ends), axis=1)
        ratio = ends[0, 1] / ends[1, 1]
        low = ratio / np.exp(np.hypot(below, alone_above))
        high = ratio * np.exp(np.hypot(above, alone_below))
    return {
        "alone_p95_ms": ends[1, 1],
        "slowdown": ratio,
        "slowdown_low": low,
        "slowdown_high": high,
    }


def _costs(found: Sequence[Line], settings: Mapping[str, Any]) -> Iterator[Row]:
    for line in found:
        price = settings["prices"][line.cell["server"]["name"]]
        ratio, _ = lines.sharing_ratio(line, lines.dedicated(found, line))
        images = line.images_per_request
        total, draws = float(line.rates_rps @ images), line.rates_draws_rps @ images
        for pricing in settings["pricing"]:
            usd = price[f"{pricing}_usd_per_hour"]
            if usd is None:
                continue
            each = interval(
                float(cost.usd_per_million(usd, total)), cost.usd_per_million(usd, draws)
            )
            certified = cost.usd_per_million(usd, float(line.certified[1] @ images))
            yield {
                **_line(line),
                "instance": price["instance"],
                "region": price["region"],
                "pricing": pricing,
                "usd_per_hour": usd,
                **_ends("usd_per_million_inferences", each, ("ci_low_usd", "ci_high_usd")),
                "usd_per_million_certified": float(certified),
                "dedicated_usd_per_million": each.value * ratio,
                "joules_per_inference": _joules_per_inference(line),
                "price_source": price["source"],
            }


def _joules_per_inference(line: Line) -> float:
    """Mean of the repeats, each at its certified rate; NaN where no power was measured."""
    each = [
        number(record.get("gpu_watts"))
        / (lines.rates_rps(record, number(record["certified_scale"])) @ line.images_per_request)
        for record in line.records
    ]
    known = [joules for joules in each if np.isfinite(joules)]
    return float(np.mean(known)) if known else np.nan


def _savings(found: Sequence[Line]) -> Iterator[Row]:
    scenarios: dict[str, list[Line]] = {}
    for line in found:
        if not line.is_dedicated:
            scenarios.setdefault(line.cell["scenario"], []).append(line)
    for shared in scenarios.values():
        alone = lines.dedicated(found, shared[0])
        for line, saving in zip(shared, cost.savings(shared, alone), strict=True):
            ratio, _ = lines.sharing_ratio(line, alone)
            yield {
                **_line(line),
                "reason": line.reason or _missing(line, alone),
                "sharing_ratio": ratio,
                **_ends("saving", saving.fractional, ("ci_low", "ci_high")),
                "probability_of_saving": saving.probability,
                "ci_simultaneous_low": saving.simultaneous.low,
                "ci_simultaneous_high": saving.simultaneous.high,
                "lines_compared": saving.compared,
                **_fleet(line, shared, alone),
            }


def _missing(line: Line, alone: Sequence[Line | None]) -> str:
    pairs = zip(line.tenants, alone, strict=True)
    names = [name for name, peak in pairs if peak is None or not len(peak.scale_draws)]
    return f"no dedicated peak of {', '.join(names)}" if names else ""


def _fleet(line: Line, shared: Sequence[Line], alone: Sequence[Line | None]) -> Row:
    known = [other for other in shared if len(other.scale_draws)]
    peaks = [peak for peak in alone if peak is not None and len(peak.scale_draws)]
    if len(peaks) < len(alone) or not len(line.scale_draws):
        names = SAVINGS.names[SAVINGS.get_field_index("demand") :]
        return dict.fromkeys(names)
    made = cost.fleet(line, known, peaks)
    demand = zip(line.tenants, made.demand_rps, strict=True)
    used = zip(made.counts, [*known, *peaks], strict=True)
    return {
        "demand": ", ".join(f"{name} {rate:.4g}" for name, rate in demand),
        "dedicated_servers": made.dedicated_servers,
        "shared_servers": made.shared_servers,
        "shared_fleet": " + ".join(
            f"{count} x ({lines.mix_text(other.cell)})" for count, other in used if count
        ),
        **_ends("fleet_saving", made.saving, ("fleet_ci_low", "fleet_ci_high")),
    }

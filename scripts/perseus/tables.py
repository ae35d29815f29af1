"""The four tables of a study, from the records and certified windows of its cells."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from perseus import cost, lines, schema
from perseus.lines import Line, Record, interval, number
from perseus.stats import Interval
from perseus.table_schemas import SAVINGS, SCHEMAS

Row = dict[str, Any]


def make(
    records: Sequence[Record], certified: Sequence[Sequence[Row]], settings: Mapping[str, Any]
) -> dict[str, pa.Table]:
    """All tables by name.

    `certified` holds for each record the rows of its certified window, none if there is none;
    `settings` is a `plan.tables_slice`.
    """
    found = lines.group(records, settings["seed"])
    rows = {
        "peaks": [_peak(line, lines.dedicated(found, line)) for line in found],
        "tenants": list(_tenants(found, records, certified)),
        "costs": list(_costs(found, settings)),
        "savings": list(_savings(found)),
    }
    return {name: schema.table(rows[name], SCHEMAS[name]) for name in SCHEMAS}


def certified_rows(record: Record, windows: Path) -> list[Row]:
    """The rows of the last certified window of a cell, one per tenant."""
    if record["certified_window"] < 0:
        return []
    where = [("window", "=", record["certified_window"])]
    return list(pq.read_table(windows, filters=where).to_pylist())


def read(records: Sequence[Path], windows: Sequence[Path]) -> tuple[list[Record], list[list[Row]]]:
    """The records of all cells, without their windows but for the certified ones."""
    loaded = [json.loads(path.read_text()) for path in records]
    return loaded, [certified_rows(*pair) for pair in zip(loaded, windows, strict=True)]


# Rows


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


def _peak(line: Line, alone: Sequence[Line | None]) -> Row:
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
        "certified_scale": certified_scale,
        **_ends(
            "estimate_scale",
            interval(line.scale, line.scale_draws),
            ("ci_low_scale", "ci_high_scale"),
        ),
        "first_failing_scale": failing_scale,
        **_ends("sharing_ratio", interval(*ratio), ("sharing_ratio_low", "sharing_ratio_high")),
        "certified_sharing_ratio": float((certified / sure).sum()),
        "repeats": len(line.records),
        "repeats_used": sum(map(lines.has_limit, line.records)),
        "requests": sum(record["requests"] for record in line.records),
        "measured_s": float(sum(record["measured_s"] for record in line.records)),
    }


_FROM_WINDOW = (
    "requests",
    "effective_requests",
    "errors",
    "p50_ms",
    "p95_ms",
    "p99_ms",
    "sla_percentile_ms",
    "exceedance",
    "exceedance_low",
    "exceedance_high",
    "queue_ms",
    "client_ms",
)


def _tenants(
    found: Sequence[Line], records: Sequence[Record], certified: Sequence[Sequence[Row]]
) -> Iterator[Row]:
    of_line = {lines.key(line.records[0]): line for line in found}
    for record, rows in zip(records, certified, strict=True):
        line, cell = of_line[lines.key(record)], record["cell"]
        at_window = {row["tenant"]: row for row in rows}
        rates = lines.rates_rps(record, number(record["certified_scale"]))
        limit = number(record["estimate_scale"]) if lines.has_limit(record) else np.nan
        estimates = lines.rates_rps(record, limit)
        alone = lines.dedicated(found, line)
        for i, tenant in enumerate(cell["tenants"]):
            seen, peak = at_window.get(tenant["name"], {}), alone[i]
            computing = ("compute_input_ms", "compute_ms", "compute_output_ms")
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
                "compute_ms": sum(number(seen.get(name)) for name in computing),
                "unloaded_p50_ms": record["unloaded_p50_ms"].get(tenant["name"]),
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
                "joules_per_inference": None,
                "price_source": price["source"],
            }


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

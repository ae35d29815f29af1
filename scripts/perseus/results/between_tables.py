"""Check that no table of a study contradicts another table: for example, that the rates of all
tenants add up to the rate in the table `peaks`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from pandas.api.typing import SeriesGroupBy

from perseus.results.costs import usd_per_million
from perseus.results.fleets.plans import DEDICATED
from perseus.results.schema import TOLERANCE

Tables = Mapping[str, pd.DataFrame]
Images = Mapping[str, Mapping[str, int]]
"""Number of images per request, by the name of the scenario and then by the name of the tenant.
Tenants with one image per request have no entry."""

LINE: Final = ["scenario", "load_line"]
FLEET: Final = ["level", "strategy"]


@dataclass(frozen=True)
class Equation:
    """Values in one table (`stated`), and the same values computed from other tables (`derived`).

    `what` states the equation in words, for messages. Both series have the same index, which names
    the rows. A value that is NaN in one series must be NaN in the other series, too.
    """

    what: str
    stated: pd.Series
    derived: pd.Series

    def violations(self) -> Iterator[str]:
        stated, derived = (each.to_numpy(float) for each in (self.stated, self.derived))
        same = np.isclose(stated, derived, rtol=TOLERANCE, atol=1e-9, equal_nan=True)
        for i in np.flatnonzero(~same):
            name = self.stated.index[int(i)]
            of = ", ".join(map(str, name if isinstance(name, tuple) else (name,)))
            yield (
                f"{self.what} ({of}): the table has {stated[i]:.7g}, but {derived[i]:.7g} follows"
                " from other tables"
            )


def equations(tables: Tables, images: Images) -> Iterator[Equation]:
    """Yield the equations that must hold between the tables of a study."""
    yield from rates_of_tenants(tables)
    yield from costs_are_price_by_rate(tables, images)
    for each in EQUATIONS:
        yield from each(tables)


def rates_of_tenants(tables: Tables) -> Iterator[Equation]:
    peaks = tables["peaks"].set_index(LINE)
    for name, derived in (
        ("certified_rps", certified_rps(tables, {})),
        ("estimate_rps", estimate_rps(tables, {})),
    ):
        yield Equation(
            f"peaks: {name} is the sum of the rates of all tenants of the load line",
            peaks[name],
            derived.reindex(peaks.index),
        )


def costs_are_price_by_rate(tables: Tables, images: Images) -> Iterator[Equation]:
    ratios = tables["peaks"].set_index(LINE)["sharing_ratio"]
    rates = {
        "usd_per_million_inferences": estimate_rps(tables, images),
        "usd_per_million_certified": certified_rps(tables, images),
    }
    for table in ("costs", "other_costs"):
        costs = tables[table].set_index([*LINE, "pricing"])
        lines = pd.MultiIndex.from_frame(tables[table][LINE])
        for name, per_s in rates.items():
            pairs = zip(costs["usd_per_hour"], per_s.reindex(lines), strict=True)
            usd = pd.Series([usd_per_million(*pair) for pair in pairs], costs.index, dtype=float)
            yield Equation(
                f"{table}: {name} = usd_per_hour / (million inferences per hour)",
                costs[name],
                usd,
            )
        yield Equation(
            f"{table}: dedicated_usd_per_million = usd_per_million_inferences x sharing_ratio",
            costs["dedicated_usd_per_million"],
            costs["usd_per_million_inferences"] * ratios.reindex(lines).to_numpy(),
        )


def ratios_of_certified_rates(tables: Tables) -> Iterator[Equation]:
    peaks, tenants = tables["peaks"].set_index(LINE), tables["tenants"]
    by = ["server", "tenant", "preset"]
    alone = _lowest(tenants[tenants["kind"] == "dedicated"].groupby(by)["rate_rps"])
    of_tenants = pd.MultiIndex.from_frame(tenants[by])
    of_peaks = tenants["rate_rps"] / alone.reindex(of_tenants).to_numpy()
    shares = tenants.assign(share=of_peaks.where(tenants["rate_rps"] != 0, 0.0))
    cells = _total(shares.groupby([*LINE, "cell"], sort=False)["share"])
    yield Equation(
        "peaks: certified_sharing_ratio is the sum over the tenants of (certified rate / dedicated"
        " certified rate)",
        peaks["certified_sharing_ratio"],
        _lowest(cells.groupby(level=LINE, sort=False)).reindex(peaks.index),
    )


def ratios_are_those_of_the_peaks(tables: Tables) -> Iterator[Equation]:
    ratios = tables["peaks"].set_index(LINE)["sharing_ratio"]
    for table in ("savings", "background"):
        mine = tables[table].set_index(LINE)["sharing_ratio"]
        yield Equation(
            f"{table}: sharing_ratio equals sharing_ratio in the table peaks",
            mine,
            ratios.reindex(mine.index),
        )


def noise_is_that_of_the_host(tables: Tables) -> Iterator[Equation]:
    savings = tables["savings"].set_index([*LINE, "server"])["noise_floor"]
    floors = tables["aa"].groupby("server")["noise_floor"].max()
    of_rows = floors.reindex(savings.index.get_level_values("server"))
    yield Equation(
        "savings: noise_floor is the highest noise_floor of the server in the table aa",
        savings,
        of_rows.set_axis(savings.index),
    )


def fleets_are_their_servers(tables: Tables) -> Iterator[Equation]:
    fleets = tables["fleets"].set_index(FLEET)
    bought = fleets[fleets["servers"].notna()]
    servers = tables["fleet_servers"]
    priced = servers.assign(usd_per_hour=servers["servers"] * servers["usd_per_hour"])
    totals = priced.groupby(FLEET)[["servers", "usd_per_hour"]].sum()
    for name in totals:
        derived = totals[name].reindex(bought.index, fill_value=0)
        yield Equation(
            f"fleets: {name} is the sum over the servers in the table fleet_servers",
            bought[name],
            derived,
        )
    worst = _lowest(tables["fleet_models"].groupby(FLEET)["attained"])
    stated = fleets["attained"].reindex(worst.index)
    yield Equation(
        "fleets: attained is the lowest value of attained in the table fleet_models", stated, worst
    )


def savings_of_fleets(tables: Tables) -> Iterator[Equation]:
    fleets = tables["fleets"].set_index(FLEET)
    rows = tables["fleets"][tables["fleets"]["strategy"] == DEDICATED]
    alone = rows.set_index("level")["usd_per_hour"]
    of_level = alone.reindex(fleets.index.get_level_values("level")).set_axis(fleets.index)
    yield Equation(
        "fleets: saving = 1 - usd_per_hour / (usd_per_hour of dedicated servers)",
        fleets["saving"],
        (1 - fleets["usd_per_hour"] / of_level).where(of_level > 0),
    )
    changes = tables["fleet_changes"].set_index([*FLEET, "change"])
    of_changes = pd.MultiIndex.from_frame(tables["fleet_changes"][FLEET])
    before = fleets["usd_per_month"].reindex(of_changes).to_numpy()
    yield Equation(
        "fleet_changes: cost_ratio = usd_per_month / (usd_per_month in the table fleets)",
        changes["cost_ratio"],
        changes["usd_per_month"] / before,
    )


def servers_have_one_price(tables: Tables) -> Iterator[Equation]:
    costs = tables["costs"][tables["costs"]["pricing"] == "on_demand"]
    each = costs.drop_duplicates("server").set_index("server")["usd_per_hour"]
    over = tables["break_even"].set_index(["models", "total_rps", "server", "shared"])
    derived = over["servers"] * each.reindex(over.index.get_level_values("server")).to_numpy()
    known = derived.notna()
    yield Equation(
        "break_even: usd_per_hour = servers x usd_per_hour in the table costs",
        over["usd_per_hour"][known],
        derived[known],
    )


def recommendations_are_the_cheapest(tables: Tables) -> Iterator[Equation]:
    by, usd = ["grid", "mix", "load_line"], "usd_per_million_inferences"
    first = tables["grid"][tables["grid"]["rank"] == 1].set_index(by)[usd]
    stated = tables["recommendations"].set_index(by)[usd]
    yield Equation(
        f"recommendations: {usd} equals the value in the row of rank 1 of the table grid",
        stated,
        first.reindex(stated.index),
    )


def replays_are_their_seconds(tables: Tables) -> Iterator[Equation]:
    by = ["cell", "tenant", "phase"]
    sums = tables["attainment"].groupby([*by, "bin_s"])[["requests", "within"]].sum()
    shares = sums["within"] / sums["requests"]
    of_bins = pd.MultiIndex.from_frame(sums.reset_index()[by])
    stated = tables["replay"].set_index(by)["attained"].reindex(of_bins).set_axis(shares.index)
    yield Equation(
        "replay: attained equals the share of requests within the SLA over all bins in the table"
        " attainment",
        stated,
        shares,
    )


EQUATIONS: Final[tuple[Callable[[Tables], Iterator[Equation]], ...]] = (
    ratios_of_certified_rates,
    ratios_are_those_of_the_peaks,
    noise_is_that_of_the_host,
    fleets_are_their_servers,
    savings_of_fleets,
    servers_have_one_price,
    recommendations_are_the_cheapest,
    replays_are_their_seconds,
)
"""Functions that compute equations from the tables of a study, without other inputs."""


def certified_rps(tables: Tables, images: Images) -> pd.Series:
    """Return the certified rate of each load line, summed over its tenants: in inferences/s, or in
    requests/s if `images` is empty.

    The rate is the lowest of all repeats; NaN if a repeat has no certified rate.
    """
    cells = _of_cells(tables["tenants"], "rate_rps", images)
    return _lowest(cells.groupby(level=LINE, sort=False))


def estimate_rps(tables: Tables, images: Images) -> pd.Series:
    """Return the estimated peak of each load line, summed over its tenants: in inferences/s, or in
    requests/s if `images` is empty.

    The rate is the mean over the repeats that found a limit of the server.
    """
    return (
        _of_cells(tables["tenants"], "estimate_rps", images).groupby(level=LINE, sort=False).mean()
    )


def _of_cells(tenants: pd.DataFrame, rate: str, images: Images) -> pd.Series:
    """Return the sum of the column `rate` over the tenants of each cell: in inferences/s, or in
    requests/s if `images` is empty."""
    names = zip(tenants["scenario"], tenants["tenant"], strict=True)
    each = [images.get(scenario, {}).get(tenant, 1) for scenario, tenant in names]
    inferences = tenants.assign(inferences=tenants[rate] * np.array(each, dtype=float))
    return inferences.groupby([*LINE, "cell"], sort=False)["inferences"].sum(min_count=1)


# `min` and `sum` of a GroupBy of pandas 2 lack the parameter `skipna`, and clusters may have pandas
# 2.


def _lowest(groups: SeriesGroupBy) -> pd.Series:
    """Return the lowest value of each group; NaN if a value of the group is NaN."""
    return groups.agg(lambda values: values.min(skipna=False))


def _total(groups: SeriesGroupBy) -> pd.Series:
    """Return the sum of each group; NaN if a value of the group is NaN."""
    return groups.agg(lambda values: values.sum(skipna=False))

"""Make the table `savings`: the saving of each shared server at its peak, relative to the cost of
dedicated servers."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import numpy as np

from perseus.host.parquet import REAL, WHOLE
from perseus.results.columns import CI, LOAD_LINE, REPEATS, load_line, with_ends
from perseus.results.records import Row
from perseus.results.repeats import Alone, RepeatedPeak, speed_changes
from perseus.results.savings import savings
from perseus.results.schema import Schema, ascending, close, column, holds
from perseus.results.study_results import StudyResults
from perseus.results.tables.aa import noise_floors

DESCRIPTION = "One row per load line of a shared server."
SCHEMA = Schema(
    [
        *LOAD_LINE,
        column("sharing_ratio", REAL, "",
            "sharing ratio: the sum over the tenants of (rate at the peak of the shared server /"
            " dedicated peak)", least=0),
        column("speed_change", REAL, "",
            "factor by which the speed of the host changed between measurements: its speed in the"
            " cells of the shared server / its speed in the cells of the dedicated peaks. Perseus"
            " measures the speeds in saturation probes, and takes the geometric mean of this factor"
            " over the tenants. `sharing_ratio` is already corrected for the change"
            " (docs/explanation/sharing-ratio.md).", least=0),
        column("saving", REAL, "share",
            "saving of the shared server, relative to the cost of dedicated servers: 1 - 1 /"
            " sharing_ratio. If the saving is negative, sharing costs more.", least=-inf),
        column("ci_low", REAL, "share",
            f"lower end of the 95 % interval of `saving` {CI}", least=-inf),
        column("ci_high", REAL, "share",
            f"upper end of the 95 % interval of `saving` {CI}", least=-inf),
        column("probability_of_saving", REAL, "",
            "probability that sharing saves money: the share of the random draws in which the"
            " saving is above 0. Null if a repeat of the load line or of a dedicated peak found no"
            " limit (docs/explanation/repeats.md).",
               least=0, most=1),
        column("ci_simultaneous_low", REAL, "share",
            "lower end of the simultaneous 95 % interval of `saving`. Use simultaneous intervals to"
            " compare load lines: with a probability of 95 %, all these intervals of a scenario"
            " contain their true savings.",
               least=-inf),
        column("ci_simultaneous_high", REAL, "share",
            "upper end of the simultaneous 95 % interval of `saving`", least=-inf),
        column("noise_floor", REAL, "share",
            "noise floor of the host. In only 5 % of cases, two measurements with the same"
            " configuration differ by more than this share. Null without an experiment `aa`.",
               most=inf),
        column("lines_compared", WHOLE, "",
            "number of load lines of the scenario for which the simultaneous 95 % intervals are"
            " valid together"),
    ],
    key=("scenario", "load_line"),
    holds=[
        *REPEATS,
        holds(
            "saving = 1 - 1 / sharing_ratio",
            lambda saving, sharing_ratio: close(saving, 1 - 1 / sharing_ratio),
        ),
        ascending("ci_simultaneous_low", "ci_low", "saving", "ci_high", "ci_simultaneous_high"),
    ],
)  # fmt: skip


def rows(results: StudyResults) -> Iterator[Row]:
    scenarios: dict[str, list[RepeatedPeak]] = {}
    for peak in results.peaks.values():
        if not peak.is_dedicated:
            scenarios.setdefault(peak.task.scenario, []).append(peak)
    floors = noise_floors(results)
    for shared in scenarios.values():
        alone = results.alone(shared[0])
        ratios = [results.sharing_ratio(peak) for peak in shared]
        for peak, ratio, saving in zip(shared, ratios, savings(ratios), strict=True):
            yield {
                **load_line(peak),
                "reason": peak.reason or _missing(peak, alone),
                "sharing_ratio": ratio.value,
                "speed_change": _speed_change(peak, alone),
                **with_ends("saving", saving.fractional, ("ci_low", "ci_high")),
                "probability_of_saving": saving.probability,
                "ci_simultaneous_low": saving.simultaneous.low,
                "ci_simultaneous_high": saving.simultaneous.high,
                "noise_floor": floors.get(peak.task.server.name),
                "lines_compared": saving.compared,
            }


def _loaded(peak: RepeatedPeak, alone: Alone) -> list[tuple[str, RepeatedPeak | None]]:
    """For each tenant with load on a load line, return its name and its dedicated peak; None if the
    dedicated peak was not measured."""
    return [(peak.tenants[i], alone[i]) for i in peak.loaded]


def _speed_change(peak: RepeatedPeak, alone: Alone) -> float:
    loaded = _loaded(peak, alone)
    known = [each for _, each in loaded if each is not None]
    if len(known) < len(loaded):
        return np.nan
    return float(np.exp(np.log(speed_changes(peak, known)).mean()))


def _missing(peak: RepeatedPeak, alone: Alone) -> str:
    loaded = _loaded(peak, alone)
    names = [name for name, each in loaded if each is None or not each.is_known]
    return f"no dedicated peak of {', '.join(names)}" if names else ""

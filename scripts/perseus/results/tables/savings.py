"""Table `savings`: what sharing saves where servers are full, as a fraction of their cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from perseus.host.parquet import REAL, WHOLE, column
from perseus.results.columns import CI, LOAD_LINE, load_line, with_ends
from perseus.results.records import Row
from perseus.results.repeats import RepeatedPeak, sharing_ratio, speed_changes
from perseus.results.savings import savings
from perseus.results.study_results import StudyResults
from perseus.results.tables.aa import noise_floors

DESCRIPTION = "One row per shared load line."
SCHEMA = pa.schema(
    [
        *LOAD_LINE,
        column("sharing_ratio", REAL, "", "sum of rate / dedicated peak over the tenants"),
        column("speed_change", REAL, "", "how many times as fast the server was as in the dedicated"
               " cells, by what it answered each tenant alone (geometric mean); the dedicated peaks"
               " in sharing_ratio are multiplied by each tenant's"),
        column("saving", REAL, "share", "1 - 1 / sharing_ratio, of the cost of dedicated servers;"
               " negative: sharing costs more"),
        column("ci_low", REAL, "share", f"saving: lower end {CI}"),
        column("ci_high", REAL, "share", f"saving: upper end {CI}"),
        column("probability_of_saving", REAL, "", "share of the draws with saving > 0;"
               " null where an end of the interval is open"),
        column("ci_simultaneous_low", REAL, "share", "saving: lower end of the 95 % interval that"
               " holds for all lines of the scenario at once, so also for the best one"),
        column("ci_simultaneous_high", REAL, "share", "saving: its upper end"),
        column("noise_floor", REAL, "share", "noise of the host: the difference of two single"
               " cells that chance exceeds in 5 % of pairs; null without an experiment aa"),
        column("lines_compared", WHOLE, "", "lines of the scenario that the correction covers"),
    ]
)  # fmt: skip


def rows(results: StudyResults) -> Iterator[Row]:
    scenarios: dict[str, list[RepeatedPeak]] = {}
    for peak in results.peaks.values():
        if not peak.is_dedicated:
            scenarios.setdefault(peak.task.scenario, []).append(peak)
    floors = noise_floors(results)
    for shared in scenarios.values():
        alone = results.alone(shared[0])
        for peak, saving in zip(shared, savings(shared, alone), strict=True):
            yield {
                **load_line(peak),
                "reason": peak.reason or _missing(peak, alone),
                "sharing_ratio": sharing_ratio(peak, alone).value,
                "speed_change": _speed_change(peak, alone),
                **with_ends("saving", saving.fractional, ("ci_low", "ci_high")),
                "probability_of_saving": saving.probability,
                "ci_simultaneous_low": saving.simultaneous.low,
                "ci_simultaneous_high": saving.simultaneous.high,
                "noise_floor": floors.get(peak.task.server.name),
                "lines_compared": saving.compared,
            }


def _speed_change(peak: RepeatedPeak, alone: Sequence[RepeatedPeak | None]) -> float:
    loaded = [each for each, rate in zip(alone, peak.rates_rps, strict=True) if rate != 0]
    known = [each for each in loaded if each is not None]
    if len(known) < len(loaded):
        return np.nan
    return float(np.exp(np.log(speed_changes(peak, known)).mean()))


def _missing(peak: RepeatedPeak, alone: Sequence[RepeatedPeak | None]) -> str:
    pairs = zip(peak.tenants, alone, strict=True)
    names = [name for name, each in pairs if each is None or not each.is_known]
    return f"no dedicated peak of {', '.join(names)}" if names else ""

"""Make the table `knees`: for each server with closed loops, the concurrency beyond which the
throughput hardly grows (knee)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

from perseus.host.parquet import FLAG, REAL, TEXT, WHOLE
from perseus.results.columns import CELL, cell, with_ends
from perseus.results.records import Row
from perseus.results.scalability import FEWEST_LEVELS, QUEUEING, UNIVERSAL, Fit, fitted
from perseus.results.schema import Schema, ascending, column
from perseus.results.study_results import StudyResults
from perseus.results.tables.concurrency import ConcurrencyRecord

DESCRIPTION = (
    "The knee is the concurrency beyond which the throughput of closed loops hardly grows. One row"
    " per cell with closed loops. All numbers of requests and all throughputs are totals over the"
    " tenants. The table is empty without an experiment `concurrency`."
)
TITLE = "Knees of closed loops"
NOTE = (
    "Perseus fits a curve to the throughput of all tenants together, as a function of the number of"
    " requests in flight. With few requests in flight, the throughput grows along a straight line."
    " The knee is the number of requests in flight at which this straight line reaches the"
    " saturation throughput. Below the knee, the server is partly idle. Above the knee, additional"
    " requests only wait. 95 % intervals are in brackets."
)
SHOWN = {
    "cell": "cell",
    "concurrencies": "levels",
    "fit": "law",
    "knee (in flight)": ("knee", "knee_low", "knee_high"),
    "within the measured range": "bracketed",
    "one request in flight (requests/s)": ("single_rps", "single_low_rps", "single_high_rps"),
    "saturated (requests/s)": ("saturated_rps", "saturated_low_rps", "saturated_high_rps"),
    "throughput falls beyond (in flight)": ("highest", "highest_low", "highest_high"),
    "deviation from the fit": "error",
    "why not": "reason",
}
SCHEMA = Schema(
    [
        *CELL,
        column("levels", WHOLE, "",
            "number of concurrencies from which Perseus finds the knee. At these concurrencies, the"
            " server limited the throughput, and not the client or the host."),
        column("law", TEXT, "",
            "formula that fits the measured throughputs best: queueing network or universal"
            " scalability law. docs/explanation/closed-loops.md explains both formulas and their"
            " symbols, such as R, D and sigma.",
               null=True, choices=(QUEUEING, UNIVERSAL)),
        column("knee", REAL, "requests",
            "knee: the number of requests in flight at which the two asymptotes of the fitted"
            " throughput meet. The first asymptote is (throughput with one request in flight) x"
            " (number of requests in flight), and the second is the saturation throughput. The knee"
            " is R/D in the queueing network, and 1/sigma in the universal scalability law (for the"
            " symbols, see `law`)."),
        column("knee_low", REAL, "requests",
            "lower end of the 95 % interval of `knee`"),
        column("knee_high", REAL, "requests",
            "upper end of the 95 % interval of `knee`. Infinite if the measurements set no upper"
            " bound."),
        column("knee_rps", REAL, "requests/s",
            "fitted throughput at the whole number of requests in flight that is nearest to"
            " `knee`"),
        column("bracketed", FLAG, "",
            "true if concurrencies both below and above the knee were measured"),
        column("single_rps", REAL, "requests/s",
            "fitted throughput with one request in flight: 1/R in the queueing network, lambda in"
            " the universal scalability law (for the symbols, see `law`)"),
        column("single_low_rps", REAL, "requests/s",
            "lower end of the 95 % interval of `single_rps`"),
        column("single_high_rps", REAL, "requests/s",
            "upper end of the 95 % interval of `single_rps`"),
        column("saturated_rps", REAL, "requests/s",
            "saturation throughput according to the fit: 1/D in the queueing network, lambda/sigma"
            " in the universal scalability law (for the symbols, see `law`). If `kappa` is above 0,"
            " the server never reaches this throughput."),
        column("saturated_low_rps", REAL, "requests/s",
            "lower end of the 95 % interval of `saturated_rps`"),
        column("saturated_high_rps", REAL, "requests/s",
            "upper end of the 95 % interval of `saturated_rps`. Infinite if the measurements set no"
            " upper bound."),
        column("kappa", REAL, "",
            "coefficient kappa (coherency) of the universal scalability law. Null if the queueing"
            " network fits best.",
               least=0),
        column("kappa_low", REAL, "", "lower end of the 95 % interval of `kappa`",
               least=0),
        column("kappa_high", REAL, "",
            "upper end of the 95 % interval of `kappa`", least=0),
        column("highest", REAL, "requests",
            "number of requests in flight beyond which the fitted throughput falls: sqrt((1 -"
            " sigma) / kappa). Infinite if the throughput does not fall. Null if the queueing"
            " network fits best."),
        column("highest_low", REAL, "requests",
            "lower end of the 95 % interval of `highest`"),
        column("highest_high", REAL, "requests",
            "upper end of the 95 % interval of `highest`"),
        column("error", REAL, "share",
            "error of the fit: root mean square of the relative differences between measured and"
            " fitted throughputs",
               most=inf),
        column("verdict", TEXT, "",
            "outcome of the cell: ok, failed or infeasible (Perseus could not export the model for"
            " a setting of a grid)",
               choices=("ok", "failed", "infeasible")),
        column("reason", TEXT, "",
            "reason why Perseus found no knee, or note that the knee lies outside the measured"
            " concurrencies. Empty otherwise."),
    ],
    key=("cell",),
    holds=[
        ascending("knee_low", "knee", "knee_high"),
        ascending("single_low_rps", "single_rps", "single_high_rps"),
        ascending("saturated_low_rps", "saturated_rps", "saturated_high_rps"),
        ascending("kappa_low", "kappa", "kappa_high"),
        ascending("highest_low", "highest", "highest_high"),
    ],
)  # fmt: skip


def rows(results: StudyResults) -> Iterator[Row]:
    for record in results.of_kind(ConcurrencyRecord):
        totals_rps = record.totals_rps()
        levels = list(totals_rps)
        fit = fitted(levels, list(totals_rps.values()))
        yield {
            **dict.fromkeys(SCHEMA.names),
            **cell(record.task),
            "levels": len(levels),
            **(_found(fit) if fit else {}),
            "bracketed": bool(fit and levels[0] <= fit.knee.value <= levels[-1]),
            "verdict": record.outcome,
            "reason": record.reason or _reason(fit, levels),
        }


def _found(fit: Fit) -> Row:
    saturated = ("saturated_low_rps", "saturated_high_rps")
    found = {
        "law": fit.law,
        **with_ends("knee", fit.knee, ("knee_low", "knee_high")),
        "knee_rps": fit.knee_rps,
        **with_ends("single_rps", fit.single_rps, ("single_low_rps", "single_high_rps")),
        **with_ends("saturated_rps", fit.saturated_rps, saturated),
        "error": fit.error,
    }
    if fit.has_kappa:
        found |= with_ends("kappa", fit.kappa, ("kappa_low", "kappa_high"))
        found |= with_ends("highest", fit.highest, ("highest_low", "highest_high"))
    return found


def _reason(fit: Fit | None, levels: Sequence[int]) -> str:
    if fit is None:
        return (
            f"number of concurrencies at which the server limited the throughput: {len(levels)}; to"
            f" find a knee, Perseus needs at least {FEWEST_LEVELS}"
        )
    if fit.knee.value > levels[-1]:
        return (
            f"the knee lies above the highest concurrency ({levels[-1]} requests in flight):"
            " add higher concurrencies"
        )
    if fit.knee.value < levels[0]:
        return f"the knee lies below the lowest concurrency ({levels[0]} requests in flight)"
    return ""

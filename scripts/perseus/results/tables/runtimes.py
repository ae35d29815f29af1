"""Make the table `runtimes`, which compares the speed of runtimes at the same numeric precision."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from math import inf

import numpy as np

from perseus.host.parquet import REAL, TEXT, WHOLE
from perseus.results.columns import CI, PRESET, with_ends
from perseus.results.grids import cheapest
from perseus.results.records import Row
from perseus.results.repeats import RepeatedPeak
from perseus.results.schema import Schema, ascending, column, holds
from perseus.results.study_results import StudyResults
from perseus.results.tables.peaks import runtime
from perseus.study.setting import MARK

DESCRIPTION = (
    "The table compares the runtimes and precisions of each model. One row per dedicated peak. The"
    " table contains only models whose dedicated peaks Perseus measured with several runtimes or"
    " precisions. Without such a model, the table is empty."
)
TITLE = "Runtimes"
NOTE = (
    "The table compares the limit (estimated peak) of each model alone, in settings that differ"
    " only in runtime and precision. 95 % intervals are in brackets. P(fastest) is the probability"
    " that the runtime is the fastest of all runtimes with the same precision. At another"
    " precision, a network computes other operations and gives other responses. Therefore, 'limit /"
    " fastest limit in fp32' shows the gain from the precision, and not which runtime is faster."
)
SHOWN = {
    "model": "mix",
    "precision": "precision",
    "runtime": "runtime",
    "cores": "cores",
    "limit (requests/s)": ("estimate_rps", "ci_low_rps", "ci_high_rps"),
    "limit / fastest limit at this precision": ("rate_ratio", "ratio_low", "ratio_high"),
    "P(fastest)": "probability_fastest",
    "limit / fastest limit in fp32": ("fp32_ratio", "fp32_ratio_low", "fp32_ratio_high"),
    "relative error": "relative_error",
    "verdict": "verdict",
}
SCHEMA = Schema(
    [
        column("study", TEXT, "", "name of the study"),
        column("question", TEXT, "",
            "name of the comparison to which the row belongs: the name of the tenant with its"
            " settings in the grid, without the precision"),
        column("model", TEXT, "", "name of the model"),
        column("preset", TEXT, "", PRESET),
        column("mix", TEXT, "", "name of the tenant, as in the table peaks"),
        column("device", TEXT, "",
            "device that computes the neural networks: cpu or gpu", choices=("cpu", "gpu")),
        column("cores", WHOLE, "cores", "number of CPU cores of the server", least=1),
        column("asked_precision", TEXT, "",
            "configured numeric precision. Empty if only the server knows the precision."),
        column("precision", TEXT, "",
            "numeric precision of the computation, as in the table peaks"),
        column("runtime", TEXT, "", "runtime that executes the neural network"),
        column("server", TEXT, "", "name of the server in the configuration"),
        column("scenario", TEXT, "",
            "name of the scenario (a set of tenants on one server)"),
        column("load_line", TEXT, "", "name of the load line, as in the table peaks"),
        column("verdict", TEXT, "", "verdict, as in the table peaks"),
        column("reason", TEXT, "", "reason for a verdict other than ok"),
        column("estimate_rps", REAL, "requests/s", "estimated dedicated peak of the model"),
        column("ci_low_rps", REAL, "requests/s",
            f"lower end of the 95 % interval of `estimate_rps` {CI}"),
        column("ci_high_rps", REAL, "requests/s",
            f"upper end of the 95 % interval of `estimate_rps` {CI}"),
        column("rank", WHOLE, "",
            "rank of the runtime among the runtimes with the same precision. The rank of the"
            " runtime with the highest estimated peak is 1. Null if the peak is unknown.",
               null=True, least=1),
        column("rate_ratio", REAL, "",
            "peak with this runtime / peak with the fastest runtime at the same precision",
               least=0),
        column("ratio_low", REAL, "",
            "lower end of the 95 % interval of `rate_ratio`",
               least=0),
        column("ratio_high", REAL, "",
            "upper end of the 95 % interval of `rate_ratio`", least=0, most=inf),
        column("probability_fastest", REAL, "",
            "probability that the runtime is the fastest at this precision: the share of joint"
            " random draws in which its peak is the highest. Null if a peak at this precision has a"
            " 95 % interval that begins at 0 or ends at infinity.",
               least=0, most=1),
        column("fp32_ratio", REAL, "",
            "peak with this runtime and precision / peak with the fastest runtime in fp32. The"
            " ratio shows the gain from the precision. Null in the rows of fp32.", least=0),
        column("fp32_ratio_low", REAL, "",
            "lower end of the 95 % interval of `fp32_ratio`", least=0),
        column("fp32_ratio_high", REAL, "",
            "upper end of the 95 % interval of `fp32_ratio`", least=0, most=inf),
        column("relative_error", REAL, "",
            "relative error of the server's responses, compared with the responses of the same"
            " network in fp32 (docs/evidence/exports.md): the largest value of all"
            " repeats", least=0),
    ],
    key=("scenario", "load_line"),
    holds=[
        ascending("ci_low_rps", "estimate_rps", "ci_high_rps"),
        ascending("ratio_low", "rate_ratio", "ratio_high"),
        ascending("fp32_ratio_low", "fp32_ratio", "fp32_ratio_high"),
        holds(
            "rate_ratio is at most 1, since no runtime is faster than the fastest"
            " runtime", lambda rate_ratio: rate_ratio <= 1),
    ],
)  # fmt: skip

Peaks = Sequence[RepeatedPeak]


def rows(results: StudyResults) -> Iterator[Row]:
    for question, peaks in questions(list(results.peaks.values())).items():
        yield from _of_question(str(question[0]), peaks, results.task.study)


def questions(peaks: Peaks) -> Mapping[tuple[Hashable, ...], Peaks]:
    """Return the dedicated peaks to compare, in groups whose settings differ only in runtime and
    precision.

    The key of a group contains the settings that all peaks of the group share. The result leaves
    out a group if all its peaks have the same runtime and the same precision.
    """
    found: dict[tuple[Hashable, ...], list[RepeatedPeak]] = {}
    for peak in peaks:
        if peak.is_dedicated:
            found.setdefault(_common(peak), []).append(peak)
    return {
        common: alike
        for common, alike in found.items()
        if len({(runtime(peak), peak.precision) for peak in alike}) > 1
    }


def _common(peak: RepeatedPeak) -> tuple[Hashable, ...]:
    (tenant,), server = peak.task.tenants, peak.task.server
    return (
        re.sub(f"{MARK}precision-[a-z0-9]+", "", peak.mix),
        tenant.model,
        *(tenant.max_batch_size, tenant.request_batch_size, tenant.dynamic_batching),
        *(tenant.preprocessing, peak.task.preset),
        *(server.device, server.cores, server.gpus, server.remote and server.remote.host),
    )


def _of_question(question: str, peaks: Peaks, study: str) -> Iterator[Row]:
    by_precision: dict[str, list[RepeatedPeak]] = {}
    for peak in peaks:
        by_precision.setdefault(peak.precision, []).append(peak)
    fp32 = next(iter(_ranked(by_precision.get("fp32", []))), None)
    for precision, alike in by_precision.items():
        ranked = _ranked(alike)
        chances = cheapest([peak.total().dividing(1.0) for peak in ranked])
        for i, peak in enumerate((*ranked, *(peak for peak in alike if not peak.is_known))):
            row = {**dict.fromkeys(SCHEMA.names), **_first(question, peak, study)}
            if i < len(ranked):
                row |= {
                    "rank": i + 1,
                    "probability_fastest": chances[i],
                    **_ratio(peak, ranked[0], ("rate_ratio", "ratio_low", "ratio_high")),
                }
                if fp32 is not None and precision != "fp32":
                    ends = ("fp32_ratio", "fp32_ratio_low", "fp32_ratio_high")
                    row |= _ratio(peak, fp32, ends)
            yield row


def _ranked(peaks: Peaks) -> list[RepeatedPeak]:
    """Return the known peaks in descending order."""
    return sorted((peak for peak in peaks if peak.is_known), key=lambda peak: -peak.total().value)


def _first(question: str, peak: RepeatedPeak, study: str) -> Row:
    (tenant,), server = peak.task.tenants, peak.task.server
    errors = [e for record in peak.records for e in record.relative_errors.values()]
    return {
        "study": study,
        "question": question,
        "model": tenant.model,
        "preset": peak.task.preset,
        "mix": peak.mix,
        "device": server.device,
        "cores": server.cores,
        "asked_precision": tenant.precision or "",
        "precision": peak.precision,
        "runtime": runtime(peak),
        "server": server.name,
        "scenario": peak.task.scenario,
        "load_line": peak.task.run.name,
        "verdict": peak.verdict,
        "reason": peak.reason,
        **with_ends("estimate_rps", peak.total().interval(), ("ci_low_rps", "ci_high_rps")),
        "relative_error": max(errors, default=np.nan),
    }


def _ratio(peak: RepeatedPeak, best: RepeatedPeak, names: tuple[str, str, str]) -> Row:
    ratio = peak.total().over(best.total()).interval()
    return with_ends(names[0], ratio, names[1:])

"""Table `runtimes`: which runtime is faster, at equal numeric precision."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from math import inf

import numpy as np

from perseus.host.parquet import REAL, TEXT, WHOLE
from perseus.results.columns import CI, with_ends
from perseus.results.grids import cheapest
from perseus.results.records import Row
from perseus.results.repeats import RepeatedPeak
from perseus.results.schema import Schema, ascending, column, holds
from perseus.results.study_results import StudyResults
from perseus.results.tables.peaks import runtime
from perseus.study.setting import MARK

DESCRIPTION = (
    "One row per dedicated peak of a model that was measured with several runtimes or precisions;"
    " empty without such models."
)
TITLE = "Runtimes"
NOTE = (
    "Limits of a model alone, with settings that differ only in runtime and precision; requests/s,"
    " 95 % intervals in brackets. A runtime is ranked among those that computed in the same"
    " precision. Another precision means other operations and other answers: its rate beside fp32"
    " shows the gain of the precision, and not which runtime is faster."
)
SHOWN = {
    "model": "mix",
    "precision": "precision",
    "runtime": "runtime",
    "cores": "cores",
    "limit": ("estimate_rps", "ci_low_rps", "ci_high_rps"),
    "of the fastest at this precision": ("rate_ratio", "ratio_low", "ratio_high"),
    "P(fastest)": "probability_fastest",
    "of the fastest in fp32": ("fp32_ratio", "fp32_ratio_low", "fp32_ratio_high"),
    "relative error": "relative_error",
    "verdict": "verdict",
}
SCHEMA = Schema(
    [
        column("study", TEXT, "", "name of the study"),
        column("question", TEXT, "", "the model with the settings that all of its rows share"),
        column("model", TEXT, "", "name of the model"),
        column("preset", TEXT, "", "how much evidence was collected"),
        column("mix", TEXT, "", "the tenant, as in the table peaks"),
        column("device", TEXT, "", "cpu or gpu", choices=("cpu", "gpu")),
        column("cores", WHOLE, "cores", "cores of the server", least=1),
        column("asked_precision", TEXT, "",
            "numeric precision as configured; empty if only the server knows it"),
        column("precision", TEXT, "",
            "numeric precision of the computation, as in the table peaks"),
        column("runtime", TEXT, "", "what executes the network"),
        column("server", TEXT, "", "name of the server in the configuration"),
        column("scenario", TEXT, "", "server and tenants: one Triton model repository"),
        column("load_line", TEXT, "", "name of the load line, as in the table peaks"),
        column("verdict", TEXT, "", "as in the table peaks"),
        column("reason", TEXT, "", "why the verdict is not ok"),
        column("estimate_rps", REAL, "requests/s", "most likely limit"),
        column("ci_low_rps", REAL, "requests/s", f"estimate_rps: lower end {CI}"),
        column("ci_high_rps", REAL, "requests/s", f"estimate_rps: upper end {CI}"),
        column("rank", WHOLE, "",
            "rank by that limit among those of the same precision, 1 is the"
            " fastest; null if the limit is unknown", null=True, least=1),
        column("rate_ratio", REAL, "", "limit / limit of the fastest of the same precision",
               least=0),
        column("ratio_low", REAL, "", "rate_ratio: lower end of the 95 % interval, of joint draws",
               least=0),
        column("ratio_high", REAL, "", "rate_ratio: upper end", least=0, most=inf),
        column("probability_fastest", REAL, "",
            "share of the joint draws in which it is the fastest of the same"
            " precision; null if a limit has no bound", least=0, most=1),
        column("fp32_ratio", REAL, "",
            "limit / limit of the fastest in fp32: the gain of another precision; null"
            " in fp32", least=0),
        column("fp32_ratio_low", REAL, "", "fp32_ratio: lower end of the 95 % interval, of joint"
               " draws", least=0),
        column("fp32_ratio_high", REAL, "", "fp32_ratio: upper end", least=0, most=inf),
        column("relative_error", REAL, "",
            "relative error of the served answers against the network in fp32"
            " (docs/evidence/exports.md), the largest of all repeats", least=0),
    ],
    key=("scenario", "load_line"),
    holds=[
        ascending("ci_low_rps", "estimate_rps", "ci_high_rps"),
        ascending("ratio_low", "rate_ratio", "ratio_high"),
        ascending("fp32_ratio_low", "fp32_ratio", "fp32_ratio_high"),
        holds("no limit is above the fastest", lambda rate_ratio: rate_ratio <= 1),
    ],
)  # fmt: skip

Peaks = Sequence[RepeatedPeak]


def rows(results: StudyResults) -> Iterator[Row]:
    for question, peaks in questions(list(results.peaks.values())).items():
        yield from _of_question(str(question[0]), peaks, results.task.study)


def questions(peaks: Peaks) -> Mapping[tuple[Hashable, ...], Peaks]:
    """Return the dedicated peaks of a model that differ in runtime and precision only, by their
    common settings.

    Models with a single such peak are left out.
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
    """Return peaks with a limit, the fastest first."""
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

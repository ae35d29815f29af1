"""Make the table `catalogue`: costs and accuracies of neural networks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from pydantic import BaseModel, Field

from perseus.host.parquet import FLAG, REAL, TEXT, WHOLE
from perseus.peak.stats import proportion
from perseus.results.columns import CELL, PRECISION, cell
from perseus.results.costs import usd_per_million
from perseus.results.grids import on_front
from perseus.results.records import Number, Record, Row
from perseus.results.schema import Schema, ascending, column
from perseus.results.study_results import StudyResults
from perseus.study.architectures import Weights, best_weights


class LimitRecord(BaseModel):
    """Largest rate at which a neural network keeps one SLA: an entry of `limits` in record.json."""

    stated: str
    sla_ms: float
    limit_rps: Number
    low_rps: Number
    high_rps: Number
    certified_rps: Number
    reason: str


class AccuracyRecord(BaseModel):
    """Number of labelled images, and number of these images that a neural network classified
    correctly: the key `accuracy` of record.json."""

    images: int
    correct: int


class CatalogueRecord(Record):
    """Record of the measurement of one neural network (experiment `catalogue`)."""

    kind: ClassVar[str] = "catalogue"

    in_process_ms: Number = Field(
        description=(
            "median service time of one request without a server, ms. For this measurement, a"
            " Python process runs the code of the backend for one request after another. Null if"
            " Perseus has no Python backend for the network, or if the network did not run."
        )
    )
    in_process_error: str = Field(
        description=(
            "reason why Perseus failed to run the network without a server. Empty if the network"
            " ran, or if Perseus did not try to run it without a server."
        )
    )
    accuracy: AccuracyRecord | None = Field(
        description=(
            "`images` is the number of labelled images that Perseus sent to the server, and"
            " `correct` is the number of those images for which the correct class got the highest"
            " score. Null without labelled images."
        )
    )
    full_rps: Number = Field(
        description=(
            "throughput of a server that always has requests waiting (saturation throughput),"
            " requests/s. `full_low_rps` and `full_high_rps` are the ends of its 95 % interval."
        )
    )
    full_low_rps: Number
    full_high_rps: Number
    limits: tuple[LimitRecord, ...] = Field(
        description=(
            "one entry per SLA. `stated` is the key of the configuration that states the SLA"
            " (times_unloaded or latency), and `sla_ms` is the latency limit of the SLA."
            " `limit_rps` is the largest rate that keeps the SLA in a simulated queue, with its"
            " 95 % interval from `low_rps` to `high_rps`. `certified_rps` is the first tested rate"
            " at which a window passed. If no window passed, `reason` says why."
        )
    )


RECORD = CatalogueRecord
MEASURED = "measured"
"""Name of the Pareto front of all rows with a measured accuracy."""


def front_order(front: str) -> tuple[bool, bool]:
    """Return a sort key for the names of Pareto fronts: the front of measured accuracies comes
    first, then the front of fp32, then all other precisions."""
    return front != MEASURED, front != "fp32"


DESCRIPTION = (
    "One row per cell (one neural network alone on a server) and SLA. A cell that ended before"
    " Perseus computed a limit has one row without an SLA, and its column `reason` says why. The"
    " table is empty without an experiment `catalogue`."
)
TITLE = "Costs of neural networks"
NOTE = (
    "The table shows three rates for each neural network alone: the throughput in a process without"
    " a server, the throughput on a server that always has requests waiting (full server), and the"
    " largest rate within an SLA in a simulated queue (docs/explanation/catalogue.md). The"
    " published accuracy is the accuracy that torchvision publishes for its weights in fp32. In"
    " another precision, the relative error of the responses indicates the loss of accuracy. The"
    " measured accuracy is the share of the labelled images for which the server gave the correct"
    " class the highest score. A network is on the front if every cheaper network with the same"
    " kind of SLA and number of images per request is less accurate. Published accuracies have one"
    " front for each precision."
)
SHOWN = {
    "cell": "cell",
    "model": "model",
    "runtime": "runtime",
    "precision": "precision",
    "images per request": "request_batch_size",
    "published top-1 (%)": "top1",
    "measured top-1 (%)": ("measured_top1", "measured_top1_low", "measured_top1_high"),
    "without a server (images/s)": "in_process_ips",
    "full server (images/s)": "full_ips",
    "SLA": "sla",
    "SLA (ms)": "sla_ms",
    "limit (requests/s)": ("limit_rps", "ci_low_rps", "ci_high_rps"),
    "certified": "certified_rps",
    "USD per million": ("usd_per_million_inferences", "ci_low_usd", "ci_high_usd"),
    "on the front": "on_front",
    "verdict": "verdict",
    "why not": "reason",
}
SCHEMA = Schema(
    [
        *CELL,
        column("tenant", TEXT, "", "name of the tenant"),
        column("model", TEXT, "", "name of the model"),
        column("architecture", TEXT, "",
            "name of the network's architecture in torchvision. Null for a model file of your"
            " own.", null=True),
        column("input_px", WHOLE, "pixels",
            "width of the input images. Null if unknown.", null=True, least=1),
        column("weights", TEXT, "",
            "name of the most accurate weights that torchvision has for this architecture and image"
            " width. Null if torchvision has no such weights.", null=True),
        column("recipe", TEXT, "",
            "training recipe that torchvision states for the weights in the column `weights`. Null"
            " without weights.",
               null=True),
        column("top1", REAL, "%",
            "top-1 accuracy on ImageNet-1K that torchvision publishes for the weights in the column"
            " `weights`, in fp32 and with one crop of each image", most=100),
        column("labelled_images", WHOLE, "images",
            "number of labelled images with which Perseus measured the accuracy. Null without"
            " labelled images.", null=True, least=1),
        column("measured_top1", REAL, "%",
            "measured top-1 accuracy: percentage of the labelled images for which the server gave"
            " the correct class the highest score, in the precision of this row", most=100),
        column("measured_top1_low", REAL, "%",
            "lower end of the 95 % interval of `measured_top1` (Clopper-Pearson)", most=100),
        column("measured_top1_high", REAL, "%",
            "upper end of the 95 % interval of `measured_top1`", most=100),
        column("accuracy", REAL, "%",
            "accuracy that Perseus uses for the Pareto front: measured_top1, or top1 if there are"
            " no labelled images",
            most=100),
        column("front", TEXT, "",
            "name of the Pareto front to which Perseus assigns the row. If the accuracy is"
            " measured, the name is the word measured. Otherwise, the name is the precision,"
            " because published accuracies are valid for fp32 only."),
        column("flops", REAL, "",
            "number of arithmetic operations per image. A multiplication and an addition count as"
            " two operations.", least=0),
        column("traffic_bytes", REAL, "bytes",
            "number of bytes that all operators of the neural network together read and write per"
            " image"),
        column("weight_bytes", REAL, "bytes", "size of all weights of the neural network"),
        column("operators", WHOLE, "",
            "number of operators (nodes) in the graph of the neural network", null=True, least=0),
        column("runtime", TEXT, "", "runtime that executes the neural network"),
        column("asked_precision", TEXT, "", "configured numeric precision"),
        PRECISION,
        column("request_batch_size", WHOLE, "images", "number of images per request", least=1),
        column("relative_error", REAL, "",
            "relative error of the server's responses, compared with the responses of the same"
            " network in fp32 (docs/evidence/exports.md)", least=0),
        column("in_process_ms", REAL, "ms",
            "median service time of one request without a server. For this measurement, a Python"
            " process runs the code of the server's backend."),
        column("in_process_ips", REAL, "images/s",
            "throughput of a Python process that computes one request after another, without a"
            " server"),
        column("unloaded_ms", REAL, "ms",
            "median latency of requests that the client sends one after another, without other"
            " load"),
        column("full_ips", REAL, "images/s",
            "throughput of a server that always has requests waiting (saturation throughput)"),
        column("full_low_ips", REAL, "images/s",
            "lower end of the 95 % interval of `full_ips`, by batch means"),
        column("full_high_ips", REAL, "images/s",
            "upper end of the 95 % interval of `full_ips`"),
        column("server_share", REAL, "share",
            "share of the time per image that a saturated server spends on other work than the"
            " computation of the image: 1 - full_ips / in_process_ips. Negative if the host was"
            " faster while Perseus measured full_ips.", least=-np.inf),
        column("sla", TEXT, "",
            "kind of SLA: times_unloaded (a multiple of the latency without load) or latency (the"
            " SLA of the model). Empty in the row of a cell that ended before Perseus computed a"
            " limit."),
        column("sla_ms", REAL, "ms", "latency limit of the SLA"),
        column("limit_rps", REAL, "requests/s",
            "largest rate that keeps the SLA in a simulated queue with the measured service times"),
        column("ci_low_rps", REAL, "requests/s",
            "lower end of the 95 % interval of `limit_rps`. Perseus computes this interval from the"
            " interval of full_ips."),
        column("ci_high_rps", REAL, "requests/s",
            "upper end of the 95 % interval of `limit_rps`"),
        column("certified_rps", REAL, "requests/s",
            "certified rate: the first of the rates 0.8 x limit_rps and 0.6 x limit_rps at which a"
            " window passed. Null if no window passed."),
        column("usd_per_million_inferences", REAL, "USD",
            "cost of a million images at the rate limit_rps, with the first kind of price in"
            " costs.pricing"),
        column("ci_low_usd", REAL, "USD",
            "lower end of the 95 % interval of `usd_per_million_inferences`"),
        column("ci_high_usd", REAL, "USD",
            "upper end of the 95 % interval of `usd_per_million_inferences`"),
        column("on_front", FLAG, "",
            "true if the row is on its Pareto front: compared with this row, each other row with"
            " the same kind of SLA, request_batch_size and `front` is worse in cost or accuracy, or"
            " equal in both. Null if the cost or the accuracy is unknown.", null=True),
        column("verdict", TEXT, "",
            "outcome of the cell (docs/reference/verdicts.md), with two exceptions if this outcome"
            " is ok. The verdict is infeasible for an SLA without a limit. The verdict is"
            " uncertified for an SLA with a limit, but without a certified rate."),
        column("reason", TEXT, "", "reason for a verdict other than ok"),
    ],
    key=("cell", "sla"),
    holds=[
        ascending("measured_top1_low", "measured_top1", "measured_top1_high"),
        ascending("full_low_ips", "full_ips", "full_high_ips"),
        ascending("ci_low_rps", "limit_rps", "ci_high_rps"),
        ascending("ci_low_usd", "usd_per_million_inferences", "ci_high_usd"),
        ascending("certified_rps", "limit_rps"),
    ],
)  # fmt: skip


@dataclass(frozen=True)
class Network:
    """Properties of a neural network that are known without a measurement."""

    architecture: str | None
    input_px: int | None
    weights: Weights | None
    cost: Mapping[str, Any]

    @classmethod
    def of(cls, export: Mapping[str, Any]) -> Network:
        """Return the properties of a neural network. `export` is the content of check.json, the
        record of the export of the network. Unknown properties are None or empty."""
        name, inputs = export.get("architecture"), export.get("inputs")
        dims = inputs[0]["dims"] if inputs else []
        is_image = len(dims) == 3 and dims[0] in (1, 3)  # grey or coloured
        pixels = dims[-1] if is_image else None
        return cls(
            name,
            pixels,
            best_weights(name, pixels) if name and pixels else None,
            export.get("cost", {}),
        )

    def row(self) -> Row:
        best = self.weights
        return {
            "architecture": self.architecture,
            "input_px": self.input_px,
            "weights": best.name if best else None,
            "recipe": best.recipe if best else None,
            "top1": best.top1 if best else np.nan,
            **{key: self.cost.get(key) for key in ("flops", "traffic_bytes", "weight_bytes")},
            "operators": self.cost.get("operators"),
        }


def rows(results: StudyResults) -> Iterator[Row]:
    found = [row for record in results.of_kind(CatalogueRecord) for row in _of(record, results)]
    yield from _fronts(found)


def _of(record: CatalogueRecord, results: StudyResults) -> Iterator[Row]:
    (tenant,), server = record.task.tenants, record.task.server
    images, name = tenant.request_batch_size, tenant.name
    alone_ips = 1000 * images / record.in_process_ms
    full = [images * rate for rate in (record.full_rps, record.full_low_rps, record.full_high_rps)]
    network = Network.of(results.exports.get(tenant.model, {})).row()
    precision = record.computed_precisions.get(name) or tenant.precision or ""
    first: Row = {
        **dict.fromkeys(SCHEMA.names),
        **cell(record.task),
        "tenant": name,
        "model": tenant.model,
        **network,
        "accuracy": network["top1"],
        "front": precision,
        **(_measured(record.accuracy) if record.accuracy else {}),
        "runtime": server.runtime,
        "asked_precision": tenant.precision or "",
        "precision": precision,
        "request_batch_size": images,
        "relative_error": record.relative_errors.get(name),
        "in_process_ms": record.in_process_ms,
        "in_process_ips": alone_ips,
        "unloaded_ms": record.unloaded_p50_ms.get(name),
        **dict(zip(("full_ips", "full_low_ips", "full_high_ips"), full, strict=True)),
        "server_share": 1 - full[0] / alone_ips,
        "sla": "",
        "verdict": record.outcome,
        "reason": record.reason or record.in_process_error,
    }
    if not record.limits:
        yield first
    price = results.task.prices.get(server.name)
    usd_per_hour = price.usd_per_hour(results.task.pricing[0]) if price else None
    for each in sorted(record.limits, key=lambda limit: limit.stated):  # first the study's own SLA
        yield first | _limit(each, record.outcome) | _cost(each, images, usd_per_hour)


def _measured(found: AccuracyRecord) -> Row:
    top1, low, high = (100 * each for each in proportion(found.correct, found.images, 0.95))
    return {
        "labelled_images": found.images,
        "measured_top1": top1,
        "measured_top1_low": low,
        "measured_top1_high": high,
        "accuracy": top1,
        "front": MEASURED,
    }


def _limit(each: LimitRecord, outcome: str) -> Row:
    verdict = outcome
    if outcome == "ok" and np.isnan(each.certified_rps):
        verdict = "infeasible" if np.isnan(each.limit_rps) else "uncertified"
    return {
        "sla": each.stated,
        "sla_ms": each.sla_ms,
        "limit_rps": each.limit_rps,
        "ci_low_rps": each.low_rps,
        "ci_high_rps": each.high_rps,
        "certified_rps": each.certified_rps,
        "verdict": verdict,
        **({"reason": each.reason} if each.reason else {}),
    }


def _cost(each: LimitRecord, images: int, usd_per_hour: float | None) -> Row:
    if usd_per_hour is None or np.isnan(each.limit_rps):
        return {}
    value, low, high = (
        usd_per_million(usd_per_hour, images * rate) if rate > 0 else np.inf
        for rate in (each.limit_rps, each.high_rps, each.low_rps)
    )
    return {"usd_per_million_inferences": value, "ci_low_usd": low, "ci_high_usd": high}


def _fronts(found: Sequence[Row]) -> Iterator[Row]:
    """Yield the rows in their original order, with a value in the column `on_front`."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for i, row in enumerate(found):
        values = (row["usd_per_million_inferences"], row["accuracy"])
        if all(value is not None and np.isfinite(value) for value in values):
            key = row["sla"], row["request_batch_size"], row["front"]
            groups.setdefault(key, []).append(i)
    front: dict[int, bool] = {}
    for places in groups.values():
        points = np.array(
            [(found[i]["usd_per_million_inferences"], -found[i]["accuracy"]) for i in places]
        )
        front |= dict(zip(places, on_front(points), strict=True))
    for i, row in enumerate(found):
        yield row | {"on_front": front.get(i)}

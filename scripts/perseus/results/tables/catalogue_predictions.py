"""Make the table `catalogue_predictions`: inference times that Perseus predicts from the graphs of
neural networks.

The prediction is: time per image = a x arithmetic operations + b x bytes that operators read and
write + c x number of operators. The coefficients a, b and c are not negative, and minimise the sum
of squared relative errors. Perseus predicts the time of each network twice: from a fit to all other
networks, and from a fit to the networks of other families. A fit uses only networks on the same
server with the same setting. No prediction uses the measurement of the predicted network, so the
prediction error is typical of a network that was never measured.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from scipy.optimize import nnls

from perseus.host.parquet import REAL, TEXT, WHOLE
from perseus.peak.stats import Floats
from perseus.results.columns import CELL_NAME
from perseus.results.records import Row
from perseus.results.schema import Schema, column
from perseus.results.study_results import StudyResults
from perseus.results.tables import catalogue
from perseus.study.setting import MARK

FEATURES: Final = ("flops", "traffic_bytes", "operators")
ALIKE: Final = ("server", "setting", "runtime", "precision", "request_batch_size")
"""Columns that must have the same value for all networks of a fit."""

FEWEST: Final = 6
"""Least number of measured networks in a fit."""

DESCRIPTION = (
    "The table compares measured inference times with times that Perseus predicts from the graphs"
    " of neural networks. One row per neural network, server, setting, runtime, precision and"
    " number of images per request in a catalogue. The table contains a combination of server,"
    " setting, runtime, precision and number of images only if the study measured at least"
    f" {FEWEST + 1} networks with this combination."
)
TITLE = "Inference times predicted from the graphs of networks"
NOTE = (
    "The table shows the time per image on a full server (a server that always has requests"
    " waiting), predicted from the graph of the neural network: its arithmetic operations, the"
    " bytes that its operators read and write, and the number of operators. The first prediction"
    " uses the measurements of all other networks, and the second prediction uses only the"
    " measurements of networks of other families."
)
SHOWN = {
    "model": "model",
    "server": "server",
    "setting": "setting",
    "runtime": "runtime",
    "precision": "precision",
    "images per request": "request_batch_size",
    "measured (ms)": "measured_ms",
    "predicted (ms)": "predicted_ms",
    "predicted / measured": "ratio",
    "without its family (ms)": "without_family_ms",
    "without its family / measured": "family_ratio",
}
SCHEMA = Schema(
    [
        column("study", TEXT, "", "name of the study"),
        column("cell", TEXT, "", CELL_NAME),
        column("model", TEXT, "", "name of the model"),
        column("family", TEXT, "",
            "family of similar neural networks: the letters with which the name of the architecture"
            " begins, without `wide_`, such as resnet for resnet50"),
        column("server", TEXT, "", "name of the server in the configuration"),
        column("setting", TEXT, "",
            "setting of the tenant in a grid, such as instances-2. Empty if the tenant has its"
            " configured setting."),
        column("runtime", TEXT, "", "runtime that executes the neural network"),
        column("precision", TEXT, "", "numeric precision of the computation"),
        column("request_batch_size", WHOLE, "images", "number of images per request", least=1),
        column("networks", WHOLE, "",
            "number of networks that were measured with the server, setting, runtime, precision and"
            " request_batch_size of this row, including the network of this row", least=1),
        column("measured_ms", REAL, "ms",
            "measured time per image on a saturated server", null=False),
        column("predicted_ms", REAL, "ms",
            "time per image on a saturated server, predicted from the measurements of all other"
            " networks", null=False),
        column("ratio", REAL, "", "predicted_ms / measured_ms", null=False, least=0),
        column("without_family_ms", REAL, "ms",
            "time per image on a saturated server, predicted from the measurements of all networks"
            " of other families. Null if the study measured too few networks of other families."),
        column("family_ratio", REAL, "", "without_family_ms / measured_ms", least=0),
    ],
    key=("cell",),
)  # fmt: skip


def rows(results: StudyResults) -> Iterator[Row]:
    groups: dict[tuple[Any, ...], dict[str, Row]] = {}
    for row in catalogue.rows(results):
        known = row["full_ips"] is not None and row["full_ips"] > 0
        if known and all(row[name] for name in FEATURES):
            row["setting"] = row["tenant"].partition(MARK)[2]
            like = tuple(row[name] for name in ALIKE)
            groups.setdefault(like, {}).setdefault(row["model"], row)
    for found in groups.values():
        if len(found) > FEWEST:
            yield from _predicted(list(found.values()))


def family(model: str) -> str:
    """Return the family of a neural network: the letters at the start of its name, for example
    "resnet" for "resnet50". Wide ResNets belong to the same family as ResNets."""
    match = re.match(r"(?:wide_)?([a-z]+)", model)
    return match[1] if match else model


def _predicted(networks: Sequence[Row]) -> Iterator[Row]:
    work = np.array([[float(row[name]) for name in FEATURES] for row in networks])
    times_ms = np.array([1000 / row["full_ips"] for row in networks])
    families = np.array([family(row["architecture"] or row["model"]) for row in networks])
    for i, row in enumerate(networks):
        others = np.arange(len(networks)) != i
        predicted_ms = _time(work, times_ms, others, i)
        strangers = families != families[i]
        without_ms = _time(work, times_ms, strangers, i) if strangers.sum() >= FEWEST else np.nan
        yield {
            **{key: row[key] for key in ("study", "cell", "model", *ALIKE)},
            "family": str(families[i]),
            "networks": len(networks),
            "measured_ms": times_ms[i],
            "predicted_ms": predicted_ms,
            "ratio": predicted_ms / times_ms[i],
            "without_family_ms": without_ms,
            "family_ratio": without_ms / times_ms[i],
        }


def _time(work: Floats, times_ms: Floats, known: Any, of: int) -> float:
    """Return the predicted time per image of the network with index `of` in ms, from a fit to the
    `known` networks."""
    return float(work[of] @ fitted(work[known], times_ms[known]))


def fitted(work: Floats, times_ms: Floats) -> Floats:
    """Return the coefficients a, b and c, shape (3,), with the least sum of squared relative errors
    of the predicted times.

    `work` has the operations, bytes and operators of n networks, shape (n, 3). `times_ms` has their
    measured times, shape (n,).
    """
    scale = work.mean(axis=0)
    weights, _ = nnls(work / scale / times_ms[:, None], np.ones(len(times_ms)))
    return np.asarray(weights / scale)


def within(ratios: Floats, share: float) -> float:
    """Return a factor f: for the share `share` of the networks, the predicted time is between
    (measured time / f) and (measured time x f).

    `ratios` has (predicted time / measured time) of each network.
    """
    return float(np.exp(np.quantile(np.abs(np.log(ratios)), share)))

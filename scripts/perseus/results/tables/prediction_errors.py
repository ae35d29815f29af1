"""Make the table `prediction_errors`: how far predicted sharing ratios of measured mixes are from
the measured sharing ratios."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import numpy as np

from perseus.host.parquet import REAL, TEXT, WHOLE
from perseus.peak.predicted.ladder import LadderStep
from perseus.peak.predicted.left_out import Out, errors
from perseus.results.columns import PRESET
from perseus.results.predictions import Predictions
from perseus.results.records import Row
from perseus.results.schema import Schema, ascending, column

DESCRIPTION = (
    "The table states how exact the predictions of sharing ratios are. Perseus predicts each"
    " measured mix without its measurement, and compares the prediction with the measurement. One"
    " row per shared server, preset, prediction model and kind of measurements that the prediction"
    " does not use (column `left_out`)."
)
TITLE = "How far predictions are off"
NOTE = (
    "The table compares predicted and measured sharing ratios of all measured mixes with at least"
    " two different models. When Perseus predicts a mix, Perseus leaves out the measurements of"
    " this mix ('mix'), of all mixes that contain one of its models ('model', with one prediction"
    " per model), or of all mixes on the same server ('server'). The error is |predicted ratio /"
    " measured ratio - 1|. The bias is the mean of (predicted ratio / measured ratio - 1). The"
    " noise is the relative uncertainty of the measured ratios: the median over the mixes of (half"
    " the width of the 95 % interval / ratio). 'Infeasible' is the number of measured mixes in"
    " which a tenant misses its SLA at every load. These mixes have no measured ratio, so their"
    " prediction errors are unknown."
)
SHOWN = {
    "server": "server",
    "prediction model": "step",
    "left out": "left_out",
    "predictions": "predictions",
    "median error": "median_error",
    "90th percentile of the error": "p90_error",
    "bias": "bias",
    "noise": "noise",
    "infeasible": "infeasible",
}
SCHEMA = Schema(
    [
        column("study", TEXT, "", "name of the study"),
        column("server", TEXT, "", "name of the server in the configuration"),
        column("preset", TEXT, "", PRESET),
        column("step", TEXT, "",
            f"prediction model: {', '.join(LadderStep)} (docs/explanation/frontier.md)",
               choices=LadderStep),
        column("left_out", TEXT, "",
            "measurements that Perseus does not use when it predicts a mix: mix (the measurement of"
            " this mix), model (all mixes that contain one of the models of this mix, with one"
            " prediction per model) or server (all mixes on the same server)",
               choices=Out),
        column("predictions", WHOLE, "",
            "number of predictions from which Perseus computes the errors in this row", least=1),
        column("median_error", REAL, "share",
            "median over the predictions of |predicted sharing ratio / measured sharing ratio - 1|",
               null=False, most=inf),
        column("p90_error", REAL, "share",
            "90th percentile over the predictions of |predicted sharing ratio / measured sharing"
            " ratio - 1|", null=False, most=inf),
        column("bias", REAL, "share",
            "mean over the predictions of (predicted sharing ratio / measured sharing ratio -"
            " 1)", null=False, least=-1,
               most=inf),
        column("noise", REAL, "share",
            "relative uncertainty of the measured sharing ratios: the median over the mixes of"
            " (half the width of the 95 % interval / sharing ratio). Mixes whose interval ends at"
            " infinity do not count.", most=inf),
        column("infeasible", WHOLE, "",
            "number of measured mixes without a sharing ratio: a tenant misses its SLA at every"
            " load on the shared server, although each tenant keeps its SLA on a dedicated server."
            " Mixes in which all tenants have the same model do not count."),
    ],
    key=("server", "preset", "step", "left_out"),
    holds=[ascending("median_error", "p90_error")],
)  # fmt: skip


def rows(predictions: Predictions) -> Iterator[Row]:
    for server in predictions.servers:
        if not server.measured:
            continue
        known = {
            each.name: each.known for each in predictions.servers if each.preset == server.preset
        }
        ends = [each.ratio.interval() for each in server.measured]
        halves = [(end.high - end.low) / 2 / end.value for end in ends if end.high < np.inf]
        for out in Out:
            for step in LadderStep:
                off = [each.error for each in errors(step, out, server.name, known)]
                told = np.array(off)[np.isfinite(off)]
                if len(told):
                    yield {
                        "study": predictions.study,
                        "server": server.name,
                        "preset": server.preset,
                        "step": step,
                        "left_out": out,
                        "predictions": len(told),
                        "median_error": float(np.median(np.abs(told))),
                        "p90_error": float(np.quantile(np.abs(told), 0.9)),
                        "bias": float(told.mean()),
                        "noise": float(np.median(halves)) if halves else np.nan,
                        "infeasible": len(server.infeasible),
                    }

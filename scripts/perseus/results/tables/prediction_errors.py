"""Make the table `prediction_errors`: predicted sharing ratios of measured mixes, compared with
their measured sharing ratios."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import numpy as np

from perseus.host.parquet import REAL, TEXT, WHOLE
from perseus.peak.predicted.ladder import LadderStep
from perseus.peak.predicted.left_out import Out, errors
from perseus.results.predictions import Predictions
from perseus.results.records import Row
from perseus.results.schema import Schema, ascending, column

DESCRIPTION = (
    "One row per shared server, preset, prediction model and kind of left-out measurements."
)
TITLE = "How far predictions are off"
NOTE = (
    "The table compares predicted and measured sharing ratios of all measured mixes of different"
    " models. To predict a mix, Perseus leaves out measurements: only this mix ('mix'), all mixes"
    " that contain a certain model of this mix ('model', one prediction per model), or all mixes on"
    " the same server ('server'). The error is |predicted ratio / measured"
    " ratio - 1|. The bias is the mean of (predicted ratio / measured ratio - 1). The noise is the"
    " relative uncertainty of the measured ratios (half the width of the 95 % interval / ratio, as"
    " the median over the mixes). 'Infeasible' is the number of measured mixes in which a tenant"
    " misses its SLA at every load. The errors for these mixes are unknown."
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
        column("preset", TEXT, "",
            "name of the preset (amount of evidence), such as quick"),
        column("step", TEXT, "",
            f"prediction model: {', '.join(LadderStep)} (docs/explanation/frontier.md)",
               choices=LadderStep),
        column("left_out", TEXT, "",
            "measurements that Perseus leaves out to predict a mix: mix (only this mix), model (all"
            " mixes that contain a certain model of this mix; one prediction per model) or server"
            " (all mixes on the same server)",
               choices=Out),
        column("predictions", WHOLE, "",
            "number of predictions from which the errors in this row are computed", least=1),
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
            " (half the width of the 95 % interval / sharing ratio). Mixes with an unbounded"
            " interval are left out.", most=inf),
        column("infeasible", WHOLE, "",
            "number of mixes of different models in which a tenant misses its SLA at every load on"
            " the shared server, although each tenant alone keeps its SLA"),
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

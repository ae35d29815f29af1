"""Make the table `prediction_errors`: the errors of the sharing ratios that Perseus predicts for
measured mixes."""

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
    "One row per shared server, preset, prediction model and kind of left-out measurements. A"
    " prediction never uses the left-out measurements."
)
TITLE = "How far predictions are off"
NOTE = (
    "The table compares predicted and measured sharing ratios of all measured mixes of different"
    " models. Each prediction leaves out the measurements of the mix, of one of its models, or of"
    " the whole server. The error is |predicted / measured - 1|. The bias is the mean of (predicted"
    " / measured - 1). The noise is the relative uncertainty of the measured ratios (half the width"
    " of the 95 % interval / ratio, as the median over the mixes). 'Infeasible' is the number of"
    " measured mixes that violate an SLA at every load. Their error is unknown."
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
        column("server", TEXT, "", "name of the server"),
        column("preset", TEXT, "",
            "name of the preset, which sets how much evidence the study collects"),
        column("step", TEXT, "",
            f"prediction model: {', '.join(LadderStep)} (docs/explanation/frontier.md)",
               choices=LadderStep),
        column("left_out", TEXT, "",
            "measurements that the prediction of a mix leaves out: the mix itself, all mixes with"
            " one of its models (each of its models is left out once), or all mixes of the server",
               choices=Out),
        column("predictions", WHOLE, "",
            "number of predictions from which the errors in this row are computed", least=1),
        column("median_error", REAL, "share",
            "median of |predicted / measured sharing ratio - 1|",
               null=False, most=inf),
        column("p90_error", REAL, "share",
            "90th percentile of |predicted / measured sharing ratio - 1|", null=False, most=inf),
        column("bias", REAL, "share",
            "mean of (predicted / measured sharing ratio - 1)", null=False, least=-1,
               most=inf),
        column("noise", REAL, "share",
            "relative uncertainty of the measured sharing ratios: half the width of the 95 %"
            " interval of a ratio / the ratio, as the median over the mixes with a bounded"
            " interval", most=inf),
        column("infeasible", WHOLE, "",
            "number of mixes of different models that violate an SLA at every load on the server,"
            " although each tenant alone keeps its SLA"),
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

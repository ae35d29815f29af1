"""Table `prediction_errors`: errors of predicted sharing ratios of measured mixes."""

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
    "One row per shared server, prediction model (step) and kind of data that is left out for the"
    " prediction."
)
TITLE = "How far predictions are off"
NOTE = (
    "For each measured mix of different models, the prediction without the measurements of the"
    " mix, of one of its models, or of the whole server: |predicted / measured - 1|. Noise:"
    " uncertainty of the measured ratios (half of the 95 % interval, median). Carried nothing:"
    " measured mixes that keep no SLA at any load, for which there is no error."
)
SHOWN = {
    "server": "server",
    "step": "step",
    "left out": "left_out",
    "predictions": "predictions",
    "median error": "median_error",
    "nine of ten within": "p90_error",
    "bias": "bias",
    "noise": "noise",
    "carried nothing": "infeasible",
}
SCHEMA = Schema(
    [
        column("study", TEXT, "", "name of the study"),
        column("server", TEXT, "", "name of the server"),
        column("preset", TEXT, "", "how much evidence was collected"),
        column("step", TEXT, "", f"step of the ladder, {', '.join(LadderStep)} "
               "(docs/explanation/frontier.md)",
               choices=LadderStep),
        column("left_out", TEXT, "",
            "data that is left out when a mix is predicted: the mix, one of its"
            " models (one prediction for each), or the server", choices=Out),
        column("predictions", WHOLE, "", "mixes with such a prediction", least=1),
        column("median_error", REAL, "share", "median of |predicted / measured - 1|",
               null=False, most=inf),
        column("p90_error", REAL, "share", "90th percentile of the same", null=False, most=inf),
        column("bias", REAL, "share", "mean of predicted / measured - 1", null=False, least=-1,
               most=inf),
        column("noise", REAL, "share",
            "half of the 95 % interval of a measured ratio, as a share of the ratio;"
            " median of the mixes whose interval is bounded", most=inf),
        column("infeasible", WHOLE, "",
            "mixes of different models on the server that carried nothing within their SLAs,"
            " although each tenant alone did"),
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

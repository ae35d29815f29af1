"""Make the table `predictions`: the predicted and the measured sharing ratio of each mix."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import numpy as np

from perseus.host.parquet import FLAG, REAL, TEXT, WHOLE
from perseus.peak.predicted.ladder import LadderStep
from perseus.peak.predicted.left_out import CONFIDENCE, noise_of, why_none
from perseus.peak.stats import UNKNOWN
from perseus.results.columns import CI, PRESET, with_ends
from perseus.results.predictions import PredictedMix, Predictions
from perseus.results.records import Row
from perseus.results.schema import Schema, ascending, close, column, holds

DESCRIPTION = (
    "One row per measured mix on a shared server, and one row per pair of tenants whose mix 1 : 1"
    " was not measured. The table leaves out mixes in which all tenants have the same model, and"
    " mixes in which a tenant misses its SLA at every load. If several load lines have the same"
    " mix, the table has only the first load line. For each server and preset, the table has at"
    " most 100 measured mixes and 100 pairs."
)
TITLE = "Predicted sharing"
NOTE = (
    "The table shows the predicted sharing ratio of each mix: the sum over the tenants of (rate at"
    " the peak of the mix / dedicated peak). Predictions use measurements of each tenant alone and"
    " of other mixes. The prediction models and their assumptions are: "
    + "; ".join(f"{step}, {step.description}" for step in LadderStep)
    + (
        ". For each mix, Perseus uses the prediction model with the smallest error for the other"
        " measured mixes. Perseus corrects the prediction by the mean error of this model for these"
        " mixes. A prediction interval should contain the measured sharing ratio in 90 % of cases."
        " The half-width is half the width of the prediction interval, as a share of the"
        " prediction. A mix needs no measurement if its prediction is as exact as a second"
        " measurement, or if its prediction interval is narrow enough for your question."
        " With `predict: true`, an experiment `frontier` skips mixes that need no measurement."
    )
)
SHOWN = {
    "server": "server",
    "mix": "mix",
    "measured": ("measured_ratio", "measured_low", "measured_high"),
    "predicted": ("predicted_ratio", "predicted_low", "predicted_high"),
    "prediction model": "step",
    "half-width": "within",
    "as exact as a measurement": "as_measured",
    "error": "error",
    **{step.value: f"{step.lower()}_ratio" for step in LadderStep},
    "other measured mixes": "mixes_known",
    "why not": "reason",
}
INTERVAL = f"of the {100 * CONFIDENCE:.0f} % prediction interval"
SCHEMA = Schema(
    [
        column("study", TEXT, "", "name of the study"),
        column("server", TEXT, "", "name of the server in the configuration"),
        column("mix", TEXT, "",
            "tenants with load, each with its weight, such as a 2 : b 1. The rate of a tenant is"
            " proportional to its weight x its dedicated peak."),
        column("preset", TEXT, "", PRESET),
        column("measured_ratio", REAL, "",
            "measured sharing ratio at the peak of the mix, as in the table savings. Null if the"
            " mix was not measured.", least=0),
        column("measured_low", REAL, "",
            f"lower end of the 95 % interval of `measured_ratio` {CI}", least=0),
        column("measured_high", REAL, "",
            f"upper end of the 95 % interval of `measured_ratio` {CI}", least=0),
        column("predicted_ratio", REAL, "",
            "predicted sharing ratio of the mix. Perseus takes the result of the prediction model"
            " in `step`, and corrects the result by the mean error of this model for the other"
            " measured mixes. Null if too few mixes were measured.",
               least=0),
        column("predicted_low", REAL, "",
            f"lower end {INTERVAL} around `predicted_ratio`", least=0),
        column("predicted_high", REAL, "",
            f"upper end {INTERVAL} around `predicted_ratio`", least=0),
        column("within", REAL, "share",
            "relative half-width of the prediction interval: predicted_high / predicted_ratio -"
            " 1", most=inf),
        column("as_measured", FLAG, "",
            "true if the prediction model in `step` is as exact as a second measurement. To decide,"
            " Perseus compares two intervals. The first interval contains 90 % of the prediction"
            " errors, and the second contains 90 % of the differences between two measurements of"
            " the same mix. The first interval must not be wider than the second."),
        column("error", REAL, "share",
            "relative error of the prediction: predicted_ratio / measured_ratio -"
            " 1", least=-1, most=inf),
        column("step", TEXT, "",
            "prediction model that Perseus uses for this mix: the model with the smallest error for"
            " the other measured mixes. The models, from the simplest to the most complex, are"
            f" {', '.join(LadderStep)} (docs/explanation/frontier.md). Empty without a"
            " prediction.", choices=("", *LadderStep)),
        *(
            column(f"{step.lower()}_ratio", REAL, "",
                f"sharing ratio that the prediction model {step} predicts"
                f" (docs/explanation/frontier.md). The model assumes: {step.description}.",
                least=0)
            for step in LadderStep
        ),
        column("mixes_known", WHOLE, "",
            "number of other measured mixes from which Perseus predicts this mix. The number does"
            " not include mixes in which all tenants have the same model. For a measured mix,"
            " Perseus uses all other measured mixes on the server. For a pair whose mix was not"
            " measured, Perseus uses only one measured mix of each combination of models."),
        column("reason", TEXT, "", "reason why there is no prediction. Empty with a prediction."),
    ],
    key=("server", "preset", "mix"),
    holds=[
        ascending("measured_low", "measured_ratio", "measured_high"),
        ascending("predicted_low", "predicted_ratio", "predicted_high"),
        holds(
            "predicted_high = predicted_ratio x (1 + within)",
            lambda predicted_high, predicted_ratio, within: close(
                predicted_high, predicted_ratio * (1 + within)
            ),
        ),
        holds(
            "error = predicted_ratio / measured_ratio - 1",
            lambda error, predicted_ratio, measured_ratio: close(
                error, predicted_ratio / measured_ratio - 1
            ),
        ),
    ],
)  # fmt: skip


def rows(predictions: Predictions) -> Iterator[Row]:
    for server in predictions.servers:
        for mix in server.mixes():
            yield {"study": predictions.study, "preset": server.preset, **_row(mix)}


def _row(of: PredictedMix) -> Row:
    measured = of.measured.interval() if of.measured else UNKNOWN
    what = "other mixes" if of.measured else "other groups of models"
    return {
        "server": of.server,
        "mix": " : ".join(f"{name} {weight}" for name, weight in of.weights),
        **with_ends("measured_ratio", measured, ("measured_low", "measured_high")),
        **with_ends("predicted_ratio", of.predicted, ("predicted_low", "predicted_high")),
        "within": of.best.half_width if of.best else np.nan,
        "as_measured": of.best is not None and of.best.is_as_good_as_measuring,
        "error": of.predicted.value / measured.value - 1,
        "step": of.best.step if of.best else "",
        **{f"{step.lower()}_ratio": of.ratio(step) for step in LadderStep},
        "mixes_known": of.mixes_known,
        "reason": ""
        if of.best
        else why_none(what, of.mixes_known, noise_of(of.other_mixes), of.missed),
    }

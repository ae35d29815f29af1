"""Table `predictions`: predicted sharing ratio of each mix beside the measured one."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

import numpy as np

from perseus.host.parquet import FLAG, REAL, TEXT, WHOLE
from perseus.peak.predicted.ladder import LadderStep
from perseus.peak.predicted.left_out import CONFIDENCE, noise_of, why_none
from perseus.peak.stats import UNKNOWN
from perseus.results.columns import CI, with_ends
from perseus.results.predictions import PredictedMix, Predictions
from perseus.results.records import Row
from perseus.results.schema import Schema, ascending, close, column, holds

DESCRIPTION = (
    "One row per measured mix of different models on a shared server, and per unmeasured pair of"
    " tenants; at most a hundred of each. If several load lines measured a mix, the first one"
    " counts. A mix that carried nothing within its SLAs has no row."
)
TITLE = "Predicted sharing"
NOTE = (
    "Sum of rate / dedicated peak at the limit of a mix, as the steps of a ladder predict it from"
    " what each tenant did alone, none of them told of the mix itself: "
    + "; ".join(f"{step}, {step.description}" for step in LadderStep)
    + ". The step that predicts the other mixes best is taken, less its usual error; nine of ten"
    " predictions are to lie within the interval. A pair needs no measurement where predictions"
    " are no further off than a second measurement would be, or where its interval is narrow"
    " enough for your question (predict: true of an experiment frontier leaves it out)."
)
SHOWN = {
    "server": "server",
    "mix": "mix",
    "measured": ("measured_ratio", "measured_low", "measured_high"),
    "predicted": ("predicted_ratio", "predicted_low", "predicted_high"),
    "by": "step",
    "within": "within",
    "as measured": "as_measured",
    "error": "error",
    **{step.value: f"{step.lower()}_ratio" for step in LadderStep},
    "other mixes": "mixes_known",
    "why not": "reason",
}
INTERVAL = f"of the {100 * CONFIDENCE:.0f} % interval of a prediction"
SCHEMA = Schema(
    [
        column("study", TEXT, "", "name of the server"),
        column("server", TEXT, "", "name of the server"),
        column("mix", TEXT, "", "tenants under load, with the weights of their dedicated peaks"),
        column("preset", TEXT, "", "how much evidence was collected"),
        column("measured_ratio", REAL, "",
            "sum of rate / dedicated peak at the measured limit, as sharing_ratio in the"
            " table savings; null if not measured", least=0),
        column("measured_low", REAL, "", f"its lower end {CI}", least=0),
        column("measured_high", REAL, "", f"its upper end {CI}", least=0),
        column("predicted_ratio", REAL, "",
            "prediction by the model (step) that predicts the other mixes best,"
            " corrected for its usual error; null if too few mixes were measured", least=0),
        column("predicted_low", REAL, "", f"lower end {INTERVAL}", least=0),
        column("predicted_high", REAL, "", f"upper end {INTERVAL}", least=0),
        column("within", REAL, "share",
            "half of that interval: nine predictions of ten are at most this far off;"
            " at least the uncertainty of the measured ratios", most=inf),
        column("as_measured", FLAG, "", "whether nine predictions of ten are no further off than a"
               " second measurement would be"),
        column("error", REAL, "share", "predicted_ratio / measured_ratio - 1", least=-1, most=inf),
        column("step", TEXT, "",
            "prediction model (step) that was used:"
            f" {', '.join(LadderStep)} (docs/explanation/frontier.md);"
            " empty without a prediction", choices=("", *LadderStep)),
        *(
            column(f"{step.lower()}_ratio", REAL, "", f"by {step}: {step.description}", least=0)
            for step in LadderStep
        ),
        column("mixes_known", WHOLE, "",
            "other measured mixes of different models on the server; for an unmeasured pair, one"
            " mix of each group of models"),
        column("reason", TEXT, "", "why there is no prediction"),
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

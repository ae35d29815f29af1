"""Conclusion: for which pairs of tenants the predicted sharing ratio may replace a measurement."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from perseus.peak.outcome import Outcome
from perseus.report.conclusions.conclusion import Conclusion, Tables
from perseus.report.conclusions.sharing import QUICK
from perseus.report.links import to_table
from perseus.report.numbers import listed, percent

_BEHIND = (to_table("predictions"),)


def conclusions(tables: Tables) -> Iterator[Conclusion]:
    """Yield up to two conclusions for each combination of server and preset with predicted pairs.

    One conclusion is about the pairs whose predictions are as exact as measurements. The other
    conclusion is about the pairs with less exact predictions.
    """
    predictions = tables["predictions"]
    told = predictions[
        predictions["measured_ratio"].isna()
        & predictions["predicted_ratio"].notna()
        & np.isfinite(predictions["within"])
        & (predictions["preset"] != "smoke")
    ]
    presets = told.groupby("server")["preset"].nunique()
    for (server, preset, is_enough), pairs in told.groupby(
        ["server", "preset", "as_measured"], sort=False
    ):
        where = f"{server} with the preset {preset}" if presets[server] > 1 else str(server)
        once = _in_one_run(tables["peaks"], str(server), str(preset))
        yield (_enough if is_enough else _too_far_off)(where, pairs, once)


def _enough(where: str, pairs: pd.DataFrame, once: str) -> Conclusion:
    count = "one pair needs" if len(pairs) == 1 else f"{len(pairs)} pairs need"
    within = percent(pairs["within"].max())
    headline = (
        f"On {where}, {count} no measurement if you accept an error of {within} (90 % of the"
        " predicted sharing ratios have at most this error)"
    )
    sentences = (
        *_by_what(pairs),
        "Each predicted value is as exact as a second measurement of the same pair.",
    )
    return Conclusion("perhaps", headline, (*sentences, *_caveats(pairs, once)), _BEHIND)


def _too_far_off(where: str, pairs: pd.DataFrame, once: str) -> Conclusion:
    count = "one pair is" if len(pairs) == 1 else f"{len(pairs)} pairs are"
    within = percent(pairs["within"].max())
    headline = (
        f"On {where}, {count} predicted with an error of up to {within} (90 % of the predicted"
        " sharing ratios have at most this error): measure the pairs that matter to you"
    )
    return Conclusion("unclear", headline, (*_by_what(pairs), *_caveats(pairs, once)), _BEHIND)


def _by_what(pairs: pd.DataFrame) -> Iterator[str]:
    steps = " and ".join(sorted(set(pairs["step"])))
    known = f"{pairs['mixes_known'].max():.0f} measured mixes"
    ratios = pairs.sort_values("predicted_ratio")
    worst, best = ratios.iloc[0], ratios.iloc[-1]
    if len(pairs) == 1:
        yield f"Perseus predicts this pair from {known}, with the prediction model {steps}."
        yield f"The sharing ratio of {best['mix']} is {best['predicted_ratio']:.2f}."
    else:
        yield f"Perseus predicts these pairs from {known}, with the prediction model {steps}."
        yield (
            f"The highest sharing ratio is {best['predicted_ratio']:.2f} ({best['mix']}),"
            f" the lowest {worst['predicted_ratio']:.2f} ({worst['mix']})."
        )


def _in_one_run(peaks: pd.DataFrame, server: str, preset: str) -> str:
    """Return the start of a sentence that names the mixes with only one run; empty if each mix has
    several runs."""
    mine = peaks[(peaks["server"] == server) & (peaks["preset"] == preset)]
    measured = mine[(mine["repeats_used"] > 0) & (mine["verdict"] != Outcome.PREDICTED)]
    once = measured[measured["repeats_used"] == 1]
    if once.empty:
        return ""
    if len(once) == len(measured):
        return "Each mix was"
    return f"{listed(list(once['mix']))} {'was' if len(once) == 1 else 'were'}"


def _caveats(pairs: pd.DataFrame, once: str) -> Iterator[str]:
    if once:
        yield (
            f"{once} measured in one run, so the stated error may not include all of the variation"
            " between starts of a server."
        )
    if "quick" in set(pairs["preset"]):
        yield QUICK

"""Which pairs need no measuring, in words, as the report begins with it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from perseus.report.answers.answer import Answer, Tables
from perseus.report.links import to_table
from perseus.report.numbers import percent


def answers(tables: Tables) -> Iterator[Answer]:
    """An answer for each server with pairs that were not measured and are predicted."""
    predictions = tables["predictions"]
    told = predictions[
        predictions["measured_ratio"].isna()
        & predictions["predicted_ratio"].notna()
        & np.isfinite(predictions["within"])
    ]
    for server, pairs in told.groupby("server", sort=False):
        ratios = pairs.sort_values("predicted_ratio")
        worst, best = ratios.iloc[0], ratios.iloc[-1]
        steps = " and ".join(sorted(set(pairs["step"])))
        headline = (
            f"On {server}, {_count(len(pairs))} no measuring at an error of"
            f" {percent(pairs['within'].max())} (nine of ten)"
        )
        yield Answer(
            "perhaps",
            headline,
            (
                f"{steps} predicts them from {pairs['mixes_known'].max():.0f} mixes that were"
                " measured.",
                f"Of these {best['mix']} shares best, {best['predicted_ratio']:.2f} of dedicated"
                f" servers; {worst['mix']} worst, {worst['predicted_ratio']:.2f}.",
            ),
            (to_table("predictions"),),
        )


def _count(pairs: int) -> str:
    return "one pair needs" if pairs == 1 else f"{pairs} pairs need"

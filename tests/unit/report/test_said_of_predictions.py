"""What the report says of pairs that need no measuring."""

import numpy as np
import pandas as pd

from perseus.report.answers.predicted import answers


def row(mix, measured, ratio, within=0.08, server="cpu1"):
    return {
        "server": server,
        "mix": mix,
        "measured_ratio": measured,
        "predicted_ratio": ratio,
        "within": within,
        "step": "B2",
        "mixes_known": 6,
    }


def said(*rows):
    return list(answers({"predictions": pd.DataFrame(rows)}))


MEASURED = row("a 1 : b 1", 0.9, 0.91)


def test_pairs_that_were_not_measured_are_told_with_their_error_and_the_best_and_worst_of_them():
    (answer,) = said(
        MEASURED,
        row("a 1 : c 1", np.nan, 0.7, within=0.09),
        row("b 1 : c 1", np.nan, 1.1),
    )
    assert (
        answer.headline == "On cpu1, 2 pairs need no measuring at an error of 9.0 % (nine of ten)"
    )
    assert answer.sentences[0].startswith("B2 predicts them from 6 mixes")
    assert "b 1 : c 1 shares best, 1.10" in answer.sentences[1]
    assert "a 1 : c 1 worst, 0.70" in answer.sentences[1]


def test_one_pair_is_one():
    (answer,) = said(MEASURED, row("a 1 : c 1", np.nan, 0.7))
    assert "one pair needs no measuring" in answer.headline


def test_nothing_is_said_where_all_was_measured_or_nothing_is_predicted():
    assert not said(MEASURED)
    assert not said(MEASURED, row("a 1 : c 1", np.nan, np.nan, within=np.nan))


def test_each_server_has_its_own():
    others = row("a 1 : b 1", np.nan, 0.8, server="gpu1")
    assert len(said(row("a 1 : c 1", np.nan, 0.7), others)) == 2

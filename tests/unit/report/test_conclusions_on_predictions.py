"""Tests of the conclusions on predicted pairs."""

import numpy as np
import pandas as pd

from perseus.report.conclusions.predicted import conclusions


def row(mix, measured, ratio, within=0.08, server="cpu1", preset="standard", enough=True):
    return {
        "server": server,
        "preset": preset,
        "mix": mix,
        "measured_ratio": measured,
        "predicted_ratio": ratio,
        "within": within,
        "as_measured": enough,
        "step": "B2",
        "mixes_known": 6,
    }


PEAK = {"server": "cpu1", "preset": "standard", "mix": "a", "verdict": "ok", "repeats_used": 3}


def concluded(*rows, peaks=(PEAK,)):
    return list(conclusions({"predictions": pd.DataFrame(rows), "peaks": pd.DataFrame(peaks)}))


MEASURED = row("a 1 : b 1", 0.9, 0.91)


def test_pairs_that_were_not_measured_are_told_with_their_error_and_the_best_and_worst_of_them():
    (conclusion,) = concluded(
        MEASURED,
        row("a 1 : c 1", np.nan, 0.7, within=0.09),
        row("b 1 : c 1", np.nan, 1.1),
    )
    assert conclusion.headline == (
        "On cpu1, 2 pairs need no measurement if you accept an error of 9.0 % (90 % of the"
        " predicted sharing ratios have at most this error)"
    )
    told = "Perseus predicts these pairs from 6 measured mixes, with the prediction model B2."
    assert conclusion.sentences[0] == told
    assert "The highest sharing ratio is 1.10 (b 1 : c 1)" in conclusion.sentences[1]
    assert "the lowest 0.70 (a 1 : c 1)" in conclusion.sentences[1]


def test_one_pair_is_one():
    (conclusion,) = concluded(MEASURED, row("a 1 : c 1", np.nan, 0.7))
    assert "one pair needs no measurement" in conclusion.headline
    told = "Perseus predicts this pair from 6 measured mixes, with the prediction model B2."
    assert told in conclusion.sentences
    assert not any(
        "highest" in sentence or "lowest" in sentence for sentence in conclusion.sentences
    )


def test_nothing_is_said_where_all_was_measured_or_nothing_is_predicted():
    assert not concluded(MEASURED)
    assert not concluded(MEASURED, row("a 1 : c 1", np.nan, np.nan, within=np.nan))


def test_each_server_has_its_own():
    others = row("a 1 : b 1", np.nan, 0.8, server="gpu1")
    assert len(concluded(row("a 1 : c 1", np.nan, 0.7), others)) == 2


def test_pairs_that_measuring_would_tell_better_are_not_said_to_need_none():
    """A prediction with an error of 275 % replaces no measurement, even if several pairs have such
    a prediction."""
    far = [row(f"a 1 : {name} 1", np.nan, 0.7, within=2.75, enough=False) for name in "cd"]
    near, told = concluded(row("a 1 : e 1", np.nan, 0.7), *far)
    assert near.headline.startswith("On cpu1, one pair needs no measurement")
    assert told.headline == (
        "On cpu1, 2 pairs are predicted with an error of up to 275 % (90 % of the predicted"
        " sharing ratios have at most this error): measure the pairs that matter to you"
    )
    assert told.kind == "unclear"


def test_each_preset_of_a_server_is_told_apart_and_a_smoke_run_tells_nothing():
    one, other = concluded(
        row("a 1 : b 1", np.nan, 0.8), row("a 1 : b 1", np.nan, 0.8, preset="publication")
    )
    assert "cpu1 with the preset standard, one pair" in one.headline
    assert "cpu1 with the preset publication, one pair" in other.headline
    assert not concluded(row("a 1 : b 1", np.nan, 0.8, preset="smoke"))


def test_what_was_measured_in_one_run_is_said_to_be():
    once, predicted_record = PEAK | {"mix": "b", "repeats_used": 1}, PEAK | {"verdict": "predicted"}

    def caveats(*peaks):
        (conclusion,) = concluded(row("a 1 : b 1", np.nan, 0.8), peaks=peaks)
        return [each for each in conclusion.sentences if "measured in one run" in each]

    assert not caveats(PEAK) and not caveats(PEAK, predicted_record | {"repeats_used": 1})
    assert caveats(once, predicted_record)[0].startswith("Each mix was measured in one run, so ")
    assert caveats(PEAK, once)[0].startswith("b was measured in one run, so ")
    two = caveats(PEAK, once, once | {"mix": "c"})
    assert two[0].startswith("b and c were measured in one run, so ")

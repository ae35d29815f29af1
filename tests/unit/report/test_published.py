"""Tests that a figure shows published results only for the models in the publication."""

import pytest

from perseus.report.published import POINTS_RPS, shares

PAIR = ("inception_v3", "resnet50")


def test_points_are_shares_of_the_dedicated_peaks_of_the_same_server():
    found = dict(shares(*PAIR))
    assert set(found) == set(POINTS_RPS) and all(len(points) == 5 for points in found.values())
    assert found["one P4"][1] == pytest.approx((147 / 204, 60 / 155))
    assert dict(shares(*reversed(PAIR)))["one P4"][1] == pytest.approx((60 / 155, 147 / 204))


def test_they_gain_about_what_the_study_claims():
    """The abstract of the PERSEUS paper claims savings of up to 12 %.

    A point with the shares r / C of the dedicated peaks saves 1 - 1 / sum(r / C).
    """
    best = [max(1 - 1 / sum(point) for point in points) for _, points in shares(*PAIR)]
    assert all(0.09 < saving < 0.17 for saving in best)


def test_other_models_have_none():
    assert not list(shares("resnet50", "resnet18"))
    assert not list(shares("resnet50", "resnet50"))

"""Tests of the values in the tables of the page."""

import pytest

from perseus.report.numbers import percent_below, significant
from perseus.report.shown_tables import Entry, between, entry_of, rows_of, shares_of, span
from perseus.results.tables import module_of


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (1.25, 2.66, "1.25 to 2.66"),
        (0.0, 2.66, "at most 2.66"),
        (2.07, float("inf"), "at least 2.07"),
        (0.0, float("inf"), "no bound"),
    ],
)
def test_an_end_that_bounds_nothing_is_left_out(low, high, text):
    row = {"slowdown": 2.2, "low": low, "high": high}
    assert span(row, ["slowdown", "low", "high"]) == Entry("2.20", f"({text})")


def test_without_both_ends_there_is_no_interval():
    row = {"slowdown": 2.2, "low": 0.0, "high": None}
    assert span(row, ["slowdown", "low", "high"]) == Entry("2.20")


def test_a_share_of_nothing_is_a_bound():
    row = {"low": 0.0, "high": 0.037}
    assert between(row, ["low", "high"], "percent") == "0.0 % to 3.7 %"


def test_of_a_drift_nothing_is_a_number():
    """A count that never changes has a drift of 0.

    A low end of 0 is omitted only if the high end is positive.
    """
    row = {"slope": 0.0, "low": 0.0, "high": 0.0}
    assert span(row, ["slope", "low", "high"]) == Entry("0", "(0 to 0)")


def test_values_of_a_kind_are_shown_by_their_type():
    row = {"a": 3, "b": True, "c": 1.23456, "low": 1.1, "high": 1.3, "d": None, "e": "cold"}
    columns = ("a", "b", "c", ("c", "low", "high"), "e", "d")
    assert [entry_of(row, each, frozenset()) for each in columns] == [
        Entry("3"),
        Entry("yes"),
        Entry("1.23"),
        Entry("1.23", "(1.10 to 1.30)"),
        Entry("cold"),
        Entry(significant(None)),
    ]


def test_shares_are_in_percent_and_counts_are_whole_though_some_are_missing():
    schema = module_of("replay").SCHEMA.arrow
    frame = schema.empty_table().to_pandas()
    frame["attained"], frame["bursts"] = [0.943, 0.5], [2.0, None]
    first, second = rows_of(frame[["attained", "bursts"]], schema)
    assert entry_of(first, "attained", shares_of(schema)) == Entry("94 %")
    assert entry_of(first, "bursts", shares_of(schema)) == Entry("2")
    assert entry_of(second, "bursts", shares_of(schema)) == Entry(significant(None))


def test_there_is_no_link_where_there_is_nothing_to_look_up():
    assert Entry("27.0").to("cell-a") == Entry("27.0", link="cell-a")
    assert Entry(significant(None)).to("cell-a") == Entry(significant(None))


@pytest.mark.parametrize(
    ("share", "bound", "text"),
    [
        (0.5, 0.95, "50 %"),
        (0.031, 0.95, "3.1 %"),
        (0.9468, 0.95, "94.7 %"),
        (0.94996, 0.95, "94.996 %"),
        (0.9989, 0.999, "99.89 %"),
    ],
)
def test_a_share_below_a_bound_is_seen_to_be_below_it(share, bound, text):
    assert percent_below(share, bound) == text

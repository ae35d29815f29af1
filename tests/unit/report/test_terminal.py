"""Tests that a run ends with the conclusion and the table of peaks."""

import re
from dataclasses import replace

import pyarrow.parquet as pq
import pytest
import synthetic
import synthetic_files

from perseus.peak.outcome import Outcome
from perseus.report.conclusions import summary
from perseus.report.shown_tables import BELOW
from perseus.report.terminal import ADVICE, MAX_PEAKS, lines
from perseus.results.tables import TABLES


def written(folder, made):
    for name, table in synthetic_files.tables_of(made).items():
        pq.write_table(table, folder / f"{name}.parquet")
    return list(lines(folder))


def test_the_conclusion_comes_before_the_peaks_in_columns(tmp_path):
    output = written(tmp_path, synthetic.with_failures(synthetic.records()))
    assert "should share" in output[0]
    start = output.index("")
    head = "server load line requests/s 95 % interval certified verdict"
    assert " ".join(output[start + 1].split()) == head
    assert output[start + 2].startswith("cpu1    resnet18 ")
    assert any(line.endswith("client limited") for line in output)
    assert len(output) == start + 2 + 7 + 4  # with one line of advice for each verdict but ok


def test_each_verdict_but_ok_is_followed_by_what_one_can_do(tmp_path):
    output = written(tmp_path, synthetic.with_failures(synthetic.records()))
    assert output[-4:] == [
        f"infeasible: {ADVICE[Outcome.INFEASIBLE]}",
        "client limited: for the reason, see the report; for help, see docs/reference/verdicts.md",
        f"uncertified: {ADVICE[Outcome.UNCERTIFIED]}",
        "failed: for the reason, see the report; for help, see docs/reference/verdicts.md",
    ]
    assert not any(line.startswith("ok:") for line in written(tmp_path, synthetic.records()))


@pytest.mark.parametrize(
    ("verdict", "text"),
    [
        (Outcome.UNCERTIFIED, "no tested rate was certified, or no rate failed"),
        (Outcome.UNCERTIFIED, "If the reason in the report names a preset, run the study with"),
        (Outcome.INFEASIBLE, "the server misses the SLA even at low rates, or"),
        (Outcome.INFEASIBLE, "Perseus could not export the model"),
    ],
)
def test_the_advice_is_true_for_each_cause_of_a_verdict(verdict, text):
    """`preset: standard` is wrong advice for a study with this preset. A cell without a failing
    rate may have a certified rate."""
    assert text in ADVICE[verdict] and "preset: standard" not in ADVICE[verdict]


def test_a_rate_below_the_interval_that_failed_is_marked_as_on_the_page(tmp_path):
    made = synthetic.records()
    assert not any(BELOW in line for line in written(tmp_path, made))
    made[0]["first_failing_scale"] = 0.5 * made[0]["estimate_scale"]
    output = written(tmp_path, made)
    start = output.index("")
    marked = [line for line in output[start + 2 :] if BELOW in line]
    assert re.search(rf"to [\d.]+ {BELOW}  ", marked[0]) and marked[0] == output[start + 2]
    assert marked[1:] == [output[-1]] and output[-1].startswith(
        f"{BELOW} some windows failed at rates below the interval"
    )


def test_many_peaks_are_left_to_their_file(tmp_path):
    mixes = [(n, 1) for n in range(1, MAX_PEAKS + 1)]
    truth = synthetic.Truth(synthetic.TRUTH.capacities, repeats=1, bootstraps=20)
    output = written(tmp_path, synthetic.records(truth, mixes=mixes, holds=()))
    assert output[-1] == f"... and 2 more: {tmp_path}/peaks.csv"


def test_of_many_conclusions_the_first_are_named(tmp_path, monkeypatch):
    monkeypatch.setitem(summary.MANY, "sharing", replace(summary.MANY["sharing"], most=0))
    output = written(tmp_path, synthetic.records())
    (start,) = (
        i for i, line in enumerate(output) if line.startswith("Of 1 scenarios of different")
    )
    assert output[start + 1].startswith("  On full servers, ")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8", None])
def test_what_a_terminal_cannot_write_is_plain(encoding, tmp_path):
    made = synthetic.records(synthetic.Truth(synthetic.TRUTH.capacities, gain=0.9))
    made[0]["first_failing_scale"] = 0.5 * made[0]["estimate_scale"]
    for name, table in synthetic_files.tables_of(made).items():
        pq.write_table(table, tmp_path / f"{name}.parquet")
    text = "\n".join(lines(tmp_path, encoding))
    text.encode(encoding or "utf-8")
    assert "?" not in text
    assert ("*" in text) == (encoding in ("ascii", "latin-1")) == (BELOW not in text)


def test_without_tables_or_with_cut_ones_nothing_is_said(tmp_path):
    assert not list(lines(tmp_path))
    for name in TABLES:
        (tmp_path / f"{name}.parquet").write_text("cut")
    assert not list(lines(tmp_path))

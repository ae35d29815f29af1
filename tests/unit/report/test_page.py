"""The report answers first, hedges where it must, and lets no name break its HTML."""

import html
import re

import numpy as np
import pandas as pd
import pytest
import synthetic
import synthetic_files

from perseus.host import parquet
from perseus.report import page as report_page
from perseus.report.answer import _cheapest, answers
from perseus.report.numbers import percent, significant
from perseus.results.study_results import StudyResults
from perseus.results.tables import module_of
from perseus.study.experiments import OTHER_KINDS

SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><rect id="a"/></svg>'


@pytest.fixture(scope="module", autouse=True)
def quick():
    with synthetic.few_fleet_draws():
        yield


def frames_of(made):
    return {name: table.to_pandas() for name, table in synthetic_files.tables_of(made).items()}


def rendered(made):
    return report_page.render(frames_of(made), {"peaks": SVG}, synthetic.loaded(made))


def answer_of(gain, preset="standard", **truth):
    """The answer of a synthetic study with one mix."""
    truth = synthetic.Truth(synthetic.TRUTH.capacities, gain, **truth)
    frames = frames_of(synthetic.records(truth, mixes=[(1, 1)], holds=()))
    (answer,) = answers(frames["peaks"], frames["costs"], frames["savings"], preset)
    return answer


@pytest.fixture(scope="module")
def page():
    return rendered(synthetic.with_failures(synthetic.records()))


def test_it_begins_with_the_answer(page):
    text = html.unescape(re.sub(r"<[^>]+>", " ", page))
    assert text.index("should share: it saves about") < text.index("Peaks")
    assert re.search(r"carries 1\.\d\d times what dedicated servers carry", text)
    assert re.search(r"95 % interval \d+ % to \d+ %; probability of a saving > 0\.999", text)


def test_it_is_one_file(page):
    assert "data:image/svg+xml;base64," in page
    assert not re.search(r'(src|href)="(?!data:)', page)


def test_it_lists_what_did_not_succeed(page):
    for words in ("server died in mid-run", "client used 91% of its core", "client limited"):
        assert words in page


def test_a_ceiling_that_is_too_low_is_refused_and_why():
    made = synthetic.records(mixes=[(1, 1)], holds=())
    frames = frames_of(made)
    frames["ceilings"]["problem"] = "resnet18 took 449 % of it in valid windows"
    frames["peaks"]["client_load"] = np.nan
    page = report_page.render(frames, {"peaks": SVG}, synthetic.loaded(made))
    assert "ceiling is not to be trusted" in page and "took 449 % of it" in page
    assert page.count("449") == 1
    assert "not to be trusted" not in rendered(made)


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({}, None),
        ({"tells_siblings": False}, "does not tell of CPUs that share a physical core"),
        ({"shared_by_server_and_client": [2, 6]}, "share a physical core (CPUs 2, 6)"),
    ],
)
def test_it_says_what_is_known_of_physical_cores(told, said):
    made = synthetic.records(mixes=[(1, 1)], holds=())
    for record in made:
        record["host"]["topology"] |= told
    text = " ".join(rendered(made).split()).replace("\n", " ")
    assert (said in text) if said else ("share a physical core" not in text)


def test_names_cannot_break_the_page():
    truth = synthetic.Truth({"<script>alert(1)</script>": 30.0, "a&b": 90.0}, repeats=1)
    page = rendered(synthetic.records(truth, mixes=[(1, 1)], holds=()))
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "a&amp;b" in page


def test_a_clear_gain_is_a_yes():
    answer = answer_of(1.25)
    assert answer.kind == "yes"


def test_a_clear_loss_is_a_no_and_said_as_more_cost():
    answer = answer_of(0.8)
    assert answer.kind == "no"
    assert re.search(r"money: 2\d % more cost \(95 % interval \d+ % to \d+ %;", answer.sentences[0])
    assert "\N{MINUS SIGN}" not in answer.sentences[0]


def test_a_loss_in_the_mixes_that_could_be_measured_is_told_as_such():
    made = synthetic.records(synthetic.Truth(synthetic.TRUTH.capacities, 0.8))
    first = next(r["cell"]["run"] for r in made if r["cell"]["run"]["line"] == "mix")
    made = [
        synthetic.spoil(r, "failed", "the server died") if r["cell"]["run"] == first else r
        for r in made
    ]
    frames = frames_of(made)
    (answer,) = answers(frames["peaks"], frames["costs"], frames["savings"], "standard")
    assert "every measured mix" not in answer.headline
    assert re.search(r"of \d mixes \d have an estimate", answer.headline)
    assert any("There is no estimate for" in s and "died" in s for s in answer.sentences)


def test_no_difference_is_called_unclear():
    answer = answer_of(1.0, between=0.0)
    assert answer.kind == "unclear"
    assert any("interval contains 0" in sentence for sentence in answer.sentences)


def test_a_single_quick_run_is_called_so():
    answer = answer_of(1.25, preset="quick", repeats=1)
    assert answer.headline.endswith("(one run each: repeat to be sure)")
    sentences = " ".join(answer.sentences)
    assert "rests on one run" in sentences
    assert "for trying a configuration" in sentences
    assert "rests on one run" not in " ".join(answer_of(1.25, repeats=2).sentences)


def test_a_saving_that_is_only_the_best_of_many_is_a_perhaps():
    frames = frames_of(synthetic.records())
    savings = frames["savings"].assign(ci_low=0.01, ci_simultaneous_low=-0.01)
    answer = answers(frames["peaks"], frames["costs"], savings, "standard")[0]
    assert answer.kind == "perhaps"


def test_nothing_known_gives_the_reasons():
    made = [synthetic.spoil(r, "failed", "the server died") for r in synthetic.records()]
    page = rendered(made)
    assert "is not known" in page
    assert "the server died" in page
    assert "Nothing was certified" in page


def test_a_study_without_sharing_has_a_report():
    made = [r for r in synthetic.records() if r["cell"]["run"]["line"] == "dedicated"]
    page = rendered(made)
    assert "Savings of sharing" not in page
    assert "30." in page


def test_of_several_servers_the_cheapest_is_named():
    costs = frames_of(synthetic.records())["costs"]
    dear = costs.assign(
        server="gpu1", usd_per_million_inferences=9 * costs["usd_per_million_inferences"]
    )
    answer = next(iter(_cheapest(pd.concat([dear, costs]))))
    assert answer.sentences[0].startswith("resnet18: cpu1 at 0.4")


def test_cells_of_different_hosts_are_marked():
    made = synthetic.records()
    made[0] = made[0] | {"host": made[0]["host"] | {"cpu": "Another processor"}}
    assert "not strictly comparable" in rendered(made)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0475, "0.0475"), (1234.5, "1234"), (None, "–"), (float("inf"), "∞"), (0.0, "0")],  # noqa: RUF001
)
def test_numbers_are_for_people(value, text):
    assert significant(value) == text


def test_percentages():
    assert percent(0.2128) == "21 %"
    assert percent(-0.031) == "\N{MINUS SIGN}3.1 %"
    assert percent(0.09999) == "10 %"


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
    assert report_page._span(row, ["slowdown", "low", "high"]) == f"2.20 ({text})"


def test_without_both_ends_there_is_no_interval():
    assert (
        report_page._span({"slowdown": 2.2, "low": 0.0, "high": None}, ["slowdown", "low", "high"])
        == "2.20"
    )


def test_a_share_of_nothing_is_a_bound():
    assert (
        report_page._range({"low": 0.0, "high": 0.037}, ["low", "high"], "percent")
        == "0.0 % to 3.7 %"
    )


WRITERS = {
    "concurrency": synthetic_files.write_sweep,
    "startup": synthetic_files.write_startup,
}


@pytest.mark.parametrize("kind", OTHER_KINDS)
def test_a_kind_of_experiment_has_its_section_with_its_rows(kind, tmp_path):
    cell = WRITERS[kind](tmp_path)
    results = StudyResults.read(synthetic.TASK, [cell], [])
    frame = parquet.table(list(module_of(kind).rows(results)), module_of(kind).SCHEMA).to_pandas()
    made = synthetic.records()
    without = frames_of(made)
    shown = report_page.render({**without, kind: frame}, {}, synthetic.loaded(made))
    assert f"<h2>{module_of(kind).TITLE}</h2>" in shown
    assert f"<h2>{module_of(kind).TITLE}</h2>" not in rendered(made)
    assert shown.count(f"<td>{cell.name}</td>") == len(frame)


def test_values_of_a_kind_are_shown_by_their_type():
    row = {"a": 3, "b": True, "c": 1.23456, "low": 1.1, "high": 1.3, "d": None, "e": "cold"}
    shown = [report_page._shown(row, each) for each in ("a", "b", "c", ("c", "low", "high"), "e")]
    assert shown == ["3", "yes", "1.23", "1.23 (1.10 to 1.30)", "cold"]
    assert report_page._shown(row, "d") == significant(None)

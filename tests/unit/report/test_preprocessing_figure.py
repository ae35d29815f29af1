"""Tests of the figure of the preprocessing by client and server."""

import pytest
import synthetic
import synthetic_files
from drawn import figure_of

from perseus.report.figure_data import FigureData
from perseus.report.figures import data_of


@pytest.fixture(scope="module")
def results():
    """Return results in which the client sends pictures to resnet18, and tensors otherwise."""
    truth = synthetic.Truth(synthetic.TRUTH.capacities, repeats=1)
    first, *others = synthetic.records(truth, mixes=(), holds=())
    made = synthetic_files.tables_of([synthetic.by_server(first), *others])
    return FigureData({name: table.to_pandas() for name, table in made.items()})


def test_only_tenants_that_say_where_have_a_row_with_the_interval_of_their_line(results):
    (row,) = data_of("preprocessing", results).to_dict("records")
    assert (row["tenant"], row["preprocessing"]) == ("resnet18", "server")
    (line,) = results.peaks[results.peaks["mix"] == "resnet18"].to_dict("records")
    assert row["limit_rps"] == pytest.approx(line["estimate_rps"])
    assert row["ci_low_rps"] == pytest.approx(line["ci_low_rps"])
    assert row["ci_high_rps"] == pytest.approx(line["ci_high_rps"])
    assert row["ci_low_rps"] < row["limit_rps"] < row["ci_high_rps"]


@pytest.mark.parametrize("where", ["client", "server"])
def test_cpu_of_both_sides_adds_up_in_one_bar(results, where):
    """Preprocessing takes CPU time of the client only if the client preprocesses."""
    tenants = results.tenants.replace({"preprocessing": {"server": where}})
    results = FigureData({**results.tables, "tenants": tenants})
    (row,) = tenants[tenants["preprocessing"] == where].to_dict("records")
    assert row["client_preprocess_ms"] > 0
    bars = figure_of("preprocessing", results).axes[3].patches
    made = row["client_preprocess_ms"] if where == "client" else 0
    parts = [made, row["client_cpu_ms"], row["server_cpu_ms"]]
    assert [bar.get_width() for bar in bars] == pytest.approx(parts)
    assert bars[-1].get_x() + bars[-1].get_width() == pytest.approx(sum(parts))


def test_a_tenant_alone_and_in_a_mix_has_a_row_each():
    truth = synthetic.Truth(synthetic.TRUTH.capacities, repeats=2)
    made = synthetic_files.tables_of(synthetic.records(truth, mixes=[(1, 1)], holds=()))
    frames = {name: table.to_pandas() for name, table in made.items()}
    of_one = frames["tenants"]["tenant"] == "resnet18"
    frames["tenants"].loc[of_one, "preprocessing"] = "client"
    drawn = figure_of("preprocessing", FigureData(frames))
    names = [label.get_text() for label in drawn.axes[0].get_yticklabels()]
    assert names == ["resnet18 (client)", "resnet18 (client), mix 1 : 1"]
    rows = data_of("preprocessing", FigureData(frames))
    limits = frames["tenants"][of_one].groupby("load_line", sort=False)["estimate_rps"].mean()
    assert list(rows["limit_rps"]) == pytest.approx(list(limits))


def test_a_study_without_pictures_has_nothing_to_draw():
    made = synthetic_files.tables_of(synthetic.records(mixes=(), holds=()))
    frames = {name: table.to_pandas() for name, table in made.items()}
    assert data_of("preprocessing", FigureData(frames)).empty
    drawn = figure_of("preprocessing", FigureData(frames))
    assert "no images" in drawn.axes[0].texts[0].get_text()

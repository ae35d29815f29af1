"""Tests that texts distinguish two scenarios of the same models on one server."""

import pandas as pd
import pytest
import synthetic
import synthetic_files
from drawn import STYLE, figure_of

from perseus.host import parquet
from perseus.report import drawing, terminal
from perseus.report.comparison.figure import draw
from perseus.report.figure_data import FigureData
from perseus.report.figures import servers
from perseus.report.links import to_lines
from perseus.report.style import drawing as in_style
from perseus.results.compare.source import read_source
from perseus.results.compare.table import compare
from perseus.results.scenario_names import with_scenario_names

SHARED, SURE = "resnet18 1 : 1 mobilenet_v3_large", "resnet18 3 : 1 mobilenet_v3_large"


@pytest.fixture(scope="module")
def found():
    """Return the tables of a study whose scenarios `shared` and `sure` have the same tenants."""
    return synthetic_files.tables_of(synthetic.with_two_presets(repeats=1))


@pytest.fixture(scope="module")
def frames(found):
    return with_scenario_names({name: table.to_pandas() for name, table in found.items()})


def test_a_mix_of_two_scenarios_has_their_names_and_any_other_has_not(frames):
    mixes = list(frames["peaks"]["mix"])
    assert len(set(mixes)) == len(mixes)
    assert {"resnet18", "resnet18 (standard)", f"{SHARED} (shared)", f"{SURE} (sure)"} <= set(mixes)
    for name in ("tenants", "costs", "savings", "operating_points"):
        assert set(frames[name]["mix"]) <= set(mixes)
    only = {n: t.to_pandas() for n, t in synthetic_files.tables_of(synthetic.records()).items()}
    assert with_scenario_names(only)["peaks"]["mix"].equals(only["peaks"]["mix"])


def test_settings_of_a_grid_keep_their_question():
    made = synthetic_files.tables_of(synthetic.grid_records(), synthetic.grid_task())
    tables = {name: table.to_pandas() for name, table in made.items()}
    assert with_scenario_names(tables)["grid"]["mix"].equals(tables["grid"]["mix"])


def test_the_terminal_and_the_links_of_conclusions_tell_them_apart(found, frames, tmp_path):
    for name, table in found.items():
        parquet.write(table, tmp_path / f"{name}.parquet", tmp_path / f"{name}.csv")
    text = "\n".join(terminal.lines(tmp_path))
    assert f"{SHARED} (shared)" in text and f"{SHARED} (sure)" in text
    words = [link.label for link in to_lines(frames["peaks"])]
    assert len(words) > 6 and len(set(words)) == len(words)


@pytest.mark.parametrize("name", ["peaks", "costs"])
def test_a_figure_tells_them_apart(name, frames):
    (panel,) = figure_of(name, FigureData(frames)).axes
    labels = [label.get_text() for label in panel.get_yticklabels()]
    assert len(set(labels)) == len(labels)


def test_a_figure_is_drawn_of_tables_that_tell_them_apart(found, tmp_path):
    paths = {}
    for name, table in found.items():
        paths[name] = tmp_path / f"{name}.parquet"
        parquet.write(table, paths[name], tmp_path / f"{name}.csv")
    files = [tmp_path / f"peaks.{kind}" for kind in ("svg", "png", "csv")]
    drawing.draw("peaks", paths, [], STYLE, *files)
    assert f"{SHARED} (sure)" in list(pd.read_csv(files[2])["mix"])


def test_servers_are_weighed_by_scenario():
    made = synthetic.with_two_presets(repeats=1)
    made += [synthetic.on_server(record, "cpu2", "openvino") for record in made]
    prices = {"cpu1": synthetic.PRICE, "cpu2": synthetic.PRICE}
    task = synthetic.TASK.model_copy(update={"prices": prices})
    found = synthetic_files.tables_of(made, task)
    results = FigureData(
        with_scenario_names({name: table.to_pandas() for name, table in found.items()})
    )
    for _, rows in servers.data(results).groupby(["pricing", *servers.QUESTION]):
        assert sorted(rows["server"]) == ["cpu1", "cpu2"]


def test_the_figure_of_a_comparison_tells_them_apart(tmp_path):
    made = synthetic.with_two_presets()
    base, new = (
        read_source(synthetic_files.write_study(tmp_path / name, made)) for name in ("base", "new")
    )
    with in_style(STYLE):
        peaks, ratios = draw(compare(base, new, 200).table.to_pandas(), STYLE).axes
    for panel in (peaks, ratios):
        labels = [label.get_text() for label in panel.get_yticklabels()]
        assert len(set(labels)) == len(labels)


def test_a_title_names_what_a_study_has_several_of():
    cells = ["shared.soak-40.r1", "shared.soak-40.r2", "shared.soak-80.r1", "pair.soak-40.r1"]
    rows = [
        {"cell": f"cpu1.{cell}", "scenario": f"cpu1.{cell.split('.')[0]}", "repeat": int(cell[-1])}
        for cell in cells
    ]
    among = pd.DataFrame(rows).assign(server="cpu1")
    costs = synthetic_files.tables_of(synthetic.records(mixes=(), holds=()))["costs"]
    results = FigureData({"costs": costs.to_pandas()})
    server = "1 server of type cpu1, $34.7/month"
    assert [results.where(row, among, "on_demand") for _, row in among.iterrows()] == [
        f"shared, soak-40, repeat 1: {server}",
        f"shared, soak-40, repeat 2: {server}",
        f"shared, soak-80: {server}",
        f"pair: {server}",
    ]
    one = among.head(1)
    assert results.where(one.iloc[0], one, "on_demand") == server

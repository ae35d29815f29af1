"""Every figure is drawn from whatever a study found, is not blank, and is the same each time."""

import hashlib

import matplotlib.image
import numpy as np
import pandas as pd
import pytest
import synthetic
import synthetic_files

from perseus.host import parquet
from perseus.host.files import write_json
from perseus.report import drawing
from perseus.report.figure_data import FigureData
from perseus.report.figures import FIGURES, figures_of, latency_by_rate, module_of
from perseus.report.figures.latency_ecdf import certified_latency_ms
from perseus.results import tables
from perseus.results.records import PeakRecord
from perseus.results.study_results import StudyResults
from perseus.study.experiments import OTHER_KINDS
from perseus.study.tasks.figure import FigureTask

STYLE = FigureTask(width_mm=160, font_pt=9, dpi=60, pricing="on_demand")


def prepare(folder, made, swept=True):
    """Raw files and tables; returns the paths of both."""
    cells = synthetic_files.write(folder, made)
    write_json(folder / "ceilings/cpu1.json", synthetic.ceiling())
    others = synthetic_files.OF_KIND.values()
    all_cells = [*cells, *(write(folder) for write in others)] if swept else cells
    read = StudyResults.read(synthetic.TASK, all_cells, [folder / "ceilings/cpu1.json"])
    paths = {}
    for name, table in tables.make(read).items():
        paths[name] = folder / f"{name}.parquet"
        parquet.write(table, paths[name], folder / f"{name}.csv")
    return paths, cells


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    made = synthetic.with_failures(synthetic.records())
    return prepare(tmp_path_factory.mktemp("study"), made)


@pytest.fixture(scope="module")
def barren(tmp_path_factory):
    """Nothing was certified, nothing estimated."""
    truth = synthetic.Truth(synthetic.TRUTH.capacities, repeats=1)
    alone, shared = ("infeasible", "too slow"), ("blocked", "no dedicated peaks")
    made = [
        synthetic.spoil(r, *(shared if len(r["cell"]["tenants"]) > 1 else alone))
        for r in synthetic.records(truth, mixes=[(1, 1)], holds=())
    ]
    return prepare(tmp_path_factory.mktemp("barren"), made)


@pytest.fixture(scope="module")
def survivors(tmp_path_factory):
    """Intervals with an open end, of every kind of line."""
    made = synthetic.records()
    for line, outcome in (
        ("mix-1-1", "infeasible"),
        ("mix-3-1", "client_limited"),
        ("hold-resnet18-50", "client_limited"),
        ("peak", "unsteady"),
    ):
        made = synthetic.with_lost(made, line, outcome)
    return prepare(tmp_path_factory.mktemp("survivors"), made, swept=False)


@pytest.fixture(scope="module")
def crowded(tmp_path_factory):
    """Three tenants and more load lines and cells than the figures have room for."""
    truth = synthetic.Truth({"a": 30.0, "b": 90.0, "c": 50.0}, repeats=1, bootstraps=20)
    mixes = [(n, 1, 1) for n in range(1, 12)]
    return prepare(
        tmp_path_factory.mktemp("crowded"),
        synthetic.records(truth, mixes=mixes, holds=()),
        swept=False,
    )


def ink(png):
    """The share of pixels that are not white."""
    return float(np.mean(matplotlib.image.imread(png)[..., :3].min(axis=2) < 0.95))


def draw(name, study, folder):
    drawing.draw(name, *study, STYLE, folder / f"{name}.svg", folder / f"{name}.png")
    return folder / f"{name}.svg", folder / f"{name}.png"


def test_a_study_has_the_figures_of_its_kinds_of_experiments():
    assert figures_of({"peak", *OTHER_KINDS}) == tuple(FIGURES)
    assert set(FIGURES) - set(figures_of({"peak"})) == set(OTHER_KINDS)


def test_each_figure_is_a_module():
    assert all(callable(module_of(name).draw) and module_of(name).CAPTION for name in FIGURES)


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("kind", ["study", "barren", "survivors", "crowded"])
def test_a_figure_shows_something(name, kind, request, tmp_path):
    _, png = draw(name, request.getfixturevalue(kind), tmp_path)
    assert ink(png) > 0.01


@pytest.mark.parametrize("name", ["frontier", "peaks"])
def test_a_figure_is_the_same_each_time(name, study, tmp_path):
    digests = set()
    for folder in ("first", "second"):
        svg, _ = draw(name, study, tmp_path / folder)
        digests.add(hashlib.sha256(svg.read_bytes()).hexdigest())
    assert len(digests) == 1
    assert b"<dc:date>" not in svg.read_bytes()


def test_a_figure_says_what_it_leaves_out(crowded):
    frames = {name: pd.read_parquet(path) for name, path in crowded[0].items()}
    drawn = latency_by_rate.draw(FigureData(frames, tuple(crowded[1])), STYLE)
    assert drawn.get_supxlabel().startswith("2 more load lines")


def test_a_tenant_has_one_colour_everywhere(study):
    frames = {name: pd.read_parquet(path) for name, path in study[0].items()}
    results = FigureData(frames)
    assert results.names == list(synthetic.TRUTH.capacities)
    assert len({results.colour(name) for name in results.names}) == 2


def test_the_distribution_is_of_the_requests_that_the_table_counts(study):
    """Both read the certified window; the counts and percentiles must agree."""
    frame = pd.read_parquet(study[0]["tenants"]).dropna(subset="rate_rps").iloc[0]
    folder = next(cell for cell in study[1] if cell.name == frame["cell"])
    latency_ms = certified_latency_ms(PeakRecord.read(folder), frame["tenant"])
    assert len(latency_ms) == frame["requests"]
    assert np.percentile(latency_ms, 50, method="inverted_cdf") == frame["p50_ms"]

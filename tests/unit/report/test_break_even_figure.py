"""Tests that the figure of costs over the demand shows its tables' values and names omissions."""

import numpy as np
import pytest
import synthetic
import synthetic_files
from drawn import figure_of

from perseus.report.figure_data import FigureData
from perseus.report.figures import break_even


def results_of(gains, factors, dollars, folder=None, between=0.01):
    """Return the results of a study. Server type i has the sharing ratio `gains[i]`, `factors[i]`
    times the capacities, and the price `dollars[i]`."""
    made, prices = [], {}
    for i, (gain, factor, usd) in enumerate(zip(gains, factors, dollars, strict=True)):
        name = f"cpu{i + 1}"
        capacities = {tenant: factor * rps for tenant, rps in synthetic.TRUTH.capacities.items()}
        truth = synthetic.Truth(capacities, gain=gain, between=between, repeats=2, bootstraps=100)
        found = synthetic.records(truth, seed=i, mixes=[(1, 1)], holds=())
        made += [synthetic.on_server(record, name, "onnxruntime") for record in found]
        update = {"on_demand_usd_per_hour": 0.0475 * usd}
        prices[name] = synthetic.PRICE.model_copy(update=update)
    task = synthetic.TASK.model_copy(update={"prices": prices})
    found = synthetic_files.tables_of(made, task)
    cells = tuple(synthetic_files.write(folder, made)) if folder else ()
    return FigureData({name: table.to_pandas() for name, table in found.items()}, cells)


@pytest.mark.parametrize(("gain", "between"), [(1.05, 0.1), (1.1, 0.03), (1.25, 0.01)])
def test_demands_are_shaded_where_the_table_says_that_sharing_pays(gain, between):
    results = results_of((gain, 1.4), (1, 3), (1, 2.9), between=between)
    models = "resnet18 + mobilenet_v3_large"
    panels = figure_of("break_even", results).axes
    (panel,) = (each for each in panels if " + " in each.get_title(loc="left"))
    tables = (results.tables[name] for name in ("break_even", "crossings"))
    demands, demand_ranges = (frame[frame["models"] == models] for frame in tables)
    spans = [(span.get_x(), span.get_x() + span.get_width()) for span in panel.patches]
    for rps in np.unique(demands["total_rps"]):
        at = demand_ranges[(demand_ranges["from_rps"] <= rps) & (rps <= demand_ranges["to_rps"])]
        pays = at["shared"].item() and at["reliable"].item()
        assert any(low <= rps <= high for low, high in spans) == pays


@pytest.mark.parametrize("name", ["break_even", "speed"])
def test_servers_without_room_are_counted(name, tmp_path):
    count = break_even.MAX_SERVERS + 2
    results = results_of((1.25,) * count, np.linspace(1, 2, count), (1,) * count, tmp_path)
    text = figure_of(name, results).get_supxlabel()
    assert text == f"2 more servers in {name}.csv"

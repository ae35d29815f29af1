"""Costs are those of an image, agree with the savings, and have the energy that was measured."""

import numpy as np
import pytest
import synthetic
import synthetic_files

from perseus.results.repeats import combine
from perseus.results.tables.costs import joules_per_inference, usd_per_million


def test_a_million_inferences():
    """1 USD/h at 1000/3.6 requests/s: a million an hour."""
    assert usd_per_million(1.0, 1e6 / 3600) == pytest.approx(1.0)


def test_an_inference_is_an_image_however_many_a_request_carries():
    """Of two tenants the first asks with four images in each request."""
    one, four = synthetic.records(), synthetic.records()
    for record in four:
        for tenant in record["cell"]["tenants"]:
            tenant["request_batch_size"] = 4 if tenant["name"] == "resnet18" else 1
    found = [synthetic_files.tables_of(made) for made in (one, four)]
    usd, cheaper = (
        each["costs"].to_pandas().query("pricing == 'on_demand'").set_index("load_line")
        for each in found
    )
    assert list(usd.index) == list(cheaper.index)
    for key in ("usd_per_million_inferences", "usd_per_million_certified", "ci_low_usd"):
        factor = dict(zip(usd["models"], usd[key] / cheaper[key], strict=True))
        assert factor["resnet18"] == pytest.approx(4)
        assert all(value == 1 for name, value in factor.items() if "resnet18" not in name)
        assert all(1 < value < 4 for name, value in factor.items() if "resnet18 +" in name)
    assert found[0]["savings"].equals(found[1]["savings"])


def test_saving_and_costs_agree():
    made = synthetic.records()
    found = synthetic_files.tables_of(made)
    costs = found["costs"].to_pandas().query("kind != 'dedicated' and pricing == 'on_demand'")
    saved = 1 - costs["usd_per_million_inferences"] / costs["dedicated_usd_per_million"]
    np.testing.assert_allclose(saved, found["savings"].to_pandas()["saving"])


def test_a_server_without_a_spot_price_has_no_spot_rows():
    price = synthetic.PRICE.model_copy(update={"spot_usd_per_hour": None})
    task = synthetic.TASK.model_copy(update={"prices": {"cpu1": price}})
    rows = synthetic_files.tables_of(synthetic.records()[:4], task)["costs"]
    assert set(rows["pricing"].to_pylist()) == {"on_demand"}


def test_costs_have_the_energy_of_an_inference_at_the_certified_rate():
    made = [r for r in synthetic.records() if r["cell"]["cell"].startswith("cpu1.resnet18.")]
    assert np.isnan(joules_per_inference(combine(synthetic.loaded(made), seed=1)))
    for record in made:
        record["gpu_watts"] = 300.0
        record["cell"]["tenants"][0]["request_batch_size"] = 4
    made[0]["gpu_watts"] = None  # not certified, say
    rates = [4 * record["certified_scale"] for record in made[1:]]
    expected = np.mean([300.0 / rate for rate in rates])
    found = combine(synthetic.loaded(made), seed=1)
    assert joules_per_inference(found) == pytest.approx(expected)

"""Tests of costs: per image, with energy, and equal to the costs from which savings follow."""

import numpy as np
import pytest
import synthetic
import synthetic_files

from perseus.results.costs import energy_per_inference, usd_per_million
from perseus.results.repeats import combine


def test_a_million_inferences():
    """1 USD/h at 1000/3.6 requests/s, which is one million per hour."""
    assert usd_per_million(1.0, 1e6 / 3600) == pytest.approx(1.0)


def test_an_inference_is_an_image_however_many_a_request_carries():
    """In the second study, each request of the first tenant contains four images."""
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
    assert np.isnan(energy_per_inference(combine(synthetic.loaded(made), seed=1)).joules)
    for record in made:
        record["gpu_watts"] = 300.0
        record["cell"]["tenants"][0]["request_batch_size"] = 4
    made[0]["gpu_watts"] = None  # as in a record without a certified rate
    rates = [4 * record["certified_scale"] for record in made[1:]]
    expected = np.mean([300.0 / rate for rate in rates])
    found = combine(synthetic.loaded(made), seed=1)
    assert energy_per_inference(found).joules == pytest.approx(expected)


def with_watts(gpu, host, gpus=()):
    """Return the peak of the first dedicated cell with this power, and its images/s."""
    made = synthetic.records()[:1]
    (made[0]["gpu_watts"], made[0]["host_watts"]) = (gpu, host)
    made[0]["cell"]["server"] |= {"gpus": list(gpus), "device": "gpu" if gpus else "cpu"}
    (record,) = synthetic.loaded(made)
    return combine([record], seed=1), float(record.rates_rps(record.certified_scale).sum())


@pytest.mark.parametrize(
    ("gpu", "host", "gpus", "watts", "of"),
    [
        (None, 60.0, (), 60, "processors and memory"),
        (300.0, None, (0,), 300, "GPUs"),
        (300.0, 60.0, (0,), 360, "GPUs + processors and memory"),
        (None, 60.0, (0,), np.nan, ""),  # otherwise, a part of the power would count as the total
        (None, None, (), np.nan, ""),
        (None, None, (0,), np.nan, ""),
    ],
)
def test_energy_is_that_of_all_that_was_counted_and_says_of_what(gpu, host, gpus, watts, of):
    peak, rate = with_watts(gpu, host, gpus)
    found = energy_per_inference(peak)
    assert found.of == of
    assert found.joules == pytest.approx(watts / rate, nan_ok=True)
    # 0.30 USD/kWh: a million inferences of 3.6 J each are 1 kWh.
    assert found.usd_per_million(0.30) == pytest.approx(watts / rate / 3.6 * 0.30, nan_ok=True)
    assert np.isnan(found.usd_per_million(None))


def test_a_counter_that_failed_in_one_repeat_leaves_the_others():
    made = [
        record for record in synthetic.records() if record["cell"]["scenario"] == "cpu1.resnet18"
    ]
    for record, host in zip(made, [60.0, None, 90.0], strict=False):
        record["host_watts"] = host
    records = synthetic.loaded(made)
    each = [
        record.host_watts / record.rates_rps(record.certified_scale).sum() for record in records
    ]
    known = [joules for joules in each if np.isfinite(joules)]
    assert 0 < len(known) < len(made)
    found = energy_per_inference(combine(records, seed=1))
    assert found.joules == pytest.approx(np.mean(known))


def test_costs_keep_what_their_price_was():
    price = synthetic.PRICE.model_copy(
        update={
            "zone": "us-central1-a", "accelerator": "T4:1", "vcpus": 4.0, "share": 0.25,
            "currency": "EUR", "date": "2026-09-01", "doubts": ("odd", "old"),
            "committed_usd_per_hour": 0.03,
        }
    )  # fmt: skip
    task = synthetic.TASK.model_copy(
        update={
            "prices": {"cpu1": price},
            "pricing": ("committed", "spot"),
            "usd_per_kwh": 0.3,
        }
    )
    made = synthetic.records()
    for record in made:
        record["host_watts"] = 50.0
    tables = synthetic_files.tables_of(made, task)
    rows = tables["costs"].to_pylist()
    assert {row["pricing"] for row in rows} == {"committed", "spot"}
    for row in rows:
        kept = ("instance", "region", "zone", "accelerator", "vcpus", "share", "currency")
        assert [row[key] for key in kept] == [
            "n1-standard-1", "us-central1", "us-central1-a", "T4:1", 4.0, 0.25, "EUR"
        ]  # fmt: skip
        assert (row["price_date"], row["price_doubts"]) == ("2026-09-01", "odd; old")
        assert (row["runtime"], row["cores"]) == ("onnxruntime", 1)
        assert row["energy_of"] == "processors and memory"
        expected = row["joules_per_inference"] / 3.6 * 0.3
        assert row["electricity_usd_per_million"] == pytest.approx(expected)
    assert {row["usd_per_hour"] for row in rows if row["pricing"] == "committed"} == {0.03}


def test_other_prices_scale_the_same_measurements():
    twice = {"on_demand_usd_per_hour": 0.095, "spot_usd_per_hour": None}
    dear = synthetic.PRICE.model_copy(update={"region": "asia-east1", **twice})
    task = synthetic.TASK.model_copy(update={"other_prices": {"cpu1": (dear,)}})
    tables = synthetic_files.tables_of(synthetic.records(), task)
    keys = ["scenario", "load_line"]
    costs = tables["costs"].to_pandas().query("pricing == 'on_demand'").set_index(keys)
    others = tables["other_costs"].to_pandas().set_index(keys)
    assert set(others["region"]) == {"asia-east1"} and set(others["pricing"]) == {"on_demand"}
    for column in ("usd_per_million_inferences", "ci_low_usd", "ci_high_usd",
                   "dedicated_usd_per_million"):  # fmt: skip
        assert others[column].to_numpy() == pytest.approx(2 * costs[column].to_numpy())
    assert others["joules_per_inference"].isna().all()
    assert synthetic_files.tables_of(synthetic.records())["other_costs"].num_rows == 0

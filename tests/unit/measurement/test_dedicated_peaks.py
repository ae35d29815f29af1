"""Tests that the loads of shared cells and the tables use the same dedicated peaks."""

import pytest
import synthetic

from perseus.host.files import write_json
from perseus.measurement.peaks.dedicated_peaks import DedicatedPeaks
from perseus.results.records import PeakRecord

WITHOUT_POSTERIOR = {"posterior_scales": []}
WITHOUT_ESTIMATE = {"estimate_scale": None}


@pytest.mark.parametrize("outcome", ["ok", "uncertified", "client_limited", "infeasible"])
@pytest.mark.parametrize("lacking", [{}, WITHOUT_POSTERIOR, WITHOUT_ESTIMATE])
def test_a_record_has_a_limit_for_all_who_read_it_or_for_none(outcome, lacking, tmp_path):
    record = synthetic.records()[0] | {"outcome": outcome} | lacking
    write_json(tmp_path / "record.json", record)
    has_limit = PeakRecord.read(tmp_path).has_limit
    (peak_rps,) = DedicatedPeaks.read([tmp_path / "record.json"]).rps.values()
    assert has_limit == (peak_rps == record["estimate_scale"])
    assert has_limit == (outcome in ("ok", "uncertified") and not lacking)


def test_the_peak_is_the_mean_of_the_repeats_that_have_one(tmp_path):
    paths = []
    for i, lacking in enumerate(({}, {}, WITHOUT_POSTERIOR)):
        paths.append(tmp_path / f"{i}.json")
        write_json(paths[-1], synthetic.records()[0] | {"estimate_scale": 10.0 * (i + 1)} | lacking)
    assert DedicatedPeaks.read(paths).rps == {"resnet18": 15.0}

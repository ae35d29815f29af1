"""Tests of one configured model that stands for many architectures."""

from pathlib import Path

import pytest
import yaml

from perseus.study import config_files, files
from perseus.study.checks import grids
from perseus.study.problems import ConfigError
from perseus.study.read import read_study

ROOT = Path(__file__).parents[3]
DEFAULTS = yaml.safe_load((ROOT / "config/config.yaml").read_text())
CATALOGUE = yaml.safe_load((ROOT / "config/studies/catalogue.yaml").read_text())


def study(**changes):
    raw = config_files.merged(DEFAULTS, {**CATALOGUE, **changes})
    return read_study(raw, prices=ROOT / "config/prices.csv", folder=ROOT, most_cores=1)


def each(architectures, **more):
    sla = {"percentile": 95, "latency_ms": 200}
    return [{"name": "each", "architectures": architectures, "sla": sla} | more]


def alone(name, model="each", **more):
    catalogue = [{"kind": "catalogue"}]
    scenario = {"name": name, "servers": ["cpu1"], "tenants": [{"model": model}]}
    return {**scenario, "experiments": catalogue, **more}


@pytest.fixture
def no_bf16(monkeypatch):
    monkeypatch.setattr(grids, "has_bf16", lambda: False)


def test_the_catalogue_measures_every_network_the_lightest_first(no_bf16):
    found = study()
    assert len(found.models) == 80
    first, *_, last = found.models
    assert (first, last) == ("shufflenet_v2_x0_5", "vit_h_14")
    assert found.urgency(first) == 80 and found.urgency(last) == 1
    # ONNX Runtime, OpenVINO in fp32 and int8, and PyTorch, each with one and with eight images.
    assert len(found.cells) == 80 * 4 * 2
    assert {cell.run.kind for cell in found.cells.values()} == {"catalogue"}


def test_no_peaks_are_searched_and_no_ceilings_measured_for_it(no_bf16):
    found = study(models=each(["resnet18"]))
    assert files.ceilings(found) == []
    assert files.surveyed_checks(found) == ["results/catalogue/models/resnet18/check.json"]
    assert set(found.scenarios) >= {"cpu1.resnet18", "cpu1.resnet18_b8"}


def test_bf16_is_left_out_where_the_cpu_would_compute_in_fp32(monkeypatch):
    counts = []
    for able in (True, False):
        monkeypatch.setattr(grids, "has_bf16", lambda able=able: able)
        counts.append(len(study(models=each(["resnet18"])).cells))
    assert counts == [10, 8]


def test_patterns_choose_networks_and_keep_the_order_of_their_work(no_bf16):
    found = study(models=each(["resnet*", "vit_b_16"]))
    assert list(found.models) == ["resnet18", "resnet34", "resnet50", "resnet101", "resnet152",
                                  "vit_b_16"]  # fmt: skip


@pytest.mark.parametrize(
    ("models", "message"),
    [
        (each(["resnet5"]), r"architectures: no architecture matches 'resnet5'.*'resnet50'"),
        (each("all", onnx="a.onnx"), "architectures: applies to models of torchvision only"),
        (each(["vgg11"], architecture="vgg13"), "architecture: `architectures:` also names"),
        (
            [*each(["resnet18"]), *each(["resnet*"], name="x", weights="DEFAULT")],
            r"models\[1\].name: 'resnet18' is already the name of models\[0\]",
        ),
    ],
)
def test_what_is_wrong_with_it_is_told(models, message):
    with pytest.raises(ConfigError, match=message):
        study(models=models)


def test_many_architectures_are_served_alone():
    tenants = [{"model": "each"}, {"model": "each", "name": "each_2"}]
    shared = {"name": "shared", "servers": ["cpu1"], "tenants": tenants}
    with pytest.raises(ConfigError, match="a model with `architectures:` must be the only tenant"):
        study(scenarios=[shared])


def test_a_problem_has_its_place_in_the_configuration(no_bf16):
    models = [*each(["resnet*"]), {"name": "b", "architecture": "vgg11", "sla": {"latency_ms": 9}}]
    peak, soak = [{"kind": "peak"}], [{"kind": "soak"}]
    scenarios = [alone("each", experiments=peak), alone("b", model="b", experiments=soak)]
    demand = {"models": [{"name": name, "rps": 1} for name in ("resnet18", "b", "b")]}
    with pytest.raises(ConfigError) as caught:
        study(
            models=[*models, {**models[1], "weights": "models[3]"}],
            scenarios=scenarios,
            demand=demand,
        )
    told = caught.value.problems
    at = ["models[2].name", "models[2].weights", "scenarios[1].experiments[0]"]
    assert [problem.split(":")[0] for problem in told] == [*at, "demand.models[2].name"]
    assert told[0].endswith("'b' is already the name of models[1]")
    assert "there is no file 'models[3]'" in told[1]
    assert told[3].endswith("'b' is already the name of demand.models[1]")


def test_several_scenarios_measure_the_same_architectures():
    again = alone("again", experiments=[{"kind": "startup"}])
    found = study(models=each(["resnet18", "vgg11"]), scenarios=[alone("each"), again])
    runs = ("catalogue", "peak", "startup")
    names = ("resnet18", "vgg11")
    assert set(found.cells) == {f"cpu1.{name}.{run}.r1" for name in names for run in runs}


def test_a_model_that_also_matches_a_pattern_is_one_model():
    (same,) = each(["resnet18"])
    same = {"name": "resnet18", "sla": same["sla"]}
    for models in ([*each(["resnet*"]), same], [same, *each(["resnet*"])]):
        assert len(study(models=models, scenarios=[alone("each")]).models) == 5


def test_the_name_of_a_tenant_has_a_place_for_each_architecture(no_bf16):
    named = alone("b8", tenants=[{"model": "each", "name": "b8"}])
    with pytest.raises(ConfigError, match=r"tenants\[0\].name: must contain 'each'.*each_b8"):
        study(models=each(["resnet*"]), scenarios=[named])
    assert "cpu1.b8.catalogue.r1" in study(models=each(["vgg11"]), scenarios=[named]).cells

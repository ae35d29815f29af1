"""Tests that a configuration is read correctly, or that every mistake has a message."""

import copy
import json
import re
from pathlib import Path

import pytest
import yaml

from perseus.study import files, planning
from perseus.study.checks.models import torchvision_weights
from perseus.study.definition import Definition
from perseus.study.generated_docs import EXAMPLES, readme, schema_json
from perseus.study.problems import ConfigError
from perseus.study.read import read_study
from perseus.study.triton_models import files_of

ROOT = Path(__file__).parents[3]
DEFAULT = yaml.safe_load((ROOT / "config" / "config.yaml").read_text())
BASE = yaml.safe_load("""
study: base
seed: 1
models:
  - {name: squeezenet1_1, sla: {percentile: 95, latency_ms: 100}}
  - {name: mobilenet_v3_small, sla: {percentile: 95, latency_ms: 50}}
servers:
  - {name: cpu1, cores: 1, price: {instance: n1-standard-1, region: us-central1}}
scenarios:
  - name: shared
    servers: [cpu1]
    tenants: [{model: squeezenet1_1}, {model: mobilenet_v3_small}]
    experiments: [{kind: peak, mixes: [[3, 1], [1, 1]]}]
measurement: {preset: quick}
figures: {width_mm: 160}
""")
STUDIES = sorted((ROOT / "config" / "studies").glob("*.yaml"))


def merged(base, change):
    """Merge `change` into `base` like Snakemake: merge mappings, and replace other values."""
    if not (isinstance(base, dict) and isinstance(change, dict)):
        return copy.deepcopy(change)
    return {
        key: merged(base[key], change[key])
        if key in base and key in change
        else copy.deepcopy(change.get(key, base.get(key)))
        for key in [*base, *(key for key in change if key not in base)]
    }


def read(raw, folder=ROOT, prices=ROOT / "config" / "prices.csv"):
    return read_study(raw, prices=prices, folder=folder)


def load(change=None):
    return read(merged(BASE, change or {}))


def parts(study):
    """Return all tasks except measurements."""
    return [
        *(planning.export_task(study, name) for name in study.models),
        *(planning.repository_task(study, scenario_id) for scenario_id in study.scenarios),
        planning.tables_task(study),
        planning.figure_task(study),
    ]


def cells(study):
    return list(study.cells.values())


def problems(change):
    with pytest.raises(ConfigError) as caught:
        load(change)
    return caught.value.problems


def model(name="squeezenet1_1", **more):
    return {"name": name, "sla": {"latency_ms": 100}, **more}


def scenario(*tenants, name="shared", servers=("cpu1",), **more):
    """Return a scenario of tenants (names or mappings), by default with the equal mix."""
    mappings = [tenant if isinstance(tenant, dict) else {"model": tenant} for tenant in tenants]
    if len(tenants) > 1:
        more.setdefault("experiments", [{"kind": "peak", "mixes": [[1] * len(tenants)]}])
    return {"name": name, "servers": list(servers), "tenants": mappings, **more}


def tasks(study):
    """Return all tasks of jobs, in the form that Snakemake compares."""
    measured = [planning.measure_task(study, cell) for cell in cells(study)]
    return repr([task.plain() for task in (*measured, *parts(study))])


# Accepted configurations


def test_a_shared_scenario_brings_the_dedicated_peaks_of_its_tenants():
    assert [cell.id for cell in cells(load())] == [
        "cpu1.squeezenet1_1.peak.r1",
        "cpu1.mobilenet_v3_small.peak.r1",
        "cpu1.shared.mix-3-1.r1",
        "cpu1.shared.mix-1-1.r1",
    ]


def test_the_default_study_loads():
    assert cells(read(DEFAULT))


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_every_study_that_is_shipped_loads_over_the_default(path):
    assert cells(read(merged(DEFAULT, yaml.safe_load(path.read_text()))))


def test_absent_keys_have_defaults():
    change = {"models": [model()], "scenarios": [scenario("squeezenet1_1", name="squeezenet1_1")]}
    study = load(change)
    read_model = study.models["squeezenet1_1"]
    assert (read_model.weights, read_model.architecture) == ("random", "squeezenet1_1")
    assert read_model.sla.percentile == 95
    (tenant,) = planning.repository_task(study, "cpu1.squeezenet1_1").tenants
    assert (tenant.name, tenant.instances, tenant.max_batch_size) == ("squeezenet1_1", 1, 8)
    assert tenant.intra_op_threads == study.servers["cpu1"].cores
    assert tenant.max_queue_delay_us is None
    measured = planning.measure_task(study, cells(study)[0])
    assert (measured.arrivals.process, measured.arrivals.cv) == ("poisson", 1)
    assert (measured.preset, list(study.repeats("quick"))) == ("quick", [1])


def test_dynamic_batching_is_on_when_it_is_named():
    tenant = {"model": "squeezenet1_1", "dynamic_batching": {}}
    study = load({"models": [model()], "scenarios": [scenario(tenant, name="squeezenet1_1")]})
    (served,) = planning.repository_task(study, "cpu1.squeezenet1_1").tenants
    assert served.max_queue_delay_us == 0


def test_the_first_eight_images_of_a_folder_are_exported(tmp_path):
    for name in ["b.PNG", "a.jpeg", ".hidden.png", "notes.txt", *(f"{n}.jpg" for n in range(8))]:
        (tmp_path / name).touch()
    (tmp_path / "00.png").mkdir()
    models = [model(images=f"{tmp_path}/"), model("mobilenet_v3_small")]
    study = load({"models": models})
    images = [planning.export_task(study, name).images for name in study.models]
    assert images == [tuple(f"{tmp_path}/{n}.jpg" for n in range(8)), ()]
    for n in range(6):
        (tmp_path / f"{n}.jpg").unlink()
    found = load({"models": models}).images["squeezenet1_1"]
    assert [Path(i).name for i in found] == ["6.jpg", "7.jpg", "a.jpeg", "b.PNG"]
    (tmp_path / "7.jpg").rename(tmp_path / "{7}.jpg")
    (problem,) = problems({"models": models})
    assert "{7}.jpg' has a brace" in problem


@pytest.fixture
def labels(tmp_path):
    """Return a function that writes labels.csv beside four images."""
    for n in range(4):
        (tmp_path / f"{n}.jpg").touch()
    return (tmp_path / "labels.csv").write_text


def test_labels_beside_images_are_for_the_catalogue_only(labels, tmp_path):
    labels("class,file\n999,3.jpg\n0,1.jpg\n")
    models = [model(images=str(tmp_path)), model("mobilenet_v3_small")]
    alone = [scenario(name, name=name) for name in ("squeezenet1_1", "mobilenet_v3_small")]
    alone[0]["experiments"] = [{"kind": "catalogue"}]
    study = load({"models": models, "scenarios": alone})
    task = planning.labelled_task(study, "squeezenet1_1")
    assert (task.images, task.classes) == ((f"{tmp_path}/3.jpg", f"{tmp_path}/1.jpg"), (999, 0))
    surveyed, *others = cells(study)
    path = "results/base/models/squeezenet1_1/labelled.npz"
    assert files.cell_inputs(study, surveyed)["labelled"] == [path]
    assert planning.measure_task(study, surveyed).tenants[0].labelled_images == 2
    assert others and not any("labelled" in files.cell_inputs(study, each) for each in others)
    searched = load({"models": models})
    assert not any("labelled" in files.cell_inputs(searched, each) for each in cells(searched))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("file;class\n1.jpg;3\n", "labels.csv needs the columns file and class; it lacks 'file'"),
        ("file,class\n", "0 rows; write at least 1 and at most 1000"),
        ("file,class\n9.jpg,3\n", "line 2: there is no file '9.jpg' in this folder"),
        ("file,class\n../1.jpg,3\n", "line 2: '../1.jpg' is not the name of a PNG or JPEG file"),
        ("file,class\n1.jpg,cat\n", "the class of '1.jpg' is 'cat'; write the index of an output"),
        ("file,class\n1.jpg,3\n1.jpg,4\n", "line 3: '1.jpg' already has a class"),
        ("file,class\n1.jpg\n", "line 2: the class of '1.jpg' is ''"),
        (f"file,class\n{'1' * 200_000},3\n", "labels.csv is not a CSV file: field larger than"),
        ("file,class\n8.jpg,1\n9.jpg,1\n", "'8.jpg' in this folder; line 3: there is no file"),
    ],
)
def test_labels_with_mistakes_are_refused(labels, tmp_path, text, problem):
    labels(text)
    (found,) = problems({"models": [model(images=str(tmp_path)), model("mobilenet_v3_small")]})
    assert found.startswith("models[0].images: ") and problem in found


@pytest.mark.parametrize("folder", ["photos", "./photos/", "../elsewhere"])
def test_the_images_of_a_model_are_named_from_the_working_folder_on(folder, tmp_path):
    root = tmp_path / "work"
    root.mkdir()
    (root / folder).mkdir()
    for n in range(4):
        (root / folder / f"{n}.png").touch()
    models = [model(images=folder), model("mobilenet_v3_small")]
    images = read(merged(BASE, {"models": models}), folder=root).images["squeezenet1_1"]
    assert images == tuple(f"{Path(folder)}/{n}.png" for n in range(4))


def test_the_order_of_keys_changes_no_slice():
    def turned(value):
        if isinstance(value, dict):
            return {key: turned(value[key]) for key in reversed(value)}
        return [turned(item) for item in value] if isinstance(value, list) else value

    assert tasks(read(turned(BASE))) == tasks(load())


def test_whole_numbers_may_be_written_as_decimals():
    def decimal(value):
        if isinstance(value, dict):
            return {key: decimal(part) for key, part in value.items()}
        if isinstance(value, list):
            return [decimal(item) for item in value]
        return float(value) if type(value) is int else value

    assert tasks(read(decimal(BASE))) == tasks(load())
    assert ".0" in repr(decimal(BASE)["seed"])


def test_an_sla_is_in_the_tasks_of_its_measurements_only():
    before = load()
    after = load({"models": [dict(m, sla={"latency_ms": 77}) for m in BASE["models"]]})
    assert parts(before) == parts(after)
    measure = [planning.measure_task(study, cells(study)[0]) for study in (before, after)]
    assert measure[0] != measure[1]


def test_a_price_is_in_the_task_of_the_tables_only(tmp_path):
    text = (ROOT / "config" / "prices.csv").read_text()
    (tmp_path / "prices.csv").write_text(text.replace("0.0475", "0.0999"))
    before, after = read(BASE), read(BASE, prices=tmp_path / "prices.csv")
    assert planning.tables_task(before) != planning.tables_task(after)
    pairs = zip(cells(before), cells(after), strict=True)
    assert all(
        planning.measure_task(before, b) == planning.measure_task(after, a) for b, a in pairs
    )


def test_a_trace_is_in_the_tasks_of_the_measurements(tmp_path):
    (tmp_path / "trace.csv").write_text("time_s\n0\n1\n")
    change = {"process": "trace", "trace": str(tmp_path / "trace.csv")}
    study = load({"measurement": {"arrivals": change}})
    measured = planning.measure_task(study, cells(study)[0])
    assert (measured.arrivals.process, measured.trace.file) == ("trace", change["trace"])
    assert planning.measure_task(load(), cells(load())[0]).trace is None


def test_a_coefficient_of_variation_is_of_gamma_arrivals_only():
    def cv(arrivals):
        study = load({"measurement": {"arrivals": arrivals}})
        return planning.measure_task(study, cells(study)[0]).arrivals.cv

    assert cv({"process": "gamma", "cv": 2}) == 2.0
    assert cv({"process": "gamma"}) == 1.0


def test_closed_loops_are_a_cell_of_the_scenario_alone_or_shared():
    loops = {"kind": "concurrency", "concurrencies": [16, 1]}
    alone = scenario("squeezenet1_1", name="squeezenet1_1", experiments=[loops])
    both = scenario(*PAIR, experiments=[{"kind": "peak", "mixes": [[1, 1]]}, loops])
    study = load({"scenarios": [alone, both]})
    assert {"cpu1.squeezenet1_1.concurrency.r1", "cpu1.shared.concurrency.r1"} < set(study.cells)
    assert len(study.cells) == 5
    assert study.cells["cpu1.squeezenet1_1.concurrency.r1"].run.concurrencies == (1, 16)
    assert study.dedicated_cells(study.cells["cpu1.shared.concurrency.r1"]) == ()
    mixed = study.dedicated_cells(study.cells["cpu1.shared.mix-1-1.r1"])
    assert {cell.run.line for cell in mixed} == {"dedicated"}


def test_a_catalogue_beside_a_peak_has_both():
    kinds = [{"kind": "catalogue"}, {"kind": "peak"}]
    alone = scenario("squeezenet1_1", name="x", experiments=kinds)
    study = load({"models": [model()], "scenarios": [alone]})
    assert list(study.cells) == [f"cpu1.squeezenet1_1.{run}.r1" for run in ("peak", "catalogue")]


def test_a_catalogue_beside_a_share_of_the_peak_has_the_search_for_this_peak():
    soak = {"kind": "soak", "percents_of_peak": [50]}
    alone = scenario("squeezenet1_1", name="x", experiments=[{"kind": "catalogue"}, soak])
    study = load({"models": [model()], "scenarios": [alone]})
    assert set(study.cells) == {f"cpu1.squeezenet1_1.{run}.r1" for run in
                                ("peak", "catalogue", "soak-50")}  # fmt: skip
    (peak,) = study.dedicated_cells(study.cells["cpu1.squeezenet1_1.soak-50.r1"])
    assert peak.id == "cpu1.squeezenet1_1.peak.r1"


def test_the_old_name_of_the_preset_is_still_understood():
    study = load({"measurement": {"precision": "standard"}})
    assert {cell.preset for cell in cells(study)} == {"standard"}
    assert {cell.repeat for cell in cells(study)} == {1, 2, 3}


def test_the_old_name_of_the_preset_is_one_of_presets_only():
    (problem,) = problems({"measurement": {"precision": "fp32"}})
    assert problem.startswith("measurement.precision: unknown key (did you mean 'preset'?")


def presets(study):
    return {cell.id: cell.preset for cell in cells(study)}


def test_a_scenario_may_have_a_preset_of_its_own_and_its_dedicated_peaks_have_it_too():
    quick = scenario(*PAIR, name="quick")
    sure = scenario(*PAIR, preset="standard")
    study = load({"scenarios": [quick, sure]})
    alone = [f"cpu1.{name}.peak" for name in PAIR]
    assert presets(study) == {
        **{f"{each}.r1": "quick" for each in alone},
        "cpu1.quick.mix-1-1.r1": "quick",
        **{f"{each}-standard.r{r}": "standard" for each in alone for r in (1, 2, 3)},
        **{f"cpu1.shared.mix-1-1.r{r}": "standard" for r in (1, 2, 3)},
    }
    for cell in ("cpu1.quick.mix-1-1.r1", "cpu1.shared.mix-1-1.r2"):
        of = study.cells[cell]
        held_against = study.dedicated_cells(of)
        assert {each.preset for each in held_against} == {of.preset}
        assert len(held_against) == 2 * len(study.repeats(of.preset))
        assert all(study.cells[each.id] == each for each in held_against)
    measured = planning.measure_task(study, study.cells["cpu1.squeezenet1_1.peak-standard.r1"])
    assert (measured.preset, measured.search.confidence) == ("standard", 0.95)
    assert measured.run.line == "dedicated"


def test_scenarios_without_a_preset_of_their_own_keep_their_cells():
    sure = scenario(*PAIR, name="sure", preset="standard")
    before, after = (load({"scenarios": [scenario(*PAIR), *more]}) for more in ([], [sure]))
    for name, cell in before.cells.items():
        tasks = (planning.measure_task(study, study.cells[name]) for study in (before, after))
        assert len(set(map(repr, tasks))) == 1, cell


def test_a_preset_that_is_the_studys_is_none_of_its_own():
    spelt = load({"scenarios": [scenario(*PAIR, preset="quick")]})
    assert presets(spelt) == presets(load({"scenarios": [scenario(*PAIR)]}))


def test_a_tenant_alone_has_the_preset_of_its_scenario():
    loops = {"kind": "concurrency", "concurrencies": [1]}
    alone = scenario("squeezenet1_1", name="squeezenet1_1", experiments=[loops], preset="smoke")
    assert presets(load({"scenarios": [alone, scenario(*PAIR)]})) == {
        "cpu1.squeezenet1_1.peak-smoke.r1": "smoke",
        "cpu1.squeezenet1_1.concurrency.r1": "smoke",
        "cpu1.squeezenet1_1.peak.r1": "quick",
        "cpu1.mobilenet_v3_small.peak.r1": "quick",
        "cpu1.shared.mix-1-1.r1": "quick",
    }


def test_equal_mixes_share_a_name_however_they_are_written():
    study = load(
        {
            "scenarios": [
                scenario(
                    "squeezenet1_1",
                    "mobilenet_v3_small",
                    experiments=[{"kind": "peak", "mixes": [[2, 2], [300, 100]]}],
                )
            ]
        }
    )
    assert [run.name for run in study.scenarios["cpu1.shared"].runs] == ["mix-1-1", "mix-3-1"]


def test_a_shared_cell_depends_on_the_dedicated_peaks_of_its_tenants_on_its_server():
    study = load({**yaml.safe_load(EXAMPLES["Compare two servers"]), "measurement": {"repeats": 2}})
    shared = study.cells["cpu2.shared.mix-1-1.r1"]
    assert [cell.id for cell in study.dedicated_cells(shared)] == [
        "cpu2.squeezenet1_1.peak.r1",
        "cpu2.squeezenet1_1.peak.r2",
        "cpu2.mobilenet_v3_small.peak.r1",
        "cpu2.mobilenet_v3_small.peak.r2",
    ]


# Refused configurations and their messages


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"models": [model("resnet51")]}, r"models\[0\]\.name: 'resnet51' .*did you mean 'resnet5"),
        (
            {"models": [model(architecture="nothing_like_it")]},
            r"models\[0\]\.architecture: .*set `architecture:` to the name",
        ),
        (
            {"scenarios": [{**scenario(), "precision": "standard"}]},
            r"^scenarios\[0\]\.precision: unknown key \(did you mean 'preset'\?",
        ),
        ({"modles": []}, r"^modles: unknown key \(did you mean 'models'\?\)"),
        ({"models": [model(wieghts="random")]}, r"models\[0\]\.wieghts: .*mean 'weights'"),
        (
            {"models": [model(weights="weights/none.pt")]},
            r"models\[0\]\.weights: there is no file 'weights/none\.pt' \(write the path of a",
        ),
        (
            {"models": [model("own", onnx="own.onnx", weights="DEFAULT")]},
            r"models\[0\]\.weights: does not apply to a model with `onnx:`",
        ),
        (
            {"models": [model("own", onnx="own.onnx")]},
            r"models\[0\]\.onnx: there is no ONNX file 'own\.onnx'",
        ),
        (
            {"models": [model("own", onnx="own.onnx", shape={"x": [3]}, input_size=64)]},
            r"models\[0\]\.input_size: `shape:` also sets the input size",
        ),
        (
            {"models": [model("own", onnx="o", images="i", values={"low": 0, "high": 1})]},
            r"models\[0\]\.values: `images:` also defines the inputs",
        ),
        (
            {"models": [model(weights="IMAGENET1K_V7")]},
            r"models\[0\]\.weights: squeezenet1_1 has no weights 'IMAGENET1K_V7' \(did you mean"
            r" 'IMAGENET1K_V1'",
        ),
        (
            {"models": [model(weights="a{b}.pt")]},
            r"models\[0\]\.weights: 'a\{b\}\.pt' has a brace",
        ),
        (
            {"models": [model(images="photos")]},
            r"models\[0\]\.images: there is no folder 'photos'",
        ),
        (
            {"models": [model(images="README.md")]},
            r"models\[0\]\.images: there is no folder 'README\.md'",
        ),
        (
            {"models": [model(images="config")]},
            r"images: 'config' cannot be used: it has 0 PNG or JPEG files, but needs at least 4",
        ),
        ({"models": [model(images=3)]}, r"models\[0\]\.images: must be a string, not 3"),
        (
            {"models": [model(sla={"latency_ms": 0})]},
            r"models\[0\]\.sla\.latency_ms: must be > 0, not 0",
        ),
        ({"models": [model(sla={"latency_ms": -5.5})]}, r"latency_ms: must be > 0, not -5\.5"),
        (
            {"models": [model(sla={"latency_ms": float("nan")})]},
            r"latency_ms: must be a number, not nan",
        ),
        ({"models": [model(sla={"latency_ms": float("inf")})]}, r"latency_ms: must be <= 600000"),
        ({"models": [model(sla={})]}, r"models\[0\]\.sla\.latency_ms: is missing \(The time limit"),
        (
            {"models": [model(), model()]},
            r"models\[1\]\.name: 'squeezenet1_1' is already the name of models",
        ),
        ({"models": [model(precision="bf61")]}, r"models\[0\]\.precision: 'bf61' .*mean 'bf16'"),
        (
            {"models": [model("a/b", architecture="squeezenet1_1")]},
            r"'a/b' is not a name \(use letters",
        ),
        ({"models": [model("..", architecture="squeezenet1_1")]}, r"'\.\.' is not a name"),
        ({"study": "../elsewhere"}, r"^study: '\.\./elsewhere' is not a name"),
        ({"servers": [{"name": "cpu1", "cores": 0}]}, r"servers\[0\]\.cores: must be >= 1, not 0"),
        ({"measurement": {"repeats": -1}}, r"measurement\.repeats: must be >= 1, not -1"),
        ({"measurement": {"preset": "quik"}}, r"measurement\.preset: 'quik' .*mean 'quick'"),
        (
            {"measurement": {"arrivals": {"cv": 1}}},
            r"arrivals\.cv: applies only to `process: gamma`, but `process` is 'poisson'",
        ),
        (
            {"measurement": {"arrivals": {"process": "gamma", "cv": 1e-170}}},
            r"arrivals\.cv: must be >= 0\.01, not 1e-170",
        ),
        (
            {"measurement": {"arrivals": {"process": "gamma", "trace": "README.md"}}},
            r"arrivals\.trace: applies only to `process: trace`, but `process` is 'gamma'",
        ),
        (
            {"measurement": {"arrivals": {"process": "trace"}}},
            r"measurement\.arrivals\.trace: is missing \(a file of recorded arrivals\)",
        ),
        (
            {"measurement": {"arrivals": {"process": "trace", "trace": "none.csv"}}},
            r"arrivals\.trace: there is no trace file 'none\.csv'",
        ),
        (
            {"measurement": {"arrivals": {"process": "trace", "trace": "config/prices.csv"}}},
            r"arrivals\.trace: .*prices\.csv is a CSV file with the columns 'InstanceType",
        ),
        (
            {"measurement": {"arrivals": {"process": "trace", "trace": "config"}}},
            r"arrivals\.trace: .*directory",
        ),
        ({"models": [model(weights="w" * 300)]}, r"weights: there is no file 'www"),
        (
            {"models": [{"name": "own", "onnx": "o" * 300, "sla": {"latency_ms": 5}}]},
            r"onnx: there is no ONNX file 'ooo",
        ),
        ({"models": [model(weights="a\0b")]}, r"weights: there is no file 'a\\x00b'"),
        ({"models": [model(images="a\0b")]}, r"images: 'a\\x00b' cannot be used"),
        ({"costs": {"prices": "a\0b"}}, r"a\0b: it is not a CSV file"),
        (
            {"models": [model(served_model="m", shape={None: []})]},
            r"models\[0\]\.shape.*: must be a string",
        ),
        ({"costs": {"pricing": ["spto"]}}, r"costs\.pricing\[0\]: 'spto' .*mean 'spot'"),
    ],
)
def test_a_mistake_is_named_with_its_place_and_a_hint(change, expected):
    found = problems(change)
    assert any(re.search(expected, problem) for problem in found), "\n".join(found)


PAIR = ("squeezenet1_1", "mobilenet_v3_small")
BATCHES = {
    "model": "squeezenet1_1",
    "max_batch_size": 4,
    "dynamic_batching": {"preferred_batch_sizes": [8]},
}


def shared(**experiment):
    return scenario(*PAIR, experiments=[{"kind": "peak"} | experiment])


def background(**keys):
    return shared(**{"kind": "background", "search": "squeezenet1_1"} | keys)


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (
            scenario("squeezenet1_1", "mobilenet_v3"),
            r"tenants\[1\]\.model: .*mean 'mobilenet_v3_small'",
        ),
        (scenario("squeezenet1_1", "squeezenet1_1"), r"tenants: 'squeezenet1_1' is the name of 2"),
        (scenario(*PAIR, servers=["cpu2"]), r"servers\[0\]: 'cpu2' is not in servers .*'cpu1'"),
        (scenario(*PAIR, experiments=None), r"experiments: must be a list, not empty"),
        (
            shared(),
            r"experiments\[0\]: a shared scenario needs `mixes:`, such as \[\[1, 1\]\], or"
            r" `hold:`",
        ),
        (shared(kind="concurrency"), r"concurrencies: is missing .*such as \[1, 4, 16\]"),
        (
            shared(mixes=[[1, 1]], concurrencies=[1]),
            r"concurrencies: applies only to experiments of kind concurrency",
        ),
        (
            shared(kind="concurrency", concurrencies=[1], mixes=[[1, 1]]),
            r"mixes: applies only to experiments of kind peak",
        ),
        (shared(kind="concurrency", concurrencies=[0]), r"concurrencies\[0\]: must be >= 1, not 0"),
        (shared(kind="aa", restarts=1), r"restarts: must be >= 2, not 1"),
        (shared(kind="frontier", points=0), r"points: must be >= 1, not 0"),
        (
            shared(kind="frontier", error_percent=5),
            r"error_percent: applies only to `predict: true`",
        ),
        (shared(kind="frontier", predict=True, error_percent=0), r"error_percent: must be > 0"),
        (shared(kind="aa", windows=1), r"windows: must be >= 2, not 1"),
        (
            scenario(PAIR[0], name=PAIR[0], experiments=[{"kind": "slowdown"}]),
            r"experiments\[0\]: `slowdown` needs at least two tenants",
        ),
        (
            shared(kind="slowdown", percent_of_peak=30, rate_rps=20),
            r"has both `percent_of_peak:` and `rate_rps:` \(remove one of them\)",
        ),
        (shared(kind="slowdown", percent_of_peak=0), r"percent_of_peak: must be >= 1, not 0"),
        (shared(kind="slowdown", rate_rps=0), r"rate_rps: must be >= 0\.1, not 0"),
        (shared(kind="slowdown", rounds=1), r"rounds: must be >= 2, not 1"),
        (shared(kind="aa", rounds=2), r"rounds: applies only to experiments of kind slowdown"),
        (background(), r"needs the rates of the other tenants: write either `percents_of_peak:`"),
        (background(percents_of_peak=[5], rates_rps=[5]), r"write either `percents_of_peak:`"),
        (background(search="mobilenet", rates_rps=[5]), r"search: .*mean 'mobilenet_v3_small'"),
        (shared(kind="background", rates_rps=[5]), r"search: is missing \(The tenant whose peak"),
        (background(percents_of_peak=[100]), r"percents_of_peak\[0\]: must be <= 99, not 100"),
        (background(percents_of_peak=[5, 5]), r"'background-squeezenet1_1-5' is listed twice"),
        (
            background(rates_rps=[5, [5, 5]]),
            r"rates_rps\[1\]: has 2 rates, but needs 1: one for each tenant other than `search`",
        ),
        (background(rates_rps=[-5]), r"rates_rps\[0\]: -5 is not valid \(the rates of the"),
        (background(rates_rps=["5"]), r"rates_rps\[0\]: '5' is not valid \(the rates"),
        (background(rates_rps=5), r"rates_rps: must be a list, not 5"),
        (
            scenario(
                PAIR[0],
                name=PAIR[0],
                experiments=[{"kind": "background", "search": PAIR[0], "percents_of_peak": [5]}],
            ),
            r"experiments\[0\]: `background` needs at least two tenants",
        ),
        (shared(kind="replay"), r"process: is missing \(The process that"),
        (
            shared(kind="replay", process="bursts"),
            r"process: 'bursts' is not known \(one of poisson, gamma, mmpp, trace\)",
        ),
        (shared(kind="replay", process="gamma"), r"experiments\[0\]: needs mean rates"),
        (
            shared(kind="replay", process="gamma", rates_rps=[5, 0]),
            r"rates_rps\[1\]: must be > 0, not 0",
        ),
        (
            shared(kind="replay", process="trace", traces=["config/{a}.csv"]),
            r"experiments\[0\]: 'config/\{a\}\.csv' has a brace",
        ),
        (
            shared(
                kind="replay",
                process="trace",
                traces=[{"file": "config/prices.csv", "column": "vCPUs"}],
            ),
            r"traces\[0\]: .*prices\.csv ",
        ),
        (shared(kind="replay", process="gamma", cv=1e-170), r"cv: must be >= 0\.01, not 1e-170"),
        (shared(kind="replay", process="mmpp", burst_s=1e-6), r"burst_s: must be >= 0\.001, not"),
        (shared(mixes=[[1, 1]], cv=4), r"cv: applies only to experiments of kind replay"),
        (shared(kind="soak"), r"experiments\[0\]: `soak` needs `percents_of_peak:` or `rates"),
        (
            shared(kind="soak", rates_rps=[5, 5], percents_of_peak=[30, 30]),
            r"has both `percents_of_peak:` and `rates_rps:`",
        ),
        (shared(kind="soak", rates_rps=[5]), r"rates_rps: has 1 numbers for 2 tenants"),
        (shared(kind="soak", rates_rps=[5, 0]), r"rates_rps\[1\]: must be > 0, not 0"),
        (shared(kind="soak", percents_of_peak=[30, 100]), r"peak\[1\]: must be <= 99, not 100"),
        (shared(kind="soak", rates_rps=[5, 5], duration_s=59), r"duration_s: must be >= 60, not"),
        (shared(mixes=[[-1, 1]]), r"mixes\[0\]\[0\]: must be >= 0, not -1"),
        (shared(mixes=[[1]]), r"mixes\[0\]: has 1 weights for 2 tenants"),
        (shared(mixes=[[0, 0]]), r"mixes\[0\]: at least one weight must be above 0"),
        (shared(mixes=[[1, 1], [2, 2]]), r"\[0\]: 'mix-1-1' is listed twice in this"),
        (shared(hold="squeezenet1_1"), r"needs both `hold:` and `percents_of_peak:`, or neither"),
        (shared(hold="squeezenet"), r"hold: 'squeezenet' is not a tenant .*mean 'squeezenet1_1'"),
        (shared(hold="squeezenet1_1", percents_of_peak=[-25]), r"peak\[0\]: must be >= 1, not -25"),
        (
            shared(hold="squeezenet1_1", percents_of_peak=[5], mixes=[[1, 1]]),
            r"has both `mixes:` and `hold:`",
        ),
        (
            scenario(*PAIR, name="squeezenet1_1"),
            r"name: 'squeezenet1_1' is also the name of scenarios\[0\]\.tenants",
        ),
        (scenario(*PAIR, preset="standart"), r"preset: 'standart' is not known.*mean 'standard'"),
        (
            shared(kind="replay", process="trace", traces=["a\0b"]),
            r"traces\[0\]: embedded null byte",
        ),
        (shared(kind="slowdown", rate_rps=50_001), r"rate_rps: must be <= 50000, not 50001"),
        (shared(kind="soak", rates_rps=[1, 50_001]), r"rates_rps\[1\]: must be <= 50000"),
        (background(rates_rps=[50_001]), r"rates_rps\[0\]: 50001 is not valid"),
        (shared(kind="frontier", predict="no"), r"predict: must be a boolean, not 'no'"),
        (
            scenario(BATCHES, PAIR[1]),
            r"preferred_batch_sizes: must be <= `max_batch_size`, which is 4",
        ),
        (
            scenario({"model": "squeezenet1_1", "preprocessing": "sever"}, PAIR[1]),
            r"tenants\[0\]\.preprocessing: 'sever' .*mean 'server'",
        ),
        (
            scenario({"model": "squeezenet1_1", "preprocessing": "server", "priority": 1}, PAIR[1]),
            r"tenants\[0\]\.preprocessing: the `priority:` of the tenant would not apply to the",
        ),
        (
            scenario({"model": "squeezenet1_1", "priority": 1, "intra_op_threads": 4}, PAIR[1]),
            r"tenants\[0\]\.intra_op_threads: must be <= 1, the cores of server 'cpu1', .*priority",
        ),
        (
            scenario(BATCHES | {"max_batch_size": 1}, PAIR[1]),
            r"dynamic_batching: dynamic batching joins several requests, but `max_batch_size` is 1",
        ),
    ],
)
def test_a_scenario_that_cannot_be_measured_is_refused(item, expected):
    found = problems({"scenarios": [item]})
    assert any(re.search(expected, problem) for problem in found), "\n".join(found)


def many(tenants, **experiment):
    """Return a scenario of `tenants` tenants of one model."""
    each = [{"model": "squeezenet1_1", "name": f"t{i}"} for i in range(tenants)]
    return {"models": [model()], "scenarios": [scenario(*each, experiments=[experiment])]}


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("peak", {"mixes": [[1] * 60, [*range(101, 160), 997]]}),
        ("soak", {"rates_rps": [100.25] * 60}),
        ("background", {"search": "t0", "rates_rps": [[100.25] * 59]}),
    ],
    ids=["mixes", "soak", "background"],
)
def test_a_cell_has_a_name_that_a_file_may_have(kind, keys):
    text = "\n".join(problems(many(60, kind=kind, **keys)))
    message = r"\[0\]: the folder of a result would have a name of \d{3} characters, more than 240"
    assert re.search(message, text)


def test_one_name_cannot_stand_for_two_settings_of_a_tenant():
    twice = [
        scenario("squeezenet1_1", "mobilenet_v3_small"),
        scenario({"model": "squeezenet1_1", "instances": 2}, "mobilenet_v3_small", name="other"),
    ]
    assert any("differ from scenarios[0]" in line for line in problems({"scenarios": twice}))


def test_a_default_that_is_spelt_out_is_no_other_setting():
    twice = [
        scenario("squeezenet1_1", "mobilenet_v3_small"),
        scenario(
            {"model": "squeezenet1_1", "max_batch_size": 8.0}, "mobilenet_v3_small", name="other"
        ),
    ]
    assert len(load({"scenarios": twice}).scenarios) == 4


def test_a_model_that_its_server_cannot_run_is_refused():
    models = [model(precision="bf16"), model("mobilenet_v3_small")]
    assert any(
        "cannot run 'squeezenet1_1' in bf16 (the server needs runtime openvino)" in line
        for line in problems({"models": models})
    )
    openvino = [{**BASE["servers"][0], "runtime": "openvino"}]
    assert load({"models": models, "servers": openvino}).models["squeezenet1_1"].precision == "bf16"


def test_a_price_that_is_not_in_the_table_is_refused():
    def priced(instance, region):
        return {
            "servers": [
                {"name": "cpu1", "cores": 1, "price": {"instance": instance, "region": region}}
            ]
        }

    assert any(
        "mean 'n1-standard-" in line for line in problems(priced("n1-standart-1", "us-central1"))
    )
    assert any(
        "known regions: us-central1" in line for line in problems(priced("n1-standard-1", "mars"))
    )


def test_a_price_table_that_is_broken_is_named_by_line(tmp_path):
    prices = (ROOT / "config" / "prices.csv").read_text()
    (tmp_path / "prices.csv").write_text(prices.replace("0.0475", "cheap"))
    with pytest.raises(ConfigError, match=r"prices\.csv line 2: .*'cheap'"):
        read(BASE, prices=tmp_path / "prices.csv")


def test_all_mistakes_are_reported_at_once():
    change = {
        "seed": 2**64,
        "models": [model("resnet51"), model("mobilenet_v3_small", weights="none.pt")],
        "figures": {"dpi": 10, "colour": "red"},
    }
    found = "\n".join(problems(change))
    for place in (
        "seed:",
        "models[0].name:",
        "models[1].weights:",
        "figures.dpi:",
        "figures.colour:",
    ):
        assert place in found
    assert "scenarios[0].tenants[0].model: 'squeezenet1_1' is not in models" in found


NO_STORE = "is neither http://HOST:PORT nor sqlite:///FILE"
PASSWORD = (
    "contains a user name or password (remove both, and set MLFLOW_TRACKING_USERNAME and"
    " MLFLOW_TRACKING_PASSWORD in the environment)"
)


@pytest.mark.parametrize(
    ("uri", "told"),
    [
        ("mlruns", f"'mlruns' {NO_STORE}"),
        ("sqlite://", f"'sqlite://' {NO_STORE}"),
        ("http://", f"'http://' {NO_STORE}"),
        ("http://[", "'http://[' is no URI: Invalid IPv6 URL"),
        ("http://me:secret@host:5000", PASSWORD),
    ],
)
def test_a_store_to_track_results_is_a_server_or_a_file(uri, told):
    assert problems({"track": {"mlflow": uri}}) == (f"track.mlflow: {told}",)
    for right in ("https://mlflow.example:5000/path", "sqlite:///mlflow.db"):
        assert read(merged(BASE, {"track": {"mlflow": right}})).definition.track.mlflow == right


@pytest.mark.parametrize(
    ("listed", "message"), [([2000, 1, 1024], ""), ([2000, 4, 4], "has 4 twice")]
)
def test_what_stands_in_for_a_wrong_item_of_a_list_is_not_listed_twice(listed, message):
    found = "\n".join(problems({"scenarios": [shared(kind="concurrency", concurrencies=listed)]}))
    assert "concurrencies[0]: must be" in found
    assert message in found and ("twice" in found) == bool(message)


def test_no_value_is_taken_for_one_of_another_type():
    """Each value has a strict type of study.base: for example, the text "no" is not false."""
    found = list(scalars(Definition.__pydantic_core_schema__))
    assert {each["type"] for each in found} == {"bool", "int", "float", "str"}
    assert all(each.get("strict") for each in found)


def scalars(schema):
    """Yield the parts of pydantic's schema that read one value."""
    if isinstance(schema, dict):
        if schema.get("type") in ("bool", "int", "float", "str"):
            yield schema
        schema = [part for key, part in schema.items() if key != "metadata"]
    for part in schema if isinstance(schema, list) else ():
        yield from scalars(part)


def test_a_configuration_that_contains_itself():
    models = [model("squeezenet1_1")]
    models.append(models)
    assert problems({"models": models}) == ("the configuration: a YAML anchor (&) contains itself",)


MALFORMED = [
    3,
    "text",
    None,
    True,
    [],
    [None],
    [3],
    ["a"],
    [[]],
    {},
    {"a": 1},
    {1: 2},
    {None: []},
    "a" * 300,
    "a\0b",
    float("nan"),
]


def places(value, path=()):
    """Yield all places of a configuration, from the outside in."""
    yield path
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value if isinstance(value, list) else [])
    )
    for key, part in items:
        yield from places(part, (*path, key))


EVERYTHING = merged(
    BASE,
    {
        "measurement": {"repeats": 2, "arrivals": {"process": "gamma", "cv": 2}},
        "scenarios": [
            scenario(
                {
                    "model": "squeezenet1_1",
                    "name": "a",
                    "priority": 1,
                    "max_batch_size": 4,
                    "dynamic_batching": {"max_queue_delay_us": 5, "preferred_batch_sizes": [4]},
                },
                "mobilenet_v3_small",
                experiments=[
                    {"kind": "peak", "mixes": [[1, 1]]},
                    {"kind": "peak", "hold": "a", "percents_of_peak": [50]},
                    {"kind": "replay", "process": "mmpp", "rates_rps": [5], "burst_s": 2},
                ],
                grid={
                    "vary": {
                        "runtime": ["onnxruntime", "openvino"],
                        "max_queue_delay_us": ["none", 5],
                        "preferred_batch_sizes": [[], [4]],
                    },
                    "design": "one_at_a_time",
                    "at_most": {"p95_ms": 40},
                },
            )
        ],
    },
)


@pytest.mark.parametrize("bad", MALFORMED, ids=repr)
def test_whatever_stands_in_a_place_there_is_a_list_of_problems_or_a_study(bad, tmp_path):
    for n in range(4):
        (tmp_path / f"{n}.png").touch()
    everything = copy.deepcopy(EVERYTHING)
    everything["models"][0]["images"] = str(tmp_path)
    trace = tmp_path / "trace.csv"
    trace.write_text("0\n1\n")
    assert cells(read(everything))
    everything["measurement"]["arrivals"] = {"process": "trace", "trace": str(trace)}
    assert cells(read(everything))
    refused = 0
    for path in places(everything):
        raw = copy.deepcopy(everything)
        if path:
            at = raw
            for key in path[:-1]:
                at = at[key]
            at[path[-1]] = bad
        else:
            raw = bad
        try:
            read(raw)
        except ConfigError as error:
            assert error.problems
            refused += 1
    assert refused > 20


@pytest.mark.parametrize("key", ["study", "models", "servers", "scenarios"])
def test_a_missing_section_is_named(key):
    with pytest.raises(ConfigError, match=f"{key}: is missing"):
        read({k: v for k, v in BASE.items() if k != key})


def test_the_architectures_are_those_of_torchvision():
    found = torchvision_weights()
    assert found["resnet50"] == ("IMAGENET1K_V1", "IMAGENET1K_V2", "DEFAULT")
    assert {"resnet50", "inception_v3", "mobilenet_v3_small"} <= set(found)
    assert not {"fasterrcnn_resnet50_fpn_v3", "get_model"} & set(found)


# Pictures as requests


def by(side, **more):
    return {"model": "squeezenet1_1", "name": f"by_{side}", "preprocessing": side, **more}


def test_a_tenant_that_gets_pictures_is_an_ensemble_with_its_network():
    study = load({"scenarios": [scenario(by("server", instances=2), "mobilenet_v3_small")]})
    shared = study.scenarios["cpu1.shared"]
    (cell, *_) = (cell for cell in cells(study) if cell.scenario == shared)
    assert files.cell_inputs(study, cell)["repository"] == ["model_repository/base/cpu1.shared"]
    network, plain = planning.repository_task(study, shared.id).tenants
    assert (network.name, network.instances) == ("by_server.network", 2)
    assert (plain.name, plain.ensemble) == ("mobilenet_v3_small", None)
    before = network.ensemble
    assert (before.tenant, before.preprocess) == ("by_server", "by_server.preprocess")
    assert (before.network, before.processes, before.max_batch_size) == (network.name, 1, 8)
    files_of_one, files_of_other = (
        files_of(tenant.name, tenant.preprocessing, network.model_file) for tenant in shared.tenants
    )
    assert files_of_one == [
        "by_server/config.pbtxt",
        "by_server/1/.keep",
        "by_server.preprocess/config.pbtxt",
        "by_server.preprocess/1/model.py",
        "by_server.network/config.pbtxt",
        "by_server.network/1/model.onnx",
        "by_server.reference.npz",
    ]
    assert files_of_other == [
        "mobilenet_v3_small/config.pbtxt",
        "mobilenet_v3_small/1/model.onnx",
        "mobilenet_v3_small.reference.npz",
    ]
    models = "results/base/models"
    assert files.repository_inputs(study, shared) == {
        "models": [f"{models}/{name}/model.onnx" for name in ("squeezenet1_1", plain.name)],
        "checks": [f"{models}/{name}/check.json" for name in ("squeezenet1_1", plain.name)],
        "references": [
            f"{models}/squeezenet1_1/pictures.npz",
            f"{models}/mobilenet_v3_small/reference.npz",
        ],
    }


def test_a_client_that_preprocesses_asks_about_the_same_pictures_of_a_plain_network():
    study = load({"scenarios": [scenario(by("client"), "mobilenet_v3_small")]})
    shared = study.scenarios["cpu1.shared"]
    assert [tenant.network for tenant in shared.tenants] == ["by_client", "mobilenet_v3_small"]
    assert files.references(study, shared)[0].endswith("/squeezenet1_1/pictures.npz")
    measured = planning.measure_task(study, cells(study)[0]).tenants[0]
    assert (measured.preprocessing, measured.steps) == ("client", ())


def test_no_ceiling_is_looked_for_of_pictures():
    study = load({"scenarios": [scenario(by("server"), "mobilenet_v3_small")]})
    (request,) = planning.ceiling_task(study, "cpu1").requests
    assert request.model == "mobilenet_v3_small"


@pytest.mark.parametrize(
    ("sla_ms", "steps_ms"),
    [(3, 50), (50, 50), (99.9, 50), (100, 100), (750, 500), (1000, 1000), (2500, 2000)],
)
def test_a_ceiling_knows_how_late_a_client_may_be_and_not_the_sla_itself(sla_ms, steps_ms):
    study = load({"models": [model(sla={"latency_ms": sla_ms}), model(PAIR[1])]})
    of_models = {each.model: each for each in planning.ceiling_task(study, "cpu1").requests}
    assert of_models["squeezenet1_1"].sla_ms == steps_ms
    assert of_models[PAIR[1]].sla_ms == 100


def test_pictures_are_refused_where_they_cannot_be_preprocessed(tmp_path):
    (tmp_path / "own.onnx").touch()
    models = [model("squeezenet1_1", onnx=str(tmp_path / "own.onnx")), model(PAIR[1])]
    for side in ("client", "server"):
        (line,) = problems({"models": models, "scenarios": [scenario(by(side), PAIR[1])]})
        assert (
            "tenants[0].preprocessing: 'squeezenet1_1' is an ONNX file, but Perseus knows" in line
        )
    far = {**BASE["servers"][0], "launcher": "remote", "remote": {"host": "triton.example.org"}}
    (line,) = problems({"servers": [far], "scenarios": [scenario(by("server"), PAIR[1])]})
    assert "tenants[0].preprocessing: server 'cpu1' is remote, and Perseus deploys no" in line
    load({"servers": [far], "scenarios": [scenario(by("client"), PAIR[1])]})


# The documentation


@pytest.mark.parametrize(("name", "made"), [("README.md", readme), ("schema.json", schema_json)])
def test_the_reference_is_made_from_the_definition(name, made):
    assert (ROOT / "config" / name).read_text() == made(), f"run: make config/{name}"


def test_the_schema_asks_a_file_over_the_default_for_nothing():
    """A configuration file may leave out every key that the default configuration contains."""
    made = json.loads(schema_json())
    assert "required" not in made and "required" in made["$defs"]["Model"]


@pytest.mark.parametrize("title", EXAMPLES)
def test_the_examples_of_the_readme_load(title):
    assert cells(read(merged(DEFAULT, yaml.safe_load(EXAMPLES[title]))))


# The client


def test_the_client_is_in_the_tasks_of_the_measurements_only():
    client = {"protocol": "http", "shared_memory": True, "processes": 3}
    plain, changed = load(), load({"measurement": {"client": client}})
    before, after = (planning.measure_task(s, cells(s)[0]).plain() for s in (plain, changed))
    assert after == before | {"client": client}
    assert parts(plain) == parts(changed)


def test_processes_are_a_number_or_by_the_cores():
    for given, expected in (("auto", None), (2, 2), (2.0, 2)):
        study = load({"measurement": {"client": {"processes": given}}})
        assert planning.measure_task(study, cells(study)[0]).client.processes == expected
    (line,) = problems({"measurement": {"client": {"processes": 0}}})
    assert line.startswith(
        "measurement.client.processes: 0 is not valid (Number of processes that send"
    )


def test_a_request_is_not_larger_than_a_batch():
    tenant = {"model": "squeezenet1_1", "max_batch_size": 4, "request_batch_size": 5}
    (line,) = problems({"scenarios": [scenario(tenant, "mobilenet_v3_small")]})
    assert line == (
        "scenarios[0].tenants[0].request_batch_size: must be <= `max_batch_size`, which is 4"
    )


def test_the_size_of_requests_does_not_change_the_repository():
    def tenant(size):
        return {"model": "squeezenet1_1", "request_batch_size": size}

    one, four = (load({"scenarios": [scenario(tenant(n), "mobilenet_v3_small")]}) for n in (1, 4))
    assert parts(one) == parts(four)
    of_one, of_four = (planning.measure_task(study, cells(study)[0]) for study in (one, four))
    assert of_four.tenants[0].request_batch_size == 4
    assert of_one != of_four


def test_shared_memory_needs_a_server_on_this_host():
    far = {**BASE["servers"][0], "launcher": "remote", "remote": {"host": "triton.example.org"}}
    shared_memory = {"measurement": {"client": {"shared_memory": True}}}
    (line,) = problems({"servers": [far], **shared_memory})
    assert "servers[0] (launcher 'remote') is not on this host" in line
    load(shared_memory)
    load({"servers": [far]})
    unused = far | {"name": "far"}
    load({"servers": [BASE["servers"][0], unused], **shared_memory})


@pytest.mark.parametrize(
    "loop",
    [{"kind": "concurrency", "concurrencies": [4, 501, 1]}, {"kind": "aa", "concurrency": 501}],
    ids=["concurrency", "aa"],
)
def test_a_closed_loop_opens_no_more_connections_than_a_client_process_can(loop):
    def change(**client):
        return {"scenarios": [shared(**loop)], "measurement": {"client": client}}

    (found,) = problems(change(protocol="http"))
    assert found == (
        "scenarios[0].experiments[0]: needs 501 requests of each tenant in flight, but a client"
        " process with http can have at most 500 requests in flight (lower the number, or set"
        " `measurement.client.processes: 2` or `measurement.client.protocol: grpc`)"
    )
    assert problems(change(protocol="http", processes=1)) == (found,)
    assert load(change(protocol="http", processes=2)) and load(change(protocol="grpc"))


def test_a_scenario_of_one_tenant_may_have_any_name():
    """A scenario with one tenant has the same cells as the dedicated scenario of the tenant."""
    named = load({"scenarios": [scenario(PAIR[0], name="solo"), scenario(*PAIR)]})
    usual = load({"scenarios": [scenario(PAIR[0], name=PAIR[0]), scenario(*PAIR)]})
    assert list(named.cells) == list(usual.cells)
    assert "cpu1.squeezenet1_1.peak.r1" in named.cells
    grid = {"vary": {"instances": [1, 2]}}
    of_grid = load({"models": [model()], "scenarios": [scenario(PAIR[0], name="solo", grid=grid)]})
    (question,) = planning.tables_task(of_grid).grids
    assert {each.scenario for each in question.settings} == set(of_grid.scenarios)


def test_scenarios_of_one_tenant_on_a_server_agree_about_its_load_lines():
    light = scenario(PAIR[0], name="light", experiments=[{"kind": "soak", "rates_rps": [5]}])
    again = {**light, "name": "again", "preset": "quick"}
    heavy = {**light, "name": "heavy", "preset": "standard"}
    found = load({"models": [model()], "scenarios": [light, again]})
    assert list(found.cells) == [f"cpu1.squeezenet1_1.{name}.r1" for name in ("peak", "soak-5rps")]
    assert problems({"models": [model()], "scenarios": [light, heavy]}) == (
        "scenarios[1].experiments[0]: 'soak-5rps' of 'squeezenet1_1' alone on 'cpu1' differs from"
        " scenarios[0].experiments[0], but both experiments would have the same result"
        " files (give one of the tenants another `name:`)",
    )


UNPRICED = {"servers": [{"name": "cpu1", "cores": 1}]}


def test_a_server_may_have_no_price():
    study = load(UNPRICED)
    assert planning.tables_task(study).prices == {}
    assert study.kinds == {"peak"}
    assert list(study.price_messages()) == []
    assert list(study.cells) == list(load().cells)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            {
                "servers": [
                    {**UNPRICED["servers"][0], "other_prices": [BASE["servers"][0]["price"]]}
                ]
            },
            "servers[0].price: is missing, but `other_prices:` has prices (move one to `price:`)",
        ),
        (
            {**UNPRICED, "demand": {"models": [{"name": "squeezenet1_1", "rps": 3}]}},
            "demand.servers: 'cpu1' has no price, but Perseus plans fleets by their cost (give the"
            " server a `price:`, or name only servers with a price)",
        ),
        (
            {**UNPRICED, "scenarios": [scenario(*PAIR, grid={"vary": {"instances": [1, 2]}})]},
            "scenarios[0].grid: a grid recommends the cheapest setting, but server 'cpu1' has no"
            " price (give the server a `price:`)",
        ),
    ],
)
def test_what_needs_a_price_asks_for_it(change, expected):
    assert problems(change) == (expected,)


def asked(**more):
    """Return a demand for the first model only."""
    rates = [{"name": PAIR[0], "rps": 3}, {"name": PAIR[1], "rps": 0}]
    return {"demand": {"models": rates, **more}}


SURVEYS = [scenario(name, name=name, experiments=[{"kind": "catalogue"}]) for name in PAIR]
ELSEWHERE = [scenario(PAIR[0], name="a", servers=["cpu2"]), scenario(PAIR[1], name="b")]
TWO_SERVERS = {"servers": [BASE["servers"][0], {**BASE["servers"][0], "name": "cpu2"}]}


@pytest.mark.parametrize(
    "change",
    [
        {"scenarios": SURVEYS, **asked()},
        {"scenarios": ELSEWHERE, **TWO_SERVERS, **asked(servers=["cpu1"])},
    ],
    ids=["only catalogues", "on another server"],
)
def test_a_demand_needs_a_peak_of_each_model_on_a_server_of_the_fleet(change):
    assert problems(change) == (
        "demand.models[0]: no scenario searches a peak of 'squeezenet1_1' on a server that the"
        " fleet may use (add an experiment `peak` with 'squeezenet1_1' on cpu1)",
    )


def test_a_demand_needs_a_price_that_a_fleet_pays(tmp_path):
    (tmp_path / "list.csv").write_text("InstanceType,Region,vCPUs,Price,SpotPrice\nm,here,1,,0.1\n")
    change = {
        "servers": [{"name": "cpu1", "cores": 1, "price": {"instance": "m", "region": "here"}}],
        "costs": {"prices": str(tmp_path / "list.csv"), "pricing": ["spot"]},
    }
    for spot in ({}, {"spot": {"largest_share": 0.5, "revocations_per_hour": 1}}):
        (found,) = problems({**change, **asked(**spot)})
        assert found.startswith(
            "demand.models[0]: no server on which a fleet may serve 'squeezenet1_1' has an"
            " on-demand price (give cpu1 an on-demand price, or a spot price with"
        )
    load({**change, **asked(spot={"largest_share": 1, "revocations_per_hour": 1})})

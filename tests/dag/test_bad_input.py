"""`snakemake -n` reports all mistakes of a configuration at once and without a traceback."""

import os
import subprocess
import sys

import onnx
import pytest
import yaml
from onnx_files import network
from weights_files import write_shapes

SNAKEMAKE = (sys.executable, "-m", "snakemake")


def refusal(empty, tmp_path, text):
    """Return the output of Snakemake for the default study, changed by the configuration `text`."""
    (tmp_path / "bad.yaml").write_text(text)
    code, output, errors = empty.plan("--configfile", str(tmp_path / "bad.yaml"))
    assert code == 1
    assert "Traceback" not in output + errors
    return output + errors


def test_all_mistakes_are_printed_at_once(empty, tmp_path):
    text = refusal(
        empty,
        tmp_path,
        """
        study: ../elsewhere
        models:
          - {name: resnet51, sla: {percentile: 95, latency_ms: 0}}
          - {name: mobilenet_v3_small, weights: none.pt, images: photos, sla: {latency: 5}}
        measurement: {repeat: 3, arrivals: {process: trace, trace: none.csv, cv: 2}}
        """,
    )
    assert "The configuration has" in text
    for line in (
        "study: '../elsewhere' is not a name",
        "models[0].name: 'resnet51' is not a torchvision classification model (did you",
        "models[0].sla.latency_ms: must be > 0, not 0",
        "models[1].weights: there is no file 'none.pt'",
        "models[1].images: there is no folder 'photos'",
        "models[1].sla.latency: unknown key (did you mean 'latency_ms'?)",
        "models[1].sla.latency_ms: is missing",
        "measurement.repeat: unknown key (did you mean 'repeats'?)",
        "measurement.arrivals.cv: applies only to `process: gamma`",
        "measurement.arrivals.trace: there is no trace file 'none.csv'",
        "scenarios[0].tenants[0].model: 'squeezenet1_1' is not in models",
    ):
        assert line in text


def test_models_of_libraries_are_refused_in_one_sentence_each(empty, tmp_path):
    text = refusal(
        empty,
        tmp_path,
        """
        models:
          - {name: a, architecture: timm/resnet18.a1_in1k, sla: {latency_ms: 9}}
          - {name: b, architecture: torchvision/resnet18, sla: {latency_ms: 9}}
          - {name: c, architecture: torchvision/deeplab3_resnet50, sla: {latency_ms: 9}}
          - {name: d, architecture: keras/resnet18, sla: {latency_ms: 9}}
          - {name: e, architecture: torchvision/fcn_resnet50, weights: COCO_V1, shape: {x: [9]},
             request: uint8, sla: {latency_ms: 9}}
        scenarios:
          - {name: a, servers: [cpu1], tenants: [{model: a, preprocessing: client}]}
        """,
    )
    for line in (
        "models[0].architecture: 'timm/resnet18.a1_in1k' needs timm, which is not installed"
        " (.venv/bin/python -m pip install -r envs/timm.txt)",
        "models[1].architecture: 'resnet18' is a classification model (write resnet18 without"
        " torchvision/)",
        "models[2].architecture: 'deeplab3_resnet50' is not a detection or segmentation model of"
        " torchvision (did you mean 'deeplabv3_resnet50'?)",
        "models[3].architecture: 'keras/resnet18' names an unknown library (write timm/NAME or",
        "models[4].weights: torchvision/fcn_resnet50 has no weights 'COCO_V1'",
        "models[4].request: applies only to classification models of torchvision, since",
        "models[4].shape: applies only to models with `onnx:` or `served_model:`",
        "scenarios[0].tenants[0].preprocessing: 'a' is of timm/resnet18.a1_in1k, but Perseus knows",
    ):
        assert line in text


def test_a_key_that_stands_twice_is_printed_with_its_file_and_lines(empty, tmp_path):
    text = refusal(empty, tmp_path, "seed: 1\nstudy: a\nseed: 2\n")
    assert f"{tmp_path}/bad.yaml line 3: 'seed' is already in line 1" in text


def test_an_empty_mapping_in_place_of_a_list_is_not_taken_for_what_was_there(empty, tmp_path):
    assert "models: must be a list, not {}" in refusal(empty, tmp_path, "models: {}\n")


def test_what_is_wrong_with_prices_is_printed_with_its_line_and_what_to_do(empty, tmp_path):
    prices = tmp_path / "own.csv"
    prices.write_text("InstanceType,Region,vCPUs,Price\nodd,here,4,1\nbig,here,4,-2\n")
    text = f"costs: {{prices: '{prices}', committed_discount: 2}}\nservers:\n"
    text += "  - {name: cpu1, cores: 1, price: {instance: big, region: here}}"
    content = refusal(empty, tmp_path, text)
    assert "costs.committed_discount: must be < 1, not 2" in content
    assert "own.csv line 3: Price must not be -2 (correct or delete the line)" in content
    prices.write_text(prices.read_text().replace("-2", "2"))
    content = refusal(empty, tmp_path, text)
    problem = "is missing: 'big' has 4 vCPUs, but the server has 1 cores"
    assert f"servers[0].price.share: {problem}" in content


def test_figures_that_cannot_be_drawn_end_a_run_before_it_measures(empty, tmp_path):
    workflow = empty.copy(tmp_path / "workflow")
    page = workflow.root / "scripts/perseus/report/page.py"
    page.write_text(page.read_text() + "\nraise ImportError('libfreetype.so.6 is missing')\n")
    code, output, errors = workflow._snakemake("--cores", "2", "all")
    assert (code, "Traceback" in errors) == (1, False)
    assert (
        "Figures and report cannot be made with this Python environment, so nothing is measured:"
        " ImportError: libfreetype.so.6 is missing. Install requirements.txt again."
    ) in output + errors
    assert not (workflow.root / "results/default/models").exists()


def test_results_that_cannot_be_tracked_end_a_run_before_it_measures(empty, tmp_path, monkeypatch):
    workflow = empty.copy(tmp_path / "workflow")
    workflow.append("config/config.yaml", "track: {mlflow: 'http://127.0.0.1:1'}\n")
    (workflow.root / "mlflow.py").write_text("raise ModuleNotFoundError('no module mlflow')\n")
    monkeypatch.setenv("PYTHONPATH", str(workflow.root))
    code, output, errors = workflow._snakemake("--cores", "2", "all")
    assert (code, "Traceback" in errors) == (1, False)
    assert "track.mlflow: " in output + errors
    assert "Install this package: pip install -r envs/mlflow.txt" in output + errors
    assert not (workflow.root / "results/default/models").exists()


@pytest.mark.parametrize("text", ["models: 3", "scenarios: null", "servers: [null, 3, {}]"])
def test_a_malformed_section_is_named(empty, tmp_path, text):
    assert text.split(":")[0] in refusal(empty, tmp_path, text)


@pytest.mark.parametrize("text", ["", "- a list", "just text", "a: [unclosed"])
def test_a_file_that_is_no_configuration_is_refused(empty, tmp_path, text):
    refusal(empty, tmp_path, text)


def test_an_unknown_key_on_the_command_line_is_refused(empty):
    code, output, errors = empty.plan("--config", "colour=red")
    assert code == 1
    assert "colour: unknown key" in output + errors


def test_a_target_that_is_no_cell_of_the_study_is_named_with_a_hint(empty):
    code, output, errors = empty.plan("results/default/raw/cpu1.shared.mix-1-22.r1")
    assert code == 1 and "KeyError" not in output + errors
    assert (
        "Study 'default' has no cell 'cpu1.shared.mix-1-22.r1' (did you mean"
        " 'cpu1.shared.mix-1-2.r1'?)"
    ) in output + errors


def test_files_of_ones_own_that_do_not_fit_stop_before_any_job_all_at_once(empty, tmp_path):
    workflow = empty.copy(tmp_path / "workflow")
    write_shapes(workflow.root / "right.pt", "alexnet")
    write_shapes(workflow.root / "other.pt", "resnet18")
    (workflow.root / "none.pt").write_bytes(b"weights")
    files = {"alexnet": "right.pt", "squeezenet1_1": "other.pt", "mobilenet_v3_small": "none.pt"}
    sla = {"latency_ms": 100}
    networks = {"one": network(), "two": network(pixels=("h", "w")), "large": network()}
    for name, each in networks.items():
        onnx.save(each, workflow.root / f"{name}.onnx")
    models = [{"name": name, "weights": file, "sla": sla} for name, file in files.items()]
    models += [{"name": name, "onnx": f"{name}.onnx", "sla": sla} for name in networks]
    models[-1]["input_size"] = 48
    scenarios = [
        {"name": name, "servers": ["cpu1"], "tenants": [{"model": name}]}
        for name in (*files, *networks)
    ]
    (workflow.root / "study.yaml").write_text(
        yaml.safe_dump({"models": models, "scenarios": scenarios})
    )
    command = [*SNAKEMAKE, "--cores", "2", "all", "--configfile", "study.yaml"]
    done = subprocess.run(
        command, cwd=workflow.root, capture_output=True, text=True, timeout=120, check=False
    )
    text = done.stdout + done.stderr
    assert done.returncode == 1 and "Traceback" not in text
    told = "squeezenet1_1: weights: the weights in other.pt are not those of squeezenet1_1: "
    assert text.count(told) == 1
    assert text.count("mobilenet_v3_small: weights: none.pt is not a state_dict that can be") == 1
    of_two = "two: onnx: two.onnx: its input 'x' FP32 (? x 3 x ? x ?) has variable sizes"
    assert text.count(of_two) == 1
    assert text.count("large: onnx: large.onnx: input_size: in the inputs 'x' FP32 (") == 1
    assert "right.pt" not in text and "one.onnx" not in text
    assert not (workflow.root / "results").exists()


@pytest.mark.parametrize(
    ("asked", "refused"),
    [
        ("cores: {}", "the server asks for {} cores, and the client"),
        (
            "cores: {0}, launcher: remote, remote: {{host: 10.0.0.7, client_cores: {0}}}",
            "the client asks for {} cores, and the null model",
        ),
    ],
)
def test_a_study_too_large_for_this_machine_stops_before_any_job(empty, tmp_path, asked, refused):
    workflow, cores = empty.copy(tmp_path / "workflow"), os.cpu_count() + 6
    custom = f"custom: {{vcpus: {cores}, on_demand: {{usd_per_vcpu_hour: 0.03}}}}"
    price = f"price: {{instance: large, region: here, {custom}}}"
    study = tmp_path / "study.yaml"
    study.write_text(f"servers: [{{name: cpu1, device: cpu, {asked.format(cores)}, {price}}}]")
    command = [*SNAKEMAKE, "--cores", "2", "all", "--configfile", str(study)]
    done = subprocess.run(
        command, cwd=workflow.root, capture_output=True, text=True, timeout=120, check=False
    )
    text = done.stdout + done.stderr
    assert done.returncode == 1 and "Traceback" not in text
    assert text.count(f"Server 'cpu1': {refused.format(cores)}") == 1
    assert not (workflow.root / "results").exists()


IN_NO_PLACE = """
import sys
from perseus.host import orphans
from snakemake.cli import main

orphans._PLACES = ()
main(sys.argv[1:])
"""


def test_no_folder_for_a_server_stops_before_any_job(empty, tmp_path):
    workflow, folder = empty.copy(tmp_path / "workflow"), tmp_path / "my files"
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", IN_NO_PLACE, "--cores", "2", "all"],
        cwd=workflow.root,
        env={**os.environ, "TMPDIR": str(folder), "PYTHONPATH": str(workflow.root / "scripts")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    text = done.stdout + done.stderr
    assert done.returncode == 1 and "Traceback" not in text
    assert text.count(f"but the folder is {folder}. Set TMPDIR to another folder.") == 1
    assert not (workflow.root / "results").exists()

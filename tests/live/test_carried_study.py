"""A study that is packed for a machine without Snakemake.

The test runs the study on a CPU, without access to this repository.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pandas as pd
import pytest
import yaml

pytestmark = pytest.mark.alone

ROOT = Path(__file__).parents[2]
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
STUDY = {
    "study": "carried",
    "models": [{"name": "mobilenet_v3_small", "input_size": 64, "sla": {"latency_ms": 50}}],
    "servers": [
        {
            "name": "cpu1",
            "runtime": "pytorch",
            "cores": 1,
            "price": {"instance": "n1-standard-1", "region": "us-central1"},
        }
    ],
    "scenarios": [
        {
            "name": "mobilenet_v3_small",
            "servers": ["cpu1"],
            "tenants": [{"model": "mobilenet_v3_small"}],
            "experiments": [{"kind": "concurrency", "concurrencies": [2]}],
        }
    ],
    "measurement": {"precision": "smoke"},
}


def pack(tmp_path: Path, study: dict, *options: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study))
    return subprocess.run(
        [sys.executable, ROOT / "scripts/carried/pack.py", "study.yaml", ".", *options],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "scripts")},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.fixture(scope="module")
def carried(tmp_path_factory) -> Path:
    """Pack a study and return the folder with the unpacked archive."""
    folder = tmp_path_factory.mktemp("carried")
    done = pack(folder, STUDY, "--python", VERSION)
    assert done.returncode == 0, done.stderr
    archive = folder / "perseus-carried.tar.xz"
    assert archive.stat().st_size < 60 * 2**20
    with tarfile.open(archive) as tar:
        tar.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.4 and later
        tar.extractall(folder)
    return folder / "perseus-carried"


def test_one_command_exports_serves_and_measures(carried, tmp_path):
    command = [sys.executable, "-I", carried / "run.py", "results", "--limit-s", "240"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    results = tmp_path / "results"
    told = json.loads((results / "summary.json").read_text())
    assert told["not_measured"] == []
    peak, loop = sorted(told["cells"], key=lambda each: "levels" in each)
    # Other processes may slow the client down, but they must not make the server fail.
    assert peak["outcome"] not in ("failed", "infeasible"), peak["reason"]
    assert peak["requests"] > 100
    assert peak["relative_errors"]["mobilenet_v3_small"] < 1e-3
    assert loop["levels"][0]["concurrency"] == 2
    assert pd.read_csv(results / "peaks.csv")["runtime"].tolist() == ["pytorch"]
    with tarfile.open(results / "raw.tar.xz") as tar:
        logs = [each for each in tar.getmembers() if each.name.endswith("/server.log")]
        messages = [tar.extractfile(each).read().decode(errors="replace") for each in logs]
        assert sum(name.endswith("/requests.parquet") for name in tar.getnames()) == 2
    assert len(messages) == 2
    assert str(ROOT) not in "".join(messages), "the server came from elsewhere"


def with_another_study(carried: Path, folder: Path, job: str) -> Path:
    """Return a run.py that measures the cells of another job with the unpacked files."""
    folder.mkdir()
    shutil.copy(carried / "run.py", folder)  # run.py looks for files in its own folder
    for name in ("job.py", "scripts"):
        (folder / name).symlink_to(carried / name)
    (folder / "study.json").write_text(job)
    return folder / "run.py"


def test_what_there_is_no_time_for_is_listed(carried, tmp_path):
    # without models, nothing is exported
    job = json.loads((carried / "study.json").read_text()) | {"models": {}}
    program = with_another_study(carried, tmp_path / "carried", json.dumps(job))
    command = [sys.executable, "-I", program, "results", "--limit-s", "1"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads((tmp_path / "results" / "summary.json").read_text())
    assert told["cells"] == []
    assert len(told["not_measured"]) == 2


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({"servers": [{**STUDY["servers"][0], "runtime": "onnxruntime"}]}, [], "runtime: pytorch"),
        (
            {
                "scenarios": [
                    {
                        **STUDY["scenarios"][0],
                        "tenants": [{"model": "mobilenet_v3_small", "preprocessing": "client"}],
                    }
                ]
            },
            [],
            "mobilenet_v3_small: a tenant with `preprocessing` cannot be packed",
        ),
        ({}, ["--python", "3.99"], "no triton_python_backend_stub for Python 3.99"),
        ({"models": []}, [], "models: must have at least 1 item"),
    ],
)
def test_what_cannot_be_carried_is_said_in_words(tmp_path, change, options, message):
    done = pack(tmp_path, {**STUDY, **change}, *options)
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.glob("*.tar.xz"))


JOB = """
import json, sys
from pack import ROOT, job_of
from perseus.study.read import read_study

study = read_study(json.load(sys.stdin), prices=ROOT / "config/prices.csv", folder=ROOT)
print(json.dumps(job_of(study).plain()))
"""


def job_of(study: dict) -> str:
    """Return the job that `pack.py` writes for `run.py`."""
    return subprocess.run(
        [sys.executable, "-c", JOB],
        input=json.dumps(study),
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'scripts'}:{ROOT / 'scripts/carried'}"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_a_dedicated_peak_that_no_other_cell_needs_is_measured_last_whatever_its_preset():
    for preset, name in ((None, "peak"), ("quick", "peak-quick")):
        own = {"preset": preset} if preset else {}
        job = job_of({**STUDY, "scenarios": [{**STUDY["scenarios"][0], **own}]})
        runs = [cell["run"]["name"] for cell in json.loads(job)["cells"]]
        assert runs == ["concurrency", name]


def test_a_gpu_study_on_a_machine_without_gpus_ends_with_one_sentence(carried, tmp_path):
    price = {**STUDY["servers"][0]["price"], "accelerator": "T4"}
    server = {**STUDY["servers"][0], "device": "gpu", "gpus": [0], "price": price}
    program = with_another_study(
        carried, tmp_path / "carried", job_of({**STUDY, "servers": [server]})
    )
    command = [sys.executable, "-I", program, "results"]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120,
                          cwd=tmp_path)  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.count("the study measures on GPU 0, ") == 1
    assert "Traceback" not in done.stderr

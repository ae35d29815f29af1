"""Tests that a study packed for a machine without Snakemake contains the traces that it names."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tarfile
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest
import yaml

from perseus.host import cores, starter
from perseus.measurement import measure as frame
from perseus.measurement.measure import repository_export_error
from perseus.models.networks import import_torchvision
from perseus.results import tables
from perseus.results.tables import catalogue
from perseus.study import architectures
from perseus.study.read import read_study

ROOT = Path(__file__).parents[2]
MODULES = ("job", "pack", "run")


@pytest.fixture
def carried(monkeypatch):
    """Return the modules of scripts/carried by name.

    The modules import each other from their own folder.
    """
    monkeypatch.syspath_prepend(str(ROOT / "scripts" / "carried"))
    yield {name: importlib.import_module(name) for name in MODULES}
    for name in MODULES:
        del sys.modules[name]


def study_of(folder: Path):
    """Return a study of one model. The arrivals and the replay read two files of the same name."""
    names = []
    for number in range(2):
        (folder / str(number)).mkdir()
        names.append(str(folder / str(number) / "times.csv"))
        Path(names[-1]).write_text(f"time_s\n0\n{number + 1}\n9\n")
    price = {"instance": "n1-standard-1", "region": "us-central1"}
    replay = {"kind": "replay", "process": "trace", "traces": [names[1]], "duration_s": 5}
    raw = {
        "study": "carried",
        "models": [{"name": "squeezenet1_1", "sla": {"latency_ms": 50}}],
        "servers": [{"name": "cpu1", "runtime": "pytorch", "cores": 1, "price": price}],
        "scenarios": [
            {
                "name": "squeezenet1_1",
                "servers": ["cpu1"],
                "tenants": [{"model": "squeezenet1_1"}],
                "experiments": [{**replay, "percents_of_peak": [30]}],
            }
        ],
        "measurement": {"preset": "smoke", "arrivals": {"process": "trace", "trace": names[0]}},
    }
    return read_study(raw, prices=ROOT / "config/prices.csv", folder=ROOT), names


@pytest.mark.parametrize(("python", "packed"), [("3.12", 0), ("3.13", 1)])
def test_only_the_stub_for_python_3_13_gets_the_library_of_python(carried, python, packed):
    names = [name for _, name in carried["pack"].files(python, None)]
    assert sum("libpython3-" in name for name in names) == packed
    assert any("libtritonserver" in name for name in names)


def test_the_archive_has_files_in_place_of_links(carried, tmp_path, monkeypatch):
    """In Debian, libpython3.12.so is a link to libpython3.12.so.1.0."""
    study, (trace, _) = study_of(tmp_path)
    library, link = tmp_path / "libpython3.12.so.1.0", tmp_path / "libpython3.12.so"
    library.write_text("the library")
    link.symlink_to(library.name)
    Path(trace).rename(tmp_path / "times.csv")
    Path(trace).symlink_to(tmp_path / "times.csv")
    monkeypatch.setattr(carried["pack"], "files", lambda python, given: [(given, "libpython")])
    archive = carried["pack"].pack(study, tmp_path, "3.12", link)
    with tarfile.open(archive) as tar:
        assert tar.extractfile("perseus-carried/libpython").read() == b"the library"
        assert all(entry.isfile() for entry in tar)


def test_each_cell_reads_the_traces_that_its_task_names(carried, tmp_path, monkeypatch):
    study, names = study_of(tmp_path)
    monkeypatch.setattr(carried["pack"], "files", lambda python, libpython: [])
    archive = carried["pack"].pack(study, tmp_path, "3.12", None)
    with tarfile.open(archive) as tar:
        tar.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.4 and later
        tar.extractall(tmp_path)
    unpacked = tmp_path / "perseus-carried"
    monkeypatch.setattr(carried["run"], "HERE", unpacked)
    asked = {}
    monkeypatch.setattr(
        frame, "measure", lambda task, inputs, *others: asked.update({task.run.kind: inputs})
    )
    job = carried["run"].read_job(unpacked / "study.json")
    raw = tmp_path / "results/work/raw"
    for task in job.cells:
        carried["run"].measure_cell(job, task.cell, tmp_path / "results")
        (raw / task.cell).mkdir(parents=True)
        (raw / task.cell / "record.json").touch()
    assert sorted(asked) == ["peak", "replay"]
    arrivals = asked["peak"].trace
    assert arrivals.is_relative_to(unpacked)
    assert arrivals.read_text() == Path(names[0]).read_text()
    # the cell has its own arrivals
    assert asked["peak"].files == [] and asked["replay"].trace is None
    (recorded,) = asked["replay"].files
    assert recorded.is_relative_to(unpacked)
    assert recorded.read_text() == Path(names[1]).read_text()


def test_a_missing_package_is_told_before_any_export(carried, tmp_path):
    job = carried["pack"].job_of(study_of(tmp_path)[0])
    (tmp_path / "study.json").write_text(json.dumps(job.plain()))
    read = (
        "import sys; sys.modules['rapidjson'] = None; import run, pathlib;"
        "run.read_job(pathlib.Path(sys.argv[1]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", read, str(tmp_path / "study.json")],
        env={**os.environ, "PYTHONPATH": f"{ROOT}/scripts:{ROOT}/scripts/carried"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "rapidjson" in done.stderr and "install the packages that the first" in done.stderr
    assert "python-rapidjson" in carried["pack"].__doc__


def test_predictions_by_what_copies_do_are_not_carried(carried):
    """Predictions from copies of a model need cells that the other machine would not have."""
    raw = yaml.safe_load((ROOT / "config/studies/pairs.yaml").read_text())
    for server in raw["servers"]:
        server |= {"runtime": "pytorch", "launcher": "embedded"}
    study = read_study(raw, prices=ROOT / "config/prices.csv", folder=ROOT)
    with pytest.raises(ValueError, match="copies of a model"):
        carried["pack"].job_of(study)


def test_where_no_cell_was_measured_it_says_so_by_its_exit_code(carried, tmp_path, monkeypatch):
    """The run removes the files of an earlier study, and no other files."""
    run = carried["run"]
    monkeypatch.setenv(starter.VARIABLE, "")  # the run sets the variable to the id of this process
    (tmp_path / "work/raw/of-another").mkdir(parents=True)
    for name in ("run.log", "soak.csv", "own.csv"):
        (tmp_path / name).touch()
    for name in ("require", "export", "summarise"):
        monkeypatch.setattr(run, name, lambda *_: None)
    job = carried["pack"].job_of(study_of(tmp_path)[0])
    monkeypatch.setattr(run, "begin", lambda *_: True)
    run.run(job, tmp_path, 0.0)
    assert not (tmp_path / "work").exists() and not (tmp_path / "soak.csv").exists()
    assert (tmp_path / "own.csv").exists()
    monkeypatch.setattr(run, "begin", lambda *_: False)
    with pytest.raises(SystemExit) as ended:
        run.run(job, tmp_path, 0.0)
    assert ended.value.code == 1


def test_results_go_into_a_folder_and_not_into_a_file(carried, tmp_path):
    path = tmp_path / "results"
    path.write_text("of the user")
    with pytest.raises(SystemExit, match=r"is not a folder: name a new or empty folder"):
        carried["run"].require_own(path)


def test_a_folder_with_files_of_other_programs_is_left_as_it_is(carried, tmp_path, monkeypatch):
    run = carried["run"]
    monkeypatch.setenv(starter.VARIABLE, "")
    for name in ("require", "export", "summarise"):
        monkeypatch.setattr(run, name, lambda *_: None)
    monkeypatch.setattr(run, "begin", lambda *_: True)
    job = carried["pack"].job_of(study_of(tmp_path)[0])
    results = tmp_path / "results"
    own = [results / name for name in ("work/notes.txt", "peaks.csv", "summary.json")]
    own[0].parent.mkdir(parents=True)
    for path in own:
        path.write_text("of the user")
    with pytest.raises(SystemExit, match=r"has files of other programs: name a new or empty"):
        run.run(job, results, 0.0)
    assert [path.read_text() for path in own] == ["of the user"] * 3
    assert not (results / "run.log").exists()


@pytest.mark.parametrize(
    ("script", "said", "is_measured"),
    [
        ('path.write_text(\'{"outcome": "ok", "reason": ""}\')', "  ok", True),
        ("sys.exit('the server has ended')", "  the server has ended", False),
    ],
)
def test_a_cell_ends_with_its_outcome_or_its_error(
    carried, tmp_path, monkeypatch, script, said, is_measured
):
    """Some experiments print nothing at their end, so the last line says little about them."""
    cell = tmp_path / "cell.py"
    record = tmp_path / "work/raw/a/record.json"
    head = (
        f"import sys, pathlib; path = pathlib.Path({str(record)!r}); print('starting the server')"
    )
    cell.write_text(f"{head}\n{script}\n")
    run, lines = carried["run"], []
    monkeypatch.setattr(run, "__file__", str(cell))
    assert run.begin("a", tmp_path, run.time.monotonic() + 60, lines.append) is is_measured
    assert lines == ["measuring a", said]


def test_a_model_that_torch_cannot_run_does_not_stop_the_exports_of_others(carried, tmp_path):
    """The cells of the model get the reason as their result."""
    run, lines, work = carried["run"], [], tmp_path / "work"
    job = carried["pack"].job_of(study_of(tmp_path)[0])
    (name, task), *_ = job.models.items()
    (scenario, repository), *_ = job.repositories.items()
    (tenant,) = repository.tenants
    small = repository.model_copy(
        update={"tenants": (tenant.model_copy(update={"model": "small"}),)}
    )
    models = {
        "small": task.model_copy(update={"input_size": 16}),
        name: task.model_copy(update={"input_size": 64}),
    }
    both = {"small": small, scenario: repository}
    run.export(job.model_copy(update={"models": models, "repositories": both}), work, lines.append)
    (line,) = lines
    assert line.startswith("  small: squeezenet1_1 does not accept images of 16 x 16 pixels: ")
    assert repository_export_error(work / "repository/small") == line.removeprefix("  small: ")
    assert repository_export_error(work / "repository" / scenario) == ""
    assert (work / "models/small/reference.npz").exists()


def test_a_killed_export_ends_the_run_with_one_sentence(carried, tmp_path, monkeypatch):
    """The exports use no more cores than this process may use."""
    run, at_once = carried["run"], []

    class Threads(ThreadPoolExecutor):
        def __init__(self, most: int, _context: object) -> None:
            at_once.append(most)
            super().__init__(most)

    def killed(*_: object) -> str:
        raise BrokenProcessPool

    monkeypatch.setattr(run, "ProcessPoolExecutor", Threads)
    monkeypatch.setattr(run, "prepare", killed)
    monkeypatch.setattr(cores, "usable_cpus", lambda topology: list(range(6)))
    job = carried["pack"].job_of(study_of(tmp_path)[0])
    with pytest.raises(SystemExit, match="an export was killed, probably because this machine has"):
        run.export(job, tmp_path / "work", print)
    assert at_once == [3]


def test_a_model_that_the_machine_cannot_export_ends_the_run_with_one_sentence(
    carried, tmp_path, monkeypatch
):
    """The file of the trained weights is damaged."""
    _, torchvision = import_torchvision()
    run, weights = carried["run"], torchvision.models.SqueezeNet1_1_Weights.DEFAULT.url
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    damaged = tmp_path / "hub/checkpoints" / Path(weights).name
    damaged.parent.mkdir(parents=True)
    damaged.write_text("not found")
    monkeypatch.setenv(starter.VARIABLE, "")
    monkeypatch.setattr(run, "require", lambda job: None)
    job = carried["pack"].job_of(study_of(tmp_path)[0])
    (name, task), *_ = job.models.items()
    trained = task.model_copy(update={"weights": "DEFAULT", "input_size": 64})
    with pytest.raises(SystemExit, match=r"^squeezenet1_1: the weights DEFAULT of squeezenet1_1"):
        run.run(job.model_copy(update={"models": {name: trained}}), tmp_path / "results", 0.0)
    log = (tmp_path / "results/run.log").read_text()
    assert "\nsqueezenet1_1: the weights DEFAULT of squeezenet1_1 cannot be loaded safely" in log


def test_the_tables_know_the_architecture_of_each_exported_model(carried, tmp_path, monkeypatch):
    """From the architecture and the input size, the table `catalogue` finds the accuracy."""
    run, seen = carried["run"], []
    job = carried["pack"].job_of(study_of(tmp_path)[0])
    (name, task), *_ = job.models.items()
    small = task.model_copy(update={"input_size": 64})
    run.prepare(job, name, small, tmp_path / "work")
    monkeypatch.setattr(tables, "make", lambda results: seen.append(results.exports) or {})
    run.summarise(job, tmp_path, [cell.cell for cell in job.cells])
    network = catalogue.Network.of(seen[0]["squeezenet1_1"])
    assert (network.architecture, network.input_px) == ("squeezenet1_1", 64)
    packed = [name for _, name in carried["pack"].files("3.12", None)]
    assert f"scripts/{architectures.FILE.relative_to(ROOT / 'scripts')}" in packed

"""If no server can serve a setting or a group of models, the tables have a row with the reason."""

from __future__ import annotations

import json
from contextlib import contextmanager

import pytest
import synthetic
import synthetic_files
from no_server import launched_by

from perseus.host import parquet
from perseus.measurement import measure as frame
from perseus.measurement.cell import Inputs, Outputs
from perseus.models.export_errors import export_or_write_error
from perseus.report import drawing
from perseus.report.conclusions import conclusions
from perseus.report.figures import FIGURES
from perseus.results.check import problems
from perseus.results.records import Record
from perseus.results.study_results import StudyResults
from perseus.serving.failures import ServerError
from perseus.study.tasks.figure import FigureTask
from perseus.study.tasks.measure import MeasureTask

LOG = """\
the server ended before it was ready (exit code 1); the last lines of its log:
E1123 00:00:01.000000 7 model_lifecycle.cc:642] "failed to load 'resnet18' version 1: Internal: no"
error: creating server: Internal - failed to load all models"""
NOT_LOADED = (
    "the server ended before it was ready (exit code 1);"
    " failed to load 'resnet18' version 1: Internal: no"
)
RUNTIME = "openvino"
STYLE = FigureTask(width_mm=160, font_pt=9, dpi=60, pricing="on_demand")


@pytest.fixture
def refused(monkeypatch):
    """Return the logs of servers that ended before they were ready."""
    logs = []

    @contextmanager
    def launch(server, repository, log_path, cores, **more):
        logs.append(log_path)
        log_path.write_text("what it said\n")
        raise ServerError(LOG)
        yield

    launched_by(launch, monkeypatch)
    return logs


def tasks(runtime=RUNTIME):
    """Return a cell of each kind, on a server with this runtime, with the dedicated cells first."""
    truth = synthetic.Truth(synthetic.TRUTH.capacities, repeats=1)
    found = [
        *synthetic.records(truth, mixes=[(1, 1)]),
        *synthetic.background_records(truth, percents=(50,)),
        synthetic.sweep_record(),
        synthetic.startup_record(),
        synthetic.aa_record(),
        synthetic.slowdown_record(),
        synthetic.replay_record(),
        synthetic.soak_record(),
        synthetic.catalogue_record(),
    ]
    name = synthetic.server_with(runtime, synthetic.RUNTIMES)
    moved = (synthetic.on_server(record, name, runtime) for record in found)
    return [MeasureTask.model_validate(record["cell"]) for record in moved]


def measured(folder, task):
    """Measure a cell, and return the folder of its raw results."""
    raw = folder / "raw"
    alone = [raw / f"{task.server.name}.{name}.peak.r1" for name in task.tenant_names]
    needed = [cell / "record.json" for cell in alone if task.run.needs_dedicated_peaks]
    (raw / task.cell).mkdir(parents=True)
    inputs = Inputs(folder / "repository", {}, needed, None)
    frame.measure(task, inputs, Outputs.within(raw / task.cell), lambda _: None)
    return raw / task.cell


def write_failed_export(folder):
    def make():
        raise ValueError("resnet18 cannot be converted to int8: no range")

    # Triton's Python backend compiles the code of models
    (folder / "repository/resnet18/1/__pycache__").mkdir(parents=True)
    export_or_write_error(
        make, folder / "repository/resnet18/1/model.onnx", lambda _: None, ValueError
    )


@pytest.mark.parametrize("converted", [True, False], ids=["not loaded", "not converted"])
def test_whatever_was_asked_the_study_has_its_tables_and_figures(tmp_path, refused, converted):
    if not converted:
        write_failed_export(tmp_path)
    truth = synthetic.Truth(synthetic.TRUTH.capacities, repeats=1)
    served = [*synthetic.records(truth, mixes=[(1, 1)], holds=())]
    folders = [
        *synthetic_files.write(tmp_path, served),
        *(measured(tmp_path, task) for task in tasks()),
    ]
    factors = {"onnxruntime": 1.0, RUNTIME: 1.0}
    results = StudyResults.read(synthetic.grid_task(factors), folders, [])
    found = synthetic_files.all_tables(results)
    assert problems(found, {}) == []
    headlines = [
        each.headline for each in conclusions({n: table.to_pandas() for n, table in found.items()})
    ]
    # If no server can serve a model of a mix, the headline of the mix says so. The headlines of
    # other cells name the outcome.
    assert sum("not known" in headline for headline in headlines) == 6, headlines
    replayed = "The data do not show whether the tenants on"
    assert sum(replayed in headline for headline in headlines) == 1, headlines
    assert sum("The start time of a fresh" in headline for headline in headlines) == 1, headlines
    of_mixes = "(blocked); to measure resnet18 and" if converted else "should not share"
    assert any(of_mixes in headline for headline in headlines), headlines
    rows = [row for row in found["grid"].to_pylist() if row["runtime"] == RUNTIME]
    assert len(rows) == 3
    verdict, reason = (
        ("failed", NOT_LOADED)
        if converted
        else ("infeasible", "resnet18 cannot be converted to int8: no range")
    )
    alone = [row for row in rows if " : " not in row["mix"]]
    assert len(alone) == 2
    for row in alone if converted else rows:
        assert (row["verdict"], row["excluded"]) == (verdict, f"{verdict}: {reason}")
    if converted:  # no server was started for the mix
        (mix,) = (row for row in rows if row not in alone)
        assert mix["verdict"] == "blocked" and mix["excluded"].count(".peak.r1 (failed)") == 2
    assert {row["setting"] for row in found["recommendations"].to_pylist()} == {
        "runtime onnxruntime"
    }
    paths = {}
    for name, table in found.items():
        paths[name] = tmp_path / f"{name}.parquet"
        parquet.write(table, paths[name], tmp_path / f"{name}.csv")
    # the figures are equal for both values of `converted`, so one value is enough
    for name, facts in FIGURES.items() if converted else ():
        cells = [path for path in folders if Record.read(path).task.run.kind == facts.kind]
        svg, png, csv = (tmp_path / f"{name}.{kind}" for kind in ("svg", "png", "csv"))
        drawing.draw(name, paths, cells, STYLE, svg, png, csv)


def test_a_model_that_is_not_loaded_is_tried_twice_and_one_that_is_not_there_never(
    tmp_path, refused
):
    first, second = tasks()[:2]
    folder = measured(tmp_path, first)
    record = json.loads((folder / "record.json").read_text())
    assert len(refused) == 2 and len(record["attempts"]) == 2
    assert (folder / "server.log").read_text() == "what it said\n"
    write_failed_export(tmp_path)
    folder = measured(tmp_path, second)
    assert len(refused) == 2
    assert (folder / "server.log").read_text() == "No server was started.\n"


def test_as_it_is_configured_a_server_that_does_not_start_stops_the_run(tmp_path, refused):
    with pytest.raises(ServerError, match="failed to load 'resnet18'"):
        measured(tmp_path, tasks("onnxruntime")[0])


def test_a_cell_without_its_dedicated_peaks_is_blocked_before_a_server_is_started(
    tmp_path, refused
):
    """Perseus blocks a cell of any kind without its dedicated peaks, and starts no server."""
    served = synthetic.records(synthetic.Truth(synthetic.TRUTH.capacities, repeats=1), mixes=[])
    alone = [record for record in served if len(record["cell"]["tenants"]) == 1]
    lost = [synthetic.with_outcome(record, "infeasible", "too slow") for record in alone]
    folders = synthetic_files.write(tmp_path, lost)
    kinds = set()
    for task in (each for each in tasks("onnxruntime") if each.run.needs_dedicated_peaks):
        folders.append(measured(tmp_path, task))
        record = json.loads((folders[-1] / "record.json").read_text())
        assert (record["outcome"], record["attempt"], record["startup_s"]) == ("blocked", 1, None)
        assert f"{task.server.name}.resnet18.peak.r1 (infeasible)" in record["reason"]
        kinds.add(task.run.kind)
    assert refused == [] and kinds >= {"peak", "background", "slowdown"}
    found = synthetic_files.all_tables(StudyResults.read(synthetic.TASK, folders, []))
    assert problems(found, {}) == []


def test_models_that_it_serves_alone_but_not_together_are_a_row(tmp_path, refused):
    truth = synthetic.Truth(synthetic.TRUTH.capacities, repeats=1)
    records = synthetic.records(truth, mixes=[(1, 1)])
    alone = [record for record in records if len(record["cell"]["tenants"]) == 1]
    folders = synthetic_files.write(tmp_path, alone)
    together = MeasureTask.model_validate(records[-1]["cell"])
    folders.append(measured(tmp_path, together))
    assert len(refused) == 2
    found = synthetic_files.all_tables(StudyResults.read(synthetic.TASK, folders, []))
    assert problems(found, {}) == []
    (row,) = (row for row in found["peaks"].to_pylist() if "+" in row["models"])
    assert (row["verdict"], row["reason"]) == ("failed", NOT_LOADED)

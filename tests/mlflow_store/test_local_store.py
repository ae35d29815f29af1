"""Perseus stores a study as a run in MLflow. The store returns configuration, results and files."""

from pathlib import Path

import pytest
import synthetic
import synthetic_files
from mlflow import MlflowClient

from perseus.host import parquet
from perseus.report.tracking import TrackingError, require_store, track
from perseus.results.study_results import StudyResults
from perseus.study.tasks.track import TrackTask


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Return the paths of a study's tables, by name."""
    folder = tmp_path_factory.mktemp("study")
    cells = synthetic_files.write(folder, synthetic.records())
    read = StudyResults.read(synthetic.TASK, cells, [])
    for name, table in synthetic_files.all_tables(read).items():
        parquet.write(table, folder / f"{name}.parquet", folder / f"{name}.csv")
    return {path.stem: path for path in folder.glob("*.parquet")}


def test_results_come_back_from_the_store(tables, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # MLflow writes files beside its database
    results = tmp_path / "results" / "pair"
    report, figure = results / "report.html", results / "figures" / "peaks.svg"
    figure.parent.mkdir(parents=True)
    report.write_text("<p>the answer</p>")
    figure.write_text("<svg/>")
    models = [{"name": "a", "sla": {"latency_ms": 50.0}, "shape": {"/image": [3, 9, 9]}}]
    task = TrackTask(
        study="pair", uri=f"sqlite:///{tmp_path}/store.db", configuration={"models": models}
    )
    ids = track(task, tables, [report, figure])

    client = MlflowClient(task.uri)
    run = client.get_run(ids["run_id"])
    assert client.get_experiment(ids["experiment_id"]).name == "perseus/pair"
    assert run.info.status == "FINISHED"
    assert run.data.params == {
        "models/a/name": "a",
        "models/a/sla/latency_ms": "50.0",
        "models/a/shape/_image": "[3, 9, 9]",
    }
    assert {name.partition("/")[0] for name in run.data.metrics} == {"peaks", "savings", "costs"}
    assert run.data.metrics["peaks/cpu1/resnet18/estimate_rps"] > 0
    kept = {file.path for file in client.list_artifacts(ids["run_id"])}
    assert kept == {"configuration.yaml", "report.html", "figures"}
    copy = client.download_artifacts(ids["run_id"], "figures/peaks.svg", str(tmp_path))
    assert Path(copy).read_text() == "<svg/>"

    again = track(task, tables, [report])
    assert again["experiment_id"] == ids["experiment_id"] and again["run_id"] != ids["run_id"]


def test_a_store_that_does_not_answer_is_named():
    with pytest.raises(TrackingError) as refused:
        require_store("http://127.0.0.1:1", "pair")
    assert str(refused.value).startswith("track.mlflow: the store http://127.0.0.1:1 does not ans")
    assert str(refused.value).endswith("Start the store, or remove the key track")


def test_a_deleted_experiment_is_found_before_the_measurements(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    uri = f"sqlite:///{tmp_path}/store.db"
    client = MlflowClient(uri)
    number = client.create_experiment("perseus/pair")
    require_store(uri, "pair")
    client.delete_experiment(number)
    require_store(uri, "other")
    with pytest.raises(TrackingError) as refused:
        require_store(uri, "pair")
    assert str(refused.value) == (
        f"track.mlflow: the experiment 'perseus/pair' of the store {uri} is deleted. Give the study"
        f" another name, or restore the experiment: MLFLOW_TRACKING_URI={uri} mlflow"
        f" experiments restore --experiment-id {number}"
    )
    client.restore_experiment(number)
    require_store(uri, "pair")

"""Tests that a soak finds a memory leak that the test puts into the backend of a real server."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import synthetic
from e2e.test_server import write_repository
from measure_tasks import measure_task, tenant
from references import write_reference

from perseus.host.cores import TooFewCoresError, split_cores
from perseus.measurement import measure as frame
from perseus.measurement.cell import Inputs, Outputs
from perseus.measurement.progress.state import Progress
from perseus.results.study_results import StudyResults
from perseus.results.tables import soak
from perseus.serving.launchers import embedded
from perseus.study.experiments.soak import Run
from perseus.study.sla import Sla

pytestmark = pytest.mark.alone

RATE_RPS, WINDOWS, WINDOW_S = 40.0, 10, 0.6
LEAK_BYTES, FILE_EVERY = 200_000, 4
BACKEND = f"""
import os
import numpy as np
import triton_python_backend_utils as pb_utils
from perseus_tensors import tensor

class TritonPythonModel:
    def initialize(self, args):
        self.leaked = []

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        self.leaked.append(b"x" * {LEAK_BYTES})
        if len(self.leaked) % {FILE_EVERY} == 0:
            os.open(os.devnull, os.O_RDONLY)
        images = np.from_dlpack(pb_utils.get_input_tensor_by_name(request, "input"))
        return pb_utils.InferenceResponse([tensor("output", np.maximum(images, 0))])
"""


def it_was_told_how_far_it_is(told: list[Progress]) -> None:
    """Check the progress before the server starts, after its start, and after each window."""
    begun, started, *windows = told
    assert begun.metrics_url is None and not started.windows
    assert {each.metrics_url for each in windows} == {started.metrics_url}
    assert [sum(each.windows.values()) for each in windows] == list(range(1, WINDOWS + 1))
    for each in windows:
        assert each.phase == "soak" and each.end_s is not None
        (tiny,) = each.tenants
        assert tiny.offered_rps == RATE_RPS and tiny.verdict in each.windows
        assert tiny.latency_ms is not None and tiny.latency_ms > 0


def test_a_leak_of_memory_and_of_files_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        split_cores(1)
    except TooFewCoresError as error:
        pytest.skip(str(error))
    backend = tmp_path / "backends" / "leak" / "model.py"
    backend.parent.mkdir(parents=True)
    backend.write_text(BACKEND)

    def serve(server, repository, log_path, cores, **more):
        return embedded.embedded_triton(repository, log_path, cores, backends=backend.parents[1])

    monkeypatch.setattr(embedded, "serve", serve)
    monkeypatch.setattr(frame, "ATTEMPTS", 1)  # one attempt is enough: a busy host hides no leak
    images = np.random.default_rng(0).normal(size=(4, 3, 8, 8)).astype(np.float32)
    write_reference(tmp_path / "reference.npz", images, np.maximum(images, 0))
    each_s = 1.0 + WINDOW_S + 0.1  # settling time, window, and the wait for responses
    run = Run(name="soak", duration_s=WINDOWS * each_s, window_s=WINDOW_S, rates_rps=(RATE_RPS,))
    task = measure_task(tenant("tiny", sla=Sla(latency_ms=50.0)), run=run)
    told: list[Progress] = []
    folder = tmp_path / "cell"
    folder.mkdir()
    frame.measure(
        task,
        Inputs(
            repository=write_repository(tmp_path, backend="leak"),
            references={"tiny": tmp_path / "reference.npz"},
            dedicated_records=[],
            trace=None,
        ),
        Outputs.within(folder),
        print,
        told.append,
    )
    it_was_told_how_far_it_is(told)
    rows = list(soak.rows(StudyResults.read(synthetic.TASK, [folder], [])))
    *_, memory, files = rows
    assert memory["verdict"] in ("ok", "disturbed", "client_limited"), memory["reason"]
    assert memory["drift"] == files["drift"] == "grows"
    # Leaked memory between the first and the last reading, per hour.
    requests = pq.read_table(folder / "requests.parquet", columns=["window"])["window"].to_numpy()
    (first, *_, last) = soak.SoakRecord.read(folder).readings
    leaking = np.sum(requests > 0) / ((last.time_ns - first.time_ns) / soak.HOUR_NS)
    assert memory["per_hour"] == pytest.approx(leaking * LEAK_BYTES / soak.MB, rel=0.1)
    assert files["per_hour"] == pytest.approx(leaking / FILE_EVERY, rel=0.1)
    for row in (memory, files):
        assert row["low_per_hour"] > 0.5 * row["per_hour"]
    monitor = pq.read_table(folder / "monitor.parquet").to_pandas()
    seen = monitor[monitor["metric"] == "server_open_files"]["value"]
    assert seen.iloc[-1] > seen.iloc[0] + 20

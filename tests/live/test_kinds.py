"""Tests of the experiments that search no peak, on a real Triton, in the finished study `smoke`."""

from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path

import browser
import pandas as pd
import pyarrow.parquet as pq
import pytest
from live.smoke_study import SNAKEMAKE, left_behind, with_more

from perseus.results.check import check

pytestmark = pytest.mark.alone

EXPERIMENTS = [
    {"kind": "startup", "starts": 1, "page_cache": ["warm", "cold"]},
    {"kind": "aa", "restarts": 2, "windows": 2},
    {"kind": "slowdown", "rate_rps": 20, "rounds": 2},
    {"kind": "replay", "process": "mmpp", "rates_rps": [20], "duration_s": 5},
]
"""The smallest experiment of each kind.

The kinds that take a minute or more have their own tests: a soak in tests/e2e/test_leak.py, and a
catalogue in tests/e2e/test_in_process.py.
"""
KINDS = ["concurrency", *(each["kind"] for each in EXPERIMENTS)]


@pytest.fixture(scope="module")
def added(finished, tmp_path_factory) -> Path:
    """Return the folder of the study with these experiments added."""
    root = tmp_path_factory.mktemp("kinds") / "workflow"
    return with_more(finished[0], root, EXPERIMENTS, [], len(EXPERIMENTS))


def cells(root: Path, kind: str) -> list[Path]:
    """Return the folders of the cells of a kind."""
    folders = (root / "results/smoke/raw").iterdir()
    return [each for each in folders if record(each)["cell"]["run"]["kind"] == kind]


def record(folder: Path) -> dict:
    return json.loads((folder / "record.json").read_text())


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_has_its_cell_its_table_its_figure_and_its_section(added, kind):
    results = added / "results" / "smoke"
    (cell,) = cells(added, kind)
    # Other processes may disturb the measurement, but they must not make the server fail.
    assert record(cell)["outcome"] != "failed", record(cell)["reason"]
    table = pd.read_csv(results / "tables" / f"{kind}.csv")
    assert set(table["cell"]) == {cell.name}
    assert (results / "figures" / f"{kind}.svg").stat().st_size > 5_000
    assert cell.name in (results / "report.html").read_text()


def test_nothing_contradicts_and_nothing_is_left(added):
    check(added / "results" / "smoke" / "tables", {})
    assert left_behind(added) == []


def test_the_servers_own_counters_agree_with_the_clients(added):
    """Triton counts the responses to the clients, and some requests of check and warm-up."""
    for cell in (cell for kind in KINDS for cell in cells(added, kind)):
        monitor = pq.read_table(cell / "monitor.parquet").to_pandas()
        served = monitor[monitor["metric"] == "nv_inference_request_success"]["value"].sum()
        requests = pq.read_table(cell / "requests.parquet").to_pandas()
        answered = (requests["status"] == "ok").sum()
        cancelled = (requests["status"] == "pending").sum()
        found = record(cell)
        servers = len(found["attempts"]) * max(1, len(found.get("capacities_rps", [])))
        assert answered <= served <= answered + cancelled + 120 * servers


def test_snakemakes_own_report_has_the_page_the_tables_and_the_figures(added, tmp_path):
    packed = tmp_path / "report.zip"
    done = subprocess.run(
        [*SNAKEMAKE, "--report", str(packed), "--configfile", "kinds.yaml"],
        cwd=added,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(packed) as archive:
        archive.extractall(tmp_path)
    (start,) = [page for page in tmp_path.rglob("report.html") if "data" not in page.parts]
    packed_files = {path.name for path in tmp_path.rglob("*") if "data" in path.parts}
    results = added / "results" / "smoke"
    tables = {path.name for path in (results / "tables").glob("*.csv")}
    figures = {path.name for path in (results / "figures").glob("*.png")}
    assert {"report.html"} | tables | figures <= packed_files
    if browser.CHROMIUM is not None:
        assert console_errors(start) == []


def console_errors(page: Path) -> list[str]:
    """Return the errors on the console of a browser that opens the page."""
    done = browser.run("--virtual-time-budget=5000", "--dump-dom", page.as_uri())
    assert "<body" in done.stdout
    return [line for line in done.stderr.splitlines() if "CONSOLE" in line and "rror" in line]

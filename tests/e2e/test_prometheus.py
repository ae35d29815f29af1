"""Debian's Prometheus with the shipped configuration discovers, scrapes, records and alerts."""

from __future__ import annotations

import json
import time

import exported
import fake_triton_metrics
import prometheus_here
import pytest
from exported import MEASURED
from fake_triton_metrics import MODELS
from prometheus_here import SHIPPED, promtool

pytestmark = prometheus_here.needs_prometheus

DASHBOARDS = sorted((SHIPPED.parent / "grafana/dashboards").glob("*.json"))
CELL = {"study": MEASURED.study, "cell": MEASURED.cell}
OVERDUE_S = 900


def test_the_shipped_configuration_and_rules_are_well_formed():
    for what, path in (
        ("config", SHIPPED / "prometheus.yml"),
        *(("rules", path) for path in sorted((SHIPPED / "rules").glob("*.yml"))),
    ):
        done = promtool("check", what, str(path))
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", sorted((SHIPPED / "tests").iterdir()), ids=lambda path: path.stem)
def test_rules_do_what_their_tests_say(path):
    done = promtool("test", "rules", str(path))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def scraping(tmp_path_factory):
    """Run a Prometheus that scrapes a cell whose measurement is overdue."""
    folder = tmp_path_factory.mktemp("monitoring")
    with fake_triton_metrics.serving() as url:
        overdue_s = time.time() - OVERDUE_S
        measured = MEASURED.model_copy(update={"metrics_url": url, "end_s": overdue_s})
        with (
            exported.exporter(folder / "logs", measured) as address,
            prometheus_here.prometheus(folder, address) as server,
        ):
            rate = "model:nv_inference_request_success:rate30s > 0"
            server.until(lambda: server.query("perseus_cells") and server.query(rate))
            yield server


def test_it_finds_the_exporter_and_by_it_the_server_of_the_cell(scraping):
    up = {each["job"]: each for each in scraping.query("up")}
    assert {job: each["value"] for job, each in up.items()} == {"perseus": 1, "triton": 1}
    assert CELL.items() <= up["triton"].items() and up["triton"]["server"] == "cpu1"


def test_what_is_recorded_of_the_server_is_what_it_does(scraping):
    """The rates rise for the first 30 s, so the test compares ratios. promtool tests the values."""
    found = scraping.query("model:nv_inference_request_success:rate30s")
    rates = {each["model"]: each["value"] for each in found}
    assert rates["a"] / rates["b"] == pytest.approx(MODELS["a"] / MODELS["b"])
    for name, seconds in (("queue", 0.002), ("compute", 0.007)):
        found = scraping.query(f"model:nv_inference_{name}_seconds:mean30s")
        assert len(found) == 2 and all(CELL.items() <= each.items() for each in found)
        assert [each["value"] for each in found] == pytest.approx([seconds] * 2)


def test_what_is_wrong_with_the_measurement_is_told(scraping):
    def firing():
        alerts = scraping.query("ALERTS")
        return {each["alertname"]: each for each in alerts if each["alertname"] == "CellOverdue"}

    overdue = scraping.until(firing)["CellOverdue"]
    assert CELL.items() <= overdue.items() and overdue["alertstate"] == "firing"
    names = {each["alertname"] for each in scraping.query("ALERTS")}
    assert names <= {"CellOverdue", "ClientLate"}


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_every_panel_has_something_to_show(scraping, path):
    board = json.loads(path.read_text())
    for panel in board["panels"]:
        for query in panel["targets"]:
            expression = query["expr"].replace("$study", ".*").replace("$cell", ".*")
            assert scraping.query(expression), (panel["title"], expression)
    for variable in board["templating"]["list"]:
        source = variable["query"].removeprefix("label_values(").rpartition(",")[0]
        assert scraping.query(source.replace("$study", ".*"))

"""Tests that monitoring/ uses only existing metrics and only the loopback interface."""

import json
import re
from pathlib import Path

import fake_triton_metrics
import pytest
import yaml
from exported import BEGUN, MEASURED

from perseus.measurement.progress.exporter import PORT
from perseus.measurement.progress.exposition import metrics

MONITORING = Path(__file__).parents[2] / "monitoring"
DASHBOARDS = sorted((MONITORING / "grafana/dashboards").glob("*.json"))
RULES = sorted((MONITORING / "prometheus/rules").glob("*.yml"))
FILES = sorted(path for path in MONITORING.rglob("*") if path.is_file())
METRIC = re.compile(r"\b(?:\w+:\w+:\w+|(?:nv|perseus)_\w+)")
SOURCE = {"type": "prometheus", "uid": "prometheus"}


def rules():
    groups = [group for path in RULES for group in yaml.safe_load(path.read_text())["groups"]]
    return [rule for group in groups for rule in group["rules"]]


def expressions(path):
    """Return the expressions of a dashboard's panels and variables."""
    board = json.loads(path.read_text())
    queries = [query["expr"] for panel in board["panels"] for query in panel["targets"]]
    return queries + [variable["query"] for variable in board["templating"]["list"]]


def exposed():
    """Return the names of all possible series."""
    samples = [sample.name for each in metrics([MEASURED, BEGUN]) for sample in each.samples]
    recorded = [rule["record"] for rule in rules() if "record" in rule]
    return {*samples, *recorded, *fake_triton_metrics.NAMES}


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_a_dashboard_shows_only_what_is_exposed(path):
    names = {name for text in expressions(path) for name in METRIC.findall(text)}
    assert names and names <= exposed()


def test_rules_ask_only_for_what_is_exposed():
    names = {name for rule in rules() for name in METRIC.findall(rule["expr"])}
    assert names and names <= exposed()


def test_everything_of_perseus_and_every_record_is_shown():
    """A series that no dashboard shows and no rule uses is unnecessary."""
    shown = {n for path in DASHBOARDS for text in expressions(path) for n in METRIC.findall(text)}
    asked = {name for rule in rules() for name in METRIC.findall(rule["expr"])}
    unseen = {"perseus_cells", "perseus_cell_attempt", "perseus_cell_told_timestamp_seconds"}
    ours = {name for name in exposed() if not name.startswith("nv_")}
    assert ours - shown - asked == unseen


def test_every_rule_is_tested():
    tests = "".join(path.read_text() for path in (MONITORING / "prometheus/tests").iterdir())
    for rule in rules():
        assert rule.get("record", rule.get("alert")) in tests


def test_dashboards_can_be_told_apart_and_find_prometheus():
    boards = [json.loads(path.read_text()) for path in DASHBOARDS]
    uids = [board["uid"] for board in boards]
    assert len(set(uids)) == len(boards) == 2
    (source,) = yaml.safe_load(
        (MONITORING / "grafana/provisioning/datasources/prometheus.yml").read_text()
    )["datasources"]
    assert {name: source[name] for name in SOURCE} == SOURCE
    for board in boards:
        assert {link["url"].removeprefix("/d/") for link in board["links"]} <= set(uids)
        ids = [panel["id"] for panel in board["panels"]]
        assert len(set(ids)) == len(ids)
        for panel in board["panels"]:
            assert panel["title"] and panel["datasource"] == SOURCE
            assert "unit" in panel["fieldConfig"]["defaults"] or panel["type"] != "timeseries"


def test_panels_do_not_cover_each_other():
    for path in DASHBOARDS:
        taken = set()
        for panel in json.loads(path.read_text())["panels"]:
            at = panel["gridPos"]
            area = {
                (x, y)
                for x in range(at["x"], at["x"] + at["w"])
                for y in range(at["y"], at["y"] + at["h"])
            }
            assert max(x for x, _ in area) < 24 and not area & taken, panel["title"]
            taken |= area


def test_images_are_pinned_and_nothing_is_published():
    services = yaml.safe_load((MONITORING / "compose.yaml").read_text())["services"]
    assert set(services) == {"prometheus", "grafana"}
    for service in services.values():
        assert re.search(r":v?\d+\.\d+\.\d+$", service["image"])
        assert service["network_mode"] == "host" and "ports" not in service
        assert service["cap_drop"] == ["ALL"] and service["cpuset"] == "0"
        for volume in service["volumes"]:
            source = volume.split(":")[0]
            assert not source.startswith("./") or (MONITORING / source).is_dir(), volume
    assert "--web.listen-address=127.0.0.1:9090" in services["prometheus"]["command"]
    assert services["grafana"]["environment"]["GF_SERVER_HTTP_ADDR"] == "127.0.0.1"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_file_names_an_address_of_all_interfaces(path):
    text = path.read_text()
    assert not re.search(r"0\.0\.0\.0|\[::\]", text)
    assert set(re.findall(r"https?://([^/:\s\"]+)", text)) <= {"127.0.0.1"}


def test_prometheus_asks_the_port_of_the_exporter():
    config = yaml.safe_load((MONITORING / "prometheus/prometheus.yml").read_text())
    perseus, triton = config["scrape_configs"]
    assert perseus["static_configs"] == [{"targets": [f"127.0.0.1:{PORT}"]}]
    (discovery,) = triton["http_sd_configs"]
    assert discovery["url"] == f"http://127.0.0.1:{PORT}/targets"
